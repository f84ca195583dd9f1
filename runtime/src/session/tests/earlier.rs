//! A process of the world is killed, and another one goes on from the transcript.

use std::sync::Arc;

use super::world::SessionWorld;
use crate::{
    ports::agents::{BackgroundState, EndedAgent},
    session::{EarlierConversation, KeptHook, SessionInput},
    transcript::{
        entry::{Line, LineFrame, MessageRecord, RecordKind, Stored},
        load::{LoadAs, Loaded, load},
        seal::{Head, LineBatch},
    },
};

fn text_of(stored: &Stored) -> Option<String> {
    match stored {
        Stored::Text(text) => Some(text.to_string()),
        Stored::At(_) | Stored::Again(_) => None,
    }
}

impl SessionWorld {
    /// Kills the process. What it wrote and was told to be safe is in the file, and some of what it wrote else.
    pub(super) fn reopened(self, n_kept: u64) -> Self {
        let mut world = Self::with(Arc::clone(&self.facts), 8);
        let own = self.own_batches();
        let n_safe = own.iter().rposition(|it| self.tallies.safe.contains(&it.0));
        let n_safe = n_safe.map_or(0, |it| it + 1);
        let n_kept = n_safe + n_kept as usize % (own.len() - n_safe + 1);
        world.before = own.iter().take(n_kept).map(|it| Arc::clone(it.1)).collect();
        world.kinds = self.kinds;
        if world.before.iter().all(|it| it.is_empty()) {
            // A file without lines is a new one.
            world.before.clear();
            return world;
        }
        world.tallies.taken = self.tallies.taken;
        world.background = self.background;
        let lines = world.before.iter().flat_map(|it| it.iter());
        for line in lines {
            world.tallies.note(line);
        }
        let loaded = world.load();
        world.earlier = Some(Box::new(earlier(loaded)));
        world
    }

    fn load(&self) -> Loaded {
        let agent = self.facts.agent.clone();
        let load_as = if agent.is_some() { LoadAs::Sidechain } else { LoadAs::Session };
        let frame = LineFrame {
            session: self.facts.session.clone(),
            agent,
            cwd: self.facts.workspace.clone(),
            git_branch: None,
            version: env!("CARGO_PKG_VERSION"),
        };
        let mut bytes = Vec::new();
        let mut batch = LineBatch::new(Head::default(), None, &mut bytes);
        for line in self.before.iter().flat_map(|it| it.iter()) {
            batch.push(line, &frame, |_, _, _| {});
        }
        batch.finish();
        load(&bytes, load_as)
    }

    /// The conversation of the killed process is read, or cannot be.
    pub(super) fn reads_earlier(&mut self, mut earlier: EarlierConversation, how: u64) {
        if how.is_multiple_of(16) {
            self.is_not_open = true;
            let unread = Err("it cannot be read".into());
            return self.input(SessionInput::Loaded(Box::new(unread)));
        }
        // A walk of a recorded session is given some of it later, one by one.
        let is_walk = how % 16 < 6;
        let (mut hooks, mut ended) = (Vec::new(), Vec::new());
        if is_walk {
            (hooks, ended) =
                (std::mem::take(&mut earlier.hooks), std::mem::take(&mut earlier.ended));
        }
        self.input(SessionInput::Loaded(Box::new(Ok(earlier))));
        if is_walk {
            self.input(SessionInput::AgentsEnded(ended));
            self.input(SessionInput::HooksKept(hooks));
        }
    }
}

fn earlier(loaded: Loaded) -> EarlierConversation {
    let ended = loaded.background.agents.values().map(|it| {
        let state = match it.state {
            BackgroundState::Running => BackgroundState::Lost,
            ended => ended,
        };
        EndedAgent::new(it.clone(), state, "")
    });
    let message = |it: &MessageRecord| Some((it.message.clone(), text_of(&it.text)?));
    EarlierConversation {
        committed: Default::default(),
        agents: Vec::new(),
        ended: ended.collect(),
        hooks: KeptHook::read_all(&loaded.background, "/t/s", text_of),
        unread: loaded.unread().iter().filter_map(message).collect(),
        problems: Vec::new(),
        system: None,
        cut: None,
        loaded,
    }
}

impl super::tallies::Tallies {
    /// Takes over what a line of the process before says.
    fn note(&mut self, line: &Line) {
        let Some(record) = line.record() else { return };
        match &record.what {
            RecordKind::Shell(it) if it.state == "running" => {
                self.all_shells.insert(it.shell.clone());
            }
            RecordKind::BackgroundAgent(it) if it.state == "running" => {
                *self.beginnings.entry(it.agent.clone()).or_default() += 1;
            }
            RecordKind::Hook { shows: Some(_), .. } => self.n_hooks += 1,
            _ => {}
        }
    }
}
