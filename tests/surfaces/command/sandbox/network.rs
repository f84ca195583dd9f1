//! The allow-list of hosts: what a confined command reaches with it, and what it does not.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};

use super::{Cell, Ended, at_each_level, doctor_at};

/// A server on loopback that greets whoever asks, and counts them.
struct Outside {
    port: u16,
    n_asked: Arc<AtomicUsize>,
}

impl Outside {
    fn new() -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let n_asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&n_asked);
        // It ends with the process of the test.
        std::thread::spawn(move || {
            for client in socket.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let mut client = client;
                // What cannot be read or written is shown by what the command prints.
                let _head = client.read(&mut [0; 4096]);
                let answer =
                    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nGREE-TING";
                let _gone = client.write_all(answer.as_bytes());
            }
        });
        Self { port, n_asked }
    }
}

/// Runs a command in the sandbox with this network.
fn run(cell: &Cell, network: &Value, command: &str) -> Ended {
    let settings = cell.settings(&json!({ "network": network }));
    cell.run(command, &["--permission-mode", "bypassPermissions", "--settings", &settings])
}

/// Whether an allow-list can be had here; where it cannot, says so.
#[expect(clippy::print_stdout, reason = "what is skipped is worth knowing")]
fn can_list(level: &str, what: &str) -> bool {
    let can = doctor_at(level)["own_network"] == true;
    if !can {
        println!("1 skipped: {what}: there are no network namespaces");
    }
    can
}

// REQ: TOL-10
#[test]
fn listed_host_is_reached_through_the_proxy_and_no_other() {
    at_each_level("an allow-list of hosts", |level| {
        if !can_list(level, "an allow-list of hosts") {
            return;
        }
        let (cell, outside) = (Cell::at(level), Outside::new());
        let curl = format!("curl -sS -m 20 http://127.0.0.1:{}/", outside.port);
        let plain = cell.run(&curl, &["--permission-mode", "bypassPermissions"]);
        assert!(plain.stdout.contains("GREE-TING"), "without a sandbox: {plain:?}");
        let listed = json!({"allowedDomains": ["127.0.0.1"]});
        let through = run(&cell, &listed, &curl);
        assert!(through.stdout.contains("GREE-TING"), "{through:?}");
        let tunnel = run(&cell, &listed, &format!("{curl} --proxytunnel"));
        assert!(tunnel.stdout.contains("GREE-TING"), "{tunnel:?}");
        assert_eq!(outside.n_asked.load(Ordering::SeqCst), 3);
        for listed in [
            json!({"allowedDomains": ["a.example"]}),
            json!({"allowedDomains": ["*"]}),
            json!({"allowedDomains": ["127.0.0.1"], "deniedDomains": ["127.0.0.1"]}),
        ] {
            let refused = run(&cell, &listed, &format!("{curl} --noproxy ''"));
            assert!(refused.stdout.contains("does not let 127.0.0.1 be reached"), "{refused:?}");
        }
        assert_eq!(outside.n_asked.load(Ordering::SeqCst), 3, "nobody else got there");
    });
}

/// Ways past the proxy. `PORT` is that of a server outside, which each reaches without a sandbox.
const WAYS: [(&str, &str); 5] = [
    ("tcp", "exec 3<>/dev/tcp/127.0.0.1/PORT && echo ESC''APED"),
    (
        "curl without the proxy",
        "curl -sS --noproxy '*' http://127.0.0.1:PORT/ | sed s/GREE-TING/ESC''APED/",
    ),
    (
        "unix socket",
        "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => \"sock\") and print \"ESC\".\"APED\"'",
    ),
    (
        "devices of the machine",
        "[ $(tail -n +3 /proc/net/dev | grep -vc lo:) = 0 ] || echo ESC''APED",
    ),
    ("sockets of the machine", "grep -q :$(printf %04X PORT) /proc/self/net/tcp && echo ESC''APED"),
];

// REQ: TOL-10
#[test]
#[expect(clippy::print_stdout, reason = "the counts are worth knowing")]
fn no_way_leads_past_the_proxy() {
    at_each_level("ways past the proxy", |level| {
        if !can_list(level, "ways past the proxy") {
            return;
        }
        let (cell, outside) = (Cell::at(level), Outside::new());
        let _socket =
            std::os::unix::net::UnixListener::bind(cell.place.work().join("sock")).unwrap();
        let listed = json!({"allowedDomains": ["127.0.0.1", "*"]});
        let mut n_skipped = 0;
        for (name, way) in WAYS {
            let way = way.replace("PORT", &outside.port.to_string());
            let free = cell.run(&way, &["--permission-mode", "bypassPermissions"]);
            if !free.stdout.contains("ESCAPED") {
                // A machine may have no other device.
                assert_eq!(name, "devices of the machine", "shows nothing: {free:?}");
                n_skipped += 1;
                continue;
            }
            let confined = run(&cell, &listed, &way);
            assert!(!confined.stdout.contains("ESCAPED"), "{name}: {confined:?}");
        }
        println!("{} ways past the proxy, {n_skipped} skipped, 0 open", WAYS.len());
    });
}

// REQ: TOL-10
#[test]
fn what_listens_inside_is_reached_inside() {
    at_each_level("a server inside", |level| {
        if !can_list(level, "a server inside") {
            return;
        }
        let cell = Cell::at(level);
        let server = "perl -MIO::Socket::INET -e '$| = 1; $s = IO::Socket::INET->new(LocalAddr => \"127.0.0.1:8123\", \
                  Listen => 1) or die; print \"ready\\n\"; $c = $s->accept; print $c \"in\".\"side\"'";
        cell.place.file("server.sh", server);
        let command =
            "mkfifo ready; sh server.sh > ready & read word < ready; cat < /dev/tcp/127.0.0.1/8123";
        let ended = run(&cell, &json!({"allowedDomains": ["a.example"]}), command);
        assert!(ended.stdout.contains("inside"), "{ended:?}");
    });
}
