//! What a client asks of the proxy: the head of a request, read strictly.
//!
//! What two programs could read differently is refused, and what is passed on is written anew, so that no
//! server sees another request than was judged.

use ennead_runtime::sandbox::Host;

/// Lines of a head at most.
const MAX_LINES: usize = 128;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) host: Host,
    pub(super) port: u16,
    /// `None`: a way for any bytes (`CONNECT`).
    pub(super) plain: Option<Plain>,
}

/// A request that is passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plain {
    /// The head for the server, with its empty line.
    pub(super) head: String,
    /// Bytes of the body.
    pub(super) body: u64,
}

/// Why a request is not served: the status, and a reason in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) &'static str, pub(super) String);

impl Refusal {
    fn bad(why: &str) -> Self {
        Self("400 Bad Request", why.to_owned())
    }
}

impl Request {
    /// Reads a head, with the empty line at its end.
    pub(super) fn read(head: &[u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(head).ok().and_then(|it| it.strip_suffix("\r\n\r\n"));
        let text = text.ok_or_else(|| Refusal::bad("the head is not a text"))?;
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let headers: Vec<&str> = lines.collect();
        let is_control = |it: char| it.is_control() && it != '\t';
        if MAX_LINES < headers.len() || text.replace("\r\n", "").contains(is_control) {
            return Err(Refusal::bad("the head has too many lines, or control characters"));
        }
        let words: Vec<&str> = first.split(' ').collect();
        let [method, target, "HTTP/1.1" | "HTTP/1.0"] = words[..] else {
            return Err(Refusal::bad("the first line is none of HTTP/1"));
        };
        if !is_token(method) {
            return Err(Refusal::bad("the method is none"));
        }
        let headers = headers.into_iter().map(header).collect::<Option<Vec<_>>>();
        let headers = headers.ok_or_else(|| Refusal::bad("a header cannot be read"))?;
        if method == "CONNECT" {
            let (host, port) = authority(target, None)?;
            return Ok(Self { host, port, plain: None });
        }
        let scheme = target.get(..7).filter(|it| it.eq_ignore_ascii_case("http://"));
        let rest = scheme.and_then(|_| target.get(7..));
        let rest = rest.ok_or_else(|| Refusal::bad("only http:// and CONNECT are served"))?;
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (named, path) = rest.split_at(end);
        let (host, port) = authority(named, Some(80))?;
        if path.contains(['#', '\\']) {
            return Err(Refusal::bad("the address has a fragment or a backslash"));
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut head = format!("{method} {slash}{path} HTTP/1.1\r\nHost: {named}\r\n");
        let mut body = None;
        let one_way = connection_headers(&headers);
        for (name, value) in headers {
            if name.eq_ignore_ascii_case("transfer-encoding") {
                let why = "bodies without a length are not passed on";
                return Err(Refusal("501 Not Implemented", why.to_owned()));
            }
            if name.eq_ignore_ascii_case("content-length") {
                let length =
                    value.bytes().all(|it| it.is_ascii_digit()).then(|| value.parse().ok());
                if body.is_some() || length.flatten().is_none() {
                    return Err(Refusal::bad("the length of the body is not certain"));
                }
                body = length.flatten();
            } else if one_way.iter().any(|it| it.eq_ignore_ascii_case(name)) {
                continue;
            }
            head += &format!("{name}: {value}\r\n");
        }
        head += "Connection: close\r\n\r\n";
        Ok(Self { host, port, plain: Some(Plain { head, body: body.unwrap_or(0) }) })
    }
}

/// Headers that are about this connection alone, and that of the host, which is written anew.
fn connection_headers<'a>(headers: &[(&'a str, &'a str)]) -> Vec<&'a str> {
    let named = headers.iter().filter(|it| it.0.eq_ignore_ascii_case("connection"));
    let named = named.flat_map(|it| it.1.split(',')).map(str::trim);
    // It decides how far the body goes.
    let named = named.filter(|it| !it.eq_ignore_ascii_case("content-length"));
    let known = ["connection", "host", "keep-alive", "te", "trailer", "upgrade"];
    let proxy = ["proxy-authorization", "proxy-connection", "proxy-authenticate"];
    known.into_iter().chain(proxy).chain(named).collect()
}

/// Name and value of a header; no line that goes on the one before.
fn header(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    is_token(name).then(|| (name, value.trim_matches([' ', '\t'])))
}

fn is_token(text: &str) -> bool {
    let is_of_token = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it);
    !text.is_empty() && text.bytes().all(is_of_token)
}

/// Host and port; no user.
fn authority(text: &str, default: Option<u16>) -> Result<(Host, u16), Refusal> {
    // The colons of an address of IPv6 are in brackets.
    let split = text.rfind(':').filter(|at| !text[*at..].contains(']'));
    let (host, port) = match split {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let is_bare = host.contains(':') && !host.starts_with('[');
    let port = match port {
        Some(it) if it.bytes().all(|it| it.is_ascii_digit()) => it.parse().ok(),
        Some(_) => None,
        None => default,
    };
    match (Host::read(host).filter(|_| !is_bare), port.filter(|it| *it != 0)) {
        (Some(host), Some(port)) => Ok((host, port)),
        _ => Err(Refusal::bad("host and port cannot be read")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> Result<Request, Refusal> {
        Request::read(head.as_bytes())
    }

    // REQ: TOL-10
    #[test]
    fn request_is_written_anew_for_the_host_of_its_first_line() {
        let found = read(
            "POST http://A.example:8080?x=1 HTTP/1.1\r\nHost: evil.example\r\nConnection: x-y\r\n\
             X-Y: 1\r\nProxy-Authorization: z\r\nAccept: */*\r\nContent-Length: 3\r\n\r\n",
        )
        .unwrap();
        assert_eq!((found.host, found.port), (Host::Name("a.example".into()), 8080));
        let plain = found.plain.unwrap();
        assert_eq!(
            plain.head,
            "POST /?x=1 HTTP/1.1\r\nHost: A.example:8080\r\nAccept: */*\r\n\
             Content-Length: 3\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(plain.body, 3);
        let found = read("CONNECT [::1]:443 HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!((found.port, found.plain), (443, None));
        assert_eq!(found.host, Host::read("::1").unwrap());
    }

    // REQ: TOL-10
    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for head in [
            "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET https://a.example/ HTTP/1.1\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\nHost: b\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nA: b\nC: d\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nA: b\rC: d\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nA : b\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nA: \0\r\n\r\n",
            "GET  http://a.example/ HTTP/1.1\r\n\r\n",
            "GET http://a.example/ x HTTP/1.1\r\n\r\n",
            "GET http://a.example/ HTTP/2\r\n\r\n",
            "GET http://u@a.example/ HTTP/1.1\r\n\r\n",
            "GET http://a.example\\@b.example/ HTTP/1.1\r\n\r\n",
            "GET http://a.example:0/ HTTP/1.1\r\n\r\n",
            "GET http://a.example:+80/ HTTP/1.1\r\n\r\n",
            "GET http://127.1/ HTTP/1.1\r\n\r\n",
            "GET http://::1/ HTTP/1.1\r\n\r\n",
            "POST http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "POST http://a.example/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
            "POST http://a.example/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "CONNECT a.example HTTP/1.1\r\n\r\n",
            "CONNECT a.example:443/x HTTP/1.1\r\n\r\n",
            "CONNECT a.example:99999 HTTP/1.1\r\n\r\n",
        ] {
            assert!(read(head).is_err(), "{head:?}");
        }
        let many = "A: b\r\n".repeat(MAX_LINES + 1);
        assert!(read(&format!("GET http://a.example/ HTTP/1.1\r\n{many}\r\n")).is_err());
    }
}
