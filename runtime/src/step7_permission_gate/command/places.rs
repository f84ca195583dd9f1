//! Directories that options lead a program to, and places where paths mean something else: `env -C`,
//! `make -C`, `find -execdir`, `chroot`, `docker run -v`.
//!
//! The shell stays where it is, and in a chain of programs it is not known which one moves first. So a part is
//! judged from each directory that it may be in. Sources: the manual of each program, as of 2025.

use super::{
    CommandContext, CommandPart,
    dirs::{Dirs, PathTarget, target},
    named::shortened,
    names::{Glance, Names},
    options::{has_letter, is_long, operands},
    part::base,
};
use crate::step7_permission_gate::shell::word::Word;

/// What an option does to the place where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionEffect {
    /// The program runs in the directory that is its value.
    Enters,
    /// The program runs in a directory that is not known.
    Strays,
    /// Its value is the root from then on, or other paths mean something else.
    Displaces,
}

/// Options of some programs with one effect.
pub(crate) struct OptionRow {
    pub(crate) names: &'static [&'static str],
    /// Letters of the options.
    pub(crate) short: &'static str,
    /// Letters that take the rest of a cluster as value.
    pub(crate) valued: &'static str,
    pub(crate) long: &'static [&'static str],
    pub(crate) effect: OptionEffect,
}

const fn row(
    names: &'static [&'static str],
    short: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    effect: OptionEffect,
) -> OptionRow {
    OptionRow { names, short, valued, long, effect }
}

use OptionEffect::{Displaces, Enters, Strays};

/// Programs that change what a path means, by the package that they come from.
pub(crate) const ROWS: &[OptionRow] = &[
    // GNU coreutils 9.1, env(1); sudo 1.9, sudo(8); util-linux 2.38, su(1), runuser(1).
    row(&["env"], "C", "uS", &["--chdir"], Enters),
    row(&["sudo"], "D", "CghpRrTtUu", &["--chdir"], Enters),
    row(&["sudo"], "R", "CDghprTtUu", &["--chroot"], Displaces),
    row(&["sudo"], "i", "CDghpRrTtUu", &["--login"], Strays),
    row(&["su", "runuser"], "l", "cgGsTuw", &["--login"], Strays),
    // util-linux 2.38, unshare(1), nsenter(1).
    row(&["unshare"], "w", "RSG", &["--wd"], Enters),
    row(&["unshare"], "R", "wSG", &["--root"], Displaces),
    // Build tools: GNU make 4.3, ninja 1.11, meson 1.0, GNU tar 1.34, cargo 1.80, go 1.22, just 1.0.
    row(&["make", "gmake"], "C", "fIjloW", &["--directory"], Enters),
    row(&["ninja", "meson", "go", "cargo"], "C", "fjkl", &[], Enters),
    row(&["tar", "gtar", "bsdtar"], "C", "fTXbgHKLNVI", &["--directory", "--cd"], Enters),
    row(&["just"], "d", "f", &["--working-directory"], Enters),
    // npm 10, pnpm 9, yarn 1.22: a workspace is a directory that its name does not give.
    row(&["npm", "npx"], "C", "w", &["--prefix"], Enters),
    row(&["npm", "npx"], "w", "C", &["--workspace", "--workspaces", "-ws"], Strays),
    row(&["pnpm"], "C", "F", &["--dir", "--prefix"], Enters),
    row(&["pnpm"], "rF", "C", &["--recursive", "--filter", "--filter-prod"], Strays),
    row(&["yarn"], "", "", &["--cwd"], Enters),
    // uv 0.4, poetry 1.8, pdm 2.0, hatch 1.9.
    row(&["uv", "uvx"], "", "", &["--directory", "--project"], Enters),
    row(&["poetry", "pdm"], "CPp", "", &["--directory", "--project"], Enters),
    // GNU parallel 2022; systemd 252.
    row(&["parallel"], "", "", &["--workdir", "--wd"], Enters),
    row(&["firejail"], "", "", &["--chroot", "--private", "--overlay"], Displaces),
    // Docker 26, podman 4: the directory is one of the container.
    row(&["docker", "podman", "nerdctl"], "w", "evpulmh", &["--workdir"], Enters),
];

/// Programs in which paths lead elsewhere, whatever their options.
static ALWAYS: Names = Names::of(&[
    "chroot",
    "nsenter",
    "bwrap",
    "proot",
    "systemd-nspawn",
    "machinectl",
    "runc",
    "crun",
]);

/// Where a part runs.
pub(super) struct PartLocation {
    pub(super) dirs: Dirs,
    /// A path may lead elsewhere than it says.
    pub(super) is_displaced: bool,
}

