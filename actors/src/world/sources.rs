//! Reads the world's part of the nine sources: environment, instructions, rules, memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use ennead_runtime::{
    permission::Scope,
    saturating::Saturating as _,
    step1_settings_resolution::instructions::{join_imports, with_imports},
    step3_context_assembly::{
        FileContent, InstructionFile, PathRule, SourceTexts, SourcesOrder, SourcesSeen,
        look::SourceMark, restored::MAX_FILE_CHARS, source5_auto_memory::index_start,
    },
    step7_permission_gate::path_rule::PathPattern,
};
use ennead_tools::source_file::{OpenedFile, Root, open_chosen, read_chosen_text};

use super::{
    compiled_patterns::CompiledPatterns,
    file_states::{FilesLook, version_at},
    negative_dir_cache::NegativeDirCache,
    rules,
    source_files::SessionDirs,
};
use crate::ports::transcript_store::layout::project_name;

/// Instruction files above this many bytes are passed over.
const MAX_INSTRUCTIONS: u64 = 4 * 1024 * 1024;

/// Bytes of a file that is shown again after a compaction; a character has four at most.
const MAX_CONTENT: u64 = MAX_FILE_CHARS as u64 * 4;

/// Directories that were found to hold nothing for a session.
#[derive(Debug)]
pub(super) struct EmptyDirs {
    /// Directories above working directories.
    ancestors: NegativeDirCache,
    /// Directories that hold instructions and nothing else.
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

/// What a first look finds at a place.
pub(super) struct FoundAtPlace {
    /// Whether any file may contribute.
    pub(super) files: bool,
    /// Whether it may be in a git repository, which is then looked for.
    pub(super) may_be_repository: bool,
}

/// Looks at a place for the first time. Where no directory above holds anything, a repository is looked for only where one
/// begins: file systems that do not change a directory's times are named in `negative_dir_cache`.
pub(super) fn found(dirs: &SessionDirs, barren: &EmptyDirs, look: FilesLook<'_>) -> FoundAtPlace {
    let is_barren = |it: &Path| barren.ancestors.holds_none(it, look);
    if dirs.worktree.is_some() || !dirs.workspace.ancestors().all(is_barren) {
        return FoundAtPlace { files: has_files(dirs, barren, look), may_be_repository: true };
    }
    let may_be_repository = look.exists(&below(&dirs.workspace, ".git"));
    FoundAtPlace { files: has_files_elsewhere(dirs, barren, look), may_be_repository }
}

/// Returns whether any file of a place may contribute. Costs one look for each candidate, and one for all candidates in a
/// directory that is not there or is as it was when it held none; where there is none, nothing needs the blocking pool.
pub(super) fn has_files(dirs: &SessionDirs, barren: &EmptyDirs, look: FilesLook<'_>) -> bool {
    let in_ancestors = dirs.workspace.ancestors().any(|it| {
        !barren.ancestors.holds_none(it, look)
            && (has_any(it, NAMES, look) || has_instructions(&it.join(DIRECTORY), barren, look))
    });
    in_ancestors || has_files_elsewhere(dirs, barren, look)
}

/// The same for what lies not above the working directory.
fn has_files_elsewhere(dirs: &SessionDirs, barren: &EmptyDirs, look: FilesLook<'_>) -> bool {
    dirs.managed.as_deref().is_some_and(|it| has_instructions(it, barren, look))
        || has_instructions(&dirs.config, barren, look)
        || look.exists(&memory_file(dirs))
}

fn has_instructions(directory: &Path, barren: &EmptyDirs, look: FilesLook<'_>) -> bool {
    !barren.configuration.holds_none(directory, look) && has_any(directory, INSIDE, look)
}

/// What a directory may hold for a session.
const NAMES: &[&str] = &["CLAUDE.md", "AGENTS.md", "CLAUDE.local.md", ".git"];

/// Where a directory may hold more for a session.
const DIRECTORY: &str = ".claude";

/// All that a directory above a working directory may hold for a session.
const BESIDE: &[&str] = &["CLAUDE.md", "AGENTS.md", "CLAUDE.local.md", ".git", DIRECTORY];

/// What [`DIRECTORY`] and its like may hold.
const INSIDE: &[&str] = &["CLAUDE.md", "rules"];

/// Joins the path of a name in a directory, in one piece.
pub(super) fn below(directory: &Path, name: &str) -> PathBuf {
    let mut path = PathBuf::with_capacity(directory.as_os_str().len() + 1 + name.len());
    path.push(directory);
    path.push(name);
    path
}

fn has_any(directory: &Path, names: &[&str], look: FilesLook<'_>) -> bool {
    let mut path = directory.to_owned();
    names.iter().any(|name| {
        path.push(name);
        let found = look.exists(&path);
        path.pop();
        found
    })
}

/// Returns whether the working directory has any entry.
pub(super) fn has_entries(dirs: &SessionDirs) -> bool {
    std::fs::read_dir(dirs.directory()).is_ok_and(|mut it| it.next().is_some())
}

/// Reads the instruction files and rules. What cannot be read is left out: a missing source is no
/// reason not to run.
pub(super) fn instructions(dirs: &SessionDirs, patterns: &CompiledPatterns) -> SourcesSeen {
    let mut reader = SourceFileReader::new(dirs, patterns);
    reader.hierarchy();
    reader.into_seen()
}

/// Reads what an order of a later look names, and the state of everything that it depends on.
pub(super) fn look(
    dirs: &SessionDirs,
    order: &SourcesOrder,
    patterns: &CompiledPatterns,
) -> (SourcesSeen, Vec<SourceMark>) {
    let mut reader = SourceFileReader::new(dirs, patterns);
    reader.hierarchy();
    let from_start = std::mem::take(&mut reader.files);
    for directory in &order.directories {
        reader.nested(&dirs.workspace.join(directory));
    }
    let contents = order.files.iter().filter_map(|it| reader.content(it)).collect();
    let marks = std::mem::take(&mut reader.marks).into_iter().collect();
    let seen = reader.into_seen();
    (SourcesSeen { nested: seen.instructions, instructions: from_start, contents, ..seen }, marks)
}

/// Returns the texts that do not come from files: the description of the environment.
pub(super) fn without_files(dirs: &SessionDirs, found: &FoundAtPlace) -> SourceTexts {
    let directory = dirs.directory();
    let is_repository =
        found.may_be_repository && directory.ancestors().any(|it| below(it, ".git").exists());
    let mut texts = SourceTexts::default();
    texts.environment = vec![
        ("Working directory".into(), directory.display().to_string()),
        ("Platform".into(), std::env::consts::OS.into()),
        ("Shell of commands".into(), "bash".into()),
        ("Home directory".into(), dirs.home.display().to_string()),
        ("Git repository".into(), if is_repository { "yes" } else { "no" }.into()),
    ];
    texts
}

struct SourceFileReader<'a> {
    dirs: &'a SessionDirs,
    /// What `Read` deny rules hide.
    hidden: Option<Arc<PathPattern>>,
    /// What settings leave out, but for files of the organisation.
    excluded: Option<Arc<PathPattern>>,
    workspace: Option<Root>,
    /// The files that were read, so that nothing comes twice.
    seen: BTreeSet<(u64, u64)>,
    files: Vec<InstructionFile>,
    path_rules: Vec<PathRule>,
    /// The state of the files that were read and of the directories that were looked into, each
    /// before it was.
    marks: BTreeMap<String, Option<(i128, u64, u64)>>,
}

