//! Keys of providers, out of the environment that other processes can read.
//!
//! `/proc/<pid>/environ` shows what a process was started with, for as long as it lives, to every
//! process of its user and to root: to each command that a model runs. So a process that finds a key
//! there starts itself once more without it. The keys come along through a socket that takes the place
//! of standard input, which travels in the same message and is put back; no file, no variable and no
//! argument ever holds them.

#[cfg(target_os = "linux")]
mod again;

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    sync::OnceLock,
};

use ennead_runtime::step1_settings_resolution::secrets::PROVIDER_KEYS;

/// What was taken out of the environment of this process, by name.
static WITHDRAWN: OnceLock<Variables> = OnceLock::new();

/// Names the socket, by its inode, to the program that starts anew. Nothing below it gets the variable;
/// one that did would have another standard input.
pub const SOCKET: &str = "ENNEAD_WITHDRAWN_KEYS";

type Variables = BTreeMap<OsString, OsString>;

/// Characters of a value that is looked for in others. A shorter one could be a part of any.
const MIN_BYTES: usize = 8;

/// Takes the keys of providers, and variables that hold a copy of one, out of the environment of this
/// process. To be called at the start of `main`, before there are threads: if there is something to
/// take out, the program starts anew in this process, under the same number and with the same
/// arguments, files and terminal. On other systems than Linux nothing is done.
///
/// # Errors
///
/// When the system does not let the program start anew; then everything is as it was.
pub fn withdraw() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        if let Some(arrived) = again::arrive()? {
            let _first = WITHDRAWN.set(arrived);
            return Ok(());
        }
        let withdrawn = secrets(std::env::vars_os());
        if !withdrawn.is_empty() {
            return Err(again::start(&withdrawn));
        }
    }
    Ok(())
}

/// Hides the memory and the environment of this process from other processes of its user: no
/// `/proc/<pid>/{environ,mem,fd}`, no debugger, no core file. Processes that it starts are not concerned, nor are those
/// with `CAP_SYS_PTRACE`, `CAP_PERFMON` or `CAP_SYS_ADMIN`, which root usually has. On other systems than Linux nothing
/// is done.
///
/// # Errors
///
/// When the system does not.
pub fn hide_memory() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

/// Returns a variable that this process was started with, taken out or not.
pub fn variable(name: impl AsRef<OsStr>) -> Option<OsString> {
    let taken = WITHDRAWN.get().and_then(|it| it.get(name.as_ref()).cloned());
    taken.or_else(|| std::env::var_os(name))
}

/// Returns a variable as [`variable`] does, as text; `None` also when it is not UTF-8.
pub fn text(name: &str) -> Option<String> {
    variable(name).and_then(|it| it.into_string().ok())
}

/// Returns all variables that this process was started with.
pub fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    withdrawn().map(|(name, value)| (name.to_owned(), value.to_owned())).chain(std::env::vars_os())
}

/// Returns the variables that were taken out, and that nothing inherits.
pub(crate) fn withdrawn() -> impl Iterator<Item = (&'static OsStr, &'static OsStr)> {
    let all = WITHDRAWN.get().into_iter().flatten();
    all.map(|(name, value)| (name.as_os_str(), value.as_os_str()))
}

/// The keys among these variables, and those that hold a copy of one.
#[cfg(target_os = "linux")]
fn secrets(all: impl Iterator<Item = (OsString, OsString)>) -> Variables {
    use std::os::unix::ffi::OsStrExt as _;
    let is_key = |name: &OsStr| PROVIDER_KEYS.iter().any(|it| name == *it);
    let (mut keys, others): (Variables, Variables) = all.partition(|(name, _)| is_key(name));
    let values: Vec<OsString> = keys.values().filter(|it| MIN_BYTES <= it.len()).cloned().collect();
    let holds_one = |value: &OsStr| {
        let value = value.as_bytes();
        values.iter().any(|key| value.windows(key.len()).any(|it| it == key.as_bytes()))
    };
    keys.extend(others.into_iter().filter(|(_, value)| holds_one(value)));
    keys
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn keys_and_their_copies_are_taken_out_and_nothing_else() {
        let key = "sk-test-0123456789";
        let all = [
            ("OPENAI_API_KEY", key),
            ("COPY", &format!("Bearer {key}")),
            ("XAI_API_KEY", "short"),
            ("WORD", "a short word"),
            ("PATH", "/bin"),
            ("GROQ_API_KEY", ""),
        ]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let taken = secrets(all.into_iter());
        let names: Vec<_> = taken.keys().filter_map(|it| it.to_str()).collect();
        assert_eq!(names, ["COPY", "GROQ_API_KEY", "OPENAI_API_KEY", "XAI_API_KEY"]);
    }
}
