"""Level 4: sub-agents that the program defines."""

import json

import pytest
from claude_agent_sdk import AgentDefinition, ClaudeSDKClient, HookMatcher, PermissionResultDeny
from conftest import call, collect, of_kind, results, texts

pytestmark = pytest.mark.anyio


async def converse(place, prompt, **options):
    async with ClaudeSDKClient(place.options(**options)) as client:
        await client.query(prompt)
        return await collect(client.receive_response())


def send(agent, prompt, tool="Agent"):
    return call(tool, description="a task", prompt=prompt, subagent_type=agent)


def poet(**more):
    return {"poet": AgentDefinition(description="Writes poems", prompt="You are a poet.", **more)}


# REQ: AGT-4
@pytest.mark.parametrize("tool", ["Agent", "Task"])
async def test_agent_of_the_program_is_offered_and_has_its_own_prompt(place, tool):
    messages = await converse(place, send("poet", "what system", tool), agents=poet())
    init = of_kind(messages, "SystemMessage")[0].data
    assert "poet" in init["agents"]
    [(text, is_error)] = results(messages)
    assert "You are a poet." in text and not is_error
    started = [it for it in messages if type(it).__name__ == "TaskStartedMessage"]
    ended = [it for it in messages if type(it).__name__ == "TaskNotificationMessage"]
    assert (len(started), len(ended)) == (1, 1) and started[0].tool_use_id == ended[0].tool_use_id


# REQ: AGT-4
async def test_agent_has_the_tools_and_the_model_of_its_definition(place):
    agents = poet(tools=["Read", "Grep"], model="claude-haiku-4-5")
    messages = await converse(place, send("poet", "which tools"), agents=agents)
    assert results(messages)[0][0].split("\n")[0].split() == ["Grep", "Read"]
    messages = await converse(place, send("poet", "which model"), agents=agents)
    assert "claude-haiku-4-5" in results(messages)[0][0]


# REQ: AGT-5
async def test_agent_that_is_not_there_is_an_error_with_those_that_are(place):
    [(text, is_error)] = results(await converse(place, send("cook", "say hi"), agents=poet()))
    assert is_error and "poet" in text


# REQ: AGT-4
async def test_large_definitions_work(place):
    agents = {"poet": AgentDefinition(description="Writes", prompt="Verse. " * 40_000)}
    [(text, is_error)] = results(await converse(place, send("poet", "say hi"), agents=agents))
    assert "hi" in text and not is_error


# REQ: AGT-4, HKS-1
async def test_hooks_see_an_agent_begin_and_end(place):
    seen = []

    async def note(given, call_id, context):
        seen.append((given["hook_event_name"], given["agent_type"], given["agent_id"]))
        return {}

    async def stop(given, call_id, context):
        seen.append((given["hook_event_name"], None, None))
        return {}

    hooks = {
        "SubagentStart": [HookMatcher(matcher="poet", hooks=[note])],
        "SubagentStop": [HookMatcher(matcher="poet", hooks=[note])],
        "Stop": [HookMatcher(hooks=[stop])],
    }
    await converse(place, send("poet", "say hi"), agents=poet(), hooks=hooks)
    assert [it[:2] for it in seen] == [("SubagentStart", "poet"), ("SubagentStop", "poet"), ("Stop", None)]
    assert seen[0][2] == seen[1][2] and seen[0][2]


# REQ: AGT-6, PRM-5
async def test_question_of_an_agent_names_it(place):
    asked = []

    async def may(name, given, context):
        asked.append((name, bool(context.agent_id)))
        return PermissionResultDeny(message="not you")

    prompt = call("Bash", command="touch x")
    await converse(place, send("poet", prompt), agents=poet(), can_use_tool=may)
    assert asked == [("Bash", True)] and not (place.work / "x").exists()


# REQ: AGT-4
async def test_agents_of_files_are_used_where_their_source_is_named(place):
    text = "---\nname: cook\ndescription: Cooks\ntools: Read\n---\nYou are a cook.\n"
    place.write(".claude/agents/cook.md", text)
    messages = await converse(place, send("cook", "what system"), setting_sources=["project"])
    assert "You are a cook." in results(messages)[0][0]
    assert "cook" in of_kind(messages, "SystemMessage")[0].data["agents"]
    messages = await converse(place, send("cook", "what system"), setting_sources=[])
    assert results(messages)[0][1]


# REQ: AGT-4
async def test_agents_of_the_command_line_are_used(place):
    agents = {"cook": {"description": "Cooks", "prompt": "You are a cook."}}
    messages = await converse(place, send("cook", "what system"), extra_args={"agents": json.dumps(agents)})
    assert "You are a cook." in results(messages)[0][0] and texts(messages)


# REQ: AGT-6
async def test_agent_that_uses_tools_says_how_far_it_is(place):
    place.write("a.txt", "alpha\n")
    inner = call("Read", file_path=str(place.work / "a.txt"))
    messages = await converse(place, send("poet", inner), agents=poet())
    [progress] = [it for it in messages if type(it).__name__ == "TaskProgressMessage"]
    [ended] = [it for it in messages if type(it).__name__ == "TaskNotificationMessage"]
    assert (progress.last_tool_name, progress.usage["tool_uses"]) == ("Read", 1)
    assert progress.task_id == ended.task_id
    assert progress.usage["total_tokens"] < ended.usage["total_tokens"]
