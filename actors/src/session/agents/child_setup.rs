//! What a sub-agent is given: its parent's settings, rules and tools, narrowed by its type.

use std::sync::Arc;

use ennead_runtime::{
    permission::{PermissionMode, Scope},
    ports::AgentOrder,
    run::{
        agent_types::{AgentType, going_on::definition_of},
        conversation::Conversation,
    },
    step1_settings_resolution::{LayerText, merge},
    step7_permission_gate::Handler,
    tool::ToolSpec,
    transcript::entry::LineFrame,
};
use ractor::ActorRef;
use serde_json::{Map, Value, json};

use super::{
    StartPlan,
    children::{Parent, Request},
    meta::AgentMeta,
};
use crate::{
    session::{OpenPlan, SessionMsg, SessionSetup, SessionState, context::AgentContext},
    world::agent_memory::AgentNotes,
};

impl SessionState {
    /// A child session: its parent's settings, rules and approver, its parent's tools narrowed, a
    /// transcript and subscribers of its own.
    pub(super) fn child_setup(
        &self,
        myself: &ActorRef<SessionMsg>,
        Request { order, layers, verifies_for, .. }: &Request,
        plan: StartPlan<'_>,
    ) -> Option<SessionSetup> {
        let verifies = verifies_for.is_some();
        let StartPlan { agent, kind, lease, again } = plan;
        let parent = &self.session_context;
        let paths = self.layout.sidechain(&parent.facts.session, agent).ok()?;
        let nests = lease.allows_nesting();
        // Those of the session itself do not have the tools that have joined.
        let mut facts = (*self.machine.conversation().facts).clone();
        facts.agent = Some(agent.clone());
        let notes = AgentNotes::of(&kind, &parent.dirs);
        facts.memory = notes.as_ref().map(|it| it.directory().display().to_string().into());
        facts.plans = None;
        facts.agents = facts.agents.iter().chain([agent]).cloned().collect();
        facts.agent_type = Arc::clone(&kind.name);
        facts.verifies = verifies;
        if verifies {
            // What would be asked is denied: nobody knows of it.
            facts.handler = Handler::None;
        }
        facts.depth += 1;
        facts.transcript = paths.file.display().to_string().into();
        facts.directory = paths.directory.display().to_string().into();
        let note_tools = facts.tools.iter().filter(|it| kind.uses_for_notes(it));
        facts.note_tools = note_tools.map(|it| it.name.clone()).collect();
        let may_use = |it: &ToolSpec| kind.may_use(it) || kind.uses_for_notes(it);
        facts.tools.retain(|it| may_use(it) && (nests || it.name.as_str() != "Agent"));
        facts.layers = layers.to_vec();
        let mut files = parent.dirs.clone();
        let mut guard = parent.guard.clone();
        if let Some(worktree) = &order.worktree {
            files.worktree = Some((&worktree.directory).into());
            facts.works_in(&worktree.directory);
            guard = Some(worktree.guard.clone());
        }
        facts.reads_settings = false;
        if let Some(settings) = own_settings(&kind, order, layers) {
            let (text, source) = (settings.to_string(), "Agent".to_owned());
            // The last one of a scope holds.
            facts.layers.push(LayerText::new(Scope::CliArg, source, text));
        }
        let facts = Arc::new(facts);
        let session_context = parent.of_agent(AgentContext {
            agent,
            facts: Arc::clone(&facts),
            dirs: files,
            guard,
            system_prompt: kind.system_prompt.to_string(),
            notes,
        });
        let meta = AgentMeta {
            agent_type: Some(Arc::clone(&kind.name)),
            tool_use_id: Some(order.tool_use.clone()),
            part_of: order.part.and_then(|_| self.machine.summary().run),
            description: Some(order.description.as_str().into()),
            parent_agent_id: parent.facts.agent.clone(),
            model: order.model.clone(),
            definition: Some(definition_of(&kind, &parent.facts.agent_types)),
            ..AgentMeta::default()
        };
        let meta = meta.isolated(order.worktree.is_some()).to_text();
        let open = OpenPlan {
            paths,
            frame: LineFrame {
                agent: Some(agent.clone()),
                cwd: Arc::clone(&facts.workspace),
                ..self.open.frame.clone()
            },
            durability: self.open.durability,
            // That of one that goes on lies there already.
            meta: again.is_none().then_some(meta),
            first_look: None,
        };
        let stream = self.machine.conversation().stream.child(order.tool_use.as_str());
        let stream = order.part.map_or(stream, |it| stream.child(&it.to_string()));
        let link = Parent {
            top: self.children.top.clone().unwrap_or_else(|| myself.clone()),
            agent: agent.clone(),
            lease,
        };
        Some(SessionSetup {
            conversation: Conversation::new(facts, stream)
                .with_catalogue(Arc::clone(&self.machine.conversation().memory.catalogue))
                .sharing(self.machine.conversation().memory.kept_sources.clone()),
            session_context: Arc::new(session_context),
            archive: self.archive.clone(),
            open,
            parent: Some(link),
            layout: self.layout.clone(),
            notices: Vec::new(),
            starting: None,
        })
    }
}

/// What is set for a sub-agent over the settings of its parent; `None` when nothing is.
fn own_settings(kind: &AgentType, order: &AgentOrder, layers: &[LayerText]) -> Option<Value> {
    let mut own = json!({});
    if let Some(model) = kind.model.as_deref().or(order.model.as_deref()) {
        own["model"] = model.into();
    }
    if let Some(max_turns) = kind.max_turns {
        own["ennead"] = json!({ "maxTurns": max_turns });
    }
    if let Some(effort) = &kind.effort {
        own["effortLevel"] = (&**effort).into();
    }
    let of_parent = kind.mode.map(|_| merge(layers).settings.permissions.mode);
    if let (Some(mode), Some(of_parent)) = (kind.mode, of_parent)
        && !matches!(
            of_parent,
            PermissionMode::BypassPermissions | PermissionMode::AcceptEdits | PermissionMode::Auto
        )
    {
        own["permissions"] = json!({ "defaultMode": mode });
    }
    let is_empty = own.as_object().is_none_or(Map::is_empty);
    (!is_empty).then_some(own)
}
