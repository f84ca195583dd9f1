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

/// Handlers of a session whose texts are kept.
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
    #[error("over {MAX_EXPORT_BYTES} bytes are in CLAUDE_ENV_FILE, with those of other hooks")]
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
pub struct HookExports(Vec<(ExportingHandler, Arc<str>)>);

impl ExportingHandler {
    /// Returns the handler as one that writes lines for commands; `None` where its event or its trust lets it write none.
    /// `name` is one that only this handler of the event has.
    pub fn of(handler: &HookHandler, event: HookEvent, name: String) -> Option<Self> {
        let may = rank(event).is_some() && !handler.only_restricts;
        may.then(|| Self { event, name, is_of_repository: handler.scope.is_of_repository() })
    }
}

impl HookExports {
    /// Returns what the file of a handler that is about to run holds. What was written for another working directory
    /// does not hold any more when the directory has changed.
    pub fn begin(&mut self, handler: &ExportingHandler) -> Arc<str> {
        if handler.event == HookEvent::CwdChanged {
            let texts = self.0.iter_mut();
            let outdated =
                texts.filter(|it| it.0 == *handler || it.0.event == HookEvent::FileChanged);
            outdated.for_each(|it| it.1 = Arc::default());
        }
        match self.0.iter().find(|it| it.0 == *handler) {
            Some((_, text)) => Arc::clone(text),
            None => {
                // Its place among the others does not depend on when it ends.
                if self.0.len() < MAX_EXPORTING {
                    self.0.push((handler.clone(), Arc::default()));
                }
                Arc::default()
            }
        }
    }

    /// Takes what the file of a handler that has ended holds. What it has added to what was there before is added to
    /// what another run of it has left meanwhile; else it takes the place of that.
    ///
    /// # Errors
    ///
    /// [`ExportsRefused`]: it is too long or is not text.
    pub fn end(
        &mut self,
        handler: &ExportingHandler,
        before: &str,
        after: &[u8],
    ) -> Result<(), ExportsRefused> {
        let after = std::str::from_utf8(after).ok().filter(|it| !it.contains('\0'));
        let after = after.ok_or(ExportsRefused::NotText)?;
        let others = self.0.iter().filter(|it| it.0 != *handler);
        let n_others: usize = others.map(|it| it.1.len() + 1).sum();
        let Some((_, text)) = self.0.iter_mut().find(|it| it.0 == *handler) else {
            return if after.is_empty() { Ok(()) } else { Err(ExportsRefused::TooLong) };
        };
        let new = match after.strip_prefix(before) {
            Some("") => return Ok(()),
            Some(added) => format!("{text}{added}"),
            None => after.to_owned(),
        };
        if MAX_EXPORT_BYTES < n_others + new.len() {
            return Err(ExportsRefused::TooLong);
        }
        *text = new.into();
        Ok(())
    }

    /// Returns what commands begin with: the texts of SessionStart, CwdChanged and FileChanged hooks, in this order.
    pub fn for_shell(&self) -> ShellExports {
        let mut texts: Vec<_> = self.0.iter().filter(|it| !it.1.is_empty()).collect();
        texts.sort_by_key(|it| rank(it.0.event));
        let joined = |takes: fn(&ExportingHandler) -> bool| {
            let texts = texts.iter().filter(|it| takes(&it.0)).map(|it| &*it.1);
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
        let before = exports.begin(it);
        exports.end(it, &before, write(&before).as_bytes()).unwrap();
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
        // Those of the start come first, whoever wrote first.
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
        assert_eq!(exports.begin(&late).len(), 0);
        assert_eq!(exports.end(&late, "", b"A=1"), Err(ExportsRefused::TooLong));
    }
}
