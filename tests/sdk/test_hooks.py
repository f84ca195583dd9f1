"""Level 3: hooks of the program at the other events, and commands of settings files."""

import json

import anyio
import pytest
from claude_agent_sdk import ClaudeSDKClient, HookMatcher, PermissionResultAllow, PermissionResultDeny, query
from conftest import call, collect, of_kind, results, texts

pytestmark = pytest.mark.anyio


async def converse(place, prompt, **options):
    async with ClaudeSDKClient(place.options(**options)) as client:
        await client.query(prompt)
        return await collect(client.receive_response())


def answering(seen, **output):
    """A callback that keeps what it was given and answers with this."""

    async def callback(given, call_id, context):
        seen.append(given)
        return output

    return [HookMatcher(hooks=[callback])]


def specific(event, **fields):
    return {"hookEventName": event, **fields}


# REQ: HKS-2
async def test_prompt_that_a_hook_blocks_reaches_no_model_and_no_later_request(place):
    seen = []

    async def guard(given, call_id, context):
        seen.append(given["prompt"])
        return {"decision": "block", "reason": "no secrets"} if "heron" in given["prompt"] else {}

    hooks = {"UserPromptSubmit": [HookMatcher(hooks=[guard])]}
    async with ClaudeSDKClient(place.options(hooks=hooks)) as client:
        await client.query("say one")
        await collect(client.receive_response())
        await client.query("say heron")
        blocked = await collect(client.receive_response())
        await client.query("what was said")
        later = await collect(client.receive_response())
    assert texts(blocked) == [] and seen == ["say one", "say heron", "what was said"]
    result = of_kind(blocked, "ResultMessage")[0]
    assert (result.is_error, result.terminal_reason) == (False, "hook_stopped")
    assert "no secrets" in result.result
    assert "say one" in texts(later)[0] and "heron" not in texts(later)[0]
    session = result.session_id
    resumed = await collect(query(prompt="what was said", options=place.options(resume=session)))
    assert "say one" in texts(resumed)[0] and "heron" not in texts(resumed)[0]


# REQ: HKS-1, HKS-4
async def test_first_turn_that_is_cut_off_has_begun_the_session(place):
    log = place.config / "log"
    told = {it: [{"hooks": [{"type": "command", "command": f"echo {it} >> {log}"}]}] for it in ("SessionStart", "SessionEnd")}
    place.write(".claude/settings.json", json.dumps({"hooks": told}))
    options = place.options(setting_sources=["project"], allowed_tools=["Bash"])
    async with ClaudeSDKClient(options) as client:
        await client.query(call("Bash", command="touch begun; sleep 60"))
        while not (place.work / "begun").exists():
            await anyio.sleep(0.01)
        await client.interrupt()
        await collect(client.receive_response())
        await client.query("say one")
        await collect(client.receive_response())
        assert log.read_text().split() == ["SessionStart"]
    log.unlink()
    async with ClaudeSDKClient(options) as client:
        await client.query(call("Bash", command="touch again; sleep 60"))
        while not (place.work / "again").exists():
            await anyio.sleep(0.01)
        await client.interrupt()
        await collect(client.receive_response())
    assert log.read_text().split() == ["SessionStart", "SessionEnd"]


# REQ: SUR-3
async def test_what_is_wrong_with_settings_is_told(place):
    place.write(".claude/settings.json", '{"permissions": {"deny": ["Bash"],}}')
    messages = await converse(place, "say one", setting_sources=["project"])
    system = of_kind(messages, "SystemMessage")
    told = [it.data for it in system if it.subtype == "informational"]
    assert system[0].subtype == "init" and any(".claude/settings.json" in it["content"] for it in told), told


# REQ: HKS-2
async def test_context_of_a_prompt_hook_is_read_by_the_model(place):
    output = specific("UserPromptSubmit", additionalContext="the sky is green")
    hooks = {"UserPromptSubmit": answering([], hookSpecificOutput=output)}
    assert "the sky is green" in texts(await converse(place, "what was said", hooks=hooks))[0]


