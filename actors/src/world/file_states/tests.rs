//! What a look sees next to what `stat` sees.

use std::{
    fs::{self, File, Permissions},
    io::Write as _,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use proptest::prelude::*;

use super::*;

/// What is kept of a path: `None` for nothing at all.
fn kept(states: &FileStates, path: &Path) -> Option<&'static str> {
    let cache = states.cache.locked();
    cache.seen.get(path.as_os_str().as_bytes()).map(|it| match it.1 {
        Seen::Directory(_) => "a directory",
        Seen::Nothing => "nothing there",
        Seen::EachTime => "each time",
    })
}

fn real_place() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().canonicalize().unwrap();
    (place, path)
}

// REQ: TRN-4
#[test]
fn directories_and_what_is_not_there_are_kept_until_something_changes() {
    let (_place, path) = real_place();
    let states = FileStates::watching();
    let (file, deep) = (path.join("settings.json"), path.join("not/there/yet"));
    for it in [&path, &file, &deep] {
        assert_eq!(states.look().version(it), version_at(it));
    }
    let found = [&path, &file, &deep].map(|it| kept(&states, it));
    assert_eq!(found, [Some("a directory"), Some("nothing there"), Some("nothing there")]);
    assert!(states.look().reported(&path).is_some());
    fs::write(&file, "{}").unwrap();
    states.look();
    assert_eq!([&path, &file].map(|it| kept(&states, it)), [None, None], "it was reported");
    assert_eq!(states.look().version(&file), version_at(&file));
    assert_eq!(kept(&states, &file), Some("each time"));
    File::options().append(true).open(&file).unwrap().write_all(b" ").unwrap();
    assert_eq!(states.look().version(&file), version_at(&file));
    // A name in a directory that came later.
    fs::create_dir_all(path.join("not/there")).unwrap();
    assert!(!states.look().exists(&deep));
    fs::write(&deep, "").unwrap();
    assert!(states.look().exists(&deep));
    fs::remove_file(&file).unwrap();
    assert!(!states.look().exists(&file));
    assert_eq!(kept(&states, &file), Some("nothing there"));
}

#[test]
fn path_through_a_link_is_looked_at_each_time() {
    let (_place, path) = real_place();
    fs::create_dir_all(path.join("real/inner")).unwrap();
    symlink("real", path.join("link")).unwrap();
    symlink("nowhere", path.join("dangling")).unwrap();
    symlink("ring", path.join("ring")).unwrap();
    let states = FileStates::watching();
    for name in ["link", "link/inner", "link/missing", "dangling", "ring", "ring/x"] {
        let it = path.join(name);
        assert_eq!(states.look().version(&it), version_at(&it), "{name}");
        let text = it.to_str().unwrap();
        assert_eq!(states.look().entry(text), look_up(text), "{name}");
        assert_eq!(kept(&states, &it), Some("each time"), "{name}");
    }
    fs::write(path.join("nowhere"), "x").unwrap();
    fs::write(path.join("real/missing"), "x").unwrap();
    for name in ["link/missing", "dangling"] {
        assert!(states.look().exists(&path.join(name)), "{name}");
    }
    let inner = path.join("real/inner").into_os_string().into_string().unwrap();
    for odd in [inner.replace("inner", "../real/inner"), inner.replace("/inner", "//inner")] {
        let odd = PathBuf::from(odd);
        assert_eq!(states.look().version(&odd), version_at(&odd));
        assert_eq!(kept(&states, &odd), None);
    }
}

// REQ: TRN-4
#[test]
#[expect(clippy::print_stdout, reason = "what is skipped is worth knowing")]
fn what_is_mounted_is_seen() {
    let test = "world::file_states::tests::mounts_in_a_namespace_of_its_own";
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount"]);
    command.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--ignored"]);
    let output = command.output();
    let output = output.map(|it| (it.status.success(), String::from_utf8(it.stdout).unwrap()));
    match output {
        Ok((is_done, said)) if said.contains(test) => assert!(is_done, "{said}"),
        _ => println!("1 skipped: there are no user namespaces"),
    }
}

