//! What is fixed when a session is opened.
//!
//! Stored with the first run of a session, so that its turns can be walked again from the
//! transcript without the program that opened it.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    ids::{AgentId, SessionId, ToolName},
    json,
    run::agent_types::AgentType,
    step1_settings_resolution::{AgentLimits, LayerText},
    step5_model_call::wire_format::Provider,
    step7_permission_gate::{
        Handler, isolation::Isolation, setup::expand, transcripts::Transcripts,
    },
    tool::ToolSpec,
};

/// The revision of the rules by which turns decide; see [`SessionFacts::revision`].
pub const REVISION: u32 = 29;

/// The first revision in which what becomes due in a session is appended to the conversation.
pub(crate) const APPENDS: u32 = 5;

/// The first revision in which what a hook adds for the model begins with the hook's event.
pub(crate) const NAMES_HOOKS: u32 = 7;

/// The first revision in which the list of tasks is shown again as soon as the model does not see it
/// any more, and outlives the process.
pub(crate) const SHOWS_TASKS: u32 = 9;

/// The first revision in which pictures and documents that a provider refused are left out.
pub(crate) const LEAVES_OUT_MEDIA: u32 = 9;

/// The first revision in which an answer whose provider named it like another one, or not at all, gets
/// a name of its own.
pub(crate) const NAMES_ANSWERS: u32 = 10;

/// The first revision in which tokens are estimated by the kinds of characters, and by what was learned
/// of the model.
pub(crate) const ESTIMATES_BY_CLASS: u32 = 11;

/// The first revision in which skills are shown again as soon as the model does not see them any more.
pub(crate) const SHOWS_SKILLS: u32 = 11;

/// The first revision in which the stages of step 4 are given the conversation alone, and what is in front of
/// it counts as what no stage can free.
pub(crate) const SHAPES_CONVERSATION: u32 = 12;

/// The first revision in which hooks fire after denials of a model, failures, loaded instructions and
/// moves of the working directory.
pub(crate) const FIRES_MORE: u32 = 12;

/// The first revision in which pressure clears old results that are long, the oldest first.
pub(crate) const CLEARS_OLD: u32 = 13;

/// The first revision in which what looks like the mark of a cut is made harmless in results of tools.
pub(crate) const ESCAPES_MARKS: u32 = 14;

/// The first revision in which a cut leaves no frame of the harness open.
pub(crate) const KEEPS_FRAMES: u32 = 15;

/// The first revision in which the results that later ones supersede count as what is left of them, before others
/// are chosen to be cleared.
pub(crate) const COUNTS_CLEARED: u32 = 15;

/// The first revision in which what later turns are shown is recorded, so that another process goes on with
/// the same request.
pub(crate) const REBUILDS: u32 = 15;

/// The first revision in which a mode that is set while a call is at the gate holds for that call.
pub(crate) const HOLDS_AT_GATE: u32 = 15;

/// The first revision in which the model is offered other tools when the rules that deny whole tools change.
pub(crate) const OFFERS_ANEW: u32 = 16;

/// The first revision in which hooks are asked about a prompt though something that ended in the background is
/// reported after it, and not about one of the session's own.
pub(crate) const SEES_PAST_REPORTS: u32 = 17;

/// The first revision in which hooks that ask servers run.
pub(crate) const ASKS_SERVERS: u32 = 17;

/// The first revision in which a hook that allows a call and gives its input may answer in place of a person.
pub(crate) const HOOKS_ANSWER: u32 = 18;

/// The first revision in which hooks that call tools of MCP servers run.
pub(crate) const HOOKS_CALL_TOOLS: u32 = 19;

/// The first revision in which hooks that ask a model run.
pub(crate) const HOOKS_ASK_MODELS: u32 = 20;

/// The first revision in which hooks are asked about changes of settings files.
pub(crate) const FIRES_AT_SETTINGS: u32 = 20;

/// The first revision in which hooks fire when watched files have changed.
pub(crate) const FIRES_AT_FILES: u32 = 21;

/// The first revision in which hooks fire after all calls of an answer.
pub(crate) const FIRES_AT_BATCHES: u32 = 21;

/// The first revision in which a compaction that did not help keeps a run from another one only while the context fits.
pub(crate) const PAUSES_WITHIN_WINDOW: u32 = 22;

