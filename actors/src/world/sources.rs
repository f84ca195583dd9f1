//! Reads the world's part of the nine sources: environment, git, instructions, memory.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use ennead_runtime::{
    permission::Scope,
    step1_settings_resolution::instructions::{joined, with_imports},
    step3_context_assembly::{
        InstructionFile, PathRule, SourceTexts, source5_auto_memory::index_start,
    },
};

use super::{local_files::Place, regular_file, rules, without::Without};
use crate::archive::layout::project_name;

/// Instruction files above this many bytes are passed over.
const MAX_INSTRUCTIONS: u64 = 4 * 1024 * 1024;

/// Directories that were found to hold nothing for a session.
#[derive(Debug)]
pub(super) struct Barren {
    /// Those above working directories.
    ancestors: Without,
    /// Those that are for instructions alone.
    configuration: Without,
}

impl Default for Barren {
    fn default() -> Self {
        Self { ancestors: Without::new(BESIDE), configuration: Without::new(INSIDE) }
    }
}

/// Whether any file of a place may contribute. Costs one `stat` per candidate, about a microsecond
/// each, and one for all candidates in a directory that is not there or is as it was when it held
/// none; where there is none, nothing needs the blocking pool.
pub(super) fn has_files(place: &Place, barren: &Barren) -> bool {
    let has_instructions = |directory: &Path| {
        !barren.configuration.holds_none(directory) && has_any(directory, INSIDE)
    };
    let in_ancestors = place.workspace.ancestors().any(|it| {
        !barren.ancestors.holds_none(it)
            && (has_any(it, NAMES) || has_instructions(&it.join(DIRECTORY)))
    });
    in_ancestors
        || has_instructions(&place.managed)
        || has_instructions(&place.config)
        || memory_file(place).exists()
}

/// What a directory may hold for a session.
const NAMES: &[&str] = &["CLAUDE.md", "AGENTS.md", "CLAUDE.local.md", ".git"];

/// Where a directory may hold more for a session.
const DIRECTORY: &str = ".claude";

/// All that a directory above a working directory may hold for a session.
const BESIDE: &[&str] = &["CLAUDE.md", "AGENTS.md", "CLAUDE.local.md", ".git", DIRECTORY];

/// What [`DIRECTORY`] and its like may hold.
const INSIDE: &[&str] = &["CLAUDE.md", "rules"];

fn has_any(directory: &Path, names: &[&str]) -> bool {
    let mut path = directory.to_owned();
    names.iter().any(|name| {
        path.push(name);
        let found = path.exists();
        path.pop();
        found
    })
}

/// Reads everything. What cannot be read is left out: a missing source is no reason not to run.
pub(super) fn read(place: &Place) -> SourceTexts {
    let mut reader =
        Reader { place, seen: BTreeSet::new(), files: Vec::new(), path_rules: Vec::new() };
    reader.hierarchy();
    SourceTexts {
        git: git(&place.workspace),
        instructions: reader.files,
        path_rules: reader.path_rules,
        auto_memory: memory(place),
        ..without_files(place)
    }
}

/// What a place contributes that has no files of its own.
pub(super) fn without_files(place: &Place) -> SourceTexts {
    let directory = place.worktree.as_ref().unwrap_or(&place.workspace);
    SourceTexts {
        environment: vec![
            ("Working directory".into(), directory.display().to_string()),
            ("Platform".into(), std::env::consts::OS.into()),
        ],
        ..SourceTexts::default()
    }
}

struct Reader<'a> {
    place: &'a Place,
    /// Real paths of what was read, so that nothing comes twice.
    seen: BTreeSet<PathBuf>,
    files: Vec<InstructionFile>,
    path_rules: Vec<PathRule>,
}

impl Reader<'_> {
    /// Managed, user, then every directory from the root down to the working directory.
    fn hierarchy(&mut self) {
        self.file(Scope::Policy, &self.place.managed.join("CLAUDE.md"));
        self.file(Scope::User, &self.place.config.join("CLAUDE.md"));
        self.rules(Scope::User, &self.place.config.join("rules"), &self.place.workspace);
        let mut directories: Vec<&Path> = self.place.workspace.ancestors().collect();
        directories.reverse();
        for directory in directories {
            let own = [directory.join("CLAUDE.md"), directory.join(".claude/CLAUDE.md")];
            let found = own.iter().filter(|it| self.file(Scope::Project, it)).count();
            if found == 0 {
                self.file(Scope::Project, &directory.join("AGENTS.md"));
            }
            self.rules(Scope::Project, &directory.join(".claude/rules"), directory);
            self.file(Scope::Local, &directory.join("CLAUDE.local.md"));
        }
    }

    /// Reads the rules of a directory. Globs are relative to `base`.
    fn rules(&mut self, scope: Scope, directory: &Path, base: &Path) {
        for path in rules::files_below(directory) {
            let Some(text) = self.load(&path) else { continue };
            match rules::read(&text) {
                (None, body) => self.add(scope, &path, body),
                (Some(paths), body) => self.path_rules.push(PathRule {
                    path: path.display().to_string(),
                    base: base.display().to_string(),
                    paths,
                    text: body.to_owned(),
                }),
            }
        }
    }

    /// Reads a file and what it imports; false when there is none.
    fn file(&mut self, scope: Scope, path: &Path) -> bool {
        let Some(text) = self.load(path) else { return false };
        self.add(scope, path, &text);
        true
    }

    fn add(&mut self, scope: Scope, path: &Path, text: &str) {
        let (place, mut seen) = (self.place, std::mem::take(&mut self.seen));
        let mut load = |target: &str| {
            let target = Path::new(target);
            let real = target.canonicalize().ok()?;
            let may = may_import(place, scope, &real) && seen.insert(real);
            may.then(|| text_of(target)).flatten()
        };
        let home = place.home.to_string_lossy();
        let files = with_imports(&path.to_string_lossy(), text, &home, &mut load);
        self.seen = seen;
        let (path, text) = (path.display().to_string(), joined(&files));
        self.files.push(InstructionFile { scope, path, text });
    }

    /// The text of a file that was not read yet.
    fn load(&mut self, path: &Path) -> Option<String> {
        let real = path.canonicalize().ok()?;
        self.seen.insert(real).then(|| text_of(path)).flatten()
    }
}

fn text_of(path: &Path) -> Option<String> {
    let bytes = regular_file::read(path, MAX_INSTRUCTIONS).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

/// A repository's file imports nothing from outside the working directory.
fn may_import(place: &Place, scope: Scope, real: &Path) -> bool {
    match scope {
        Scope::Project | Scope::Local => {
            place.workspace.canonicalize().is_ok_and(|root| real.starts_with(root))
        }
        Scope::CliArg | Scope::Policy | Scope::User => true,
    }
}

fn git(workspace: &Path) -> String {
    let head =
        workspace.ancestors().find_map(|it| regular_file::read_text(&it.join(".git/HEAD")).ok());
    match head.as_deref().map(|it| (it, it.trim().strip_prefix("ref: refs/heads/"))) {
        None => String::new(),
        Some((_, Some(branch))) => format!("branch {branch}"),
        Some((head, None)) => format!("detached at {}", head.trim()),
    }
}

fn memory(place: &Place) -> Option<String> {
    let index = regular_file::read_text(&memory_file(place)).ok()?;
    Some(index_start(&index).to_owned())
}

fn memory_file(place: &Place) -> PathBuf {
    let name = project_name(&place.workspace.to_string_lossy());
    place.config.join("projects").join(name).join("memory/MEMORY.md")
}
