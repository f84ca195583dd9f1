//! The world of a test: what answers when a turn asks for something.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::{provider_cache::ProviderCache, script};
use crate::{
    approval::{AnsweredBy, GivenAnswer, PermissionAnswer, PolicyVerdict, Question},
    entropy::EntropyStream,
    hook::{HandlerEnd, HandlerOutput, HookAction, HookEvent, HookHandler},
    ids::ToolUseId,
    permission::PermissionMode,
    run::{
        derived_settings::{CompiledSettings, DeriveOrder},
        facts::SessionFacts,
    },
    step1_settings_resolution::LayerText,
    step3_context_assembly::{
        FileContent, InstructionFile, SourceMarks, SourceTexts, SourcesLook, SourcesOrder,
        SourcesSeen,
    },
    step4_context_shapers::Stage,
    step5_model_call::{FailureClass, ModelAnswer, ModelFailure},
    step6_tool_dispatch::Admission,
    step7_permission_gate::{
        Handler,
        path_resolution::{PathEntry, resolve},
    },
    tokens::Usage,
    tool::{ToolCall, ToolOutcome},
    turn::{
        Effect,
        effect::{ModelCallOrder, Purpose, ShapeOrder},
        input::{Answered, Crashed, SettingsRead, TurnInput},
    },
};

/// Calls that a dispatcher takes of one answer.
pub(crate) const QUOTA: usize = 25;

/// What a test says about the world. Answers that are not scripted end the run.
pub(crate) struct World {
    pub(crate) facts: Arc<SessionFacts>,
    /// The settings files, per look; the last ones stay.
    pub(crate) layers: VecDeque<Vec<LayerText>>,
    /// What leaves made of long ones.
    pub(crate) merged: Vec<CompiledSettings>,
    pub(crate) sources: SourceTexts,
    /// Instruction files of directories below the workspace, by directory.
    pub(crate) nested: Vec<(String, InstructionFile)>,
    /// What follows in the content of files.
    pub(crate) content_of_files: String,
    /// For the turns, in order.
    pub(crate) answers: VecDeque<Result<ModelAnswer, ModelFailure>>,
    /// For summaries, in order; a short text when there is none.
    pub(crate) summaries: VecDeque<Result<ModelAnswer, ModelFailure>>,
    /// What the model makes of findings; in the end `together`.
    pub(crate) syntheses: VecDeque<Result<ModelAnswer, ModelFailure>>,
    pub(crate) n_answers: u64,
    /// What each failed call is reported to have used.
    pub(crate) failed_usage: Usage,
    /// A model that refuses what its window does not hold, answers that are not scripted included.
    pub(crate) window: Option<ContextWindow>,
    /// A provider that reports what its cache held of each request.
    pub(crate) cache: Option<ProviderCache>,
    /// By tool use; `done` for others.
    pub(crate) outcomes: BTreeMap<String, ToolOutcome>,
    /// Stages whose actor crashes.
    pub(crate) crashes: Vec<Stage>,
    /// Which of the inputs that wait comes next, by their number: the first, or a draw of these.
    pub(crate) shuffle: Option<EntropyStream>,
    /// What surfaces answer, in order; a mode that somebody sets in place of an answer.
    pub(crate) given: VecDeque<Result<PermissionAnswer, PermissionMode>>,
    /// What the policy says, in order.
    pub(crate) policy_verdicts: VecDeque<PolicyVerdict>,
    /// The mode that somebody sets while this handler is at work for the first time.
    pub(crate) mode_during: Option<(AnsweredBy, PermissionMode)>,
    /// The modes that somebody sets, and the input, counted over everything, before which they do.
    pub(crate) modes_at: Vec<(u64, PermissionMode)>,
    /// What the plan file holds.
    pub(crate) plan: Option<String>,
    /// What the classifier says, in order; `TOKEN` in it is the token of the question.
    pub(crate) verdicts: VecDeque<Result<ModelAnswer, ModelFailure>>,
    /// Every input comes twice.
    pub(crate) echo: bool,
    /// The turn is made to wait after each input, as at a breakpoint; else it collects.
    pub(crate) prefix_stays: bool,
    /// Whether the play keeps what was sent.
    pub(crate) keeps_requests: bool,
    /// The input, counted over everything, before which somebody asks for a stop.
    pub(crate) stop_at: Option<u64>,
    /// The input, counted over everything, that is the last one of its turn.
    pub(crate) interrupt_at: Option<u64>,
    /// Whether calls that have ended leave their outcomes to an interrupt.
    pub(crate) commits: bool,
    /// The input, counted over everything, before which the process is killed. The session is
    /// opened again for its next prompt.
    pub(crate) kill_at: Option<u64>,
}

