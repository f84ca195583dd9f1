"""Watching sub-agents, answering questions, interrupting, and coming back after a restart."""

from conftest import open_session, until


def test_eight_sub_agents_live_and_die_in_the_tree(page, server):
    session = server.session("Eight")
    open_session(page, session)
    page.click("#tab-actors")
    page.evaluate(
        """() => {
            window.seen = new Set();
            const note = () => document.querySelectorAll('#panel-actors [role="treeitem"]').forEach((it) => {
                if (it.textContent.includes('sub agent') && it.dataset.state !== 'ended') seen.add(it.dataset.id);
            });
            new MutationObserver(note).observe(document.querySelector('#panel-actors'), { childList: true, subtree: true, characterData: true, attributes: true });
        }"""
    )
    page.fill("#prompt", "send eight")
    page.keyboard.press("Enter")
    until(page, "window.seen.size === 8")
    page.wait_for_selector('.message[data-role="assistant"] .prose:has-text("All 8 are back.")')
    calls = page.query_selector_all('.call:has(.tool:text-is("Agent"))')
    assert len(calls) == 8
    page.wait_for_selector('.call[data-state="done"] >> nth=7')
    calls[2].query_selector("summary").click()
    page.click(".open-agent")
    page.wait_for_selector('.message[data-role="assistant"] .prose:has-text("This part is in order.")')
    page.go_back()
    page.wait_for_selector('.prose:has-text("All 8 are back.")')
    until(
        page,
        """![...document.querySelectorAll('#panel-actors [role="treeitem"]')]
            .some((it) => it.textContent.includes('sub agent') && it.dataset.state !== 'ended')"""
    )


def ask(page, server, title):
    session = server.session(title)
    notes = server.directory(session) / "notes.txt"
    notes.write_text("alpha\nbeta\nomega\n")
    open_session(page, session)
    page.fill("#prompt", f"edit {notes}")
    page.keyboard.press("Enter")
    page.wait_for_selector("#questions .question")
    return notes


def test_an_edit_is_shown_as_a_diff_and_done_when_it_is_allowed(page, server):
    notes = ask(page, server, "Allowed")
    assert page.inner_text("#questions .diff .gone .code") == "beta"
    assert page.inner_text("#questions .diff .new .code") == "gamma"
    assert notes.read_text() == "alpha\nbeta\nomega\n"
    page.wait_for_selector("#asks:not([hidden])")
    page.click("#questions button.primary")
    page.wait_for_selector('.message[data-role="assistant"] .prose:has-text("The edit says:")')
    assert notes.read_text() == "alpha\ngamma\nomega\n"
    page.wait_for_selector("#asks", state="hidden")
    call = page.wait_for_selector('.call[data-state="done"]:has(.tool:text-is("Edit"))')
    call.query_selector("summary").click()
    call.wait_for_selector('.facts:has-text("Stage"):has-text("allowed")')


def test_the_model_reads_why_an_edit_was_denied(page, server):
    notes = ask(page, server, "Denied")
    page.fill("#questions .answer input", "not on a Friday")
    page.keyboard.press("Enter")
    page.wait_for_selector('.prose:has-text("not on a Friday")')
    assert notes.read_text() == "alpha\nbeta\nomega\n"
    page.wait_for_selector('.call[data-state="denied"]')


def test_a_run_is_interrupted_while_it_streams(page, server):
    session = server.session("Slow")
    open_session(page, session)
    page.fill("#prompt", "slowly")
    page.keyboard.press("Enter")
    page.wait_for_selector('.streaming .prose:has-text("One word after")')
    page.wait_for_selector(".composer fieldset:not([hidden])")
    page.click("[data-interrupt]")
    page.wait_for_selector('.end:has-text("interrupted")')
    page.wait_for_selector("[data-interrupt]", state="hidden")


def test_the_page_comes_back_by_itself_after_the_server_was_restarted(page, server):
    # A browser writes a failed connection to the console whatever a page does.
    page.allowed = ("ERR_CONNECTION", "ERR_INCOMPLETE_CHUNKED", "ERR_EMPTY_RESPONSE", "503")
    session = server.session("Restarted")
    server.prompt(session, "say before")
    open_session(page, session)
    page.wait_for_selector('.prose:has-text("before")')
    server.stop()
    page.wait_for_selector('#link[data-how="reconnecting"]')
    assert "reconnecting" in page.inner_text("#link")
    assert page.query_selector('.prose:has-text("before")'), "what was shown stays"
    server.start()
    page.wait_for_selector('#link[data-how="live"]')
    server.prompt(session, "say afterwards")
    page.wait_for_selector('.message[data-role="assistant"] .prose:has-text("afterwards")')
    before = page.query_selector_all('.message[data-role="assistant"]:has-text("before")')
    assert len(before) == 1, "nothing is shown twice"
