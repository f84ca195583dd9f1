"""Takes the pictures of docs/page.md: `tests/page/run --pictures`."""

import os
import pathlib
import tempfile

from conftest import Server, open_session, sign_in

# Bytes of a picture at most, so that the repository stays small.
MAX_BYTES = 200_000


# The pictures that the page shows, and the colours of each.
WANTED = {"overview": "light", "question": "light", "turn": "dark", "context": "light", "narrow": "dark"}


def shoot(page, name, scheme):
    if WANTED.get(name) != scheme:
        return
    file = pathlib.Path(os.environ["PICTURES"]) / f"{name}.png"
    file.parent.mkdir(exist_ok=True)
    # What fades in or is measured anew is at rest two frames later.
    page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
    page.screenshot(path=file, animations="disabled")
    assert file.stat().st_size < MAX_BYTES, file


NOTES = """\
# Release notes

* Sessions resume.
* Faster.
* Every refusal says when to ask again.
"""


def test_pictures(browser, model):
    place = tempfile.TemporaryDirectory(prefix="ennead-")
    server = Server(pathlib.Path(place.name), model)
    try:
        for title in ("Triage flaky tests", "Answer a customer", "Port the parser", "Review the gate", "Summarise incidents"):
            session = server.session(title)
            server.prompt(session, f"say {title}: done, and nothing is left over.", "wait=20")
        eight = server.session("Survey eight folders")
        server.prompt(eight, "send eight", "wait=25")
        server.prompt(server.session("Write the handbook"), "slowly")
        edit = server.session("Polish the release notes")
        notes = server.directory(edit) / "notes.md"
        notes.write_text(NOTES)
        server.prompt(edit, f"Polish {notes} for people who have not seen the code.")
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
            page = context.new_page()
            sign_in(page, server)
            page.wait_for_selector("#all-questions .question")
            page.wait_for_selector("#all-actors [role=treeitem]")
            shoot(page, "overview", scheme)
            open_session(page, edit)
            page.wait_for_selector("#questions .question")
            page.wait_for_selector('.steps > li[data-state="past"]')
            shoot(page, "question", scheme)
            open_session(page, eight)
            page.wait_for_selector(".end")
            page.click(".strip button >> nth=0")
            page.click('.steps > li[data-n="5"] summary')
            shoot(page, "turn", scheme)
            page.click("#tab-context")
            shoot(page, "context", scheme)
            page.set_viewport_size({"width": 360, "height": 720})
            page.click("#tab-turns")
            shoot(page, "narrow", scheme)
            context.close()
    finally:
        server.stop()
        place.cleanup()
