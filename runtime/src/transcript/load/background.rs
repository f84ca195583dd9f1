//! What is in the background, as a transcript has it: commands and sub-agents of whose end the model has not learned,
//! and hooks whose words it has not read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    hook::{EndedHook, HandlerEnd, HandlerOutput, WatchReach},
    ids::{AgentId, EntryId, ShellId},
    ports::{
        agents::{BackgroundAgent, BackgroundState},
        shells::{ShellState, ShellStatus},
    },
    transcript::entry::{BackgroundRecord, Record, RecordKind, ShellRecord, Stored},
};

/// Hooks that are kept in mind.
const MAX_HOOKS: usize = 256;

/// The effect in the record of a hook that has a session at rest go on.
pub(crate) const ASKS: &str = "wake";

/// Commands and sub-agents in the background, as a transcript has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundTasks {
    /// Commands of whose end the model has not learned.
    pub shells: BTreeMap<ShellId, ShellStatus>,
    /// The highest number in the name of a command.
    pub last_shell: u64,
    /// Sub-agents of whose end the model has not learned: at work when this was written, or ended with the session.
    pub agents: BTreeMap<AgentId, BackgroundAgent>,
    /// Records of hooks that were not waited for and whose words the model has not read, the oldest first.
    #[serde(default)]
    pub hooks: Vec<RecordKind>,
}

impl BackgroundTasks {
    pub(crate) fn note(&mut self, record: &Record) {
        match &record.what {
            RecordKind::Shell(ShellRecord { shell, command, state, exit_code, is_unreported }) => {
                let number = shell.as_str().rsplit('_').next().and_then(|it| it.parse().ok());
                self.last_shell = self.last_shell.max(number.unwrap_or(0));
                match ShellState::read(state, *exit_code) {
                    Some(state) if *is_unreported || state == ShellState::Running => {
                        let status = ShellStatus::recorded(shell.clone(), command, state);
                        self.shells.insert(shell.clone(), status);
                    }
                    _ => _ = self.shells.remove(shell),
                }
            }
            RecordKind::BackgroundAgent(BackgroundRecord {
                agent,
                call,
                description,
                state,
                is_unreported,
            }) => match BackgroundState::read(state) {
                Some(state) if *is_unreported || state == BackgroundState::Running => {
                    let (agent, call) = (agent.clone(), call.clone());
                    let of = BackgroundAgent::running(agent.clone(), call, description);
                    self.agents.insert(agent, BackgroundAgent { state, ..of });
                }
                // One that has gone on since works for another call.
                _ if self.agents.get(agent).is_some_and(|it| it.call == *call) => {
                    self.agents.remove(agent);
                }
                _ => {}
            },
            RecordKind::Hook { shows: Some(_), .. } if self.hooks.len() < MAX_HOOKS => {
                self.hooks.push(record.what.clone());
            }
            _ => {}
        }
    }

    /// Notes that the model has read a message.
    pub(super) fn note_shown(&mut self, message: &EntryId) {
        self.hooks.retain(
            |it| !matches!(it, RecordKind::Hook { shows: Some(shown), .. } if shown == message),
        );
    }

    /// Returns the hooks whose words the model has not read. Those whose texts are not at hand are left out.
    pub(crate) fn ended_hooks(
        &self,
        text: impl Fn(&Stored) -> Option<String>,
    ) -> impl Iterator<Item = EndedHook> {
        let ended =
            move |it| EndedHook::recorded(it, &|stored| text(stored).ok_or(())).ok().flatten();
        self.hooks.iter().filter_map(ended)
    }
}

impl EndedHook {
    /// Reads the record of one that has ended; `None` where it is another one.
    pub(crate) fn recorded<E>(
        what: &RecordKind,
        text: &dyn Fn(&Stored) -> Result<String, E>,
    ) -> Result<Option<Self>, E> {
        let RecordKind::Hook {
            event,
            handler,
            file,
            exit,
            ended,
            duration_ms,
            effect,
            stdout,
            stderr,
            shows,
            ..
        } = what
        else {
            return Ok(None);
        };
        let ended = HandlerEnd::read(*exit, ended);
        let output = HandlerOutput::new(ended, text(stdout)?, text(stderr)?, *duration_ms);
        let (event, handler, shows) = (*event, handler.clone(), shows.clone());
        // Whose it is, is not on record: what it named was watched by a process that is gone.
        let (file, reach, rewakes) = (file.clone(), WatchReach::Nothing, effect == ASKS);
        Ok(Some(Self { event, handler, output, file, reach, rewakes, shows }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    // REQ: AGT-8
    #[test]
    fn agent_is_open_until_the_model_has_learned_of_its_end() {
        let cases: [(&[(&str, bool)], &str); 5] = [
            (&[("running", false)], "running"),
            (&[("running", false), ("completed", false)], ""),
            (&[("running", false), ("cancelled", true)], "cancelled"),
            (&[("running", false), ("cancelled", true), ("cancelled", false)], ""),
            (&[("unheard of", false)], ""),
        ];
        for (states, open) in cases {
            let mut tasks = BackgroundTasks::default();
            for (state, is_unreported) in states {
                let what = RecordKind::BackgroundAgent(BackgroundRecord {
                    agent: "a".into(),
                    call: "toolu_1".into(),
                    description: "d".into(),
                    state: (*state).into(),
                    is_unreported: *is_unreported,
                });
                tasks.note(&Record {
                    at: Timestamp(1),
                    run: None,
                    turn: 0,
                    what,
                    shares_line: false,
                });
            }
            let states: Vec<_> = tasks.agents.values().map(|it| it.state.code()).collect();
            assert_eq!(states.join(" "), open);
        }
    }
}
