//! A worktree and the checkout that it stands for: who works in the one leaves the other alone.
//!
//! Holds in every mode and whatever rules say. Commands are read with suspicion and not parsed, as
//! elsewhere in the gate: their directory is followed from `cd` to `cd`, and where it cannot be
//! followed, or git is pointed to another repository by something that the shell has yet to work
//! out, the command is refused.

use super::{
    ResolvedPath,
    path_resolution::by_text,
    path_rule::lies_in,
    shell_command::{ShellCommand, starts},
};
use crate::tool::Access;

/// Variables that point git to a repository, an index or files.
const VARIABLES: [&str; 4] = ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE"];

/// Where somebody works that is to leave the checkout around it alone. Each as written and as it
/// really is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// The top directories of the worktree.
    pub worktree: Vec<String>,
    /// Those of the checkout.
    pub checkout: Vec<String>,
}

impl Isolation {
    /// Why a call is refused, if it would reach the checkout.
    pub(super) fn refuses(
        &self,
        access: &Access,
        path: Option<&ResolvedPath>,
        command: Option<&ShellCommand>,
        workspace: &str,
    ) -> Option<&'static str> {
        let writes = matches!(access, Access::WritePath { .. });
        let outside = |it: &ResolvedPath| {
            let all = [&it.lexical, &it.real].into_iter().chain(&it.passed);
            all.into_iter().any(|it| self.is_in_checkout(it))
        };
        if writes && path.is_some_and(outside) {
            return Some("it changes a file of the checkout that this worktree stands apart from");
        }
        command.and_then(|it| self.refuses_command(it, workspace))
    }

    fn refuses_command(&self, command: &ShellCommand, workspace: &str) -> Option<&'static str> {
        const THERE: &str = "it works in the checkout that this worktree stands apart from";
        const UNTRACED: &str = "nobody can tell in which directory or repository it works, and \
            this agent is to stay in its worktree";
        let mut directory = workspace.to_owned();
        let mut moves = false;
        // Not split at variables and substitutions: they stay to be seen in their words.
        let raw = command.raw().replace("\\\n", "");
        for piece in raw.split(['&', '|', ';', '\n', '(', ')', '{', '}', '`', '<', '>']) {
            let words: Vec<String> = piece
                .split_whitespace()
                .map(|word| word.replace(['"', '\'', '\\'], ""))
                .filter(|word| !word.is_empty())
                .collect();
            for start in starts(&words) {
                let (name, operands) = (&words[start], &words[start + 1..]);
                if !matches!(name.as_str(), "cd" | "pushd") {
                    continue;
                }
                moves = true;
                match operands.iter().find(|it| *it == "-" || !it.starts_with('-')) {
                    Some(to) if is_open(to) => return Some(UNTRACED),
                    Some(to) => directory = absolute(to, &directory),
                    None => {}
                }
                if self.is_in_checkout(&directory) {
                    return Some(THERE);
                }
            }
            for target in redirected(&words) {
                match target {
                    None => return Some(UNTRACED),
                    Some(to) if is_open(to) => return Some(UNTRACED),
                    Some(to) if self.is_in_checkout(&absolute(to, &directory)) => {
                        return Some(THERE);
                    }
                    Some(_) => {}
                }
            }
        }
        // What it writes is read as if it worked where it starts.
        let writes = !moves && command.files(true).any(|it| self.is_in_checkout(it));
        writes.then_some(THERE)
    }

    fn is_in_checkout(&self, path: &str) -> bool {
        let inside = |all: &[String]| all.iter().any(|it| lies_in(path, it));
        inside(&self.checkout) && !inside(&self.worktree)
    }
}

