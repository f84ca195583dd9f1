"""Level 3: permissions, hooks, tools in the program, and requests while a run is under way."""

import json

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
from conftest import call, collect, of_kind, results, texts

pytestmark = pytest.mark.anyio


async def converse(place, prompt, **options):
    async with ClaudeSDKClient(place.options(**options)) as client:
        await client.query(prompt)
        return await collect(client.receive_response())


# REQ: PRM-5
async def test_program_is_asked_after_it_has_seen_the_call_and_may_allow_it(place):
    asked = []

    async def may(name, given, context):
        asked.append((name, given["file_path"], bool(context.tool_use_id)))
        return PermissionResultAllow()

    path = str(place.work / "x")
    messages = await converse(place, call("Write", file_path=path, content="x"), can_use_tool=may)
    assert asked == [("Write", path, True)]
    assert (place.work / "x").read_text() == "x"
    assert not results(messages)[0][1]


# REQ: PRM-5, PRM-7
async def test_denial_of_the_program_is_an_answer_with_its_reason(place):
    async def may(name, given, context):
        return PermissionResultDeny(message="not on a Sunday")

    messages = await converse(place, call("Bash", command="touch x"), can_use_tool=may)
    assert "not on a Sunday" in results(messages)[0][0]
    assert not (place.work / "x").exists()
    assert len(of_kind(messages, "ResultMessage")[0].permission_denials) == 1


# REQ: TOL-6, PRM-9
async def test_program_answers_the_questions_of_the_model(place):
    option = [{"label": label, "description": "as it is"} for label in ("Stone", "Wood")]
    asked = [{"question": "Which bridge?", "header": "Bridge", "options": option, "multiSelect": False}]

    async def may(name, given, context):
        assert (name, given) == ("AskUserQuestion", {"questions": asked})
        return PermissionResultAllow(updated_input={**given, "answers": {"Which bridge?": "Wood"}})

    for mode in ("default", "bypassPermissions"):
        prompt = call("AskUserQuestion", questions=asked)
        messages = await converse(place, prompt, can_use_tool=may, permission_mode=mode)
        text, is_error = results(messages)[0]
        assert "Which bridge?\nWood" in text and not is_error
        assert messages[-1].permission_denials in (None, [])
    messages = await converse(place, prompt)
    assert results(messages)[0][1], "nobody is there to be asked"
    assert messages[-1].subtype == "success", "and the run goes on"


# REQ: PRM-9
async def test_program_may_change_the_input_of_a_call(place):
    async def may(name, given, context):
        return PermissionResultAllow(updated_input={**given, "content": "other"})

    await converse(place, call("Write", file_path=str(place.work / "x"), content="x"), can_use_tool=may)
    assert (place.work / "x").read_text() == "other"


# REQ: PRM-5
async def test_callback_that_fails_is_a_denial(place):
    async def may(name, given, context):
        raise ValueError("broken")

    messages = await converse(place, call("Bash", command="touch x"), can_use_tool=may)
    assert results(messages)[0][1] and not (place.work / "x").exists()


# REQ: HKS-1
async def test_hooks_of_the_program_see_a_call_before_and_after_it(place):
    seen = []

    async def note(given, call_id, context):
        seen.append((given["hook_event_name"], given["tool_name"], call_id is not None))
        return {}

    hooks = {
        "PreToolUse": [HookMatcher(matcher="Read|Bash", hooks=[note])],
        "PostToolUse": [HookMatcher(hooks=[note])],
    }
    place.write("a", "text\n")
    await converse(place, call("Read", file_path=str(place.work / "a")), hooks=hooks)
    assert seen == [("PreToolUse", "Read", True), ("PostToolUse", "Read", True)]


# REQ: HKS-2
async def test_hook_of_the_program_may_deny_and_its_reason_is_the_result(place):
    async def deny(given, call_id, context):
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "guarded",
            }
        }

    hooks = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[deny])]}
    messages = await converse(place, call("Bash", command="touch x"), hooks=hooks, allowed_tools=["Bash"])
    assert "guarded" in results(messages)[0][0] and not (place.work / "x").exists()


# REQ: HKS-2
async def test_hook_of_the_program_may_change_an_input_and_allow(place):
    async def change(given, call_id, context):
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "allow",
                "updatedInput": {"command": "touch y"},
            }
        }

    hooks = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[change])]}
    await converse(place, call("Bash", command="touch x"), hooks=hooks)
    assert (place.work / "y").exists() and not (place.work / "x").exists()


@tool("add", "Adds two numbers", {"a": int, "b": int})
async def add(given):
    return {"content": [{"type": "text", "text": f"sum {given['a'] + given['b']}"}]}


@tool("fail", "Fails", {})
async def fail(given):
    raise ValueError("no luck")


