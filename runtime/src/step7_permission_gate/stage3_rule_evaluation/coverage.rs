//! Which parts of a shell command rules and mode cover, and which rules would cover the others.

use std::cell::OnceCell;

use crate::{
    permission::PermissionMode,
    step7_permission_gate::{
        GateSetup, RuleRef,
        command::{
            Changes, CommandPart, NamedFile, PathTarget, ShellCommand, edits, may_name_files,
            reads_elsewhere, reads_only,
        },
        path_rule::escape,
    },
};

/// Files for which a rule is named.
const MAX_FILES: usize = 3;

/// What one gate says about the parts of one command. Each part is looked at once, however often its answer
/// is needed.
#[derive(Debug)]
pub(in super::super) struct Coverage<'a> {
    pub(super) tool: &'a str,
    pub(super) command: &'a ShellCommand,
    pub(super) setup: &'a GateSetup,
    /// The answer for each of the command's parts.
    parts: Vec<OnceCell<Covering>>,
}

/// What allows a part of a command to run.
#[derive(Clone, Debug)]
enum Covering {
    /// No rule covers it.
    No,
    /// It needs no rule to run.
    Free,
    /// This rule covers it.
    By(RuleRef),
}

impl Covering {
    fn rule(&self) -> Option<&RuleRef> {
        match self {
            Self::By(rule) => Some(rule),
            Self::No | Self::Free => None,
        }
    }

    fn is_none(&self) -> bool {
        matches!(self, Self::No)
    }
}

impl From<Option<RuleRef>> for Covering {
    fn from(rule: Option<RuleRef>) -> Self {
        rule.map_or(Self::No, Self::By)
    }
}

/// What no rule covers.
pub(super) enum Uncovered<'a> {
    Part(&'a CommandPart),
    Write(&'a NamedFile),
    Read(NamedFile),
}

impl<'a> Coverage<'a> {
    pub(in super::super) fn new(
        tool: &'a str,
        command: &'a ShellCommand,
        setup: &'a GateSetup,
    ) -> Self {
        let parts = command.parts().iter().map(|_| OnceCell::new()).collect();
        Self { tool, command, setup, parts }
    }

    pub(super) fn command(&self) -> &'a ShellCommand {
        self.command
    }

    /// Returns the same question for another gate.
    pub(super) fn for_gate<'b>(&self, setup: &'b GateSetup) -> Coverage<'b>
    where
        'a: 'b,
    {
        Coverage::new(self.tool, self.command, setup)
    }

    /// Returns the first rule that it took, when every part and every write is covered.
    pub(super) fn of_all(&self) -> Result<Option<RuleRef>, Uncovered<'a>> {
        let mut first = None;
        for (i, part, changes) in self.visible() {
            match self.of_part(i, part) {
                Covering::No => return Err(Uncovered::Part(part)),
                it => first = first.or_else(|| it.rule().cloned()),
            }
            for file in &changes.writes {
                match self.of_write(file, part) {
                    Covering::No => return Err(Uncovered::Write(file)),
                    it => first = first.or_else(|| it.rule().cloned()),
                }
            }
            for file in reads_elsewhere(part, self.command.around()) {
                match self.of_read(&file, part) {
                    Covering::No => return Err(Uncovered::Read(file)),
                    it => first = first.or_else(|| it.rule().cloned()),
                }
            }
        }
        Ok(first)
    }

    /// Returns whether a rule for a single part is all that is missing.
    pub(super) fn lacks_one(&self) -> bool {
        let uncovered = self.uncovered().map(drop);
        let files = self.refused().map(drop).chain(self.withheld().map(drop));
        uncovered.chain(files).take(2).count() == 1
    }

    /// Suggests allow rules that would let the command pass next time.
    pub(in super::super) fn suggestions(&self) -> Vec<String> {
        if self.command.fault().is_some() {
            return Vec::new();
        }
        let specs = ShellCommand::suggestions(self.uncovered());
        let mut rules: Vec<String> =
            specs.into_iter().map(|it| format!("{}({it})", self.tool)).collect();
        if self.setup.mode() != PermissionMode::Plan {
            let files = self.refused().filter(|(part, it)| is_acceptable(it, part));
            // Where it may be one of several, no rule for one of them is enough.
            let paths = files
                .filter_map(|(_, it)| if let [path] = &it.paths[..] { Some(path) } else { None });
            rules.extend(paths.take(MAX_FILES).map(|it| format!("Edit(/{})", escape(it))));
            let files = self.withheld().filter(|(part, it)| is_acceptable(it, part));
            let paths = files.filter_map(|(_, it)| <[String; 1]>::try_from(it.paths).ok());
            rules.extend(paths.take(MAX_FILES).map(|[it]| format!("Read(/{})", escape(&it))));
        }
        rules
    }

    /// What the shell itself runs, by its number.
    fn visible(&self) -> impl Iterator<Item = (usize, &'a CommandPart, &'a Changes)> {
        let all = self.command.changes().enumerate().map(|(i, (part, changes))| (i, part, changes));
        all.filter(|it| !it.1.is_hidden)
    }

    fn uncovered(&self) -> impl Iterator<Item = &'a CommandPart> {
        self.visible().filter(|it| self.of_part(it.0, it.1).is_none()).map(|it| it.1)
    }

    /// The files that it writes and nothing accepts.
    fn refused(&self) -> impl Iterator<Item = (&'a CommandPart, &'a NamedFile)> {
        let writes =
            self.visible().flat_map(|(_, part, it)| it.writes.iter().map(move |it| (part, it)));
        writes.filter(|(part, it)| self.of_write(it, part).is_none())
    }

    /// The files from which it is redirected and that nothing lets it read.
    fn withheld(&self) -> impl Iterator<Item = (&'a CommandPart, NamedFile)> {
        let around = self.command.around();
        let reads = self
            .visible()
            .flat_map(move |(_, part, _)| reads_elsewhere(part, around).map(move |it| (part, it)));
        reads.filter(|(part, it)| self.of_read(it, part).is_none())
    }

    fn of_part(&self, i: usize, part: &CommandPart) -> &Covering {
        self.parts[i].get_or_init(|| covering(self.tool, part, self.command, self.setup))
    }

    /// What accepts a file that is written.
    fn of_write(&self, file: &NamedFile, part: &CommandPart) -> Covering {
        let (book, mode) = (self.setup.book(), self.setup.mode());
        if edits::is_device(file) {
            return Covering::Free;
        }
        if !is_acceptable(file, part) || mode == PermissionMode::Plan {
            return Covering::No;
        }
        if file.is_inside(&part.dirs, self.command.around()) {
            if mode == PermissionMode::AcceptEdits {
                return Covering::Free;
            }
            // Who allows every command allows it to write where it works.
            if let Some(rule) = book.allows_whole(self.tool, part) {
                return Covering::By(rule);
            }
        }
        by_rules(file, |path| book.lets_edit(path))
    }

    /// What lets a file be read from which a part is redirected, and that does not lie in the workspace.
    fn of_read(&self, file: &NamedFile, part: &CommandPart) -> Covering {
        let book = self.setup.book();
        if is_peer(file) || self.setup.mode() == PermissionMode::Plan {
            return Covering::No;
        }
        // Who allows every command allows it to read where it wants.
        if let Some(rule) = book.allows_whole(self.tool, part) {
            return Covering::By(rule);
        }
        if !is_acceptable(file, part) {
            return Covering::No;
        }
        by_rules(file, |path| book.lets_read(path))
    }
}

