//! Programs that go through links which they meet while they go through a directory.
//!
//! The command does not name such a link, so no path of the command shows where it leads.

use super::{
    CommandContext, CommandPart,
    changes::Changes,
    dirs::PathTarget,
    escapes::call,
    named::{named, shortened},
    options::{has_letter, is_cluster, is_long},
    part::base,
};
use crate::step7_permission_gate::shell::word::Word;

/// A program, and the options with which it follows links that it meets.
struct Follows {
    names: &'static [&'static str],
    /// Letters, one of which makes it go through directories; none where it always does.
    recurses: &'static str,
    long_recurses: &'static [&'static str],
    /// Letters, one of which makes it follow links.
    follows: &'static str,
    long_follows: &'static [&'static str],
    /// Letters whose value is the rest of the cluster.
    valued: &'static str,
}

/// Sources: GNU grep 3.8, coreutils 9.1 and 9.5, findutils 4.9, tar 1.34; rsync 3.2.7, ripgrep 13, ag 2.2,
/// ack 3.6, fd 8.6, bfs 2.6, tree 2.1, acl 2.3.
const FOLLOWS: [Follows; 9] = [
    Follows {
        names: &["grep", "egrep", "fgrep", "rgrep", "zgrep", "ugrep"],
        recurses: "",
        long_recurses: &[],
        follows: "R",
        long_follows: &["--dereference-recursive"],
        valued: "efmABC",
    },
    Follows {
        names: &["rg", "fd", "fdfind", "bfs", "ack"],
        recurses: "",
        long_recurses: &[],
        follows: "L",
        long_follows: &["--follow"],
        valued: "efgmABC",
    },
    Follows {
        names: &["ag"],
        recurses: "",
        long_recurses: &[],
        follows: "f",
        long_follows: &["--follow"],
        valued: "mABC",
    },
    Follows {
        names: &["cp", "chown", "chgrp", "chmod", "getfacl", "setfacl"],
        recurses: "rRa",
        long_recurses: &["--recursive", "--archive"],
        follows: "L",
        long_follows: &["--dereference", "--logical"],
        valued: "tS",
    },
    Follows {
        names: &["ls", "dir", "vdir"],
        recurses: "R",
        long_recurses: &["--recursive"],
        follows: "L",
        long_follows: &["--dereference"],
        valued: "ITw",
    },
    Follows {
        names: &["du"],
        recurses: "",
        long_recurses: &[],
        follows: "L",
        long_follows: &["--dereference"],
        valued: "BdtX",
    },
    Follows {
        names: &["tree"],
        recurses: "",
        long_recurses: &[],
        follows: "l",
        long_follows: &[],
        valued: "",
    },
    Follows {
        names: &["tar"],
        recurses: "",
        long_recurses: &[],
        follows: "h",
        long_follows: &["--dereference"],
        valued: "bCfgFHIKLNTVX",
    },
    Follows {
        names: &["rsync"],
        recurses: "",
        long_recurses: &[],
        follows: "LkK",
        long_follows: &["--copy-links", "--copy-dirlinks", "--copy-unsafe-links"],
        valued: "BefMT",
    },
];

/// Options with which a program writes through links to directories that it meets where it writes.
const KEEP_LINKS: [&str; 3] =
    ["--keep-dirlinks", "--keep-directory-symlink", "--keep-directory-symlinks"];

/// Variables by which git works elsewhere than where it runs.
const GIT_PLACES: [&str; 6] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
];