/// The first revision in which a compaction that did not help keeps later runs from another one, too.
pub(crate) const REMEMBERS_FRUITLESS: u32 = 23;

/// The first revision in which what is known of models has the room of its record that the layers leave.
pub(crate) const KEEPS_MODELS: u32 = 23;

/// The first revision that knows `ennead.codeEdit`. Layers that were recorded before may hold it, and it had no effect.
pub(crate) const CONFIRMS_CHANGES: u32 = 23;

/// The first revision in which a run that is to end has no findings put together, the fast model learns which of
/// them are not whole, and its answer is quoted.
pub(crate) const QUOTES_SYNTHESES: u32 = 24;

/// The first revision in which no fast model is asked by a name that its cloud does not have.
pub(crate) const NAMES_FAST_MODEL: u32 = 22;

/// The first revision in which hooks are asked about a call where nobody else can be.
pub(crate) const ASKS_HOOKS_ALONE: u32 = 27;

/// The first revision in which the model is told of no type of sub-agent that a rule denies.
pub(crate) const LISTS_PERMITTED_AGENTS: u32 = 28;

/// The first revision in which a result says what the signs mean that were put into it.
pub(crate) const EXPLAINS_ESCAPES: u32 = 28;

/// The first revision in which the record of a hook has its matcher.
pub(crate) const RECORDS_MATCHERS: u32 = 28;

/// The first revision in which a first turn that is cut off has begun the session.
pub(crate) const KEEPS_BEGUN: u32 = 28;

/// The first revision in which old results of tools without a cap are cleared and collapsed as those of others are.
pub(crate) const CLEARS_UNCAPPED: u32 = 29;

/// The first revision in which what the provider's cache has lost decides about what is cleared.
pub(crate) const ASKS_CACHE: u32 = 29;

/// The first revision in which hooks have an agent verify.
pub(crate) const HOOKS_START_AGENTS: u32 = 22;

