//! The decision table: what is done about each class of failure, when, and how often.
//!
//! It is data, because two read it: the ledger decides by it and [`print()`] shows it, so what
//! is shown is what is done. The rows of a class are tried from the top; the first whose conditions
//! hold and whose counts are not used up is taken.

use std::fmt::Write;

use serde::Serialize;

use super::{
    backoff::MAX_RETRY_AFTER_MS, path1_output_escalation as path1,
    path1_output_escalation::REDUCTION_FLOOR, path3_prompt_too_long as path3,
};
use crate::{
    run::no_progress::{DENIALS_IN_A_ROW, DENIALS_IN_A_RUN, END_AT},
    step5_model_call::FailureClass::{self, *},
};

/// Continuations of a paused answer (MDL-10).
pub(crate) const MAX_PAUSES: u32 = 10;

/// Times that a model is asked again which answers with what is not an answer. Its server is broken or
/// none, and no wait of minutes mends that.
pub(crate) const MAX_BAD_ANSWERS: u32 = 2;

/// Times that a model is asked again whose answer was empty.
pub(crate) const MAX_EMPTY_ANSWERS: u32 = 1;

/// Times that a model is asked again which could not be reached. The waits between them are 15.5 s at
/// most together, so that a refused connection is reported within 20 s.
pub(crate) const MAX_UNREACHABLE: u32 = 5;

/// Times that a model is asked again which fell silent.
pub(crate) const MAX_TIMEOUTS: u32 = 2;

/// Time of attempts that ended in silence after which a turn does not ask again for that, 15 minutes in
/// milliseconds. An attempt counts whole, whatever came before the silence.
pub(crate) const MAX_SILENT_MS: u64 = 900_000;

/// The overload in a row that switches the model.
pub(crate) const OVERLOADS_TO_SWITCH: u32 = 3;

/// One row of the recovery table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecoveryRow {
    /// The class of failure that the row applies to.
    pub class: FailureClass,
    /// Conditions, all of which must hold.
    pub when: &'static [Condition],
    /// The remedy that the row prescribes.
    pub action: Action,
    /// How often; none may be used up.
    pub caps: &'static [Cap],
}

/// When a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The call was for the turn's answer.
    ForTurn,
    /// The call was for a summary.
    ForSummary,
    /// The provider named a wait of at most `MAX_RETRY_AFTER_MS`.
    WaitNamed,
    /// The provider named no wait.
    NoWaitNamed,
    /// It is the `OVERLOADS_TO_SWITCH`th overload of this model in a row.
    ThirdInARow,
    /// Attempts that ended in silence took less than `MAX_SILENT_MS` of the turn.
    TimeLeft,
    /// Something of the answer had been shown.
    HasBegun,
    /// The chain has another model.
    NextModel,
    /// The chain has a model on another provider.
    NextProvider,
    /// Something is left of the context that can be cut to a reference.
    ContextCanShrink,
    /// A higher output ceiling is left to ask for.
    CeilingCanRise,
    /// The error names how high a ceiling fits, and that is lower.
    FitNamed,
    /// The output ceiling is above `REDUCTION_FLOOR`.
    CeilingAboveFloor,
}

/// What a row of the table prescribes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Waits as long as the provider asked for, then asks again.
    WaitAsNamed,
    /// Waits longer each time, with jitter, then asks again.
    BackOff,
    /// The same, and asks for the answer in one piece (MDL-7).
    BackOffWhole,
    /// Asks again at once.
    AskAgain,
    /// Sends what there is back and asks for the rest.
    Continue,
    /// Asks again with a higher output ceiling.
    RaiseCeiling,
    /// Asks again with the output ceiling that fits.
    FitCeiling,
    /// Asks again with a lower output ceiling.
    LowerCeiling,
    /// Collapses the context, then asks again.
    Collapse,
    /// Has the conversation summarised, then asks again.
    Compact,
    /// Cuts results, the newest among them, to references, then asks again.
    Reduce,
    /// Leaves out the oldest of what is to be summarised, then asks again.
    ShrinkSummary,
    /// Asks the next model of the chain.
    SwitchModel,
    /// Asks the next model of the chain that is on another provider.
    SwitchProvider,
    /// Nothing more is tried: the failure is reported.
    Surface,
}

/// How often a row may be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cap {
    /// With all other retries of this model, as often as the settings say.
    Retries,
    /// So often for this class and model, by whatever row.
    PerModel(u32),
    /// So often per turn, whatever the class.
    PerTurn(u32),
}

