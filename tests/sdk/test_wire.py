"""Levels 1 to 4: what goes to the model server, and what comes of each of its answers."""

import json
import os
import subprocess

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionUpdate,
    ResultError,
    create_sdk_mcp_server,
    query,
    tool,
)
from conftest import Place, collect, of_kind, results, texts
from endpoint import Endpoint, refusal, text, use

pytestmark = pytest.mark.anyio


@pytest.fixture
def driven(tmp_path):
    """Makes a place whose model server gives these answers, in their order."""
    made = []

    def make(*answers):
        made.append(Endpoint(answers))
        place = Place(tmp_path, made[-1].address)
        place.endpoint = made[-1]
        return place

    yield make
    for it in made:
        it.close()


async def ask(place, prompt="hi", **options):
    return await collect(query(prompt=prompt, options=place.options(**options)))


async def converse(place, prompt="hi", **options):
    async with ClaudeSDKClient(place.options(**options)) as client:
        await client.query(prompt)
        return await collect(client.receive_response())


def result(messages):
    return of_kind(messages, "ResultMessage")[0]


def hooks(event, **output):
    async def callback(given, call_id, context):
        return output

    return {event: [HookMatcher(hooks=[callback])]}


# REQ: SUR-3
async def test_system_prompt_may_be_a_file(driven, tmp_path):
    place = driven([text("a")])
    (tmp_path / "system.txt").write_text("I am a file.")
    await ask(place, system_prompt={"type": "file", "path": str(tmp_path / "system.txt")})
    assert "I am a file." in json.dumps(place.endpoint.requests[0]["system"])


# REQ: SUR-3
async def test_headers_name_the_key_the_betas_and_the_program(driven):
    place = driven([text("a")], [text("b")])
    await ask(place, betas=["context-1m-2025-08-07"], client_app="myapp/1")
    await ask(place, env={"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "token"})
    first, second = place.endpoint.headers
    assert first["x-api-key"] == "test" and "context-1m-2025-08-07" in first["anthropic-beta"]
    assert "myapp/1" in first["user-agent"] and "anthropic-version" in first
    assert second["authorization"] == "Bearer token"


# REQ: MDL-4
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, {"type": "enabled", "budget_tokens": 2000}),
        ({"thinking": {"type": "disabled"}}, None),
        ({"max_thinking_tokens": 3000}, {"type": "enabled", "budget_tokens": 3000}),
    ],
)
async def test_thinking_is_asked_for_as_the_options_say(driven, options, expected):
    place = driven([text("a")])
    await ask(place, model="claude-sonnet-4-5", **options)
    asked = place.endpoint.requests[0].get("thinking")
    kept = asked and {name: asked[name] for name in ("type", "budget_tokens") if name in asked}
    assert kept == expected or (expected is None and asked == {"type": "disabled"})


# REQ: MDL-4
async def test_effort_and_adaptive_thinking_are_asked_for(driven):
    place = driven([text("a")])
    await ask(place, model="claude-opus-4-6", thinking={"type": "adaptive"}, effort="low")
    [request] = place.endpoint.requests
    assert (request["thinking"]["type"], request["output_config"]["effort"]) == ("adaptive", "low")


# REQ: MDL-4
async def test_reasoning_goes_back_as_it_came(driven):
    thought = [{"type": "thinking", "thinking": "hm", "signature": "SIG"}, {"type": "redacted_thinking", "data": "RED"}]
    place = driven([*thought, use("Bash", {"command": "echo a"})], [text("b")])
    thinking = {"type": "enabled", "budget_tokens": 2000}
    await ask(place, model="claude-sonnet-4-5", allowed_tools=["Bash"], thinking=thinking)
    assert place.endpoint.requests[1]["messages"][1]["content"][:2] == thought


