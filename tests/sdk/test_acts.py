"""Level 2: tools, rules, modes, limits and failures."""

import base64
import json

import pytest
from claude_agent_sdk import ClaudeSDKClient, ResultError, create_sdk_mcp_server, query, tool
from conftest import call, collect, of_kind, results, texts

pytestmark = pytest.mark.anyio


async def ask(place, prompt, **options):
    return await collect(query(prompt=prompt, options=place.options(**options)))


# REQ: SUR-3
async def test_call_and_result_are_shown_and_paired(place):
    place.write("a.txt", "alpha\n")
    messages = await ask(place, call("Read", file_path=str(place.work / "a.txt")))
    [use] = [b for m in of_kind(messages, "AssistantMessage") for b in m.content if hasattr(b, "input")]
    [result] = [b for m in of_kind(messages, "UserMessage") for b in m.content]
    assert use.id == result.tool_use_id and "alpha" in result.content
    assert of_kind(messages, "ResultMessage")[0].num_turns == 2


# REQ: SUR-3
async def test_parallel_calls_are_answered_in_order(place):
    calls = []
    for name in ["a", "b", "c"]:
        place.write(name, f"text of {name}\n")
        calls.append({"tool": "Read", "input": {"file_path": str(place.work / name)}})
    messages = await ask(place, f"calls {json.dumps(calls)}")
    assert ["text of a" in it for it, _ in results(messages)] == [True, False, False]
    assert len(results(messages)) == 3


# REQ: PRM-5
async def test_call_that_nobody_allows_is_denied_and_reported(place):
    messages = await ask(place, call("Write", file_path=str(place.work / "x"), content="x"))
    [(text, is_error)] = results(messages)
    assert is_error and not (place.work / "x").exists()
    [denial] = of_kind(messages, "ResultMessage")[0].permission_denials
    assert denial["tool_name"] == "Write" and denial["tool_input"]["content"] == "x"


# REQ: PRM-2
@pytest.mark.parametrize(
    ("options", "command", "runs"),
    [
        ({"allowed_tools": ["Bash"]}, "echo hi > x", True),
        ({"allowed_tools": ["Bash(touch:*)"]}, "touch x", True),
        ({"allowed_tools": ["Bash(touch:*)"]}, "touch x && rm -rf y", False),
        ({"allowed_tools": ["Bash"], "disallowed_tools": ["Bash(touch:*)"]}, "touch x", False),
        ({"permission_mode": "bypassPermissions"}, "touch x", True),
        ({"permission_mode": "plan"}, "touch x", False),
        ({"permission_mode": "dontAsk"}, "touch x", False),
        ({"permission_mode": "acceptEdits"}, "touch x", True),
    ],
)
async def test_rules_and_modes_decide_about_commands(place, options, command, runs):
    messages = await ask(place, call("Bash", command=command), **options)
    assert (place.work / "x").exists() == runs, results(messages)


# REQ: SUR-3
async def test_tool_that_is_denied_as_a_whole_is_not_offered(place):
    [names] = texts(await ask(place, "which tools", disallowed_tools=["Bash"]))
    assert "Bash" not in names.split()


# REQ: SUR-3
async def test_edits_are_accepted_inside_the_working_directory_only(place):
    inside = call("Write", file_path=str(place.work / "x"), content="x")
    await ask(place, inside, permission_mode="acceptEdits")
    assert (place.work / "x").read_text() == "x"
    outside = place.work.parent / "out"
    messages = await ask(place, call("Write", file_path=str(outside), content="x"), permission_mode="acceptEdits")
    assert results(messages)[0][1] and not outside.exists()


# REQ: SUR-3
async def test_limit_of_turns_ends_with_its_own_subtype(place):
    with pytest.raises(ResultError):
        messages = []
        async for message in query(
            prompt=call("Bash", command="pwd"), options=place.options(max_turns=1)
        ):
            messages.append(message)
    result = of_kind(messages, "ResultMessage")[0]
    assert (result.subtype, result.is_error, result.terminal_reason) == ("error_max_turns", True, "max_turns")


# REQ: SUR-3, MDL-6
@pytest.mark.parametrize(
    ("prompt", "status", "error"),
    [("fail 401", 401, "authentication_failed"), ("fail 400", 400, "invalid_request")],
)
async def test_refusal_of_the_model_server_is_a_result_with_its_status(place, prompt, status, error):
    messages = []
    with pytest.raises(ResultError):
        async for message in query(prompt=prompt, options=place.options()):
            messages.append(message)
    result = of_kind(messages, "ResultMessage")[0]
    assert (result.subtype, result.is_error, result.terminal_reason) == ("success", True, "api_error")
    assert result.result.startswith("API Error: ") and result.api_error_status == status
    synthetic = of_kind(messages, "AssistantMessage")[-1]
    assert (synthetic.model, synthetic.error) == ("<synthetic>", error)


