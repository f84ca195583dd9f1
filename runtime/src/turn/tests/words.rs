//! Lines and events as words, and inputs once more.

use crate::{
    block::Block, event::Event, ids::ToolUseId, message::MessageKind,
    step7_permission_gate::CommandOrder, transcript::entry::ConversationLine, turn::Input,
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

/// The same input once more, of inputs that can be copied and that must not count twice.
pub(super) fn again(input: &Input) -> Option<Input> {
    Some(match input {
        Input::Run(step) => Input::Run(*step),
        Input::SettingsRead(read) => Input::SettingsRead(read.clone()),
        Input::SourcesRead(texts) => Input::SourcesRead(texts.clone()),
        Input::Shaped { stage, result, elapsed_us } => {
            Input::Shaped { stage: *stage, result: result.clone(), elapsed_us: *elapsed_us }
        }
        Input::ModelAnswered(answered) => Input::ModelAnswered(answered.clone()),
        Input::TimerFired { attempt } => Input::TimerFired { attempt: *attempt },
        Input::Dispatched(admissions) => Input::Dispatched(admissions.clone()),
        Input::HooksAnswered { firing, outputs } => {
            Input::HooksAnswered { firing: *firing, outputs: outputs.clone() }
        }
        Input::PathResolved { call, path } => {
            Input::PathResolved { call: call.clone(), path: path.clone() }
        }
        Input::CommandJudged { call, judged } => {
            Input::CommandJudged { call: call.clone(), judged: judged.clone() }
        }
        Input::PermissionAnswered { call, answer } => {
            Input::PermissionAnswered { call: call.clone(), answer: answer.clone() }
        }
        Input::ToolFinished { call, outcome } => {
            Input::ToolFinished { call: call.clone(), outcome: outcome.clone() }
        }
        Input::Recorded { ticket } => Input::Recorded { ticket: *ticket },
        Input::StopRequested => return None,
    })
}

/// A word for an event, if it has one.
pub(super) fn told(event: &Event) -> Option<String> {
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
pub(super) fn judged(call: ToolUseId, order: &CommandOrder) -> Input {
    Input::CommandJudged { judged: Box::new(order.judge()), call }
}

/// What is alerted.
pub(super) fn alert(event: &Event) -> Option<String> {
    match event {
        Event::Alert { what } => Some(what.to_string()),
        _ => None,
    }
}
