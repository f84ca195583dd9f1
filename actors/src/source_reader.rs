//! Reads settings (step 1) and sources (step 3). A leaf of the turn supervisor.

use std::{io, sync::Arc};

use ennead_runtime::{
    ports::BoxFuture, step1_settings_resolution::LayerText, step3_context_assembly::SourceTexts,
    turn::input::SettingsRead,
};

use crate::{
    session::context::SessionContext,
    world::local_files::{Fingerprints, SessionDirs},
};

/// What the settings files held when the session was opened.
#[derive(Clone, Debug)]
pub(crate) struct FirstLook {
    /// The layers that were read.
    pub(crate) layers: Vec<LayerText>,
    /// The files as they were then.
    pub(crate) seen: Fingerprints,
}

/// What a look at the settings files gives.
pub(crate) type Look = io::Result<(SettingsRead, Fingerprints)>;

/// Reads the world's part of the nine sources, and puts in what the embedder gave. Nothing that
/// matches a pattern of `hidden` is imported.
pub(crate) fn sources(
    shared: Arc<SessionContext>,
    hidden: Arc<[String]>,
) -> BoxFuture<'static, Box<SourceTexts>> {
    Box::pin(async move {
        let mut texts = if shared.reads_sources {
            let place = SessionDirs { hidden, ..shared.place.clone() };
            shared.world.files.sources(&place).await
        } else {
            Default::default()
        };
        if shared.facts.agent.is_some() {
            for_agent(&shared.facts.agent_type, &mut texts);
        }
        put_in_own(&mut texts, &shared);
        Box::new(texts)
    })
}

/// What represents sources that could not be read: what the embedder gave is still there.
pub(crate) fn without_files(shared: &SessionContext) -> Box<SourceTexts> {
    let mut texts = Box::<SourceTexts>::default();
    put_in_own(&mut texts, shared);
    texts
}

fn put_in_own(texts: &mut SourceTexts, shared: &SessionContext) {
    texts.system_prompt.clone_from(&shared.system_prompt);
    texts.append_system_prompt.clone_from(&shared.append_system_prompt);
    texts.is_bare = shared.bare_system_prompt;
}

/// What a sub-agent is not given: the memory, which is its parent's; and, where it
/// only looks or plans, the instructions for work that it will not do.
fn for_agent(kind: &str, texts: &mut SourceTexts) {
    texts.auto_memory = None;
    if matches!(kind, "Explore" | "Plan") {
        texts.instructions.clear();
        texts.path_rules.clear();
    }
}
