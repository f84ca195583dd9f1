"""What the tests of the page share: a server with a simulated model, and a browser that watches itself."""

import json
import os
import pathlib
import queue
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import sync_playwright

HERE = pathlib.Path(__file__).parent
ENNEAD = os.environ["ENNEAD"]
# Seconds that anything on the page may take; most of it is the machine that runs the tests.
PATIENCE = 30


def first_line(process):
    """The first line of standard output, within the patience."""
    lines = queue.Queue()
    threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()
    return lines.get(timeout=PATIENCE).strip()


def stop(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(PATIENCE)


@pytest.fixture(scope="session")
def model():
    """The simulated model as a server, with the playbook of these tests."""
    command = [ENNEAD, "simulate", "--playbook", str(HERE / "page.toml")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = first_line(process)
    yield next(word for word in line.split() if word.startswith("http"))
    stop(process)


class Server:
    """A server on a port of its own, which can be stopped and started again."""

    def __init__(self, root, model):
        self.root = root
        self.port = 0
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            "ANTHROPIC_BASE_URL": model,
            "ANTHROPIC_API_KEY": "test",
        }
        (root / "home").mkdir(parents=True)
        # One for the page and one for programs: the limit on requests is per token, and a flood of a
        # program's would have the page refused.
        self.token, self.program = (
            self.run("token", "add", name, "--tenant", "acme", "--role", "admin").strip() for name in ("tests", "program")
        )
        self.process = None
        self.start()

    def run(self, *args):
        command = [ENNEAD, "serve", "--dir", str(self.root / "server"), *args]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self):
        command = [ENNEAD, "serve", "--dir", str(self.root / "server"), "--listen", f"127.0.0.1:{self.port}", "--drain", "1"]
        log = open(self.root / "server.log", "ab")
        self.process = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, stderr=log, text=True)
        self.url = next(word for word in first_line(self.process).split() if word.startswith("http"))
        self.port = int(self.url.rsplit(":", 1)[1])

    def stop(self):
        stop(self.process)

    def ask(self, path, body=None, prefer=""):
        """Asks the API as a program would, and waits where it is asked to."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self.program}", "content-type": "application/json", "prefer": prefer}
        request = urllib.request.Request(f"{self.url}/v1{path}", data, headers)
        for _ in range(100):
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                    return json.loads(response.read() or b"{}")
            except urllib.error.HTTPError as error:
                if error.code != 429:
                    raise AssertionError(error.read()) from error
                time.sleep(float(error.headers["retry-after"]))
        raise AssertionError("refused too often")

    def session(self, title, directory=None):
        return self.ask("/sessions", {"title": title, "directory": directory or title.replace(" ", "-")})

    def directory(self, session):
        return self.root / "server" / "work" / "acme" / session["directory"]

    def prompt(self, session, prompt, prefer=""):
        return self.ask(f"/sessions/{session['id']}/runs", {"prompt": prompt}, prefer)


@pytest.fixture
def server(tmp_path, model):
    server = Server(tmp_path, model)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["BROWSER_PROGRAM"], args=["--no-sandbox"])
        yield browser
        browser.close()


class Guard:
    """Notes what a page must not do: errors in the console, violations of the policy, other hosts."""

    def __init__(self, page, home):
        self.errors = []
        self.others = []
        page.on("console", lambda it: self.errors.append(it.text) if it.type in ("error", "warning") else None)
        page.on("pageerror", lambda it: self.errors.append(str(it)))
        page.on("request", lambda it: None if it.url.startswith((home, "data:")) else self.others.append(it.url))
        page.add_init_script(
            "document.addEventListener('securitypolicyviolation',"
            "(event) => console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI))"
        )

    def check(self, *allowed):
        errors = [it for it in self.errors if not any(part in it for part in allowed)]
        assert not errors, errors
        assert not self.others, self.others


@pytest.fixture
def page(browser, server):
    """A page of the server, signed in. What it does wrong fails the test at its end."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    page.guard = Guard(page, server.url)
    page.allowed = ()
    sign_in(page, server)
    yield page
    page.guard.check(*page.allowed)
    context.close()


def until(page, condition):
    """Waits until an expression holds in the page. Playwright's own way needs `eval`, which the policy forbids."""
    page.evaluate(
        f"""async () => {{
            const end = performance.now() + {PATIENCE * 1000};
            while (!({condition})) {{
                if (end < performance.now()) throw new Error("it does not hold");
                await new Promise(requestAnimationFrame);
            }}
        }}"""
    )


def sign_in(page, server):
    page.goto(server.url)
    page.fill("#token", server.token)
    page.keyboard.press("Enter")
    page.wait_for_selector('#link[data-how="live"]')


def open_session(page, session):
    page.click(f'.session:has-text("{session["title"]}")')
    page.wait_for_selector(f'#session-title:has-text("{session["title"]}")')
