"""Level 4: sessions that go on, forks, and what a session is known by."""

import json

import pytest
from claude_agent_sdk import ClaudeSDKClient, ResultError, list_sessions, query, rename_session, tag_session
from conftest import call, collect, of_kind, results, texts

pytestmark = pytest.mark.anyio


async def ask(place, prompt, **options):
    return await collect(query(prompt=prompt, options=place.options(**options)))


def session_of(messages):
    return of_kind(messages, "ResultMessage")[0].session_id


# REQ: SUR-3
async def test_session_goes_on_under_its_id_and_knows_what_was_said(place):
    first = session_of(await ask(place, "say one"))
    for options in [{"resume": first}, {"continue_conversation": True}]:
        messages = await ask(place, "what was said", **options)
        assert session_of(messages) == first and "say one" in texts(messages)[0]


# REQ: SUR-3
async def test_fork_has_the_history_and_another_id_and_the_source_stays(place):
    first = session_of(await ask(place, "say one"))
    [file] = place.config.rglob(f"{first}.jsonl")
    before = file.read_bytes()
    messages = await ask(place, "what was said", resume=first, fork_session=True)
    assert session_of(messages) != first and "say one" in texts(messages)[0]
    assert file.read_bytes() == before


# REQ: SUR-3
async def test_unknown_session_is_refused_with_its_id(place):
    unknown = "0b8f3a52-77aa-4c57-8c0e-5d2d8f1f6a90"
    with pytest.raises(Exception, match=f"No conversation found with session ID: {unknown}"):
        await ask(place, "say no", resume=unknown)


# REQ: SUR-3
async def test_context_usage_and_denied_tools_are_what_the_model_has(place):
    file = place.write("CLAUDE.md", "Speak plainly.")
    options = place.options(disallowed_tools=["Bash"], setting_sources=["project"])
    async with ClaudeSDKClient(options) as client:
        await client.query("say hello")
        messages = await collect(client.receive_response())
        usage = await client.get_context_usage()
    init = of_kind(messages, "SystemMessage")[0].data
    assert "Bash" not in init["tools"] and "Read" in init["tools"]
    assert init["model"] == of_kind(messages, "AssistantMessage")[0].model
    assert 0 < usage["totalTokens"] < usage["maxTokens"]
    [memory] = usage["memoryFiles"]
    assert (memory["path"], memory["type"]) == (str(file), "Project") and 0 < memory["tokens"] < 10


# REQ: SUR-3
async def test_model_of_the_environment_holds_where_no_option_names_one(place):
    env = {"ANTHROPIC_MODEL": "claude-haiku-4-5"}
    assert texts(await ask(place, "which model", env=env)) == ["claude-haiku-4-5"]


# REQ: SUR-3
async def test_prompt_that_cannot_be_read_has_a_result(place):
    async def prompts():
        content = [{"type": "video", "source": {"type": "url", "url": "x"}}]
        yield {"type": "user", "message": {"role": "user", "content": content}}

    with pytest.raises(ResultError, match="video"):
        await collect(query(prompt=prompts(), options=place.options()))


SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "who": {"enum": ["a", "b"]}},
    "required": ["n"],
    "additionalProperties": False,
}


def format_of(schema):
    return {"output_format": {"type": "json_schema", "schema": schema}}


# REQ: SUR-2
async def test_answer_that_fits_the_schema_is_the_result(place):
    messages = await ask(place, call("StructuredOutput", n=3, who="a"), **format_of(SCHEMA))
    result = of_kind(messages, "ResultMessage")[0]
    assert result.structured_output == {"n": 3, "who": "a"}
    assert (result.subtype, result.is_error) == ("success", False)
    assert json.loads(result.result) == {"n": 3, "who": "a"}


