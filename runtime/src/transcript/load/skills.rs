//! The skills that a session has loaded, as its transcript has them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    ids::ToolUseId,
    step3_context_assembly::loaded_skills::{LoadedSkills, TOOL, named_in},
    transcript::entry::ConversationLine,
};

/// The skills so far, and the calls that may load another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SkillCalls {
    /// Calls without a result, with the skill that each asks for.
    calls: BTreeMap<ToolUseId, String>,
    pub(crate) loaded: LoadedSkills,
}

impl SkillCalls {
    pub(super) fn note(&mut self, line: &ConversationLine) {
        for block in line.message.blocks.iter() {
            if let Some((id, name, input)) = block.as_tool_use() {
                if name.as_str() == TOOL
                    && let Some(skill) = named_in(input)
                {
                    self.calls.insert(id.clone(), skill);
                }
            } else if let Some((id, text, is_error)) = block.as_tool_result()
                && let Some(skill) = self.calls.remove(id)
                && !is_error
            {
                self.loaded.note(&skill, text);
            }
        }
    }
}
