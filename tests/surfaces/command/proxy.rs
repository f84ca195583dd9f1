//! Proxies of the environment. An address of this machine by another name represents a server that
//! is far away; loopback addresses never go through a proxy.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    process::Command,
    sync::mpsc::{Receiver, channel},
    thread,
};

use super::{CommandDirs, Simulation, processes::LIMIT};

/// Takes requests, tells their first line, and refuses them.
fn proxy() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (tell, received) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut line = String::new();
            if BufReader::new(&stream).read_line(&mut line).is_err()
                || tell.send(line.trim().to_owned()).is_err()
            {
                return;
            }
            let refusal =
                "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            // Who has gone meanwhile needs no refusal.
            let _gone = stream.write_all(refusal.as_bytes());
        }
    });
    (address, received)
}

/// `ennead -p` with nothing in its environment that speaks of proxies.
fn asks(place: &CommandDirs, base: &str) -> Command {
    let mut command = place.command(&["-p", "hey", "--model", "m"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command.env("ANTHROPIC_BASE_URL", base).env("ANTHROPIC_API_KEY", "right");
    command
}

// REQ: MDL-1
#[test]
fn proxy_of_the_environment_is_asked_for_what_is_not_near_and_not_excepted() {
    let (place, (proxy, received)) = (CommandDirs::new(), proxy());
    let server = Simulation::start(&place);
    let far = server.address.replace("127.0.0.1", "0.0.0.0");

    let mut command = asks(&place, &far);
    let ended = command.env("http_proxy", &proxy).output().unwrap();
    assert!(!ended.status.success(), "{ended:?}");
    assert_eq!(received.recv_timeout(LIMIT).unwrap(), format!("POST {far}/v1/messages HTTP/1.1"));

    // Excepted by name, and near.
    for (base, no_proxy) in [(&far, "0.0.0.0,example.com"), (&server.address, "")] {
        let mut command = asks(&place, base);
        let ended = command.env("http_proxy", &proxy).env("no_proxy", no_proxy).output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
        assert_eq!(String::from_utf8(ended.stdout).unwrap(), "m: hey\n");
    }
    assert!(received.try_recv().is_err());
}

// REQ: MDL-1
#[test]
fn what_is_not_encrypted_needs_nobody_to_trust() {
    let place = CommandDirs::new();
    let server = Simulation::start(&place);
    let far = server.address.replace("127.0.0.1", "0.0.0.0");
    let (nowhere, missing) = (place.work(), place.work().join("missing.pem"));
    // The system has no authorities; then files that the user names are missing.
    for (name, value) in
        [("SSL_CERT_DIR", &nowhere), ("SSL_CERT_FILE", &missing), ("NODE_EXTRA_CA_CERTS", &missing)]
    {
        let ask = |base: &str| {
            let mut command = asks(&place, base);
            for name in ["SSL_CERT_DIR", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"] {
                command.env_remove(name);
            }
            command.env(name, value).output().unwrap()
        };
        let ended = ask(&far);
        assert_eq!(String::from_utf8_lossy(&ended.stdout), "m: hey\n", "{name}: {ended:?}");
        // Over TLS it is told at once, and not taken for a certificate that nobody vouches for.
        let ended = ask(&far.replace("http:", "https:"));
        let printed = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(3), "{name}: {ended:?}");
        assert!(printed.contains("cannot set up the HTTP client: cannot "), "{name}: {printed}");
    }
}

// REQ: MDL-1
#[test]
fn secure_connections_are_made_through_the_proxy() {
    let (place, (proxy, received)) = (CommandDirs::new(), proxy());
    let mut command = asks(&place, "https://model.invalid");
    let mut child = command.env("https_proxy", &proxy).spawn().unwrap();
    assert_eq!(received.recv_timeout(LIMIT).unwrap(), "CONNECT model.invalid:443 HTTP/1.1");
    // It would try for minutes.
    child.kill().unwrap();
    child.wait().unwrap();
}