impl<'a> SourceFileReader<'a> {
    fn new(dirs: &'a SessionDirs, patterns: &CompiledPatterns) -> Self {
        Self {
            dirs,
            hidden: patterns.of(&dirs.hidden),
            excluded: patterns.of(&dirs.excludes),
            workspace: Root::open(&dirs.workspace).ok(),
            seen: BTreeSet::new(),
            files: Vec::new(),
            path_rules: Vec::new(),
            marks: BTreeMap::new(),
        }
    }

    fn into_seen(self) -> SourcesSeen {
        let (instructions, path_rules) = (self.files, self.path_rules);
        SourcesSeen { instructions, path_rules, ..SourcesSeen::default() }
    }

    fn mark(&mut self, path: &Path) {
        self.marks.entry(path.to_string_lossy().into_owned()).or_insert_with(|| version_at(path));
    }

    /// Managed, user, then every directory from the root down to the working directory.
    fn hierarchy(&mut self) {
        let dirs = self.dirs;
        if let Some(managed) = &dirs.managed {
            self.mark(managed);
            self.file(Scope::Policy, None, &managed.join("CLAUDE.md"));
        }
        if dirs.sources.user {
            self.mark(&dirs.config);
            self.file(Scope::User, None, &dirs.config.join("CLAUDE.md"));
            self.rules(Scope::User, None, &dirs.config.join("rules"), &dirs.workspace);
        }
        let mut directories: Vec<&Path> = dirs.workspace.ancestors().collect();
        directories.reverse();
        for directory in directories {
            // No file of a directory is a way to what lies elsewhere.
            let Ok(root) = Root::open(directory) else { continue };
            self.directory(&root, directory);
        }
    }

    /// A directory below the working directory, whose links lead out of it nowhere.
    fn nested(&mut self, directory: &Path) {
        if let Some(root) = self.workspace.take() {
            self.directory(&root, directory);
            self.workspace = Some(root);
        }
    }

    fn directory(&mut self, root: &Root, directory: &Path) {
        let (dirs, root) = (self.dirs, Some(root));
        self.mark(directory);
        self.mark(&directory.join(DIRECTORY));
        if dirs.sources.project {
            let own = [directory.join("CLAUDE.md"), directory.join(".claude/CLAUDE.md")];
            let found = own.iter().filter(|it| self.file(Scope::Project, root, it)).count();
            if found == 0 {
                self.file(Scope::Project, root, &directory.join("AGENTS.md"));
            }
            self.rules(Scope::Project, root, &directory.join(".claude/rules"), directory);
        }
        if dirs.sources.local {
            self.file(Scope::Local, root, &directory.join("CLAUDE.local.md"));
        }
    }