# REQ: SUR-3
async def test_tools_in_the_program_are_offered_and_called(place):
    servers = {"calc": create_sdk_mcp_server(name="calc", version="1.0", tools=[add, fail])}
    allowed = ["mcp__calc__add", "mcp__calc__fail"]
    messages = await converse(
        place, call("mcp__calc__add", a=2, b=3), mcp_servers=servers, allowed_tools=allowed
    )
    init = of_kind(messages, "SystemMessage")[0].data
    assert "mcp__calc__add" in init["tools"]
    assert {"name": "calc", "status": "connected"}.items() <= init["mcp_servers"][0].items()
    assert results(messages) == [("sum 5", False)]
    messages = await converse(
        place, call("mcp__calc__fail"), mcp_servers=servers, allowed_tools=allowed
    )
    [(text, is_error)] = results(messages)
    assert is_error and "no luck" in text


# REQ: SUR-3
async def test_tools_in_the_program_need_a_rule_or_an_answer(place):
    servers = {"calc": create_sdk_mcp_server(name="calc", version="1.0", tools=[add])}
    messages = await converse(place, call("mcp__calc__add", a=2, b=3), mcp_servers=servers)
    assert results(messages)[0][1]


# REQ: SUR-3
async def test_interrupt_ends_a_silent_answer_and_the_next_prompt_works(place):
    async with ClaudeSDKClient(place.options(include_partial_messages=True)) as client:
        await client.query("silence")
        messages = aiter(client.receive_messages())
        while type(await anext(messages)).__name__ != "StreamEvent":
            pass
        await client.interrupt()
        while type(result := await anext(messages)).__name__ != "ResultMessage":
            pass
        assert (result.subtype, result.terminal_reason) == ("error_during_execution", "aborted_streaming")
        await client.query("say again")
        later = []
        while not of_kind(later, "ResultMessage"):
            later.append(await anext(messages))
        assert "say again" in texts(later)[0]


# REQ: SUR-3, TOL-8
async def test_interrupt_ends_a_command_with_its_children(place):
    async with ClaudeSDKClient(place.options(allowed_tools=["Bash"])) as client:
        await client.query(call("Bash", command="touch begun; sleep 600"))
        while not (place.work / "begun").exists():
            await anyio.sleep(0.05)
        await client.interrupt()
        messages = await collect(client.receive_response())
    assert of_kind(messages, "ResultMessage")[0].terminal_reason == "aborted_tools"
    assert results(messages)[0][1]


# REQ: INP-2
async def test_prompt_during_a_run_waits_and_is_answered(place):
    async with ClaudeSDKClient(place.options(allowed_tools=["Bash"])) as client:
        await client.query(call("Bash", command="while [ ! -e go ]; do :; done"))
        await client.query("say second")
        place.write("go", "")
        first = await collect(client.receive_response())
        second = await collect(client.receive_response())
    assert results(first) and texts(second) == ["second"]


# REQ: SUR-3
async def test_request_that_nobody_knows_is_an_error_and_no_silence(place):
    async with ClaudeSDKClient(place.options()) as client:
        with pytest.raises(Exception, match="Unsupported control request subtype: dance"):
            await client._query._send_control_request({"subtype": "dance"})
        status = await client.get_mcp_status()
        assert status["mcpServers"] == []


# REQ: PRM-4
async def test_mode_may_change_between_and_during_runs(place):
    async with ClaudeSDKClient(place.options()) as client:
        await client.set_permission_mode("acceptEdits")
        await client.query(call("Write", file_path=str(place.work / "x"), content="x"))
        await collect(client.receive_response())
    assert (place.work / "x").exists()


# REQ: SUR-3
async def test_model_may_change_between_runs(place):
    async with ClaudeSDKClient(place.options()) as client:
        await client.set_model("claude-haiku-4-5")
        await client.query("which model")
        assert texts(await collect(client.receive_response())) == ["claude-haiku-4-5"]


# REQ: SUR-3
async def test_program_is_told_that_the_session_waits_for_its_answer(place):
    async def may(name, given, context):
        return PermissionResultAllow()

    env = {"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"}
    messages = await converse(place, call("Bash", command="touch x"), can_use_tool=may, env=env)
    states = [it.data["state"] for it in of_kind(messages, "SystemMessage") if it.subtype == "session_state_changed"]
    assert states[:3] == ["running", "requires_action", "running"]


# REQ: PRM-9
async def test_rules_of_an_answer_hold_beside_other_updates(place):
    from claude_agent_sdk import PermissionUpdate
    from claude_agent_sdk.types import PermissionRuleValue

    asked = []

    async def may(name, given, context):
        asked.append(given["command"])
        rule = PermissionRuleValue(tool_name="Bash", rule_content="touch:*")
        updates = [
            PermissionUpdate(type="addDirectories", directories=["/tmp"], destination="session"),
            PermissionUpdate(type="addRules", rules=[rule], behavior="allow", destination="session"),
        ]
        return PermissionResultAllow(updated_permissions=updates)

    async with ClaudeSDKClient(place.options(can_use_tool=may)) as client:
        for name in ["x", "y"]:
            await client.query(call("Bash", command=f"touch {name}"))
            await collect(client.receive_response())
    assert asked == ["touch x"] and (place.work / "y").exists()


