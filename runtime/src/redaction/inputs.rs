//! What a turn and a session receive, without its secrets.
//!
//! Settings are left as they are: children are started with what they say. They are redacted where
//! they are written.

use std::borrow::Cow;

use super::Redactor;
use crate::{
    approval::{GivenAnswer, PolicyVerdict},
    block::{Block, BlockKind},
    hook::HandlerOutput,
    run::RunRequest,
    session::SessionInput,
    step3_context_assembly::{SourceTexts, SourcesLook, SourcesSeen},
    step5_model_call::{ModelAnswer, ModelFailure},
    step6_tool_dispatch::Admission,
    tool::{ToolNote, ToolOutcome},
    turn::TurnInput,
};

#[doc(hidden)]
impl Redactor {
    /// Takes the secrets out of an input of a turn.
    pub fn turn_input(&self, input: &mut TurnInput) {
        match input {
            TurnInput::SourcesRead(texts) => self.sources(texts),
            TurnInput::SourcesSeen(SourcesLook::Found(seen, _)) => self.sources_seen(seen),
            TurnInput::ModelAnswered(answered) => match &mut answered.result {
                Ok(answer) => self.answer(answer),
                Err(failure) => self.failure(failure),
            },
            TurnInput::Dispatched(admissions) => {
                for admission in admissions {
                    if let Admission::InvalidInput(why) = admission {
                        self.in_place(why);
                    }
                }
            }
            TurnInput::HooksAnswered { outputs, .. } => {
                outputs.iter_mut().for_each(|it| self.hook_output(it));
            }
            TurnInput::PolicyAnswered { verdict, .. } => match verdict {
                PolicyVerdict::Allow { reason } | PolicyVerdict::Deny { reason } => {
                    self.in_place(reason);
                }
                PolicyVerdict::Abstain => {}
            },
            TurnInput::PermissionAnswered { given, .. } => self.given_answer(given),
            TurnInput::InputRefused { why, .. } => self.in_place(why),
            TurnInput::PlanRead { plan, .. } => plan.iter_mut().for_each(|it| self.in_place(it)),
            TurnInput::ToolFinished { outcome, .. } => self.outcome(outcome),
            // Made from what the turn knows already, or settings, or no text.
            TurnInput::Run(_)
            | TurnInput::SettingsRead(_)
            | TurnInput::SettingsMerged(_)
            | TurnInput::SourcesSeen(SourcesLook::Unchanged)
            | TurnInput::Shaped { .. }
            | TurnInput::TimerFired { .. }
            | TurnInput::PathResolved { .. }
            | TurnInput::CommandJudged { .. }
            | TurnInput::ModeChanged(_)
            | TurnInput::Recorded { .. }
            | TurnInput::StopRequested => {}
        }
    }

    /// Takes the secrets out of an input of a session. What its turns and sub-agents report was
    /// redacted when it reached them.
    pub fn session_input(&self, input: &mut SessionInput) {
        match input {
            SessionInput::Prompt { request, .. } => self.request(request),
            SessionInput::HookEnded(ended) => self.hook_output(&mut ended.output),
            SessionInput::Message { text, .. } => self.in_place(text),
            SessionInput::TurnLeft { left, .. } => {
                left.committed.values_mut().for_each(|it| self.outcome(it));
            }
            _ => {}
        }
    }

    /// Takes the secrets out of what a call gave.
    pub fn outcome(&self, outcome: &mut ToolOutcome) {
        self.in_place(&mut outcome.text);
        if let Some(structured) = &mut outcome.structured
            && let Cow::Owned(redacted) = self.json(structured)
        {
            *structured = redacted;
        }
        for note in &mut outcome.notes {
            match note {
                ToolNote::Todos(todos) => {
                    for todo in todos {
                        self.in_place(&mut todo.content);
                        self.in_place(&mut todo.active_form);
                    }
                }
                ToolNote::AgentsEnded { findings } => {
                    for it in findings.agents_mut() {
                        self.in_place(&mut it.task);
                        self.in_place(&mut it.text);
                    }
                }
                ToolNote::PageFetched { page } => {
                    for text in [&mut page.url, &mut page.prompt, &mut page.text] {
                        self.in_place(text);
                    }
                }
                _ => {}
            }
        }
    }

