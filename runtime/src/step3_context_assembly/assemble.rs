//! Putting the nine sources in their places.
//!
//! What does not change while a session lives is made once, in [`Sources::new`], and anew where tools
//! join; what a turn does is to clone references.

use std::sync::Arc;

use super::{
    CountedMessages, SourceTexts,
    source1_system_prompt::{
        SYSTEM_PROMPT_BUDGET_CHARS, SystemPromptParts, moved, segments, tool_segment,
    },
    source2_environment, source3_instructions,
    source4_path_rules::PathRuleSet,
    source5_auto_memory, source6_tool_metadata,
};
use crate::{
    block::Block,
    ids::EntryId,
    message::{Message, MessageKind, Messages, SharedMessages, estimate_of},
    step7_permission_gate::isolation::Isolation,
    tokens::{Estimate, Size},
    tool::{ToolMemory, ToolSpec},
};

/// The sources of a session, encoded.
#[derive(Clone, Debug)]
pub struct Sources {
    system: Arc<[String]>,
    n_static: usize,
    tools: Arc<[Arc<ToolSpec>]>,
    /// The place of the segment that names the tools, and whether there is one.
    tool_segment: (usize, bool),
    /// Sources 2, 3 and 5.
    context: Option<Arc<Message>>,
    path_rules: PathRuleSet,
    triggered: Vec<usize>,
    triggered_rules: Option<Arc<Message>>,
    /// Characters of the sources so far; 7 to 9 are counted per turn.
    sizes: [u64; 9],
    /// Size of the system prompt and the tools.
    fixed: Size,
}

/// The context of one request before it is shaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assembled {
    /// Segments of the system prompt, in order.
    pub system: Arc<[String]>,
    /// How many of them, from the first, are the same on every machine and day.
    pub n_static: usize,
    /// The tools offered, in order.
    pub tools: Arc<[Arc<ToolSpec>]>,
    /// Context and path rules, which are in front of the conversation and no part of it.
    pub context: Messages,
    /// The conversation since the last compaction.
    pub conversation: SharedMessages,
    /// Characters that each of the nine sources contributes, in order.
    pub sizes: [u64; 9],
    /// The size of the system prompt and the tools.
    pub(crate) fixed: Size,
    /// The estimate for all messages.
    pub(crate) estimate: Estimate,
}

impl Sources {
    /// Encodes what holds for the whole session. `tools` are those that are offered; `context_id`
    /// names the message that is made up.
    pub fn new(
        texts: &SourceTexts,
        parts: &SystemPromptParts<'_>,
        tools: Vec<Arc<ToolSpec>>,
        context_id: EntryId,
    ) -> Self {
        let segments = segments(texts, parts, &tools, SYSTEM_PROMPT_BUDGET_CHARS);
        let n_static = segments.iter().take_while(|it| it.is_static).count();
        let place_of = |name| segments.iter().position(|it| it.name == name);
        let tool_segment = match (place_of("tools"), place_of("append")) {
            (Some(at), _) => (at, true),
            (None, append) => (append.unwrap_or(segments.len()), false),
        };
        let system: Vec<String> = segments.into_iter().map(|it| it.text).collect();
        let environment = source2_environment::text(texts, parts.now);
        let moved = moved(texts, parts, &tools, SYSTEM_PROMPT_BUDGET_CHARS);
        let instructions =
            source3_instructions::text(texts, source3_instructions::budget(parts.window));
        let memory = source5_auto_memory::text(texts, parts.memory);
        let mut sizes = [0; 9];
        sizes[0] = system.iter().map(|it| chars(it)).sum();
        sizes[1] = [&environment, &moved].into_iter().flatten().map(|it| chars(it)).sum();
        sizes[2] = instructions.as_deref().map_or(0, chars);
        sizes[4] = memory.as_deref().map_or(0, chars);
        let of_tools = source6_tool_metadata::size(&tools);
        sizes[5] = of_tools.chars;
        let fixed = system.iter().map(|it| Size::of(it)).sum::<Size>() + of_tools;
        let blocks: Vec<Block> = [environment, moved, instructions, memory]
            .into_iter()
            .flatten()
            .map(|it| Block::text(&it))
            .collect();
        Self {
            system: system.into(),
            n_static,
            tools: tools.into(),
            tool_segment,
            context: made_up(context_id, blocks),
            path_rules: PathRuleSet::new(&texts.path_rules),
            triggered: Vec::new(),
            triggered_rules: None,
            sizes,
            fixed,
        }
    }

    /// Gives the message that is made up another name.
    #[must_use]
    pub(super) fn with_context_id(&self, id: EntryId) -> Self {
        let context = self.context.as_deref().map(|it| Arc::new(Message { id, ..it.clone() }));
        Self { context, ..self.clone() }
    }

