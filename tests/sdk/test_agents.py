"""Level 4: how agents are seen, kept apart and held to the rules; and servers that are no part of the program."""

import json
import sys

import anyio
import pytest
from claude_agent_sdk import AgentDefinition, ClaudeSDKClient, HookMatcher, PermissionResultAllow
from conftest import call, collect, of_kind, results, texts

pytestmark = pytest.mark.anyio


async def converse(place, *prompts, **options):
    found = []
    async with ClaudeSDKClient(place.options(**options)) as client:
        for prompt in prompts:
            await client.query(prompt)
            found.append(await collect(client.receive_response()))
    return found[0] if len(prompts) == 1 else found


def poet(**more):
    return {"poet": AgentDefinition(description="Writes poems", prompt="You are a poet.", **more)}


def task(prompt, agent="poet"):
    return {"description": "a task", "prompt": prompt, "subagent_type": agent}


def send(prompt, agent="poet"):
    return call("Agent", **task(prompt, agent))


def of_agents(messages):
    """Messages that an agent's call is named in."""
    return [it for it in messages if getattr(it, "parent_tool_use_id", None)]


# REQ: AGT-4
async def test_calls_of_an_agent_are_shown_under_the_call_that_began_it(place):
    place.write("a.txt", "alpha\n")
    inner = call("Read", file_path=str(place.work / "a.txt"))
    messages = await converse(place, send(inner), agents=poet())
    [outer] = [it.id for m in of_kind(messages, "AssistantMessage") for it in m.content if getattr(it, "name", "") == "Agent"]
    kinds = [type(it).__name__ for it in of_agents(messages)]
    assert kinds == ["AssistantMessage", "UserMessage"]
    assert {it.parent_tool_use_id for it in of_agents(messages)} == {outer}
    assert "alpha" in results(of_agents(messages))[0][0]


# REQ: AGT-4
@pytest.mark.parametrize("forwarded", [False, True])
async def test_text_of_an_agent_is_shown_where_it_was_asked_for(place, forwarded):
    messages = await converse(place, send("say a verse"), agents=poet(), forward_subagent_text=forwarded)
    assert ("a verse" in texts(of_agents(messages))) == forwarded
    assert "a verse" in results(messages)[-1][0]


# REQ: AGT-5
async def test_agents_of_one_answer_work_at_the_same_time_and_answer_in_order(place):
    both, n = anyio.Event(), []

    async def meet(given, call_id, context):
        n.append(given["agent_id"])
        if len(n) == 2:
            both.set()
        with anyio.fail_after(20):
            await both.wait()
        return {}

    hooks = {"SubagentStart": [HookMatcher(hooks=[meet])]}
    calls = [{"tool": "Agent", "input": task(f"say {it}")} for it in ("one", "two")]
    messages = await converse(place, "calls " + json.dumps(calls), agents=poet(), hooks=hooks)
    assert [it[0].split("\n")[0] for it in results(messages)] == ["one", "two"] and len(set(n)) == 2


# REQ: AGT-4
async def test_conversation_of_an_agent_is_its_own(place):
    first, second = await converse(place, "say heron", send("what was said"), agents=poet())
    found = results(second)[-1][0]
    assert "heron" not in found and "what was said" in found


# REQ: AGT-4, PRM-2
async def test_rules_and_hooks_hold_for_agents_and_name_them(place):
    seen = []

    async def note(given, call_id, context):
        seen.append((given["tool_name"], given.get("agent_id") is not None, given.get("agent_type")))
        return {}

    hooks = {"PreToolUse": [HookMatcher(hooks=[note])]}
    inner = call("Bash", command="touch x")
    messages = await converse(place, send(inner), agents=poet(), hooks=hooks, allowed_tools=["Bash(pwd)"])
    assert seen == [("Agent", False, None), ("Bash", True, "poet")]
    assert not (place.work / "x").exists()
    denied = of_kind(messages, "ResultMessage")[0].permission_denials
    assert [it["tool_name"] for it in denied] == ["Bash"]


# REQ: AGT-4
async def test_tools_that_an_agent_may_not_use_are_not_offered_to_it(place):
    messages = await converse(place, send("which tools"), agents=poet(disallowedTools=["Bash", "Write"]))
    offered = results(messages)[-1][0].split("\n")[0].split()
    assert "Read" in offered and not {"Bash", "Write", "Agent"} & set(offered)


# REQ: AGT-6
async def test_agent_that_fails_is_an_error_and_its_parent_goes_on(place):
    messages = await converse(place, send("fail 400"), agents=poet())
    [(text, is_error)] = results(messages)
    assert is_error and texts(messages) and not of_kind(messages, "ResultMessage")[0].is_error
    [ended] = [it for it in messages if type(it).__name__ == "TaskNotificationMessage"]
    assert ended.status == "failed"


