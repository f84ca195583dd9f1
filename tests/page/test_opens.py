"""Signing in, and what the page shows first."""

from conftest import Guard, open_session, until


def test_the_token_is_asked_for_and_kept_in_the_tab_alone(browser, server):
    page = browser.new_context().new_page()
    guard = Guard(page, server.url)
    answer = page.goto(server.url)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "'unsafe" not in policy, policy
    page.fill("#token", "wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector("#sign-in .problem:not([hidden])")
    page.fill("#token", server.token)
    page.keyboard.press("Enter")
    page.wait_for_selector('#link[data-how="live"]')
    assert server.token not in page.url
    kept = page.evaluate("[Object.values(sessionStorage), Object.values(localStorage), document.cookie]")
    assert kept == [[server.token], [], ""]
    assert server.token not in page.content()
    guard.check("401")


def test_a_token_in_the_address_is_taken_out_of_it(browser, server):
    page = browser.new_context().new_page()
    page.goto(f"{server.url}/#token={server.token}")
    page.wait_for_selector('#link[data-how="live"]')
    assert page.url == f"{server.url}/"
    assert page.evaluate("history.length") <= 2


def test_a_prompt_of_a_new_session_is_answered_in_the_conversation(page):
    page.click("#start")
    page.fill("#new-name", "Greeting")
    page.fill("#new-prompt", "say hello there")
    page.click('#new-session button[value="start"]')
    page.wait_for_selector('.message[data-role="assistant"] .prose:has-text("hello there")')
    page.wait_for_selector(".end")
    assert page.inner_text("#session-title") == "Greeting"
    page.wait_for_selector('.steps > li[data-state="past"] >> nth=4')
    page.fill("#prompt", "say once more")
    page.keyboard.press("Enter")
    page.wait_for_selector('.message[data-role="assistant"] .prose:has-text("once more")')
    assert page.input_value("#prompt") == ""


def test_text_of_a_model_makes_no_elements_and_hides_nothing(page, server):
    session = server.session("Hostile <b>title</b>", "hostile")
    server.prompt(session, "hostile")
    page.click('.session:has-text("Hostile")')
    page.wait_for_selector(".end")
    shown = page.inner_text('.message[data-role="assistant"] .prose')
    for mark in ("</script><img src=x", "<b>bold</b>", "⟨U+202E⟩gpj.exe⟨U+2066⟩", "␇bell", "⟨U+200B⟩zero"):
        assert mark in shown, shown
    assert page.evaluate("window.taken") is None
    assert page.query_selector("main img, main b, .side b") is None


def test_a_turn_shows_its_nine_steps_its_context_and_its_use(page, server):
    session = server.session("Figures")
    (server.directory(session) / "notes.txt").write_text("alpha\n")
    server.prompt(session, "say done")
    open_session(page, session)
    page.wait_for_selector(".end")
    until(page, "document.querySelectorAll('.steps > li .ms').length === 9")
    assert len(page.query_selector_all(".steps > li")) == 9
    page.click('.steps > li[data-n="5"] summary')
    page.wait_for_selector('.attempts:has-text("turn: ok")')
    page.click('.steps > li[data-n="4"] summary')
    page.wait_for_selector(".steps .shapers li >> nth=4")
    page.click("#tab-context")
    page.wait_for_selector("#panel-context tbody tr >> nth=8")
    page.wait_for_selector(".context-bar .segment")
    page.click("#tab-usage")
    page.wait_for_selector('#panel-usage .bigs:has-text("tokens")')
    page.wait_for_selector("#panel-usage svg.chart polygon", state="attached")
