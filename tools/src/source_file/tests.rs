//! Links, pipes, devices and sizes, in and out of a directory.

use std::{fs, os::unix::fs::symlink, process::Command};

use super::*;

/// A workspace, and a secret next to it.
struct LinkedTree {
    _keep: tempfile::TempDir,
    top: PathBuf,
}

impl LinkedTree {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let top = keep.path().canonicalize().unwrap();
        for directory in ["inside/sub", "inside/.git", "secrets"] {
            fs::create_dir_all(top.join(directory)).unwrap();
        }
        for (name, text) in
            [("inside/file", "fine"), ("inside/sub/deep", "deep"), ("secrets/key", "secret")]
        {
            fs::write(top.join(name), text).unwrap();
        }
        Self { _keep: keep, top }
    }

    fn link(&self, name: &str, target: impl AsRef<Path>) {
        symlink(target, self.top.join("inside").join(name)).unwrap();
    }

    fn read(&self, name: &str) -> Result<String, ReadError> {
        Root::open(&self.top.join("inside")).unwrap().read_text(Path::new(name))
    }

    #[track_caller]
    fn check(&self, name: &str, expected: &str) {
        let found = match self.read(name) {
            Ok(text) => text,
            Err(ReadError::Outside { .. }) => "outside".into(),
            Err(ReadError::Io(error)) => panic!("{name}: {error}"),
            Err(other) => format!("{other:?}"),
        };
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn links_are_followed_as_long_as_they_stay_inside() {
    let world = LinkedTree::new();
    world.link("plain", "file");
    world.link("sub/up", "../file");
    world.link("around", "sub/../sub/./deep");
    world.link("absolute", world.top.join("inside/sub/deep"));
    world.link("directory", "sub");
    world.link("first", "second");
    world.link("second", "third");
    world.link("third", "directory/deep");
    for (name, expected) in [
        ("file", "fine"),
        ("./sub/../file", "fine"),
        ("plain", "fine"),
        ("sub/up", "fine"),
        ("around", "deep"),
        ("absolute", "deep"),
        ("directory/deep", "deep"),
        ("directory/up", "fine"),
        ("first", "deep"),
    ] {
        world.check(name, expected);
    }
    let opened = Root::open(&world.top.join("inside")).unwrap().open_file(Path::new("first"));
    assert_eq!(opened.unwrap().real, world.top.join("inside/sub/deep"));
}

#[test]
fn no_link_leads_out() {
    let world = LinkedTree::new();
    let key = world.top.join("secrets/key");
    world.link("absolute", &key);
    world.link("relative", "../secrets/key");
    world.link("in-and-out", "sub/../../secrets/key");
    world.link("chain", "sub/next");
    world.link("sub/next", "last");
    world.link("sub/last", &key);
    world.link("directory", "../secrets");
    world.link("etc", "/etc");
    world.link("environ", "/proc/self/environ");
    world.link("through", "/proc/self/cwd/Cargo.toml");
    world.link("disguised", world.top.join("inside/../secrets/key"));
    world.link("out-and-in", "../inside/file");
    for name in [
        "absolute",
        "relative",
        "in-and-out",
        "chain",
        "sub/last",
        "directory/key",
        "etc/passwd",
        "environ",
        "through",
        "disguised",
        "out-and-in",
        "../secrets/key",
        "sub/../../secrets/key",
    ] {
        world.check(name, "outside");
    }
}

#[test]
fn only_regular_files_of_bounded_size_are_read() {
    let world = LinkedTree::new();
    let path = |name: &str| world.top.join("inside").join(name);
    assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    fs::write(path("bytes"), [0xff]).unwrap();
    world.link("to-pipe", "pipe");
    world.link("ring", "ring2");
    world.link("ring2", "ring");
    world.link("dangling", "nothing");
    for (name, expected) in [
        ("pipe", "NotRegular"),
        ("to-pipe", "NotRegular"),
        ("socket", "NotRegular"),
        ("sub", "NotRegular"),
        (".", "NotRegular"),
        ("", "NotRegular"),
        ("bytes", "NotText"),
        ("ring", "TooManyLinks"),
        ("none", "Missing"),
        ("none/below", "Missing"),
        ("file/below", "Missing"),
        ("dangling", "Missing"),
    ] {
        world.check(name, expected);
    }
    let root = Root::open(&world.top.join("inside")).unwrap();
    assert_eq!(root.read(Path::new("file"), 4).unwrap(), b"fine");
    let error = root.read(Path::new("file"), 3).unwrap_err();
    assert!(matches!(error, ReadError::TooLarge { max_bytes: 3 }));
    // A size that a file claims is not what is taken into memory.
    let huge = File::create(path("huge")).unwrap();
    huge.set_len(1 << 40).unwrap();
    assert!(matches!(world.read("huge"), Err(ReadError::TooLarge { max_bytes: MAX_TEXT })));
}

#[test]
fn what_the_system_makes_up_is_no_file_even_inside() {
    let root = Root::open(Path::new("/")).unwrap();
    for name in
        ["proc/self/environ", "proc/self/cmdline", "sys/kernel/mm/transparent_hugepage/enabled"]
    {
        match root.read_text(Path::new(name)) {
            Err(ReadError::MadeUp | ReadError::Missing) => {}
            other => panic!("{name}: {other:?}"),
        }
    }
    let proc = Root::open(Path::new("/proc/self")).unwrap();
    assert!(matches!(proc.read_text(Path::new("environ")), Err(ReadError::MadeUp)));
    for device in ["dev/zero", "dev/null"] {
        let error = root.read_text(Path::new(device)).unwrap_err();
        assert!(matches!(error, ReadError::NotRegular), "{device}: {error:?}");
    }
}

#[test]
fn link_that_is_exchanged_all_the_time_never_gives_the_secret() {
    let world = LinkedTree::new();
    let (directory, other) = (world.top.join("inside/dir"), world.top.join("inside/other"));
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("key"), "fine").unwrap();
    symlink("../secrets", &other).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let n_fine = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let exchange = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(CWD, &directory, CWD, &other, exchange).unwrap();
            }
        });
        let mut n_fine = 0;
        for _ in 0..5_000 {
            match world.read("dir/key") {
                Ok(text) => {
                    assert_eq!(text, "fine");
                    n_fine += 1;
                }
                Err(ReadError::Outside { .. } | ReadError::Missing | ReadError::Io(_)) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        n_fine
    });
    assert!(0 < n_fine, "some reads met the directory");
}

#[test]
fn names_that_the_user_chose_may_lead_anywhere_but_not_to_a_pipe() {
    let world = LinkedTree::new();
    world.link("chosen", "../secrets/key");
    world.link("endless", "/dev/zero");
    let path = |name: &str| world.top.join("inside").join(name);
    assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    assert_eq!(read_chosen_text(&path("chosen")).unwrap(), "secret");
    for (name, missing) in [("endless", false), ("pipe", false), ("sub", false), ("none", true)] {
        let error = read_chosen_text(&path(name)).unwrap_err();
        assert_eq!(error.is_missing(), missing, "{name}");
        assert!(missing || matches!(error, ReadError::NotRegular), "{name}: {error:?}");
    }
}
