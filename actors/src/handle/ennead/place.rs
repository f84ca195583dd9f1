//! Where a session works, and where its transcript lies.

use std::{io, sync::Arc};

use ennead_runtime::step7_permission_gate::PathKind;

use crate::{
    options::SessionOptions,
    ports::{
        errors::OpenError,
        transcript_store::{guard, layout::Layout},
    },
    world::{environment::Environment, real_paths::RealPaths, source_files::SessionDirs},
};

/// Finds the directories that a session works with.
pub(super) fn place(
    environment: &Environment,
    options: &SessionOptions,
    real_paths: &mut RealPaths,
) -> Result<SessionDirs, OpenError> {
    let failed = |cause| OpenError::Workspace { path: options.workspace.clone(), cause };
    let workspace = std::path::absolute(&options.workspace).map_err(failed)?;
    if real_paths.follow(&workspace) != Some(PathKind::Directory) {
        // This says why; and it can look at names that are not text.
        let found = std::fs::metadata(&workspace).map_err(failed)?;
        if !found.is_dir() {
            return Err(failed(io::Error::from(io::ErrorKind::NotADirectory)));
        }
    }
    let home = options.home.clone().unwrap_or_else(|| environment.home_directory());
    let home = std::path::absolute(&home).unwrap_or(home);
    Ok(SessionDirs {
        config: environment.config_directory().unwrap_or_else(|| home.join(".claude")),
        workspace,
        worktree: None,
        home,
        temporary: environment.temporary_directory(),
        managed: environment.managed_directory(),
        trust: options.trust,
        sources: options.setting_sources,
        hidden: Arc::default(),
        excludes: Arc::default(),
    })
}

/// Returns where the transcripts of a session lie.
pub(super) fn layout(
    environment: &Environment,
    options: &SessionOptions,
    dirs: &SessionDirs,
) -> Result<Layout, OpenError> {
    match (&options.transcripts, environment.config_directory()) {
        (Some(root), _) => {
            Ok(Layout::new(std::path::absolute(root).unwrap_or_else(|_| root.clone())))
        }
        (None, Some(_)) => Ok(Layout::sdk(&dirs.config, &dirs.workspace.to_string_lossy())),
        (None, None) => {
            let root = dirs.workspace.join(".transcripts");
            guard::prepare(&root).map_err(OpenError::UnsafeTranscripts)?;
            Ok(Layout::new(root))
        }
    }
}