# REQ: TOL-1
async def test_calls_of_one_answer_have_a_message_each_and_go_back_in_order(driven):
    calls = [use("Bash", {"command": "echo one"}, "a"), use("Nope", {}, "b"), use("TodoWrite", None, "c")]
    place = driven(calls, [text("done")])
    messages = await ask(place, allowed_tools=["Bash"])
    shown = [[it.tool_use_id for it in message.content] for message in of_kind(messages, "UserMessage")]
    assert shown == [["a"], ["b"], ["c"]] and of_kind(messages, "UserMessage")[0].tool_use_result
    assert [it[1] for it in results(messages)][:2] == [False, True] and "one" in results(messages)[0][0]
    answered = place.endpoint.requests[1]["messages"][-1]["content"]
    assert [it["tool_use_id"] for it in answered if it["type"] == "tool_result"] == ["a", "b", "c"]


# REQ: MDL-13
async def test_usage_and_cost_are_those_of_all_answers_of_a_run(driven):
    place = driven([use("Bash", {"command": "echo a"})], [text("b")])
    ended = result(await ask(place, allowed_tools=["Bash"], model="claude-sonnet-4-5"))
    assert (ended.num_turns, ended.usage["input_tokens"], ended.usage["output_tokens"]) == (2, 22, 14)
    assert ended.total_cost_usd == pytest.approx(2 * (11 * 3 + 7 * 15 + 3 * 3.75 + 5 * 0.3) / 1e6)
    assert ended.model_usage["claude-sonnet-4-5"]["cacheReadInputTokens"] == 10


# REQ: MDL-13, SUR-3
async def test_interrupted_run_counts_what_was_answered_by_its_model(driven):
    place = driven([use("Bash", {"command": "sleep 600"})])
    messages = []
    async with ClaudeSDKClient(place.options(allowed_tools=["Bash"], model="claude-sonnet-4-5")) as client:
        await client.query("hi")
        async for message in client.receive_response():
            messages.append(message)
            if type(message).__name__ == "AssistantMessage":
                await client.interrupt()
    ended = result(messages)
    assert ended.terminal_reason in ("aborted_tools", "aborted_streaming") and ended.is_error
    assert (ended.usage["input_tokens"], list(ended.model_usage)) == (11, ["claude-sonnet-4-5"])


# REQ: REC-1
async def test_server_errors_broken_connections_and_their_limit(driven):
    place = driven(refusal(500), None, refusal(529, "overloaded_error"), [text("there")])
    messages = await ask(place)
    retries = [it.data["attempt"] for it in of_kind(messages, "SystemMessage") if it.subtype == "api_retry"]
    assert texts(messages) == ["there"] and retries == [1, 2, 3]
    place.endpoint.answers = [refusal(500)] * 9
    with pytest.raises(ResultError):
        await ask(place, env={"CLAUDE_CODE_MAX_RETRIES": "1"})
    assert len(place.endpoint.requests) == 4 + 2


# REQ: HKS-2
async def test_hook_that_asks_overrules_a_rule_that_allows(driven):
    place, asked = driven([use("Bash", {"command": "echo x"})], [text("a")]), []

    async def may(name, given, context):
        asked.append(name)
        return PermissionResultAllow()

    output = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}}
    await converse(place, can_use_tool=may, hooks=hooks("PreToolUse", **output), allowed_tools=["Bash"])
    assert asked == ["Bash"]


# REQ: HKS-2
@pytest.mark.parametrize(
    ("event", "output", "expected"),
    [
        ("PostToolUse", {"decision": "block", "reason": "bad taste"}, "bad taste"),
        ("PreToolUse", {"async_": True, "asyncTimeout": 1000}, "spoken"),
    ],
)
async def test_hook_around_a_call_gives_a_reason_or_goes_on_alone(driven, event, output, expected):
    place = driven([use("Bash", {"command": "echo spoken"})], [text("a")])
    messages = await converse(place, hooks=hooks(event, **output), allowed_tools=["Bash"])
    assert texts(messages) == ["a"] and expected in json.dumps(place.endpoint.requests[-1]["messages"])


