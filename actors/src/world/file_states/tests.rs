use std::{
    fs::{self, File, Permissions},
    io::Write as _,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use proptest::prelude::*;

use super::*;

/// States that are watched from the first look on.
fn watching() -> FileStates {
    let states = FileStates::default();
    (0..FIRST_LOOKS).for_each(|_| drop(states.look()));
    states
}

/// What is kept of a path: `None` for nothing at all.
fn kept(states: &FileStates, path: &Path) -> Option<&'static str> {
    let cache = states.0.locked();
    cache.seen.get(path.as_os_str().as_bytes()).map(|it| match it.1 {
        Seen::State(_) => "a state",
        Seen::Nothing => "nothing there",
        Seen::Unfit => "unfit",
    })
}

fn real_place() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().canonicalize().unwrap();
    (place, path)
}

// REQ: TRN-4
#[test]
fn what_is_there_and_what_is_not_is_kept_until_it_changes() {
    let (_place, path) = real_place();
    let states = watching();
    let (file, deep) = (path.join("settings.json"), path.join("not/there/yet"));
    for it in [&path, &file, &deep] {
        assert_eq!(states.look().version(it), version_at(it));
    }
    let found = [&path, &file, &deep].map(|it| kept(&states, it));
    assert_eq!(found, [Some("a state"), Some("nothing there"), Some("nothing there")]);
    fs::write(&file, "{}").unwrap();
    drop(states.look());
    assert_eq!([&path, &file].map(|it| kept(&states, it)), [None, None], "it was reported");
    assert_eq!(states.look().version(&file), version_at(&file));
    // A name in a directory that came later.
    fs::create_dir_all(path.join("not/there")).unwrap();
    assert!(!states.look().exists(&deep));
    fs::write(&deep, "").unwrap();
    assert!(states.look().exists(&deep));
    // Another file in its place, as editors leave it.
    fs::write(path.join("new"), "[]").unwrap();
    fs::rename(path.join("new"), &file).unwrap();
    assert_eq!(states.look().version(&file), version_at(&file));
}

#[test]
fn path_through_a_link_is_looked_at_each_time() {
    let (_place, path) = real_place();
    fs::create_dir_all(path.join("real/inner")).unwrap();
    symlink("real", path.join("link")).unwrap();
    symlink("nowhere", path.join("dangling")).unwrap();
    symlink("ring", path.join("ring")).unwrap();
    let states = watching();
    for name in ["link", "link/inner", "link/missing", "dangling", "ring", "ring/x"] {
        let it = path.join(name);
        let text = it.to_str().unwrap();
        assert_eq!(states.look().entry(text), look_up(text), "{name}");
        assert_eq!(states.look().version(&it), version_at(&it), "{name}");
        assert_eq!(kept(&states, &it), Some("unfit"), "{name}");
    }
    fs::write(path.join("nowhere"), "x").unwrap();
    fs::write(path.join("real/missing"), "x").unwrap();
    for name in ["link/missing", "dangling"] {
        assert!(states.look().exists(&path.join(name)), "{name}");
    }
    let odd = [path.join("real/../real/inner"), path.join("real//inner"), PathBuf::from("real")];
    for it in odd {
        let it = PathBuf::from(it.into_os_string());
        assert_eq!(states.look().version(&it), version_at(&it));
    }
}

#[test]
fn file_with_two_names_is_seen_to_change_by_either() {
    let (_place, path) = real_place();
    let (one, other) = (path.join("one"), path.join("other"));
    fs::write(&one, "x").unwrap();
    fs::hard_link(&one, &other).unwrap();
    let states = watching();
    for n in 0..4 {
        for it in [&one, &other] {
            assert_eq!(states.look().version(it), version_at(it));
        }
        let changed = if n % 2 == 0 { &other } else { &one };
        File::options().append(true).open(changed).unwrap().write_all(b"more").unwrap();
    }
}

#[test]
fn what_is_kept_is_looked_at_again_after_a_while() {
    let (_place, path) = real_place();
    let states = watching();
    states.look().exists(&path);
    let mut cache = states.0.locked();
    let name = path.as_os_str().as_bytes();
    let (first, _) = cache.seen[name];
    for (after, is_new) in [(LONGEST_BELIEF / 2, false), (LONGEST_BELIEF, true)] {
        cache.seen_at(&path, first + after);
        assert_eq!(cache.seen[name].0 != first, is_new, "{after:?}");
    }
}

#[test]
fn few_looks_ask_for_no_reports() {
    let states = FileStates::default();
    for _ in 0..FIRST_LOOKS {
        assert!(states.look().exists(Path::new("/")));
    }
    assert!(states.0.locked().watches.is_none());
    assert!(states.look().exists(Path::new("/")));
    assert!(states.0.locked().watches.is_some());
}

