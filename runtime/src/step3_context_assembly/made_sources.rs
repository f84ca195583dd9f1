//! Sources that were encoded before: those of the sessions of one place are mostly the same.
//!
//! It spares work and decides nothing: what is taken from it is what [`Sources::new`] would make.

use std::{fmt, sync::Arc};

use super::{PromptFacts, SourceTexts, Sources, SystemPromptParts};
use crate::{ids::EntryId, tool::ToolSpec};

/// Keeps sources that were encoded, for all sessions that share it. How many, and for how long, is its own affair.
pub trait KeepSources: Send + Sync + fmt::Debug {
    /// Returns kept sources of which `is_same` is true.
    fn find(&self, is_same: &dyn Fn(&MadeSources) -> bool) -> Option<Arc<MadeSources>>;

    /// Keeps sources for later calls of [`Self::find`].
    fn keep(&self, made: Arc<MadeSources>);
}

/// Sources, and what they were made of.
#[derive(Debug)]
pub struct MadeSources {
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

impl Sources {
    /// Makes what [`Sources::new`] makes, or takes it from those that are kept.
    pub(crate) fn shared(
        kept: Option<&dyn KeepSources>,
        texts: &SourceTexts,
        parts: &SystemPromptParts<'_>,
        tools: Vec<Arc<ToolSpec>>,
        context_id: EntryId,
    ) -> Sources {
        let Some(kept) = kept else { return Sources::new(texts, parts, tools, context_id) };
        if let Some(made) = kept.find(&|it| it.was_made_from(texts, parts, &tools)) {
            return made.sources.with_context_id(context_id);
        }
        let sources = Sources::new(texts, parts, tools.clone(), context_id);
        kept.keep(Arc::new(MadeSources::new(texts, parts, tools, sources.clone())));
        sources
    }
}

impl MadeSources {
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

    fn was_made_from(
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
    use crate::tool::{Access, ToolEffect};

    fn tool(description: &str) -> Arc<ToolSpec> {
        Arc::new(
            ToolSpec::new("look", description, "{}")
                .with_effect(ToolEffect::ReadOnly)
                .with_access(Access::Free),
        )
    }

    /// Finds these and keeps no others.
    #[derive(Debug)]
    struct These(Vec<Arc<MadeSources>>);

    impl KeepSources for These {
        fn find(&self, is_same: &dyn Fn(&MadeSources) -> bool) -> Option<Arc<MadeSources>> {
            self.0.iter().find(|it| is_same(it)).cloned()
        }

        fn keep(&self, made: Arc<MadeSources>) {
            panic!("made anew: {made:?}");
        }
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
        let all = || {
            let texts = [&texts, &other].into_iter();
            texts.flat_map(|texts| variants.iter().map(move |parts| (texts, parts))).flat_map(
                |(texts, parts)| [tool("a"), tool("b")].map(|tool| (texts, parts, vec![tool])),
            )
        };
        let made = all().map(|(texts, parts, tools)| {
            let sources = Sources::new(texts, parts, tools.clone(), "first".into());
            Arc::new(MadeSources::new(texts, parts, tools, sources))
        });
        let kept = These(made.collect());
        for (texts, parts, tools) in all() {
            let shared = Sources::shared(Some(&kept), texts, parts, tools.clone(), "x".into());
            let own = Sources::new(texts, parts, tools, "x".into());
            assert_eq!(format!("{shared:?}"), format!("{own:?}"));
        }
    }
}