#[test]
#[ignore = "mounts a file system: the test above runs it where that ends with it"]
fn mounts_in_a_namespace_of_its_own() {
    let (_place, path) = real_place();
    let (top, file) = (path.join("top"), path.join("top/settings.json"));
    fs::create_dir(&top).unwrap();
    let states = FileStates::watching();
    let is_seen = || states.look().exists(&file);
    let done = |program: &str, args: &[&str]| {
        let status = std::process::Command::new(program).args(args).arg(&top).status();
        assert!(status.unwrap().success(), "{program}");
    };
    assert!(!is_seen());
    done("mount", &["-t", "tmpfs", "none"]);
    fs::write(&file, "{}").unwrap();
    assert!(is_seen());
    // Watched anew, and mounted over a directory that is watched.
    states.cache.locked().refresh(states.clock.elapsed() + PAUSE);
    assert!(is_seen());
    done("umount", &[]);
    assert!(!is_seen());
}

#[test]
fn file_system_of_the_kernel_is_looked_at_each_time() {
    let states = FileStates::watching();
    assert!(states.look().exists(Path::new("/proc/self")));
    assert!(!states.look().exists(Path::new("/proc/none")));
    assert_eq!(kept(&states, Path::new("/proc/none")), Some("each time"));
}

#[test]
fn what_is_kept_is_looked_at_again_after_a_while() {
    let (_place, path) = real_place();
    let states = FileStates::watching();
    states.look().exists(&path);
    let mut cache = states.cache.locked();
    let name = path.as_os_str().as_bytes();
    let (first, _) = cache.seen[name];
    for (after, is_kept) in [(LONGEST_BELIEF / 2, true), (LONGEST_BELIEF, false)] {
        let found = cache.find(name, first + after);
        assert_eq!(matches!(found, FoundPath::Kept(_)), is_kept, "{after:?}");
    }
}

// REQ: TRN-4
#[test]
fn what_was_seen_before_a_report_is_not_kept_after_it() {
    let (_place, path) = real_place();
    let (states, file) = (FileStates::watching(), path.join("file"));
    let (name, now) = (file.as_os_str().as_bytes(), states.clock.elapsed());
    states.look().exists(&path);
    let FoundPath::Unknown(order) = states.cache.locked().find(name, now) else { panic!() };
    let found = order.carry_out(&file);
    assert_eq!(found.seen, Seen::Nothing);
    // Others look meanwhile, and take in the report.
    fs::write(&file, "").unwrap();
    states.look();
    states.cache.locked().keep(&order, name, found, now);
    assert!(states.look().exists(&file));
}

#[test]
fn few_looks_ask_for_no_reports() {
    let states = FileStates::default();
    for _ in 0..FIRST_LOOKS {
        assert!(states.look().exists(Path::new("/")));
    }
    assert!(states.cache.locked().watches.is_none());
    assert!(states.look().exists(Path::new("/")));
    assert!(states.cache.locked().watches.is_some());
}

/// Whether watching ends for [`PAUSE`] with the next look.
fn pauses(states: &FileStates) -> bool {
    states.look();
    let mut cache = states.cache.locked();
    let ends = cache.watches.is_none() && cache.seen.is_empty();
    cache.refresh(states.clock.elapsed() + PAUSE);
    assert!(cache.watches.is_some());
    ends
}

#[test]
fn lost_reports_and_moved_directories_end_the_watch_for_a_while() {
    let (_place, path) = real_place();
    let (states, inner) = (FileStates::watching(), path.join("inner"));
    let see = || assert!(!states.look().exists(&inner.join("file-7")));
    see();
    assert!(!pauses(&states), "nothing was reported");
    fs::create_dir(&inner).unwrap();
    see();
    for n in 0..MAX_REPORTS {
        fs::write(inner.join(format!("file-{n}")), "").unwrap();
    }
    assert!(pauses(&states));
    fs::remove_file(inner.join("file-7")).unwrap();
    see();
    fs::set_permissions(&inner, Permissions::from_mode(0o700)).unwrap();
    assert!(pauses(&states));
    see();
    fs::rename(&inner, path.join("elsewhere")).unwrap();
    assert!(pauses(&states));
    see();
    fs::write(path.join("new"), "").unwrap();
    assert!(!pauses(&states));
    fs::remove_dir_all(&path).unwrap();
    assert!(pauses(&states));
}

