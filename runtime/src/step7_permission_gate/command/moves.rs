//! Which parts of a command give files another place: `mv`, `cp`, `ln`, `rsync` and `git mv`.

use super::{
    CommandContext, CommandPart,
    dirs::{PathTarget, target},
    escapes,
    named::place_in,
    options::operands,
    part::base,
    writers,
};
use crate::step7_permission_gate::{path_resolution::by_text, shell::word::Word};

/// Notes what a part moves or copies with the links in it.
pub(super) fn note(part: &CommandPart, around: &CommandContext) {
    for start in part.starts.iter().copied() {
        let Some((name, args)) = part.words.get(start..).and_then(|it| it.split_first()) else {
            continue;
        };
        match base(&name.text) {
            "mv" | "cp" | "ln" | "rsync" => moves(args, part, around),
            "git" => {
                let call = escapes::call(args);
                if call.command == "mv" {
                    moves(call.args, part, around);
                }
            }
            _ => {}
        }
    }
}

fn moves(args: &[Word], part: &CommandPart, around: &CommandContext) {
    let plain: Vec<&Word> = operands(args).collect();
    let into = writers::into(args);
    let here = Word::plain(".");
    let (sources, to) = match (into.first(), &plain[..]) {
        (Some(into), all) => (all, into),
        (None, [sources @ .., last]) if !sources.is_empty() => (sources, *last),
        (None, all) => (all, &here),
    };
    let at = |word: &Word| place_in(target(word, &around.home, part.is_lost), &part.dirs, around);
    let to = at(to);
    for source in sources {
        // Then somebody is asked, whatever follows.
        if around.links.is_cut() {
            return;
        }
        let named = at(source);
        let paths = match named.target {
            PathTarget::Known(_) => named.paths,
            PathTarget::Glob(_) => named.paths.iter().flat_map(|it| around.links.met(it)).collect(),
            PathTarget::Open(_) => continue,
        };
        // Its contents, where it is a directory; or it is the only one, and gets the name.
        let is_whole = sources.len() == 1 || source.text.ends_with(['/', '.']);
        for from in &paths {
            let name = base(from.trim_end_matches('/'));
            for to in to.paths.iter().filter(|it| it.starts_with('/')) {
                if is_whole {
                    around.links.moves(from, to);
                }
                around.links.moves(from, &by_text(&format!("{to}/{name}")));
            }
        }
    }
}
