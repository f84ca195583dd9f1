//! Which variables a command evaluates, and what it gives them.
//!
//! Bash evaluates the value of a name again, and that of each name in it. So a variable that arithmetic, a test or
//! a builtin evaluates must hold a number, or names that do.

use std::collections::{BTreeMap, BTreeSet};

use crate::step7_permission_gate::{
    command::{
        CommandPart,
        evaluated::{Value, evaluated, is_set_by_shell, value},
        named::shortened,
    },
    shell::word::Word,
};

/// Variables that are evaluated and set in one command.
#[derive(Debug, Default)]
pub(super) struct Sums {
    /// Variables whose values are evaluated.
    names: Vec<String>,
    /// Variables that hold what cannot be known.
    unknown: BTreeSet<String>,
    /// Variables that hold what an expansion gives.
    open: BTreeSet<String>,
    /// Names in the values of variables.
    sums: BTreeMap<String, Vec<String>>,
}

impl Sums {
    pub(super) fn evaluates(&mut self, names: Vec<String>) {
        self.names.extend(names);
    }

    /// Takes a variable that is set to what is not known.
    pub(super) fn sets_unknown(&mut self, name: String) {
        self.unknown.insert(name);
    }

    /// Takes what a part gives to variables and lets the shell evaluate. Whether that is more than names and
    /// numbers.
    pub(super) fn note(&mut self, part: &CommandPart) -> bool {
        for it in &part.assignments {
            self.sets(&it.name, &it.value);
        }
        let args = part.args();
        match part.name() {
            "declare" | "typeset" | "local" | "export" | "readonly" | "env" | "sudo" | "doas" => {
                for arg in args {
                    if let Some((name, text)) = arg.text.split_once('=') {
                        self.sets(name, &shortened(arg, text));
                    }
                }
            }
            "printf" if args.first().is_some_and(|it| it.text.starts_with("-v")) => {
                let words = args.iter().flat_map(|it| it.text.strip_prefix("-v").into_iter());
                let name =
                    words.chain(args.get(1).map(|it| it.text.as_str())).find(|it| !it.is_empty());
                let name = name.unwrap_or_default().to_owned();
                if args.iter().skip(2).any(|it| it.text.contains('[')) {
                    self.unknown.insert(name)
                } else {
                    self.open.insert(name)
                };
            }
            // What follows are the arguments of the shell.
            "set" => self.gives(args),
            _ => {}
        }
        let found = evaluated(part);
        self.names.extend(found.names);
        found.is_open
    }

    /// Takes the arguments of a function, or of a shell.
    pub(super) fn gives(&mut self, args: &[Word]) {
        for arg in args {
            self.sets("@", arg);
        }
    }

    fn sets(&mut self, name: &str, word: &Word) {
        let name = name.split(['+', '[']).next().unwrap_or_default().to_owned();
        match value(word) {
            Value::Sum(names) if names.is_empty() => {}
            Value::Sum(names) => self.sums.entry(name).or_default().extend(names),
            Value::Text => {}
            Value::Harmful => drop(self.unknown.insert(name)),
            Value::Open => drop(self.open.insert(name)),
        }
    }

    /// Returns whether what is evaluated may be text with commands in it, and the open variables that it reads.
    pub(super) fn end(mut self) -> (bool, BTreeSet<String>) {
        let (mut is_unknown, mut seen) = (false, BTreeSet::new());
        while let Some(name) = self.names.pop() {
            is_unknown |= is_set_by_shell(&name) || self.unknown.contains(&name);
            if let Some(names) = self.sums.remove(&name) {
                self.names.extend(names);
            }
            seen.insert(name);
        }
        seen.retain(|it| self.open.contains(it));
        (is_unknown, seen)
    }
}
