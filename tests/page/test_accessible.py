"""Names, roles, contrast, the keyboard, narrow screens, and less motion."""

import pathlib

import pytest

from conftest import Guard, open_session, sign_in, until

AUDIT = (pathlib.Path(__file__).parent / "audit.js").read_text()


def check(page, what):
    # What was asked for is drawn with the next frame.
    page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
    wrong = page.evaluate(AUDIT)
    assert not wrong, f"{what}: " + "\n".join(wrong[:20])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_has_names_roles_and_contrast(browser, server, scheme):
    session = server.session("Audit")
    notes = server.directory(session) / "notes.txt"
    notes.write_text("alpha\nbeta\n")
    server.prompt(session, f"edit {notes}")
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    guard = Guard(page, server.url)
    page.goto(server.url)
    page.wait_for_selector("#sign-in[open]")
    check(page, "sign in")
    sign_in(page, server)
    page.wait_for_selector("#all-questions .question")
    check(page, "overview")
    page.click("#start")
    check(page, "new session")
    page.click('#new-session button[value="cancel"]')
    page.keyboard.press("?")
    page.wait_for_selector("#help-box[open]")
    check(page, "help")
    page.keyboard.press("Escape")
    open_session(page, session)
    page.wait_for_selector("#questions .question")
    for call in page.query_selector_all(".call summary"):
        call.click()
    for step in page.query_selector_all(".step summary"):
        step.click()
    check(page, "turns")
    for tab in ("context", "usage", "actors"):
        page.click(f"#tab-{tab}")
        check(page, tab)
    page.click("#questions button.primary")
    page.wait_for_selector(".end")
    check(page, "after the run")
    guard.check()
    context.close()


def test_one_can_do_everything_by_the_keyboard(page, server):
    session = server.session("Keys")
    page.wait_for_selector('.session:has-text("Keys")')
    page.keyboard.press("l")
    page.keyboard.press("Enter")
    page.wait_for_selector("#session-title:has-text('Keys')")
    page.keyboard.press("i")
    page.keyboard.type("say typed")
    page.keyboard.press("Enter")
    page.wait_for_selector('.message[data-role="assistant"] .prose:has-text("typed")')
    page.keyboard.press("Escape")
    page.keyboard.press("3")
    assert page.get_attribute("#tab-context", "aria-selected") == "true"
    page.focus("#tab-context")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-usage"
    notes = server.directory(session) / "notes.txt"
    notes.write_text("beta\n")
    server.prompt(session, f"edit {notes}")
    page.wait_for_selector("#questions .question")
    page.keyboard.press("q")
    until(page, "document.activeElement.textContent === 'Allow'")
    page.keyboard.press("Enter")
    page.wait_for_selector('.prose:has-text("The edit says:")')
    assert notes.read_text() == "gamma\n"


def test_shortcuts_of_one_key_can_be_switched_off(page):
    page.keyboard.press("?")
    page.click("#single-keys")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    assert not page.is_visible("#new-session")
    page.click("#help")
    page.click("#single-keys")
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.wait_for_selector("#new-session[open]")


def test_a_screen_of_360_pixels_needs_no_scrolling_sideways(page, server):
    session = server.session("A title that is long enough to be cut on a narrow screen")
    server.prompt(session, "say " + "aVeryLongWordThatCannotBeBroken" * 20)
    page.set_viewport_size({"width": 360, "height": 640})
    wide = "document.documentElement.scrollWidth > 360 || [...document.querySelectorAll('.panel, .side, main')].some((it) => it.scrollWidth > it.clientWidth + 1)"
    assert not page.evaluate(wide)
    page.click(".session")
    page.wait_for_selector(".end")
    for tab in ("conversation", "turns", "context", "usage", "actors"):
        page.click(f"#tab-{tab}")
        page.wait_for_selector(f"#panel-{tab}:not([hidden]) > :not([hidden])")
        assert not page.evaluate(wide), tab
    page.click("#back")
    page.wait_for_selector("#side")
    assert page.is_visible("#list")


def test_nothing_moves_where_less_motion_is_asked_for(browser, server):
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    sign_in(page, server)
    moving = page.evaluate("document.getAnimations().length")
    assert moving == 0
    context.close()


def test_the_colours_can_be_chosen(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.click("#theme")
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(ground) != light
    page.reload()
    page.wait_for_selector('#link[data-how="live"]')
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_what_happens_is_announced(page, server):
    session = server.session("Spoken")
    open_session(page, session)
    page.evaluate(
        """() => {
            window.spoken = [];
            const region = document.getElementById('announcer');
            new MutationObserver(() => spoken.push(region.textContent.trim())).observe(region, { childList: true, characterData: true, subtree: true });
        }"""
    )
    page.fill("#prompt", "say aloud")
    page.keyboard.press("Enter")
    until(page, "window.spoken.some((it) => it.startsWith('The run has ended'))")
    assert page.get_attribute("#announcer", "aria-live") == "polite"
