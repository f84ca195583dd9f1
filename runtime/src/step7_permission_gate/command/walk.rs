//! From the tree of a command to its parts, with the directories in which they may run.
//!
//! Whether a `cd` succeeds is known after `&&` only, so there are several directories that the
//! shell may be in. A subshell, a member of a pipeline and a substitution leave those of the shell
//! alone.

mod branches;
mod calls;
mod follow;
mod loops;
mod sums;
mod texts;

use std::{collections::BTreeMap, sync::Arc};

use branches::Ends;
use calls::Defined;
pub(crate) use follow::destination;
use loops::Loops;
use sums::Sums;

use super::{
    CommandContext, CommandPart, class::is_run, dirs::Dirs, moves, piped::Piped, places,
    programs::is_ordinary, scripts, values::GivenValues,
};
use crate::step7_permission_gate::shell::{
    self, Fault, Script, braces,
    tree::{
        Assignment, Command, CommandKind, Connector, List, ListItem, Pipeline, Redirect,
        Redirection, Simple,
    },
    word::Word,
};

/// Parts of one command, those of functions counted at every call.
const MAX_PARTS: usize = 20_000;

/// Texts within each other that are run.
const MAX_TEXTS: usize = 8;

/// Bytes of all such texts.
const MAX_TEXT_BYTES: usize = 256 * 1024;

/// Returns the parts of a command, values that it gives to variables, and why the gate cannot read it.
pub(super) fn parts(
    raw: &str,
    around: &CommandContext,
) -> (Vec<CommandPart>, GivenValues, Option<Fault>) {
    let script = shell::read(raw);
    let start = Dirs::one(&around.cwd, around);
    let mut walk = ScriptWalk {
        around,
        start: start.clone(),
        documents: Vec::new(),
        parts: Vec::new(),
        functions: BTreeMap::new(),
        calls: Vec::new(),
        sums: Sums::default(),
        loops: Loops::default(),
        defined: Defined::default(),
        is_hidden: false,
        is_unseen: false,
        is_displaced: false,
        piped: None,
        repeats: false,
        at_any_time: false,
        is_lost: follow::sets_places(raw),
        n_texts: 0,
        text_bytes: 0,
        fault: script.fault,
    };
    walk.script(script, &start);
    let (is_unknown, open) = walk.sums.end();
    let fault = walk.fault.or(is_unknown.then_some(Fault::Arithmetic));
    for part in &mut walk.parts {
        part.is_function = walk.functions.contains_key(part.name());
        // What is evaluated later is code that is not in the text.
        part.is_unseen |= !open.is_empty();
    }
    walk.loops.end(&mut walk.parts);
    calls::end(&mut walk.parts);
    let mut given = std::mem::take(&mut walk.loops.given);
    given.add_assignments(&walk.parts);
    (walk.parts, given, fault)
}

struct ScriptWalk<'a> {
    around: &'a CommandContext,
    start: Dirs,
    documents: Vec<Word>,
    parts: Vec<CommandPart>,
    functions: BTreeMap<String, Arc<Command>>,
    /// Functions that are being looked at.
    calls: Vec<String>,
    sums: Sums,
    /// The loops that are being looked at.
    loops: Loops,
    defined: Defined,
    is_hidden: bool,
    /// The text runs code that is not in it.
    is_unseen: bool,
    /// What is looked at runs where paths mean something else.
    is_displaced: bool,
    /// What comes through the pipe in front of the command that is looked at next.
    piped: Option<Piped>,
    /// What is looked at may run more often than it is written.
    repeats: bool,
    /// What is looked at may run at another time than its place says: in a loop, or next to others.
    at_any_time: bool,
    is_lost: bool,
    n_texts: usize,
    text_bytes: usize,
    fault: Option<Fault>,
}

