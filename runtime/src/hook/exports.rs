//! What hooks have the commands of a session begin with: lines such as `export A=b` that their handlers wrote to the
//! file `CLAUDE_ENV_FILE`.
//!
//! Each handler has a text of its own, so that one that writes its file anew leaves alone what others wrote.

use std::sync::Arc;

use thiserror::Error;

use super::{HookEvent, HookHandler};

/// Bytes of all texts of a session together. The kernel takes a variable of at most 128 KiB.
#[doc(hidden)]
pub const MAX_EXPORT_BYTES: usize = 64 << 10;

/// Handlers of a session whose texts are kept; half of them those of a repository.
const MAX_EXPORTING: usize = 256;

/// A handler that may write lines for commands.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportingHandler {
    /// What it is run for.
    event: HookEvent,
    /// A name that only this handler of the event has.
    name: String,
    is_of_repository: bool,
}

/// Why what a handler wrote for commands is not taken; what it wrote before stays.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ExportsRefused {
    /// There is too much of it.
    #[error(
        "over {MAX_EXPORT_BYTES} bytes, or half of that from a repository's hooks, are in CLAUDE_ENV_FILE with those of other hooks"
    )]
    TooLong,
    /// A shell cannot be given it.
    #[error("what is in CLAUDE_ENV_FILE is not text")]
    NotText,
    /// The file is gone, or is something else now.
    #[error("CLAUDE_ENV_FILE cannot be read any more")]
    Unreadable,
}

/// What hooks of a session have its commands begin with.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellExports {
    /// Lines for every command; for a confined one where there is a sandbox.
    pub lines: Arc<str>,
    /// Lines for a command that is not confined although there is a sandbox: without those of a repository's hooks,
    /// which are confined themselves.
    pub unconfined: Arc<str>,
}

/// The texts of all handlers of a session.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct HookExports {
    texts: Vec<HandlerText>,
    /// Runs of handlers that have begun.
    n_begun: u64,
}

/// What a handler has left.
#[derive(Clone, Debug)]
struct HandlerText {
    of: ExportingHandler,
    text: Arc<str>,
    /// Runs that began before this one have nothing to say: the directory has changed since.
    since: u64,
    /// The newest run that has ended.
    newest: u64,
}

/// A run of a handler that has begun.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct ExportRun {
    number: u64,
    /// What its file holds at first.
    pub before: Arc<str>,
}

impl ExportingHandler {
    /// Returns the handler as one that writes lines for commands; `None` where its event or its trust lets it write none.
    /// `name` is one that only this handler of the event has.
    pub fn of(handler: &HookHandler, event: HookEvent, name: String) -> Option<Self> {
        let may = rank(event).is_some() && !handler.only_restricts;
        may.then(|| Self { event, name, is_of_repository: handler.scope.is_of_repository() })
    }
}

impl HookExports {
    /// Begins a run of a handler. What was written for another working directory does not hold any more when the
    /// directory has changed, nor what runs write that began in that one.
    pub fn begin(&mut self, handler: &ExportingHandler) -> ExportRun {
        self.n_begun += 1;
        let number = self.n_begun;
        if handler.event == HookEvent::CwdChanged {
            let texts = self.texts.iter_mut();
            let outdated =
                texts.filter(|it| it.of == *handler || it.of.event == HookEvent::FileChanged);
            outdated.for_each(|it| (it.text, it.since) = (Arc::default(), number));
        }
        if let Some(known) = self.texts.iter().find(|it| it.of == *handler) {
            return ExportRun { number, before: Arc::clone(&known.text) };
        }
        let of_class = |it: &&HandlerText| it.of.is_of_repository == handler.is_of_repository;
        let n_of_class = self.texts.iter().filter(of_class).count();
        // Its place among the others does not depend on when it ends.
        if n_of_class < MAX_EXPORTING / 2 {
            let (of, text) = (handler.clone(), Arc::default());
            self.texts.push(HandlerText { of, text, since: 0, newest: 0 });
        }
        ExportRun { number, before: Arc::default() }
    }

