//! Sessions in random orders: one process alone, or one that is killed and another that goes on from its transcript.

use super::world::SessionWorld;

/// What one case is made of.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    /// Whether the session is at the top of its tree or below.
    pub(super) place: u16,
    /// What happens in the process that is killed; nothing: there is none.
    pub(super) before: Vec<u16>,
    /// How many of the writes that were not answered reached the file of that process.
    pub(super) n_kept: u16,
    /// What happens in the process that closes the session.
    pub(super) choices: Vec<u16>,
}

impl Orders {
    /// Lets everything happen, closes the session and checks it.
    pub(super) fn play(&self) -> SessionWorld {
        let is_top = !self.place.is_multiple_of(3);
        let mut world = SessionWorld::at(is_top);
        if !self.before.is_empty() {
            self.before.iter().for_each(|it| world.step((*it).into()));
            world.check_so_far();
            world = world.reopened(self.n_kept.into());
        }
        self.choices.iter().for_each(|it| world.step((*it).into()));
        world.finish();
        world.check();
        world
    }
}
