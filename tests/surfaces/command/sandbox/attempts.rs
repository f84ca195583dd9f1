//! Ways out of the sandbox, each a real command that prints a word if it gets out.
//!
//! Each is first taken without a sandbox, where it must get out: else it shows nothing.

use std::{
    collections::BTreeSet,
    fs::File,
    io::Write,
    os::unix::net::UnixListener,
    process::{Child, Command, Stdio},
};

use serde_json::json;

use super::{Cell, LEVELS, at_each_level, doctor, doctor_at, text};
use crate::surfaces::command::CommandDirs;

/// When a way out is open without a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// For everybody.
    ToAll,
    /// For root.
    ToRoot,
    /// Perhaps not even then: the kernel may be built without it, or the machine may forbid it.
    Perhaps,
}

use Open::{Perhaps, ToAll, ToRoot};

/// What a way prints is written apart, so that a message that repeats the command does not look like it.
/// `HOMEDIR`, `KEY`, `OUT`, `PORT` and `VICTIM` are put in.
const WAYS: &[(&str, Open, &str)] = &[
    ("write outside", ToAll, "echo x > OUT/new && echo ESC''APED"),
    ("append outside", ToAll, "echo x >> OUT/kept && echo ESC''APED"),
    ("truncate outside", ToAll, "perl -e 'truncate(\"OUT/kept2\", 0) and print \"ESC\".\"APED\"'"),
    ("remove outside", ToAll, "rm OUT/gone && echo ESC''APED"),
    ("make a directory outside", ToAll, "mkdir OUT/d && echo ESC''APED"),
    ("make a link outside", ToAll, "ln -s x OUT/l && echo ESC''APED"),
    ("write to the home directory", ToAll, "echo x >> HOMEDIR/other && echo ESC''APED"),
    ("read a key", ToAll, "cat KEY"),
    ("list keys", ToAll, "ls HOMEDIR/.ssh 2>/dev/null | grep -q id_ && echo ESC''APED"),
    ("read what is denied", ToAll, "cat OUT/kept3"),
    // The gate asks about a link to a protected file that a command names; these do not name it.
    ("link a key in", ToAll, "echo HOMEDIR/.s*/id_test > n1; read f < n1; ln \"$f\" k1; cat k1"),
    ("link to a key", ToAll, "echo HOMEDIR/.s*/id_test > n2; read f < n2; ln -s \"$f\" k2; cat k2"),
    ("write through a link", ToAll, "ln -s OUT/new2 k3; echo x > k3 && echo ESC''APED"),
    (
        "rename out",
        ToAll,
        "echo x > a; perl -e 'rename(\"a\", \"OUT/a\") and print \"ESC\".\"APED\"'",
    ),
    ("rename in", ToAll, "perl -e 'rename(\"OUT/kept4\", \"b\") and print \"ESC\".\"APED\"'"),
    ("link out", ToAll, "echo x > c; ln c OUT/c && echo ESC''APED"),
    ("by the root of itself", ToAll, "cat /proc/self/rootKEY"),
    ("by a directory that is open", ToAll, "cd / ; exec 9< . ; cat /proc/self/fd/9/KEY"),
    ("tcp", ToAll, "exec 3<>/dev/tcp/127.0.0.1/PORT && echo ESC''APED"),
    ("udp", ToAll, "echo x > /dev/udp/127.0.0.1/9 && echo ESC''APED"),
    (
        "unix socket",
        ToAll,
        "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => \"sock\") and print \"ESC\".\"APED\"'",
    ),
    (
        "raw socket",
        ToRoot,
        "perl -MSocket -e 'socket(my $s, AF_INET, SOCK_RAW, 1) and print \"ESC\".\"APED\"'",
    ),
    (
        "environment of another",
        ToAll,
        "tr -d 0 < /proc/VICTIM/environ | grep -q . && echo ESC''APED",
    ),
    ("map of another", ToAll, "head -c1 /proc/VICTIM/maps | grep -q . && echo ESC''APED"),
    ("memory of another", ToAll, "exec 8< /proc/VICTIM/mem && echo ESC''APED"),
    ("root of another", ToAll, "cd /proc/VICTIM/root && echo ESC''APED"),
    ("descriptors of another", ToAll, "readlink /proc/VICTIM/fd/0 && echo ESC''APED"),
    ("kill another", ToAll, "kill -0 VICTIM && echo ESC''APED"),
    // The first process of a PID namespace may be sent a signal, and does not receive it.
    (
        "kill the helper",
        ToAll,
        "kill -STOP $PPID; for i in $(seq 300); do if grep -q 'State:.T' /proc/$PPID/status; \
         then kill -CONT $PPID; echo ESC''APED; break; fi; done",
    ),
    ("memory of the helper", ToRoot, "exec 8< /proc/$PPID/mem && echo ESC''APED"),
    // In a PID namespace of its own nothing is above the helper.
    (
        "kill the host",
        ToAll,
        "h=$(cut -d' ' -f4 /proc/$PPID/stat); [ $h -gt 0 ] && kill -0 $h && echo ESC''APED",
    ),
    ("leftover descriptor", ToAll, "cat <&7"),
    (
        "privileges by programs",
        ToAll,
        "grep -q 'NoNewPrivs:.1' /proc/self/status || echo ESC''APED",
    ),
    (
        "a larger dump",
        ToAll,
        "ulimit -c unlimited && [ $(ulimit -c) = unlimited ] && echo ESC''APED",
    ),
    (
        "another user",
        ToRoot,
        "perl -e '$< = 12345; $> = 12345; print \"ESC\".\"APED\" if $> == 12345'",
    ),
    ("passwords", ToRoot, "grep -q . /etc/shadow && echo ESC''APED"),
    ("mount", ToRoot, "mkdir m; mount -t tmpfs none m && umount m && echo ESC''APED"),
    ("change root", ToRoot, "chroot / true && echo ESC''APED"),
    ("make a device", ToRoot, "mknod dev1 c 1 3 && rm dev1 && echo ESC''APED"),
    ("network namespace", ToRoot, "unshare -n true && echo ESC''APED"),
    ("mount namespace", ToRoot, "unshare -m true && echo ESC''APED"),
    ("user namespace", Perhaps, "unshare -Ur true && echo ESC''APED"),
];