/// Where a piece points git to; `None` where the piece does not say it.
fn redirected(words: &[String]) -> Vec<Option<&str>> {
    let of_variables = words.iter().filter_map(|it| {
        let (name, value) = it.split_once('=')?;
        VARIABLES.contains(&name).then_some(Some(value))
    });
    let mut found: Vec<_> = of_variables.collect();
    for (i, _) in words.iter().enumerate().filter(|(_, it)| *it == "git" || it.ends_with("/git")) {
        let mut options = words[i + 1..].iter();
        while let Some(option) = options.next() {
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (option.as_str(), None),
            };
            match name {
                "-C" => found.push(options.next().map(String::as_str)),
                "--git-dir" | "--work-tree" => {
                    found.push(value.or_else(|| options.next().map(String::as_str)));
                }
                "-c" | "--config-env" if value.is_none() => {
                    let said = options.next().and_then(|it| it.split_once('='));
                    found.extend(said.filter(|it| it.0 == "core.worktree").map(|it| Some(it.1)));
                }
                _ if name.starts_with('-') => {}
                // An option may come of it.
                _ if is_open(name) => found.push(None),
                _ => break,
            }
        }
    }
    found
}

/// Whether the shell has yet to work it out.
fn is_open(word: &str) -> bool {
    word.contains(['$', '*', '?', '[', '~']) || word.is_empty() || word == "-"
}

fn absolute(path: &str, directory: &str) -> String {
    match path.starts_with('/') {
        true => by_text(path),
        false => by_text(&format!("{directory}/{path}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKTREE: &str = "/r/.claude/worktrees/agent-1";

    fn refused(command: &str) -> bool {
        let isolation = Isolation { worktree: vec![WORKTREE.into()], checkout: vec!["/r".into()] };
        let access = Access::Command { field: "command".into() };
        let read = ShellCommand::read(command, WORKTREE, "/h");
        isolation.refuses(&access, None, Some(&read), WORKTREE).is_some()
    }

    // D74  REQ: AGT-9
    #[test]
    fn git_is_not_pointed_to_the_checkout() {
        for command in [
            "git -C /r status",
            "git -C ../../.. commit -m x",
            "git -C \"/r\" log",
            "git -c user.name=x -C /r/sub log",
            "git --git-dir /r/.git log",
            "git --git-dir=/r/.git --work-tree=. add .",
            "git --work-tree ../../../ checkout .",
            "git -c core.worktree=/r checkout .",
            "GIT_DIR=/r/.git git log",
            "export GIT_DIR=../../../.git",
            "env GIT_DIR=/r/.git git log",
            "GIT_WORK_TREE=/r git checkout .",
            "bash -c 'git -C /r log'",
            "/usr/bin/git -C /r log",
            "echo a && git -C /r log",
            // Nobody knows where to.
            "git -C $DIR log",
            "git -C \"$(cat x)\" log",
            "git -C `cat x` log",
            "git -C ~/x log",
            "GIT_DIR=$X git log",
            "git -C",
            "git $OPTIONS log",
        ] {
            assert!(refused(command), "{command}");
        }
        for command in [
            "git status",
            "git commit -m 'see git -C'x",
            "git -C . log",
            "git -C sub log",
            "git -C /r/.claude/worktrees/agent-1/sub log",
            "git -C /elsewhere log",
            "git log --format=%H -C",
            "make -C /r/sub",
            "grep -C 3 x y",
        ] {
            assert!(!refused(command), "{command}");
        }
    }

    // D74  REQ: AGT-9
    #[test]
    fn no_command_works_in_the_checkout() {
        for command in [
            "cd /r && make",
            "cd ../../..; ls",
            "cd sub && cd ../.. && ls",
            "(cd /r/sub; git commit)",
            "pushd /r",
            "cd -P /r",
            "bash -c 'cd /r && make'",
            "cd $X && git commit",
            "cd \"$(git rev-parse --show-toplevel)/..\"",
            "cd -",
            "echo x > /r/a",
            "echo x > ../../../a",
            "tee /r/a",
        ] {
            assert!(refused(command), "{command}");
        }
        for command in [
            "cd sub && cd .. && make",
            "cd /r/.claude/worktrees/agent-1",
            "cd /tmp && ls",
            "cd sub && echo x > ../a",
            "echo $HOME > a",
            "cat /r/a",
            "for i in 1 2; do echo $i; done",
        ] {
            assert!(!refused(command), "{command}");
        }
    }
}