    /// The beginning of a file that the model knows.
    fn content(&self, path: &str) -> Option<FileContent> {
        let opened = open_chosen(Path::new(path)).ok()?;
        // A link that was put in its place since leads to what was not allowed.
        if opened.real != Path::new(path) || self.hides(&opened.real) {
            return None;
        }
        let mut bytes = Vec::new();
        let file = opened.into_file();
        let n_bytes = file.take(MAX_CONTENT + 1).read_to_end(&mut bytes).ok()? as u64;
        bytes.truncate(usize::saturating(MAX_CONTENT));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Some(FileContent { path: path.into(), text, is_cut: MAX_CONTENT < n_bytes })
    }

    /// Reads the rules of a directory. Globs are relative to `base`.
    fn rules(&mut self, scope: Scope, root: Option<&Root>, directory: &Path, base: &Path) {
        self.mark(directory);
        for path in rules::files_below(directory, root.map(Root::real)) {
            if let Some(inside) = path.parent() {
                self.mark(inside);
            }
            let Some(text) = self.load(scope, root, &path) else { continue };
            match rules::read(&text) {
                (None, body) => self.add(scope, &path, body),
                (Some(paths), body) => self.path_rules.push(PathRule::new(
                    path.display().to_string(),
                    base.display().to_string(),
                    paths,
                    body,
                )),
            }
        }
    }

    /// Reads a file and what it imports; false when there is none.
    fn file(&mut self, scope: Scope, root: Option<&Root>, path: &Path) -> bool {
        let Some(text) = self.load(scope, root, path) else { return false };
        self.add(scope, path, &text);
        true
    }

    fn add(&mut self, scope: Scope, path: &Path, text: &str) {
        let mut seen = std::mem::take(&mut self.seen);
        let mut imported = Vec::new();
        let mut load = |target: &str| {
            let target = Path::new(target);
            let opened = self.open_import(scope, target)?;
            let is_hidden = self.hides(target) || self.hides(&opened.real);
            imported.push(target.to_owned());
            (!is_hidden && seen.insert(opened.id)).then(|| text_of(opened)).flatten()
        };
        let home = self.dirs.home.to_string_lossy();
        let files = with_imports(&path.to_string_lossy(), text, &home, &mut load);
        self.seen = seen;
        imported.iter().for_each(|it| self.mark(it));
        let (path, text) = (path.display().to_string(), join_imports(&files));
        self.files.push(InstructionFile::new(scope, path, text));
    }

    /// A repository's file imports nothing from outside the working directory.
    fn open_import(&self, scope: Scope, target: &Path) -> Option<OpenedFile> {
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
    fn load(&mut self, scope: Scope, root: Option<&Root>, path: &Path) -> Option<String> {
        let is_excluded = |it: &PathPattern| it.matches(&path.to_string_lossy());
        if scope != Scope::Policy && self.excluded.as_deref().is_some_and(is_excluded) {
            return None;
        }
        let state = version_at(path);
        let opened = match root {
            Some(root) => root.open_file(root.name_of(path)?).ok()?,
            None => open_chosen(path).ok()?,
        };
        // The file of this name is for the model; one that it links to is as any other.
        let is_link = root.is_some_and(|it| it.name_of(path) != it.name_of(&opened.real));
        if is_link && self.hides(&opened.real) {
            return None;
        }
        self.marks.insert(path.to_string_lossy().into_owned(), state);
        self.seen.insert(opened.id).then(|| text_of(opened)).flatten()
    }

    fn hides(&self, path: &Path) -> bool {
        self.hidden.as_ref().is_some_and(|it| it.matches(&path.to_string_lossy()))
    }
}

fn text_of(opened: OpenedFile) -> Option<String> {
    let bytes = opened.read(MAX_INSTRUCTIONS).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

pub(super) fn memory(dirs: &SessionDirs) -> Option<String> {
    let index = read_chosen_text(&memory_file(dirs)).ok()?;
    Some(index_start(&index).to_owned())
}

fn memory_file(dirs: &SessionDirs) -> PathBuf {
    let mut file = memory_directory(dirs);
    file.push("MEMORY.md");
    file
}

/// Returns where the notes of sessions in this working directory lie.
pub(crate) fn memory_directory(dirs: &SessionDirs) -> PathBuf {
    let name = project_name(&dirs.workspace.to_string_lossy());
    let mut directory = PathBuf::with_capacity(dirs.config.as_os_str().len() + name.len() + 32);
    for part in
        [dirs.config.as_path(), Path::new("projects"), Path::new(&name), Path::new("memory")]
    {
        directory.push(part);
    }
    directory
}