# REQ: HKS-1
async def test_hook_of_the_start_of_a_session_adds_context_once(place):
    seen = []
    output = specific("SessionStart", additionalContext="the sky is green")
    hooks = {"SessionStart": answering(seen, hookSpecificOutput=output)}
    async with ClaudeSDKClient(place.options(hooks=hooks)) as client:
        for _ in range(2):
            await client.query("what was said")
            messages = await collect(client.receive_response())
            assert texts(messages)[0].count("the sky is green") >= 1
    assert [it["source"] for it in seen] == ["startup"]


# REQ: HKS-4
async def test_call_that_fails_fires_its_own_event(place):
    seen = []
    output = specific("PostToolUseFailure", additionalContext="try ls")
    hooks = {
        "PostToolUse": answering(seen),
        "PostToolUseFailure": answering(seen, hookSpecificOutput=output),
    }
    messages = await converse(place, call("Bash", command="cat nothing"), hooks=hooks, allowed_tools=["Bash"])
    assert [it["hook_event_name"] for it in seen] == ["PostToolUseFailure"]
    assert "nothing" in seen[0]["error"] and seen[0]["tool_name"] == "Bash"
    assert "try ls" in results(messages)[0][0]


# REQ: PRM-5
@pytest.mark.parametrize("behavior", ["allow", "deny"])
async def test_hook_answers_a_question_in_place_of_the_program(place, behavior):
    seen, asked = [], []

    async def may(name, given, context):
        asked.append(name)
        return PermissionResultAllow()

    decision = {"behavior": behavior, "message": "a hook said no"}
    output = specific("PermissionRequest", decision=decision)
    hooks = {"PermissionRequest": answering(seen, hookSpecificOutput=output)}
    messages = await converse(place, call("Bash", command="touch x"), hooks=hooks, can_use_tool=may)
    assert asked == [] and seen[0]["tool_input"] == {"command": "touch x"}
    assert (place.work / "x").exists() == (behavior == "allow")
    assert ("a hook said no" in results(messages)[0][0]) == (behavior == "deny")


# REQ: PRM-5
async def test_hook_answers_a_question_where_nobody_else_can(place):
    for event, ran in (("PermissionRequest", True), ("PostToolUse", False)):
        output = specific(event, decision={"behavior": "allow"})
        hooks = {event: answering([], hookSpecificOutput=output)}
        await converse(place, call("Bash", command=f"touch {event}"), hooks=hooks)
        assert (place.work / event).exists() == ran


# REQ: PRM-5
async def test_question_that_no_hook_answers_goes_to_the_program(place):
    seen = []

    async def may(name, given, context):
        return PermissionResultAllow()

    hooks = {"PermissionRequest": answering(seen)}
    await converse(place, call("Bash", command="touch x"), hooks=hooks, can_use_tool=may)
    assert len(seen) == 1 and (place.work / "x").exists()


# REQ: HKS-2
async def test_call_that_a_hook_puts_off_ends_the_run_and_is_in_its_result(place):
    output = specific("PreToolUse", permissionDecision="defer")
    hooks = {"PreToolUse": answering([], hookSpecificOutput=output)}
    prompt = call("Bash", command="touch x")
    messages = await converse(place, prompt, hooks=hooks, allowed_tools=["Bash"])
    result = of_kind(messages, "ResultMessage")[0]
    assert (result.is_error, result.stop_reason) == (False, "tool_deferred")
    assert (result.deferred_tool_use.name, result.deferred_tool_use.input) == ("Bash", {"command": "touch x"})
    assert not (place.work / "x").exists()


# REQ: HKS-1
async def test_program_is_notified_before_it_is_asked(place):
    order = []

    async def note(given, call_id, context):
        order.append((given["notification_type"], given["message"]))
        return {}

    async def may(name, given, context):
        order.append("asked")
        return PermissionResultDeny(message="no")

    hooks = {"Notification": [HookMatcher(hooks=[note])]}
    await converse(place, call("Bash", command="touch x"), hooks=hooks, can_use_tool=may)
    assert order == [("permission_prompt", "Permission is needed to use Bash"), "asked"]


