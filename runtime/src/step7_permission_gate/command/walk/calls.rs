//! Functions that are defined for certain where they are called.
//!
//! Only the class of a command looks at them: rules judge a call and the parts of every function of its name.

use std::collections::BTreeSet;

use crate::step7_permission_gate::{
    command::CommandPart,
    shell::tree::{CommandKind, ListItem},
};

/// The functions that the text itself has defined so far, with no condition and in no shell of its own.
#[derive(Debug, Default)]
pub(super) struct Defined {
    names: BTreeSet<String>,
    has_entered: bool,
}

impl Defined {
    /// Notes that a list is entered, and returns whether it is that of the whole text.
    pub(super) fn enters(&mut self) -> bool {
        !std::mem::replace(&mut self.has_entered, true)
    }

    /// Notes what an item of the whole text defines.
    pub(super) fn note(&mut self, item: &ListItem) {
        let [command] = &item.first.commands[..] else { return };
        let is_alone = item.rest.is_empty() && !item.is_background;
        if let CommandKind::Function(name, _) = &command.kind
            && is_alone
        {
            self.names.insert(name.clone());
        }
    }

    /// Returns whether a part is the call of such a function, and not of a program by way of another one.
    pub(super) fn calls(&self, part: &CommandPart) -> bool {
        part.start == 0 && self.names.contains(part.name())
    }
}

/// Takes it back where functions may have been removed.
pub(super) fn end(parts: &mut [CommandPart]) {
    if parts.iter().any(|it| it.name() == "unset") {
        parts.iter_mut().for_each(|it| it.is_call = false);
    }
}