# REQ: SUR-3
async def test_servers_of_the_program_are_listed_with_their_tools(place):
    servers = {"calc": create_sdk_mcp_server(name="calc", version="1.0", tools=[add])}
    async with ClaudeSDKClient(place.options(mcp_servers=servers)) as client:
        [early] = (await client.get_mcp_status())["mcpServers"]
        await client.query("say hello")
        await collect(client.receive_response())
        [server] = (await client.get_mcp_status())["mcpServers"]
    assert early["name"] == "calc" and early["status"] in ("pending", "connected")
    assert server["status"] == "connected" and server["serverInfo"]["version"] == "1.0"
    assert [it["name"] for it in server["tools"]] == ["add"]


# REQ: SUR-3, MCP-1
async def test_server_is_switched_off_and_on_again_while_the_session_is_open(place):
    servers = {"calc": create_sdk_mcp_server(name="calc", version="1.0", tools=[add])}
    seen = []
    async with ClaudeSDKClient(place.options(mcp_servers=servers, allowed_tools=["mcp__calc__add"])) as client:
        for enabled in [True, False, True]:
            await client.toggle_mcp_server("calc", enabled)
            await client.query(call("mcp__calc__add", a=1, b=2))
            messages = await collect(client.receive_response())
            [server] = (await client.get_mcp_status())["mcpServers"]
            offered = of_kind(messages, "SystemMessage")[0].data["tools"]
            seen.append((server["status"], "mcp__calc__add" in offered, results(messages)[0][1]))
        with pytest.raises(Exception, match="there is no MCP server `abacus`"):
            await client.toggle_mcp_server("abacus", False)
    assert seen == [("connected", True, False), ("disabled", False, True), ("connected", True, False)]


# REQ: PRM-5
async def test_question_names_the_path_outside_the_workspace(place):
    asked = []

    async def may(name, given, context):
        asked.append(context.blocked_path)
        return PermissionResultDeny(message="no")

    outside = place.work.parent / "secret"
    outside.write_text("x")
    await converse(place, call("Read", file_path=str(outside)), can_use_tool=may)
    await converse(place, call("Write", file_path=str(place.work / "x"), content="x"), can_use_tool=may)
    assert asked == [str(outside.resolve()), None]


# REQ: SUR-3
async def test_parts_of_the_context_add_up_to_the_whole(place):
    place.write("CLAUDE.md", "Speak of bananas. " * 40)
    preset = {"type": "preset", "preset": "claude_code"}
    async with ClaudeSDKClient(place.options(system_prompt=preset)) as client:
        await client.query("say hello")
        await collect(client.receive_response())
        usage = await client.get_context_usage()
    parts = {it["name"]: it["tokens"] for it in usage["categories"]}
    assert {"System prompt", "Tools", "Memory files", "Messages", "Free space"} <= set(parts)
    assert sum(parts.values()) == usage["maxTokens"]
    assert all(parts[it] > 0 for it in ["System prompt", "Tools", "Memory files"])
    assert usage["totalTokens"] == usage["maxTokens"] - parts["Free space"]
    assert {it["agentType"] for it in usage["agents"]} >= {"general-purpose"}


# REQ: SUR-3
@pytest.mark.parametrize("cancels", [True, False])
async def test_interrupt_says_what_waits_and_takes_it_back_where_it_is_asked_to(place, cancels):
    async def prompts():
        for name, text in [("1", "slowly " + "x" * 20), ("2", "say second")]:
            uuid = f"0b8f3a52-77aa-4c57-8c0e-5d2d8f1f6a9{name}"
            message = {"role": "user", "content": text}
            yield {"type": "user", "message": message, "uuid": uuid}

    async with ClaudeSDKClient(place.options(include_partial_messages=True)) as client:
        await client.query(prompts())
        messages = client.receive_messages()
        async for message in messages:
            if type(message).__name__ == "StreamEvent":
                break
        request = {"subtype": "interrupt", **({"cancel_queued": True} if cancels else {})}
        answer = await client._query._send_control_request(request)
        await client.query("say third")
        said = []
        while not said or not said[-1].endswith("third"):
            message = await messages.__anext__()
            said += texts([message])
    waits = [] if cancels else ["0b8f3a52-77aa-4c57-8c0e-5d2d8f1f6a92"]
    assert answer["still_queued"] == waits
    assert any("second" in it for it in said) != cancels


# REQ: SUR-3
async def test_interrupt_right_after_a_prompt_ends_it(place):
    async with ClaudeSDKClient(place.options()) as client:
        for _ in range(4):
            await client.query("silence")
            await client.interrupt()
            [ended] = of_kind(await collect(client.receive_response()), "ResultMessage")
            assert ended.subtype == "error_during_execution", ended
        await client.query("say still there")
        assert "still there" in texts(await collect(client.receive_response()))[0]