const RETRY: &[Cap] = &[Cap::Retries];
const AFTER_SILENCE: &[Cap] = &[Cap::Retries, Cap::PerModel(MAX_TIMEOUTS)];

pub(super) const fn row(
    class: FailureClass,
    when: &'static [Condition],
    action: Action,
    caps: &'static [Cap],
) -> RecoveryRow {
    RecoveryRow { class, when, action, caps }
}

use Action::*;
use Condition::*;

/// Asking again, and whom.
const ASKING: &[RecoveryRow] = &[
    row(RateLimit, &[WaitNamed], WaitAsNamed, RETRY),
    row(RateLimit, &[NoWaitNamed], BackOff, RETRY),
    row(RateLimit, &[NextModel], SwitchModel, &[]),
    row(RateLimit, &[], Surface, &[]),
    row(Quota, &[NextProvider], SwitchProvider, &[]),
    row(Quota, &[], Surface, &[]),
    row(Overloaded, &[ThirdInARow, NextModel], SwitchModel, &[]),
    row(Overloaded, &[WaitNamed], WaitAsNamed, RETRY),
    row(Overloaded, &[NoWaitNamed], BackOff, RETRY),
    row(Overloaded, &[NextModel], SwitchModel, &[]),
    row(Overloaded, &[], Surface, &[]),
    row(Unreachable, &[], BackOff, &[Cap::Retries, Cap::PerModel(MAX_UNREACHABLE)]),
    row(Unreachable, &[NextModel], SwitchModel, &[]),
    row(Unreachable, &[], Surface, &[]),
    row(Network, &[WaitNamed], WaitAsNamed, RETRY),
    row(Network, &[NoWaitNamed], BackOff, RETRY),
    row(Network, &[NextModel], SwitchModel, &[]),
    row(Network, &[], Surface, &[]),
    row(Timeout, &[TimeLeft, HasBegun], BackOffWhole, AFTER_SILENCE),
    row(Timeout, &[TimeLeft], BackOff, AFTER_SILENCE),
    row(Timeout, &[NextModel], SwitchModel, &[]),
    row(Timeout, &[], Surface, &[]),
    row(StreamBroken, &[], BackOffWhole, RETRY),
    row(StreamBroken, &[NextModel], SwitchModel, &[]),
    row(StreamBroken, &[], Surface, &[]),
    row(BadAnswer, &[], BackOffWhole, &[Cap::Retries, Cap::PerModel(MAX_BAD_ANSWERS)]),
    row(BadAnswer, &[NextProvider], SwitchProvider, &[]),
    row(BadAnswer, &[], Surface, &[]),
    row(EmptyAnswer, &[], AskAgain, &[Cap::PerTurn(MAX_EMPTY_ANSWERS)]),
    row(EmptyAnswer, &[], Surface, &[]),
    row(PauseTurn, &[], Continue, &[Cap::PerTurn(MAX_PAUSES)]),
    row(PauseTurn, &[], Surface, &[]),
    row(Refusal, &[NextModel], SwitchModel, &[]),
    row(Refusal, &[], Surface, &[]),
];

/// Asking again cannot help, and no other model is to be asked (MDL-13).
const LASTING: &[RecoveryRow] = &[
    row(Billing, &[], Surface, &[]),
    row(Auth, &[], Surface, &[]),
    row(InvalidRequest, &[], Surface, &[]),
    row(Internal, &[], Surface, &[]),
];

/// All rows, path by path.
const TABLE: [&[RecoveryRow]; 5] = [ASKING, path1::ROWS, path3::OUTPUT, path3::PROMPT, LASTING];

/// Returns how often at most the same request is made again after this failure.
pub(crate) fn most_retries(class: FailureClass, max_retries: u32) -> u32 {
    let of_cap = |cap: &Cap| match *cap {
        Cap::Retries => max_retries,
        Cap::PerModel(n) | Cap::PerTurn(n) => n,
    };
    let retries = rows().filter(|it| it.class == class && it.action.is_retry());
    retries.flat_map(|it| it.caps).map(of_cap).min().unwrap_or(max_retries)
}

/// Returns all rows. Every class has some, next to each other, and the last of each always applies.
pub(crate) fn rows() -> impl Iterator<Item = &'static RecoveryRow> {
    TABLE.into_iter().flatten()
}

