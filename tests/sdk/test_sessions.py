"""Level 4: what the readers of the SDK find, and what another program does to a session."""

import json
import subprocess
import uuid

import pytest
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeSDKClient,
    delete_session,
    fork_session,
    get_session_info,
    get_session_messages,
    get_subagent_messages,
    list_sessions,
    list_subagents,
    query,
)
from conftest import ENNEAD, call, collect, of_kind, results, texts

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def readers(place, monkeypatch):
    """The readers of the SDK look into the configuration directory of the test."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(place.config))


async def ask(place, prompt, **options):
    return await collect(query(prompt=prompt, options=place.options(**options)))


def session_of(messages):
    return of_kind(messages, "ResultMessage")[0].session_id


def file_of(place, session):
    [file] = place.config.rglob(f"{session}.jsonl")
    return file


# REQ: SES-1
async def test_reader_of_messages_gives_the_whole_conversation_in_order(place):
    place.write("a.txt", "alpha\n")
    prompt = call("Read", file_path=str(place.work / "a.txt"))
    session = session_of(await ask(place, prompt))
    await ask(place, "say more", resume=session)
    found = get_session_messages(session, directory=str(place.work))
    assert [it.type for it in found] == ["user", "assistant", "user", "assistant", "user", "assistant"]
    assert "alpha" in json.dumps(found[2].message) and "more" in json.dumps(found[5].message)


# REQ: SES-1
async def test_listing_names_a_session_by_its_first_prompt(place):
    session = session_of(await ask(place, "say hello to the reader"))
    [found] = list_sessions(directory=str(place.work))
    assert (found.session_id, found.first_prompt) == (session, "say hello to the reader")
    assert found.cwd == str(place.work) and found.created_at
    assert get_session_info(session, directory=str(place.work)).summary == "say hello to the reader"
    assert file_of(place, session).stat().st_mode & 0o777 == 0o600


# REQ: SES-1, AGT-4
async def test_readers_find_a_sub_agent_and_what_it_said(place):
    agents = {"poet": AgentDefinition(description="Writes", prompt="You are a poet.")}
    prompt = call("Agent", description="a task", prompt="say verse", subagent_type="poet")
    async with ClaudeSDKClient(place.options(agents=agents)) as client:
        await client.query(prompt)
        session = session_of(await collect(client.receive_response()))
    [agent] = list_subagents(session, directory=str(place.work))
    found = get_subagent_messages(session, agent, directory=str(place.work))
    assert [it.type for it in found] == ["user", "assistant"]
    assert "verse" in json.dumps(found[1].message) and found[0].parent_tool_use_id


# REQ: SES-5
@pytest.mark.parametrize("cut", [False, True])
async def test_fork_that_the_sdk_made_goes_on(place, cut):
    session = session_of(await ask(place, "say one"))
    await ask(place, "say two", resume=session)
    first_answer = get_session_messages(session, directory=str(place.work))[1].uuid
    until = first_answer if cut else None
    forked = fork_session(session, directory=str(place.work), up_to_message_id=until).session_id
    messages = await ask(place, "what was said", resume=forked)
    assert session_of(messages) == forked and "say one" in texts(messages)[0]
    assert ("say two" in texts(messages)[0]) != cut


# REQ: SES-5
async def test_session_that_was_deleted_is_refused(place):
    session = session_of(await ask(place, "say one"))
    delete_session(session, directory=str(place.work))
    with pytest.raises(Exception, match="No conversation found"):
        await ask(place, "say two", resume=session)


# REQ: SUR-3
async def test_session_has_the_id_that_was_chosen_and_it_is_given_once(place):
    chosen = str(uuid.uuid4())
    assert session_of(await ask(place, "say one", session_id=chosen)) == chosen
    assert file_of(place, chosen).exists()
    with pytest.raises(Exception, match="already in use"):
        await ask(place, "say two", session_id=chosen)


# REQ: SUR-3
async def test_fork_takes_the_id_that_was_chosen(place):
    first, chosen = session_of(await ask(place, "say one")), str(uuid.uuid4())
    messages = await ask(place, "what was said", resume=first, fork_session=True, session_id=chosen)
    assert session_of(messages) == chosen and "say one" in texts(messages)[0]


# REQ: SUR-3
async def test_continue_where_nothing_was_said_begins_a_session(place):
    messages = await ask(place, "say one", continue_conversation=True)
    assert texts(messages) == ["one"]


# REQ: SES-1
async def test_continue_leaves_transcripts_of_sub_agents_alone(place):
    session = of_kind(await ask(place, "say one"), "ResultMessage")[0].session_id
    [file] = place.config.glob(f"projects/*/{session}.jsonl")
    entry = {"isSidechain": True, "type": "user", "uuid": "a", "message": {"role": "user", "content": "of an agent"}}
    file.with_name("0e000000-0000-4000-8000-00000000000a.jsonl").write_text(json.dumps(entry) + "\n")
    [ended] = of_kind(await ask(place, "say two", continue_conversation=True), "ResultMessage")
    assert ended.session_id == session


def answers_of(place, session):
    found = get_session_messages(session, directory=str(place.work))
    return [it.uuid for it in found if it.type == "assistant"]


# REQ: SES-5
async def test_session_is_gone_on_with_from_an_earlier_message_in_the_same_file(place):
    session = session_of(await ask(place, "say one"))
    await ask(place, "say two", resume=session)
    before = file_of(place, session).read_bytes()
    at = {"resume": session, "resume_session_at": answers_of(place, session)[0]}
    messages = await ask(place, "what was said", **at)
    assert session_of(messages) == session
    assert "say one" in texts(messages)[0] and "say two" not in texts(messages)[0]
    assert file_of(place, session).read_bytes().startswith(before)
    # What goes on after it goes on from there, for the readers too.
    later = await ask(place, "what was said", resume=session)
    assert "say one" in texts(later)[0] and "say two" not in texts(later)[0]
    said = json.dumps([it.message for it in get_session_messages(session, directory=str(place.work))])
    assert "say one" in said and "say two" not in said
    command = [ENNEAD, "verify", str(file_of(place, session))]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr


# REQ: SES-5
async def test_message_that_is_not_there_is_refused(place):
    session = session_of(await ask(place, "say one"))
    missing = str(uuid.uuid4())
    with pytest.raises(Exception, match=f"No message found with message.uuid of: {missing}"):
        await ask(place, "say no", resume=session, resume_session_at=missing)
    assert texts(await ask(place, "say yes", resume=session)) == ["yes"]


# REQ: SES-5
async def test_guard_refuses_to_drop_what_is_not_of_the_named_prompt(place):
    session = session_of(await ask(place, "say one"))
    await ask(place, "say two", resume=session)
    await ask(place, "say three", resume=session)
    found = get_session_messages(session, directory=str(place.work))
    at, second, third = found[3].uuid, found[2].uuid, found[4].uuid

    def guarded(at, prompt):
        return {"resume_session_at": at, "resume_drops_turn": prompt}

    for at_, dropped in [(at, second), (found[1].uuid, second), (at, "")]:
        with pytest.raises(Exception, match="Resume rejected by --resume-drops-turn:"):
            await ask(place, "say no", resume=session, **guarded(at_, dropped))
    messages = await ask(place, "what was said", resume=session, **guarded(at, third))
    assert "say two" in texts(messages)[0] and "say three" not in texts(messages)[0]


# REQ: SUR-3
async def test_clear_begins_another_conversation_on_the_same_connection(place):
    async with ClaudeSDKClient(place.options()) as client:
        await client.query("say heron")
        first = await collect(client.receive_response())
        await client.set_model("claude-haiku-4-5")
        await client.query("/clear")
        cleared = await collect(client.receive_response())
        await client.query("what was said")
        second = await collect(client.receive_response())
        await client.query("which model")
        third = await collect(client.receive_response())
    [reset] = of_kind(cleared, "ConversationResetMessage")
    assert reset.session_id == session_of(first)
    result = of_kind(cleared, "ResultMessage")[0]
    assert (result.is_error, result.num_turns, result.session_id) == (False, 0, reset.new_conversation_id)
    assert session_of(second) == reset.new_conversation_id and "heron" not in texts(second)[0]
    assert texts(third) == ["claude-haiku-4-5"]
    assert file_of(place, session_of(first)).exists() and file_of(place, session_of(second)).exists()


# REQ: SUR-3
async def test_clear_that_a_program_composed_is_a_prompt_and_one_at_the_end_has_a_result(place):
    literal = await ask(place, "/clear", verbatim_prompts=True)
    assert texts(literal) == ["heard: /clear"] and not of_kind(literal, "ConversationResetMessage")
    messages = await ask(place, "/clear")
    assert not of_kind(messages, "ResultMessage")[0].is_error and not texts(messages)
