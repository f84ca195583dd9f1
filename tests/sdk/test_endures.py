"""Level 5: transcripts that are mirrored into a store, file checkpoints, budgets of tasks."""

import json
import sys

import pytest
from claude_agent_sdk import ClaudeSDKClient, HookMatcher, InMemorySessionStore, ProcessError, create_sdk_mcp_server, query, tool
from conftest import call, collect, of_kind, results, texts
from endpoint import text
from test_wire import driven  # noqa: F401

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


# REQ: SUR-3
async def test_conversation_goes_on_from_a_summary_that_was_asked_for(driven):
    place = driven([text("first answer")], [text("SUMMARY")], [text("second answer")], [text("third answer")])
    triggers = []

    async def before(given, call_id, context):
        triggers.append((given["trigger"], given["custom_instructions"]))
        return {}

    options = place.options(hooks={"PreCompact": [HookMatcher(hooks=[before])]})
    async with ClaudeSDKClient(options) as client:
        said = []
        for prompt in ["first prompt", "/compact the names", "second prompt"]:
            await client.query(prompt)
            said.append(await collect(client.receive_response()))
    [boundary] = [it for it in of_kind(said[1], "SystemMessage") if it.subtype == "compact_boundary"]
    assert boundary.data["compact_metadata"]["trigger"] == "manual"
    [result] = of_kind(said[1], "ResultMessage")
    assert result.subtype == "success" and not result.is_error
    assert triggers == [("manual", "the names")]
    after = json.dumps(place.endpoint.requests[2]["messages"])
    assert "SUMMARY" in after and "first prompt" not in after and "second prompt" in after
    # A resumed session goes on from it, too.
    await collect(query(prompt="third prompt", options=place.options(resume=result.session_id)))
    resumed = json.dumps(place.endpoint.requests[3]["messages"])
    assert "SUMMARY" in resumed and "first prompt" not in resumed and "second answer" in resumed


# REQ: SUR-3
async def test_nothing_to_sum_up_is_said(driven):
    place = driven([text("never")])
    messages = await collect(query(prompt="/compact", options=place.options()))
    assert of_kind(messages, "ResultMessage")[0].result == "there is nothing to sum up"
    assert place.endpoint.requests == []


# REQ: SUR-3
async def test_plugin_brings_commands_and_agents_under_its_name(place, tmp_path):
    kit = tmp_path / "kit"
    for name, said in {
        ".claude-plugin/plugin.json": '{"name": "p", "version": "1.0"}',
        "commands/loud.md": "say $0!",
        "skills/plain/SKILL.md": "---\ndescription: d\n---\nsay skill",
        "agents/poet.md": "---\nname: poet\ndescription: writes\n---\nWrite.",
    }.items():
        (kit / name).parent.mkdir(parents=True, exist_ok=True)
        (kit / name).write_text(said)
    plugins = [{"type": "local", "path": str(kit)}, {"type": "local", "path": str(tmp_path / "none")}]
    messages = await ask(place, "/p:loud hello", plugins=plugins)
    init = of_kind(messages, "SystemMessage")[0].data
    assert texts(messages) == ["hello!"]
    assert init["plugins"] == [{"name": "p", "path": str(kit.resolve()), "version": "1.0"}]
    assert [it["plugin"] for it in init["plugin_errors"]] == ["none"]
    assert {"p:loud", "p:plain"} <= set(init["slash_commands"]) and "p:poet" in init["agents"]


# REQ: SUR-3
@pytest.mark.parametrize(
    "answer, runs, said",
    [
        ('{"behavior": "allow", "updatedInput": {"command": "touch changed"}}', "changed", None),
        ('{"behavior": "allow"}', "wanted", None),
        ('{"behavior": "deny", "message": "not today"}', None, "not today"),
        ("perhaps", None, "no answer that can be read"),
        (None, None, "out of order"),
    ],
)
async def test_tool_in_the_program_answers_questions_and_is_not_for_the_model(place, answer, runs, said):
    asked = []

    @tool("ask", "Decides", {"tool_name": str, "input": dict, "tool_use_id": str})
    async def decide(given):
        asked.append(given)
        if answer is None:
            raise RuntimeError("out of order")
        return {"content": [{"type": "text", "text": answer}]}

    servers = {"guard": create_sdk_mcp_server(name="guard", version="1.0", tools=[decide])}
    messages = await ask(
        place,
        call("Bash", command="touch wanted"),
        mcp_servers=servers,
        permission_prompt_tool_name="mcp__guard__ask",
    )
    [question] = asked
    assert (question["tool_name"], question["input"]) == ("Bash", {"command": "touch wanted"})
    assert question["tool_use_id"]
    assert "mcp__guard__ask" not in of_kind(messages, "SystemMessage")[0].data["tools"]
    assert [it.name for it in place.work.iterdir()] == ([runs] if runs else [])
    [(text, is_error)] = results(messages)
    assert is_error == (said is not None) and (said or "") in text