#[test]
fn no_more_paths_are_kept_than_there_is_room_for() {
    let (_place, path) = real_place();
    let states = FileStates::watching();
    for n in 0..MAX_PATHS + 10 {
        assert!(!states.look().exists(&path.join(n.to_string())));
    }
    let last = path.join((MAX_PATHS + 9).to_string());
    fs::write(&last, "").unwrap();
    assert!(states.look().exists(&last));
    let mut cache = states.cache.locked();
    assert_eq!(cache.seen.len(), MAX_PATHS);
    cache.refresh(states.clock.elapsed() + LONGEST_FULL);
    assert!(cache.seen.is_empty() && cache.watches.is_some(), "all of it made room");
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
    Exchange(usize),
    Link(usize),
    HardLink(usize),
    Permissions(u32),
    Touch,
    /// Time goes by, so that watching begins again.
    Wait,
}

const NAMES: [&str; 9] = ["a", "b", "a/a", "a/b", "b/a", "b/b", "a/a/a", "a/b/b", "b/a/b"];

fn act() -> impl Strategy<Value = Act> {
    let other = 0..NAMES.len();
    prop_oneof![
        4 => Just(Act::Write),
        6 => Just(Act::MakeDirectory),
        2 => Just(Act::Remove),
        3 => other.clone().prop_map(Act::Rename),
        1 => other.clone().prop_map(Act::Exchange),
        1 => other.clone().prop_map(Act::Link),
        1 => other.prop_map(Act::HardLink),
        1 => prop::sample::select(vec![0o700, 0o755, 0o500]).prop_map(Act::Permissions),
        1 => Just(Act::Touch),
        6 => Just(Act::Wait),
    ]
}

/// Does it, if it can be done.
fn carry_out(act: Act, root: &Path, name: &str, states: &FileStates) -> io::Result<()> {
    let path = root.join(name);
    let at = |n: usize| root.join(NAMES[n]);
    match act {
        Act::Write => File::options().create(true).append(true).open(&path)?.write_all(b"x"),
        Act::MakeDirectory => fs::create_dir(&path),
        Act::Remove if fs::symlink_metadata(&path)?.is_dir() => fs::remove_dir_all(&path),
        Act::Remove => fs::remove_file(&path),
        Act::Rename(other) => fs::rename(&path, at(other)),
        Act::Exchange(other) => {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            Ok(renameat_with(CWD, &path, CWD, at(other), RenameFlags::EXCHANGE)?)
        }
        Act::Link(other) => symlink(at(other), &path),
        Act::HardLink(other) => fs::hard_link(at(other), &path),
        Act::Permissions(mode) => fs::set_permissions(&path, Permissions::from_mode(mode)),
        Act::Touch => {
            // Of a directory the time of modification alone may be set without a report.
            let epoch = std::time::UNIX_EPOCH;
            let times = fs::FileTimes::new().set_modified(epoch).set_accessed(epoch);
            File::open(&path)?.set_times(times)
        }
        Act::Wait => {
            states.cache.locked().refresh(states.clock.elapsed() + PAUSE);
            Ok(())
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    // REQ: TRN-4
    #[test]
    fn look_sees_what_stat_sees_whatever_happened(
        acts in prop::collection::vec((act(), 0..NAMES.len()), 1..60),
        of_looks in any::<u64>(),
    ) {
        let (_place, root) = real_place();
        let states = FileStates::watching();
        for (n, (act, name)) in acts.iter().enumerate() {
            let _may_fail = carry_out(*act, &root, NAMES[*name], &states);
            // Not each time at every path, so that reports of several changes come at once.
            let look = states.look();
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
