//! What a confined command may do: a pure description, which a helper of the tools puts into force.

mod hosts;
mod settings;

use serde::{Deserialize, Serialize};

pub use hosts::{Host, HostRules, is_public, within_ipv6};
pub use settings::{SandboxNetwork, SandboxSettings};

/// Below the home directory: keys, tokens and what shells remember of what was typed.
const PRIVATE_OF_HOME: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".vault-token",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".local/share/keyrings",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".claude.json",
    ".claude/.credentials.json",
    ".claude/projects",
    ".claude/history.jsonl",
];

/// Of the system: what is the administrator's alone, and devices; of those a few are given back.
const PRIVATE_OF_SYSTEM: &[&str] = &[
    "/boot",
    "/dev",
    "/etc/NetworkManager/system-connections",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/krb5.keytab",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/wireguard",
    "/run/secrets",
    "/run/user",
    "/sys/kernel/debug",
    "/var/backups",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/var/spool/cron",
];

/// What a confined command may do. All paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SandboxPolicy {
    /// Files and directories that may be read and written.
    pub write: Vec<String>,
    /// Files of this command alone, which it may read and write. What is not a regular file with this one name, or a link by
    /// then, is not given to it.
    #[serde(default)]
    pub own_files: Vec<String>,
    /// Those that may be read though they lie in what is not.
    pub read: Vec<String>,
    /// Those that may not be read nor written, also where they lie in what may.
    pub deny: Vec<String>,
    /// The home directory of the user: that of every other user may not be read.
    pub user_home: String,
    /// Whether it reaches a network.
    pub network: SandboxNetwork,
    /// Which hosts, where only some are.
    pub hosts: HostRules,
    /// Its home directory, which is made and may be written; `None`: the user's.
    pub home: Option<String>,
    /// Its temporary directory, which is made and may be written; `None`: it has none. Settings seldom name one, so
    /// [`SandboxPolicy::with_temporary`] is to name that of the command.
    pub tmpdir: Option<String>,
}

#[doc(hidden)]
impl SandboxPolicy {
    /// Returns the policy with a temporary directory: the one of the settings, else the `TMPDIR` of the command's own
    /// variables, else `directory`.
    #[must_use]
    pub fn with_temporary(mut self, of_command: Option<&str>, directory: &str) -> Self {
        let by_variable = of_command.filter(|it| !it.is_empty()).unwrap_or(directory);
        self.tmpdir.get_or_insert_with(|| by_variable.to_owned());
        self
    }
}

/// Where a session is at home, as the sandbox needs it. All paths are absolute.
#[derive(Clone, Copy, Debug)]
pub struct SandboxPlaces<'a> {
    /// The directory that is worked in.
    pub workspace: &'a str,
    /// The home directory of the user.
    pub home: &'a str,
    /// The directory of all transcripts, if it is known.
    pub transcripts: Option<&'a str>,
}

/// The sandbox of a session: what is confined, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// What a confined command may do.
    #[doc(hidden)]
    pub policy: SandboxPolicy,
    /// Patterns of commands that are not confined.
    excluded: Vec<String>,
    /// Whether a call may ask for its command to run outside.
    allow_unsandboxed: bool,
}

#[doc(hidden)]
impl Sandbox {
    /// Returns the sandbox that settings ask for; `None` where they ask for none.
    pub fn of(
        settings: &SandboxSettings,
        additional: &[String],
        places: SandboxPlaces<'_>,
    ) -> Option<Self> {
        if !settings.enabled {
            return None;
        }
        let at = |path: &String| absolute(path, places);
        let home = places.home.trim_end_matches('/');
        let allowed: Vec<String> = settings.allow_read.iter().map(at).collect();
        let private = PRIVATE_OF_HOME.iter().map(|it| format!("{home}/{it}"));
        let system = PRIVATE_OF_SYSTEM.iter().map(|&it| it.to_owned());
        // A workspace that holds the transcripts could not get a new file in it without them.
        let transcripts = places.transcripts.filter(|it| !lies_in(it, places.workspace));
        let by_default = private.chain(system).chain(transcripts.map(str::to_owned));
        let deny = by_default
            .filter(|it| !allowed.iter().any(|allowed| lies_in(it, allowed)))
            .chain(settings.deny_read.iter().map(at))
            .collect();
        let own = [places.workspace.to_owned()];
        let write = own.into_iter().chain(additional.iter().chain(&settings.allow_write).map(at));
        let policy = SandboxPolicy {
            write: write.collect(),
            own_files: Vec::new(),
            read: allowed,
            deny,
            user_home: home.to_owned(),
            network: settings.network,
            hosts: settings.hosts.clone(),
            home: settings.home.as_ref().map(at),
            tmpdir: settings.tmpdir.as_ref().map(at),
        };
        let (excluded, allow_unsandboxed) = (settings.excluded.clone(), settings.allow_unsandboxed);
        Some(Self { policy, excluded, allow_unsandboxed })
    }

    /// Returns the sandbox with a temporary directory, as [`SandboxPolicy::with_temporary`] chooses it.
    #[must_use]
    pub fn with_temporary(&self, variables: &[(String, String)], directory: &str) -> Self {
        let own = variables.iter().rfind(|it| it.0 == "TMPDIR").map(|it| it.1.as_str());
        let policy = self.policy.clone().with_temporary(own, directory);
        Self { policy, ..self.clone() }
    }

