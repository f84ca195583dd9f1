//! Commands and hooks of the world that no call waits for, and the files that are watched for hooks.

use std::sync::Arc;

use serde_json::json;

use super::world::{Owed, SessionWorld};
use crate::{
    hook::{
        EndedHook, FileChange, FileChangeKind, HandlerEnd, HandlerOutput, HookEvent, WatchReach,
        WatchedFile,
    },
    ids::ShellId,
    permission::Scope,
    ports::shells::{EndedShell, ShellState, ShellStatus},
    run::derived_settings::DerivedSettings,
    session::SessionInput,
    step1_settings_resolution::merge,
    turn::{effect::WatchOrder, tests::script::layer},
};

fn status(shell: &ShellId, state: ShellState) -> ShellStatus {
    ShellStatus::new(shell.clone(), "make".into(), state, 0, "/t/out".into())
}

impl SessionWorld {
    /// A command of the turn goes on in the background.
    pub(super) fn keeps_shell(&mut self) {
        if self.n_closed != 0 {
            return;
        }
        let shell = ShellId::from(format!("bash_{}", self.number()).as_str());
        self.tallies.shells.insert(shell.clone());
        self.tallies.all_shells.insert(shell.clone());
        self.owed.push(Owed::Shell(shell.clone()));
        let kept = status(&shell, ShellState::Running);
        self.input(SessionInput::ShellKept(Box::new(kept)));
    }

    /// A command ends. The session learns of it before the next input.
    pub(super) fn shell_ends(&mut self, shell: &ShellId) {
        if self.tallies.shells.remove(shell) {
            let status = status(shell, ShellState::Exited(0));
            self.input(SessionInput::ShellsEnded(vec![EndedShell { status, is_known: false }]));
        }
    }

    /// All commands end, since the session does. Returns whether there were any.
    pub(super) fn end_shells(&mut self) -> bool {
        let shells = std::mem::take(&mut self.tallies.shells);
        let gone =
            |it: &ShellId| EndedShell { status: status(it, ShellState::Lost), is_known: false };
        let ended: Vec<_> = shells.iter().map(gone).collect();
        let were_any = !ended.is_empty();
        if were_any {
            self.input(SessionInput::ShellsEnded(ended));
        }
        were_any
    }

    /// A hook ends: it adds something for the model, for the user, or nothing, or it asks for attention.
    pub(super) fn hook_ends(&mut self, how: u64) {
        let n = self.number();
        let text = format!("hook {n} adds this");
        let adds = json!({
            "hookSpecificOutput": { "hookEventName": "PostToolUse", "additionalContext": text },
        });
        let says = json!({ "systemMessage": "for you" });
        let (end, stdout, stderr) = match how % 4 {
            0 => (HandlerEnd::Exited(0), adds.to_string(), String::new()),
            1 => (HandlerEnd::Exited(0), says.to_string(), String::new()),
            2 => (HandlerEnd::Exited(0), String::new(), String::new()),
            _ => (HandlerEnd::Exited(2), String::new(), text),
        };
        if matches!(how % 4, 0 | 3) && self.n_closed == 0 {
            self.tallies.n_hooks += 1;
        }
        let output = HandlerOutput::new(end, stdout, stderr, 1);
        let (event, handler) = (HookEvent::PostToolUse, "h".into());
        let (file, reach, rewakes) = (None, WatchReach::Nothing, true);
        let ended = EndedHook { event, handler, output, file, reach, rewakes, shows: None };
        self.input(SessionInput::HookEnded(Box::new(ended)));
    }

    /// A turn says what files are watched by.
    pub(super) fn watches(&mut self, how: u64) {
        let (matcher, matched) =
            [("a.txt|b.txt", vec!["a.txt", "b.txt"]), ("c.txt", vec!["c.txt"])][(how % 2) as usize]
                .clone();
        let handler = json!([{ "type": "command", "command": "true" }]);
        let hooks = json!({ "FileChanged": [{ "matcher": matcher, "hooks": handler }] });
        let resolved = merge(&[layer(Scope::User, json!({ "hooks": hooks }))]);
        let derived = Arc::new(DerivedSettings::new(&resolved, &self.facts));
        let named = WatchedFile { path: "/w/named.txt".into(), reach: WatchReach::Workspace };
        let named = how.is_multiple_of(3).then(|| vec![named]);
        self.tallies.matched = matched;
        let order = WatchOrder { derived, cwd: "/w".into(), named };
        self.input(SessionInput::Watch(Box::new(order)));
        if self.machine.closing == crate::session::ClosePhase::No {
            self.check_watched();
        }
    }

    fn check_watched(&self) {
        let is_watched = |name: &&str| {
            let path = format!("/w/{name}");
            self.tallies.watched.iter().any(|it| it.path == path)
        };
        assert!(self.tallies.matched.iter().all(is_watched), "a file is not watched");
    }

    /// Files change, one of which may not be watched.
    pub(super) fn files_change(&mut self, how: u64) {
        let names = ["a.txt", "b.txt", "c.txt", "named.txt"];
        let name = names[(how % 4) as usize];
        let path = format!("/w/{name}");
        let is_watched = self.tallies.watched.iter().any(|it| it.path == path);
        let is_open = self.machine.closing == crate::session::ClosePhase::No;
        let fires = is_open && is_watched && self.tallies.matched.contains(&name);
        let n_before = self.n_fired();
        let kind = FileChangeKind::Change;
        self.input(SessionInput::FilesChanged(vec![FileChange { path, kind }]));
        assert_eq!(self.n_fired() - n_before, usize::from(fires), "handlers fired for {name}");
    }

    fn n_fired(&self) -> usize {
        self.log.iter().filter(|it| it.starts_with("FireHooks")).count()
    }

    /// What looks after the files crashes, and another one goes on with the same files.
    pub(super) fn watcher_crashes(&mut self) {
        let n_of =
            |world: &Self| world.log.iter().filter(|it| it.starts_with("WatchFiles")).count();
        let (n_before, files) = (n_of(self), self.tallies.watched.clone());
        let is_open = self.machine.closing == crate::session::ClosePhase::No;
        let goes_on = is_open && self.machine.watch.is_some();
        self.input(SessionInput::WatcherGone);
        assert_eq!(n_of(self) - n_before, usize::from(goes_on), "those that go on");
        assert_eq!(self.tallies.watched, files);
    }
}
