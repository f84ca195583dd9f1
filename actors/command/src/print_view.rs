//! What one prompt shows while it runs: notes for the one that waits, the answer as it comes, and a
//! line that says where the run is.
//!
//! Pure: events go in, and [`PrintPiece`] comes out in the order in which it is to be seen. Everything in
//! it is free of control sequences. The caller decides where it goes, and what it leaves out.

use std::{collections::BTreeSet, fmt::Write, sync::Arc};

use ennead_runtime::{
    event::Event,
    ids::{AgentId, ToolName, ToolUseId},
    output::{
        ChannelPolicy, Normalizer, OutputEvent, OutputSettings, Payload,
        terminal::{Cleaner, clean_line},
    },
    step::Step,
};

/// Characters of a cause that a note shows.
const MAX_CAUSE: usize = 300;

/// A piece of output for the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrintPiece {
    /// The next piece of the answer.
    Answer(String),
    /// The message that the pieces made is complete.
    MessageEnd,
    /// What was shown of the message does not count. The pieces that still do follow again.
    Withdrawn,
    /// A line for the one that waits.
    Note(String),
    /// A call was denied, and what would have allowed it.
    Denied(String),
}

/// One run as a person sees it.
#[derive(Clone, Debug)]
pub struct PrintView {
    normalizer: Normalizer,
    cleaner: Cleaner,
    /// What was shown of the last message.
    shown: String,
    /// The id of each piece of it, and where it begins.
    pieces: Vec<(u64, usize)>,
    in_message: bool,
    turn: u32,
    step: Option<Step>,
    /// Tools that run now.
    tools: Vec<(ToolUseId, ToolName)>,
    /// Sub-agents that are at work.
    agents: BTreeSet<AgentId>,
    /// Tokens of all calls that were answered, those of sub-agents included.
    tokens: u64,
    is_parked: bool,
    /// The remedy that the next retry belongs to.
    remedy: &'static str,
}

impl Default for PrintView {
    fn default() -> Self {
        Self::new()
    }
}

impl PrintView {
    /// Returns the view of a run that has not begun.
    pub fn new() -> Self {
        Self {
            normalizer: Normalizer::new(ChannelPolicy::partial(), Arc::default()),
            cleaner: Cleaner::default(),
            shown: String::new(),
            pieces: Vec::new(),
            in_message: false,
            turn: 0,
            step: None,
            tools: Vec::new(),
            agents: BTreeSet::new(),
            tokens: 0,
            is_parked: false,
            remedy: "",
        }
    }

    /// Returns the last message as it was shown, without what was withdrawn of it.
    pub fn last_message(&self) -> &str {
        &self.shown
    }

    /// Takes what happened at `now_ms`, milliseconds since 1970. `output` are the session's settings
    /// for answers. Appends what is to be shown.
    pub fn observe(
        &mut self,
        now_ms: u64,
        event: &Event,
        output: &Arc<OutputSettings>,
        out: &mut Vec<PrintPiece>,
    ) {
        self.follow(event);
        out.extend(self.note(now_ms, event));
        if let Some(piece) = OutputEvent::of(event) {
            if self.normalizer.is_between_messages() {
                // Nothing is gathered: a person reads as it comes.
                let mut settings = OutputSettings::clone(output);
                settings.coalesce_ms = 0;
                self.normalizer.set_settings(settings.into());
            }
            let mut payloads = Vec::new();
            self.normalizer.take(now_ms, &piece, &mut payloads);
            payloads.into_iter().for_each(|it| self.take(it, out));
            let ends = matches!(
                piece,
                OutputEvent::Completed { .. }
                    | OutputEvent::TurnStarted
                    | OutputEvent::Ended { .. }
            );
            if ends && std::mem::take(&mut self.in_message) {
                out.push(PrintPiece::MessageEnd);
            }
        }
    }

    /// Returns where the run is, in ASCII: turn, step, the tools that run, sub-agents at work, tokens so far.
    pub fn status(&self) -> String {
        let mut line = match self.step {
            Some(step) => format!("turn {}, step {} {}", self.turn, step.number(), step.name()),
            None => "begins".to_owned(),
        };
        let mut names: Vec<(&str, u32)> = Vec::new();
        for (_, tool) in &self.tools {
            match names.iter_mut().find(|(name, _)| *name == tool.as_str()) {
                Some((_, n)) => *n += 1,
                None => names.push((tool.as_str(), 1)),
            }
        }
        for (at, (name, n)) in names.into_iter().enumerate() {
            let mark = if at == 0 { ':' } else { ',' };
            let times = if n == 1 { String::new() } else { format!(" x{n}") };
            // Writing to a string does not fail.
            let _written = write!(line, "{mark} {name}{times}");
        }
        match self.agents.len() {
            0 => {}
            1 => line.push_str("; 1 sub-agent"),
            n => {
                let _written = write!(line, "; {n} sub-agents");
            }
        }
        if 0 < self.tokens {
            let _written = write!(line, "; {} tokens", self.tokens);
        }
        // Other characters may be wider than one column.
        clean_line(&line).chars().map(|it| if it.is_ascii() { it } else { '?' }).collect()
    }

