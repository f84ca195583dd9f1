//! The bodies of the fuzz targets, with a bounded number of random inputs: bytes, and pieces of shell
//! commands in any order.

use proptest::prelude::*;

mod bodies;
pub(crate) mod judged;

/// Pieces that commands and rules are made of.
const PIECES: [&str; 48] = [
    "npm test",
    "rm x",
    "git push",
    "ls",
    "cat .env",
    " ",
    "\n",
    ";",
    "&&",
    "|",
    "&",
    "(",
    ")",
    "{",
    "}",
    "$(",
    "`",
    "\"",
    "'",
    "\\",
    "$",
    "${x:-",
    "<<X\n",
    "X\n",
    "<<<",
    ">",
    "<",
    ">(",
    "if ",
    "then ",
    "fi",
    "for i in ",
    "do ",
    "done",
    "case a in ",
    "esac",
    "*",
    ":*",
    "#",
    "xargs ",
    "sh -c ",
    "| sh",
    "python3 -c ",
    "git -c alias.x=!",
    "find . -exec ",
    "env A=b ",
    "((",
    "]]",
];

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let text = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..24);
    (any::<u8>(), text).prop_map(|(first, text)| {
        let mut data = vec![first];
        data.extend(text.concat().bytes());
        data
    })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    // REQ: PRM-8
    #[test]
    fn any_text_is_judged_as_a_command(data in prop_oneof![3 => pieces(), 1 => bytes()]) {
        bodies::shell_command(&data);
    }

    // REQ: PRM-8
    #[test]
    fn any_text_as_a_rule_loosens_and_tightens_one_way_only(data in prop_oneof![3 => pieces(), 1 => bytes()]) {
        bodies::permission_rules(&data);
    }
}
