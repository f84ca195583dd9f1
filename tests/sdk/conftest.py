"""What the tests of the Agent SDK share: the model server, a directory for each test, and options."""

import json
import os
import pathlib
import subprocess

import pytest
from claude_agent_sdk import ClaudeAgentOptions

HERE = pathlib.Path(__file__).parent
ENNEAD = os.environ["ENNEAD"]


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def server():
    """The simulated model as a server, with the playbook of these tests."""
    command = [ENNEAD, "simulate", "--playbook", str(HERE / "sdk.toml")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    yield next(word for word in line.split() if word.startswith("http"))
    process.terminate()
    process.wait(10)


class Place:
    """A working directory, a configuration directory, and the lines of standard error."""

    def __init__(self, root, server):
        self.work = root / "work"
        self.config = root / "config"
        self.work.mkdir()
        self.config.mkdir()
        self.server = server
        self.stderr = []
        self.run = root / "run"
        self.hosting = None

    def host(self):
        """Starts the process that serves the sessions of this place, where the tests are run with ENNEAD_HOSTED=1."""
        self.run.mkdir(mode=0o700)
        command = [ENNEAD, "host"]
        env = {**os.environ, **self.env()}
        self.hosting = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, cwd=self.run)
        assert self.hosting.stdout.readline().strip().endswith("host.sock")

    def env(self):
        return {
            "XDG_RUNTIME_DIR": str(self.run),
            "PYTEST_CURRENT_TEST": "",
            "CLAUDE_CONFIG_DIR": str(self.config),
            "ANTHROPIC_BASE_URL": self.server,
            "ANTHROPIC_API_KEY": "test",
            "HOME": str(self.config),
        }

    def options(self, **changes):
        env = {**self.env(), **changes.pop("env", {})}
        if self.hosting:
            changes["extra_args"] = {"host": "auto", **changes.get("extra_args", {})}
        fixed = {"cli_path": ENNEAD, "cwd": str(self.work), "stderr": self.stderr.append}
        return ClaudeAgentOptions(env=env, **{**fixed, **changes})

    def write(self, name, text):
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@pytest.fixture
def place(tmp_path, server):
    place = Place(tmp_path, server)
    if os.environ.get("ENNEAD_HOSTED") == "1":
        place.host()
    yield place
    if place.hosting:
        place.hosting.terminate()
        assert place.hosting.wait(20) == 0


async def collect(messages):
    return [message async for message in messages]


def of_kind(messages, kind):
    return [message for message in messages if type(message).__name__ == kind]


def texts(messages):
    blocks = [block for message in of_kind(messages, "AssistantMessage") for block in message.content]
    return [block.text for block in blocks if hasattr(block, "text")]


def call(tool, **fields):
    """A prompt that has the model call this tool."""
    return f"call {tool} {json.dumps(fields)}"


def results(messages):
    """Texts of the results of calls, and whether they are errors."""
    blocks = [it for message in of_kind(messages, "UserMessage") for it in message.content]
    return [(it.content, bool(it.is_error)) for it in blocks if hasattr(it, "tool_use_id")]
