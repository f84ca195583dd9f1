//! Reads settings (step 1) and sources (step 3). A leaf of the turn supervisor.

use std::{io, sync::Arc};

use ennead_runtime::{
    ports::BoxFuture,
    run::{
        derived_settings::{CompiledSettings, DeriveOrder},
        facts::SessionFacts,
    },
    step1_settings_resolution::LayerText,
    step3_context_assembly::{SourceTexts, SourcesLook, SourcesOrder, SourcesSeen},
    turn::input::SettingsRead,
};

use crate::{
    session::context::SessionContext,
    world::source_files::{Fingerprints, SessionDirs},
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

/// Merges long settings and compiles their rules, on the blocking pool. `None` where that broke off.
pub(crate) async fn derive_on_thread(order: DeriveOrder) -> Option<CompiledSettings> {
    tokio::task::spawn_blocking(move || order.derive()).await.ok()
}

/// What the rules and settings of a turn keep from the sources, as patterns.
#[derive(Debug)]
pub(crate) struct SourceExclusions {
    /// Paths that `Read` deny rules hide; nothing that matches is imported.
    pub(crate) hidden: Arc<[String]>,
    /// Instruction files that settings leave out.
    pub(crate) excludes: Arc<[String]>,
}

/// Reads the world's part of the nine sources, and puts in what the embedder gave.
pub(crate) fn sources(
    session_context: Arc<SessionContext>,
    SourceExclusions { hidden, excludes }: SourceExclusions,
) -> BoxFuture<'static, Box<SourceTexts>> {
    Box::pin(async move {
        let mut texts = if session_context.reads_sources {
            let place = SessionDirs { hidden, excludes, ..session_context.dirs.clone() };
            session_context.world.files.sources(&place).await
        } else {
            Default::default()
        };
        if session_context.facts.agent.is_some() {
            for_agent(&session_context.facts, &mut texts);
        }
        if let Some(notes) = session_context.notes.clone() {
            let index = tokio::task::spawn_blocking(move || notes.index()).await;
            texts.auto_memory = index.ok().flatten();
        }
        put_in_own(&mut texts, &session_context);
        Box::new(texts)
    })
}

/// Looks at the sources again, and at what runs in the background where files are asked for.
pub(crate) fn look(
    session_context: Arc<SessionContext>,
    hidden: Arc<[String]>,
    order: SourcesOrder,
) -> BoxFuture<'static, SourcesLook> {
    let excludes = Arc::clone(&order.excludes);
    let place = SessionDirs { hidden, excludes, ..session_context.dirs.clone() };
    let restores = order.restores;
    if !session_context.reads_sources && !restores {
        return Box::pin(std::future::ready(SourcesLook::Unchanged));
    }
    let looking = session_context.world.files.look(&place, &order);
    Box::pin(async move {
        let SourcesLook::Found(mut seen, marks) = looking.await else {
            return SourcesLook::Unchanged;
        };
        if !session_context.reads_sources {
            *seen = SourcesSeen { contents: seen.contents, ..SourcesSeen::default() };
        }
        if session_context.facts.agent.is_some() && is_for_looking(&session_context.facts) {
            seen.instructions.clear();
            seen.path_rules.clear();
            seen.nested.clear();
        }
        if restores {
            let shells = session_context.shells.table.running().into_iter();
            let shells = shells.map(|it| format!("{}: {}", it.shell, it.command));
            let agents = session_context.agents.running().into_iter();
            let agents = agents.map(|it| format!("agent {}: {}", it.agent, it.description));
            seen.background = shells.chain(agents).collect();
        }
        SourcesLook::Found(seen, marks)
    })
}

/// Makes the texts that represent sources that could not be read: what the embedder gave is still there.
pub(crate) fn without_files(session_context: &SessionContext) -> Box<SourceTexts> {
    let mut texts = Box::<SourceTexts>::default();
    put_in_own(&mut texts, session_context);
    texts
}

fn put_in_own(texts: &mut SourceTexts, session_context: &SessionContext) {
    texts.system_prompt.clone_from(&session_context.system_prompt);
    texts.append_system_prompt.clone_from(&session_context.append_system_prompt);
    texts.is_bare = session_context.bare_system_prompt;
    texts.is_static = session_context.static_system_prompt;
}

/// What a sub-agent is not given: the memory, which is its parent's; and, where it
/// only looks or plans, the instructions for work that it will not do.
fn for_agent(facts: &SessionFacts, texts: &mut SourceTexts) {
    texts.auto_memory = None;
    if is_for_looking(facts) {
        texts.instructions.clear();
        texts.path_rules.clear();
    }
}

/// Whether a sub-agent only looks or plans. One that verifies for a hook takes no instructions from the files that it
/// judges.
fn is_for_looking(facts: &SessionFacts) -> bool {
    facts.verifies || matches!(&*facts.agent_type, "Explore" | "Plan")
}