# REQ: HKS-2
async def test_agent_whose_end_a_hook_holds_up_goes_on(driven):
    call = use("Agent", {"description": "d", "prompt": "p", "subagent_type": "general-purpose"})
    place, seen = driven([call], [text("one")], [text("two")], [text("end")]), []

    async def hold(given, call_id, context):
        seen.append(given["stop_hook_active"])
        return {} if given["stop_hook_active"] else {"decision": "block", "reason": "more"}

    messages = await converse(place, hooks={"SubagentStop": [HookMatcher(hooks=[hold])]})
    assert seen == [False, True] and "two" in results(messages)[0][0]


@tool("big", "Answers at length", {})
async def big(given):
    return {"content": [{"type": "text", "text": "y" * 300_000}]}


# REQ: MCP-1
async def test_long_result_of_a_tool_in_the_program_goes_to_the_model_in_part(driven):
    place = driven([use("mcp__own__big", {})], [text("read")])
    servers = {"own": create_sdk_mcp_server("own", tools=[big])}
    messages = await ask(place, mcp_servers=servers, allowed_tools=["mcp__own__*"])
    assert texts(messages) == ["read"] and not results(messages)[0][1]
    assert len(json.dumps(place.endpoint.requests[1]["messages"])) < 300_000


# REQ: AGT-4
async def test_agent_has_the_skills_and_the_servers_of_its_definition(driven):
    call = use("Agent", {"description": "d", "prompt": "p", "subagent_type": "poet"})
    place = driven([call], [text("one")], [text("end")])
    place.write(".claude/skills/rhyme/SKILL.md", "---\nname: rhyme\ndescription: Rhymes\n---\nRhyme the last words.\n")
    poet = AgentDefinition(description="d", prompt="You write.", tools=["Read", "mcp__own__big"], skills=["rhyme", "none"])
    servers = {"own": create_sdk_mcp_server("own", tools=[big])}
    messages = await ask(place, agents={"poet": poet}, mcp_servers=servers, setting_sources=["project"])
    of_parent, of_agent = place.endpoint.requests[:2]
    assert "Rhyme the last words." in json.dumps(of_agent["system"])
    assert "Rhyme the last words." not in json.dumps(of_parent)
    assert [it["name"] for it in of_agent["tools"]] == ["Read", "mcp__own__big"]
    told = [it.data["content"] for it in of_kind(messages, "SystemMessage") if it.subtype == "informational"]
    assert any("no skill `none`" in it for it in told)


# REQ: AGT-4
async def test_call_chooses_the_model_of_an_agent_and_may_use_the_older_name_of_the_tool(driven):
    call = use("Task", {"description": "d", "prompt": "p", "subagent_type": "general-purpose", "model": "haiku"})
    place = driven([call], [{"type": "thinking", "thinking": "hm", "signature": "S"}, text("one")], [text("end")])
    messages = await ask(place, model="claude-sonnet-4-5", forward_subagent_text=True)
    assert "haiku" in place.endpoint.requests[1]["model"] and not results(messages)[-1][1]
    shown = [it for it in of_kind(messages, "AssistantMessage") if it.parent_tool_use_id]
    assert [type(block).__name__ for it in shown for block in it.content] == ["ThinkingBlock", "TextBlock"]


# REQ: SUR-3
async def test_requests_about_what_is_not_there_are_errors_and_the_session_goes_on(driven):
    place = driven([text("a")])
    async with ClaudeSDKClient(place.options()) as client:
        known = await client.get_server_info()
        assert {"commands", "output_style", "models", "account", "agents"} <= set(known)
        for request in [client.reconnect_mcp_server("x"), client.stop_task("x"), client.rewind_files("x")]:
            with pytest.raises(Exception, match="."):
                await request
        assert (await client.get_context_usage())["maxTokens"] > 0
        await client.query("hi")
        assert texts(await collect(client.receive_response())) == ["a"]