/// Classes that are failures of a tool and not of a model call: no request is made again, so the
/// ledger never sees them. Their counts are kept by `run::no_progress`.
fn elsewhere() -> [ShownRow; 2] {
    let row = |class: &str, cap| ShownRow {
        class: class.into(),
        when: "always".into(),
        action: "the model reads an error result and goes on".into(),
        at_most: cap,
    };
    [
        row("tool_error", format!("{END_AT} of the same in a run")),
        row(
            "permission_denied",
            format!("{DENIALS_IN_A_ROW} of the same in a row, {DENIALS_IN_A_RUN} in a run"),
        ),
    ]
}

impl Condition {
    /// Returns the condition in words, for the table.
    pub(crate) fn words(self) -> String {
        match self {
            ForTurn => "asked for an answer".into(),
            ForSummary => "asked for a summary".into(),
            WaitNamed => format!("it named a wait, at most {} min", MAX_RETRY_AFTER_MS / 60_000),
            NoWaitNamed => "it named no wait".into(),
            ThirdInARow => format!("{OVERLOADS_TO_SWITCH} in a row"),
            TimeLeft => format!("silence took less than {} min", MAX_SILENT_MS / 60_000),
            HasBegun => "some of it was shown".into(),
            NextModel => "the chain has another model".into(),
            NextProvider => "the chain has another provider".into(),
            ContextCanShrink => "results can be cut".into(),
            CeilingCanRise => "the model can give more".into(),
            FitNamed => "it names a ceiling that fits".into(),
            CeilingAboveFloor => format!("the ceiling is above {REDUCTION_FLOOR} tokens"),
        }
    }
}

impl Action {
    /// Returns the action in words, for the table.
    pub fn words(self) -> &'static str {
        match self {
            WaitAsNamed => "wait as named, ask again",
            BackOff => "back off, ask again",
            BackOffWhole => "back off, ask again in one piece",
            AskAgain => "ask again",
            Continue => "keep the content, ask for the rest",
            RaiseCeiling => "ask again with twice the output ceiling",
            FitCeiling => "ask again with that output ceiling",
            LowerCeiling => "ask again with 0.7 of the output ceiling",
            Collapse => "collapse the context, ask again",
            Compact => "have the conversation summarised, ask again",
            Reduce => "cut results to references, ask again",
            ShrinkSummary => "leave out the older half, ask again",
            SwitchModel => "ask the next model",
            SwitchProvider => "ask the next model on another provider",
            Surface => "give up",
        }
    }

    /// Returns whether the action sends the same request once more.
    pub(crate) fn is_retry(self) -> bool {
        matches!(self, WaitAsNamed | BackOff | BackOffWhole)
    }
}

/// A row in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownRow {
    /// The code of the class.
    pub class: String,
    /// The condition of the row, in words.
    pub when: String,
    /// The action of the row, in words.
    pub action: String,
    /// How often; empty: as often as it comes.
    pub at_most: String,
}

/// Returns the table in words, with the classes that are decided about elsewhere at its end. `max_retries` is that of
/// the settings.
pub fn displayed_rows(max_retries: u32) -> Vec<ShownRow> {
    let cap = |cap: &Cap| match cap {
        Cap::Retries => format!("{max_retries} retries per model"),
        Cap::PerModel(n) => format!("{n} of this class per model"),
        Cap::PerTurn(n) => format!("{n} per turn"),
    };
    let mut last = None;
    let row = |row: &RecoveryRow| {
        let when: Vec<String> = row.when.iter().map(|it| it.words()).collect();
        let caps: Vec<String> = row.caps.iter().map(cap).collect();
        let follows = last.replace(row.class) == Some(row.class);
        ShownRow {
            class: row.class.code().into(),
            when: match (when.is_empty(), follows) {
                (true, true) => "otherwise".into(),
                (true, false) => "always".into(),
                (false, _) => when.join(", "),
            },
            action: row.action.words().into(),
            at_most: caps.join(", "),
        }
    };
    rows().map(row).chain(elsewhere()).collect()
}

/// Prints the table as text, columns aligned; the class is in the first of its rows only.
pub fn print(max_retries: u32) -> String {
    let head = ["class", "when", "then", "at most"].map(str::to_owned);
    let mut rows = vec![head];
    let mut last = String::new();
    for ShownRow { class, when, action, at_most } in displayed_rows(max_retries) {
        let shown = if class == last { String::new() } else { class.clone() };
        rows.push([shown, when, action, at_most]);
        last = class;
    }
    let width = |column: usize| rows.iter().map(|it| it[column].len()).max().unwrap_or_default();
    let (class, when, then) = (width(0), width(1), width(2));
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        // Writing to a string cannot fail.
        let _infallible =
            write!(line, "{:class$}  {:when$}  {:then$}  {}", row[0], row[1], row[2], row[3]);
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
