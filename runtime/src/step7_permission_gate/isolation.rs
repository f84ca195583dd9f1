//! A worktree and the checkout that it represents: who works in the one leaves the other alone.
//!
//! Holds in every mode and whatever rules say. Commands are read with suspicion and not run, as
//! elsewhere in the gate: where a `cd` cannot be followed, or git is pointed to another repository by
//! something that the shell has yet to work out, the command is refused.

use super::{
    ResolvedPath,
    command::{
        CommandContext, CommandPart, NamedFile, PathTarget, ShellCommand, base, destination, target,
    },
    path_rule::lies_in,
    shell::{
        Fault,
        word::{PieceKind, Word},
    },
};
use crate::tool::Access;

mod git;

/// Why a command is refused.
const THERE: &str = "it works in the checkout that this worktree is apart from";
const UNTRACED: &str = "nobody can tell in which directory or repository it works, and this agent \
    is to stay in its worktree";

/// Texts within each other that are looked at.
const MAX_TEXTS: usize = 2;

type Refused = Result<(), &'static str>;

/// Where somebody works that is to leave the checkout around it alone. Each as written and as it
/// really is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// The top directories of the worktree.
    pub worktree: Vec<String>,
    /// Directories of the checkout.
    pub checkout: Vec<String>,
}

impl Isolation {
    /// Returns why a call is refused, if it would reach the checkout.
    pub(super) fn refuses(
        &self,
        access: &Access,
        path: Option<&ResolvedPath>,
        command: Option<&ShellCommand>,
    ) -> Option<&'static str> {
        let writes = matches!(access, Access::WritePath { .. });
        let outside = |it: &ResolvedPath| {
            let all = [&it.lexical, &it.real].into_iter().chain(&it.passed);
            all.into_iter().any(|it| self.is_in_checkout(it))
        };
        if writes && path.is_some_and(outside) {
            return Some("it changes a file of the checkout that this worktree is apart from");
        }
        self.command(command?, 0).err()
    }

    fn is_in_checkout(&self, path: &str) -> bool {
        let inside = |all: &[String]| all.iter().any(|it| lies_in(path, it));
        inside(&self.checkout) && !inside(&self.worktree)
    }

    fn command(&self, command: &ShellCommand, depth: usize) -> Refused {
        if matches!(command.fault(), Some(Fault::Syntax | Fault::TooLong | Fault::TooDeep)) {
            return Err(UNTRACED);
        }
        for (part, changes) in command.changes() {
            self.part(part, command.around())?;
            changes.altered().try_for_each(|it| self.writes(it, part))?;
        }
        // What is piped into a shell may be any of the texts.
        let runs_texts = command.parts().iter().any(|it| {
            let name = base(it.name());
            matches!(
                name,
                "sh" | "bash"
                    | "dash"
                    | "zsh"
                    | "ksh"
                    | "source"
                    | "."
                    | "eval"
                    | "xargs"
                    | "parallel"
            ) || it.words.first().is_some_and(|it| it.text.starts_with('$'))
        });
        if !runs_texts || depth >= MAX_TEXTS {
            return Ok(());
        }
        let words = command
            .parts()
            .iter()
            .flat_map(|it| it.words.iter().chain(it.redirections.iter().map(|it| &it.1)));
        for word in words.filter(|it| it.text.contains([' ', '\t', '\n', ';', '&', '|'])) {
            let inner = ShellCommand::read(&word.text, command.around().clone());
            // What is not a command, as `don't`, may have quotes that do not end.
            let inner = match inner.fault() {
                Some(Fault::Syntax) => {
                    let text = word.text.replace(['\'', '"', '`'], "");
                    ShellCommand::read(&text, command.around().clone())
                }
                _ => inner,
            };
            self.command(&inner, depth + 1)?;
        }
        Ok(())
    }

    fn part(&self, part: &CommandPart, around: &CommandContext) -> Refused {
        for assignment in &part.assignments {
            self.assigned(&assignment.name, &assignment.value, part, around)?;
        }
        for word in &part.words {
            if let Some((name, value)) =
                word.text.split_once('=').filter(|it| !it.0.starts_with('-'))
            {
                let mut open = Word::plain(value);
                if !word.is_known() {
                    open.mark(0, PieceKind::Open { quoted: false });
                }
                self.assigned(name, &open, part, around)?;
            }
        }
        // Where `env` runs what follows, too.
        let mut here = part.clone();
        for start in part.starts.iter().copied() {
            let part = &here;
            let Some((name, args)) = part.words[start..].split_first() else { continue };
            match base(&name.text) {
                "cd" | "pushd" => {
                    let mut inner = part.clone();
                    inner.start = start;
                    match destination(&inner, &around.home) {
                        Some(PathTarget::Known(to)) => self.entered(&to, part, around)?,
                        _ => return Err(UNTRACED),
                    }
                }
                "popd" => return Err(UNTRACED),
                "env" => {
                    let mut dirs = part.dirs.clone();
                    for to in git::directories_of_env(args) {
                        self.entered_word(&to, part, around)?;
                        dirs = dirs.or(&dirs.join(&to.text, around));
                    }
                    here.dirs = dirs;
                }
                "git" => self.points_git(args, part, around)?,
                _ if name.text.starts_with('$') => self.points_git(args, part, around)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Refuses to enter the checkout.
    fn entered(&self, to: &str, part: &CommandPart, around: &CommandContext) -> Refused {
        if to.is_empty() || to.contains("{}") {
            return Err(UNTRACED);
        }
        let reached = part.dirs.join(to, around);
        let Some(mut all) = reached.all() else { return Err(UNTRACED) };
        if all.any(|it| self.is_in_checkout(it)) { Err(THERE) } else { Ok(()) }
    }

    fn entered_word(&self, to: &Word, part: &CommandPart, around: &CommandContext) -> Refused {
        match target(to, &around.home, part.is_lost) {
            PathTarget::Known(_) if to.has_tilde() => Err(UNTRACED),
            PathTarget::Known(to) => self.entered(&to, part, around),
            PathTarget::Glob(_) | PathTarget::Open(_) => Err(UNTRACED),
        }
    }

    /// Refuses a written file of the checkout. One whose name is open is let pass, unless what it
    /// says already leads there or climbs from what it does not say.
    fn writes(&self, file: &NamedFile, part: &CommandPart) -> Refused {
        let text = file.target.text();
        if part.dirs.is_unknown() && !text.starts_with('/') {
            return Err(UNTRACED);
        }
        for path in &file.paths {
            if self.is_in_checkout(path) {
                return Err(THERE);
            }
            let is_open = !matches!(file.target, PathTarget::Known(_));
            let sure = path.find(['$', '`', '*', '?', '[', '{']).filter(|_| is_open);
            let may_lead = |it: &String| sure.is_some_and(|end| it.starts_with(&path[..end]));
            if self.checkout.iter().any(may_lead) {
                return Err(UNTRACED);
            }
        }
        let is_open = matches!(file.target, PathTarget::Open(_));
        let climbs = is_open && text.split('/').any(|it| it == "..");
        if climbs { Err(UNTRACED) } else { Ok(()) }
    }

    /// Refuses variables that lead elsewhere.
    fn assigned(
        &self,
        name: &str,
        value: &Word,
        part: &CommandPart,
        around: &CommandContext,
    ) -> Refused {
        if value.text.is_empty() {
            return Ok(());
        }
        match name {
            "CDPATH" | "PWD" | "OLDPWD" => Err(UNTRACED),
            _ if git::VARIABLES.contains(&name) => self.entered_word(value, part, around),
            _ if git::configures(name, &value.text, !value.is_literal()) => Err(UNTRACED),
            _ => Ok(()),
        }
    }

    /// Refuses options that point git elsewhere.
    fn points_git(&self, args: &[Word], part: &CommandPart, around: &CommandContext) -> Refused {
        let pointed = git::pointed(args).ok_or(UNTRACED)?;
        let mut here = part.dirs.clone();
        for to in pointed.directories {
            match target(to, &around.home, part.is_lost) {
                PathTarget::Known(text)
                    if !text.is_empty() && !to.has_tilde() && !text.contains("{}") =>
                {
                    here = here.join(&text, around);
                }
                _ => return Err(UNTRACED),
            }
        }
        // With the last one only: it may pass through the checkout.
        let at = CommandPart { dirs: here, ..part.clone() };
        self.entered(".", &at, around)?;
        pointed.others.iter().try_for_each(|to| self.entered_word(to, &at, around))
    }
}

#[cfg(test)]
mod tests;
