//! Read against real files.
//!
//! Built under `#[cfg(test)]` only.

use ennead_runtime::tool::FileSeen;
use serde_json::json;

use super::*;
use crate::test_support::{World, structured};

fn seen(outcome: &ToolOutcome) -> Option<FileSeen> {
    outcome.notes.iter().find_map(|note| match note {
        ToolNote::FileSeen { seen, .. } => Some(*seen),
        _ => None,
    })
}

// REQ: TOL-7
#[test]
fn lines_are_numbered_and_the_file_counts_as_seen() {
    let mut world = World::new();
    let path = world.file("a.txt", "one\r\ntwo\nthree");
    let outcome = world.ok::<Read>(json!({"file_path": path}));
    assert_eq!(outcome.text, "     1\tone\n     2\ttwo\n     3\tthree\n");
    let expected = json!({"type": "text", "file": {"filePath": path, "content": "one\ntwo\nthree",
        "numLines": 3, "startLine": 1, "totalLines": 3}});
    assert_eq!(structured(&outcome), expected);
    assert!(!world.context.memory.files[&path].partial);
}

// REQ: TOL-7
#[test]
fn a_range_is_shown_and_seen_in_part_unless_the_whole_was_seen_before() {
    let mut world = World::new();
    let path = world.file("a.txt", "1\n2\n3\n4\n");
    let range = json!({"file_path": path, "offset": 2, "limit": 2});
    let outcome = world.ok::<Read>(range.clone());
    assert_eq!(outcome.text, "     2\t2\n     3\t3\n");
    assert!(world.context.memory.files[&path].partial);
    world.ok::<Read>(json!({"file_path": path}));
    world.ok::<Read>(range.clone());
    assert!(!world.context.memory.files[&path].partial);
    world.file("a.txt", "1\n2\n3\n5\n");
    world.ok::<Read>(range);
    assert!(world.context.memory.files[&path].partial);
}

// REQ: TOL-7
#[test]
fn a_file_over_the_limit_gives_a_first_page_that_does_not_count_as_seen() {
    let mut world = World::new();
    for (n_lines, partial) in [(DEFAULT_LIMIT, false), (DEFAULT_LIMIT + 1, true)] {
        let path = world.file("a.txt", "x\n".repeat(n_lines));
        let outcome = world.ok::<Read>(json!({"file_path": path}));
        let notice = "[PARTIAL view: lines 1 to 2000 of 2001. Continue with offset=2001.]";
        assert_eq!(outcome.text.contains(notice), partial);
        assert_eq!(outcome.truncation.is_some(), partial);
        assert_eq!(seen(&outcome).is_none(), partial);
    }
}

#[test]
fn a_page_over_the_character_cap_is_cut_or_refused_if_it_was_asked_for() {
    let mut world = World::new();
    let path = world.file("a.txt", format!("{}\n", "x".repeat(1000)).repeat(150));
    let outcome = world.ok::<Read>(json!({"file_path": path}));
    assert!(outcome.text.contains("PARTIAL view: lines 1 to 99 of 150"));
    assert!(outcome.text.chars().count() <= MAX_PAGE_CHARS + 100);
    let why = world.failed::<Read>(json!({"file_path": path, "limit": 150}));
    assert!(why.contains("99 lines fit"), "{why}");
    world.ok::<Read>(json!({"file_path": path, "limit": 99}));
}

#[test]
fn long_lines_are_cut_and_then_the_file_was_seen_in_part() {
    let mut world = World::new();
    for (n_chars, partial) in [(MAX_LINE_CHARS, false), (MAX_LINE_CHARS + 1, true)] {
        let path = world.file("a.txt", "ä".repeat(n_chars));
        let outcome = world.ok::<Read>(json!({"file_path": path}));
        assert_eq!(outcome.text.contains("… [1 more characters]"), partial);
        assert_eq!(seen(&outcome).unwrap().partial, partial);
    }
}
// REQ: TOL-5
#[test]
fn a_directory_is_an_error_and_an_empty_file_is_not() {
    let mut world = World::new();
    let directory = world.path("");
    assert!(world.failed::<Read>(json!({"file_path": directory})).contains("directory"));
    let path = world.file("empty", "");
    let outcome = world.ok::<Read>(json!({"file_path": path}));
    assert_eq!(outcome.text, "The file exists but is empty.");
    assert!(!world.context.memory.files[&path].partial);
}

#[test]
fn past_the_end_the_number_of_lines_is_told() {
    let mut world = World::new();
    let path = world.file("a", "1\n2\n");
    let outcome = world.ok::<Read>(json!({"file_path": path, "offset": 3}));
    assert_eq!(outcome.text, "The file has 2 lines; nothing starts at line 3.");
    assert_eq!(seen(&outcome), None);
}