# REQ: MDL-6
@pytest.mark.parametrize("prompt", ["fail 529 once", "fail 429 once"])
async def test_what_passes_is_asked_again(place, prompt):
    messages = await ask(place, prompt)
    assert texts(messages) == ["there again"]
    assert any(it.subtype == "api_retry" for it in of_kind(messages, "SystemMessage"))


# REQ: TOL-8
async def test_result_of_a_tool_is_cut_and_a_command_has_a_time_limit(place):
    messages = await ask(place, call("Bash", command="yes | head -c 200000"), allowed_tools=["Bash"])
    assert len(results(messages)[0][0]) < 60000


# A PNG picture of one pixel.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def sent_after(place, prompt, **options):
    """What a tool gave, and the conversation as the model is sent it afterwards."""
    async with ClaudeSDKClient(place.options(**options)) as client:
        await client.query(prompt)
        first = await collect(client.receive_response())
        await client.query("what was said")
        [said] = texts(await collect(client.receive_response()))
    blocks = [it for message in json.loads(said) for it in message["content"] if isinstance(it, dict)]
    return first, [it["content"] for it in blocks if it["type"] == "tool_result"]


# REQ: TOL-7
async def test_picture_that_is_read_goes_to_the_model_as_an_image(place):
    path = place.work / "a.png"
    path.write_bytes(base64.b64decode(PIXEL))
    messages, [content] = await sent_after(place, call("Read", file_path=str(path)))
    [image] = [it for it in content if it["type"] == "image"]
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": PIXEL}
    [user] = of_kind(messages, "UserMessage")
    assert user.tool_use_result["type"] == "image"
    assert user.tool_use_result["file"]["base64"] == PIXEL


# REQ: TOL-7
async def test_pdf_file_that_is_read_goes_to_the_model_as_a_document(place):
    path = place.write("a.pdf", "%PDF-1.4\n1 0 obj <<>> endobj\n%%EOF\n")
    _, [content] = await sent_after(place, call("Read", file_path=str(path)))
    [document] = [it for it in content if it["type"] == "document"]
    assert document["source"]["media_type"] == "application/pdf" and document["title"] == "a.pdf"


# REQ: TOL-5
async def test_picture_that_no_provider_takes_is_an_error_and_is_not_sent(place):
    path = place.work / "a.png"
    path.write_bytes(base64.b64decode(PIXEL)[:16] + b"\0\0\xff\xff\0\0\xff\xff")
    messages, [content] = await sent_after(place, call("Read", file_path=str(path)))
    assert results(messages)[0][1] and "pixels" in results(messages)[0][0]
    assert isinstance(content, str)


# REQ: SUR-3
async def test_picture_of_a_tool_in_the_program_goes_to_the_model(place):
    @tool("shot", "Takes a picture", {})
    async def shot(given):
        return {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]}

    servers = {"eye": create_sdk_mcp_server("eye", tools=[shot])}
    options = {"mcp_servers": servers, "allowed_tools": ["mcp__eye__shot"]}
    _, [content] = await sent_after(place, call("mcp__eye__shot"), **options)
    assert [it["type"] for it in content] == ["text", "image"]
    assert content[1]["source"]["data"] == PIXEL


# REQ: SHP-12
async def test_picture_that_the_provider_refuses_is_left_out_and_the_session_goes_on(place):
    source = {"type": "base64", "media_type": "image/png", "data": "BROKENAA"}

    async def prompts():
        content = [{"type": "image", "source": source}, {"type": "text", "text": "what was said"}]
        yield {"type": "user", "message": {"role": "user", "content": content}}

    messages = await collect(query(prompt=prompts(), options=place.options()))
    result = of_kind(messages, "ResultMessage")[0]
    assert not result.is_error and "left out: the provider refused it" in texts(messages)[0]
    later = await collect(query(prompt="say more", options=place.options(resume=result.session_id)))
    assert texts(later) == ["more"]


# REQ: PRM-3
@pytest.mark.parametrize("rule", ["Bash", "Bash()", "Bash(*)"])
async def test_whole_tool_may_be_allowed_in_each_form(place, rule):
    messages = await ask(place, call("Bash", command="touch x"), allowed_tools=[rule])
    assert not results(messages)[0][1] and (place.work / "x").exists()
