//! Lines and events as words, and inputs once more.

use crate::{
    block::Block,
    event::Event,
    ids::ToolUseId,
    message::MessageKind,
    step::Step,
    step7_permission_gate::CommandOrder,
    transcript::entry::{ConversationLine, Line, Record, RecordKind},
    turn::TurnInput,
};

/// The word for a line, if it has one.
pub(super) fn word(line: &ConversationLine) -> Option<String> {
    let message = &line.message;
    Some(match (message.kind, message.blocks.first().and_then(Block::as_tool_result)) {
        (MessageKind::Answer, _) => "answer".into(),
        (_, Some((id, _, false))) => format!("result:{id}"),
        (_, Some((id, _, true))) => format!("error:{id}"),
        (MessageKind::Meta, None) => "note".into(),
        (MessageKind::CompactSummary, None) => "summary".into(),
        (MessageKind::Mark, None) if line.boundary.is_none() => "mark".into(),
        _ => return None,
    })
}

/// The step after the last one that these lines of a turn record.
pub(super) fn step_after(lines: &[Line]) -> Option<Step> {
    let step = |line: &Line| match line {
        Line::Harness(record) => match record.what {
            RecordKind::TurnStep { step, .. } => Some(step),
            _ => None,
        },
        Line::Conversation(_) => None,
    };
    lines.iter().rev().find_map(step).map_or(Some(Step::SettingsResolution), Step::next)
}

/// The same input once more, of inputs that can be copied and that must not count twice.
pub(super) fn again(input: &TurnInput) -> Option<TurnInput> {
    Some(match input {
        TurnInput::Run(step) => TurnInput::Run(*step),
        TurnInput::SettingsRead(read) => TurnInput::SettingsRead(read.clone()),
        TurnInput::SettingsMerged(merged) => TurnInput::SettingsMerged(merged.clone()),
        TurnInput::SourcesRead(texts) => TurnInput::SourcesRead(texts.clone()),
        TurnInput::SourcesSeen(look) => TurnInput::SourcesSeen(look.clone()),
        TurnInput::Shaped { stage, result, elapsed_us } => {
            TurnInput::Shaped { stage: *stage, result: result.clone(), elapsed_us: *elapsed_us }
        }
        TurnInput::ModelAnswered(answered) => TurnInput::ModelAnswered(answered.clone()),
        TurnInput::TimerFired { attempt } => TurnInput::TimerFired { attempt: *attempt },
        TurnInput::Dispatched(admissions) => TurnInput::Dispatched(admissions.clone()),
        TurnInput::HooksAnswered { firing, outputs } => {
            TurnInput::HooksAnswered { firing: *firing, outputs: outputs.clone() }
        }
        TurnInput::PathResolved { call, path } => {
            TurnInput::PathResolved { call: call.clone(), path: path.clone() }
        }
        TurnInput::CommandJudged { call, judged } => {
            TurnInput::CommandJudged { call: call.clone(), judged: judged.clone() }
        }
        TurnInput::PlanRead { call, plan } => {
            TurnInput::PlanRead { call: call.clone(), plan: plan.clone() }
        }
        TurnInput::PolicyAnswered { call, epoch, verdict } => {
            let (call, verdict) = (call.clone(), verdict.clone());
            TurnInput::PolicyAnswered { call, epoch: *epoch, verdict }
        }
        TurnInput::PermissionAnswered { call, given } => {
            TurnInput::PermissionAnswered { call: call.clone(), given: given.clone() }
        }
        TurnInput::ModeChanged(_) => return None,
        TurnInput::InputRefused { call, why } => {
            TurnInput::InputRefused { call: call.clone(), why: why.clone() }
        }
        TurnInput::ToolFinished { call, outcome } => {
            TurnInput::ToolFinished { call: call.clone(), outcome: outcome.clone() }
        }
        TurnInput::Recorded { ticket } => TurnInput::Recorded { ticket: *ticket },
        TurnInput::StopRequested => return None,
    })
}

/// A word for an event, if it has one.
pub(super) fn shown_event(event: &Event) -> Option<String> {
    match event {
        Event::StepStarted { step, .. } => Some(step.number().to_string()),
        Event::RecoveryTaken { remedy, .. } => Some((*remedy).into()),
        Event::Withdrawn { .. } => Some("withdrawn".into()),
        Event::Alert { .. } => Some("alert".into()),
        Event::HookMessage { text, .. } => Some(format!("says:{}", text.replace(' ', "_"))),
        Event::PromptCacheDropped { .. } => Some("cache".into()),
        _ => None,
    }
}

/// What comes of the order to judge a command.
pub(super) fn judged(call: ToolUseId, order: &CommandOrder) -> TurnInput {
    TurnInput::CommandJudged {
        judged: Box::new(order.judge(crate::step7_permission_gate::Look {
            at: |_| crate::step7_permission_gate::path_resolution::PathEntry::Directory,
            list: |_, _| Some(Default::default()),
        })),
        call,
    }
}

pub(super) fn alert(event: &Event) -> Option<String> {
    match event {
        Event::Alert { what } => Some(what.to_string()),
        _ => None,
    }
}

/// The call that somebody was asked about last and that is not decided, as a session knows it.
pub(super) fn asked_last<'a>(records: impl Iterator<Item = &'a Record>) -> Option<ToolUseId> {
    records.fold(None, |asked, record| match &record.what {
        RecordKind::Question { call, .. } => Some(call.clone()),
        RecordKind::Approval { .. } | RecordKind::Permission { .. } => None,
        _ => asked,
    })
}