impl World {
    /// Everything passes that rules may let pass.
    pub(crate) fn new(answers: Vec<Result<ModelAnswer, ModelFailure>>) -> Self {
        Self::with(serde_json::json!({}), answers)
    }

    /// The same with these keys in the settings.
    pub(crate) fn with(
        settings: serde_json::Value,
        answers: Vec<Result<ModelAnswer, ModelFailure>>,
    ) -> Self {
        Self {
            facts: Arc::new(script::facts(Handler::Approver)),
            layers: VecDeque::from([vec![script::allowing(settings)]]),
            merged: Vec::new(),
            sources: SourceTexts { git: "branch main".into(), ..SourceTexts::default() },
            nested: Vec::new(),
            content_of_files: String::new(),
            answers: answers.into(),
            summaries: VecDeque::new(),
            syntheses: VecDeque::new(),
            n_answers: 0,
            failed_usage: Usage::default(),
            window: None,
            cache: None,
            outcomes: BTreeMap::new(),
            crashes: Vec::new(),
            shuffle: None,
            given: VecDeque::new(),
            policy_verdicts: VecDeque::new(),
            mode_during: None,
            modes_at: Vec::new(),
            plan: None,
            verdicts: VecDeque::new(),
            echo: false,
            prefix_stays: true,
            keeps_requests: true,
            stop_at: None,
            interrupt_at: None,
            commits: false,
            kill_at: None,
        }
    }

    /// What a look finds: what the sources say, and the parts of them that a test has changed since.
    pub(super) fn look(&self, order: &SourcesOrder) -> SourcesLook {
        let seen = SourcesSeen {
            instructions: self.sources.instructions.clone(),
            path_rules: self.sources.path_rules.clone(),
            nested: self
                .nested
                .iter()
                .filter(|(it, _)| order.directories.contains(it))
                .map(|it| it.1.clone())
                .collect(),
            contents: order.files.iter().map(|it| self.content(it)).collect(),
            background: Vec::new(),
        };
        SourcesLook::Found(Box::new(seen), SourceMarks(Arc::default()))
    }

    fn content(&self, path: &str) -> FileContent {
        FileContent {
            path: path.into(),
            text: format!("now in {path}{}", self.content_of_files),
            is_cut: false,
        }
    }

    pub(super) fn read_settings(&mut self, last: &mut Option<Vec<LayerText>>) -> SettingsRead {
        let layers = match self.layers.len() {
            0 | 1 => self.layers.front().cloned().unwrap_or_default(),
            _ => self.layers.pop_front().unwrap_or_default(),
        };
        if last.as_ref() == Some(&layers) {
            return SettingsRead::Unchanged;
        }
        *last = Some(layers.clone());
        SettingsRead::Layers(layers)
    }

    /// What a leaf makes of long layers.
    pub(super) fn merge(&mut self, order: DeriveOrder) -> TurnInput {
        let made = order.derive();
        self.merged.push(made.clone());
        TurnInput::SettingsMerged(Box::new(made))
    }

    pub(super) fn shape(&self, order: &ShapeOrder) -> TurnInput {
        let result = if self.crashes.contains(&order.stage) {
            Err(Crashed)
        } else {
            Ok(Box::new(order.run()))
        };
        TurnInput::Shaped { stage: order.stage, result, elapsed_us: 17 }
    }

