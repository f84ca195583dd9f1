"""Level 1: prompts and answers."""

import json

import pytest
from claude_agent_sdk import ClaudeSDKClient, ProcessError, query
from conftest import ENNEAD, collect, of_kind, texts

pytestmark = pytest.mark.anyio


async def ask(place, prompt, **options):
    return await collect(query(prompt=prompt, options=place.options(**options)))


# REQ: SUR-3
async def test_init_answer_and_result_come_in_this_order(place):
    messages = await ask(place, "say hello")
    assert [type(it).__name__ for it in messages] == ["SystemMessage", "AssistantMessage", "ResultMessage"]
    init, answer, result = messages
    assert init.subtype == "init" and init.data["cwd"] == str(place.work)
    assert "Bash" in init.data["tools"] and init.data["claude_code_version"] >= "2.1.248"
    assert answer.content[0].text == "hello"
    assert (result.subtype, result.is_error, result.num_turns, result.result) == ("success", False, 1, "hello")
    assert result.session_id == init.data["session_id"]
    assert result.usage["input_tokens"] > 0 and result.total_cost_usd > 0
    assert result.stop_reason == "end_turn" and result.terminal_reason == "completed"
    assert place.stderr == []


# REQ: SUR-3
async def test_partial_messages_come_live_and_before_their_message(place):
    messages = await ask(place, "say one two three", include_partial_messages=True)
    kinds = [type(it).__name__ for it in messages]
    events = [it.event for it in of_kind(messages, "StreamEvent")]
    assert [events[0]["type"], events[-1]["type"]] == ["message_start", "message_stop"]
    deltas = [it["delta"]["text"] for it in events if it["type"] == "content_block_delta"]
    assert "".join(deltas) == "one two three"
    last_event = max(i for i, kind in enumerate(kinds) if kind == "StreamEvent")
    assert last_event < kinds.index("AssistantMessage")


# REQ: SUR-3
async def test_thinking_has_a_signature_field_and_comes_before_the_text(place):
    messages = await ask(place, "think so", model="claude-sonnet-4-5")
    blocks = [block for it in of_kind(messages, "AssistantMessage") for block in it.content]
    assert [type(it).__name__ for it in blocks] == ["ThinkingBlock", "TextBlock"]
    assert len({it.message_id for it in of_kind(messages, "AssistantMessage")}) == 1


# REQ: SUR-3
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, lambda text: text == "[]"),
        ("You are a parrot.", lambda text: text == "[You are a parrot.]"),
        ({"type": "preset", "preset": "claude_code"}, lambda text: len(text) > 200),
        (
            {"type": "preset", "preset": "claude_code", "append": "Be brief."},
            lambda text: len(text) > 200 and "Be brief." in text,
        ),
    ],
)
async def test_system_prompt_is_the_one_that_was_chosen(place, given, expected):
    [text] = texts(await ask(place, "what system", system_prompt=given))
    assert expected(text), text


# REQ: SUR-3
async def test_model_and_base_set_of_tools_are_those_of_the_options(place):
    assert texts(await ask(place, "which model", model="claude-haiku-4-5")) == ["claude-haiku-4-5"]
    [names] = texts(await ask(place, "which tools", tools=["Read", "Bash"]))
    assert set(names.split()) == {"Read", "Bash"}
    assert texts(await ask(place, "which tools", tools=[])) in ([], [""])


# REQ: SUR-3
async def test_several_prompts_on_one_connection_are_one_conversation(place):
    async with ClaudeSDKClient(place.options()) as client:
        info = await client.get_server_info()
        assert info["output_style"] == "default"
        costs = []
        for prompt in ["say first", "say second", "what was said"]:
            await client.query(prompt)
            messages = await collect(client.receive_response())
            costs.append(of_kind(messages, "ResultMessage")[0].total_cost_usd)
    assert costs == sorted(costs) and costs[0] < costs[-1]
    said = json.loads(texts(messages)[0])
    assert [it["role"] for it in said] == ["user", "assistant", "user", "assistant", "user"]


# REQ: SUR-3
async def test_streamed_prompts_with_blocks_are_answered_one_after_the_other(place):
    async def prompts():
        for text in ["say a", "say b", "say c"]:
            content = [{"type": "text", "text": text}]
            yield {"type": "user", "message": {"role": "user", "content": content}}

    messages = await collect(query(prompt=prompts(), options=place.options()))
    assert texts(messages) == ["a", "b", "c"]
    assert len(of_kind(messages, "ResultMessage")) == 3


# REQ: SUR-3
async def test_answer_of_a_megabyte_is_shown_and_harms_nothing(place):
    messages = await ask(place, "long 3000000")
    assert of_kind(messages, "ResultMessage")[0].subtype == "success"
    assert texts(messages)[0].startswith("xxx")


# REQ: SUR-3
async def test_unknown_flag_ends_the_process_with_its_name(place):
    with pytest.raises(ProcessError):
        await ask(place, "say no", extra_args={"no-such-flag": None})
    assert any("--no-such-flag" in it for it in place.stderr), place.stderr


# REQ: SUR-3
async def test_image_in_a_prompt_reaches_the_model(place):
    async def prompts():
        data = "iVBORw0KGgo="
        source = {"type": "base64", "media_type": "image/png", "data": data}
        content = [{"type": "text", "text": "what was said"}, {"type": "image", "source": source}]
        yield {"type": "user", "message": {"role": "user", "content": content}}

    messages = await collect(query(prompt=prompts(), options=place.options()))
    assert "iVBORw0KGgo=" in texts(messages)[0]


# REQ: MDL-9
async def test_output_limit_of_the_environment_is_asked_for(place):
    env = {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "many"}
    with pytest.raises(Exception):
        await collect(query(prompt="say hello", options=place.options(env=env)))
    assert any("CLAUDE_CODE_MAX_OUTPUT_TOKENS" in it for it in place.stderr)
    env = {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "1234"}
    assert texts(await collect(query(prompt="which limit", options=place.options(env=env)))) == ["1234"]


# REQ: SUR-3
async def test_lines_of_an_answer_have_the_name_of_its_line_in_the_transcript(place):
    messages = await collect(query(prompt="think hello", options=place.options()))
    answers = of_kind(messages, "AssistantMessage")
    assert len(answers) == 2
    session = of_kind(messages, "ResultMessage")[0].session_id
    [file] = place.config.rglob(f"{session}.jsonl")
    lines = [json.loads(it) for it in file.read_text().splitlines()]
    recorded = {it["uuid"] for it in lines if it["type"] == "assistant"}
    assert {it.uuid for it in answers} == recorded


# REQ: CTX-3
async def test_what_differs_between_users_moves_from_the_system_prompt_into_the_first_message(place):
    preset = {"type": "preset", "preset": "claude_code"}
    [usual] = texts(await collect(query(prompt="what system", options=place.options(system_prompt=preset))))
    assert str(place.work) in usual
    static = place.options(system_prompt={**preset, "exclude_dynamic_sections": True})
    [system] = texts(await collect(query(prompt="what system", options=static)))
    assert "You are an agent" in system and str(place.work) not in system
    [said] = texts(await collect(query(prompt="what was said", options=static)))
    assert f"Working directory: {place.work}" in json.dumps(json.loads(said)[0])
    by_flag = place.options(system_prompt=preset, extra_args={"exclude-dynamic-system-prompt-sections": None})
    assert [system] == texts(await collect(query(prompt="what system", options=by_flag)))