/// What is fixed when a session is opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFacts {
    /// The revision of the rules by which its turns decide, [`REVISION`] in a session that is opened
    /// now. Recorded turns are walked again by the rules of their time. From 1 on, what does not fit
    /// the window is cut before it is sent, the results of one turn share a cap, repairs of the view
    /// are recorded, and counters go on after a resume. From 2 on, compactions that do not help end a
    /// run only under pressure of tokens, and wait under any other, and a call that was under way when
    /// its process ended counts as one that failed. From 3 on, questions about calls are recorded, and a
    /// run may go on at one. From 4 on, what the session itself decides is recorded so that it can be
    /// walked again. From 5 on, what becomes due while a session lives (a new day, another model, rules
    /// for files, instructions that changed) is appended where it became due, and what the model is shown
    /// of the machine names its origin. From 6 on, hooks fire at more events than `PreToolUse`,
    /// `PostToolUse`, `PreCompact` and `Stop`. From 7 on, what a hook adds for the model names the event of
    /// the hook, and no answer counts under rules or a mode that its question was not raised under. From 8
    /// on, hooks fire before somebody is asked. From 9 on, the list of tasks is shown again as soon as the
    /// model does not see it any more, and pictures that a provider refused are left out and the model is
    /// asked again. From 10 on, answers that a provider names alike, or not at all, have names of their own.
    /// From 11 on, tokens are estimated by the kinds of characters and by what providers reported before,
    /// and no longer as four characters each, and skills that the model has loaded are shown again as soon
    /// as it does not see them any more. From 12 on, shapers take from the conversation alone: system
    /// prompt, tools and instructions leave it a share of the window, and a run whose request fits the
    /// window is not ended because compactions do not help. Hooks fire, too, when a call was denied by a
    /// model, when a run failed, when instructions were loaded, when the working directory moved, and when
    /// a session goes on after a compaction. From 13 on, old results that are long are cleared under pressure,
    /// the oldest first, where that spares a summary. From 14 on, results cannot hold what looks like the mark of a
    /// cut. From 15 on, a cut leaves no frame open, what later turns are shown is recorded, a turn that was given
    /// up leaves what it recorded, and a mode that is set while a call is at the gate holds for that call. From 16 on,
    /// tools are offered anew when rules change that deny them as a whole. From 17 on, hooks ask servers, a condition
    /// says for which calls one runs, and of one that a repository has as well the other copy runs. Hooks are asked about a prompt also where a report
    /// of what ended in the background follows it, and not about a report that is itself the prompt. From 18 on, a
    /// hook that allows a call and gives its input may answer in place of a person. From 19 on, hooks call tools of
    /// MCP servers. From 20 on, hooks ask models, and fire before a changed settings
    /// file holds. From 21 on, hooks fire when watched files have changed, and after all
    /// calls of an answer. From 22 on, hooks have agents verify, and what does not fit is summed up although the
    /// last summary did not help. From 23 on, a summary that did not help keeps later runs from another one,
    /// what is known of models stands in its record where the layers leave room, and changes of files are confirmed
    /// where settings want it. From 24 on, a run that is to end has no findings of sub-agents put together, and what
    /// puts them together is quoted. From 25 on, hooks say what a session is known by. From 27 on, hooks answer
    /// questions also where nobody else can. From 29 on, old results of tools without a cap are cleared as others are,
    /// and results that are old or superseded are cleared, too, when the provider's cache holds nothing.
    #[serde(default, skip_serializing_if = "is_first")]
    pub revision: u32,
    /// The session; in a sub-agent the top session of its tree.
    pub session: SessionId,
    /// The sub-agent, if it is one.
    pub agent: Option<AgentId>,
    /// Its type; empty where the run is no sub-agent's.
    pub agent_type: Arc<str>,
    /// Generations above it; 0 for a top session.
    pub depth: u32,
    /// Whether it verifies for a hook handler: it fires no hooks about its own beginning and end, and has no agent of
    /// its own verify.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verifies: bool,
    /// The working directory; absolute.
    pub workspace: Arc<str>,
    /// Of a sub-agent that works in a worktree: the workspaces that it lies in, outermost first.
    /// What may not be done in one of them may not be done in the worktree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub within: Vec<Arc<str>>,
    /// The user's home directory; absolute.
    pub home: Arc<str>,
    /// Real paths of the directories above, where links lead elsewhere.
    pub real: BTreeMap<String, String>,
    /// The directory next to the transcript in which long texts are kept; absolute.
    pub directory: Arc<str>,
    /// The directory of the notes that the model keeps from session to session; absolute. `None`: it
    /// keeps none. Sub-agents keep those of their type, where that has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Arc<str>>,
    /// Tools that a sub-agent has for its notes alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub note_tools: Vec<ToolName>,
    /// The directory of plans where settings name no other one; absolute. `None`: the session has no
    /// plan file. Sub-agents have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plans: Option<Arc<str>>,
    /// Absolute path of the transcript.
    pub transcript: Arc<str>,
    /// All tools of the session, in the order they are offered.
    pub tools: Vec<Arc<ToolSpec>>,
    /// Types of sub-agents in addition to those that are built in; of one name the first holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_types: Vec<AgentType>,
    /// The sub-agents from the top of the tree down to this one, which is the last.
    #[serde(default, skip_serializing_if = "is_top")]
    pub agents: Arc<[AgentId]>,
    /// Who answers questions about permission.
    pub handler: Handler,
    /// Whether a policy decides before a question is asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_policy: bool,
    /// Whether the session may be put into the mode that asks no questions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_bypass: bool,
    /// Whether the model is shown secrets that its transcript does not have.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shows_secrets: bool,
    /// Layers that are fixed: the options of the embedder, and for a sub-agent everything, since
    /// it has its parent's settings.
    pub layers: Vec<LayerText>,
    /// Whether settings files are read in addition to the fixed layers.
    pub reads_settings: bool,
    /// Whether answers are streamed.
    pub streams: bool,
    /// The model servers that may be asked; never empty, the first one is asked first.
    pub providers: Vec<Provider>,
}

impl SessionFacts {
    /// Writes the facts as JSON text, which reads back; for the record of the first run.
    pub fn to_json(&self) -> String {
        // Names and numbers have no reason to fail.
        json::to_string(self).unwrap_or_default()
    }

    /// Returns where results that are too long for the model are kept for it to read, as written and as it really is.
    pub(crate) fn kept_directories(&self) -> Vec<String> {
        self.spellings(&self.directory).iter().map(|it| format!("{it}/tool-results")).collect()
    }

