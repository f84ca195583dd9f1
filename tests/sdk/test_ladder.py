"""Levels 1 to 3: capabilities that no other file holds."""

import json
import os
import subprocess
import uuid

import anyio
import pytest
from claude_agent_sdk import (
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    create_sdk_mcp_server,
    query,
    tool,
)
from conftest import ENNEAD, call, collect, of_kind, results, texts

pytestmark = pytest.mark.anyio


async def converse(place, *prompts, **options):
    found = []
    async with ClaudeSDKClient(place.options(**options)) as client:
        for prompt in prompts:
            await client.query(prompt)
            found.append(await collect(client.receive_response()))
    return found[0] if len(prompts) == 1 else found


def calls(*each):
    return "calls " + json.dumps([{"tool": name, "input": fields} for name, fields in each])


# REQ: SUR-3
async def test_version_is_one_that_old_sdks_accept(place):
    printed = subprocess.run([ENNEAD, "-v"], capture_output=True, text=True, timeout=10).stdout
    assert tuple(map(int, printed.split()[0].split("."))) >= (2, 1, 248)


# REQ: SUR-3
@pytest.mark.parametrize("text", ["é", "日本語", "🦀" * 500, "a\u2028b\u2029c", "\\n \"quoted\" {json}"])
async def test_text_of_any_kind_is_unchanged_both_ways(place, text):
    messages = await collect(query(prompt=f"say {text}", options=place.options(include_partial_messages=True)))
    assert texts(messages) == [text] and of_kind(messages, "ResultMessage")[0].result == text


# REQ: TOL-1
async def test_files_are_found_searched_written_and_changed(place):
    place.write("src/a.py", "alpha = 1\nbeta = 2\n")
    place.write("src/b.txt", "alpha\n")
    path = str(place.work / "src/a.py")
    prompts = [
        call("Glob", pattern="**/*.py"),
        call("Grep", pattern="alpha", output_mode="files_with_matches"),
        call("Grep", pattern="ALPHA", output_mode="content", **{"-n": True, "-i": True}),
        call("Read", file_path=path, offset=2, limit=1),
        call("Edit", file_path=path, old_string="beta = 2", new_string="beta = 3"),
        call("Edit", file_path=path, old_string="nowhere", new_string="x"),
        call("Write", file_path=str(place.work / "new/c.txt"), content="gamma\n"),
    ]
    found = [results(it)[0] for it in await converse(place, *prompts, permission_mode="acceptEdits")]
    assert "a.py" in found[0][0] and "b.txt" not in found[0][0]
    assert "a.py" in found[1][0] and "b.txt" in found[1][0]
    assert "1:alpha" in found[2][0]
    assert "beta" in found[3][0] and "alpha" not in found[3][0]
    assert (place.work / "src/a.py").read_text() == "alpha = 1\nbeta = 3\n"
    assert found[5][1] and not found[6][1]
    assert (place.work / "new/c.txt").read_text() == "gamma\n"


# REQ: PRM-8
async def test_links_and_dots_do_not_lead_out_of_the_working_directory(place):
    outside = place.work.parent / "outside"
    outside.mkdir()
    (place.work / "link").symlink_to(outside)
    for path in [place.work / "link/x", place.work / "../outside/x"]:
        messages = await converse(place, call("Write", file_path=str(path), content="x"), permission_mode="acceptEdits")
        assert results(messages)[0][1] and not (outside / "x").exists()
    added = await converse(
        place, call("Write", file_path=str(outside / "x"), content="x"), permission_mode="acceptEdits", add_dirs=[outside]
    )
    assert not results(added)[0][1] and (outside / "x").exists()


# REQ: PRM-4
async def test_plan_mode_changes_nothing_and_bypass_asks_nobody(place):
    write = call("Write", file_path=str(place.work / "x"), content="x")
    planned = await converse(place, write, permission_mode="plan")
    assert results(planned)[0][1] and not (place.work / "x").exists()
    await converse(place, write, permission_mode="bypassPermissions")
    assert (place.work / "x").exists()


