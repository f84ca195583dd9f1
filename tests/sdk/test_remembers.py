"""Level 4: sessions that go on, forks, and what a session is known by."""


import pytest
from claude_agent_sdk import ClaudeSDKClient, ResultError, query
from conftest import collect, of_kind, texts

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
    async with ClaudeSDKClient(place.options(disallowed_tools=["Bash"])) as client:
        await client.query("say hello")
        messages = await collect(client.receive_response())
        usage = await client.get_context_usage()
    init = of_kind(messages, "SystemMessage")[0].data
    assert "Bash" not in init["tools"] and "Read" in init["tools"]
    assert init["model"] == of_kind(messages, "AssistantMessage")[0].model
    assert 0 < usage["totalTokens"] < usage["maxTokens"]


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