    /// Makes the sources of an agent that works in a worktree.
    #[must_use]
    pub(crate) fn in_worktree(mut self, isolation: Isolation) -> Self {
        self.path_rules = std::mem::take(&mut self.path_rules).in_worktree(isolation);
        self
    }

    /// Returns whether these tools are offered, and no others.
    pub(crate) fn offers(&self, tools: &[Arc<ToolSpec>]) -> bool {
        self.tools.iter().map(|it| &it.name).eq(tools.iter().map(|it| &it.name))
    }

    /// Replaces the tools that were offered: the result is as [`Sources::new`] makes it of the same texts, which are
    /// not needed for it.
    #[must_use]
    pub(crate) fn offering(&self, tools: Vec<Arc<ToolSpec>>) -> Self {
        let ((at, is_there), mut system) = (self.tool_segment, self.system.to_vec());
        let is_static = self.n_static == system.len();
        if is_there {
            system.remove(at);
        }
        // Its priority is the lowest, so the others are as long as without it.
        let others: usize = system.iter().map(|it| it.chars().count()).sum();
        let text = tool_segment(&tools, SYSTEM_PROMPT_BUDGET_CHARS.saturating_sub(others));
        let has_segment = !text.is_empty();
        if has_segment {
            system.insert(at, text);
        }
        let mut sizes = self.sizes;
        sizes[0] = system.iter().map(|it| chars(it)).sum();
        let of_tools = source6_tool_metadata::size(&tools);
        sizes[5] = of_tools.chars;
        let fixed = system.iter().map(|it| Size::of(it)).sum::<Size>() + of_tools;
        Self {
            n_static: if is_static { system.len() } else { self.n_static },
            system: system.into(),
            tools: tools.into(),
            tool_segment: (at, has_segment),
            sizes,
            fixed,
            ..self.clone()
        }
    }

    /// Replaces the rules for files that are read.
    #[must_use]
    pub fn with_rules(&self, rules: &[super::PathRule]) -> Self {
        Self { path_rules: self.path_rules.with(rules), ..self.clone() }
    }

    /// Returns the rules that are for one of these files.
    pub(crate) fn rules_for<'a>(
        &'a self,
        files: impl Iterator<Item = &'a String> + Clone,
    ) -> Vec<&'a super::PathRule> {
        self.path_rules.rules_for(files)
    }

    /// Notes which files were read. Returns whether that showed the model rules it had not seen; only then anything is
    /// changed, and `id` names the message that is made up.
    pub(crate) fn files_read(
        self: &mut Arc<Self>,
        memory: &ToolMemory,
        id: impl FnOnce() -> EntryId,
    ) -> bool {
        let triggered = self.path_rules.triggered(memory);
        if triggered == self.triggered {
            return false;
        }
        let sources = Arc::make_mut(self);
        let text = sources.path_rules.text(&triggered);
        sources.sizes[3] = text.as_deref().map_or(0, chars);
        sources.triggered_rules = made_up(id(), text.iter().map(|it| Block::text(it)).collect());
        sources.triggered = triggered;
        true
    }
}

impl Assembled {
    /// Counts what was appended to the conversation with the sources that it is of.
    pub(crate) fn count_appended(&mut self, appended: [u64; 9]) {
        for (place, size) in appended.into_iter().enumerate().filter(|(place, _)| *place < 6) {
            self.sizes[place] += size;
            self.sizes[6] = self.sizes[6].saturating_sub(size);
        }
    }

    /// Appends a segment to the system prompt.
    pub(crate) fn append_system(&mut self, text: &str) {
        self.sizes[0] += chars(text);
        self.fixed = self.fixed + Size::of(text);
        self.system = self.system.iter().cloned().chain([text.to_owned()]).collect();
    }
}

/// Assembles the nine sources around a conversation of which a part may have been counted before. Equal arguments give
/// equal contexts.
pub(crate) fn assemble_grown(
    sources: &Sources,
    conversation: &SharedMessages,
    counted: &mut CountedMessages,
) -> Assembled {
    let (conversation, sent) = counted.count(conversation);
    let mut sizes = sources.sizes;
    sizes[7] = sent.of_results;
    sizes[8] = sent.of_summary;
    sizes[6] = sent.chars - sizes[7] - sizes[8];
    let context: Messages =
        sources.context.iter().chain(&sources.triggered_rules).cloned().collect();
    let estimate = estimate_of(&context) + sent.estimate;
    Assembled {
        system: Arc::clone(&sources.system),
        n_static: sources.n_static,
        tools: Arc::clone(&sources.tools),
        context,
        conversation,
        sizes,
        fixed: sources.fixed,
        estimate,
    }
}

fn made_up(id: EntryId, blocks: Vec<Block>) -> Option<Arc<Message>> {
    (!blocks.is_empty()).then(|| Arc::new(Message::user(id, MessageKind::Meta, blocks)))
}

fn chars(text: &str) -> u64 {
    text.chars().count() as u64
}

#[cfg(test)]
mod tests;