    fn follow(&mut self, event: &Event) {
        match event {
            Event::TurnStarted { turn } => self.turn = *turn,
            Event::StepStarted { turn, step } => (self.turn, self.step) = (*turn, Some(*step)),
            Event::ToolStarted { call, tool } => {
                self.step = Some(Step::ToolExecution);
                self.tools.push((call.clone(), tool.clone()));
            }
            Event::ToolFinished { call, .. } => self.tools.retain(|(id, _)| id != call),
            Event::AgentStarted { agent, .. } => drop(self.agents.insert(agent.clone())),
            Event::Agent { agent, event } if is_end(event) => drop(self.agents.remove(agent)),
            _ => {}
        }
        self.tokens = self.tokens.saturating_add(tokens_of(event));
    }

    fn take(&mut self, payload: Payload, out: &mut Vec<PrintPiece>) {
        match payload {
            Payload::Text { id, piece } => {
                if !std::mem::replace(&mut self.in_message, true) {
                    self.begin(0);
                }
                let from = self.shown.len();
                self.pieces.push((id, from));
                self.cleaner.push(&piece.text, &mut self.shown);
                self.show_from(from, out);
            }
            Payload::Retracted { first_id, .. } if self.in_message => {
                let kept = self.pieces.iter().find(|(id, _)| first_id <= *id);
                let Some((_, kept)) = kept.copied() else { return };
                self.begin(kept);
                out.push(PrintPiece::Withdrawn);
                self.show_from(0, out);
            }
            Payload::Missed { events } => {
                let what =
                    format!("{events} events came too fast to be shown; the transcript has them");
                out.push(PrintPiece::Note(what));
            }
            _ => {}
        }
    }

    /// Goes on with a message of which this many bytes were shown.
    fn begin(&mut self, n_bytes: usize) {
        self.shown.truncate(n_bytes);
        self.pieces.retain(|(_, from)| *from < n_bytes);
        self.cleaner = Cleaner::default();
    }

    fn show_from(&self, from: usize, out: &mut Vec<PrintPiece>) {
        if from < self.shown.len() {
            out.push(PrintPiece::Answer(self.shown[from..].to_owned()));
        }
    }

    /// What a person who waits wants to know, each thing once.
    fn note(&mut self, now_ms: u64, event: &Event) -> Option<PrintPiece> {
        let text = match event {
            Event::Parked { .. } if self.is_parked => return None,
            Event::Parked { provider, reason, until_ms, .. } => {
                self.is_parked = true;
                let (why, how_long) = (reason.in_words(), how_long(now_ms, *until_ms));
                format!("the call to {provider} waits {how_long}, because {why}")
            }
            Event::Unparked { .. } => {
                self.is_parked = false;
                return None;
            }
            // Its `ModelRetry` follows and says more.
            Event::RecoveryTaken { remedy, .. } if remedy.starts_with("retry") => {
                self.remedy = remedy;
                return None;
            }
            // The end of the run says it.
            Event::RecoveryTaken { remedy: "surface", .. } => return None,
            Event::RecoveryTaken { cause, remedy, model } => {
                let whom = model.as_ref().map(|it| format!(" to {it}")).unwrap_or_default();
                format!("the model call failed ({cause}); remedy: {remedy}{whom}")
            }
            Event::ModelRetry { attempt, max_retries, delay_ms, status, error, cause } => {
                let cause = clip(&clean_line(cause));
                let status = status.map(|it| it.to_string()).filter(|it| !cause.contains(it));
                let status = status.map(|it| format!(", status {it}")).unwrap_or_default();
                let how = match self.remedy {
                    "retry_without_streaming" => ", without streaming",
                    _ => "",
                };
                let seconds = format!("{}.{}", delay_ms / 1_000, delay_ms % 1_000 / 100);
                format!(
                    "the model call failed ({error}{status}: {cause}); retry {attempt} of \
                     {max_retries} in {seconds} s{how}"
                )
            }
            Event::HookMessage { hook, text } => format!("a {} hook says: {text}", hook.name()),
            Event::Alert { what } => what.to_string(),
            Event::PermissionDecided { allowed: false, .. } => return denied("", event),
            Event::Agent { event, .. } => match &**event {
                Event::HookMessage { hook, text } => {
                    format!("a {} hook of a sub-agent says: {text}", hook.name())
                }
                _ => return denied("of a sub-agent ", event),
            },
            _ => return None,
        };
        Some(PrintPiece::Note(clean_line(&text)))
    }
}

fn tokens_of(event: &Event) -> u64 {
    match event {
        Event::MessageCompleted { usage, .. } | Event::TokensUsed { usage } => usage.total().0,
        Event::Agent { event, .. } => tokens_of(event),
        _ => 0,
    }
}

fn is_end(event: &Event) -> bool {
    matches!(event, Event::RunFinished { .. } | Event::RunLost { .. })
}

fn denied(whose: &str, event: &Event) -> Option<PrintPiece> {
    let Event::PermissionDecided { allowed: false, tool, reason, allow_rules, .. } = event else {
        return None;
    };
    let reason = clip(&clean_line(reason));
    let mut line = format!("a call {whose}of {} was denied: {reason}", clean_line(tool.as_str()));
    if let Some(rule) = allow_rules.first().map(|it| clean_line(it)).filter(|it| *it == clip(it)) {
        let _written = write!(line, "; --allowed-tools {} would allow it", quoted(&rule));
    }
    Some(PrintPiece::Denied(line))
}

/// As a shell reads it as one word.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(MAX_CAUSE) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn how_long(now_ms: u64, until_ms: Option<u64>) -> String {
    let Some(until_ms) = until_ms else { return "until another call has ended".into() };
    format!("for {} s at least", until_ms.saturating_sub(now_ms).div_ceil(1_000).max(1))
}

#[cfg(test)]
mod tests;