    pub(super) fn model(&mut self, order: &ModelCallOrder) -> TurnInput {
        let refused =
            self.window.as_ref().and_then(|it| it.refuses(&order.request.body.to_bytes()));
        let mut scripted = match (refused, order.purpose) {
            (Some(refused), _) => Err(refused),
            (None, Purpose::Turn) => {
                self.answers.pop_front().unwrap_or_else(|| script::text("done"))
            }
            (None, Purpose::Classification) => {
                let body = String::from_utf8_lossy(&order.request.body.to_bytes()).into_owned();
                let token = body.split(r#"token\":\""#).nth(1).and_then(|it| it.get(..32));
                let next_verdict =
                    self.verdicts.pop_front().unwrap_or_else(|| script::text("nothing"));
                next_verdict.map(|answer| script::with_token(answer, token.unwrap_or_default()))
            }
            (None, Purpose::Hook) => script::text(r#"{"ok":true}"#),
            (None, Purpose::Synthesis) => {
                self.syntheses.pop_front().unwrap_or_else(|| script::text("together"))
            }
            (None, Purpose::Compaction) => {
                self.summaries.pop_front().unwrap_or_else(|| script::text("so far"))
            }
        };
        if let Ok(answer) = &mut scripted {
            self.n_answers += 1;
            if &*answer.message_id == script::NUMBERED {
                answer.message_id = format!("{}{}", script::NUMBERED, self.n_answers).into();
            }
            if answer.usage.input_tokens == 0 {
                let measured =
                    self.window.as_ref().map(|it| it.tokens(&order.request.body.to_bytes()));
                answer.usage.input_tokens = measured.unwrap_or(order.request.body.len() as u64 / 4);
            }
        }
        if let (Some(cache), Ok(answer)) = (&mut self.cache, &mut scripted) {
            cache.serve(order, &mut answer.usage);
        }
        let usage = scripted.as_ref().map_or(self.failed_usage, |it| it.usage);
        let answered = Answered {
            attempt: order.attempt,
            result: scripted,
            usage,
            is_in_doubt: false,
            first_token_ms: order.streamed.then_some(3),
            duration_ms: 11,
            parked_ms: None,
        };
        TurnInput::ModelAnswered(Box::new(answered))
    }

    pub(super) fn dispatch(&self, calls: &[ToolCall]) -> TurnInput {
        let admission = |(i, call): (usize, &ToolCall)| {
            if call.input.contains("bad") {
                Admission::InvalidInput("`bad` is not known".into())
            } else if QUOTA <= i {
                Admission::TooMany
            } else {
                Admission::Admitted
            }
        };
        TurnInput::Dispatched(calls.iter().enumerate().map(admission).collect())
    }

    pub(super) fn resolve(&self, call: ToolUseId, given: &str, cwd: &str) -> TurnInput {
        let path = Box::new(resolve(given, cwd, "/h", &mut |path| match path {
            "/w" | "/w/src" | "/etc" => PathEntry::Directory,
            "/w/link" => PathEntry::Link("/etc".into()),
            _ if path.ends_with(".rs") || path == "/etc/passwd" => PathEntry::File,
            _ => PathEntry::Missing,
        }));
        TurnInput::PathResolved { call, path }
    }

    /// What the next scripted answer is; by default the one that is asked says no to what says `no`.
    pub(super) fn permission(&mut self, question: &Question) -> TurnInput {
        let call = &question.call;
        let allowed = !call.input.contains("no");
        let reason = if allowed { "" } else { "rather not" };
        let simple = PermissionAnswer { allowed, reason: reason.into(), ..Default::default() };
        let answer = match self.given.pop_front().unwrap_or(Ok(simple)) {
            Ok(answer) => answer,
            Err(mode) => return TurnInput::ModeChanged(mode),
        };
        let given = GivenAnswer { answer, by: AnsweredBy::Surface, surface: Some("test".into()) };
        TurnInput::PermissionAnswered { call: call.id.clone(), given: Box::new(given) }
    }

    /// The mode that is set while the handler of this effect is at work, before its answer is there.
    pub(super) fn mode_set_during(&mut self, effect: &Effect) -> Option<TurnInput> {
        let handler = match effect {
            Effect::RunHooks(it)
                if matches!(
                    it.event,
                    HookEvent::PermissionRequest | HookEvent::PermissionDenied
                ) =>
            {
                AnsweredBy::Hook
            }
            Effect::CallModel(it) if it.purpose == Purpose::Classification => {
                AnsweredBy::Classifier
            }
            Effect::ConsultPolicy(_) => AnsweredBy::Policy,
            _ => return None,
        };
        let (_, mode) = self.mode_during.take_if(|it| it.0 == handler)?;
        Some(TurnInput::ModeChanged(mode))
    }

    /// The next scripted verdict; by default the policy allows what says `fine`, denies what says `never`,
    /// and leaves the rest to others.
    pub(super) fn policy(&mut self, question: &Question) -> TurnInput {
        let reason = "the policy says so".to_owned();
        let by_input = match &*question.call.input {
            it if it.contains("fine") => PolicyVerdict::Allow { reason },
            it if it.contains("never") => PolicyVerdict::Deny { reason },
            _ => PolicyVerdict::Abstain,
        };
        let verdict = self.policy_verdicts.pop_front().unwrap_or(by_input);
        let (call, epoch) = (question.call.id.clone(), question.epoch);
        TurnInput::PolicyAnswered { call, epoch, verdict }
    }

    pub(super) fn read_plan(&self, call: ToolUseId) -> TurnInput {
        TurnInput::PlanRead { call, plan: self.plan.clone() }
    }

    pub(super) fn outcome(&self, call: &ToolCall) -> ToolOutcome {
        let scripted = self.outcomes.get(call.id.as_str()).cloned();
        scripted.unwrap_or_else(|| ToolOutcome { duration_ms: 5, ..ToolOutcome::ok("done") })
    }
}

/// What a model holds, input and output together, as its provider counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContextWindow {
    pub(crate) tokens: u64,
    /// Bytes of a request that its provider counts as one token.
    pub(crate) bytes_per_token: u64,
}

impl ContextWindow {
    pub(crate) fn tokens(&self, body: &[u8]) -> u64 {
        body.len() as u64 / self.bytes_per_token
    }