    /// Returns where the model keeps its notes, as written, and as it really is where its home is a link.
    pub(crate) fn memory_directories(&self) -> Vec<String> {
        let Some(memory) = &self.memory else { return Vec::new() };
        if self.agent.is_some() {
            return [Some(memory.to_string()), self.real_path(memory)]
                .into_iter()
                .flatten()
                .collect();
        }
        let below = memory.strip_prefix(&*self.home).filter(|it| it.starts_with('/'));
        let real = below.and_then(|it| Some(format!("{}{it}", self.real.get(&*self.home)?)));
        [Some(memory.to_string()), real].into_iter().flatten().collect()
    }

    /// The file that holds the plan of the session, in the directory that settings name, or in the usual
    /// one: as written, and as it really is where a directory that it lies in is a link. None where the
    /// session has no such file.
    pub(crate) fn plan_files(&self, directory: Option<&str>) -> Vec<String> {
        let Some(usual) = &self.plans else { return Vec::new() };
        let directory = match directory {
            Some(written) => expand(written, &self.home, &self.workspace),
            None => usual.to_string(),
        };
        let file = format!("{directory}/{}.md", self.session);
        let real = self.real_path(&file);
        [Some(file), real].into_iter().flatten().collect()
    }

    /// Returns the path as it really is where a directory that it lies in is a link.
    fn real_path(&self, path: &str) -> Option<String> {
        let links = self.real.iter().filter_map(|(written, real)| {
            let below = path.strip_prefix(&**written).filter(|it| it.starts_with('/'))?;
            Some((written.len(), format!("{real}{below}")))
        });
        // The innermost link is followed, and with it all around it.
        links.max_by_key(|it| it.0).map(|it| it.1)
    }

    /// As written, and as it really is if that is another one.
    fn spellings<'a>(&'a self, path: &'a str) -> Vec<&'a str> {
        let real = self.real.get(path).map(String::as_str);
        [Some(path), real].into_iter().flatten().collect()
    }

    /// Returns where its transcript and those of its neighbours lie.
    pub fn transcripts(&self) -> Transcripts {
        let (directories, workspaces) =
            (self.spellings(&self.directory), self.spellings(&self.workspace));
        Transcripts::of_session(&directories, &workspaces)
    }

    /// Sets the working directory of a sub-agent to a directory below the workspace that it would have.
    pub fn works_in(&mut self, worktree: &str) {
        let parent = std::mem::replace(&mut self.workspace, worktree.into());
        let below = worktree.strip_prefix(&*parent);
        if let Some((real, below)) = self.real.get(&*parent).zip(below) {
            self.real.insert(worktree.to_owned(), format!("{real}{below}"));
        }
        self.within.push(parent);
    }

    /// Returns the worktree of a sub-agent, and the checkout around it that it is isolated from; `None` if it has no
    /// worktree.
    pub fn isolation(&self) -> Option<Isolation> {
        let checkout = self.within.last()?;
        let real = |it: &Arc<str>| self.real.get(&**it).cloned().unwrap_or_else(|| it.to_string());
        let both = [tops(&self.workspace, checkout), tops(&real(&self.workspace), &real(checkout))];
        let (worktree, checkout) = both.into_iter().unzip();
        Some(Isolation { worktree, checkout })
    }

    /// Returns whether the session could ever start a sub-agent under these limits.
    pub(crate) fn may_nest(&self, limits: AgentLimits) -> bool {
        self.depth < limits.max_depth && 0 < limits.max_at_once
    }
}

fn is_top(agents: &Arc<[AgentId]>) -> bool {
    agents.is_empty()
}

fn is_first(revision: &u32) -> bool {
    *revision == 0
}

/// The top directories of a worktree and a checkout, given the same place in each: their names
/// differ, and what comes after them does not.
fn tops(mut worktree: &str, mut checkout: &str) -> (String, String) {
    while let Some(((above, name), (above_it, same))) =
        worktree.rsplit_once('/').zip(checkout.rsplit_once('/'))
        && name == same
    {
        (worktree, checkout) = (above, above_it);
    }
    (worktree.into(), checkout.into())
}