/// Returns where a part runs that the shell starts in `from`.
pub(super) fn of(part: &CommandPart, from: &Dirs, around: &CommandContext) -> PartLocation {
    let mut place = PartLocation { dirs: from.clone(), is_displaced: false };
    for start in part.starts.iter().copied() {
        let Some((name, args)) = part.words[start..].split_first() else { continue };
        let name = base(&name.text);
        if !is_about(name) {
            continue;
        }
        let mut enter = |word: &Word| {
            let to = match target(word, &around.home, part.is_lost) {
                PathTarget::Known(to) => place.dirs.join(&to, around),
                PathTarget::Glob(_) | PathTarget::Open(_) => Dirs::unknown(),
            };
            place.dirs = place.dirs.or(&to);
        };
        for row in ROWS.iter().filter(|it| it.names.contains(&name)) {
            let values = row.values(name, args);
            if row.effect != Strays {
                values.iter().flatten().for_each(&mut enter);
            }
        }
        if let Some(word) = operand(name, args) {
            enter(word);
        }
        let holds = |effect: OptionEffect| {
            let mut rows = ROWS.iter().filter(|it| it.effect == effect && it.names.contains(&name));
            rows.any(|it| !it.values(name, args).is_empty())
        };
        if holds(Strays) || strays(name, args) {
            place.dirs = Dirs::unknown();
        }
        place.is_displaced |= ALWAYS.contains(name) || holds(Displaces) || contains(name, args);
    }
    place
}

/// Programs that are looked at for more than the options of the table.
static MORE: Names = Names::of(&[
    "direnv",
    "cmake",
    "find",
    "su",
    "runuser",
    "systemd-run",
    "lerna",
    "yarn",
    "docker-compose",
]);

/// The programs of [`ROWS`], at a glance.
static IN_ROWS: Glance = in_rows();

const fn in_rows() -> Glance {
    let mut glance = Glance::new();
    let mut i = 0;
    while i < ROWS.len() {
        glance = glance.with(ROWS[i].names);
        i += 1;
    }
    glance
}

/// Whether a program may run elsewhere than the shell is.
fn is_about(name: &str) -> bool {
    IN_ROWS.may_hold(name) && ROWS.iter().any(|it| it.names.contains(&name))
        || ALWAYS.contains(name)
        || MORE.contains(name)
}

impl OptionRow {
    /// The values of its options; `None` for one without.
    fn values(&self, name: &str, args: &[Word]) -> Vec<Option<Word>> {
        let mut found = Vec::new();
        for (i, arg) in args.iter().enumerate().take_while(|it| it.1.text != "--") {
            let text = arg.text.as_str();
            let attached = if self.long.iter().any(|it| is_long(text, it) || text == *it) {
                text.split_once('=').map(|it| it.1).filter(|it| !it.is_empty())
            } else if let Some(at) = self.letter(text) {
                Some(text[at..].trim_start_matches('=')).filter(|it| !it.is_empty())
            } else {
                continue;
            };
            found.push(match attached {
                Some(value) => Some(shortened(arg, value)),
                None => args.get(i + 1).cloned(),
            });
        }
        // `tar xfC a.tar dir`: the values follow in the order of the letters.
        let bundle = args.first().filter(|it| !it.text.starts_with('-'));
        if let Some(bundle) = bundle.filter(|_| name.ends_with("tar")) {
            let valued = bundle.text.chars().filter(|it| "fCTXbgHKLNVI".contains(*it));
            let at = valued.enumerate().filter(|it| it.1 == 'C').map(|it| it.0 + 1);
            found.extend(at.map(|it| args.get(it).cloned()));
        }
        found
    }

    /// Where the value of one of its letters begins in a cluster.
    fn letter(&self, text: &str) -> Option<usize> {
        let one = self.short.chars().find(|it| has_letter(text, *it, self.valued))?;
        text.find(one).map(|it| it + one.len_utf8())
    }
}

/// An operand that is a directory which the program enters.
fn operand<'a>(name: &str, args: &'a [Word]) -> Option<&'a Word> {
    let after = |word: &str| {
        let at = args.iter().position(|it| it.text == word)?;
        args.get(at + 1)
    };
    match name {
        "chroot" => operands(args).next(),
        "direnv" => after("exec"),
        "cmake" => after("chdir"),
        _ => None,
    }
}

/// Whether a program runs others in directories that are not known.
fn strays(name: &str, args: &[Word]) -> bool {
    let has = |word: &str| args.iter().any(|it| it.text == word);
    match name {
        "find" => args.iter().any(|it| matches!(&*it.text, "-execdir" | "-okdir")),
        "su" | "runuser" => has("-"),
        // A unit starts in the root directory or at home.
        "systemd-run" | "lerna" => true,
        "yarn" => has("workspace") || has("workspaces"),
        _ => false,
    }
}

/// Whether a program runs others in a container into which directories are mounted.
fn contains(name: &str, args: &[Word]) -> bool {
    if !matches!(name, "docker" | "podman" | "nerdctl" | "docker-compose") {
        return false;
    }
    let has = |word: &str| args.iter().take(super::starts::MAX_STARTS).any(|it| it.text == word);
    let mounts = |it: &Word| {
        ["--volume", "--mount", "--privileged", "--device", "--pid"]
            .iter()
            .any(|option| it.text.starts_with(option))
            || has_letter(&it.text, 'v', "eulmhw")
    };
    // What runs already has its mounts.
    let runs = has("run") || has("create");
    has("exec") || runs && (has("compose") || name.ends_with("compose") || args.iter().any(mounts))
}
