//! Where transcripts lie: what no call of a session may write, and what searches leave out.
//!
//! A transcript only grows, and only its writer makes it grow. A file that is exchanged below the
//! writer takes everything with it that is written from then on. So what belongs to the session's
//! own tree of agents is denied in every mode, no matter who could be asked; the transcripts of
//! other sessions are protected places. Reading is free. Searches leave all of it out unless they
//! start in there: the question itself is in the transcript, so a search would find itself.

use super::{
    ResolvedPath,
    command::ShellCommand,
    path_rule::{escape, fold, lies_in},
};

/// What lies next to the directory of a session and bears its name.
const BESIDE: [&str; 5] = ["", ".jsonl", ".lock", ".checkpoint", ".kept"];

/// Where the transcripts of a session and of its neighbours lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcripts {
    /// What belongs to the session and its sub-agents, folded.
    own: Vec<String>,
    /// The directories of all sessions, folded; none where a workspace lies in it.
    all: Vec<String>,
    /// The patterns of both, as written.
    patterns: Vec<(String, String)>,
}

impl Transcripts {
    /// Makes the set from the directory next to the transcript of the top session, and the directory that it works in:
    /// each as written and, if that is another one, as it really is. All absolute.
    pub(crate) fn of_session(directories: &[&str], workspaces: &[&str]) -> Self {
        let mut found = Self::default();
        for directory in directories {
            let root = directory.rsplit_once('/').map_or("", |(root, _)| root);
            let beside = |directory: &str| BESIDE.map(|it| [directory, it].concat());
            // What is added is in small letters and begins with a dot, which composes with nothing.
            let own = beside(&fold(directory));
            // The one that keeps transcripts among the files that are worked on has only those kept
            // apart.
            let is_apart = !root.is_empty() && !workspaces.iter().any(|it| lies_in(it, root));
            let pattern = |it: &str| ["/", &escape(it)].concat();
            if is_apart {
                let folded = fold(root);
                found.patterns.push((folded.clone(), pattern(root)));
                found.all.push(folded);
            } else {
                let written = beside(directory);
                found
                    .patterns
                    .extend(own.iter().cloned().zip(written.iter().map(|it| pattern(it))));
            }
            found.own.extend(own);
        }
        found
    }

    /// Returns whether a write to this path, or a removal by this command, would change what belongs to the session
    /// itself.
    pub(super) fn are_changed(
        &self,
        written: Option<&ResolvedPath>,
        command: Option<&ShellCommand>,
    ) -> bool {
        let is_own = |path: &str| self.own.iter().any(|it| lies_in(path, it));
        let holds_own = |path: &str| self.own.iter().any(|it| is_taken_with(it, path));
        written.is_some_and(|it| named(it).any(|path| is_own(&path)))
            || command.is_some_and(|it| {
                it.altered().map(fold).any(|path| is_own(&path))
                    || it.removed().map(fold).any(|path| is_own(&path) || holds_own(&path))
            })
    }

    /// Returns whether a write to this path is one to the transcripts of any session.
    pub(super) fn hold(&self, path: &str) -> bool {
        let path = fold(path);
        let is_of_session = |root: &String| {
            let below = path.strip_prefix(&**root).and_then(|it| it.strip_prefix('/'));
            below.is_some_and(|it| is_name_of_session(it.split('/').next().unwrap_or_default()))
        };
        self.own.iter().any(|it| lies_in(&path, it)) || self.all.iter().any(is_of_session)
    }

    /// Returns whether a path lies where transcripts do, whatever it is.
    pub(super) fn surround(&self, path: &str) -> bool {
        let path = fold(path);
        self.all.iter().chain(&self.own).any(|it| lies_in(&path, it))
    }

    /// Returns patterns of what a search leaves out that starts there, in the form of
    /// [`Permit::hidden`](super::Permit::hidden). The one that names a place looks into it.
    pub(super) fn hidden(&self, start: Option<&ResolvedPath>) -> impl Iterator<Item = &String> {
        let starts: Vec<String> = start.into_iter().flat_map(named).collect();
        let is_left_out = move |place: &str| !starts.iter().any(|it| lies_in(it, place));
        self.patterns.iter().filter(move |(place, _)| is_left_out(place)).map(|(_, it)| it)
    }
}

/// Whether a path goes with one that is taken away, or with all of a directory.
fn is_taken_with(path: &str, taken: &str) -> bool {
    let (directory, is_deep) = match (taken.strip_suffix("/**"), taken.strip_suffix("/*")) {
        (Some(directory), _) => (directory, true),
        (None, Some(directory)) => (directory, false),
        (None, None) => return lies_in(path, taken),
    };
    let below = path.strip_prefix(directory).and_then(|it| it.strip_prefix('/'));
    below.is_some_and(|it| !it.starts_with('.') && (is_deep || !it.contains('/')))
}

