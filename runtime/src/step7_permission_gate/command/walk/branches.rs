//! Commands of which some run, or run more than once.

use super::ScriptWalk;
use crate::step7_permission_gate::{
    command::dirs::Dirs,
    shell::{tree::List, word::Word},
};

/// Where the shell may be after a command: if it succeeded, and in any case.
pub(super) struct Ends {
    pub(super) ok: Dirs,
    pub(super) any: Dirs,
}

impl Ends {
    pub(super) fn both(dirs: &Dirs) -> Self {
        Self { ok: dirs.clone(), any: dirs.clone() }
    }
}

/// Patterns of a `case`, what runs when one matches, and whether the next arm runs afterwards.
type Arm = (Vec<Word>, List, bool);

impl ScriptWalk<'_> {
    pub(super) fn choice(&mut self, arms: &[(List, List)], otherwise: &List, from: &Dirs) -> Ends {
        let mut now = from.clone();
        let mut all: Option<Ends> = None;
        let add = |all: &mut Option<Ends>, ends: Ends| match all {
            None => *all = Some(ends),
            Some(all) => *all = Ends { ok: all.ok.or(&ends.ok), any: all.any.or(&ends.any) },
        };
        for (condition, body) in arms {
            let met = self.list(condition, &now);
            add(&mut all, self.list(body, &met.ok));
            now = met.any;
        }
        add(&mut all, self.list(otherwise, &now));
        all.unwrap_or_else(|| Ends::both(from))
    }

    pub(super) fn case(&mut self, word: &Word, arms: &[Arm], from: &Dirs) -> Ends {
        self.inside(word, from);
        let mut any = from.clone();
        let mut start = from.clone();
        for (patterns, body, goes_on) in arms {
            patterns.iter().for_each(|it| self.inside(it, from));
            let ends = self.list(body, &start);
            start = if *goes_on { from.or(&ends.any) } else { from.clone() };
            any = any.or(&ends.any);
        }
        Ends::both(&any)
    }

    /// Walks something that runs any number of times.
    pub(super) fn repeated(
        &mut self,
        from: &Dirs,
        look: impl Fn(&mut Self, &Dirs) -> Ends,
    ) -> Ends {
        let repeats = std::mem::replace(&mut self.repeats, true);
        let any_time = std::mem::replace(&mut self.at_any_time, true);
        let n_parts = self.parts.len();
        let once = from.or(&look(self, from).any);
        if once != *from {
            // Again, from wherever the last time ended.
            self.parts.truncate(n_parts);
            look(self, &once);
        }
        (self.repeats, self.at_any_time) = (repeats, any_time);
        Ends::both(&once)
    }
}
