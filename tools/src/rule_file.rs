//! Keeps rules in a settings file: at once or not at all, with everything else in it as it was.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

use ennead_runtime::approval::{
    RuleUpdate,
    rule_file::{NotSettings, with_rules},
};

use crate::{
    paths::{Directory, OpenError},
    source_file::MAX_TEXT,
};

/// How often the lock of a directory is tried, and how long it is waited for in between.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Why a rule is not kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuleFileError {
    /// The file or its directory is a link, no regular file, or cannot be opened or written.
    #[error("{}: {why}", path.display())]
    File {
        /// The path of the file, as it was asked for.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The file holds no settings.
    #[error("{}: {cause}", path.display())]
    NotSettings {
        /// The path of the file, as it was asked for.
        path: PathBuf,
        /// What is wrong with its text.
        #[source]
        cause: NotSettings,
    },
}

/// Adds rules to the settings file `name` of the directory `below` that itself is in `root`. Directory
/// and file are made where they are missing; neither may be a link. Blocks for at most about a second.
///
/// # Errors
///
/// [`RuleFileError`]; the file is then as it was.
pub fn keep_rules(
    root: &Path,
    below: Option<&str>,
    name: &str,
    rules: &[RuleUpdate],
) -> Result<(), RuleFileError> {
    let written = below.map_or_else(|| root.to_owned(), |it| root.join(it)).join(name);
    let failed = |why: String| RuleFileError::File { path: written.clone(), why };
    let real = match root.canonicalize() {
        Ok(real) => real,
        // Only the place of the user's own settings may be missing.
        Err(_) if below.is_none() => root.to_owned(),
        Err(error) => return Err(failed(error.to_string())),
    };
    let directory = below.map_or_else(|| real.clone(), |it| real.join(it));
    let directory =
        Directory::open_or_make(&directory).map_err(|error| failed(error.to_string()))?;
    let lock = directory.lock(TRIES, PAUSE).map_err(|error| failed(error.to_string()))?;
    let (text, permissions) = match directory.open_file(name.as_ref()) {
        Ok(file) => {
            let permissions = file.metadata().map_err(|it| failed(it.to_string()))?.permissions();
            (read(file).map_err(failed)?, Some(permissions))
        }
        Err(OpenError::Missing) => (String::new(), None),
        Err(error) => return Err(failed(error.to_string())),
    };
    let changed = with_rules(&text, rules)
        .map_err(|cause| RuleFileError::NotSettings { path: written.clone(), cause })?;
    if changed == text {
        return Ok(());
    }
    let prepared = directory.prepare(name.as_ref(), changed.as_bytes(), permissions);
    let put = prepared.and_then(|it| it.commit()).map_err(|error| failed(error.to_string()));
    drop(lock);
    put
}

fn read(file: File) -> Result<String, String> {
    let mut text = String::new();
    let read = file.take(MAX_TEXT + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    if MAX_TEXT < text.len() as u64 {
        Err(format!("it has more than {MAX_TEXT} bytes"))
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
        thread,
    };

    use super::*;

    fn rules() -> [RuleUpdate; 1] {
        [RuleUpdate::allow("Bash(make)")]
    }

    // REQ: PRM-9
    #[test]
    fn rule_is_kept_with_the_rest_of_the_file_and_its_permissions() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        keep_rules(&root, Some(".claude"), "settings.json", &rules()).unwrap();
        let file = root.join(".claude/settings.json");
        assert!(fs::read_to_string(&file).unwrap().contains(r#""Bash(make)""#));
        fs::write(&file, r#"{"z": 1, "permissions": {"allow": []}, "own": [ 2 ]}"#).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        keep_rules(&root, Some(".claude"), "settings.json", &rules()).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with(r#"{"z": 1, "#) && text.ends_with(r#""own": [ 2 ]}"#), "{text}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let left: Vec<_> = fs::read_dir(root.join(".claude")).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    // REQ: PRM-9
    #[test]
    fn link_and_text_that_is_none_of_settings_take_no_rule() {
        let (place, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = place.path().canonicalize().unwrap();
        let outside = other.path().canonicalize().unwrap().join("settings.json");
        fs::write(&outside, "{}").unwrap();
        let check = |why: &str| {
            let error = keep_rules(&root, Some(".claude"), "settings.json", &rules()).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(fs::read_to_string(&outside).unwrap(), "{}");
        };
        symlink(other.path().canonicalize().unwrap(), root.join(".claude")).unwrap();
        check("leads elsewhere");
        fs::remove_file(root.join(".claude")).unwrap();
        fs::create_dir(root.join(".claude")).unwrap();
        symlink(&outside, root.join(".claude/settings.json")).unwrap();
        check("leads elsewhere");
        fs::remove_file(root.join(".claude/settings.json")).unwrap();
        fs::write(root.join(".claude/settings.json"), "not json").unwrap();
        check("not JSON");
        assert_eq!(fs::read_to_string(root.join(".claude/settings.json")).unwrap(), "not json");
    }

    // REQ: PRM-9
    #[test]
    fn rules_that_are_added_at_the_same_time_are_all_kept() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        thread::scope(|scope| {
            for i in 0..8 {
                let root = &root;
                scope.spawn(move || {
                    let rule = [RuleUpdate::allow(format!("Bash(make {i})"))];
                    keep_rules(root, None, "settings.json", &rule).unwrap();
                });
            }
        });
        let text = fs::read_to_string(root.join("settings.json")).unwrap();
        assert_eq!(text.matches("Bash(make ").count(), 8, "{text}");
    }
}