/// Whether something in a directory of transcripts belongs to a session: others may keep files there.
fn is_name_of_session(name: &str) -> bool {
    let is_beside = BESIDE.iter().any(|it| !it.is_empty() && name.ends_with(it));
    // The directory of a session bears its UUID.
    let is_uuid = name.len() == 36 && name.bytes().all(|it| it == b'-' || it.is_ascii_hexdigit());
    is_beside || is_uuid
}

/// Every name of a path, folded.
fn named(path: &ResolvedPath) -> impl Iterator<Item = String> {
    [&path.lexical, &path.real].into_iter().chain(&path.passed).map(|it| fold(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SES-2
    #[test]
    fn what_belongs_to_a_session_is_known_by_its_name() {
        let transcripts = Transcripts::of_session(&["/w/.t/s1", "/real/.t/s1"], &["/w", "/real"]);
        let around = crate::step7_permission_gate::command::CommandContext {
            links: crate::step7_permission_gate::command::Follower::default(),
            cwd: "/w".into(),
            home: "/h".into(),
            workspace: vec!["/w".to_owned()].into(),
        };
        let changed = |command: &str| {
            transcripts.are_changed(None, Some(&ShellCommand::read(command, around.clone())))
        };
        for command in [
            "echo x >> .t/s1.jsonl",
            "rm -rf .t",
            "rm -rf .T/*",
            "rm -f .t/*",
            "mv .t/* elsewhere",
            "mv .t elsewhere",
            "mv .t/s1.jsonl elsewhere",
            "truncate -s 0 /real/.t/s1.jsonl",
            "cp x .t/s1/subagents/agent-1.jsonl",
            "touch .t/s1.checkpoint",
            "rm -rf /w",
            "sed -i s/a/b/ .t/s1.jsonl",
            "dd if=/dev/zero of=.t/s1.lock",
            "cp /dev/null .t/s1.jsonl -v",
            "cp -t .t/s1 x",
            "sed -Ei s/a/b/ .t/s1.jsonl",
        ] {
            assert!(changed(command), "{command}");
        }
        for command in [
            "cp .t/s1.jsonl /tmp/copy",
            "mv a .",
            "cat .t/s1.jsonl",
            "sed -n 1p .t/s1.jsonl",
            "dd if=.t/s1.jsonl of=/tmp/copy",
            "rm .t/s12.jsonl",
            "touch .t/s1.txt",
            "mkdir .t",
            "cp .t/s1/tool-results/x copy",
            "ln -s .t/s1/tool-results/x x",
            "rm -f *",
            "rm -rf ./*",
            "mv build.log /",
            "mv build.log ~",
        ] {
            assert!(!changed(command), "{command}");
        }
        assert!(transcripts.hold("/w/.t/other.jsonl") && !transcripts.hold("/w/.tx"));
        assert!(transcripts.hold("/w/.t/01a20059-09c8-7a62-bc9c-5dda331a550f/tool-results/x"));
        assert!(!transcripts.hold("/w/.t/notes.txt"));
    }

    #[track_caller]
    fn check_hidden(transcripts: &Transcripts, start: &str, expected: &[&str]) {
        let start =
            crate::step7_permission_gate::path_resolution::resolve(start, "/w", "/h", &mut |_| {
                crate::step7_permission_gate::path_resolution::PathEntry::Directory
            });
        let hidden: Vec<&String> = transcripts.hidden(Some(&start)).collect();
        assert_eq!(hidden, expected, "{start:?}");
    }

    // REQ: TOL-7
    #[test]
    fn search_that_starts_among_transcripts_sees_them() {
        let transcripts = Transcripts::of_session(&["/w/[t]/s1"], &["/w"]);
        check_hidden(&transcripts, ".", &["//w/\\[t\\]"]);
        check_hidden(&transcripts, "[t]", &[]);
        check_hidden(&transcripts, "[T]/s1/tool-results", &[]);
        let among = Transcripts::of_session(&["/w/s1"], &["/w"]);
        let all = ["//w/s1", "//w/s1.jsonl", "//w/s1.lock", "//w/s1.checkpoint", "//w/s1.kept"];
        check_hidden(&among, ".", &all);
        check_hidden(&among, "s1/tool-results", &all[1..]);
    }

    // REQ: SES-2
    #[test]
    fn among_the_files_of_a_workspace_only_the_own_are_kept_apart() {
        let transcripts = Transcripts::of_session(&["/w/s1"], &["/w"]);
        assert!(transcripts.hold("/w/s1.jsonl") && transcripts.hold("/w/s1/tool-results/x"));
        assert!(!transcripts.hold("/w/src/a.rs") && !transcripts.hold("/w/s1.rs"));
        assert!(Transcripts::of_session(&["/s1"], &["/w"]).hold("/s1.jsonl"));
    }
}
