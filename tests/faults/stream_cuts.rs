//! Every recorded stream, served to a whole session over a real socket and cut all over.
//!
//! A stream that is cut is asked for again; what comes of it must be the message of the stream or
//! the recovered one, once, whatever byte the cut fell on and however the connection ended. Streams
//! of up to 8 KB are cut at every edge of a line, an escape or a character and at a fifth of the other
//! bytes, the longer ones at seeded places. Waits for retries take no time: the clock is moved on instead.
//!
//! Each place is cut once, properly and by a reset in turn: 8,097 sessions. The parser alone takes every
//! stream byte by byte in its own tests; every byte of streams up to 16 KB, both ways, is cut at by
//! `CARGO_PROFILE_DEV_OPT_LEVEL=1 ENNEAD_CUT_BOTH_WAYS=1 cargo nextest run stream_cuts`.

mod case;
mod session;
mod shown;

use std::{collections::BTreeSet, fs, path::Path};

use case::{CUTS_OF_LARGE, Case, STREAMS, cuts_both_ways};

macro_rules! groups {
    ($($name:ident: $($stream:literal)*;)*) => {
        $(
            // REQ: MDL-1, MDL-7, MDL-11
            #[test]
            fn $name() {
                session::check(&[$($stream),*]);
            }
        )*

        /// The streams of all tests.
        const GROUPS: &[&str] = &[$($($stream),*),*];
    };
}

// About the same number of cuts in each, so that they run side by side.
groups! {
    large_streams_cut_anywhere_end_in_one_answer:
        "s04_input_json_one_char_deltas" "s18_huge_delta" "s27_many_small_deltas";
    plain_streams_cut_anywhere_end_in_one_answer:
        "s01_text_simple" "s02_crlf" "s06_multibyte_text" "s09_pings_everywhere" "s14_comments_and_fields";
    tool_streams_cut_anywhere_run_each_tool_once:
        "s03_text_then_two_tools" "s05_input_json_split_in_unicode_escapes" "s23_tool_without_input";
    odd_tool_streams_cut_anywhere_run_each_tool_once:
        "s19_zero_length_deltas" "s20_interleaved_blocks" "s32_tool_input_without_end";
    thinking_streams_cut_anywhere_end_in_one_answer:
        "s07_thinking_signature" "s08_redacted_thinking" "s34_error_in_thinking" "s22_max_tokens_in_tool_use";
    failing_streams_cut_anywhere_are_recovered:
        "s10_overloaded_midstream" "s11_error_before_start" "s12_missing_message_stop"
        "s13_eof_inside_event" "s21_duplicate_message_start" "s24_error_after_complete_tool" "s33_silence";
    invalid_streams_cut_anywhere_are_recovered:
        "s30_delta_for_unknown_block" "s31_malformed_known_event" "s36_second_stop" "s35_blocks_begin_out_of_order";
    strange_streams_cut_anywhere_end_in_one_answer:
        "s15_bom" "s16_multi_line_data" "s17_unknown_events" "s25_no_space_after_colon"
        "s26_data_only" "s28_cache_usage" "s29_stop_sequence";
}

#[test]
#[expect(clippy::print_stdout, reason = "the number of cuts is worth knowing")]
fn every_stream_is_cut() {
    let files = fs::read_dir(Path::new(STREAMS)).unwrap().flatten().map(|it| it.path());
    let streams = files.filter(|it| it.extension().is_some_and(|it| it == "sse"));
    let names: BTreeSet<String> =
        streams.map(|it| it.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(names, GROUPS.iter().map(|it| (*it).to_owned()).collect());
    assert_eq!(names.len(), GROUPS.len(), "each once");
    let n_cuts: usize = names.iter().map(|it| Case::read(it).cuts().len()).sum();
    println!("{n_cuts} cuts of {} streams", names.len());
    let large = names.iter().filter(|it| Case::read(it).is_large()).count();
    let (n_small, n_large, n_endings) =
        if cuts_both_ways() { (40_400, 2, 2) } else { (7_497, 3, 1) };
    assert_eq!((n_cuts, large), ((n_small + n_large * CUTS_OF_LARGE) * n_endings, n_large));
}