/// System calls by number, on x86-64 only. None may be answered with anything but `EPERM`, or `ENOSYS`
/// for `clone3`; without a sandbox they fail for other reasons, such as arguments that are none.
#[cfg(target_arch = "x86_64")]
const CALLS: &[(&str, i64, i32)] = &[
    ("ptrace", 101, 1),
    ("process_vm_readv", 310, 1),
    ("process_vm_writev", 311, 1),
    ("unshare", 272, 1),
    ("setns", 308, 1),
    ("mount", 165, 1),
    ("pivot_root", 155, 1),
    ("kexec_load", 246, 1),
    ("init_module", 175, 1),
    ("bpf", 321, 1),
    ("perf_event_open", 298, 1),
    ("userfaultfd", 323, 1),
    ("keyctl", 250, 1),
    ("add_key", 248, 1),
    ("io_uring_setup", 425, 1),
    ("open_by_handle_at", 304, 1),
    ("pidfd_getfd", 438, 1),
    ("shmget", 29, 1),
    ("socket", 41, 1),
    ("clone3", 435, 38),
    ("ptrace of x32", 0x4000_0000 | 521, 1),
    ("socket of x32", 0x4000_0000 | 41, 1),
];

/// What tests of the files next to this one try, by the names that `doctor` has for it.
const ELSEWHERE: &[&str] =
    &["another host through the proxy", "past the proxy", "command lines of others"];

// REQ: TOL-10
#[cfg(target_arch = "x86_64")]
#[test]
fn doctor_names_the_ways_out_that_tests_take_and_no_others() {
    let found = doctor();
    let rows = found["escapes"].as_array().unwrap();
    let ways = rows.iter().flat_map(|it| it["ways"].as_array().unwrap());
    let named: BTreeSet<&str> = ways.map(|it| it.as_str().unwrap()).collect();
    let calls = CALLS.iter().map(|it| it.0);
    let taken: BTreeSet<&str> =
        WAYS.iter().map(|it| it.0).chain(calls).chain(ELSEWHERE.iter().copied()).collect();
    assert_eq!(named, taken);
    let confines = found["lacks"].is_null();
    for row in rows {
        let needs = match row["by"].as_str().unwrap() {
            "network namespace" => found["own_network"] == true,
            "PID namespace" => found["own_processes"] == true,
            _ => true,
        };
        assert_eq!(row["is_prevented"], confines && needs, "{row}");
    }
    let ended = CommandDirs::new().run(&["doctor", "--sandbox"]);
    for row in rows {
        let name = row["name"].as_str().unwrap();
        assert!(ended.stdout.lines().any(|it| it.starts_with(name)), "{}", ended.stdout);
    }
}

/// A process of the same user that is none of the sandbox.
struct Victim(Child);

