"""The page that `ennead trace --html` writes: offline, in one file, and hostile inside."""

import json
import subprocess

import pytest

from conftest import ENNEAD, PATIENCE, Guard, until


def write_page(file, place):
    done = subprocess.run([ENNEAD, "trace", "--html", str(file)], cwd=place, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return place / done.stdout.strip()


@pytest.fixture
def opened(browser):
    context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)

    def open_file(file):
        page = context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.guard = Guard(page, "file://")
        page.goto(file.as_uri())
        page.wait_for_selector('#link[data-how="recorded"]')
        return page

    yield open_file
    for page in context.pages:
        page.guard.check()
    context.close()


def test_a_transcript_of_the_past_is_shown_with_its_sub_agents(opened, server, tmp_path):
    session = server.session("Past")
    run = server.prompt(session, "send eight", f"wait={PATIENCE - 5}")
    assert run["state"] == "finished", run
    file = next((server.root / "server" / "state" / "transcripts").rglob(f"{session['id']}.jsonl"))
    page = opened(write_page(file, tmp_path))
    page.wait_for_selector('.message[data-role="assistant"] .prose:has-text("All 8 are back.")')
    assert page.inner_text("#tally") == "9 transcripts"
    page.click('.session:has-text("Part 3")')
    page.wait_for_selector('.prose:has-text("This part is in order.")')
    assert page.query_selector('.steps > li[data-state="past"]')
    assert not page.is_visible("#composer") and not page.is_visible("#start")


def line(n, text):
    return json.dumps({"type": "user", "uuid": f"u{n}", "parentUuid": None, "sessionId": "s", "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": text}})


def test_nothing_of_a_hostile_transcript_runs(opened, tmp_path):
    texts = [
        "</script><script>window.taken = 1</script>",
        "<!--<script>",
        "\u202e]]>&lt;\u2028\u2029",
        "<img src=x onerror=window.taken=2>",
        "javascript:window.taken=3",
    ]
    lines = [line(n, it) for n, it in enumerate(texts)]
    lines += ["not json </script>", "[]", "null", '{"type":"ennead","kind":"turn_step","turn":1,"number":"x","detail":null}', '{"type":"ennead","kind":"model_attempt","usage":5,"turn":-1}', '{"type":"assistant","message":{"content":[{"type":"tool_use","id":{},"name":[],"input":3},null,5]}}', '{"type":"user","__proto__":{"polluted":1},"message":{"content":[{"type":"tool_result","tool_use_id":"__proto__","content":[{}]}]}}']
    (tmp_path / "hostile.jsonl").write_text("\n".join(lines) + "\n")
    page = opened(write_page(tmp_path / "hostile.jsonl", tmp_path))
    page.wait_for_selector('.prose:has-text("window.taken = 1")')
    assert "⟨U+202E⟩" in page.inner_text(".messages")
    assert page.evaluate("[window.taken, {}.polluted, document.querySelector('main img')]") == [None, None, None]


def test_a_long_transcript_makes_a_page_of_bounded_size_and_few_elements(opened, tmp_path):
    with open(tmp_path / "long.jsonl", "w") as file:
        for n in range(5000):
            file.write(line(n, f"line {n} " + "word " * 400) + "\n")
        file.write(line(9999, "x" * 3_000_000) + "\n")
    assert 12_000_000 < (tmp_path / "long.jsonl").stat().st_size
    html = write_page(tmp_path / "long.jsonl", tmp_path)
    assert html.stat().st_size < 32_000_000
    page = opened(html)
    page.wait_for_selector(".message")
    assert page.evaluate("document.querySelectorAll('*').length") < 4000
    assert page.inner_text(".earlier").startswith("Show earlier messages")
    page.click(".earlier")
    until(page, "document.querySelectorAll('.message').length > 200")


def test_a_page_that_is_there_already_is_kept(tmp_path):
    (tmp_path / "t.jsonl").write_text(line(1, "hello") + "\n")
    (tmp_path / "t.html").write_text("mine")
    done = subprocess.run([ENNEAD, "trace", "--html", "t.jsonl"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2 and "t.html" in done.stderr
    assert (tmp_path / "t.html").read_text() == "mine"
    done = subprocess.run([ENNEAD, "trace", "--html=other.html", "t.jsonl"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0 and (tmp_path / "other.html").stat().st_mode & 0o077 == 0
