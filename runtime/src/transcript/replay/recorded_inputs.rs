//! The inputs of a turn, read off its lines.

mod approvals;
mod calls;
mod model;
mod sources;

use std::{borrow::Cow, sync::Arc};

use super::{ReplayError, StoredTexts, line::SealedLine, texts::text_of, window::record};
use crate::{
    digest::Digest,
    hook::{HandlerEnd, HandlerOutput, HookAction, HookEvent},
    ids::ToolUseId,
    run::facts::{REVISION, SessionFacts},
    step::Step,
    step1_settings_resolution::LayerText,
    step7_permission_gate::{Judged, LinksSeen, PathKind, ResolvedPath, path_resolution::can_be},
    time::Timestamp,
    transcript::entry::{Line, LinksRecord, RecordKind, StepDetail, Stored},
    turn::{
        Effect, Turn, TurnInput,
        effect::{HookFiring, Purpose, ShapeOrder},
        input::{Crashed, SettingsRead},
    },
};

/// The error of a stage that crashed, as a turn records it.
const CRASHED: &str = "the stage crashed";

/// The lines of a turn, and how far they were compared.
pub(super) struct RecordedInputs<'a> {
    lines: &'a [&'a SealedLine<'a>],
    next: usize,
    stored: StoredTexts<'a>,
    facts: Arc<SessionFacts>,
    layers: Option<Digest>,
    /// Blocks of answers that were paused.
    n_paused: usize,
    /// Who was last asked for an answer.
    asked: Option<(usize, Arc<str>)>,
}

impl<'a> RecordedInputs<'a> {
    pub(super) fn new(
        lines: &'a [&'a SealedLine<'a>],
        stored: StoredTexts<'a>,
        facts: Arc<SessionFacts>,
        layers: Option<Digest>,
    ) -> Self {
        Self { lines, next: 0, stored, facts, layers, n_paused: 0, asked: None }
    }

    /// Returns whether every line was compared.
    pub(super) fn is_over(&self) -> bool {
        self.lines.len() <= self.next
    }

    /// Returns the clock reading of the input that the next line is of. Inputs that leave no line leave nothing that
    /// depends on it.
    pub(super) fn timestamp(&self) -> Timestamp {
        let last = self.lines.get(self.next).or(self.lines.last());
        last.map(|it| it.timestamp()).unwrap_or_default()
    }

    /// Returns the line that is this many after the next one.
    pub(super) fn ahead(&self, n: usize) -> Option<&'a SealedLine<'a>> {
        self.lines.get(self.next + n).copied()
    }

    /// Returns the first line that no turn made.
    pub(super) fn rest(&self) -> Option<&'a SealedLine<'a>> {
        self.ahead(0)
    }

    /// Compares a line with the next one of the file; false when there is none.
    pub(super) fn compare(&mut self, made: &Line, step: Step) -> Result<bool, ReplayError> {
        let Some(line) = self.ahead(0) else {
            // Where a turn ends early, the last lines that it made may not have been written.
            return Ok(false);
        };
        self.next += 1;
        // What a hook asked a model is made where it runs, and recorded by its digest alone.
        let mut made = Cow::Borrowed(made);
        if is_for_hook(&made)
            && let Some(found) = record(line)
        {
            take_over_request(made.to_mut(), &found.what);
        }
        if self.facts.revision < REVISION
            && let Some(found) = record(line)
        {
            take_over_warnings(&mut made, &found.what);
        }
        match line.difference(&made, &self.facts) {
            None => Ok(true),
            Some((expected, found)) => {
                Err(ReplayError::Differs { line: line.number, step, expected, found })
            }
        }
    }

    /// Returns the input that answers an effect; `None` for effects without an answer, and for a call that the turn
    /// ended before.
    pub(super) fn answer(
        &mut self,
        asked: Effect,
        turn: &Turn,
    ) -> Result<Option<TurnInput>, ReplayError> {
        let step = turn.step();
        let input = match asked {
            Effect::Next(step) => TurnInput::Run(step),
            Effect::Wait { attempt, .. } => TurnInput::TimerFired { attempt },
            Effect::ReadSettings => self.settings(turn, step)?,
            Effect::MergeSettings(order) => TurnInput::SettingsMerged(Box::new(order.derive())),
            Effect::ReadSources => match self.sources(step)? {
                Some(texts) => TurnInput::SourcesRead(Box::new(texts)),
                None => return Ok(None),
            },
            Effect::LookAtSources(_) => TurnInput::SourcesSeen(self.sources_look(step)?),
            Effect::Shape(order) => self.shaped(&order),
            Effect::CallModel(order) => self.model(&order, step)?,
            Effect::Dispatch(calls) => self.dispatched(&calls),
            Effect::RunHooks(firing) => self.hooks(&firing, step)?,
            Effect::ResolvePath { call, given } => self.path(call, &given, turn)?,
            Effect::JudgeCommand { call, order } => {
                let seen = self.links(&call, step)?;
                let judged = self.as_recorded(&call).unwrap_or_else(|| order.judge_again(seen));
                TurnInput::CommandJudged { call, judged: Box::new(judged) }
            }
            Effect::ReadPlan { call, .. } => self.plan(call, turn)?,
            Effect::ConsultPolicy(question) => self.policy(&question, step)?,
            Effect::AskPermission(question) => self.permission(&question, step)?,
            Effect::ExecuteTool { call, .. } => return self.finished(&call, turn),
            Effect::Append(_) | Effect::Publish(_) | Effect::WatchFiles(_) | Effect::Finish(_) => {
                return Ok(None);
            }
        };
        Ok(Some(input))
    }