/// What covers a file for each of whose paths there has to be a rule.
fn by_rules(file: &NamedFile, rule_for: impl Fn(&str) -> Option<RuleRef>) -> Covering {
    let rules = file.paths.iter().map(|path| rule_for(path));
    let rules: Option<Vec<RuleRef>> = rules.collect();
    rules.and_then(|mut it| it.pop()).into()
}

/// What covers a part.
fn covering(tool: &str, part: &CommandPart, command: &ShellCommand, setup: &GateSetup) -> Covering {
    let around = command.around();
    // What is written by `tee` is judged as a write.
    let only_writes = part.name() == "tee"
        && part.fault.is_none()
        && part.assignments.is_empty()
        && !part.is_fed
        && part
            .args()
            .iter()
            .all(|it| !it.text.starts_with('-') || matches!(&*it.text, "-a" | "--append" | "-i"));
    // What it is redirected from is judged as a read.
    let only_opens = part.words.is_empty() && part.assignments.is_empty() && part.fault.is_none();
    // A file of a name like an option may have a denied one read.
    let may_read_denied = || setup.book().denies_reads() && may_name_files(part);
    if only_writes || only_opens || reads_only(part, around) && !may_read_denied() {
        return Covering::Free;
    }
    match setup.mode() {
        PermissionMode::AcceptEdits if edits::is_accepted(part, around) => Covering::Free,
        PermissionMode::Plan => Covering::No,
        _ => setup.book().covering(tool, part, around).into(),
    }
}

/// Whether a rule may accept a file: it is known where it is, and is not a peer.
fn is_acceptable(file: &NamedFile, part: &CommandPart) -> bool {
    let is_known = matches!(file.target, PathTarget::Known(_));
    let is_placed = file.target.text().starts_with('/') || !part.dirs.is_unknown();
    is_known && is_placed && !is_peer(file)
}

/// Whether what is opened is another machine.
fn is_peer(file: &NamedFile) -> bool {
    file.paths.iter().any(|it| edits::opens_connection(it))
}
