//! Where `cd` and its like lead.

use super::{Ends, ScriptWalk};
use crate::step7_permission_gate::command::{
    CommandPart,
    dirs::{Dirs, PathTarget, target},
    part::base,
};

/// Variables that decide where `cd` leads.
const PLACES: [&str; 4] = ["HOME", "PWD", "OLDPWD", "CDPATH"];

impl ScriptWalk<'_> {
    /// Returns where a part leaves the shell.
    pub(super) fn moved(&mut self, part: &CommandPart, from: &Dirs) -> Ends {
        let moved = match part.name() {
            "cd" | "pushd" => self.entered(part, from),
            // What they do to the shell cannot be seen.
            "popd" | "source" | "." => Dirs::unknown(),
            _ => return Ends::both(from),
        };
        Ends { any: from.or(&moved), ok: moved }
    }

    fn entered(&mut self, part: &CommandPart, from: &Dirs) -> Dirs {
        match destination(part, &self.around.home) {
            Some(PathTarget::Known(to)) => {
                let is_relative = !to.starts_with('/');
                let differs = is_relative && (self.repeats || self.is_lost);
                if differs { Dirs::unknown() } else { from.join(&to, self.around) }
            }
            _ => Dirs::unknown(),
        }
    }
}

/// Returns whether a part may leave the shell in another directory.
pub(super) fn may_move(part: &CommandPart) -> bool {
    matches!(part.name(), "cd" | "pushd" | "popd" | "source" | "." | "eval")
}

/// Returns where `cd` or `pushd` leads; `None` if that is not known.
pub(crate) fn destination(part: &CommandPart, home: &str) -> Option<PathTarget> {
    let mut to = None;
    let mut is_over = false;
    for arg in part.args() {
        let is_option = !is_over && arg.text.starts_with('-') && arg.text.len() > 1;
        if is_option && arg.text == "--" {
            is_over = true;
            continue;
        }
        let is_clear = if is_option {
            arg.text[1..].bytes().all(|it| b"LPe@".contains(&it))
        } else {
            to.replace(arg).is_none()
        };
        if !is_clear {
            return None;
        }
    }
    let is_pushd = base(part.name()) == "pushd";
    match to {
        None if is_pushd || part.is_lost => None,
        None => Some(PathTarget::Known(home.to_owned())),
        Some(to) if to.text.is_empty() || to.text == "-" => None,
        Some(to) if is_pushd && to.text.starts_with('+') => None,
        Some(to) => Some(target(to, home, part.is_lost)),
    }
}

/// Returns whether a command may give the variables another value that decide where `cd` leads.
pub(super) fn sets_places(raw: &str) -> bool {
    PLACES.iter().any(|name| {
        raw.match_indices(name).any(|(at, _)| {
            let before = &raw[..at];
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let is_longer =
                before.ends_with(is_part) || raw[at + name.len()..].starts_with(is_part);
            !is_longer && !before.ends_with('$') && !before.ends_with("${")
        })
    })
}