    fn rest_of_lines(&self) -> &'a [&'a SealedLine<'a>] {
        self.lines.get(self.next..).unwrap_or_default()
    }

    fn settings(&self, turn: &Turn, step: Step) -> Result<TurnInput, ReplayError> {
        let what = "the settings";
        // Hooks may have been asked about changes first, and the mode set meanwhile.
        let mut records = self.rest_of_lines().iter().map_while(|it| record(it)).map(|it| &it.what);
        let found = records.find(|it| !matches!(it, RecordKind::Hook { .. } | RecordKind::Mode(_)));
        let Some(RecordKind::TurnStep {
            detail: StepDetail::Settings { layers, refused, .. }, ..
        }) = found
        else {
            let line = self.ahead(0).map_or(0, |it| it.number);
            return Err(ReplayError::Unrecorded { line, step, what });
        };
        let is_known = self.layers == Some(layers.digest());
        Ok(TurnInput::SettingsRead(match layers {
            _ if is_known && refused.is_empty() => SettingsRead::Unchanged,
            _ if is_known => SettingsRead::Layers(turn.with_refused(turn.known_layers(), refused)),
            layers => {
                let mut all: Vec<LayerText> = self.json(layers, what, step)?;
                let n_fixed = self.facts.layers.len().min(all.len());
                SettingsRead::Layers(turn.with_refused(all.split_off(n_fixed), refused))
            }
        }))
    }

    /// A stage is a pure function, so it is run again; only that its actor crashed is read.
    fn shaped(&self, order: &ShapeOrder) -> TurnInput {
        let name = order.stage.name();
        let of_stage = |it: &&SealedLine<'_>| match &record(it)?.what {
            RecordKind::Shaper { stage, elapsed_us, why, .. } if stage == name => {
                Some((*elapsed_us, why == CRASHED))
            }
            _ => None,
        };
        let has_crashed = self.ahead(0).and_then(|it| of_stage(&it)).is_some_and(|it| it.1);
        let result = if has_crashed { Err(Crashed) } else { Ok(Box::new(order.run())) };
        let elapsed = self.rest_of_lines().iter().find_map(of_stage);
        TurnInput::Shaped {
            stage: order.stage,
            result,
            elapsed_us: elapsed.map(|it| it.0).unwrap_or_default(),
        }
    }

    fn hooks(&self, firing: &HookFiring, step: Step) -> Result<TurnInput, ReplayError> {
        let mut outputs = Vec::new();
        let n_before = self.n_before_hooks();
        for (handler, i) in firing.handlers.iter().zip(n_before..) {
            let output = self.ahead(i).map(|it| self.hook(it, firing.event, firing.call.as_ref()));
            let Some(output) = output.transpose()?.flatten() else {
                let line = self.ahead(i).or(self.lines.last().copied()).map_or(0, |it| it.number);
                return Err(ReplayError::Unrecorded { line, step, what: "what a hook did" });
            };
            // What a model answered is read off the record of its call.
            let was_asked = matches!(handler.action, HookAction::Prompt(_))
                && matches!(
                    output.ended,
                    HandlerEnd::Exited(_) | HandlerEnd::TimedOut | HandlerEnd::Unusable
                );
            let ended = if was_asked { HandlerEnd::ForModel } else { output.ended };
            outputs.push(HandlerOutput { ended, ..output });
        }
        Ok(TurnInput::HooksAnswered { firing: firing.firing, outputs })
    }

    /// Returns how many lines are in front of what the next hooks did: calls of models for them or for the call that
    /// they are about, and modes that were set meanwhile.
    pub(super) fn n_before_hooks(&self) -> usize {
        let is_before = |line: &&&SealedLine<'_>| {
            record(line).is_some_and(|it| match &it.what {
                RecordKind::ModelAttempt { purpose, .. } => {
                    [Purpose::Hook.name(), Purpose::Synthesis.name()].contains(&purpose.as_str())
                }
                RecordKind::Mode(_) => true,
                _ => false,
            })
        };
        self.rest_of_lines().iter().take_while(is_before).count()
    }

    /// What a handler did, if the line is about one of this firing.
    fn hook(
        &self,
        line: &SealedLine<'_>,
        of: HookEvent,
        of_call: Option<&ToolUseId>,
    ) -> Result<Option<HandlerOutput>, ReplayError> {
        let Some(RecordKind::Hook {
            event,
            call,
            exit,
            ended,
            duration_ms,
            stdout,
            stderr,
            sidechain,
            ..
        }) = record(line).map(|it| &it.what)
        else {
            return Ok(None);
        };
        if *event != of || call.as_ref() != of_call {
            return Ok(None);
        }
        let ended = HandlerEnd::read(*exit, ended);
        let text = |it| text_of(it, line.number, self.stored);
        let output = HandlerOutput::new(ended, text(stdout)?, text(stderr)?, *duration_ms);
        let sidechain = sidechain.as_ref().map(|it| (it.agent.clone(), it.head));
        Ok(Some(HandlerOutput { sidechain, ..output }))
    }

    /// How a call was judged, where that is read and not done again.
    fn as_recorded(&self, of: &ToolUseId) -> Option<Judged> {
        let mut was_asked = false;
        for line in self.rest_of_lines() {
            match record(line).map(|it| &it.what) {
                Some(RecordKind::Approval { call, .. }) => was_asked |= call == of,
                Some(RecordKind::Permission { call, decision, .. }) if call == of => {
                    return Judged::recorded(decision, was_asked);
                }
                _ => {}
            }
        }
        None
    }

    /// The links that the paths of a command led through.
    fn links(&self, of: &ToolUseId, step: Step) -> Result<LinksSeen, ReplayError> {
        match self.ahead(0).and_then(record).map(|it| &it.what) {
            Some(RecordKind::Links(LinksRecord { call, seen })) if call == of => {
                self.json(seen, "links of a command", step)
            }
            _ => Ok(LinksSeen::default()),
        }
    }

    fn path(&self, call: ToolUseId, given: &str, turn: &Turn) -> Result<TurnInput, ReplayError> {
        if turn.is_outrun() {
            return Ok(TurnInput::PathResolved { call, path: Box::new(not_looked_at(given)) });
        }
        let (what, step) = ("where a path leads", turn.step());
        let (path, whole) = self.recorded(what, step, |it| match it {
            RecordKind::Path { path, whole, .. } => Some((path, whole)),
            _ => None,
        })?;
        let path = match whole {
            Some(whole) => self.json::<ResolvedPath>(whole, what, step)?,
            None => path.clone(),
        };
        if !can_be(&path, given, turn.cwd(), &self.facts.home) {
            let line = self.ahead(0).map_or(0, |it| it.number);
            let expected = format!("a path from {given}");
            return Err(ReplayError::Differs { line, step, expected, found: format!("{path:?}") });
        }
        Ok(TurnInput::PathResolved { call, path: Box::new(path) })
    }

    /// What the next record says.
    fn recorded<T>(
        &self,
        what: &'static str,
        step: Step,
        read: impl Fn(&'a RecordKind) -> Option<T>,
    ) -> Result<T, ReplayError> {
        let next = self.ahead(0);
        let found = next.and_then(record).and_then(|it| read(&it.what));
        let line = next.map_or(0, |it| it.number);
        found.ok_or(ReplayError::Unrecorded { line, step, what })
    }

    fn json<T: serde::de::DeserializeOwned>(
        &self,
        text: &Stored,
        what: &'static str,
        step: Step,
    ) -> Result<T, ReplayError> {
        let line = self.ahead(0).map_or(0, |it| it.number);
        let text = text_of(text, line, self.stored)?;
        serde_json::from_str(&text).map_err(|_| ReplayError::Unrecorded { line, step, what })
    }
}