# REQ: PRM-5
async def test_mode_that_asks_nobody_denies_what_would_be_asked(place):
    asked = []

    async def may(name, given, context):
        asked.append(name)
        return PermissionResultAllow()

    messages = await converse(place, call("Bash", command="touch x"), can_use_tool=may, permission_mode="dontAsk")
    assert asked == [] and results(messages)[0][1] and not (place.work / "x").exists()


# REQ: PRM-5
async def test_denial_that_interrupts_ends_the_run(place):
    async def may(name, given, context):
        return PermissionResultDeny(message="stop it", interrupt=True)

    messages = await converse(place, call("Bash", command="touch x"), can_use_tool=may)
    result = of_kind(messages, "ResultMessage")[0]
    assert result.terminal_reason == "aborted_tools" and not texts(messages)


# REQ: PRM-5
async def test_questions_about_parallel_calls_are_answered_each(place):
    async def may(name, given, context):
        await anyio.sleep(0)
        if given["command"].endswith("b"):
            return PermissionResultDeny(message="not b")
        return PermissionResultAllow()

    prompt = calls(*[("Bash", {"command": f"touch {it}"}) for it in "abc"])
    messages = await converse(place, prompt, can_use_tool=may)
    assert [it[1] for it in results(messages)] == [False, True, False]
    assert [(place.work / it).exists() for it in "abc"] == [True, False, True]


# REQ: HKS-2
async def test_hook_may_end_the_run_and_give_its_reason(place):
    async def stop(given, call_id, context):
        return {"continue_": False, "stopReason": "enough"}

    hooks = {"PostToolUse": [HookMatcher(hooks=[stop])]}
    messages = await converse(place, call("Bash", command="pwd"), hooks=hooks, allowed_tools=["Bash"])
    result = of_kind(messages, "ResultMessage")[0]
    assert result.terminal_reason == "hook_stopped" and not texts(messages)


# REQ: HKS-2
async def test_hook_after_a_call_may_change_what_the_model_reads(place):
    async def change(given, call_id, context):
        assert given["tool_response"] and given["duration_ms"] >= 0
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": "something else"}}

    hooks = {"PostToolUse": [HookMatcher(hooks=[change])]}
    messages = await converse(place, call("Bash", command="echo secret"), hooks=hooks, allowed_tools=["Bash"])
    assert "something else" in texts(messages)[0] and "secret" not in texts(messages)[0]


# REQ: HKS-2
async def test_matching_hooks_run_at_the_same_time_and_the_strictest_holds(place):
    begun = anyio.Event()

    async def first(given, call_id, context):
        with anyio.fail_after(20):
            await begun.wait()
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}

    async def second(given, call_id, context):
        begun.set()
        fields = {"permissionDecision": "deny", "permissionDecisionReason": "the second says no"}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}

    hooks = {"PreToolUse": [HookMatcher(hooks=[first]), HookMatcher(matcher="Bash", hooks=[second])]}
    messages = await converse(place, call("Bash", command="touch x"), hooks=hooks)
    assert "the second says no" in results(messages)[0][0] and not (place.work / "x").exists()


# REQ: HKS-6
async def test_hook_that_holds_the_end_up_is_read_by_the_model(place):
    seen = []

    async def hold(given, call_id, context):
        seen.append(given["stop_hook_active"])
        return {} if given["stop_hook_active"] else {"decision": "block", "reason": "say more"}

    messages = await converse(place, "say done", hooks={"Stop": [HookMatcher(hooks=[hold])]})
    assert seen == [False, True] and len(texts(messages)) == 2
    assert of_kind(messages, "ResultMessage")[0].num_turns == 2


# REQ: HKS-1
async def test_hook_has_what_every_event_has(place):
    seen = []

    async def note(given, call_id, context):
        seen.append(given)
        return {}

    hooks = {it: [HookMatcher(hooks=[note])] for it in ("UserPromptSubmit", "PreToolUse", "Stop")}
    name, content = str(uuid.uuid4()), call("Bash", command="pwd")

    async def prompts():
        yield {"type": "user", "message": {"role": "user", "content": content}, "uuid": name}

    messages = await collect(query(prompt=prompts(), options=place.options(hooks=hooks)))
    assert [it["hook_event_name"] for it in seen] == ["UserPromptSubmit", "PreToolUse", "Stop"]
    for given in seen:
        assert given["prompt_id"] == name
        assert given["session_id"] == of_kind(messages, "ResultMessage")[0].session_id
        assert given["cwd"] == str(place.work) and os.path.exists(given["transcript_path"])
        assert given["permission_mode"] == "default"
    assert seen[2]["last_assistant_message"] == texts(messages)[-1]