# REQ: HKS-1
async def test_command_runs_at_the_end_of_a_session_in_which_something_was_asked(place):
    commands = [{"type": "command", "command": "cat >> ended; echo >> ended"}]
    settings = {"hooks": {"SessionEnd": [{"matcher": "other", "hooks": commands}]}}
    messages = await converse(place, "say hello", settings=json.dumps(settings))
    given = json.loads((place.work / "ended").read_text())
    assert (given["hook_event_name"], given["reason"]) == ("SessionEnd", "other")
    assert given["session_id"] == of_kind(messages, "ResultMessage")[0].session_id


# REQ: HKS-1
async def test_instructions_that_were_loaded_are_told_with_their_file(place):
    file, seen = place.write("CLAUDE.md", "The sky is green.\n"), []
    hooks = {"InstructionsLoaded": answering(seen, decision="block", reason="not that")}
    messages = await converse(place, "what was said", hooks=hooks, setting_sources=["project"])
    assert [(it["file_path"], it["memory_type"], it["load_reason"]) for it in seen] == [
        (str(file), "Project", "session_start")
    ]
    assert of_kind(messages, "ResultMessage")[0].is_error is False


# REQ: HKS-1
async def test_call_that_moves_the_working_directory_is_told_with_both_directories(place):
    (place.work / "below").mkdir()
    seen = []
    prompt = call("Bash", command="cd below")
    await converse(place, prompt, hooks={"CwdChanged": answering(seen)}, allowed_tools=["Bash"])
    assert [(it["old_cwd"], it["new_cwd"]) for it in seen] == [(str(place.work), str(place.work / "below"))]
    assert seen[0]["cwd"] == str(place.work / "below")


# REQ: HKS-1
async def test_failure_of_the_model_server_is_told_by_its_kind(place):
    failed, stopped, other = [], [], []
    matched = [HookMatcher(matcher="authentication_failed", hooks=answering(failed)[0].hooks)]
    hooks = {"StopFailure": matched + [HookMatcher(matcher="overloaded", hooks=answering(other)[0].hooks)]}
    hooks["Stop"] = answering(stopped)
    messages = await converse(place, "fail 401", hooks=hooks)
    assert [it["error"] for it in failed] == ["authentication_failed"] and stopped == other == []
    assert failed[0]["error_details"]
    assert of_kind(messages, "ResultMessage")[0].is_error is True


# REQ: HKS-1
async def test_session_that_is_compacted_starts_again_for_its_hooks(place):
    seen = []
    output = specific("SessionStart", additionalContext="the sky is green")
    hooks = {"SessionStart": answering(seen, hookSpecificOutput=output)}
    async with ClaudeSDKClient(place.options(hooks=hooks)) as client:
        for prompt in ["say one", "/compact", "what was said"]:
            await client.query(prompt)
            messages = await collect(client.receive_response())
    assert [it["source"] for it in seen] == ["startup", "compact"]
    assert "the sky is green" in texts(messages)[0]


# REQ: HKS-6
async def test_context_of_a_stop_hook_has_the_model_go_on(place):
    seen = []

    async def once(given, call_id, context):
        seen.append(given["stop_hook_active"])
        if given["stop_hook_active"]:
            return {}
        return {"hookSpecificOutput": specific("Stop", additionalContext="one more thing")}

    messages = await converse(place, "say done", hooks={"Stop": [HookMatcher(hooks=[once])]})
    assert seen == [False, True] and len(texts(messages)) == 2
    session = of_kind(messages, "ResultMessage")[0].session_id
    [file] = place.config.rglob(f"{session}.jsonl")
    assert "one more thing" in file.read_text()


# REQ: HKS-1
async def test_beginning_and_end_of_a_hook_are_shown_with_what_it_wrote(place):
    settings = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "echo out; echo err >&2; exit 1"}]}]}}
    options = {"settings": json.dumps(settings), "include_hook_events": True}
    messages = await converse(place, call("Bash", command="pwd"), **options)
    started, ended = [it.data for it in messages if type(it).__name__ == "HookEventMessage"]
    assert (started["subtype"], ended["subtype"]) == ("hook_started", "hook_response")
    assert started["hook_id"] == ended["hook_id"] and ended["hook_event"] == "PreToolUse"
    assert (ended["stdout"], ended["stderr"], ended["exit_code"]) == ("out\n", "err\n", 1)
    assert ended["outcome"] == "error"