    /// Takes the secrets out of why a model call failed. Servers repeat what they were sent, and cut it
    /// off.
    pub fn failure(&self, failure: &mut ModelFailure) {
        for text in [&mut failure.message, &mut failure.partial_text] {
            if let Cow::Owned(redacted) = self.cut_text(text) {
                *text = redacted;
            }
        }
    }

    /// Replaces the secrets in a block.
    pub fn block(&self, block: &mut Block) {
        match block.kind() {
            // Of these the bytes belong to their provider, or are a picture.
            BlockKind::RedactedThinking | BlockKind::StopRequest => return,
            BlockKind::Opaque { kind } if &**kind == "image" => return,
            _ => {}
        }
        if let BlockKind::Thinking { thinking, signature } = block.kind() {
            if matches!(self.text(thinking), Cow::Owned(_)) {
                // A signature does not fit a text that was changed. Without its text a block is as
                // providers give it that keep their reasoning to themselves.
                *block = Block::thinking("", signature.as_deref());
            }
            return;
        }
        if !self.may_find(block.wire_open().as_bytes()) {
            return;
        }
        let mut wire = block.wire_open().to_owned();
        wire.push('}');
        if let Cow::Owned(redacted) = self.json(&wire)
            && let Ok(redacted) = Block::from_wire(&redacted)
        {
            *block = redacted;
        }
    }

    fn answer(&self, answer: &mut ModelAnswer) {
        answer.blocks.iter_mut().for_each(|it| self.block(it));
        for text in answer.refusal.iter_mut().chain(&mut answer.stop_sequence) {
            self.shared(text);
        }
    }

    fn sources(&self, texts: &mut SourceTexts) {
        let prompts = texts.system_prompt.iter_mut().chain(&mut texts.append_system_prompt);
        let memory = texts.auto_memory.iter_mut().chain([&mut texts.git]);
        let files = texts.instructions.iter_mut().map(|it| &mut it.text);
        let rules = texts.path_rules.iter_mut().map(|it| &mut it.text);
        let environment = texts.environment.iter_mut().map(|it| &mut it.1);
        let all = prompts.chain(memory).chain(files).chain(rules).chain(environment);
        all.for_each(|it| self.in_place(it));
    }

    fn sources_seen(&self, seen: &mut SourcesSeen) {
        let files = seen.instructions.iter_mut().chain(&mut seen.nested).map(|it| &mut it.text);
        let rules = seen.path_rules.iter_mut().map(|it| &mut it.text);
        files.chain(rules).chain(&mut seen.background).for_each(|it| self.in_place(it));
        for content in &mut seen.contents {
            let redacted = if content.is_cut {
                self.cut_text(&content.text)
            } else {
                self.text(&content.text)
            };
            if let Cow::Owned(redacted) = redacted {
                content.text = redacted;
            }
        }
    }

    fn hook_output(&self, output: &mut HandlerOutput) {
        // An object that a hook prints stays one.
        if let Cow::Owned(redacted) = self.json(&output.stdout) {
            (output.stdout, output.read) = (redacted, Default::default());
        }
        self.in_place(&mut output.stderr);
    }

    fn given_answer(&self, given: &mut GivenAnswer) {
        self.in_place(&mut given.answer.reason);
        if let Some(input) = &mut given.answer.input {
            self.shared_json(input);
        }
    }

    fn request(&self, request: &mut RunRequest) {
        request.content.iter_mut().for_each(|it| self.block(it.block_mut()));
        for text in [&mut request.system, &mut request.compacts].into_iter().flatten() {
            self.in_place(text);
        }
    }
}
