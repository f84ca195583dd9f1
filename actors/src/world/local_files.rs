//! Reads settings and instruction files from the local file system.
//!
//! Settings files are looked at once per turn and read again only when modification time, size or
//! inode changed (TRN-4), in place, by [`FileStates`]. Sources are read once per session, on the blocking pool.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ennead_runtime::{
    digest::Digest,
    permission::Scope,
    ports::BoxFuture,
    step1_settings_resolution::{LayerText, trust::restrict},
    step3_context_assembly::{SourceMarks, SourceTexts, SourcesLook, SourcesOrder},
    step7_permission_gate::path_resolution::PathEntry,
    turn::input::SettingsRead,
};
use ennead_tools::source_file::{ReadError, Root, read_chosen_text};

mod last_good;

use last_good::LastGood;

use super::{
    compiled_patterns::CompiledPatterns,
    file_states::{FileStates, FilesLook},
    git,
    kept_trees::KeptTrees,
    source_files::{Fingerprint, Fingerprints, SessionDirs, SourceLookup, are_as},
    sources::{self, EmptyDirs},
};

/// Reads settings and instruction files from the machine's disk.
#[derive(Debug, Default)]
pub struct LocalFiles {
    states: FileStates,
    barren: EmptyDirs,
    trees: Arc<KeptTrees>,
    good: Arc<LastGood>,
    patterns: Arc<CompiledPatterns>,
}

impl SourceLookup for LocalFiles {
    fn settings(
        &self,
        dirs: &SessionDirs,
        known: Option<&Fingerprints>,
    ) -> BoxFuture<'static, io::Result<(SettingsRead, Fingerprints)>> {
        let seen = settings_files(dirs, self.states.look());
        if let Some(known) = known.filter(|it| are_as(&seen, it)) {
            let known = Arc::clone(known);
            return Box::pin(std::future::ready(Ok((SettingsRead::Unchanged, known))));
        }
        let (dirs, is_known, good) = (dirs.clone(), known.is_some(), Arc::clone(&self.good));
        Box::pin(async move {
            if seen.iter().all(|it| it.state.is_none()) {
                return Ok((SettingsRead::Layers(Vec::new()), seen.into()));
            }
            let read = move || read_layers(seen, &dirs, &good, is_known);
            let (layers, seen) = blocking(read).await??;
            Ok((SettingsRead::Layers(layers), seen.into()))
        })
    }

    fn entries(&self) -> Box<dyn FnMut(&str) -> PathEntry + '_> {
        let look = self.states.look();
        Box::new(move |path| look.entry(path))
    }

    fn sources(&self, dirs: &SessionDirs) -> BoxFuture<'static, SourceTexts> {
        let look = self.states.look();
        let found = sources::found(dirs, &self.barren, look);
        let tree = self.trees.find(dirs, look);
        let known = tree.or_else(|| (!sources::has_entries(dirs)).then(String::new));
        if let Some(tree) = known.as_ref().filter(|_| !found.files && !found.may_be_repository) {
            let mut texts = sources::without_files(dirs, &found);
            texts.tree.clone_from(tree);
            return Box::pin(std::future::ready(texts));
        }
        let trees = Arc::clone(&self.trees);
        let (dirs, patterns) = (dirs.clone(), Arc::clone(&self.patterns));
        Box::pin(async move {
            // Where no file contributes, nothing is looked for.
            let of_files = async {
                if found.files {
                    tokio::join!(
                        of_place(&dirs, &patterns, sources::instructions),
                        of_place(&dirs, &patterns, |dirs, _| sources::memory(dirs)),
                    )
                } else {
                    Default::default()
                }
            };
            // All at once: the slowest of them is what the session waits for.
            let tree = async {
                let list = move |dirs: &SessionDirs, patterns: &CompiledPatterns| {
                    trees.list(dirs, patterns)
                };
                match known {
                    Some(tree) => tree,
                    None => of_place(&dirs, &patterns, list).await,
                }
            };
            let (tree, (seen, memory), git) = tokio::join!(tree, of_files, async {
                if found.may_be_repository {
                    git::state(dirs.directory(), dirs.trust).await
                } else {
                    String::new()
                }
            },);
            let mut texts = sources::without_files(&dirs, &found);
            (texts.git, texts.tree, texts.auto_memory) = (git, tree, memory);
            (texts.instructions, texts.path_rules) = (seen.instructions, seen.path_rules);
            texts
        })
    }

    fn look(&self, dirs: &SessionDirs, order: &SourcesOrder) -> BoxFuture<'static, SourcesLook> {
        let name = name_of(dirs, order);
        let look = self.states.look();
        if let Some((first, marks)) = order.marks.as_ref().and_then(|it| it.0.split_first())
            && first.0 == name
            && marks.iter().all(|(path, state)| look.version(Path::new(path)) == *state)
        {
            return Box::pin(std::future::ready(SourcesLook::Unchanged));
        }
        if order.files.is_empty()
            && order.directories.is_empty()
            && !sources::has_files(dirs, &self.barren, look)
        {
            // Without marks the next look is made by the same short way.
            let found = SourcesLook::Found(Box::default(), SourceMarks(Arc::default()));
            return Box::pin(std::future::ready(found));
        }
        let order = order.clone();
        let (dirs, patterns) = (dirs.clone(), Arc::clone(&self.patterns));
        Box::pin(async move {
            let look = move |dirs: &SessionDirs, patterns: &CompiledPatterns| {
                sources::look(dirs, &order, patterns)
            };
            let (seen, marks) = of_place(&dirs, &patterns, look).await;
            let marks = std::iter::once((name, None)).chain(marks).collect();
            SourcesLook::Found(Box::new(seen), SourceMarks(marks))
        })
    }
}

