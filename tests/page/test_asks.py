"""Questions of the model to a person, and answers that look as they are meant to."""

from conftest import open_session, until

import pytest


def ask(page, server):
    session = server.session("Chooses")
    open_session(page, session)
    page.fill("#prompt", "choose")
    page.keyboard.press("Enter")
    page.wait_for_selector("#questions .choices >> nth=1")


def test_options_are_chosen_and_the_model_reads_the_answers(page, server):
    ask(page, server)
    card = page.query_selector("#questions .question")
    assert "The model asks you" in card.inner_text()
    assert "{" not in card.inner_text(), "no JSON"
    page.click('#questions button:text-is("Answer")')
    page.wait_for_selector("#questions .problem:not([hidden])")
    page.click('#questions label:has-text("Wood")')
    page.click('#questions label:has-text("North")')
    page.click('#questions label:has-text("South")')
    page.click('#questions button:text-is("Answer")')
    page.wait_for_selector('.message[data-role="assistant"] .prose:has-text("Wood"):has-text("North, South")')
    page.wait_for_selector("#questions .question", state="detached")


def test_other_words_are_an_answer_and_a_question_may_pass(page, server):
    ask(page, server)
    first, second = page.query_selector_all("#questions .choices input[type=text]")
    page.click('#questions label:has-text("Stone")')
    first.fill("none at all")
    assert page.query_selector_all("#questions .choices input:checked") == []
    second.fill("the river")
    page.keyboard.press("Enter")
    page.wait_for_selector('.prose:has-text("none at all"):has-text("the river")')


def test_a_question_on_the_overview_names_its_session_and_its_tenant(page, server):
    ask(page, server)
    page.click("#home")
    page.wait_for_selector('#all-questions .from:has-text("Chooses · acme")')
    until(page, "/1\\s*waiting/.test(document.querySelector('#sums').innerText)")
    page.click('#all-questions button:text-is("Let it pass")')
    page.wait_for_selector("#all-questions .question", state="detached")


def test_a_viewer_is_offered_nothing_that_would_be_refused(browser, server):
    token = server.run("token", "add", "looks", "--tenant", "acme", "--role", "viewer").strip()
    session = server.session("Seen")
    server.prompt(session, "choose")
    page = browser.new_page()
    page.goto(f"{server.url}/#token={token}")
    open_session(page, session)
    page.wait_for_selector("#questions .choices >> nth=1")
    page.wait_for_selector("body.viewer")
    for hidden in ("#start", "#composer", "#questions .answer"):
        assert not page.is_visible(hidden), hidden
    page.close()


def test_an_answer_in_markdown_becomes_elements_while_it_streams_and_afterwards(page, server):
    session = server.session("Marks")
    open_session(page, session)
    page.fill("#prompt", "marks")
    page.keyboard.press("Enter")
    page.wait_for_selector('.streaming .md [role="heading"]:has-text("Two bridges")')
    page.wait_for_selector(".streaming .md strong")
    page.wait_for_selector(".end")
    shown = '.message[data-role="assistant"]:not(.streaming) .md'
    found = page.evaluate(
        """(shown) => {
            const all = (of) => [...document.querySelector(shown).querySelectorAll(of)];
            const texts = (of) => all(of).map((it) => it.textContent);
            return { heading: texts('[role="heading"]'), em: texts('em'), strong: texts('strong'), code: texts(':not(pre) > code'),
                block: texts('pre'), cells: texts('th, td'), nested: texts('ol > li > ul > li, ol > ul > li'), items: all('li').length,
                links: all('a').map((it) => [it.href, it.rel]), images: all('img, b').length };
        }""",
        shown,
    )
    assert found["heading"] == ["Two bridges"]
    assert (found["em"], found["strong"], found["code"]) == (["light"], ["strong"], ["bridge.rs", "9"])
    assert found["block"] == ['let a = "<b>*not*</b>";']
    assert found["cells"] == ["Bridge", "Cost", "Stone", "9"]
    assert (found["nested"], found["items"]) == (["of granite"], 3)
    assert found["links"] == [["https://plans.example.org/a_b", "noopener noreferrer nofollow"]]
    assert found["images"] == 0 and page.evaluate("window.taken") is None
    words = page.inner_text(shown)
    for part in ("the plan (plans.example.org)", "there (ftp://x)", "<img src=x", "snake_case_name"):
        assert part in words, words


@pytest.mark.parametrize(
    "given",
    ["a" + "*" * 200_000, "# a" + " " * 200_000 + "b", "|" + " " * 200_000 + "x\n|-", "- " + " " * 200_000 + "x", "`" * 99_999 + " ", "[" * 200_000, "- " * 100_000, "> " * 100_000, "|a" * 100_000 + "\n" + "|-" * 50, "# a\n" * 50_000, "**a _b " * 30_000, "``` `` ` " * 20_000, "![x](" * 40_000],
)
def test_hostile_marks_cost_little_and_make_few_elements(page, given):
    ms, n, whole = page.evaluate(
        """(given) => {
            const node = document.createElement('div');
            const from = performance.now();
            markdown.fill(node, given);
            return [performance.now() - from, node.querySelectorAll('*').length, node.textContent.length];
        }""",
        given,
    )
    assert n <= 6500, n
    assert ms < 2000, ms
    assert whole <= len(given)


def test_a_text_that_streams_looks_at_its_end_as_it_does_at_once(page):
    pieces = ["# A\n\nb *c", "* d\n\n- e\n", "  - f\n\n- g\n\nh\n``", "`js\ni\n\n", "j\n```\n\n| k | l |\n|-", "--|---|\n| m | n |\n\nlast"]
    found = page.evaluate(
        """(pieces) => {
            const [one, other] = [document.createElement('div'), document.createElement('div')];
            const write = markdown.stream(one);
            let all = '';
            for (const piece of pieces) for (const it of piece) { all += it; write(all); }
            markdown.fill(other, all);
            return [[...one.children].map((it) => it.innerHTML).join(''), other.innerHTML];
        }""",
        pieces,
    )
    assert found[0] == found[1]
