//! Hooks that are not waited for: their end is on record at once, and what they add reaches the model with the next
//! turn. This module handles their ends; `heard_hooks` keeps what they add until then.
//!
//! The record names the message that will show it. A session that is resumed finds the record without that message,
//! and shows it then; so it is shown once.

use super::{
    ClosePhase, Machine, Now, SessionEffect,
    heard_hooks::{HeardHook, KeptHook},
    recorder::{PendingLines, WriteOrigin},
};
use crate::{
    block::Block,
    event::Event,
    hook::{EndedHook, HookVerdict},
    ids::EntryId,
    message::{Message, MessageKind},
    step3_context_assembly::of_hook,
    transcript::{
        entry::{Line, Record, RecordKind, Stored},
        load::ASKS,
    },
    turn::keep_overlong,
};

impl Machine {
    /// Records that a hook has ended, and keeps what it adds for the next turn.
    pub(super) fn hook_ended(&mut self, now: Now, ended: &EndedHook) {
        if self.closing == ClosePhase::Done {
            return;
        }
        let mut verdict = ended.verdict();
        let mut stored = keep_overlong(&mut verdict, &self.conversation.facts.directory);
        for what in &verdict.errors {
            let what = what.as_str().into();
            self.effects.push(SessionEffect::Publish(Event::Alert { what }));
        }
        let has_room = self.hooks.has_room();
        let adds = !verdict.additional_context.is_empty();
        if (adds || !verdict.messages.is_empty()) && !has_room {
            let what =
                "what a hook adds is dropped: too many have ended since the last turn".into();
            self.effects.push(SessionEffect::Publish(Event::Alert { what }));
        }
        let shows =
            (adds && has_room).then(|| ended.shows.clone().unwrap_or_else(|| self.name(now)));
        let output = &ended.output;
        let message = (!verdict.messages.is_empty()).then(|| verdict.messages.join("\n"));
        let what = RecordKind::Hook {
            event: ended.event,
            call: None,
            index: 0,
            handler: ended.handler.clone(),
            matcher: None,
            file: ended.file.clone(),
            exit: output.ended.exit_code(),
            ended: output.ended.code().into(),
            duration_ms: output.duration_ms,
            effect: effect(ended, &verdict).into(),
            message: message.map(|it| Stored::new(&it, &mut stored)),
            stdout: Stored::new(&output.stdout, &mut stored),
            stderr: Stored::new(&output.stderr, &mut stored),
            shows: shows.clone(),
            sidechain: None,
        };
        let line = Line::Harness(Box::new(Record::new(now.at, None, 0, what)));
        let lines = PendingLines { lines: vec![line], stored, title: None, sync: false };
        // It is written at once, so that it is on record should the process be killed.
        self.recorder.append(WriteOrigin::Unawaited, lines, &mut self.effects);
        // In a recorded session, the prompt that follows is on record, too.
        let asks = ended.asks() && shows.is_some() && ended.shows.is_none();
        if asks && !self.hooks.note_asks() {
            let what = "a hook asks for attention once more, and nobody has said anything since: it is heard with \
                the next prompt";
            self.effects.push(SessionEffect::Publish(Event::Alert { what: what.into() }));
        }
        if let Some(named) = verdict.watches.take() {
            self.watch_named(named);
        }
        if has_room {
            self.hooks.add(ended.event, shows, verdict);
        }
        self.wake(now);
    }

    /// Makes the name of the message that shows what a hook adds.
    fn name(&mut self, now: Now) -> EntryId {
        let n = self.hooks.next_name();
        let stream = self.conversation.stream.child(&self.last_run.0.to_string());
        stream.entry_id(now.at, "hook", n)
    }

    /// Takes over what is on record and was not shown to the model.
    pub(super) fn resume_hooks(&mut self, kept: Vec<KeptHook>) {
        for KeptHook { event, shows, texts } in kept {
            let verdict = HookVerdict { additional_context: texts, ..HookVerdict::default() };
            self.hooks.add(event, shows, verdict);
        }
    }

    /// Takes out what hooks add, as the messages of a turn that begins.
    pub(super) fn take_heard_hooks(&mut self) -> Vec<Message> {
        let revision = self.conversation.facts.revision;
        let mut shown = Vec::new();
        for HeardHook { event, shows, texts, messages } in self.hooks.take_heard() {
            for text in messages {
                self.hooks.say(Event::HookMessage { hook: event, text: text.into() });
            }
            if let Some(id) = shows {
                let blocks = vec![Block::text(&of_hook(event, revision, &texts.join("\n\n")))];
                shown.push(Message::user(id, MessageKind::Meta, blocks));
            }
        }
        shown
    }

    /// Publishes what hooks say to the user, in a turn that has begun.
    pub(super) fn publish_heard_hooks(&mut self) {
        let said = self.hooks.take_said().into_iter();
        self.effects.extend(said.map(SessionEffect::Publish));
    }
}

/// What came of a hook, in a word.
fn effect(ended: &EndedHook, verdict: &HookVerdict) -> &'static str {
    match verdict {
        _ if ended.asks() => ASKS,
        it if !it.errors.is_empty() => "error",
        it if !it.additional_context.is_empty() => "context",
        _ => "none",
    }
}
