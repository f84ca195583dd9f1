//! Glob: files by the pattern of their path, the newest first.
//!
//! Ignore files do not count and dot files do, as a search for names should find what is there;
//! `CLAUDE_CODE_GLOB_HIDDEN=false` and `CLAUDE_CODE_GLOB_NO_IGNORE=false` turn that round. The
//! directories of version control are left out unless the pattern names one.

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use ennead_runtime::{
    ports::ToolContext,
    tool::{ToolOutcome, ToolSpec},
};
use globset::GlobSet;
use ignore::{DirEntry, WalkBuilder, overrides::Override};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{
    blocking::interrupted,
    built_in::{AtPath, BuiltIn, BuiltInCall, at_path, reading_spec},
    declared::millis,
    globs,
    hidden::Hidden,
    walk::{self, Filter, IgnoreFiles, SearchRoot, VersionControl},
};

/// Paths that are listed.
const MAX_LISTED: usize = 100;

pub(crate) struct Glob;

/// A pattern and where to look.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GlobInput {
    /// Matches paths relative to the directory: `**/*.rs`, `src/*.{ts,tsx}`.
    pattern: String,
    /// The directory to look in; the working directory if left out.
    #[expect(dead_code, reason = "the permit carries it, resolved")]
    path: Option<String>,
}

impl BuiltIn for Glob {
    type Input = GlobInput;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        let description = "Finds files by name. `*` stays within a directory, `**` crosses them: \
                `*.rs` finds files in the directory itself, `**/*.rs` at any depth. Lists up to \
                100 paths, most recently changed first, dot files and ignored files included.";
        reading_spec("Glob", description, input_schema, "path")
            .with_output_cap(100_000)
            .with_timeout_ms(20_000)
    }

    async fn call(call: BuiltInCall<GlobInput>, context: ToolContext) -> ToolOutcome {
        at_path(call, context, search).await
    }
}

fn search(call: AtPath<'_, GlobInput>) -> Result<ToolOutcome, String> {
    let AtPath { context, stop, .. } = call;
    let (pattern, root) = (&*call.input.pattern, &SearchRoot::of(call.path));
    let start = context.clock.elapsed();
    let matcher = compile(pattern, root)?;
    let hidden = Hidden::new(call.hidden);
    if !root.real.is_dir() {
        let what = if root.real.exists() { "is not a directory" } else { "does not exist" };
        return Err(format!("{} {what}.", root.named.display()));
    }
    let mut builder = WalkBuilder::new(&root.real);
    builder.standard_filters(false).hidden(!flag(context, "CLAUDE_CODE_GLOB_HIDDEN"));
    let ignore_files = if flag(context, "CLAUDE_CODE_GLOB_NO_IGNORE") {
        IgnoreFiles::None
    } else {
        IgnoreFiles::OfGit
    };
    let version_control = if pattern.contains(".git") || pattern.contains(".svn") {
        VersionControl::Shown
    } else {
        VersionControl::LeftOut
    };

    let mut newest: BTreeSet<(Reverse<SystemTime>, PathBuf)> = BTreeSet::new();
    let (mut n_found, mut n_unreadable) = (0_u64, 0_u64);
    let filter = Filter { hidden, ignore_files, wanted: Override::empty(), version_control };
    for entry in walk::entries(&mut builder, root, filter) {
        if stop.is_set() {
            return Ok(interrupted());
        }
        let Ok(entry) = entry else {
            n_unreadable += 1;
            continue;
        };
        let below = entry.path().strip_prefix(&root.real).unwrap_or(entry.path());
        if !is_file(&entry) || !matcher.is_match(below) {
            continue;
        }
        n_found += 1;
        let changed = entry.metadata().ok().and_then(|metadata| metadata.modified().ok());
        let changed = changed.unwrap_or(SystemTime::UNIX_EPOCH);
        newest.insert((Reverse(changed), root.name(entry.path())));
        if newest.len() > MAX_LISTED {
            newest.pop_last();
        }
    }

    let names: Vec<String> =
        newest.iter().map(|(_, path)| path.to_string_lossy().into_owned()).collect();
    let truncated = n_found > names.len() as u64;
    let mut text = if names.is_empty() { "No files found".into() } else { names.join("\n") };
    if truncated {
        text.push_str(&format!("\n(showing {} of {n_found} files)", names.len()));
    }
    if n_unreadable > 0 {
        text.push_str(&format!("\n({n_unreadable} paths could not be read)"));
    }
    Ok(ToolOutcome::ok(text).with_structured(&json!({
        "durationMs": millis(context.clock.elapsed().saturating_sub(start)),
        "numFiles": names.len(),
        "filenames": names,
        "truncated": truncated,
        "totalMatches": n_found,
        "countIsComplete": n_unreadable == 0,
    })))
}

/// A pattern for paths below the root. An absolute one may name a place below it.
fn compile(pattern: &str, root: &SearchRoot) -> Result<GlobSet, String> {
    if pattern.contains('\0') {
        return Err("The pattern has a NUL byte in it.".into());
    }
    let relative = if pattern.starts_with('/') {
        [&root.named, &root.real]
            .into_iter()
            .find_map(|base| Path::new(pattern).strip_prefix(base).ok()?.to_str())
            .ok_or_else(|| {
                format!(
                    "The pattern {pattern} is not below {}. Give the directory as `path` and a \
                     relative pattern.",
                    root.named.display()
                )
            })?
    } else {
        pattern.strip_prefix("./").unwrap_or(pattern)
    };
    if relative.split('/').any(|part| part == "..") {
        return Err("The pattern leaves the directory with `..`; give `path` instead.".into());
    }
    globs::compile(relative).map_err(|error| error.to_string())
}

/// A file, or a link to one.
fn is_file(entry: &DirEntry) -> bool {
    let kind = entry.file_type();
    kind.is_some_and(|kind| kind.is_file())
        || kind.is_some_and(|kind| kind.is_symlink()) && entry.path().is_file()
}

/// Whether a setting is on, which it is by default.
fn flag(context: &ToolContext, name: &str) -> bool {
    let value = context.env.iter().rev().find(|(key, _)| key == name);
    !value.is_some_and(|(_, value)| matches!(value.to_lowercase().as_str(), "0" | "false" | "no"))
}

#[cfg(test)]
mod tests;
