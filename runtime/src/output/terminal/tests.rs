//! Each kind of control, whole, cut anywhere, and without an end.

use proptest::prelude::*;

use super::*;

/// In one piece, and in every two and in single characters.
#[track_caller]
fn check(place: OutputTarget, text: &str, expected: &str) {
    assert_eq!(clean_for(place, text), expected, "{text:?}");
    for (at, _) in text.char_indices() {
        let (mut cleaner, mut out) = (Cleaner::new(place), String::new());
        cleaner.push(&text[..at], &mut out);
        cleaner.push(&text[at..], &mut out);
        assert_eq!(out, expected, "{text:?} cut at {at}");
    }
    let (mut cleaner, mut out) = (Cleaner::new(place), String::new());
    text.chars().for_each(|it| cleaner.push(it.encode_utf8(&mut [0; 4]), &mut out));
    assert_eq!(out, expected, "{text:?} by characters");
}

// REQ: OUT-2
#[test]
fn sequences_go_with_all_their_characters() {
    for place in [OutputTarget::Terminal, OutputTarget::Pipe] {
        for (text, expected) in [
            // Colours, cursor, screen; private and intermediate characters.
            ("a\x1b[31mb\x1b[0mc", "abc"),
            ("\x1b[2J\x1b[1;1Hgone", "gone"),
            ("\x1b[?1049h\x1b[>4;1m\x1b[ qx", "x"),
            ("\x1b[38:2::1:2:3mx", "x"),
            // Without parameters, with an intermediate character, two-character ones.
            ("\x1bcx\x1b7y\x1b(0z\x1b#8", "xyz"),
            ("\x1b %Gx", "x"),
            // Titles, clipboard, links: ended by BEL, by ST in both spellings.
            ("\x1b]0;title\x07x", "x"),
            ("\x1b]52;c;aGk=\x1b\\x", "x"),
            ("\x1b]8;;http://e\x1b\\link\x1b]8;;\x1b\\!", "link!"),
            ("\u{9d}0;title\u{9c}x", "x"),
            // Device control, privacy message, application command, start of string.
            ("\x1bP$qm\x1b\\x", "x"),
            ("\x1b^p\x1b\\\x1b_a\x1b\\\x1bXs\x1b\\x", "x"),
            ("\u{90}q\u{9c}\u{9e}p\u{9c}\u{9f}a\u{9c}\u{98}s\u{9c}x", "x"),
            // The C1 introducer, and C1 controls alone.
            ("\u{9b}31mx\u{8d}\u{84}y\u{9c}", "xy"),
            // Cancelled in the middle, or one inside another.
            ("\x1b]0;t\x18x\x1b]0;t\x1ay", "xy"),
            ("\x1b[31\x1b[32mx\x1b]0;a\x1b[1my", "xy"),
            ("\x1b\x1b[31mx", "x"),
            // Controls alone.
            ("a\x08\x07\x00\x0b\x0c\x0e\x7fb", "ab"),
        ] {
            check(place, text, expected);
        }
    }
}

// REQ: OUT-2
#[test]
fn sequence_without_an_end_hides_its_line_at_most() {
    for (text, expected) in [
        ("a\x1b", "a"),
        ("a\x1b[", "a"),
        ("a\x1b[31", "a"),
        ("a\x1b[31\nb", "a\nb"),
        ("a\x1b[31é", "aé"),
        ("a\x1bé", "aé"),
        ("a\x1b(é", "aé"),
        ("a\x1b]0;hidden", "a"),
        ("a\x1b]0;hidden\nb", "a\nb"),
        ("a\x1bPhidden\r\nb", "a\nb"),
    ] {
        check(OutputTarget::Terminal, text, expected);
    }
    for (introducer, inside) in
        [("\x1b]", "x"), ("\x1bP", "x"), ("\u{9d}", "x"), ("\x1b[", "1"), ("\u{9b}", ";")]
    {
        let longest = format!("{introducer}{}", inside.repeat(MAX_SEQUENCE));
        assert_eq!(clean(&longest), "", "{introducer:?}");
        let shown = format!("{inside} is shown");
        assert_eq!(clean(&format!("{longest}{shown}")), shown, "{introducer:?}");
    }
}

