//! The calls of one turn: one decision, one result each, in order.

use std::collections::BTreeMap;

use super::{Evidence, ViolationKind};
use crate::{
    digest::Digest,
    ids::{ToolName, ToolUseId},
    message::Message,
    step6_tool_dispatch::current_name,
    step7_permission_gate::Decision,
    tool::{ToolCall, ToolErrorKind},
    transcript::entry::Stored,
};

/// The calls of one turn.
#[derive(Default)]
pub(super) struct Calls {
    calls: Vec<TrackedCall>,
    /// The first call of each id.
    by_id: BTreeMap<ToolUseId, usize>,
    /// Calls at the front that have their results.
    n_done: usize,
}

struct TrackedCall {
    id: ToolUseId,
    tool: ToolName,
    input: String,
    decision: Option<(bool, Digest)>,
    intended: bool,
    ended: Option<bool>,
    result: Option<bool>,
}

impl Calls {
    pub(super) fn ask(&mut self, answer: &Message) {
        for (id, tool, input) in answer.tool_uses() {
            self.by_id.entry(id.clone()).or_insert(self.calls.len());
            self.calls.push(TrackedCall {
                id: id.clone(),
                tool: current_name(tool),
                input: input.to_owned(),
                decision: None,
                intended: false,
                ended: None,
                result: None,
            });
        }
    }

    /// Returns whether any of them may have had an effect, or has its result.
    pub(super) fn has_run(&self) -> bool {
        self.calls.iter().any(|it| it.intended || it.ended.is_some() || it.result.is_some())
    }

    pub(super) fn len(&self) -> u64 {
        self.calls.len() as u64
    }

    pub(super) fn allowed(&self) -> u64 {
        self.count(|call| call.decision.is_some_and(|(allowed, _)| allowed))
    }

    pub(super) fn undecided(&self) -> u64 {
        self.count(|call| call.decision.is_none())
    }

    pub(super) fn failed(&self) -> u64 {
        self.count(|call| call.result == Some(true))
    }

    fn count(&self, holds: impl Fn(&TrackedCall) -> bool) -> u64 {
        self.calls.iter().filter(|call| holds(call)).count() as u64
    }

    /// Returns the first call without a decision.
    pub(super) fn first_undecided(&self) -> Option<&ToolUseId> {
        self.calls.iter().find(|call| call.decision.is_none()).map(|call| &call.id)
    }

    /// Returns the first call without a result.
    pub(super) fn first_open(&self) -> Option<&ToolUseId> {
        self.calls.get(self.n_done).map(|call| &call.id)
    }

    fn find(&mut self, id: &ToolUseId) -> Result<&mut TrackedCall, ViolationKind> {
        let call = self.by_id.get(id).and_then(|at| self.calls.get_mut(*at));
        call.ok_or_else(|| ViolationKind::UnknownCall { call: id.clone() })
    }

    pub(super) fn decide(
        &mut self,
        id: &ToolUseId,
        tool: &ToolName,
        digest: Digest,
        input: Option<&Stored>,
        decision: &Decision,
        evidence: &Evidence<'_>,
    ) -> Result<(), ViolationKind> {
        let call = self.find(id)?;
        let id = || id.clone();
        if call.decision.is_some() {
            return Err(ViolationKind::SecondDecision { call: id() });
        }
        if call.intended || call.ended.is_some() || call.result.is_some() {
            return Err(ViolationKind::NoDecision { call: id() });
        }
        if call.tool != *tool {
            return Err(ViolationKind::WrongTool { call: id() });
        }
        let input = match input {
            Some(input) => text(input, evidence)?,
            None => call.input.clone(),
        };
        let asked = ToolCall { id: id(), name: tool.clone(), input: input.into() };
        if asked.digest() != digest {
            return Err(ViolationKind::WrongDigest { call: id() });
        }
        call.decision = Some((decision.allowed, digest));
        Ok(())
    }

    pub(super) fn intend(
        &mut self,
        id: &ToolUseId,
        tool: &ToolName,
        digest: Digest,
    ) -> Result<(), ViolationKind> {
        let call = self.find(id)?;
        let id = id.clone();
        match call.decision {
            None => Err(ViolationKind::NoDecision { call: id }),
            Some((false, _)) => Err(ViolationKind::NotAllowed { call: id }),
            Some((true, decided)) if decided != digest => {
                Err(ViolationKind::WrongDigest { call: id })
            }
            _ if call.tool != *tool => Err(ViolationKind::WrongTool { call: id }),
            _ if call.intended || call.result.is_some() => {
                Err(ViolationKind::SecondResult { call: id })
            }
            _ => {
                call.intended = true;
                Ok(())
            }
        }
    }

    pub(super) fn end(
        &mut self,
        id: &ToolUseId,
        error: Option<ToolErrorKind>,
    ) -> Result<(), ViolationKind> {
        let call = self.find(id)?;
        let id = || id.clone();
        if call.ended.is_some() || call.result.is_some() {
            return Err(ViolationKind::SecondResult { call: id() });
        }
        match call.decision {
            // Refused before the gate: it has an error and no decision.
            None if error.is_none() => return Err(ViolationKind::NoDecision { call: id() }),
            Some((false, _)) if error.is_none() => {
                return Err(ViolationKind::NotAllowed { call: id() });
            }
            _ => call.ended = Some(error.is_some()),
        }
        Ok(())
    }

    pub(super) fn answer(&mut self, id: &ToolUseId, is_error: bool) -> Result<(), ViolationKind> {
        let earlier = self.first_open().is_some_and(|open| open != id);
        let call = self.find(id)?;
        let id = id.clone();
        if call.result.is_some() {
            return Err(ViolationKind::SecondResult { call: id });
        }
        if earlier {
            return Err(ViolationKind::ResultOrder { call: id });
        }
        match call.decision {
            None if !is_error => return Err(ViolationKind::NoDecision { call: id }),
            Some((false, _)) if !is_error => return Err(ViolationKind::NotAllowed { call: id }),
            _ => {}
        }
        if call.ended.is_some_and(|failed| failed != is_error) {
            return Err(ViolationKind::WrongAnswer);
        }
        call.result = Some(is_error);
        while self.calls.get(self.n_done).is_some_and(|call| call.result.is_some()) {
            self.n_done += 1;
        }
        Ok(())
    }
}

/// Returns the text, wherever it is.
pub(super) fn text(stored: &Stored, evidence: &Evidence<'_>) -> Result<String, ViolationKind> {
    match stored {
        Stored::Text(text) => Ok(text.to_string()),
        Stored::At(digest) => {
            let digest = *digest;
            let text = (evidence.stored)(digest).ok_or(ViolationKind::NoText { digest })?;
            if Digest::of(text.as_bytes()) == digest {
                Ok(text)
            } else {
                Err(ViolationKind::WrongText { digest })
            }
        }
        Stored::Again(digest) => Err(ViolationKind::NoText { digest: *digest }),
    }
}
