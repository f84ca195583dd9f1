//! Effects of a turn that read files: its settings and its sources.
//!
//! What is at hand is an answer at once; everything else is read by a leaf.

use std::sync::Arc;

use ennead_runtime::{
    event::Event,
    run::derived_settings::DeriveOrder,
    step3_context_assembly::SourcesOrder,
    turn::{TurnInput, input::SettingsRead},
};
use futures::FutureExt;
use ractor::{ActorProcessingErr, ActorRef};

use super::{ActiveTurn, Pending, TurnMsg, outcome::Outcome};
use crate::{
    groundwork::directory::ActorKind,
    session::{SessionMsg, context::SessionContext},
    turn::source_reader::{self, Look, SourceExclusions},
    world::source_files::Fingerprints,
};

impl ActiveTurn {
    /// Looks at the settings files. Files that are as they were need no reader.
    pub(super) fn read_settings(
        &mut self,
        myself: &ActorRef<TurnMsg>,
    ) -> Result<Outcome, ActorProcessingErr> {
        let SessionContext { world, dirs, .. } = &*self.session_context;
        let mut look = world.files.settings(dirs, self.fingerprints.as_ref());
        if let Some(found) = (&mut look).now_or_never() {
            return Ok(self.settings_found(found)?.map_or(Outcome::Done, Outcome::Reply));
        }
        self.flush(myself)?;
        let turn = myself.clone();
        let work = Box::pin(async move {
            let _gone = turn.cast(TurnMsg::Settings(Box::new(look.await)));
        });
        Ok(self.child(ActorKind::SourceReader, Pending::Settings, work))
    }

    /// Merges settings and compiles their rules, where that is long.
    pub(super) fn merge_settings(
        &mut self,
        order: DeriveOrder,
        myself: &ActorRef<TurnMsg>,
    ) -> Result<Outcome, ActorProcessingErr> {
        self.flush(myself)?;
        let turn = myself.clone();
        let work = Box::pin(async move {
            // Without an answer the leaf is gone, and the turn cannot run.
            if let Some(made) = source_reader::derive_on_thread(order).await {
                let read = TurnInput::SettingsMerged(Box::new(made));
                let _gone = turn.cast(TurnMsg::Input(read));
            }
        });
        Ok(self.child(ActorKind::SourceReader, Pending::Settings, work))
    }

    /// Reads the sources of the context. Where no file contributes, nothing waits.
    pub(super) fn read_sources(
        &mut self,
        myself: &ActorRef<TurnMsg>,
    ) -> Result<Outcome, ActorProcessingErr> {
        let left_out =
            SourceExclusions { hidden: self.turn.hidden(), excludes: self.turn.excludes() };
        let reading = source_reader::sources(Arc::clone(&self.session_context), left_out);
        self.reply_or_spawn(Pending::Sources, reading.map(TurnInput::SourcesRead), myself)
    }

    /// Looks at the sources again. Files that are as they were need no reader.
    pub(super) fn look_at_sources(
        &mut self,
        order: SourcesOrder,
        myself: &ActorRef<TurnMsg>,
    ) -> Result<Outcome, ActorProcessingErr> {
        let looking =
            source_reader::look(Arc::clone(&self.session_context), self.turn.hidden(), order);
        self.reply_or_spawn(Pending::Look, looking.map(TurnInput::SourcesSeen), myself)
    }

    fn reply_or_spawn(
        &mut self,
        pending: Pending,
        mut reading: impl Future<Output = TurnInput> + Send + Unpin + 'static,
        myself: &ActorRef<TurnMsg>,
    ) -> Result<Outcome, ActorProcessingErr> {
        if let Some(input) = (&mut reading).now_or_never() {
            return Ok(Outcome::Reply(input));
        }
        self.flush(myself)?;
        Ok(self.leaf(myself, ActorKind::SourceReader, pending, Box::pin(reading)))
    }

    /// Handles what was found of the settings files. Without settings a turn must not run: the session ends the run.
    pub(super) fn settings_found(
        &mut self,
        found: Look,
    ) -> Result<Option<TurnInput>, ActorProcessingErr> {
        match found {
            Ok((read, seen)) => {
                self.report_broken(seen);
                let first = self.first_layers.take();
                let read = match (read, first) {
                    (SettingsRead::Layers(layers), _) | (SettingsRead::Unchanged, Some(layers)) => {
                        let chosen = self.chosen.clone();
                        SettingsRead::Layers(layers.into_iter().chain(chosen).collect())
                    }
                    (SettingsRead::Unchanged, None) => SettingsRead::Unchanged,
                };
                Ok(Some(TurnInput::SettingsRead(read)))
            }
            Err(error) => {
                let why = format!("cannot read the settings: {error}");
                self.session.cast(SessionMsg::CannotRun { key: self.key, why })?;
                Ok(None)
            }
        }
    }

    /// Keeps what the files hold, and reports those that are broken since the look before. What was wrong
    /// when the session was opened is not reported yet.
    fn report_broken(&mut self, seen: Fingerprints) {
        let before = self.fingerprints.replace(Arc::clone(&seen));
        let before = before.filter(|_| self.first_layers.is_none());
        let reported = before.iter().flat_map(|it| it.iter()).filter_map(|it| it.broken.as_ref());
        let reported: Vec<_> = reported.collect();
        for what in seen.iter().filter_map(|it| it.broken.as_ref()) {
            if !reported.contains(&what) {
                self.session_context.hub.publish(Event::Alert { what: Arc::clone(what) });
            }
        }
    }
}
