//! Protected paths: places where a write can make somebody else's program run something.
//!
//! The lists are data. No rule and no mode lets a write to them pass unasked (cases B4).

use super::{path_rule::fold, rule::wildcard};

/// Directories, at any depth.
const DIRECTORIES: &[&str] = &[
    ".git",
    ".claude",
    ".ssh",
    ".vscode",
    ".idea",
    ".husky",
    ".cargo",
    ".devcontainer",
    ".yarn",
    ".mvn",
];

/// Files, at any depth; those of cases B4 and more.
const FILES: &[&str] = &[
    ".gitconfig",
    ".gitmodules",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_aliases",
    ".bash_logout",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".profile",
    ".envrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".pnpmfile.cjs",
    "bunfig.toml",
    ".bunfig.toml",
    ".bazelrc",
    ".bazelversion",
    ".bazeliskrc",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".lefthook.yaml",
    "gradle-wrapper.properties",
    "maven-wrapper.properties",
    ".devcontainer.json",
    ".ripgreprc",
    "pyrightconfig.json",
    ".mcp.json",
    ".claude.json",
];

/// Returns whether a write to this path must be asked. Paths are compared composed and without case.
pub(crate) fn is_protected(path: &str) -> bool {
    // Each of the names has a dot.
    if !path.contains('.') {
        return false;
    }
    let path = fold(path);
    let parts: Vec<&str> = path.split('/').filter(|it| !it.is_empty() && *it != ".").collect();
    if parts.last().is_some_and(|last| FILES.contains(last)) {
        return true;
    }
    parts.iter().enumerate().any(|(i, part)| match *part {
        ".claude" => parts.get(i + 1) != Some(&"worktrees"),
        ".config" => parts.get(i + 1) == Some(&"git"),
        part => DIRECTORIES.contains(&part),
    })
}

/// Returns whether a path with a pattern in it may name a protected one. Patterns match no name that begins with a dot
/// unless they do so themselves. What is removed runs nothing, so of other names only those count that begin like the
/// pattern: `*` and `*.json` meet some everywhere.
pub(super) fn may_be_protected(path: &str, is_removed: bool) -> bool {
    let path = fold(path);
    let has_glob = |it: &&str| it.contains(['*', '?', '[']);
    path.split('/').filter(has_glob).any(|part| {
        // From its first bracket on anything may follow.
        let begin = part.find('[').unwrap_or(part.len());
        let mut pattern = part[..begin].replace('?', "*");
        if begin < part.len() {
            pattern.push('*');
        }
        let names = DIRECTORIES.iter().chain(FILES);
        let is_like = |it: &&&str| {
            if it.starts_with('.') {
                part.starts_with(['.', '['])
            } else {
                !(part.starts_with('.') || is_removed && part.starts_with(['*', '?']))
            }
        };
        names.filter(is_like).any(|it| wildcard(&pattern, it))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: PRM-4
    #[test]
    fn names_are_protected_at_any_depth_and_in_any_case() {
        for path in [
            "/w/.git/config",
            "/w/a/.GIT/x",
            "/w/.claude/s.json",
            "/w/.config/git/x",
            "/w/.MCP.json",
        ] {
            assert!(is_protected(path), "{path}");
        }
        for path in ["/w/.claude/worktrees/a/b.rs", "/w/.gitignore", "/w/.config/x", "/w/git/x"] {
            assert!(!is_protected(path), "{path}");
        }
        assert!(is_protected("/w/.claude/worktrees/a/.git/config"));
    }
}
