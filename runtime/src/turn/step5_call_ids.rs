//! Ids of calls, one for each call of a conversation.
//!
//! Calls and results are matched by id, in the transcript, in what the model is sent and by the one
//! that listens. Servers that copy this format do not always make them so: some count from `call_0`
//! in each answer.

use std::collections::BTreeSet;

use super::Turn;
use crate::{block::Block, event::Event, ids::ToolUseId, step5_model_call::ModelAnswer};

impl Turn {
    /// Gives calls their own ids. Of several calls with one id in an answer the first counts; a call whose id an
    /// earlier answer has used gets an id of its own, before it is published or decided about.
    pub(super) fn give_calls_own_ids(&mut self, answer: &mut ModelAnswer) {
        self.drop_second_uses(answer);
        self.rename_used(answer);
    }

    fn drop_second_uses(&mut self, answer: &mut ModelAnswer) {
        let paused = self.state.model.paused.iter().flatten().filter_map(Block::as_tool_use);
        let mut seen: BTreeSet<ToolUseId> = paused.map(|(id, ..)| id.clone()).collect();
        let mut dropped = Vec::new();
        answer.blocks.retain(|block| match block.as_tool_use() {
            Some((id, ..)) if !seen.insert(id.clone()) => {
                dropped.push(id.clone());
                false
            }
            _ => true,
        });
        for id in dropped {
            let what = format!("the model asked twice with the id {id}; the second is left out");
            self.publish(Event::Alert { what: what.into() });
        }
    }

    fn rename_used(&mut self, answer: &mut ModelAnswer) {
        let request = self.state.model.request.0;
        let mut notes = Vec::new();
        for (n, block) in answer.blocks.iter_mut().enumerate() {
            let Some((id, name, input)) = block.as_tool_use() else { continue };
            if !self.history.has_call(id) {
                continue;
            }
            let (old, new) = (id.clone(), ToolUseId::made_up(request, n));
            *block = Block::tool_use(&new, name, input);
            let invalid = answer.invalid_inputs.iter_mut().filter(|it| it.0 == old);
            invalid.for_each(|it| it.0 = new.clone());
            notes.push(format!("the model used the id {old} again; the call goes by {new}"));
        }
        for what in notes {
            self.publish(Event::Alert { what: what.into() });
        }
    }
}
