//! The ports through which a session gets what files say: [`SourceFiles`] for embedders, and
//! [`SourceLookup`], which in addition reports what is as it was.

use std::{
    fmt,
    future::ready,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ennead_runtime::{
    digest::Digest,
    permission::Scope,
    ports::BoxFuture,
    step1_settings_resolution::{
        LayerText,
        trust::{SettingSources, Trust},
    },
    step3_context_assembly::{SourceTexts, SourcesLook, SourcesOrder},
    step7_permission_gate::path_resolution::PathEntry,
    turn::input::SettingsRead,
};

use super::real_paths::look_up;

/// Where a session's files lie, and how far they are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionDirs {
    /// The working directory; absolute.
    pub workspace: PathBuf,
    /// The worktree below it that a sub-agent works in; what is read is read from the workspace.
    pub worktree: Option<PathBuf>,
    /// The user's home directory.
    pub home: PathBuf,
    /// The user's configuration directory: `CLAUDE_CONFIG_DIR`, else `~/.claude`.
    pub config: PathBuf,
    /// The directory for temporary files.
    pub temporary: PathBuf,
    /// The directory of the organisation's settings, if there is one.
    pub managed: Option<PathBuf>,
    /// What a repository's own files may change.
    pub trust: Trust,
    /// Whose files are read next to those of the organisation.
    pub sources: SettingSources,
    /// Patterns of the paths that `Read` deny rules hide; instruction files import none of them.
    pub hidden: Arc<[String]>,
    /// Globs of the instruction files that settings leave out; those of the organisation are read.
    pub excludes: Arc<[String]>,
}

impl SessionDirs {
    /// Returns the directory that the agent works in: the worktree, if it has one.
    pub(super) fn directory(&self) -> &Path {
        self.worktree.as_ref().unwrap_or(&self.workspace)
    }
}

/// Gives a session what it would otherwise read from files, such as from a database.
pub trait SourceFiles: Send + Sync + fmt::Debug {
    /// Returns the settings layers that hold now, of one scope in the order
    /// in which they are merged. Called once per turn, so that a new rule
    /// holds for the next one.
    ///
    /// # Errors
    ///
    /// When settings are there and cannot be read: without their rules no turn may run.
    fn settings(&self, dirs: &SessionDirs) -> BoxFuture<'static, io::Result<Vec<LayerText>>>;

    /// Returns what contributes to the nine sources. Called once per session.
    fn sources(&self, dirs: &SessionDirs) -> BoxFuture<'static, SourceTexts>;
}

/// State of the settings files when they were last read, strongest first.
pub type Fingerprints = Arc<[Fingerprint]>;

/// State of a settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Whose settings it holds.
    pub scope: Scope,
    /// Path of the file.
    pub path: PathBuf,
    /// Modification time in nanoseconds, size, inode; `None`: it is not there. Of a layer of an embedder
    /// its digest and its length in bytes.
    pub state: Option<(i128, u64, u64)>,
    /// Why it cannot be read as settings, where its earlier content goes on to hold.
    pub broken: Option<Arc<str>>,
}

impl Fingerprint {
    /// Whether the file is as it was then.
    fn is_as(&self, then: &Self) -> bool {
        (self.scope, &self.path, self.state) == (then.scope, &then.path, then.state)
    }
}

/// Reads what a session takes from files, and only what changed.
pub trait SourceLookup: Send + Sync + fmt::Debug {
    /// Returns the settings layers of a place, or that they are as they were at `known`.
    ///
    /// # Errors
    ///
    /// When a file is there and cannot be read: without its rules a turn must not run.
    fn settings(
        &self,
        dirs: &SessionDirs,
        known: Option<&Fingerprints>,
    ) -> BoxFuture<'static, io::Result<(SettingsRead, Fingerprints)>>;

    /// Returns a function that tells what is at an absolute path of this machine now. A link at its end is not followed.
    fn entries(&self) -> Box<dyn FnMut(&str) -> PathEntry + '_> {
        Box::new(look_up)
    }

    /// Returns what the files of these directories contribute to the nine sources.
    fn sources(&self, dirs: &SessionDirs) -> BoxFuture<'static, SourceTexts>;

    /// Returns what a later look finds, or that all is as it was at the marks of the order. Finds
    /// nothing new unless it is implemented.
    fn look(&self, _place: &SessionDirs, _order: &SourcesOrder) -> BoxFuture<'static, SourcesLook> {
        Box::pin(ready(SourcesLook::Unchanged))
    }
}

/// The sources of an embedder, which are asked anew each time. Layers that are as they were before are
/// not merged again.
#[derive(Debug)]
pub(crate) struct OfEmbedder(pub(crate) Arc<dyn SourceFiles>);

impl SourceLookup for OfEmbedder {
    fn settings(
        &self,
        dirs: &SessionDirs,
        known: Option<&Fingerprints>,
    ) -> BoxFuture<'static, io::Result<(SettingsRead, Fingerprints)>> {
        let (layers, known) = (self.0.settings(dirs), known.cloned());
        Box::pin(async move {
            let layers = layers.await?;
            let seen: Vec<Fingerprint> = layers.iter().map(of_layer).collect();
            Ok(match known.filter(|it| are_as(&seen, it)) {
                Some(known) => (SettingsRead::Unchanged, known),
                None => (SettingsRead::Layers(layers), seen.into()),
            })
        })
    }

    fn sources(&self, dirs: &SessionDirs) -> BoxFuture<'static, SourceTexts> {
        self.0.sources(dirs)
    }
}

/// Returns the state of a layer that is not a file: the digest of its text, and its length.
fn of_layer(layer: &LayerText) -> Fingerprint {
    let digest = i128::from_le_bytes(Digest::of(layer.text.as_bytes()).0);
    let n_bytes = layer.text.len() as u64;
    Fingerprint {
        scope: layer.scope,
        path: PathBuf::from(&layer.source),
        state: Some((digest, n_bytes, 0)),
        broken: None,
    }
}

/// Returns whether all settings files are as they were then.
pub(super) fn are_as(now: &[Fingerprint], then: &[Fingerprint]) -> bool {
    now.len() == then.len() && now.iter().zip(then).all(|(now, then)| now.is_as(then))
}