# REQ: AGT-6
async def test_agent_has_its_own_limit_of_turns(place):
    place.write("a.txt", "alpha\n")
    inner = call("Read", file_path=str(place.work / "a.txt"))
    messages = await converse(place, send(inner), agents=poet(maxTurns=1))
    assert texts(messages) and not of_kind(messages, "ResultMessage")[0].is_error
    assert len([it for it in of_agents(messages) if type(it).__name__ == "AssistantMessage"]) == 1


# REQ: MDL-13
async def test_cost_of_agents_is_in_the_total(place):
    model = {"model": "claude-sonnet-4-5"}
    messages = await converse(place, send("say hi"), agents=poet(model="claude-haiku-4-5"), **model)
    result = of_kind(messages, "ResultMessage")[0]
    assert set(result.model_usage) == {"claude-sonnet-4-5", "claude-haiku-4-5"}
    assert result.total_cost_usd == pytest.approx(sum(it["costUSD"] for it in result.model_usage.values()))


# REQ: AGT-4
async def test_files_that_an_agent_writes_are_there(place):
    inner = call("Write", file_path=str(place.work / "x"), content="verse")
    await converse(place, send(inner), agents=poet(), permission_mode="acceptEdits")
    assert (place.work / "x").read_text() == "verse"


# REQ: AGT-6
async def test_interrupt_ends_an_agent_and_its_task(place):
    seen = []
    async with ClaudeSDKClient(place.options(agents=poet(), allowed_tools=["Bash"])) as client:
        await client.query(send(call("Bash", command="sleep 60")))
        async for message in client.receive_response():
            seen.append(message)
            if type(message).__name__ == "TaskProgressMessage":
                await client.interrupt()
    assert [it.status for it in seen if type(it).__name__ == "TaskNotificationMessage"] == ["stopped"]
    assert of_kind(seen, "ResultMessage")[0].terminal_reason == "aborted_tools"


# REQ: AGT-6
async def test_task_that_is_stopped_ends_alone_and_its_parent_goes_on(place):
    seen, refused = [], []
    async with ClaudeSDKClient(place.options(agents=poet(), allowed_tools=["Bash"])) as client:
        await client.query(send(call("Bash", command="sleep 60")))
        async for message in client.receive_response():
            seen.append(message)
            if type(message).__name__ == "TaskProgressMessage":
                with pytest.raises(Exception, match="nobody"):
                    await client.stop_task("nobody")
                await client.stop_task(message.task_id)
        with pytest.raises(Exception, match="task"):
            await client.stop_task(seen[0].data.get("task_id", "over"))
    assert [it.status for it in seen if type(it).__name__ == "TaskNotificationMessage"] == ["stopped"]
    result = of_kind(seen, "ResultMessage")[0]
    assert texts(seen) and not result.is_error


SERVER = '''
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {}
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif asked["method"] == "tools/list":
        result = {"tools": [{"name": "shout", "inputSchema": {"type": "object"}}]}
    elif asked["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": asked["params"]["arguments"]["text"].upper()}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
'''


# REQ: MCP-1
async def test_servers_of_other_programs_are_called_and_one_that_fails_stops_nothing(place):
    file = place.write("server.py", SERVER)
    servers = {
        "loud": {"command": sys.executable, "args": [str(file)]},
        "gone": {"command": str(place.work / "nothing")},
    }
    async with ClaudeSDKClient(place.options(mcp_servers=servers, allowed_tools=["mcp__loud__shout"])) as client:
        await client.query(call("mcp__loud__shout", text="hear me"))
        messages = await collect(client.receive_response())
        status = {it["name"]: it for it in (await client.get_mcp_status())["mcpServers"]}
    assert "HEAR ME" in results(messages)[0][0]
    assert "mcp__loud__shout" in of_kind(messages, "SystemMessage")[0].data["tools"]
    assert status["loud"]["status"] == "connected" and status["gone"]["status"] == "failed"
    assert [it["name"] for it in status["loud"]["tools"]] == ["shout"] and status["gone"]["error"]


# REQ: PRM-5
async def test_question_that_an_agent_asks_is_answered_for_it(place):
    async def may(name, given, context):
        return PermissionResultAllow(updated_input={"command": "touch y"})

    await converse(place, send(call("Bash", command="touch x")), agents=poet(), can_use_tool=may)
    assert (place.work / "y").exists() and not (place.work / "x").exists()