/// Reads something of these directories on the blocking pool; nothing when the reader panics.
async fn of_place<T: Default + Send + 'static>(
    dirs: &SessionDirs,
    patterns: &Arc<CompiledPatterns>,
    read: impl FnOnce(&SessionDirs, &CompiledPatterns) -> T + Send + 'static,
) -> T {
    let (dirs, patterns) = (dirs.clone(), Arc::clone(patterns));
    blocking(move || read(&dirs, &patterns)).await.unwrap_or_default()
}

/// Names what a look was for: another order is not answered by the same marks.
fn name_of(dirs: &SessionDirs, order: &SourcesOrder) -> String {
    let parts = order.directories.iter().chain(&order.files);
    let parts = parts.chain(dirs.hidden.iter()).chain(dirs.excludes.iter());
    let digest = parts.fold(Digest::default(), |all, it| all.chain(Digest::of(it.as_bytes())));
    digest.to_string()
}

/// Runs `work` on the blocking pool.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}

/// The settings files of these directories as they are now, strongest first, where their directories are
/// there.
fn settings_files(dirs: &SessionDirs, look: FilesLook<'_>) -> Vec<Fingerprint> {
    let mut files = Vec::with_capacity(1);
    let mut add = |scope, path: PathBuf| {
        let state = look.version(&path);
        files.push(Fingerprint { scope, path, state, broken: None });
    };
    if let Some(managed) = dirs.managed.as_deref().filter(|it| look.exists(it)) {
        add(Scope::Policy, sources::below(managed, "managed-settings.json"));
        drop_ins(managed).into_iter().for_each(|it| add(Scope::Policy, it));
    }
    let of_repository = [(Scope::Local, LOCAL), (Scope::Project, PROJECT)];
    if dirs.sources.reads_any_of_repository()
        && look.exists(&sources::below(&dirs.workspace, ".claude"))
    {
        for (scope, name) in of_repository.into_iter().filter(|it| dirs.sources.reads(it.0)) {
            add(scope, dirs.workspace.join(name));
        }
    }
    if dirs.sources.user {
        add(Scope::User, sources::below(&dirs.config, "settings.json"));
    }
    files
}

/// The settings that come with a repository, by their names in it.
const PROJECT: &str = ".claude/settings.json";
const LOCAL: &str = ".claude/settings.local.json";

/// Drop-ins are applied on top of the base in alphabetical order: later ones are stronger, but of
/// one scope, so they follow it.
fn drop_ins(managed: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(managed.join("managed-settings.d"))
        .map(|entries| entries.flatten().map(|it| it.path()).collect())
        .unwrap_or_default();
    found.retain(|it| {
        it.extension().is_some_and(|it| it == "json")
            && !it.file_name().is_some_and(|it| it.to_string_lossy().starts_with('.'))
    });
    found.sort();
    found
}

fn read_layers(
    mut files: Vec<Fingerprint>,
    dirs: &SessionDirs,
    good: &LastGood,
    is_known: bool,
) -> io::Result<(Vec<LayerText>, Vec<Fingerprint>)> {
    let mut layers = Vec::new();
    for Fingerprint { scope, path, broken, .. } in &mut files {
        match read_settings(*scope, path, dirs) {
            Ok(text) => {
                let file_layers = good.layers_of(*scope, path, text, is_known);
                layers.extend(file_layers.layers.into_iter().map(|it| restrict(it, dirs.trust)));
                *broken = file_layers.broken;
            }
            Err(error) if error.is_missing() => {}
            Err(error) => {
                let error = io::Error::from(error);
                let what = format!("{}: {error}", path.display());
                return Err(io::Error::new(error.kind(), what));
            }
        }
    }
    Ok((layers, files))
}

/// The text of one settings file. That of a repository is no way to other files.
fn read_settings(scope: Scope, path: &Path, dirs: &SessionDirs) -> Result<String, ReadError> {
    match scope {
        Scope::Project | Scope::Local => {
            let root = Root::open(&dirs.workspace)?;
            root.read_text(root.name_of(path).ok_or(ReadError::Missing)?)
        }
        Scope::CliArg | Scope::Session | Scope::Policy | Scope::User => read_chosen_text(path),
    }
}