# REQ: HKS-1
async def test_commands_of_settings_run_at_prompts(place):
    handler = {"type": "command", "command": "cat > seen.json; echo the sky is green"}
    settings = {"hooks": {"UserPromptSubmit": [{"hooks": [handler]}]}}
    messages = await converse(place, "what was said", settings=json.dumps(settings))
    assert json.loads((place.work / "seen.json").read_text())["prompt"] == "what was said"
    assert "the sky is green" in texts(messages)[0]


# REQ: HKS-2
@pytest.mark.parametrize("on_failure", ["block", "continue"])
async def test_callback_that_is_late_blocks_where_its_failure_does(place, on_failure):
    import anyio

    async def late(given, call_id, context):
        await anyio.sleep(30)
        return {}

    hooks = {"PreToolUse": [HookMatcher(hooks=[late], timeout=0.2, on_failure=on_failure)]}
    await converse(place, call("Bash", command="touch x"), hooks=hooks, allowed_tools=["Bash"])
    assert (place.work / "x").exists() == (on_failure == "continue")


# REQ: HKS-1
async def test_hook_hears_of_a_file_that_has_changed_while_the_session_is_at_rest(place):
    seen, has_seen = [], anyio.Event()
    watched = place.write(".envrc", "one")

    async def changed(given, call_id, context):
        seen.append(given)
        has_seen.set()
        return {}

    hooks = {"FileChanged": [HookMatcher(matcher=".envrc", hooks=[changed])]}
    async with ClaudeSDKClient(place.options(hooks=hooks)) as client:
        await client.query("say one")
        await collect(client.receive_response())
        with anyio.fail_after(30):
            n_written = 0
            # The first look may be still to come.
            while not has_seen.is_set():
                n_written += 1
                watched.write_text("x" * n_written)
                with anyio.move_on_after(3):
                    await has_seen.wait()
    assert {key: seen[0][key] for key in ("hook_event_name", "file_path", "event")} == {
        "hook_event_name": "FileChanged",
        "file_path": str(watched),
        "event": "change",
    }


# REQ: HKS-1
@pytest.mark.parametrize("blocks", [False, True])
async def test_hook_hears_of_all_calls_of_an_answer_at_once(place, blocks):
    seen = []
    output = specific("PostToolBatch", additionalContext="the sky is green")
    answer = {"decision": "block", "reason": "look first"} if blocks else {"hookSpecificOutput": output}
    hooks = {"PostToolBatch": answering(seen, **answer)}
    place.write("one", "first")
    place.write("two", "second")
    calls = [{"tool": "Read", "input": {"file_path": str(place.work / name)}} for name in ("one", "two")]
    messages = await converse(place, f"calls {json.dumps(calls)}", hooks=hooks)
    assert [[it["tool_name"] for it in given["tool_calls"]] for given in seen] == [["Read", "Read"]]
    assert ["first" in it["tool_response"] for it in seen[0]["tool_calls"]] == [True, False]
    result = of_kind(messages, "ResultMessage")[0]
    assert (result.terminal_reason == "hook_stopped") == blocks
    assert len(texts(messages)) == (0 if blocks else 1)


# REQ: SUR-3, HKS-1
@pytest.mark.parametrize(("env", "starts"), [({}, True), ({"ENNEAD_UNTRUSTED": "1"}, False)])
async def test_program_that_names_no_source_of_settings_means_all_of_them(place, env, starts):
    handler = {"type": "command", "command": "touch hooked"}
    settings = {"hooks": {"UserPromptSubmit": [{"hooks": [handler]}]}}
    place.write(".claude/settings.json", json.dumps(settings))
    place.write(".claude/commands/loud.md", "say it")
    messages = await converse(place, "/loud", env=env)
    assert (place.work / "hooked").exists() == starts
    init = next(it for it in of_kind(messages, "SystemMessage") if it.subtype == "init")
    assert ("loud" in init.data["slash_commands"]) == starts
    assert (texts(messages) == ["it"]) == starts