    /// Takes what the file of a run that has ended holds. What it has added to what was there before is added to
    /// what other runs of its handler have left meanwhile; else it takes the place of that, unless one of those began
    /// later.
    ///
    /// # Errors
    ///
    /// [`ExportsRefused`]: it is too long or is not text.
    pub fn end(
        &mut self,
        handler: &ExportingHandler,
        run: &ExportRun,
        after: &[u8],
    ) -> Result<(), ExportsRefused> {
        let after = std::str::from_utf8(after).ok().filter(|it| !it.contains('\0'));
        let after = after.ok_or(ExportsRefused::NotText)?;
        let n_others = |is_counted: fn(&ExportingHandler) -> bool| -> usize {
            let others = self.texts.iter().filter(|it| it.of != *handler && is_counted(&it.of));
            others.map(|it| it.text.len() + 1).sum()
        };
        let (n_all, n_of_repository) = (n_others(|_| true), n_others(|it| it.is_of_repository));
        let Some(known) = self.texts.iter_mut().find(|it| it.of == *handler) else {
            return if after.is_empty() { Ok(()) } else { Err(ExportsRefused::TooLong) };
        };
        if run.number < known.since {
            return Ok(());
        }
        let is_newest = known.newest < run.number;
        let new = match (after.strip_prefix(&*run.before), is_newest) {
            (Some(""), _) => known.text.to_string(),
            (Some(added), true) => format!("{}{added}", known.text),
            (None, true) => after.to_owned(),
            // A newer run has written its file anew.
            (_, false) if !known.text.starts_with(&*run.before) => return Ok(()),
            (Some(_), false) => format!("{after}{}", &known.text[run.before.len()..]),
            (None, false) => return Ok(()),
        };
        let too_much = MAX_EXPORT_BYTES < n_all + new.len()
            || handler.is_of_repository && MAX_EXPORT_BYTES / 2 < n_of_repository + new.len();
        if too_much {
            return Err(ExportsRefused::TooLong);
        }
        (known.text, known.newest) = (new.into(), known.newest.max(run.number));
        Ok(())
    }

    /// Returns what commands begin with: the texts of SessionStart, CwdChanged and FileChanged hooks, in this order.
    pub fn for_shell(&self) -> ShellExports {
        let mut texts: Vec<_> = self.texts.iter().filter(|it| !it.text.is_empty()).collect();
        texts.sort_by_key(|it| rank(it.of.event));
        let joined = |takes: fn(&ExportingHandler) -> bool| {
            let texts = texts.iter().filter(|it| takes(&it.of)).map(|it| &*it.text);
            texts.collect::<Vec<&str>>().join("\n").into()
        };
        ShellExports { lines: joined(|_| true), unconfined: joined(|it| !it.is_of_repository) }
    }
}