# REQ: SUR-2
async def test_answer_that_never_fits_ends_with_its_own_subtype(place):
    messages = []
    with pytest.raises(ResultError):
        prompt = call("StructuredOutput", n="three")
        async for message in query(prompt=prompt, options=place.options(**format_of(SCHEMA))):
            messages.append(message)
    result = of_kind(messages, "ResultMessage")[0]
    assert (result.subtype, result.is_error) == ("error_max_structured_output_retries", True)
    assert results(messages)[0][1] and result.structured_output is None


# REQ: MDL-13
async def test_budget_that_is_used_up_ends_the_run(place):
    messages = []
    with pytest.raises(ResultError):
        options = place.options(max_budget_usd=0.000001, model="claude-sonnet-4-5")
        async for message in query(prompt="say hello", options=options):
            messages.append(message)
    result = of_kind(messages, "ResultMessage")[0]
    assert (result.subtype, result.is_error) == ("error_max_budget_usd", True)
    assert texts(messages) == ["hello"] and 0.000001 < result.total_cost_usd
    enough = await ask(place, "say hello", max_budget_usd=5.0, model="claude-sonnet-4-5")
    assert of_kind(enough, "ResultMessage")[0].subtype == "success"


# REQ: MDL-13
async def test_cost_of_a_session_that_goes_on_is_that_of_this_process(place):
    first = of_kind(await ask(place, "say one", model="claude-sonnet-4-5"), "ResultMessage")[0]
    again = {"resume": first.session_id, "model": "claude-sonnet-4-5"}
    second = of_kind(await ask(place, "say one", **again), "ResultMessage")[0]
    # One request with what was said before it costs less than three requests without.
    assert 0 < second.total_cost_usd < 2.5 * first.total_cost_usd
    assert second.total_cost_usd == sum(it["costUSD"] for it in second.model_usage.values())


# REQ: SUR-3
async def test_prompt_bears_the_name_that_the_program_gave_it(place):
    uuid = "0b8f3a52-77aa-4c57-8c0e-5d2d8f1f6a91"

    async def prompts():
        message = {"role": "user", "content": "say hello"}
        yield {"type": "user", "message": message, "uuid": uuid}

    messages = await collect(query(prompt=prompts(), options=place.options()))
    [file] = place.config.rglob(f"{session_of(messages)}.jsonl")
    lines = [json.loads(it) for it in file.read_text().splitlines()]
    [prompt] = [it for it in lines if it.get("uuid") == uuid]
    assert prompt["type"] == "user" and prompt["message"]["content"][0]["text"] == "say hello"
    assert of_kind(messages, "ResultMessage")[0].user_message_uuid == uuid
    # A second one of this name is answered, and has a line of its own.
    again = await collect(query(prompt=prompts(), options=place.options(resume=session_of(messages))))
    assert texts(again) == ["hello"]


# REQ: SES-5
async def test_title_and_tag_of_a_session_stay_when_it_grows(place, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(place.config))
    session = session_of(await ask(place, "long 80000"))
    rename_session(session, "the first one", directory=str(place.work))
    tag_session(session, "kept", directory=str(place.work))
    await ask(place, "long 80000", resume=session)
    [found] = list_sessions(directory=str(place.work))
    assert (found.session_id, found.custom_title, found.tag) == (session, "the first one", "kept")
    messages = await ask(place, "what was said", resume=session)
    assert "long 80000" in texts(messages)[0]


# REQ: SES-5
async def test_session_is_gone_on_with_by_its_last_title_where_no_other_has_it(place, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(place.config))
    first, second = [session_of(await ask(place, f"say {it}")) for it in ("one", "two")]
    rename_session(first, "earlier", directory=str(place.work))
    rename_session(first, "about herons", directory=str(place.work))
    messages = await ask(place, "what was said", resume="about herons")
    assert session_of(messages) == first and "say one" in texts(messages)[0]
    rename_session(second, "about herons", directory=str(place.work))
    for title, why in [("earlier", "No conversation found"), ("about herons", "2 sessions have the title")]:
        with pytest.raises(ResultError, match=why):
            await ask(place, "say three", resume=title)