// REQ: TOL-7
#[test]
fn files_that_are_missing_binary_or_too_large_are_refused() {
    let mut world = World::new();
    let missing = world.path("none");
    assert_eq!(world.failed::<Read>(json!({"file_path": missing})), "File does not exist.");
    let binary = world.file("b", b"ELF\0\x01");
    assert!(world.failed::<Read>(json!({"file_path": binary})).contains("binary"));
    let large = world.file("l", "");
    let file = std::fs::OpenOptions::new().write(true).open(&large).unwrap();
    file.set_len(crate::files::MAX_FILE_BYTES + 1).unwrap();
    assert!(world.failed::<Read>(json!({"file_path": large})).contains("Use Grep"));
}

// REQ: TOL-7
#[test]
fn a_file_that_vanishes_after_the_check_is_an_error() {
    let world = World::new();
    let path = world.file("a", "x");
    let call = world.start::<Read>(json!({"file_path": path}));
    std::fs::remove_file(&path).unwrap();
    let outcome = crate::test_support::block_on(call);
    assert_eq!(outcome.text, "File does not exist.");
}

#[test]
fn bytes_that_are_no_utf8_are_shown_as_replacements() {
    let mut world = World::new();
    let path = world.file("a", b"caf\xe9\n");
    assert_eq!(world.ok::<Read>(json!({"file_path": path})).text, "     1\tcaf\u{fffd}\n");
}

/// A PNG picture of one pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90\x77\x53\xde\
    \0\0\0\x0cIDAT\x08\xd7\x63\xf8\xcf\xc0\0\0\x03\x01\x01\0\x18\xdd\x8d\xb0\0\0\0\0IEND\xae\x42\x60\x82";

// REQ: TOL-7
#[test]
fn picture_is_shown_by_what_it_is_and_not_by_its_name() {
    let mut world = World::new();
    let path = world.file("a.txt", PIXEL);
    let outcome = world.ok::<Read>(json!({"file_path": path}));
    assert_eq!(outcome.text, "[image/png, 1 x 1 pixels]");
    let [image] = &outcome.media[..] else { panic!("{:?}", outcome.media) };
    assert!(image.block().wire_open().contains(r#""media_type":"image/png""#));
    let file = structured(&outcome)["file"].clone();
    assert_eq!((&file["type"], &file["originalSize"]), (&json!("image/png"), &json!(PIXEL.len())));
    assert!(file["base64"].as_str().unwrap().starts_with("iVBORw0KGgo"));
    assert!(!seen(&outcome).unwrap().partial);
}

// REQ: TOL-7
#[test]
fn large_picture_is_shown_and_left_out_of_the_structured_result() {
    let mut world = World::new();
    let path = world.file("a.png", [PIXEL, &[0; 300_000]].concat());
    let outcome = world.ok::<Read>(json!({"file_path": path}));
    assert_eq!(outcome.media.len(), 1);
    assert_eq!(structured(&outcome)["file"]["base64"], json!(null));
}

// REQ: TOL-7
#[test]
fn pdf_file_is_shown_as_a_document_and_a_broken_one_is_an_error() {
    let mut world = World::new();
    let path = world.file("a.pdf", "%PDF-1.7\n1 0 obj\n%%EOF\n");
    let outcome = world.ok::<Read>(json!({"file_path": path}));
    assert!(outcome.media[0].block().wire_open().starts_with(r#"{"type":"document""#));
    assert_eq!(structured(&outcome)["type"], "pdf");
    let path = world.file("b.pdf", "%PDF-1.7\n1 0 obj\n");
    let text = world.failed::<Read>(json!({"file_path": path}));
    assert!(text.contains("not a whole PDF file"), "{text}");
}

// REQ: SHP-3, SHP-6
#[test]
fn long_line_of_a_kept_result_is_read_to_its_end() {
    let mut world = World::new();
    let kept = world.root.join("session/tool-results");
    std::fs::create_dir_all(&kept).unwrap();
    world.context.spill_directory = kept.to_str().unwrap().into();
    let items: Vec<String> = (0..800).map(|it| format!("{{\"item\":{it},\"is\":\"ä\"}}")).collect();
    let line = format!("[{}]", items.join(","));
    let path = world.file("session/tool-results/a.txt", format!("{line}\nend\n"));
    let all = world.ok::<Read>(json!({"file_path": path}));
    let shown: String =
        all.text.lines().filter_map(|it| it.split_once('\t')).map(|it| it.1).collect();
    assert_eq!(shown, format!("{line}end"));
    assert!(all.text.contains("go on as further lines"), "{}", all.text);
    // A piece is reached by its number.
    let n_pieces = line.chars().count().div_ceil(MAX_LINE_CHARS);
    let range = json!({"file_path": path, "offset": n_pieces, "limit": 1});
    let last = world.ok::<Read>(range);
    assert!(last.text.contains(r#"{"item":799,"is":"ä"}]"#), "{}", last.text);
    // The same file elsewhere is shown as files of people are.
    let elsewhere = world.file("a.txt", &line);
    let cut = world.ok::<Read>(json!({"file_path": elsewhere}));
    assert!(cut.text.contains("[Long lines are cut.]") && !cut.text.contains("799"));
}
