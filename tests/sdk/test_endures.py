"""Level 5: transcripts that are mirrored into a store, file checkpoints, budgets of tasks."""

import pytest
from claude_agent_sdk import ClaudeSDKClient, InMemorySessionStore, query
from conftest import call, collect, of_kind, texts

pytestmark = pytest.mark.anyio


async def ask(place, prompt, **options):
    return await collect(query(prompt=prompt, options=place.options(**options)))


# REQ: SUR-3
async def test_store_has_every_line_and_a_session_goes_on_from_it_elsewhere(place, tmp_path):
    store = InMemorySessionStore()
    messages = await ask(place, "say one", session_store=store)
    [first] = of_kind(messages, "ResultMessage")
    [file] = place.config.rglob(f"{first.session_id}.jsonl")
    kept = [entry for entries in store._store.values() for entry in entries]
    assert sum(1 for _ in file.open()) == len(kept)
    assert [it["type"] for it in kept].count("user") == 1
    file.unlink()
    messages = await ask(place, "what was said", session_store=store, resume=first.session_id)
    assert "say one" in texts(messages)[0]
    assert not of_kind(messages, "MirrorErrorMessage")


# REQ: SUR-3
async def test_files_are_put_back_as_they_were_before_a_prompt(place):
    file = place.write("a.txt", "one")
    options = place.options(
        enable_file_checkpointing=True,
        permission_mode="acceptEdits",
        extra_args={"replay-user-messages": None},
    )
    prompts = []
    async with ClaudeSDKClient(options) as client:
        for prompt in [call("Read", file_path=str(file)), call("Write", file_path=str(file), content="two"),
                       call("Write", file_path=str(place.work / "b.txt"), content="new")]:
            await client.query(prompt)
            messages = await collect(client.receive_response())
            prompts.append(next(it.uuid for it in of_kind(messages, "UserMessage") if it.uuid))
        assert file.read_text() == "two" and (place.work / "b.txt").exists()
        await client.rewind_files(prompts[2])
        assert file.read_text() == "two" and not (place.work / "b.txt").exists()
        await client.rewind_files(prompts[1])
        assert file.read_text() == "one"
        with pytest.raises(Exception, match="no file checkpoint"):
            await client.rewind_files("0b8f3a52-77aa-4c57-8c0e-5d2d8f1f6a90")


# REQ: SUR-3
async def test_files_are_not_kept_unasked(place):
    async with ClaudeSDKClient(place.options()) as client:
        await client.query("say one")
        await collect(client.receive_response())
        with pytest.raises(Exception, match="not switched on"):
            await client.rewind_files("0b8f3a52-77aa-4c57-8c0e-5d2d8f1f6a90")
    assert not list(place.config.rglob("file-history"))
