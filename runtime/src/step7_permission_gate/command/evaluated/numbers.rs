//! Programs whose output is a number, or a name that others do not choose.

use crate::step7_permission_gate::shell::{
    tree::{CommandKind, List},
    word::Word,
};

/// Returns whether a word is the output of a program that prints a number, or a name that others do not choose.
pub(super) fn prints_number(word: &Word) -> bool {
    let [span] = &word.spans[..] else { return false };
    let text = &word.text[span.start..span.end];
    let is_whole = text.starts_with("$(") && text.ends_with(')') || text.starts_with('`');
    let [list] = &word.inner[..] else { return false };
    is_whole && last_prints_number(list)
}

fn last_prints_number(list: &List) -> bool {
    let [item] = &list.0[..] else { return false };
    let Some(last) = item.first.commands.last().filter(|_| item.rest.is_empty()) else {
        return false;
    };
    let CommandKind::Simple(simple) = &last.kind else { return false };
    if !simple.assignments.is_empty() || !simple.words.iter().all(Word::is_literal) {
        return false;
    }
    let Some((name, args)) = simple.words.split_first() else { return false };
    let plain = args.iter().filter(|it| !it.text.starts_with('-')).count();
    match name.text.as_str() {
        // With a file it prints the name of that, too.
        "wc" => plain == 0,
        "nproc" | "whoami" | "hostname" => args.is_empty(),
        "id" => args.iter().all(|it| matches!(&*it.text, "-u" | "-g" | "-un" | "-gn")),
        "date" => args.iter().all(|it| matches!(&*it.text, "+%s" | "+%Y" | "+%s%N" | "-u")),
        // Of one input.
        "grep" => plain == 1 && args.iter().any(|it| it.text == "-c"),
        _ => false,
    }
}