impl ScriptWalk<'_> {
    fn fail(&mut self, fault: Fault) {
        if self.is_hidden {
            self.is_unseen = true;
        } else {
            self.fault.get_or_insert(fault);
        }
    }

    fn script(&mut self, script: Script, from: &Dirs) -> Ends {
        let Script { list, documents, names, set, unknown, .. } = script;
        self.sums.evaluates(names);
        unknown.into_iter().for_each(|it| self.sums.sets_unknown(it));
        // To set a variable that programs look at is an assignment, however it is written.
        for name in set.into_iter().filter(|it| !is_ordinary(it)) {
            self.assigned(name, from);
        }
        let outer = std::mem::replace(&mut self.documents, documents);
        let ends = self.list(&list, from);
        self.documents = outer;
        ends
    }

    /// Whether what prints texts is something else here.
    fn prints_otherwise(&self) -> bool {
        ["echo", "printf"].iter().any(|it| self.functions.contains_key(*it))
    }

    fn assigned(&mut self, name: String, from: &Dirs) {
        let is_run = is_run(&name);
        let assignment = Assignment { name, value: Word::default() };
        let mut part = CommandPart::new(vec![assignment], Vec::new(), Vec::new(), from.clone());
        part.is_unseen = is_run;
        self.push(part);
    }

    fn list(&mut self, list: &List, from: &Dirs) -> Ends {
        let mut ends = Ends::both(from);
        let is_outermost = self.defined.enters();
        for item in &list.0 {
            let now = ends.any;
            ends = if item.is_background {
                self.with_isolation(&now, |walk| walk.item(item, &now))
            } else {
                self.item(item, &now)
            };
            if is_outermost {
                self.defined.note(item);
            }
        }
        ends
    }

    /// Leaves the directory of the other parts as it is.
    fn with_isolation(&mut self, from: &Dirs, look: impl FnOnce(&mut Self) -> Ends) -> Ends {
        let repeats = std::mem::replace(&mut self.repeats, false);
        let any_time = std::mem::replace(&mut self.at_any_time, true);
        look(self);
        (self.repeats, self.at_any_time) = (repeats, any_time);
        Ends::both(from)
    }

    fn item(&mut self, item: &ListItem, from: &Dirs) -> Ends {
        let mut ends = self.pipeline(&item.first, from);
        for (joint, pipeline) in &item.rest {
            ends = match joint {
                Connector::And => {
                    let next = self.pipeline(pipeline, &ends.ok);
                    Ends { any: ends.any.or(&next.any), ok: next.ok }
                }
                Connector::Or => {
                    let next = self.pipeline(pipeline, &ends.any);
                    Ends { ok: ends.ok.or(&next.ok), any: ends.any.or(&next.any) }
                }
            };
        }
        ends
    }

    fn pipeline(&mut self, pipeline: &Pipeline, from: &Dirs) -> Ends {
        let mut ends = match &pipeline.commands[..] {
            [command] => self.command(command, from),
            commands => {
                for (i, command) in commands.iter().enumerate() {
                    // Which part of a compound reads the input first is not known.
                    self.piped = match &command.kind {
                        CommandKind::Simple(it) => Piped::from(&commands[..i], it),
                        _ => None,
                    };
                    self.with_isolation(from, |walk| walk.command(command, from));
                }
                Ends::both(from)
            }
        };
        if pipeline.is_negated {
            ends.ok = ends.any.clone();
        }
        ends
    }

    fn command(&mut self, command: &Command, from: &Dirs) -> Ends {
        if let CommandKind::Simple(simple) = &command.kind {
            return self.simple(simple, &command.redirections, from);
        }
        if !command.redirections.is_empty() {
            let redirections = self.redirections(&command.redirections, from);
            self.push(CommandPart::new(Vec::new(), Vec::new(), redirections, from.clone()));
        }
        match &command.kind {
            CommandKind::Simple(_) => Ends::both(from),
            CommandKind::Group(list) => self.list(list, from),
            CommandKind::Subshell(list) => self.with_isolation(from, |walk| walk.list(list, from)),
            CommandKind::Coprocess(body) => {
                self.with_isolation(from, |walk| walk.command(body, from))
            }
            CommandKind::If(arms, otherwise) => self.choice(arms, otherwise, from),
            CommandKind::While(condition, body) => self.repeated(from, |walk, from| {
                let ends = walk.list(condition, from);
                walk.list(body, &ends.any)
            }),
            CommandKind::For(name, values, body) => {
                values.iter().flatten().for_each(|it| self.inside(it, from));
                self.loops.begin(name, values.as_deref());
                let ends = self.repeated(from, |walk, from| walk.list(body, from));
                self.loops.leave();
                ends
            }
            CommandKind::Count(sums, body) => {
                self.inside(sums, from);
                self.loops.count(sums);
                let ends = self.repeated(from, |walk, from| walk.list(body, from));
                self.loops.leave();
                ends
            }
            CommandKind::Case(word, arms) => self.case(word, arms, from),
            CommandKind::Function(name, body) => {
                // Whatever its name meant, it means this from now on.
                self.is_lost |= matches!(&**name, "cd" | "pushd" | "popd" | "command" | "builtin");
                let body = Arc::new(Command::clone(body));
                self.functions.insert(name.clone(), Arc::clone(&body));
                self.calls.push(name.clone());
                self.with_isolation(from, |walk| walk.command(&body, from));
                self.calls.pop();
                Ends::both(from)
            }
            CommandKind::Arithmetic(word) => {
                self.inside(word, from);
                Ends::both(from)
            }
            CommandKind::Test(words) => {
                words.iter().for_each(|it| self.inside(it, from));
                self.push(CommandPart::new(Vec::new(), words.clone(), Vec::new(), from.clone()));
                Ends::both(from)
            }
        }
    }

    /// The commands that a word holds.
    fn inside(&mut self, word: &Word, from: &Dirs) {
        for list in &word.inner {
            self.with_isolation(from, |walk| walk.list(list, from));
        }
    }

    fn redirections(&mut self, all: &[Redirection], from: &Dirs) -> Vec<(Redirect, Word)> {
        let mut found = Vec::new();
        for redirection in all {
            let word = match redirection.kind {
                Redirect::Document(number) => {
                    self.documents.get(number).cloned().unwrap_or_default()
                }
                _ => redirection.target.clone(),
            };
            self.inside(&word, from);
            found.push((redirection.kind, word));
        }
        found
    }

    fn simple(&mut self, simple: &Simple, more: &[Redirection], from: &Dirs) -> Ends {
        let mut piped = self.piped.take();
        if let Some(piped) = piped.as_mut().filter(|_| self.prints_otherwise()) {
            piped.text = None;
        }
        if self.parts.len() >= MAX_PARTS {
            self.fault.get_or_insert(Fault::TooLong);
            return Ends::both(from);
        }
        for assignment in &simple.assignments {
            self.inside(&assignment.value, from);
        }
        let mut words = Vec::with_capacity(simple.words.len());
        for (i, word) in simple.words.iter().enumerate() {
            self.inside(word, from);
            match braces::expanded(word) {
                Some(all) => {
                    if i == 0 && all.len() > 1 {
                        self.fail(Fault::Name);
                    }
                    words.extend(all);
                }
                None => {
                    self.fail(Fault::TooLong);
                    words.push(word.clone());
                }
            }
        }
        let mut redirections = self.redirections(&simple.redirections, from);
        redirections.extend(self.redirections(more, from));
        let mut part =
            CommandPart::new(simple.assignments.clone(), words, redirections, from.clone());
        part.is_lost = self.is_lost;
        part.at_any_time = self.at_any_time;
        part.piped = piped;
        let place = places::of(&part, from, self.around);
        let dirs = place.dirs.clone();
        let was_displaced = self.is_displaced;
        (part.dirs, part.is_displaced) = (place.dirs, place.is_displaced || was_displaced);
        if let Some(fault) = part.fault {
            self.fail(fault);
        }
        if self.sums.note(&part) {
            self.fail(Fault::Arithmetic);
        }
        self.sets(&part, from);
        moves::note(&part, self.around);
        let mut ends = self.moved(&part, from);
        let runs = scripts::runs(&part);
        let function = self.functions.get(part.name()).cloned();
        part.is_call = function.is_some() && self.defined.calls(&part);
        part.bound = self.loops.around();
        let name = part.name().to_owned();
        let at = self.parts.len();
        self.push(part);
        let around = std::mem::replace(&mut self.is_unseen, runs.is_unseen);
        self.is_displaced |= place.is_displaced;
        for text in runs.texts {
            let n_parts = self.parts.len();
            let after = self.text(&text, &dirs);
            if text.is_own {
                ends = Ends::both(&ends.any.or(&after));
            }
            if text.is_later && self.parts.iter().skip(n_parts).any(follow::may_move) {
                ends = Ends::both(&Dirs::unknown());
            }
        }
        if let Some(part) = self.parts.get_mut(at) {
            part.is_unseen = self.is_unseen;
        }
        self.is_unseen |= around;
        self.is_displaced = was_displaced;
        match function {
            Some(_) if self.calls.contains(&name) => {
                self.fault.get_or_insert(Fault::Endless);
                Ends::both(&Dirs::unknown())
            }
            Some(body) => {
                self.sums.gives(self.parts.get(at).map_or(&[], CommandPart::args));
                self.calls.push(name);
                let after = self.command(&body, from);
                self.calls.pop();
                Ends { ok: after.any.clone(), any: after.any }
            }
            None => ends,
        }
    }

    fn push(&mut self, mut part: CommandPart) {
        part.is_hidden = self.is_hidden;
        part.is_lost = self.is_lost;
        part.has_moved = part.dirs != self.start;
        if self.parts.len() >= MAX_PARTS {
            self.fault.get_or_insert(Fault::TooLong);
            return;
        }
        self.parts.push(part);
    }
}