#[test]
fn more_reports_than_are_taken_in_end_the_watch_for_a_while() {
    let (_place, path) = real_place();
    let (states, file) = (watching(), path.join("file-7"));
    assert!(!states.look().exists(&file));
    for n in 0..MAX_REPORTS {
        fs::write(path.join(format!("file-{n}")), "").unwrap();
    }
    assert!(states.look().exists(&file));
    let mut cache = states.0.locked();
    assert!(cache.watches.is_none() && cache.seen.is_empty());
    let begun = cache.begun.unwrap();
    cache.refresh(begun + LONGEST_FULL / 2);
    assert!(cache.watches.is_none());
    cache.refresh(begun + LONGEST_FULL);
    assert!(cache.watches.is_some());
}

#[test]
fn no_more_paths_are_kept_than_there_is_room_for() {
    let (_place, path) = real_place();
    let states = watching();
    for n in 0..MAX_PATHS + 10 {
        assert!(!states.look().exists(&path.join(n.to_string())));
    }
    let last = path.join((MAX_PATHS + 9).to_string());
    fs::write(&last, "").unwrap();
    let mut look = states.look();
    assert!(look.exists(&last));
    assert_eq!(look.cache.seen.len(), MAX_PATHS);
    let begun = look.cache.begun.unwrap();
    look.cache.refresh(begun + LONGEST_FULL);
    assert!(look.cache.seen.is_empty() && look.cache.watches.is_some(), "all of it made room");
}

#[test]
fn times_in_whole_seconds_settle_later() {
    let seen = |mtime_ns| PathState {
        mtime_ns,
        ctime_ns: 0,
        ..PathState::of(&fs::metadata("/").unwrap())
    };
    assert!(seen(1_000_000_001).is_settled(1_050_000_002));
    assert!(!seen(1_000_000_001).is_settled(1_050_000_001));
    assert!(seen(1_000_000_000).is_settled(3_000_000_001));
    assert!(!seen(1_000_000_000).is_settled(3_000_000_000));
}

/// What may happen to a few paths.
#[derive(Clone, Copy, Debug)]
enum Act {
    Write,
    MakeDirectory,
    Remove,
    Rename(usize),
    Link(usize),
    HardLink(usize),
    Permissions(u32),
    Touch,
}

const NAMES: [&str; 9] = ["a", "b", "a/a", "a/b", "b/a", "b/b", "a/a/a", "a/b/b", "b/a/b"];

fn act() -> impl Strategy<Value = Act> {
    let other = 0..NAMES.len();
    prop_oneof![
        3 => Just(Act::Write),
        4 => Just(Act::MakeDirectory),
        2 => Just(Act::Remove),
        3 => other.clone().prop_map(Act::Rename),
        1 => other.clone().prop_map(Act::Link),
        1 => other.prop_map(Act::HardLink),
        1 => prop::sample::select(vec![0o700, 0o755, 0o500]).prop_map(Act::Permissions),
        1 => Just(Act::Touch),
    ]
}

/// Does it, if it can be done.
fn carry_out(act: Act, root: &Path, name: &str) -> io::Result<()> {
    let path = root.join(name);
    let at = |n: usize| root.join(NAMES[n]);
    match act {
        Act::Write => File::options().create(true).append(true).open(&path)?.write_all(b"x"),
        Act::MakeDirectory => fs::create_dir(&path),
        Act::Remove => match fs::symlink_metadata(&path)?.is_dir() {
            true => fs::remove_dir_all(&path),
            false => fs::remove_file(&path),
        },
        Act::Rename(other) => fs::rename(&path, at(other)),
        Act::Link(other) => symlink(at(other), &path),
        Act::HardLink(other) => fs::hard_link(at(other), &path),
        Act::Permissions(mode) => fs::set_permissions(&path, Permissions::from_mode(mode)),
        Act::Touch => {
            // Of a directory the time of modification alone may be set without a report.
            let epoch = std::time::UNIX_EPOCH;
            let times = fs::FileTimes::new().set_modified(epoch).set_accessed(epoch);
            File::open(&path)?.set_times(times)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    // REQ: TRN-4
    #[test]
    fn look_sees_what_stat_sees_whatever_happened(
        acts in prop::collection::vec((act(), 0..NAMES.len()), 1..40),
        of_looks in any::<u64>(),
    ) {
        let (_place, root) = real_place();
        let states = watching();
        for (n, (act, name)) in acts.iter().enumerate() {
            let _may_fail = carry_out(*act, &root, NAMES[*name]);
            // Not each time at every path, so that reports of several changes come at once.
            let mut look = states.look();
            for (m, name) in NAMES.iter().enumerate() {
                if of_looks >> ((n * 5 + m) % 64) & 1 == 0 {
                    continue;
                }
                let path = root.join(name);
                prop_assert_eq!(look.version(&path), version_at(&path), "{} after {:?}", name, acts[n]);
                let text = path.to_str().unwrap();
                prop_assert_eq!(look.entry(text), look_up(text), "{} after {:?}", name, acts[n]);
            }
        }
    }
}
