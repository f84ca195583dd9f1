"""What the tests of the API share: a server with a simulated model, its document, and a generated client."""

import contextlib
import importlib
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import urllib.request

import pytest

HERE = pathlib.Path(__file__).parent
ENNEAD = os.environ["ENNEAD"]
# Seconds that one step may take; most of it is the machine that runs the tests.
PATIENCE = 60


def address(process):
    """The address in the first line of standard output, within the patience."""
    lines = queue.Queue()
    threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()
    return next(word for word in lines.get(timeout=PATIENCE).split() if word.startswith("http"))


@contextlib.contextmanager
def running(command, **options):
    """A program that names its address, and is gone at the end."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    try:
        yield address(process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE)


class Server:
    """A running server, and tokens for it."""

    def __init__(self, url, admin, viewer):
        self.url = url
        self.admin = admin
        self.viewer = viewer

    def get(self, path):
        """The body of a path as text, as an admin reads it."""
        request = urllib.request.Request(self.url + path, headers={"authorization": f"Bearer {self.admin}"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return response.read().decode()


@pytest.fixture
def server(tmp_path):
    directory = str(tmp_path / "server")
    (tmp_path / "home").mkdir()
    with running([ENNEAD, "simulate", "--playbook", str(HERE / "api.toml")]) as model:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path / "home"),
            "ANTHROPIC_BASE_URL": model,
            "ANTHROPIC_API_KEY": "test",
        }

        def token(name, role):
            command = [ENNEAD, "serve", "--dir", directory, "token", "add", name, "--tenant", "acme", "--role", role]
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE)
            assert done.returncode == 0, done.stderr
            return done.stdout.strip()

        admin, viewer = token("admin", "admin"), token("viewer", "viewer")
        command = [ENNEAD, "serve", "--dir", directory, "--listen", "127.0.0.1:0", "--drain", "1"]
        with open(tmp_path / "server.log", "ab") as log, running(command, env=env, stderr=log) as url:
            yield Server(url, admin, viewer)


@pytest.fixture
def document(server):
    return json.loads(server.get("/openapi.json"))


class Generated:
    """The generated client: its modules by name, and who asks."""

    def __init__(self, url):
        self.url = url
        self.models = importlib.import_module("ennead_api.models")
        self.types = importlib.import_module("ennead_api.types")

    def by(self, token):
        client = importlib.import_module("ennead_api.client")
        return client.AuthenticatedClient(self.url, token, timeout=PATIENCE)

    def call(self, tag, operation, client, *args, **fields):
        """Runs an operation and returns its status, the object the client parsed, and the bytes."""
        module = importlib.import_module(f"ennead_api.api.{tag}.{operation}")
        response = module.sync_detailed(*args, client=client, **fields)
        return response.status_code, response.parsed, response.content


@pytest.fixture
def generated(tmp_path, server, document):
    """A client made from the server's document. A warning of the generator is a fault of the document."""
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    # The generator knows JSON and text; lines of JSON are text to it.
    config = {"content_type_overrides": {"application/x-ndjson": "text/plain"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    package = tmp_path / "client" / "ennead_api"
    package.parent.mkdir()
    command = [
        sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning", "--meta", "none",
        "--path", str(tmp_path / "openapi.json"), "--config", str(tmp_path / "config.json"), "--output-path", str(package),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(package.parent))
    yield Generated(server.url)
    sys.path.remove(str(package.parent))
    for name in [it for it in sys.modules if it.split(".")[0] == "ennead_api"]:
        del sys.modules[name]