fn is_for_hook(line: &Line) -> bool {
    let what = line.record().map(|it| &it.what);
    matches!(what, Some(RecordKind::ModelAttempt { purpose, .. }) if purpose == Purpose::Hook.name())
}

/// Puts what is known of a request into the record of its call.
fn take_over_request(made: &mut Line, found: &RecordKind) {
    let Line::Harness(made) = made else { return };
    if let (
        RecordKind::ModelAttempt { request, request_bytes, in_doubt, .. },
        RecordKind::ModelAttempt {
            request: request_found,
            request_bytes: bytes_found,
            in_doubt: in_doubt_found,
            ..
        },
    ) = (&mut made.what, found)
    {
        (*request, *request_bytes, *in_doubt) = (*request_found, *bytes_found, *in_doubt_found);
    }
}

/// Puts the number of warnings into the record of settings: an entry that was not known then may be known now.
fn take_over_warnings(made: &mut Cow<'_, Line>, found: &RecordKind) {
    let number = |it: &RecordKind| match it {
        RecordKind::TurnStep { detail: StepDetail::Settings { warnings, .. }, .. } => {
            Some(*warnings)
        }
        _ => None,
    };
    let made_number = made.record().and_then(|it| number(&it.what));
    let Some(recorded) = number(found).filter(|it| made_number.is_some_and(|made| made != *it))
    else {
        return;
    };
    if let Line::Harness(made) = made.to_mut()
        && let RecordKind::TurnStep { detail: StepDetail::Settings { warnings, .. }, .. } =
            &mut made.what
    {
        *warnings = recorded;
    }
}

/// The answer about a path to a turn that does not take it any more.
fn not_looked_at(given: &str) -> ResolvedPath {
    let kind = PathKind::Invalid;
    let (given, lexical, real) = (given.to_owned(), String::new(), String::new());
    ResolvedPath { given, lexical, real, passed: Vec::new(), kind }
}
