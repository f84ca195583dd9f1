"""Levels 4 and 5: agents in the background outlive the prompt that began them, and what they found is taken up."""

import os
import subprocess
import json

import pytest
from claude_agent_sdk import AgentDefinition, ClaudeSDKClient, query
from conftest import ENNEAD, call, collect, of_kind, results, texts

pytestmark = pytest.mark.anyio


def agents(**more):
    return {"scout": AgentDefinition(description="Looks about", prompt="You look about.", **more)}


def send(prompt, **more):
    fields = {"description": "a task", "prompt": prompt, "subagent_type": "scout", "run_in_background": True}
    return call("Agent", **{**fields, **more})


def kinds(messages):
    """What happened, in order: tasks and results."""
    found = []
    for message in messages:
        kind = type(message).__name__
        if kind == "ResultMessage":
            found.append("result")
        elif kind == "TaskStartedMessage":
            found.append("started")
        elif kind == "TaskNotificationMessage":
            found.append(message.status)
    return found


SLOW = call("Bash", command="sleep 1; echo found")


# REQ: AGT-6, AGT-8
async def test_agent_outlives_its_prompt_and_a_run_of_the_session_takes_its_answer_up(place):
    options = place.options(agents=agents(), allowed_tools=["Bash"])
    messages = await collect(query(prompt=send(SLOW), options=options))
    assert kinds(messages) == ["started", "result", "completed", "result"]
    assert "works in the background" in str(results(messages)[0][0])
    first, second = of_kind(messages, "ResultMessage")
    assert not first.is_error and not second.is_error
    [told] = of_kind(messages, "TaskNotificationMessage")
    [started] = of_kind(messages, "TaskStartedMessage")
    assert told.task_id == started.task_id and told.tool_use_id == started.tool_use_id
    own = [it for it in of_kind(messages, "UserMessage") if it.parent_tool_use_id is None]
    [injected] = [it for it in own if "found" in str(it.content)]
    assert injected.uuid
    assert messages.index(told) < messages.index(injected) < messages.index(second)


# REQ: AGT-5, AGT-6
async def test_definition_puts_its_agent_into_the_background(place):
    options = place.options(agents=agents(background=True), allowed_tools=["Bash"])
    messages = await collect(query(prompt=send(SLOW, run_in_background=False), options=options))
    assert kinds(messages) == ["started", "result", "completed", "result"]


# REQ: AGT-6
async def test_program_that_stays_receives_the_run_after_its_own_and_prompts_go_on(place):
    async with ClaudeSDKClient(place.options(agents=agents(), allowed_tools=["Bash"])) as client:
        await client.query(send(SLOW))
        own = await collect(client.receive_response())
        later = await collect(client.receive_response())
        await client.query("say something else")
        last = await collect(client.receive_response())
    assert (kinds(own), kinds(later), kinds(last)) == (["started", "result"], ["completed", "result"], ["result"])
    assert "something else" in texts(last)


# REQ: AGT-6
async def test_task_in_the_background_is_stopped_and_its_parent_hears_of_it(place):
    async with ClaudeSDKClient(place.options(agents=agents(), allowed_tools=["Bash"])) as client:
        await client.query(send(call("Bash", command="sleep 60")))
        own = await collect(client.receive_response())
        [started] = of_kind(own, "TaskStartedMessage")
        await client.stop_task(started.task_id)
        later = await collect(client.receive_response())
    assert kinds(later) == ["stopped", "result"]


def uses(message):
    """The tools that a message calls."""
    blocks = message.content if type(message).__name__ == "AssistantMessage" else []
    return [it.name for it in blocks if hasattr(it, "input")]


# REQ: AGT-6, AGT-8
async def test_model_waits_for_a_task_and_its_end_sets_off_no_run_of_its_own(place):
    waiting = call("Bash", command="until [ -e go ]; do sleep 0.05; done; echo found")
    async with ClaudeSDKClient(place.options(agents=agents(), allowed_tools=["Bash"])) as client:
        await client.query(send(waiting))
        [started] = of_kind(await collect(client.receive_response()), "TaskStartedMessage")
        await client.query(call("TaskOutput", task_id=started.task_id, timeout=40000))
        read = []
        async for message in client.receive_response():
            read.append(message)
            if "TaskOutput" in uses(message):
                place.write("go", "")
        await client.query("say something else")
        last = await collect(client.receive_response())
    assert (kinds(read), kinds(last)) == (["completed", "result"], ["result"])
    assert any("has completed its task" in str(text) and not is_error for text, is_error in results(read))
    assert "something else" in texts(last)
    [ended] = of_kind(read, "TaskNotificationMessage")
    assert started.task_id in ended.output_file and "found" in open(ended.output_file).read()