/// The place of an event among those whose handlers write lines for commands.
fn rank(event: HookEvent) -> Option<u8> {
    match event {
        HookEvent::SessionStart => Some(0),
        HookEvent::CwdChanged => Some(1),
        HookEvent::FileChanged => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{HookEvent::*, *};
    use crate::{
        hook::{HookAction, HookWait, Matcher, OnFailure},
        permission::Scope,
    };

    fn handler(scope: Scope, only_restricts: bool) -> HookHandler {
        HookHandler {
            matcher: Matcher::Any,
            condition: None,
            action: HookAction::Command { command: "x".into(), args: None },
            timeout_ms: 1,
            on_failure: OnFailure::Ignore,
            wait: HookWait::Waited,
            scope,
            only_restricts,
        }
    }

    fn writes(event: HookEvent, name: &str) -> ExportingHandler {
        ExportingHandler::of(&handler(Scope::User, false), event, name.into()).unwrap()
    }

    /// Runs a handler that leaves what `write` makes of the content of its file.
    fn run(exports: &mut HookExports, it: &ExportingHandler, write: impl Fn(&str) -> String) {
        let run = exports.begin(it);
        exports.end(it, &run, write(&run.before).as_bytes()).unwrap();
    }

    fn lines(exports: &HookExports) -> String {
        exports.for_shell().lines.to_string()
    }

    // REQ: HKS-1
    #[test]
    fn handlers_add_to_their_own_lines_or_write_them_anew() {
        let mut exports = HookExports::default();
        let (file, start) = (writes(FileChanged, "f"), writes(SessionStart, "s"));
        run(&mut exports, &file, |it| format!("{it}export A=1\n"));
        run(&mut exports, &start, |_| "export A=0\n".into());
        run(&mut exports, &file, |it| format!("{it}export A=2\n"));
        // The lines of SessionStart hooks come first, also where others were written before them.
        assert_eq!(lines(&exports), "export A=0\n\nexport A=1\nexport A=2\n");
        run(&mut exports, &file, |_| "export B=1\n".into());
        assert_eq!(lines(&exports), "export A=0\n\nexport B=1\n");
        run(&mut exports, &start, |_| String::new());
        assert_eq!(lines(&exports), "export B=1\n");
    }

    // REQ: HKS-1
    #[test]
    fn two_runs_of_one_handler_lose_nothing_of_each_other() {
        let (mut exports, it) = (HookExports::default(), writes(FileChanged, "f"));
        run(&mut exports, &it, |_| "1\n".into());
        let (one, other) = (exports.begin(&it), exports.begin(&it));
        exports.end(&it, &one, b"1\n2\n").unwrap();
        exports.end(&it, &other, b"1\n3\n").unwrap();
        assert_eq!(lines(&exports), "1\n2\n3\n");
        // The newer one stands last, whichever ends first.
        let (one, other) = (exports.begin(&it), exports.begin(&it));
        exports.end(&it, &other, b"1\n2\n3\n5\n").unwrap();
        exports.end(&it, &one, b"1\n2\n3\n4\n").unwrap();
        assert_eq!(lines(&exports), "1\n2\n3\n4\n5\n");
    }

    // REQ: HKS-1
    #[test]
    fn file_that_is_written_anew_is_that_of_the_newest_run() {
        let (mut exports, it) = (HookExports::default(), writes(FileChanged, "f"));
        run(&mut exports, &it, |_| "old\n".into());
        let (one, other) = (exports.begin(&it), exports.begin(&it));
        exports.end(&it, &other, b"new\n").unwrap();
        exports.end(&it, &one, b"before\n").unwrap();
        assert_eq!(lines(&exports), "new\n");
    }

    // REQ: HKS-1
    #[test]
    fn run_that_began_in_another_directory_leaves_nothing() {
        let (mut exports, it) = (HookExports::default(), writes(FileChanged, "f"));
        run(&mut exports, &it, |_| "old\n".into());
        let late = exports.begin(&it);
        run(&mut exports, &writes(CwdChanged, "c"), |_| "here\n".into());
        exports.end(&it, &late, b"old\nlate\n").unwrap();
        assert_eq!(lines(&exports), "here\n");
    }

    // REQ: HKS-1
    #[test]
    fn a_repositorys_handlers_leave_room_for_the_others() {
        let mut exports = HookExports::default();
        let theirs = handler(Scope::Project, false);
        let theirs = ExportingHandler::of(&theirs, SessionStart, "x".into()).unwrap();
        let half = "y".repeat(MAX_EXPORT_BYTES / 2);
        let begun = exports.begin(&theirs);
        let refused = exports.end(&theirs, &begun, format!("{half}z").as_bytes());
        assert_eq!(refused, Err(ExportsRefused::TooLong));
        exports.end(&theirs, &begun, half.as_bytes()).unwrap();
        run(&mut exports, &writes(SessionStart, "mine"), |_| half[1..].into());
    }

    // REQ: HKS-1
    #[test]
    fn what_was_written_for_another_directory_holds_no_more() {
        let mut exports = HookExports::default();
        for event in [SessionStart, CwdChanged, FileChanged] {
            run(&mut exports, &writes(event, "x"), |it| format!("{it}{event:?}\n"));
        }
        run(&mut exports, &writes(CwdChanged, "x"), |it| format!("{it}now\n"));
        assert_eq!(lines(&exports), "SessionStart\n\nnow\n");
    }

    // REQ: HKS-1, TOL-10
    #[test]
    fn lines_of_a_repository_are_not_for_commands_outside_of_the_sandbox() {
        let mut exports = HookExports::default();
        let of = |scope| ExportingHandler::of(&handler(scope, false), SessionStart, "x".into());
        run(&mut exports, &of(Scope::Project).unwrap(), |_| "theirs".into());
        run(&mut exports, &of(Scope::User).unwrap(), |_| "mine".into());
        let ShellExports { lines, unconfined } = exports.for_shell();
        assert_eq!((&*lines, &*unconfined), ("theirs\nmine", "mine"));
    }

    // REQ: HKS-1
    #[test]
    fn handlers_of_other_events_and_those_that_only_restrict_write_none() {
        let of = |event, restricts| {
            ExportingHandler::of(&handler(Scope::Project, restricts), event, "x".into()).is_some()
        };
        assert!(of(SessionStart, false) && !of(SessionStart, true));
        let may = HookEvent::ALL.into_iter().filter(|it| of(*it, false));
        assert_eq!(may.collect::<Vec<_>>(), [SessionStart, CwdChanged, FileChanged]);
    }

    // REQ: HKS-1
    #[test]
    fn what_is_too_long_or_not_text_is_refused_and_the_lines_before_stay() {
        let (mut exports, it) = (HookExports::default(), writes(SessionStart, "s"));
        run(&mut exports, &writes(FileChanged, "f"), |_| "x".into());
        let most = "y".repeat(MAX_EXPORT_BYTES - 2);
        run(&mut exports, &it, |_| most.clone());
        let before = exports.begin(&it);
        for (after, why) in [
            (format!("{most}z").into_bytes(), ExportsRefused::TooLong),
            (b"A=\0".to_vec(), ExportsRefused::NotText),
            (b"A=\xff".to_vec(), ExportsRefused::NotText),
        ] {
            assert_eq!(exports.end(&it, &before, &after), Err(why));
        }
        assert_eq!(lines(&exports), format!("{most}\nx"));
        for n in 0..MAX_EXPORTING {
            exports.begin(&writes(FileChanged, &n.to_string()));
        }
        let late = writes(FileChanged, "late");
        let begun = exports.begin(&late);
        assert!(begun.before.is_empty());
        assert_eq!(exports.end(&late, &begun, b"A=1"), Err(ExportsRefused::TooLong));
    }
}