impl Victim {
    fn new() -> Self {
        Self(Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

/// Takes one way out of a new cell, with a file that the one who started ennead has left open.
fn take(way: &str, level: Option<&'static str>) -> String {
    let cell = level.map_or_else(Cell::new, Cell::at);
    let victim = Victim::new();
    for name in ["kept2", "kept3", "kept4", "gone"] {
        let mut file = File::create(cell.dir("outside").join(name)).unwrap();
        file.write_all(b"ESCAPED with a file\n").unwrap();
    }
    let _listener = UnixListener::bind(cell.place.work().join("sock")).unwrap();
    let port = cell.server.address.rsplit(':').next().unwrap();
    let command = way
        .replace("HOMEDIR", text(&cell.dir("home")))
        .replace("KEY", text(&cell.dir("home/.ssh/id_test")))
        .replace("OUT", text(&cell.dir("outside")))
        .replace("PORT", port)
        .replace("VICTIM", &victim.0.id().to_string());
    let settings = cell.settings(&json!({}));
    let mut flags = vec!["--permission-mode", "bypassPermissions"];
    if level.is_some() {
        flags.extend(["--settings", &settings]);
    }
    let plain = cell.command(&format!("run: {command}"), &flags);
    let mut shell = Command::new("bash");
    shell.args(["-c", "exec 7< ../outside/kept; exec \"$0\" \"$@\""]);
    shell.arg(plain.get_program()).args(plain.get_args());
    shell.current_dir(plain.get_current_dir().unwrap());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let ended = shell.stdin(Stdio::null()).output().unwrap();
    assert!(ended.status.success(), "{way}: {ended:?}");
    String::from_utf8_lossy(&ended.stdout).into_owned()
}

// REQ: TOL-10
#[test]
#[expect(clippy::print_stdout, reason = "the counts are worth knowing")]
fn no_way_leads_out_of_the_sandbox() {
    let is_root = rustix::process::geteuid().is_root();
    let levels = LEVELS.into_iter().filter(|it| doctor_at(it)["lacks"].is_null());
    let levels: Vec<&str> = levels.collect();
    println!("{} of {} levels are here: {levels:?}", levels.len(), LEVELS.len());
    let (mut n_skipped, mut closed, mut escaped) = (0, Vec::new(), Vec::new());
    for &(name, open, way) in WAYS {
        let is_open = take(way, None).contains("ESCAPED");
        if !is_open {
            if open == ToAll || open == ToRoot && is_root {
                closed.push(name)
            } else {
                n_skipped += 1;
                println!("skipped: {name}: it is not open without a sandbox");
            }
            continue;
        }
        for &level in &levels {
            let printed = take(way, Some(level));
            if printed.contains("ESCAPED") {
                escaped.push(format!("{name}, by {level}: {printed}"));
            }
        }
    }
    println!("{} ways out, {n_skipped} skipped, {} open", WAYS.len(), escaped.len());
    assert!(
        closed.is_empty(),
        "they show nothing, as they are closed without a sandbox: {closed:?}"
    );
    assert!(escaped.is_empty(), "{escaped:#?}");
}

// REQ: TOL-10
#[cfg(target_arch = "x86_64")]
#[test]
fn refused_system_calls_reach_nothing_whatever_their_arguments() {
    at_each_level("system calls", |level| {
        let cell = Cell::at(level);
        let lines = CALLS.iter().map(|(name, number, _)| {
            format!("$! = 0; syscall({number}, 1, 0, 0, 0, 0); print \"{name}=\", $!+0, \";\";")
        });
        cell.place.file("calls.pl", &lines.collect::<String>());
        let printed = cell.run_confined("perl calls.pl").stdout;
        for (name, _, errno) in CALLS {
            assert!(printed.contains(&format!("{name}={errno};")), "{name}: {printed}");
        }
    });
}

// REQ: TOL-10, TOL-8
#[test]
fn commands_in_the_background_are_confined() {
    at_each_level("commands in the background", |level| {
        let cell = Cell::at(level);
        let way = format!(
            "behind: (echo x > {} || echo x > held); echo x > ended",
            text(&cell.dir("outside/new"))
        );
        let settings = cell.settings(&json!({}));
        let flags = ["--permission-mode", "bypassPermissions", "--settings", &settings];
        let ended = cell.command(&way, &flags).output().unwrap();
        assert!(cell.place.work().join("held").exists(), "{ended:?}");
        assert!(!cell.dir("outside/new").exists());
    });
}

// REQ: TOL-10
#[test]
fn what_is_denied_in_the_workspace_cannot_be_moved_to_where_it_is_not() {
    at_each_level("moving what is denied", |level| {
        let cell = Cell::at(level);
        cell.place.file("a/b/secret/key", "ESCAPED with a key\n");
        cell.place.file("a/note", "a note\n");
        let secret = text(&cell.place.work().join("a/b/secret")).to_owned();
        cell.place.file("a/b/key.pem", "ESCAPED with another key\n");
        let other = text(&cell.place.work().join("a/b/key.pem")).to_owned();
        let denied = json!({"filesystem": {"denyRead": [secret, other]}});
        let settings = cell.settings(&denied);
        let flags = ["--permission-mode", "bypassPermissions", "--settings", &settings];
        for way in ["mv a c", "mv a/b c", "mv a/b/secret c", "rm -r a/b", "mv a/b/secret/key c"] {
            let moved = cell.run(&format!("{way}; cat a/note"), &flags);
            assert!(moved.stdout.contains("a note"), "{way}, by {level}: {moved:?}");
        }
        let looked = cell.run("cat a/b/* a/b/*/* c/*/* c/*/*/* c/* c; ls a", &flags);
        assert!(!looked.stdout.contains("ESCAPED"), "by {level}: {looked:?}");
        assert!(cell.place.work().join("a/b/secret/key").exists());
    });
}
