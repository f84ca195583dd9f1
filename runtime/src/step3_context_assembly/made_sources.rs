//! Sources that were encoded before: those of the sessions of one place are mostly the same.
//!
//! It spares work and decides nothing: what is taken from it is what [`Sources::new`] would make.

use std::sync::{Arc, Mutex, PoisonError};

use super::{PromptFacts, SourceTexts, Sources, SystemPromptParts};
use crate::{ids::EntryId, tool::ToolSpec};

/// How many are kept. Sub-agents have others than the session above them, and each type its own.
const MAX_KEPT: usize = 4;

/// The sources that were encoded last, for all sessions that share this. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct MadeSources(Arc<Mutex<Vec<Arc<Made>>>>);

/// Sources, and what they were made of.
#[derive(Debug)]
struct Made {
    texts: SourceTexts,
    adaptation: String,
    directory: String,
    additional_directories: Vec<String>,
    memory: Option<String>,
    /// The day, the model and what it knows.
    now: Option<[String; 3]>,
    window: Option<u64>,
    tools: Vec<Arc<ToolSpec>>,
    sources: Sources,
}

impl MadeSources {
    /// As [`Sources::new`].
    pub(crate) fn make(
        &self,
        texts: &SourceTexts,
        parts: &SystemPromptParts<'_>,
        tools: Vec<Arc<ToolSpec>>,
        context_id: EntryId,
    ) -> Sources {
        let is_same = |it: &&Arc<Made>| it.is_of(texts, parts, &tools);
        if let Some(made) = self.kept(|it| it.iter().find(is_same).cloned()) {
            return made.sources.with_context_id(context_id);
        }
        let sources = Sources::new(texts, parts, tools.clone(), context_id);
        let made = Arc::new(Made::new(texts, parts, tools, sources.clone()));
        self.kept(|it| {
            it.insert(0, made);
            it.truncate(MAX_KEPT);
        });
        sources
    }

    fn kept<T>(&self, look: impl FnOnce(&mut Vec<Arc<Made>>) -> T) -> T {
        // Whole values are put in at once, so a panic elsewhere spoils nothing.
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Made {
    fn new(
        texts: &SourceTexts,
        parts: &SystemPromptParts<'_>,
        tools: Vec<Arc<ToolSpec>>,
        sources: Sources,
    ) -> Self {
        Self {
            texts: texts.clone(),
            adaptation: parts.adaptation.to_owned(),
            directory: parts.directory.to_owned(),
            additional_directories: parts.additional_directories.to_vec(),
            memory: parts.memory.map(str::to_owned),
            now: parts.now.map(|it| [it.day, it.model, it.knowledge].map(str::to_owned)),
            window: parts.window,
            tools,
            sources,
        }
    }

    fn is_of(
        &self,
        texts: &SourceTexts,
        parts: &SystemPromptParts<'_>,
        tools: &[Arc<ToolSpec>],
    ) -> bool {
        let now = self.now.as_ref();
        let own = SystemPromptParts {
            adaptation: &self.adaptation,
            directory: &self.directory,
            additional_directories: &self.additional_directories,
            memory: self.memory.as_deref(),
            now: now.map(|[day, model, knowledge]| PromptFacts { day, model, knowledge }),
            window: self.window,
        };
        own == *parts && self.tools == tools && self.texts == *texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{Access, Concurrency, ToolEffect};

    fn tool(description: &str) -> Arc<ToolSpec> {
        Arc::new(ToolSpec {
            name: "look".into(),
            description: description.into(),
            input_schema: "{}".into(),
            effect: ToolEffect::ReadOnly,
            concurrency: Concurrency::Alone,
            access: Access::Free,
            output_cap: None,
            timeout_ms: None,
            polls: false,
        })
    }

    // REQ: CTX-1
    #[test]
    fn sources_made_before_are_those_that_would_be_made_now() {
        let texts = SourceTexts {
            environment: vec![("Platform".into(), "linux".into())],
            auto_memory: Some("notes".into()),
            ..SourceTexts::default()
        };
        let other = SourceTexts { auto_memory: None, ..texts.clone() };
        let today = PromptFacts { day: "2026-11-26", model: "m", knowledge: "" };
        let parts = SystemPromptParts {
            directory: "/w",
            memory: Some("/m"),
            now: Some(today),
            window: Some(200_000),
            ..SystemPromptParts::default()
        };
        let tomorrow = PromptFacts { day: "2026-11-27", ..today };
        let variants = [
            parts.clone(),
            SystemPromptParts { directory: "/v", ..parts.clone() },
            SystemPromptParts { adaptation: "Be brief.", ..parts.clone() },
            SystemPromptParts { memory: None, ..parts.clone() },
            SystemPromptParts { now: Some(tomorrow), ..parts.clone() },
            SystemPromptParts { window: Some(2_000), ..parts },
        ];
        let made = MadeSources::default();
        for (n, parts) in variants.iter().chain(&variants).enumerate() {
            for texts in [&texts, &other, &texts] {
                for tool in [tool("a"), tool("b"), tool("a")] {
                    let id: EntryId = format!("id-{n}").into();
                    let shared = made.make(texts, parts, vec![Arc::clone(&tool)], id.clone());
                    let own = Sources::new(texts, parts, vec![tool], id);
                    assert_eq!(format!("{shared:?}"), format!("{own:?}"));
                }
            }
        }
        assert_eq!(made.kept(|it| it.len()), MAX_KEPT);
    }

    #[test]
    fn what_was_made_is_taken_up_again() {
        let made = MadeSources::default();
        let (texts, parts) = (SourceTexts::default(), SystemPromptParts::default());
        made.make(&texts, &parts, vec![tool("a")], "x".into());
        made.clone().make(&texts, &parts, vec![tool("a")], "y".into());
        assert_eq!(made.kept(|it| it.len()), 1);
    }
}
