//! What parts set and run besides programs.

use super::{MAX_TEXT_BYTES, MAX_TEXTS, ScriptWalk};
use crate::step7_permission_gate::{
    command::{CommandPart, dirs::Dirs, evaluated, programs::is_ordinary, scripts::ScriptText},
    shell::{self, Fault},
};

impl ScriptWalk<'_> {
    /// Notes the variables that a builtin sets.
    pub(super) fn sets(&mut self, part: &CommandPart, from: &Dirs) {
        let names: Vec<String> = match part.name() {
            "read" | "mapfile" | "readarray" | "getopts" => {
                // The array of `-a` may be joined to its option.
                let joined = part.args().iter().filter(|it| it.text.starts_with('-'));
                let joined = joined.filter_map(|it| it.text.split_once('a')).map(|it| it.1);
                let words = part.args().iter().map(|it| it.text.as_str());
                words.chain(joined).map(str::to_owned).collect()
            }
            "printf" => {
                let names = evaluated::set_by_printf(part.args());
                for name in names.into_iter().filter(|it| !is_ordinary(it)) {
                    self.assigned(name, from);
                }
                return;
            }
            _ => return,
        };
        for name in names {
            if !is_ordinary(&name)
                && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
                && name.starts_with(|c: char| c.is_ascii_alphabetic())
            {
                self.assigned(name.clone(), from);
            }
            self.sums.sets_unknown(name);
        }
    }

    /// Walks a text that is run, and returns where that leaves the shell.
    pub(super) fn text(&mut self, text: &ScriptText, from: &Dirs) -> Dirs {
        self.text_bytes += text.text.len() + 100;
        if self.n_texts >= MAX_TEXTS || self.text_bytes > MAX_TEXT_BYTES {
            self.fault.get_or_insert(Fault::TooDeep);
            return Dirs::unknown();
        }
        self.n_texts += 1;
        let is_hidden = std::mem::replace(&mut self.is_hidden, true);
        let from = if text.is_elsewhere { Dirs::unknown() } else { from.clone() };
        let script = shell::read(&text.text);
        self.is_unseen |= script.fault.is_some();
        let ends = self.script(script, &from);
        self.is_hidden = is_hidden;
        self.n_texts -= 1;
        ends.any
    }
}