// REQ: OUT-2
#[test]
fn nothing_covers_or_reorders_what_is_on_a_terminal() {
    for (text, expected) in [
        ("rm -rf /\recho hello", "rm -rf /\necho hello"),
        ("a\r\nb\r\r\nc\n\rd", "a\nb\n\nc\n\nd"),
        ("a\r\x1b[Kb", "a\nb"),
        ("a\u{85}b\u{2028}c\u{2029}d", "a\nb\nc\nd"),
        ("a\u{202e}b\u{202c}c\u{2066}d\u{2069}", "abcd"),
    ] {
        check(OutputTarget::Terminal, text, expected);
    }
    for place in [OutputTarget::Terminal, OutputTarget::Pipe] {
        for (text, expected) in [
            ("\u{202a}\u{202b}\u{202d}\u{2067}\u{2068}x", "x"),
            ("a\u{202e}b\u{202c}c", "abc"),
            ("\u{feff}pa\u{200b}y\u{2060}p\u{2064}a\u{206a}l", "paypal"),
        ] {
            check(place, text, expected);
        }
    }
    for text in ["a\r\nb\rc", "a\u{2028}b", "tab\tand\nline"] {
        check(OutputTarget::Pipe, text, text);
    }
    assert_eq!(clean_line("a\n\x1b[1mb\tc\rd"), "a b c d");
}

#[test]
fn what_people_write_is_kept() {
    for place in [OutputTarget::Terminal, OutputTarget::Pipe] {
        for text in [
            "",
            "plain [31m text ]0; with \\ and ^",
            "naïve — “quoted” … 漢字 हिन्दी שלום مرحبا",
            "marks \u{200f}\u{200e}\u{61c} stay",
            "👩‍👩‍👧 🏴󠁧󠁢󠁳󠁣󠁴󠁿 e\u{301}",
            "\ttabs\tand\n\nlines\n",
        ] {
            check(place, text, text);
        }
    }
}

// REQ: SUR-2
#[test]
fn json_means_the_same_without_a_raw_control() {
    for text in ["", "a\u{9b}31m\u{7f}\u{202e}\u{2028}\r\n\t\x1b[1m\0é"] {
        let json = serde_json::to_string(&serde_json::json!({ "a": text })).unwrap();
        let escaped = escape_json(&json);
        assert!(!escaped.contains(is_special), "{escaped:?}");
        let back: serde_json::Value = serde_json::from_str(&escaped).unwrap();
        assert_eq!(back["a"], text);
    }
}

proptest! {
    // REQ: OUT-2
    #[test]
    fn nothing_is_left_that_a_terminal_obeys_wherever_it_is_cut(
        pieces in prop::collection::vec("(\\PC|[\u{1b}\u{9b}\u{9d}\u{90}\\[\\]P;m\\\\\u{7}\u{9c}\r\n\u{202e}0-9]){0,12}", 0..8),
    ) {
        let whole = pieces.concat();
        for place in [OutputTarget::Terminal, OutputTarget::Pipe] {
            let (mut cleaner, mut out) = (Cleaner::new(place), String::new());
            pieces.iter().for_each(|it| cleaner.push(it, &mut out));
            prop_assert_eq!(&out, &clean_for(place, &whole));
            let allowed = |c: char| !c.is_control() || matches!(c, '\n' | '\t')
                || c == '\r' && place == OutputTarget::Pipe;
            prop_assert!(out.chars().all(allowed), "{:?}", out);
            // Nothing is made up, and cleaning again changes nothing.
            prop_assert_eq!(clean_for(place, &out), out);
        }
    }
}
