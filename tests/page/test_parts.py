"""Parts of the page that decide something, each alone, in the browser that runs them."""

import pytest

LINES = "(a, b) => diff.lines(a, b).map((it) => ({ same: ' ', gone: '-', new: '+' })[it.kind] + it.line).join('\\n')"


@pytest.mark.parametrize(
    "before, after, shown",
    [
        ("a\nb\nc", "a\nx\nc", " a\n-b\n+x\n c"),
        ("", "a", "+a"),
        ("a", "", "-a"),
        ("a\nb", "a\nb", " a\n b"),
        ("b\nc", "a\nb\nc", "+a\n b\n c"),
    ],
)
def test_a_diff_keeps_what_both_texts_have(page, before, after, shown):
    assert page.evaluate(f"([a, b]) => ({LINES})(a, b)", [before, after]) == shown


def test_a_diff_of_long_texts_is_bounded(page):
    found = page.evaluate(
        """() => {
            const text = (of) => Array.from({ length: 20000 }, (_, n) => of + n).join('\\n');
            const all = diff.lines(text('a'), text('b'));
            return [all.length, diff.view(text('a'), text('b')).children.length];
        }"""
    )
    assert found == [40000, 401]


@pytest.mark.parametrize(
    "given, shown",
    [
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("\u001b[2J", "␛[2J"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("one\r\ntwo\rthree", "one\ntwo␍three"),
        ("👩\u200d💻 e\u0301", "👩\u200d💻 e\u0301"),
        ("e" + "\u0301" * 50, "e" + "\u0301" * 6 + "…"),
    ],
)
def test_characters_that_hide_are_shown_by_name(page, given, shown):
    assert page.evaluate("(given) => text.visible(given)", given) == shown


def test_actors_that_are_their_own_ancestors_end_no_loop(page):
    found = page.evaluate(
        """() => actors.flat([
            { id: 'a', parent: 'a', kind: 'session' },
            { id: 'b', parent: 'c', kind: 'x' },
            { id: 'c', parent: 'b', kind: 'x' },
            { id: 'd', parent: 'a', kind: 'x' },
            { id: 'e', parent: 'gone', kind: 'x' },
        ], new Set()).map((it) => it.id + it.level)"""
    )
    assert found == ["a1", "d2", "e1"]


def test_a_session_that_goes_on_for_days_keeps_its_newest_messages(page):
    found = page.evaluate(
        """() => {
            const rec = record.create();
            for (let n = 0; n < 45000; n += 1) record.add(rec, JSON.stringify({ type: 'user', uuid: 'u' + n, message: { content: 'x' } }));
            return [rec.messages.length <= 20000, rec.messages.at(-1).id];
        }"""
    )
    assert found == [True, "u44999"]


def test_money_and_tokens_are_short(page):
    found = page.evaluate("[text.tokens(6345), text.tokens(1234567), text.money(5.6e9), text.money(1.2e11), text.money(0), text.duration(61000)]")
    assert found == ["6.3k", "1.2M", "$0.0056", "$0.12", "$0", "1 min 1 s"]