    /// As providers refuse: the prompt alone, or with the output that was asked for.
    fn refuses(&self, body: &[u8]) -> Option<ModelFailure> {
        let (input, window) = (self.tokens(body), self.tokens);
        let head = String::from_utf8_lossy(body);
        let (_, rest) = head.split_once(r#""max_tokens":"#)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let output: u64 = digits.parse().ok()?;
        let class = match () {
            () if window < input => FailureClass::ContextOverflow,
            () if window < input + output => FailureClass::OutputOverflow,
            () => return None,
        };
        script::failure(class).err()
    }
}

/// The command of a handler is what it does: `CODE TEXT`, the text on standard output for 0 and on
/// standard error for other codes; or `timeout`, `crash`, `refused`. One that asks a model has it asked.
pub(super) fn run_handler(handler: &HookHandler) -> HandlerOutput {
    let label = handler.label();
    if matches!(handler.action, HookAction::Prompt(_)) {
        return HandlerOutput::new(HandlerEnd::ForModel, label, String::new(), 2);
    }
    let does = label.strip_prefix("agent: ").unwrap_or(&label);
    let (word, text) = does.split_once(' ').unwrap_or((does, ""));
    let ended = match word {
        "timeout" => HandlerEnd::TimedOut,
        "crash" => HandlerEnd::Crashed,
        "refused" => return HandlerOutput::refused("full"),
        code => HandlerEnd::Exited(code.parse().unwrap_or(1)),
    };
    let (stdout, stderr) = if word == "0" { (text, "") } else { ("", text) };
    HandlerOutput::new(ended, stdout.into(), stderr.into(), 2)
}
