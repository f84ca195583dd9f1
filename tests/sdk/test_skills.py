"""Level 4: skills and commands of files."""

import json

import pytest
from claude_agent_sdk import ClaudeSDKClient, query
from conftest import call, collect, of_kind, results, texts

pytestmark = pytest.mark.anyio

SKILL = "---\ndescription: Makes pots of clay\n---\nTurn the wheel for $ARGUMENTS."


async def ask(place, prompt, **options):
    return await collect(query(prompt=prompt, options=place.options(**options)))


# REQ: SUR-3
async def test_skill_is_offered_by_its_description_and_loaded_when_it_is_called(place):
    place.write(".claude/skills/pot/SKILL.md", SKILL)
    messages = await ask(place, call("Skill", skill="pot", args="a vase"), skills=["pot"])
    init = of_kind(messages, "SystemMessage")[0].data
    assert init["skills"] == ["pot"] and "Skill" in init["tools"]
    [(text, is_error)] = results(messages)
    assert not is_error and "Turn the wheel for a vase." in text
    assert f"{place.work}/.claude/skills/pot" in text


# REQ: SUR-3
async def test_skill_that_a_program_does_not_name_is_not_for_its_model(place):
    place.write(".claude/skills/pot/SKILL.md", SKILL)
    place.write(".claude/skills/pan/SKILL.md", SKILL)
    [(text, is_error)] = results(await ask(place, call("Skill", skill="pan"), skills=["pot"]))
    assert is_error and "pot" in text
    denied = {"skills": ["pot"], "disallowed_tools": ["Skill(pot)"]}
    assert results(await ask(place, call("Skill", skill="pot"), **denied))[0][1]
    init = of_kind(await ask(place, "say hi", skills=[]), "SystemMessage")[0].data
    assert "Skill" not in init["tools"] and init["skills"] == []


# REQ: SUR-3
async def test_command_of_a_file_is_called_by_its_name_with_arguments(place):
    place.write(".claude/commands/loud.md", "---\ndescription: Speaks\n---\nsay $1 and $0")
    async with ClaudeSDKClient(place.options(setting_sources=["project"])) as client:
        info = await client.get_server_info()
        await client.query("/loud one 'two three'")
        messages = await collect(client.receive_response())
    assert [it["name"] for it in info["commands"]] == ["clear", "compact", "loud"]
    assert of_kind(messages, "SystemMessage")[0].data["slash_commands"] == ["clear", "compact", "loud"]
    assert texts(messages) == ["two three and one"]


# REQ: SUR-3
async def test_prompt_that_a_program_composed_and_one_of_no_command_are_taken_as_they_are(place):
    place.write(".claude/commands/loud.md", "say it")

    async def prompts():
        message = {"role": "user", "content": "/loud"}
        yield {"type": "user", "message": message, "client_composed": True}

    options = {"setting_sources": ["project"]}
    messages = await collect(query(prompt=prompts(), options=place.options(**options)))
    assert texts(messages) == ["heard: /loud"]
    assert texts(await ask(place, "/quiet please", **options)) == ["heard: /quiet please"]


# REQ: SUR-3
async def test_skills_and_commands_of_a_source_that_is_left_out_are_not_there(place):
    place.write(".claude/commands/loud.md", "say it")
    messages = await ask(place, "/loud", setting_sources=[])
    assert of_kind(messages, "SystemMessage")[0].data["slash_commands"] == ["clear", "compact"]
    assert texts(messages) == ["heard: /loud"]