    /// Returns what confines this command; `None`: it is excluded, or `leaves`, its call's wish to run it outside the
    /// sandbox, is allowed.
    pub fn policy_for(&self, command: &str, leaves: bool) -> Option<&SandboxPolicy> {
        let is_free = leaves && self.allow_unsandboxed || is_excluded(&self.excluded, command);
        (!is_free).then_some(&self.policy)
    }
}

/// Returns whether a command is one of those that are not confined. Only a single command of plain words and quotes is:
/// what the shell has yet to work out could be anything.
pub(crate) fn is_excluded(patterns: &[String], command: &str) -> bool {
    let is_open = |c: char| {
        matches!(c, '\0'..='\x1f' | ';' | '|' | '&' | '<' | '>' | '(' | ')')
            || matches!(c, '$' | '`' | '{' | '}' | '\\' | '#' | '!' | '*' | '?' | '[' | '~')
    };
    let command = command.trim();
    if patterns.is_empty() || command.contains(is_open) {
        return false;
    }
    let words: Vec<&str> = command.split(' ').filter(|it| !it.is_empty()).collect();
    patterns.iter().any(|pattern| {
        let pattern = pattern.trim();
        let prefix = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
        let wanted: Vec<&str> = prefix.unwrap_or(pattern).split_whitespace().collect();
        match prefix {
            Some(_) => words.starts_with(&wanted),
            None => words == wanted,
        }
    })
}

/// `/x` as it is, `~/x` below the home directory, anything else below the workspace.
fn absolute(path: &String, places: SandboxPlaces<'_>) -> String {
    match path.strip_prefix("~/") {
        Some(rest) => format!("{}/{rest}", places.home),
        None if path == "~" => places.home.to_owned(),
        None if path.starts_with('/') => path.clone(),
        None => format!("{}/{}", places.workspace, path.strip_prefix("./").unwrap_or(path)),
    }
}

fn lies_in(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: SandboxPlaces<'_> =
        SandboxPlaces { workspace: "/w", home: "/home/u", transcripts: Some("/home/u/.t") };

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|&it| it.to_owned()).collect()
    }

    // REQ: TOL-10
    #[test]
    fn keys_and_transcripts_are_denied_and_the_workspace_is_writable() {
        let settings = SandboxSettings {
            enabled: true,
            allow_write: texts(&["~/cache", "out"]),
            allow_read: texts(&["~/.aws"]),
            deny_read: texts(&["./secret"]),
            tmpdir: Some("~/tmp".into()),
            ..SandboxSettings::default()
        };
        let policy = Sandbox::of(&settings, &texts(&["/more"]), PLACES).unwrap().policy;
        assert_eq!(policy.write, ["/w", "/more", "/home/u/cache", "/w/out"]);
        for denied in ["/home/u/.ssh", "/etc/shadow", "/dev", "/home/u/.t", "/w/secret"] {
            assert!(policy.deny.iter().any(|it| it == denied), "{denied}: {:?}", policy.deny);
        }
        assert!(!policy.deny.iter().any(|it| it == "/home/u/.aws"));
        assert_eq!(policy.tmpdir.as_deref(), Some("/home/u/tmp"));
        assert_eq!(policy.network, SandboxNetwork::Off);
        assert_eq!(Sandbox::of(&SandboxSettings::default(), &[], PLACES), None);
    }

    #[test]
    fn temporary_directory_is_that_of_the_settings_else_of_the_variables_else_of_the_host() {
        let mut settings = SandboxSettings { enabled: true, ..SandboxSettings::default() };
        let of_command = [("TMPDIR".to_owned(), "/of/command".to_owned())];
        let chosen = |settings: &SandboxSettings, variables: &[(String, String)]| {
            let sandbox = Sandbox::of(settings, &[], PLACES).unwrap();
            sandbox.with_temporary(variables, "/of/host").policy.tmpdir
        };
        assert_eq!(chosen(&settings, &[]).as_deref(), Some("/of/host"));
        let removed = [("TMPDIR".to_owned(), String::new())];
        assert_eq!(chosen(&settings, &removed).as_deref(), Some("/of/host"));
        assert_eq!(chosen(&settings, &of_command).as_deref(), Some("/of/command"));
        settings.tmpdir = Some("/of/settings".into());
        assert_eq!(chosen(&settings, &of_command).as_deref(), Some("/of/settings"));
    }

    // REQ: TOL-10
    #[test]
    fn call_leaves_the_sandbox_only_where_settings_let_it() {
        let mut settings = SandboxSettings { enabled: true, ..SandboxSettings::default() };
        let confines = |settings: &SandboxSettings, leaves| {
            let sandbox = Sandbox::of(settings, &[], PLACES).unwrap();
            sandbox.policy_for("make", leaves).is_some()
        };
        assert!(confines(&settings, false) && !confines(&settings, true));
        settings.allow_unsandboxed = false;
        assert!(confines(&settings, false) && confines(&settings, true));
    }

    // REQ: TOL-10
    #[test]
    fn only_a_plain_command_is_excluded() {
        let patterns = texts(&["docker *", "gh:*", "make test"]);
        for (command, expected) in [
            ("docker ps", true),
            ("  docker   run 'x y'", true),
            ("docker", true),
            ("dockerd", false),
            ("gh pr list", true),
            ("make test", true),
            ("make test all", false),
            ("docker ps; curl x", false),
            ("docker $(curl x)", false),
            ("docker ps\ncurl x", false),
            ("A=1 docker ps", false),
            ("docker ps & curl x", false),
            ("docker ps > /etc/x", false),
        ] {
            assert_eq!(is_excluded(&patterns, command), expected, "{command}");
        }
    }
}