# REQ: AGT-6, AGT-8
async def test_model_stops_a_task_and_hears_of_that_once(place):
    async with ClaudeSDKClient(place.options(agents=agents(), allowed_tools=["Bash"])) as client:
        await client.query(send(call("Bash", command="sleep 60")))
        [started] = of_kind(await collect(client.receive_response()), "TaskStartedMessage")
        await client.query(call("TaskStop", task_id=started.task_id))
        read = await collect(client.receive_response())
        await client.query(call("TaskStop", task_id="nobody"))
        last = await collect(client.receive_response())
    assert (kinds(read), kinds(last)) == (["stopped", "result"], ["result"])
    assert "was stopped before its end" in str(results(read))
    [(text, is_error)] = results(last)
    assert is_error and "no task nobody in the background" in str(text)


# REQ: AGT-6, AGT-8
async def test_agent_that_has_ended_goes_on_when_the_model_sends_it_a_message(place):
    async with ClaudeSDKClient(place.options(agents=agents(), allowed_tools=["Bash"])) as client:
        await client.query(send("say first", run_in_background=False))
        own = await collect(client.receive_response())
        [first] = of_kind(own, "TaskStartedMessage")
        assert first.task_id in str(results(own)[0][0])
        await client.query(call("SendMessage", to=first.task_id, message="say second"))
        sent = await collect(client.receive_response())
        later = await collect(client.receive_response()) if kinds(sent).count("result") == 1 else []
        await client.query(call("SendMessage", to="scout", message="say third"))
        last = await collect(client.receive_response())
    both = [*sent, *later]
    [again] = of_kind(both, "TaskStartedMessage")
    assert again.task_id == first.task_id and again.tool_use_id != first.tool_use_id
    assert sorted(kinds(both)) == ["completed", "result", "result", "started"]
    [told] = of_kind(both, "TaskNotificationMessage")
    written = open(told.output_file).read()
    assert "say first" in written and "say second" in written
    [(text, is_error)] = results(last)
    assert is_error and "scout is a type of agents" in str(text)


def lines(place, *args, **env):
    """What the command writes for one prompt on standard input that ends at once."""
    prompt = {"type": "user", "message": {"role": "user", "content": send(args[0])}, "session_id": ""}
    command = [ENNEAD, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    command += ["--agents", json.dumps({"scout": {"description": "d", "prompt": "p"}}), "--allowedTools", "Bash"]
    changed = {**os.environ, **place.options().env, **env}
    done = subprocess.run(command, input=json.dumps(prompt) + "\n", capture_output=True, text=True, cwd=place.work, env=changed, timeout=50)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


# REQ: AGT-6
async def test_end_of_input_waits_for_agents_and_their_runs_say_what_began_them(place):
    code, written = lines(place, SLOW, CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS="1")
    results = [it for it in written if it["type"] == "result"]
    assert (code, [it.get("origin") for it in results]) == (0, [None, {"kind": "task-notification"}])
    states = [it["state"] for it in written if it.get("subtype") == "session_state_changed"]
    assert states[-1] == "idle" and states.count("idle") == 1, states


# REQ: AGT-6
async def test_end_of_input_waits_for_agents_no_longer_than_the_ceiling(place):
    slow = call("Bash", command="sleep 60")
    code, written = lines(place, slow, CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS="500")
    ends = [it["status"] for it in written if it.get("subtype") == "task_notification"]
    assert (code, ends) == (0, ["stopped"])
    assert len([it for it in written if it["type"] == "result"]) == 1


# REQ: AGT-6, SUR-3
async def test_agent_at_work_ends_with_the_conversation_that_is_cleared(place):
    async with ClaudeSDKClient(place.options(agents=agents(), allowed_tools=["Bash"])) as client:
        await client.query(send(call("Bash", command="sleep 60")))
        own = await collect(client.receive_response())
        await client.query("/clear")
        cleared = await collect(client.receive_response())
        await client.query("say something else")
        last = await collect(client.receive_response())
    assert (kinds(own), kinds(cleared), kinds(last)) == (["started", "result"], ["stopped", "result"], ["result"])
    assert "something else" in texts(last)


# REQ: AGT-6, AGT-8
async def test_agent_that_cannot_begin_is_reported_to_have_failed(place):
    before = await collect(query(prompt="say one", options=place.options()))
    session = of_kind(before, "ResultMessage")[0].session_id
    [transcript] = place.config.rglob(f"{session}.jsonl")
    beside = transcript.with_suffix("")
    beside.mkdir(exist_ok=True)
    (beside / "subagents").write_text("a file where its transcript would lie")
    options = place.options(agents=agents(), allowed_tools=["Bash"], resume=session)
    messages = await collect(query(prompt=send("look about"), options=options))
    assert sorted(kinds(messages)) == ["failed", "result", "result", "started"]
