"""A thousand sessions: what is drawn is what is in sight."""

from concurrent.futures import ThreadPoolExecutor

from playwright.sync_api import TimeoutError

# Scrolls a screenful per frame and looks at each frame at what stands there.
SCROLL = """async () => {
    const list = document.querySelector('#list');
    const frame = () => new Promise(requestAnimationFrame);
    let frames = 0, blank = 0, most = 0;
    const limit = 400;
    while (list.scrollTop + list.clientHeight < list.scrollHeight && frames < limit) {
        list.scrollTop += list.clientHeight / 2;
        await frame();
        await frame();
        frames += 1;
        const box = list.getBoundingClientRect();
        const middle = document.elementFromPoint(box.x + 60, box.y + box.height / 2);
        if (!middle?.closest('.session')) blank += 1;
        most = Math.max(most, list.querySelectorAll('.session').length);
    }
    return { frames, blank, most, last: [...list.querySelectorAll('.session')].some((it) => it.getAttribute('aria-posinset') === it.getAttribute('aria-setsize')) };
}"""

# What the list holds, for a test that waits for another state of it.
HELD = """[
    document.getElementById('tally').textContent, document.getElementById('filter').value,
    document.getElementById('state').value, document.activeElement.id, app.state.sessions.length, app.state.failures,
]"""


def shows(page, selector):
    """Waits for an element, and says what the list holds where it does not come."""
    try:
        page.wait_for_selector(selector)
    except TimeoutError as error:
        raise AssertionError(f"{selector} does not come: {page.evaluate(HELD)}") from error


def test_a_thousand_sessions_scroll_without_an_empty_frame(page, server):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: server.session(f"Session {n:04}"), range(1000)))
    page.reload()
    page.wait_for_selector('#tally:has-text("1,000 sessions")')
    found = page.evaluate(SCROLL)
    assert found["frames"] < 400 and found["last"], found
    assert found["blank"] == 0, found
    assert found["most"] <= 40, found
    page.fill("#filter", "session 0777")
    shows(page, '#tally:has-text("1 of 1,000")')
    assert len(page.query_selector_all(".session")) == 1
    page.fill("#filter", "nothing like this")
    page.wait_for_selector('#list-empty:has-text("No session fits")')


def test_an_id_is_found_by_its_beginning_and_not_by_its_middle(page, server):
    sought, other = server.session("Left"), server.session("Right")
    page.reload()
    page.wait_for_selector('#tally:has-text("2 sessions")')
    page.fill("#filter", sought["id"])
    page.wait_for_selector('#tally:has-text("1 of 2")')
    assert "Left" in page.inner_text(".session")
    page.fill("#filter", other["id"][1:])
    page.wait_for_selector('#list-empty:has-text("No session fits")')


def test_a_burst_of_events_is_drawn_in_few_frames(page):
    drawn = page.evaluate(
        """async () => {
            const before = frame.drawn();
            let n = 0;
            for (let i = 0; i < 5000; i += 1) frame.push(() => { n += 1; frame.draw('session'); });
            while (n < 5000) await new Promise(requestAnimationFrame);
            return frame.drawn() - before;
        }"""
    )
    assert drawn <= 3, drawn


def test_the_list_is_walked_by_the_keyboard(page, server):
    for n in range(40):
        server.session(f"Key {n:02}")
    page.reload()
    page.wait_for_selector('#tally:has-text("40 sessions")')
    page.keyboard.press("l")
    for _ in range(25):
        page.keyboard.press("ArrowDown")
    active = page.evaluate("document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).getAttribute('aria-posinset')")
    assert active == "26"
    page.keyboard.press("Enter")
    page.wait_for_selector("#session-title:has-text('Key')")
