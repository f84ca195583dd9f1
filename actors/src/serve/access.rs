//! Who asks, and whether this server is the one that was meant.
//!
//! A page of somebody else cannot ask in the name of a browser's user: its `Origin` is not ours. A name
//! that was bound to a loopback address for an attack is not a name of this server, so its `Host` is
//! refused.

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Response, Uri, header},
    middleware::Next,
    response::IntoResponse,
};
use ennead_runtime::ids::TenantId;

use super::{
    Role, Server,
    hosting::blocking,
    problem::{Code, Problem},
};

/// Bytes of the head of a request: path, query, names and values.
const MAX_HEAD: usize = 32 * 1024;

/// Paths that need no token: their answers hold nothing of any tenant.
pub(crate) const OPEN_PATHS: [&str; 3] = ["/healthz", "/readyz", "/openapi.json"];

/// The bearer of a token.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) tenant: TenantId,
    pub(crate) role: Role,
    /// The name of the token.
    pub(crate) name: String,
}

impl Caller {
    /// Returns whether sessions of this tenant exist for the caller.
    pub(crate) fn sees(&self, tenant: &TenantId) -> bool {
        self.role == Role::Admin || self.tenant == *tenant
    }

    /// Refuses what takes more than this role has.
    pub(crate) fn at_least(&self, role: Role) -> Result<(), Problem> {
        if self.role < role {
            return Err(Problem::new(Code::Forbidden, "the token has a lesser role"));
        }
        Ok(())
    }
}

/// Admits a request whose host, origin and token are in order.
pub(crate) async fn check(
    State(server): State<Server>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let response = match admit(&server, request.uri(), request.headers()).await {
        Ok(caller) => {
            if let Some(caller) = caller {
                request.extensions_mut().insert(caller);
            }
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    if let Some(code) = response.extensions().get::<Code>() {
        server.0.metrics.refused(code.code());
    }
    response
}

/// Bytes of the head of a request as they were sent, but for some blanks.
fn head_size(uri: &Uri, headers: &HeaderMap) -> usize {
    let of_uri = uri.path_and_query().map_or(0, |it| it.as_str().len());
    let of_header = |it: (&HeaderName, &HeaderValue)| it.0.as_str().len() + it.1.len() + 4;
    of_uri + headers.iter().map(of_header).sum::<usize>()
}

async fn admit(server: &Server, uri: &Uri, headers: &HeaderMap) -> Result<Option<Caller>, Problem> {
    if MAX_HEAD < head_size(uri, headers) {
        return Err(Problem::new(Code::HeadTooLarge, "a head has at most 32 KiB"));
    }
    let hosts = &server.0.options.hosts;
    let host = uri.authority().map(ToString::to_string);
    let host = host.or_else(|| text(headers, header::HOST)).unwrap_or_default();
    if !is_ours(&host, hosts) {
        return Err(Problem::new(Code::HostRefused, "the header Host names another server"));
    }
    if let Some(origin) = text(headers, header::ORIGIN) {
        let authority = origin.split_once("://").map_or("", |(_, it)| it);
        if !authority.eq_ignore_ascii_case(&host) {
            return Err(Problem::new(
                Code::OriginRefused,
                "the header Origin names another server",
            ));
        }
    }
    let path = uri.path();
    if !is_text(path) {
        return Err(Problem::new(Code::BadRequest, "the path is not UTF-8"));
    }
    if OPEN_PATHS.contains(&path) || !path.starts_with("/v1/") && path != "/metrics" {
        return Ok(None);
    }
    let entry = match bearer(headers).map(str::to_owned) {
        // The file is looked at each time, so that a token that was taken away is known no more at once.
        Some(token) => {
            let server = server.clone();
            blocking(move || server.0.tokens.bearer(&token)).await?
        }
        None => None,
    };
    let entry = entry.ok_or_else(|| {
        Problem::new(Code::Unauthorized, "send the header Authorization: Bearer with a token")
    })?;
    let caller = Caller { tenant: entry.tenant, role: entry.role, name: entry.name };
    server.0.rates.take(&caller.name)?;
    server.0.asked.cancel();
    Ok(Some(caller))
}

/// Whether a path is a text once its `%xx` are read.
fn is_text(path: &str) -> bool {
    let (mut decoded, mut rest) = (Vec::with_capacity(path.len()), path.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let byte = hex.and_then(|it| u8::from_str_radix(it, 16).ok()).filter(|_| first == b'%');
        decoded.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    std::str::from_utf8(&decoded).is_ok()
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    // Two of them, or one that is not a text, name nothing.
    let mut all = headers.get_all(name).iter();
    let first = all.next()?;
    Some(match all.next() {
        None => first.to_str().unwrap_or_default().to_owned(),
        Some(_) => String::new(),
    })
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether a host with or without a port is a name of this server.
fn is_ours(host: &str, hosts: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit()) => {
            name
        }
        _ => host,
    };
    let loopback = ["localhost", "127.0.0.1", "[::1]"];
    loopback
        .into_iter()
        .chain(hosts.iter().map(String::as_str))
        .any(|it| it.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SUR-5
    #[test]
    fn only_names_of_this_server_are_its_hosts() {
        let hosts = ["agents.example.org".to_owned()];
        for ours in ["localhost:80", "LOCALHOST", "127.0.0.1:8080", "[::1]:9", "agents.example.org"]
        {
            assert!(is_ours(ours, &hosts), "{ours}");
        }
        for other in
            ["", "evil.example", "127.0.0.1.evil.example:80", "localhost:80:x", "[::1", "::1"]
        {
            assert!(!is_ours(other, &hosts), "{other}");
        }
    }
}
