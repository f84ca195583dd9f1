//! Reports to listeners and hooks which instruction files have entered the context, one after another.
//!
//! Nothing that the hooks answer changes what was loaded; one of them can end the run.

use super::Turn;
use crate::{
    digest::Digest,
    event::Event,
    hook::{Firing, HookEvent, HookVerdict, LoadedInstructions},
    permission::Scope,
    run::RunEnd,
    step::Step,
    step2_state_initialization::FiringReason,
    step3_context_assembly::InstructionFile,
    step4_context_shapers::Stage,
    tokens::Tokens,
};

impl Turn {
    /// Notes the files that precede the conversation.
    pub(super) fn note_loaded(&mut self, files: &[InstructionFile]) {
        for file in files {
            self.note(&file.path, file.scope, "session_start", Vec::new(), &file.text);
        }
    }

    /// Notes what is appended to the conversation, where it is an instruction file or a rule that is there.
    pub(super) fn note_part(&mut self, name: &str, state: Digest) {
        let Some((kind, path)) = name.split_once(' ').filter(|_| state != Digest::default()) else {
            return;
        };
        let is_compaction = self.step != Step::ContextAssembly;
        let reason = match kind {
            "file" | "nested" | "rule" if is_compaction => "compact",
            "file" => "session_start",
            "nested" => "nested_traversal",
            "rule" => "path_glob_match",
            _ => return,
        };
        let Some(seen) = self.memory.seen.clone() else { return };
        let rule = seen.path_rules.iter().find(|it| kind == "rule" && it.path == path);
        let mut files = seen.instructions.iter().chain(&seen.nested);
        let file = files.find(|it| it.path == path);
        let home = format!("{}/.claude/", self.facts.home);
        let of_rule = if path.starts_with(&home) { Scope::User } else { Scope::Project };
        let globs = rule.map(|it| it.paths.clone()).unwrap_or_default();
        let text = rule.map(|it| &*it.text).or(file.map(|it| &*it.text)).unwrap_or_default();
        self.note(path, file.map_or(of_rule, |it| it.scope), reason, globs, text);
    }

    fn note(
        &mut self,
        path: &str,
        scope: Scope,
        reason: &'static str,
        globs: Vec<String>,
        text: &str,
    ) {
        let memory_type = match scope {
            Scope::User => "User",
            Scope::Policy => "Managed",
            Scope::Local => "Local",
            Scope::CliArg | Scope::Session | Scope::Project => "Project",
        };
        let tokens = Tokens::from_chars(text.chars().count() as u64);
        self.publish(Event::InstructionsLoaded { path: path.into(), memory_type, reason, tokens });
        if !self.has_hooks(HookEvent::InstructionsLoaded, reason) {
            return;
        }
        let loaded = LoadedInstructions { path: path.to_owned(), memory_type, reason, globs };
        self.state.loaded.push_back(loaded);
    }

    /// Fires for the next file that was noted; goes on when there is none.
    pub(super) fn fire_loaded(&mut self) {
        while let Some(loaded) = self.state.loaded.pop_front() {
            let firing = Firing::InstructionsLoaded(loaded);
            if self.fire(firing, None, FiringReason::InstructionsLoaded) {
                return;
            }
        }
        match self.step {
            Step::ContextAssembly => self.next(Step::ContextShaping),
            _ => self.after_stage(Stage::AutoCompact, true),
        }
    }

    pub(super) fn loaded_answered(&mut self, verdict: HookVerdict) {
        if let Some(reason) = verdict.stop {
            self.end_with(RunEnd::HookStopped, Some(reason));
        }
        self.fire_loaded();
    }
}