# REQ: SUR-3
async def test_budget_of_a_task_is_told_with_its_beta(driven):
    place = driven([text("done")])
    await ask(place, task_budget={"total": 64_000})
    [request] = place.endpoint.requests
    assert request["output_config"]["task_budget"] == {"type": "tokens", "total": 64_000}
    assert "task-budgets-2026-03-13" in place.endpoint.headers[0]["anthropic-beta"].split(",")


# REQ: SUR-3, MCP-1
async def test_tools_of_a_server_that_is_switched_off_leave_the_next_request(driven):
    @tool("add", "Adds.", {"a": int})
    async def add(arguments):
        return {"content": [{"type": "text", "text": "3"}]}

    servers = {"calc": create_sdk_mcp_server(name="calc", version="1.0", tools=[add])}
    place = driven([text("one")], [text("two")], [use("mcp__calc__add", {"a": 1})], [text("three")], [text("four")])
    results_shown = []
    async with ClaudeSDKClient(place.options(mcp_servers=servers, allowed_tools=["mcp__calc__add"])) as client:
        for enabled in [True, False, False, True]:
            await client.toggle_mcp_server("calc", enabled)
            await client.query("go on")
            results_shown += results(await collect(client.receive_response()))
    offered = [any(it["name"] == "mcp__calc__add" for it in request["tools"]) for request in place.endpoint.requests]
    assert offered == [True, False, False, False, True]
    [(_, is_error)] = results_shown
    assert is_error, "a call all the same is denied"
    # The session's decisions are found again by its own record.
    [transcript] = (place.config / "projects").glob("*/*.jsonl")
    checked = subprocess.run([os.environ["ENNEAD"], "verify", str(transcript)], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr


# REQ: MDL-13
@pytest.mark.parametrize(
    ("model", "given", "answered"),
    [("claude-opus-4-20250514", 15, 75), ("claude-opus-4-1", 15, 75), ("claude-sonnet-4-20250514", 3, 15)],
)
async def test_models_of_the_fourth_generation_have_prices(driven, model, given, answered):
    ended = result(await ask(driven([text("a")]), model=model))
    cost = 11 * given + 7 * answered + 3 * 1.25 * given + 5 * 0.1 * given
    assert ended.total_cost_usd == pytest.approx(cost / 1e6)
    assert ended.model_usage[model]["contextWindow"] == 200_000


# REQ: MDL-13, SUR-3
async def test_answers_count_for_the_model_that_gave_them(driven):
    place = driven([use("Bash", {"command": "while [ ! -e go ]; do sleep 0.05; done"})], [text("b")])
    async with ClaudeSDKClient(place.options(allowed_tools=["Bash"], model="claude-sonnet-4-5")) as client:
        await client.query("hi")
        messages = aiter(client.receive_response())
        while type(await anext(messages)).__name__ != "AssistantMessage":
            pass
        await client.set_model("claude-opus-4-5")
        place.write("go", "")
        ended = result(await collect(messages))
    used = {model: it["inputTokens"] for model, it in ended.model_usage.items()}
    assert used == {"claude-sonnet-4-5": 11, "claude-opus-4-5": 11}


# REQ: MDL-13, SUR-3
async def test_model_without_known_limits_and_one_that_was_interrupted_have_all_fields(driven):
    place = driven([text("a")], [use("Bash", {"command": "sleep 600"})])
    unknown = result(await ask(place, model="my-own-model")).model_usage["my-own-model"]
    assert (unknown["contextWindow"], unknown["maxOutputTokens"]) == (200_000, 64_000)
    async with ClaudeSDKClient(place.options(allowed_tools=["Bash"], model="claude-opus-4-5")) as client:
        await client.query("hi")
        messages = aiter(client.receive_response())
        while type(await anext(messages)).__name__ != "AssistantMessage":
            pass
        await client.interrupt()
        used = result(await collect(messages)).model_usage["claude-opus-4-5"]
    assert used["canonicalModel"] == "claude-opus-4-5" and used["contextWindow"] == 200_000


# REQ: MDL-4
async def test_variable_says_how_much_the_model_may_think(driven):
    place = driven([text("a")], [text("b")])
    env = {"MAX_THINKING_TOKENS": "2048"}
    await ask(place, model="claude-sonnet-4-5", env=env)
    await ask(place, model="claude-sonnet-4-5", env=env, max_thinking_tokens=3000)
    asked = [it["thinking"]["budget_tokens"] for it in place.endpoint.requests]
    assert asked == [2048, 3000]


# REQ: SUR-3
async def test_first_line_names_model_mode_and_betas_as_settings_say(driven):
    place = driven([text("a")])
    settings = {"model": "claude-haiku-4-5", "permissions": {"defaultMode": "acceptEdits"}}
    (place.config / "settings.json").write_text(json.dumps(settings))
    init = of_kind(await ask(place, betas=["a-2025", "b-2025"]), "SystemMessage")[0].data
    assert place.endpoint.requests[0]["model"] == init["model"] == "claude-haiku-4-5"
    assert init["permissionMode"] == "acceptEdits" and init["betas"] == ["a-2025", "b-2025"]


# REQ: SUR-3
async def test_what_is_said_without_a_question_goes_to_the_model_with_the_next_one(driven):
    place = driven([text("a")])

    async def prompts():
        for said in ("The code is 7.", "The door is blue."):
            yield {"type": "user", "message": {"role": "user", "content": said}, "shouldQuery": False}
        yield {"type": "user", "message": {"role": "user", "content": "Which code?"}}

    messages = await collect(query(prompt=prompts(), options=place.options()))
    assert len(of_kind(messages, "ResultMessage")) == 1
    [request] = place.endpoint.requests
    said = [it["text"] for it in request["messages"][-1]["content"] if it["type"] == "text"]
    assert said[-3:] == ["The code is 7.", "The door is blue.", "Which code?"]


# REQ: AGT-4, PRM-1
async def test_agent_that_a_rule_denies_is_not_offered(driven):
    place = driven([text("a")])
    agents = {name: AgentDefinition(description=f"knows {name}", prompt="Know.") for name in ("rain", "snow")}
    await converse(place, agents=agents, disallowed_tools=["Agent(rain)"])
    offered = {it["name"]: it["description"] for it in place.endpoint.requests[0]["tools"]}
    assert "knows snow" in offered["Agent"] and "knows rain" not in offered["Agent"]


# REQ: SUR-3
async def test_log_goes_to_standard_error_or_a_file_and_holds_no_text_of_messages(driven, tmp_path):
    place = driven([text("a")], [text("b")])
    lines = []
    await ask(place, "my secret", stderr=lines.append, extra_args={"debug": None})
    seen = "\n".join(lines)
    assert "model_call" in seen and "my secret" not in seen
    lines.clear()
    await ask(place, "my secret", stderr=lines.append, extra_args={"debug-file": str(tmp_path / "log")})
    seen = (tmp_path / "log").read_text()
    assert lines == [] and "model_call" in seen and "my secret" not in seen


# REQ: SUR-3
async def test_mode_that_changes_in_a_run_is_told(driven):
    place = driven([use("Write", {"file_path": "x", "content": "x"})], [text("b")])

    async def allow(name, given, context):
        update = PermissionUpdate(type="setMode", mode="acceptEdits", destination="session")
        return PermissionResultAllow(updated_permissions=[update])

    messages = await converse(place, can_use_tool=allow)
    told = [it.data for it in of_kind(messages, "SystemMessage") if it.subtype == "status"]
    assert [it["permissionMode"] for it in told] == ["acceptEdits"]