# Answers every question in the same way, and notes what it was asked.
GUARD = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        told = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}}
        told["serverInfo"] = {"name": "guard", "version": "1"}
    elif asked["method"] == "tools/list":
        told = {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}
    else:
        open("asked", "a").write(json.dumps(asked["params"]["arguments"]) + "\\n")
        told = {"content": [{"type": "text", "text": sys.argv[1]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told}), flush=True)
"""


# REQ: SUR-3, HKS-1, TOL-11
async def test_plug_in_brings_hooks_and_servers(place):
    place.write("../kit/guard.py", GUARD)
    place.write("../kit/check.sh", "cat >> hooked; echo 'not in this kit' >&2; exit 2")
    check = {"type": "command", "command": 'sh "${CLAUDE_PLUGIN_ROOT}/check.sh"'}
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [check]}]}
    place.write("../kit/hooks/hooks.json", json.dumps({"description": "d", "hooks": hooks}))
    server = {"command": sys.executable, "args": ["${CLAUDE_PLUGIN_ROOT}/guard.py", "${HOME}|${ANTHROPIC_API_KEY}|${OWN_SECRET}"]}
    place.write("../kit/.mcp.json", json.dumps({"mcpServers": {"db": server}}))
    (place.config / "settings.json").write_text('{"ennead": {"secretEnv": ["OWN_SECRET"]}}')
    options = {"plugins": [{"type": "local", "path": str(place.work / "../kit")}], "env": {"OWN_SECRET": "s"}}
    messages = await ask(place, call("Bash", command="touch wanted"), **options)
    [(text, is_error)] = results(messages)
    assert is_error and "not in this kit" in text, text
    assert (place.work / "hooked").exists() and not (place.work / "wanted").exists()
    assert "mcp__plugin_kit_db__ask" in of_kind(messages, "SystemMessage")[0].data["tools"]
    name = "mcp__plugin_kit_db__ask"
    called = await ask(place, call(name, x=1), allowed_tools=[name], **options)
    # No secret is put into what a plug-in names.
    assert results(called) == [(f"{place.config}|${{ANTHROPIC_API_KEY}}|${{OWN_SECRET}}", False)]
    strict = await ask(place, "say one", extra_args={"strict-mcp-config": None}, **options)
    assert name not in of_kind(strict, "SystemMessage")[0].data["tools"]


# REQ: SUR-3
@pytest.mark.parametrize(
    "answer, runs, said",
    [
        ('{"behavior": "allow", "updatedInput": {"command": "touch changed"}}', "changed", None),
        ('{"behavior": "deny", "message": "not today"}', None, "not today"),
        ("perhaps", None, "no answer that can be read"),
    ],
)
async def test_tool_of_another_process_answers_questions_and_is_not_for_the_model(place, answer, runs, said):
    guard = place.write("../guard.py", GUARD)
    servers = {"guard": {"command": sys.executable, "args": [str(guard), answer]}}
    options = {"mcp_servers": servers, "permission_prompt_tool_name": "mcp__guard__ask"}
    messages = await ask(place, call("Bash", command="touch wanted"), **options)
    [question] = [json.loads(line) for line in (place.work / "asked").read_text().splitlines()]
    assert (question["tool_name"], question["input"]) == ("Bash", {"command": "touch wanted"})
    assert question["tool_use_id"]
    assert "mcp__guard__ask" not in of_kind(messages, "SystemMessage")[0].data["tools"]
    assert {it.name for it in place.work.iterdir()} == {"asked", *([runs] if runs else [])}
    [(text, is_error)] = results(messages)
    assert is_error == (said is not None) and (said or "") in text
    # The model cannot call it, and no rule can let it.
    called = await ask(place, call("mcp__guard__ask"), allowed_tools=["mcp__guard__ask"], **options)
    [(text, is_error)] = results(called)
    assert is_error, text


# REQ: SUR-3
async def test_server_of_a_repository_is_no_permission_tool(place):
    guard = place.write("../guard.py", GUARD)
    entry = {"command": sys.executable, "args": [str(guard), '{"behavior": "allow"}']}
    place.write(".mcp.json", json.dumps({"mcpServers": {"guard": entry}}))
    with pytest.raises(ProcessError):
        await ask(place, "say one", permission_prompt_tool_name="mcp__guard__ask")
    assert any("mcp__guard__ask" in line for line in place.stderr)


# REQ: SUR-3
async def test_permission_tool_that_is_not_there_ends_the_process_with_its_name(place):
    with pytest.raises(ProcessError):
        await ask(place, "say one", permission_prompt_tool_name="mcp__none__ask")
    assert any("mcp__none__ask" in line for line in place.stderr)
