//! What a session was asked and given, counted, so that it can be compared with what came of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    hook::WatchedFile,
    ids::{AgentId, EntryId, ShellId},
    permission::PermissionMode,
    session::{CallName, MessageNumber, PromptId, SpawnId, WriteTicket},
};

/// Counts of what the machine was given and what it answered.
#[derive(Default)]
pub(super) struct Tallies {
    /// Prompts that are messages of the session above, and how often their beginning was reported.
    pub(super) begun: BTreeMap<PromptId, usize>,
    /// Messages for this session, and how often each was answered.
    pub(super) messages: BTreeMap<MessageNumber, usize>,
    /// Those of them that are on record by the answer.
    pub(super) taken: BTreeSet<EntryId>,
    /// Messages of calls for sub-agents, and how often each was answered.
    pub(super) sends: BTreeMap<SpawnId, usize>,
    /// Model calls that asked for their share, and how often each was admitted.
    pub(super) calls: BTreeMap<(u64, u32), usize>,
    /// How often each sub-agent began to work in the background.
    pub(super) beginnings: BTreeMap<AgentId, usize>,
    /// Commands that went on in the background and have not ended.
    pub(super) shells: BTreeSet<ShellId>,
    /// Commands that went on in the background.
    pub(super) all_shells: BTreeSet<ShellId>,
    /// Hooks that had something for the model, without those that came after the end.
    pub(super) n_hooks: usize,
    /// What was said about servers.
    pub(super) notes: BTreeSet<String>,
    /// The mode that was asked for last.
    pub(super) mode: Option<PermissionMode>,
    /// What the session has watched.
    pub(super) watched: Vec<WatchedFile>,
    /// The names of files that a handler of the last order waits for.
    pub(super) matched: Vec<&'static str>,
    /// Questions of agents of the tree about model calls, which are not answered.
    pub(super) debits: BTreeMap<AgentId, CallName>,
    /// Agents of the tree that others started.
    pub(super) below: BTreeSet<AgentId>,
    /// Sub-agents that the top has admitted, and whose end it does not know.
    pub(super) admitted: BTreeSet<AgentId>,
    /// Writes that are safe.
    pub(super) safe: BTreeSet<WriteTicket>,
    /// Whether a write was lost, or the writer.
    pub(super) has_lost: bool,
    /// Whether the writer is gone for good.
    pub(super) is_writer_gone: bool,
}

impl Tallies {
    /// Counts the answer to a prompt, a message or a call. What a single test asks by itself is not counted.
    pub(super) fn answer<K: Ord + Copy>(counts: &mut BTreeMap<K, usize>, of: K) {
        if let Some(n) = counts.get_mut(&of) {
            *n += 1;
        }
    }

    pub(super) fn call(name: CallName) -> (u64, u32) {
        (name.turn.0, name.attempt)
    }
}