@tool("fail", "Fails", {})
async def fail(given):
    raise ValueError("the tool is broken")


@tool("both", "Answers with two blocks", {"n": int})
async def both(given):
    return {"content": [{"type": "text", "text": "one"}, {"type": "text", "text": str(given["n"])}]}


# REQ: MCP-1
async def test_tool_in_the_program_that_fails_is_an_error_and_a_rule_grants_a_server(place):
    servers = {"own": create_sdk_mcp_server("own", tools=[fail, both])}
    options = {"mcp_servers": servers, "allowed_tools": ["mcp__own"]}
    failed, worked = await converse(place, call("mcp__own__fail"), call("mcp__own__both", n=2), **options)
    assert results(failed)[0][1] and "broken" in str(results(failed)[0][0])
    content = results(worked)[0][0]
    assert not results(worked)[0][1] and "one" in str(content) and "2" in str(content)


# REQ: SUR-3
async def test_interrupt_while_nothing_runs_changes_nothing(place):
    async with ClaudeSDKClient(place.options()) as client:
        await client.interrupt()
        await client.query("say one")
        first = await collect(client.receive_response())
        await client.interrupt()
        await client.query("say two")
        second = await collect(client.receive_response())
    assert (texts(first), texts(second)) == (["one"], ["two"])


# REQ: SUR-3
async def test_mark_of_a_person_and_the_prompt_are_shown_again(place):
    async def prompts():
        message = {"role": "user", "content": "say hi"}
        yield {"type": "user", "message": message, "origin": {"kind": "human"}, "uuid": "0b8f3a52-77aa-4c57-8c0e-5d2d8f1f6a77"}

    options = place.options(extra_args={"replay-user-messages": None})
    messages = await collect(query(prompt=prompts(), options=options))
    [shown] = of_kind(messages, "UserMessage")
    assert (shown.content, shown.uuid) == ("say hi", "0b8f3a52-77aa-4c57-8c0e-5d2d8f1f6a77")
    assert of_kind(messages, "ResultMessage")[0].origin == {"kind": "human"}


# REQ: STG-2
async def test_instructions_and_rules_of_files_hold_where_their_source_is_named(place):
    place.write("CLAUDE.md", "The sky is green.\n")
    place.write(".claude/settings.json", json.dumps({"permissions": {"deny": ["Bash"]}}))
    said = await converse(place, "what was said", setting_sources=["project"], system_prompt={"type": "preset", "preset": "claude_code"})
    assert "The sky is green." in texts(said)[0]
    assert "Bash" not in of_kind(said, "SystemMessage")[0].data["tools"]
    said = await converse(place, "what was said", setting_sources=[])
    assert "The sky is green." not in texts(said)[0]
    assert "Bash" in of_kind(said, "SystemMessage")[0].data["tools"]


# REQ: PRM-2
async def test_rules_on_paths_deny_and_allow(place):
    place.write("secret.txt", "hidden\n")
    place.write("src/a.txt", "open\n")
    settings = json.dumps({"permissions": {"deny": ["Read(./secret.txt)"], "allow": ["Edit(src/**)"]}})
    prompts = [
        call("Read", file_path=str(place.work / "secret.txt")),
        call("Bash", command="cat secret.txt"),
        call("Write", file_path=str(place.work / "src/b.txt"), content="b"),
        call("Write", file_path=str(place.work / "b.txt"), content="b"),
    ]
    found = [results(it)[0] for it in await converse(place, *prompts, settings=settings)]
    assert [it[1] for it in found] == [True, True, False, True]
    assert "hidden" not in found[1][0] and (place.work / "src/b.txt").exists() and not (place.work / "b.txt").exists()
