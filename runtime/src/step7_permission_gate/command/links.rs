//! What a part gives another name: links, mounts and moves.
//!
//! The source is judged where it gets the name, since the new one does not show it.
//! Sources: GNU coreutils 9.1, util-linux 2.38.

use super::{
    CommandContext, CommandPart,
    changes::Changes,
    dirs::{Dirs, PathTarget, target},
    named::{named, place_in, values},
    options::{has_letter, is_long, operands},
};
use crate::step7_permission_gate::shell::word::Word;

/// Adds what a program gives another name. `sources` and `to` are the operands of `cp` and its like.
pub(super) fn renamed(
    name: &str,
    args: &[Word],
    (sources, to): (&[&Word], &[Word]),
    part: &CommandPart,
    around: &CommandContext,
    found: &mut Changes,
) {
    let has = |letter: char, long: &str| {
        args.iter().any(|it| has_letter(&it.text, letter, "St") || is_long(&it.text, long))
    };
    let is_soft = match name {
        "ln" => has('s', "--symbolic"),
        "cp" => has('s', "--symbolic-link"),
        _ => false,
    };
    let links = is_soft || name == "ln" || name == "cp" && has('l', "--link");
    let copies_tree = name == "cp"
        && (has('r', "--recursive") || has('R', "--recursive") || has('a', "--archive"));
    if !links && name != "mv" && !copies_tree {
        return;
    }
    let to: Vec<_> = to.iter().map(|it| named(it, part, around)).collect();
    found.leads_out |= to.iter().any(|it| !it.is_inside(&part.dirs, around));
    if copies_tree && !links {
        return;
    }
    found.makes_links |= links;
    for source in sources {
        let mut file = named(source, part, around);
        if is_soft && !file.target.text().starts_with('/') {
            // The text of a link is relative to where that lies.
            for place in &to {
                for dirs in [
                    part.dirs.join(place.target.text(), around),
                    above(place.target.text(), part, around),
                ] {
                    let of = target(source, &around.home, part.is_lost);
                    file.paths.extend(place_in(of, &dirs, around).paths);
                }
            }
        }
        found.links.push(file);
    }
}

/// Adds what `mount` and `link` show under another name.
pub(super) fn shown_elsewhere(
    args: &[Word],
    part: &CommandPart,
    around: &CommandContext,
    found: &mut Changes,
) {
    let last = operands(args).last();
    found.makes_links = true;
    found.leads_out |= last.is_none_or(|it| !named(it, part, around).is_inside(&part.dirs, around));
    for arg in args.iter().filter(|it| Some(*it) != last) {
        let pieces = arg.text.split([',', '=', ':']).filter(|it| it.contains('/'));
        let pieces = pieces.map(Word::plain);
        for word in values(arg).into_iter().filter(|it| !it.text.starts_with('-')).chain(pieces) {
            found.links.push(named(&word, part, around));
        }
    }
}

/// The directory that holds a path.
fn above(path: &str, part: &CommandPart, around: &CommandContext) -> Dirs {
    part.dirs.join(&format!("{path}/.."), around)
}

/// Returns whether a path climbs: after a link the target is not known.
pub(super) fn climbs(target: &PathTarget) -> bool {
    target.text().split('/').any(|it| it == "..")
}