/// Notes whether a program goes through links that it meets.
pub(super) fn add(
    name: &str,
    args: &[Word],
    part: &CommandPart,
    around: &CommandContext,
    found: &mut Changes,
) {
    let is_one = |it: &Word, letters: &str, long: &[&str], valued: &str| {
        letters.chars().any(|c| has_letter(&it.text, c, valued))
            || long.iter().any(|long| is_long(&it.text, long))
    };
    let any = |letters: &str, long: &[&str], valued: &str| {
        args.iter().any(|it| is_one(it, letters, long, valued))
    };
    let listed = FOLLOWS.iter().find(|it| it.names.contains(&name)).is_some_and(|it| {
        let has_none = it.recurses.is_empty() && it.long_recurses.is_empty();
        any(it.follows, it.long_follows, it.valued)
            && (has_none || any(it.recurses, it.long_recurses, it.valued))
    });
    let has = |text: &str| args.iter().any(|it| it.text == text);
    let follows = match name {
        "find" => has("-L") || has("-follow") || hands_on_links(args, args, "{}"),
        "fd" | "fdfind" | "bfs" => listed || hands_on_links(args, args, "{}"),
        "xargs" | "parallel" => {
            let before = part.piped.as_ref().map(|it| &*it.words).unwrap_or_default();
            hands_on_links(before, args, replaced(args))
        }
        // Without a dash in front, the first word is a cluster.
        "tar" => listed || args.first().is_some_and(|it| is_cluster(&it.text, 'h')),
        // These follow links unless something keeps them from it.
        "diff" => any("r", &["--recursive"], "FISUWxX") && !any("", &["--no-dereference"], ""),
        "scp" => any("r", &[], "cDFiJloPSX"),
        "zip" => any("r", &["--recurse-paths"], "") && !any("y", &["--symlinks"], ""),
        "7z" | "7za" | "7zr" | "7zz" => has("a") && !args.iter().any(|it| it.text == "-snl"),
        "git" => works_elsewhere(args, part, around),
        _ => listed,
    };
    let acts = |it: &Word| {
        ["-exec", "-ok", "-delete", "-fprint", "-fls"].iter().any(|act| it.text.starts_with(act))
    };
    let alters = match name {
        "find" | "fd" | "fdfind" | "bfs" => {
            args.iter().any(|it| acts(it) || is_one(it, "xX", &["--exec", "--exec-batch"], "efg"))
        }
        "chown" | "chgrp" | "chmod" | "setfacl" => true,
        _ => false,
    };
    let keeps = match name {
        "rsync" => any("K", &KEEP_LINKS, "BefMT"),
        "cp" | "tar" => any("", &KEEP_LINKS, ""),
        _ => false,
    };
    found.follows_links |= follows;
    found.alters_through_links |= follows && alters || keeps;
}

/// Whether a search hands links on to a program, or what lies after what it found: `find -type l -exec cat {}`,
/// `find -exec cat {}/key`. `mark` is what the program's words have in place of a name.
fn hands_on_links(search: &[Word], program: &[Word], mark: &str) -> bool {
    let is_search = |it: &Word| ["find", "fd", "fdfind", "bfs"].contains(&base(&it.text));
    let runs = |it: &Word| {
        let text = it.text.as_str();
        text.starts_with("-exec")
            || text.starts_with("-ok")
            || matches!(text, "-x" | "-X" | "--exec")
    };
    let is_handed = search.first().is_some_and(is_search) || program.iter().any(runs);
    let wants_links = search.windows(2).any(|it| {
        let kinds = matches!(&*it[0].text, "-type" | "-xtype" | "-t" | "--type");
        kinds && it[1].text.contains('l') || matches!(&*it[0].text, "-lname" | "-ilname")
    });
    let below = format!("{mark}/");
    is_handed && wants_links || program.iter().any(|it| it.text.contains(&below))
}

/// What `xargs` and `parallel` replace with a name.
fn replaced(args: &[Word]) -> &str {
    let given = args.iter().enumerate().find_map(|(i, it)| match &*it.text {
        "-I" => args.get(i + 1).map(|it| it.text.as_str()),
        text => text.strip_prefix("-I").or(text.strip_prefix("--replace=")),
    });
    given.unwrap_or("{}")
}

/// Whether a call of git is for another repository or work tree than those of the workspace: what it shows
/// then has other paths than those that rules name.
fn works_elsewhere(args: &[Word], part: &CommandPart, around: &CommandContext) -> bool {
    let is_own = |word: &Word| {
        let file = named(word, part, around);
        let is_known = matches!(file.target, PathTarget::Known(_)) && !file.paths.is_empty();
        is_known
            && file.paths.iter().all(|path| {
                let tree = path.strip_suffix("/.git").unwrap_or(path);
                around.workspace.iter().any(|it| it == tree)
            })
    };
    let sets = |it: &str| GIT_PLACES.contains(&it);
    let is_set = part.assignments.iter().any(|it| sets(&it.name))
        || part.words.iter().any(|it| it.text.split_once('=').is_some_and(|it| sets(it.0)));
    let global = call(args).global;
    let mut options = global.iter().enumerate();
    is_set
        || options.any(|(i, option)| {
            let text = option.text.as_str();
            match text.split_once('=') {
                Some(("--git-dir" | "--work-tree", value)) => !is_own(&shortened(option, value)),
                Some((key, value)) if key.eq_ignore_ascii_case("core.worktree") => {
                    !is_own(&shortened(option, value))
                }
                _ if matches!(text, "--git-dir" | "--work-tree") => {
                    !global.get(i + 1).is_some_and(&is_own)
                }
                _ => false,
            }
        })
}
