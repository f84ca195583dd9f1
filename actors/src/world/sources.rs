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
    step7_permission_gate::path_rule::PathPattern,
};
use ennead_tools::source_file::{Opened, Root, open_chosen, read_chosen_text};

use super::{local_files::SessionDirs, negative_dir_cache::NegativeDirCache, rules};
use crate::archive::layout::project_name;

/// Instruction files above this many bytes are passed over.
const MAX_INSTRUCTIONS: u64 = 4 * 1024 * 1024;

/// Characters of `.git/HEAD` that are shown; names of branches have 255 bytes at most.
const MAX_HEAD: usize = 300;

/// Directories that were found to hold nothing for a session.
#[derive(Debug)]
pub(super) struct EmptyDirs {
    /// Those above working directories.
    ancestors: NegativeDirCache,
    /// Those that are for instructions alone.
    configuration: NegativeDirCache,
}

impl Default for EmptyDirs {
    fn default() -> Self {
        Self {
            ancestors: NegativeDirCache::new(BESIDE),
            configuration: NegativeDirCache::new(INSIDE),
        }
    }
}

/// Whether any file of a place may contribute. Costs one `stat` per candidate, about a microsecond
/// each, and one for all candidates in a directory that is not there or is as it was when it held
/// none; where there is none, nothing needs the blocking pool.
pub(super) fn has_files(place: &SessionDirs, barren: &EmptyDirs) -> bool {
    let has_instructions = |directory: &Path| {
        !barren.configuration.holds_none(directory) && has_any(directory, INSIDE)
    };
    let in_ancestors = place.workspace.ancestors().any(|it| {
        !barren.ancestors.holds_none(it)
            && (has_any(it, NAMES) || has_instructions(&it.join(DIRECTORY)))
    });
    in_ancestors
        || place.managed.as_deref().is_some_and(has_instructions)
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
pub(super) fn read(place: &SessionDirs) -> SourceTexts {
    let hidden = (!place.hidden.is_empty()).then(|| PathPattern::hidden(&place.hidden));
    let workspace = Root::open(&place.workspace).ok();
    let (files, path_rules) = (Vec::new(), Vec::new());
    let mut reader = Reader { place, hidden, workspace, seen: BTreeSet::new(), files, path_rules };
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
pub(super) fn without_files(place: &SessionDirs) -> SourceTexts {
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
    place: &'a SessionDirs,
    /// What `Read` deny rules hide.
    hidden: Option<PathPattern>,
    workspace: Option<Root>,
    /// The files that were read, so that nothing comes twice.
    seen: BTreeSet<(u64, u64)>,
    files: Vec<InstructionFile>,
    path_rules: Vec<PathRule>,
}

impl Reader<'_> {
    /// Managed, user, then every directory from the root down to the working directory.
    fn hierarchy(&mut self) {
        let place = self.place;
        if let Some(managed) = &place.managed {
            self.file(Scope::Policy, None, &managed.join("CLAUDE.md"));
        }
        if place.sources.user {
            self.file(Scope::User, None, &place.config.join("CLAUDE.md"));
            self.rules(Scope::User, None, &place.config.join("rules"), &place.workspace);
        }
        let mut directories: Vec<&Path> = place.workspace.ancestors().collect();
        directories.reverse();
        for directory in directories {
            // No file of a directory is a way to what lies elsewhere.
            let Ok(root) = Root::open(directory) else { continue };
            let root = Some(&root);
            if place.sources.project {
                let own = [directory.join("CLAUDE.md"), directory.join(".claude/CLAUDE.md")];
                let found = own.iter().filter(|it| self.file(Scope::Project, root, it)).count();
                if found == 0 {
                    self.file(Scope::Project, root, &directory.join("AGENTS.md"));
                }
                self.rules(Scope::Project, root, &directory.join(".claude/rules"), directory);
            }
            if place.sources.local {
                self.file(Scope::Local, root, &directory.join("CLAUDE.local.md"));
            }
        }
    }

    /// Reads the rules of a directory. Globs are relative to `base`.
    fn rules(&mut self, scope: Scope, root: Option<&Root>, directory: &Path, base: &Path) {
        for path in rules::files_below(directory, root.map(Root::real)) {
            let Some(text) = self.load(root, &path) else { continue };
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
    fn file(&mut self, scope: Scope, root: Option<&Root>, path: &Path) -> bool {
        let Some(text) = self.load(root, path) else { return false };
        self.add(scope, path, &text);
        true
    }

    fn add(&mut self, scope: Scope, path: &Path, text: &str) {
        let mut seen = std::mem::take(&mut self.seen);
        let mut load = |target: &str| {
            let target = Path::new(target);
            let opened = self.open_import(scope, target)?;
            let is_hidden = self.hides(target) || self.hides(&opened.real);
            (!is_hidden && seen.insert(opened.id)).then(|| text_of(opened)).flatten()
        };
        let home = self.place.home.to_string_lossy();
        let files = with_imports(&path.to_string_lossy(), text, &home, &mut load);
        self.seen = seen;
        let (path, text) = (path.display().to_string(), joined(&files));
        self.files.push(InstructionFile { scope, path, text });
    }

    /// A repository's file imports nothing from outside the working directory.
    fn open_import(&self, scope: Scope, target: &Path) -> Option<Opened> {
        match scope {
            Scope::Project | Scope::Local => {
                let workspace = self.workspace.as_ref()?;
                workspace.open_file(workspace.name_of(target)?).ok()
            }
            Scope::CliArg | Scope::Session | Scope::Policy | Scope::User => {
                open_chosen(target).ok()
            }
        }
    }

    /// The text of a file that was not read yet.
    fn load(&mut self, root: Option<&Root>, path: &Path) -> Option<String> {
        let opened = match root {
            Some(root) => root.open_file(root.name_of(path)?).ok()?,
            None => open_chosen(path).ok()?,
        };
        // The file of this name is for the model; one that it links to is as any other.
        let is_link = root.is_some_and(|it| it.name_of(path) != it.name_of(&opened.real));
        if is_link && self.hides(&opened.real) {
            return None;
        }
        self.seen.insert(opened.id).then(|| text_of(opened)).flatten()
    }

    fn hides(&self, path: &Path) -> bool {
        self.hidden.as_ref().is_some_and(|it| it.matches(&path.to_string_lossy()))
    }
}

fn text_of(opened: Opened) -> Option<String> {
    let bytes = opened.read(MAX_INSTRUCTIONS).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

fn git(workspace: &Path) -> String {
    let head = |it: &Path| Root::open(it).ok()?.read_text(Path::new(".git/HEAD")).ok();
    let head = workspace.ancestors().find_map(head).unwrap_or_default();
    // A file of this name can hold anything.
    let head: String = head.lines().next().unwrap_or_default().chars().take(MAX_HEAD).collect();
    match head.trim().strip_prefix("ref: refs/heads/") {
        _ if head.trim().is_empty() => String::new(),
        Some(branch) => format!("branch {branch}"),
        None => format!("detached at {}", head.trim()),
    }
}

fn memory(place: &SessionDirs) -> Option<String> {
    let index = read_chosen_text(&memory_file(place)).ok()?;
    Some(index_start(&index).to_owned())
}

fn memory_file(place: &SessionDirs) -> PathBuf {
    let name = project_name(&place.workspace.to_string_lossy());
    place.config.join("projects").join(name).join("memory/MEMORY.md")
}
