"""Level 3: what an answer to a question about permission changes in the rules of the session."""

import json

import pytest
from claude_agent_sdk import ClaudeSDKClient, PermissionResultAllow, PermissionUpdate
from claude_agent_sdk.types import PermissionRuleValue
from conftest import call, collect, results

pytestmark = pytest.mark.anyio


class Person:
    """Answers each question with the updates that wait for it, and keeps what it was asked."""

    def __init__(self, *updates):
        self.waiting = list(updates)
        self.asked = []

    async def __call__(self, name, given, context):
        self.asked.append(given.get("command") or given.get("file_path"))
        updates = self.waiting.pop(0) if self.waiting else None
        return PermissionResultAllow(updated_permissions=updates)


def rules(kind, *specs, behavior="allow", destination="session"):
    values = [PermissionRuleValue(tool_name="Bash", rule_content=it) for it in specs]
    return PermissionUpdate(type=kind, rules=values, behavior=behavior, destination=destination)


async def run_all(place, person, *prompts, **options):
    """What each call gave, in one session."""
    found = []
    async with ClaudeSDKClient(place.options(can_use_tool=person, **options)) as client:
        for prompt in prompts:
            await client.query(prompt)
            messages = await collect(client.receive_response())
            found.append(results(messages)[0])
    return found


# REQ: PRM-9
async def test_rule_that_an_answer_adds_covers_the_next_call_and_no_other(place):
    person = Person([rules("addRules", "touch *")])
    touches = [call("Bash", command=f"touch {it}") for it in "ab"]
    await run_all(place, person, *touches, call("Bash", command="mkdir c"))
    assert person.asked == ["touch a", "mkdir c"]
    assert all((place.work / it).exists() for it in "abc")


# REQ: PRM-9
async def test_rules_that_an_answer_replaces_are_those_of_their_kind_alone(place):
    person = Person([rules("addRules", "touch *", "mkdir *")], [rules("replaceRules", "rmdir *")])
    commands = ["touch a", "rmdir none", "mkdir b", "touch c", "rmdir b"]
    await run_all(place, person, *[call("Bash", command=it) for it in commands])
    assert person.asked == ["touch a", "rmdir none", "mkdir b", "touch c"]
    assert not (place.work / "b").exists()


# REQ: PRM-9
async def test_rule_that_an_answer_removes_covers_nothing_more(place):
    person = Person([rules("addRules", "touch *")], [rules("removeRules", "touch *")])
    commands = ["touch a", "touch b", "mkdir c", "touch d"]
    await run_all(place, person, *[call("Bash", command=it) for it in commands])
    assert person.asked == ["touch a", "mkdir c", "touch d"]


# REQ: PRM-2, PRM-9
async def test_deny_rule_of_an_answer_holds_from_the_next_call_on(place):
    person = Person([rules("addRules", "touch *", behavior="deny")])
    commands = [call("Bash", command=it) for it in ("mkdir a", "touch b")]
    found = await run_all(place, person, *commands, allowed_tools=["Bash(touch *)"])
    assert person.asked == ["mkdir a"]
    assert found[1][1] and not (place.work / "b").exists()


# REQ: PRM-9
async def test_directory_that_an_answer_adds_is_part_of_the_workspace_until_it_is_removed(place):
    other = place.work.parent / "other"
    other.mkdir()
    for name in "abc":
        (other / name).write_text(f"text of {name}\n")
    directories = [str(other)]
    person = Person(
        [PermissionUpdate(type="addDirectories", directories=directories, destination="session")],
        [PermissionUpdate(type="removeDirectories", directories=directories, destination="session")],
    )
    reads = [call("Read", file_path=str(other / it)) for it in "abc"]
    found = await run_all(place, person, reads[0], reads[1], call("Bash", command="mkdir x"), reads[2])
    assert person.asked == [str(other / "a"), "mkdir x", str(other / "c")]
    assert "text of b" in found[1][0]


# REQ: PRM-4, PRM-9
async def test_mode_that_an_answer_sets_holds_from_the_next_call_on(place):
    person = Person([PermissionUpdate(type="setMode", mode="acceptEdits", destination="session")])
    writes = [call("Write", file_path=str(place.work / it), content=it) for it in "ab"]
    await run_all(place, person, *writes)
    assert person.asked == [str(place.work / "a")]
    assert (place.work / "b").read_text() == "b"


# REQ: PRM-9
async def test_rule_for_a_settings_file_is_there_for_the_next_session(place):
    person = Person([rules("addRules", "touch *", destination="userSettings")])
    await run_all(place, person, call("Bash", command="touch a"))
    saved = json.loads((place.config / "settings.json").read_text())
    assert saved["permissions"]["allow"] == ["Bash(touch *)"]
    again = Person()
    await run_all(place, again, call("Bash", command="touch b"), setting_sources=["user"])
    assert again.asked == [] and (place.work / "b").exists()
