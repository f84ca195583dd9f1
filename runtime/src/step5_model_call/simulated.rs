//! The simulated model: a provider whose answers are written in a playbook.
//!
//! It speaks the same bytes as a real provider, faults included, so that everything from the
//! stream reader up is used as it is. Its answer is a function of the request: the same request
//! gives the same bytes. Only faults that pass need to be counted, and the counting is the
//! caller's ([`Attempts`]). Sending the bytes, and taking the time, is the caller's too.

mod playbook;

mod check;
mod condition;
mod fault;
mod reply;
mod request;
mod template;
mod wire;

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use minijinja::value::Value;

pub use self::playbook::{Playbook, PlaybookError};
use self::{
    playbook::{Local, Rule},
    reply::Block,
    request::{Request, Scope},
    wire::Answer,
};
use crate::digest::Digest;

/// Bytes a request may have, as at the real API.
pub const MAX_REQUEST: usize = 32 << 20;
/// Entries [`Attempts`] keeps: the oldest is forgotten first.
const MAX_ATTEMPTS: usize = 1 << 16;

/// A request as it came over the wire.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// `POST` is the only one that is answered.
    pub method: &'a str,
    /// The path, without a query.
    pub path: &'a str,
    /// Names in lower case.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: &'a [u8],
}

/// What is to be sent, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Who answered.
    pub rule: Option<Arc<str>>,
    /// How long to wait before the head, in milliseconds.
    pub delay_ms: u64,
    /// HTTP status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, in order.
    pub pieces: Vec<Piece>,
    /// What comes after the last piece.
    pub end: End,
}

/// Bytes of a body that are sent at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// How long to wait before it, in milliseconds.
    pub delay_ms: u64,
    /// The bytes; may be empty.
    pub bytes: Bytes,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As it should, though perhaps too early for what is in it.
    Closed,
    /// The connection breaks.
    Reset,
    /// Nothing comes any more, and nobody closes.
    Stall,
}

/// Which rule was tried in which conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt {
    rule: usize,
    conversation: Digest,
}

/// Counts for rules that apply only so many times in a conversation.
#[derive(Debug, Default)]
pub struct Attempts {
    counts: BTreeMap<Attempt, u64>,
    order: VecDeque<Attempt>,
}

impl Attempts {
    /// How often this was asked before; counts this time.
    pub fn next(&mut self, attempt: Attempt) -> u64 {
        if let Some(count) = self.counts.get_mut(&attempt) {
            *count += 1;
            return *count - 1;
        }
        if self.order.len() == MAX_ATTEMPTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
        self.counts.insert(attempt, 1);
        self.order.push_back(attempt);
        0
    }
}

impl Playbook {
    /// Answers a request to a Messages API: `/v1/messages` and `/v1/messages/count_tokens`, below
    /// any prefix.
    ///
    /// `attempts` is asked only for rules with `times`, with what [`Attempts::next`] takes, and
    /// gives what it returns. Never fails: what cannot be answered is answered with an error, as
    /// a server would.
    pub fn exchange(
        &self,
        exchange: &Exchange<'_>,
        attempts: &mut dyn FnMut(Attempt) -> u64,
    ) -> Script {
        let digest = Digest::of(exchange.body);
        let counting = exchange.path.ends_with("/v1/messages/count_tokens");
        if !(counting || exchange.path.ends_with("/v1/messages")) {
            return self.error(digest, 404, &format!("no such path: {}", exchange.path));
        }
        if exchange.method != "POST" {
            return self.error(digest, 405, &format!("{} is not allowed", exchange.method));
        }
        if !self.admits(exchange.headers) {
            return self.error(digest, 401, "invalid x-api-key");
        }
        if exchange.body.len() > MAX_REQUEST {
            return self.error(digest, 413, "request exceeds the maximum size of 32 MB");
        }
        let body = match serde_json::from_slice(exchange.body) {
            Ok(body) => body,
            Err(cause) => return self.error(digest, 400, &format!("the body is no JSON: {cause}")),
        };
        if let Err(why) = check::check(&body, !counting) {
            return self.error(digest, 400, &why);
        }
        if counting {
            let n_tokens = (request::count_chars(exchange.body) / 4).max(1);
            return self.whole(digest, 200, format!("{{\"input_tokens\":{n_tokens}}}"));
        }
        let request = Arc::new(Request::read(exchange.body, body));
        self.play(&request, attempts).unwrap_or_else(|(rule, why)| {
            // A mistake in a playbook does not go away by asking again, so it is no 500.
            let rule = rule.map(|rule| format!(", rule `{}`", rule.name)).unwrap_or_default();
            self.error(digest, 400, &format!("playbook {}{rule}: {why}", self.name))
        })
    }

    /// An error as the API words it, for what never became an [`Exchange`].
    pub fn refusal(&self, status: u16, message: &str) -> Script {
        self.error(Digest::of(message.as_bytes()), status, message)
    }

    fn admits(&self, headers: &[(String, String)]) -> bool {
        self.key.as_deref().is_none_or(|key| {
            headers.iter().any(|(name, value)| match name.as_str() {
                "x-api-key" => value == key,
                "authorization" => value.strip_prefix("Bearer ") == Some(key),
                _ => false,
            })
        })
    }

    fn play(
        &self,
        request: &Arc<Request>,
        attempts: &mut dyn FnMut(Attempt) -> u64,
    ) -> Result<Script, (Option<&Rule>, String)> {
        // Values that rules share are computed once for a request.
        let mut shared = BTreeMap::new();
        for (index, rule) in self.rules.iter().enumerate() {
            if !rule.when.holds(request) {
                continue;
            }
            let scope =
                self.applies(rule, request, &mut shared).map_err(|why| (Some(rule), why))?;
            let Some(mut scope) = scope else { continue };
            let mut attempt = 0;
            if let Some(times) = rule.times {
                attempt = attempts(Attempt { rule: index, conversation: request.conversation });
                if attempt >= times {
                    continue;
                }
            }
            scope.set(&Arc::from("attempt"), Value::from(attempt));
            return self.answer(rule, &scope).map_err(|why| (Some(rule), why));
        }
        Err((None, "no rule applies to this request".to_owned()))
    }

    /// The values of a rule, if its `if` holds with them.
    fn applies<'a>(
        &'a self,
        rule: &'a Rule,
        request: &Arc<Request>,
        shared: &mut BTreeMap<&'a str, Scope>,
    ) -> Result<Option<Scope>, String> {
        let nothing = Scope { request: request.clone(), locals: Vec::new() };
        let known = rule.with.as_deref().and_then(|with| shared.get(with));
        let mut scope = match (&rule.with, known) {
            (_, Some(scope)) => scope.clone(),
            (None, None) => nothing,
            (Some(with), None) => {
                let values = self.values.get(with).map(Vec::as_slice).unwrap_or_default();
                let scope = self.compute(values, nothing, &format!("values.{with}"))?;
                shared.insert(with, scope.clone());
                scope
            }
        };
        scope = self.compute(&rule.locals, scope, "let")?;
        Ok(rule.when.holds_with(&scope, &self.templates)?.then_some(scope))
    }

    fn compute(
        &self,
        locals: &[(Arc<str>, Local)],
        mut scope: Scope,
        place: &str,
    ) -> Result<Scope, String> {
        for (name, local) in locals {
            let value = match local {
                Local::Expression(expression) => self.templates.eval(expression, scope.value()),
                Local::Json(template) => self.templates.render_json(*template, scope.value()),
            };
            scope.set(name, value.map_err(|why| format!("{place}.{name}: {why}"))?);
        }
        Ok(scope)
    }

    fn answer(&self, rule: &Rule, scope: &Scope) -> Result<Script, String> {
        let mut script = match rule.fault.as_ref().and_then(|fault| Some((fault, fault.status?))) {
            Some((fault, status)) => self.failure(scope.request.digest, status, fault),
            None => self.message(rule, scope)?,
        };
        if let Some(fault) = &rule.fault {
            if let Some(content_type) = &fault.content_type {
                set_header(&mut script.headers, "content-type", content_type);
            }
            for (name, value) in &fault.headers {
                set_header(&mut script.headers, &name.to_ascii_lowercase(), value);
            }
        }
        script.rule = Some(rule.name.clone());
        script.delay_ms = rule.pace.head_ms;
        Ok(script)
    }

    fn message(&self, rule: &Rule, scope: &Scope) -> Result<Script, String> {
        let request = &scope.request;
        let mut blocks = Vec::new();
        for (i, block) in rule.reply.iter().enumerate() {
            let made = block.answer(scope, &self.templates, &mut blocks);
            made.map_err(|why| format!("reply {}: {why}", i + 1))?;
        }
        let calls = blocks.iter().any(|block| matches!(block, Block::Tool { .. }));
        let answer = Answer {
            id: format!("msg_sim_{}", &request.digest.to_string()[..24]),
            model: &request.model,
            stop_reason: match (&rule.stop, &rule.stop_sequence) {
                (Some(stop), _) => stop,
                (None, Some(_)) => "stop_sequence",
                (None, None) if calls => "tool_use",
                (None, None) => "end_turn",
            },
            stop_sequence: rule.stop_sequence.as_deref(),
            usage: rule.usage.of(scope, &self.templates, &blocks)?,
            blocks: &blocks,
            delta: rule.delta,
        };
        let (mut body, kind) = match request.stream {
            true => (answer.stream(), "text/event-stream; charset=utf-8"),
            false => (answer.whole(), "application/json"),
        };
        let end =
            rule.fault.as_ref().map_or(End::Closed, |fault| fault.apply(&mut body, request.digest));
        let mut script = self.script(request.digest, 200, kind);
        script.pieces = rule.pace.pieces(body);
        script.end = end;
        Ok(script)
    }

    /// The answer of a rule that has a status: no message, but an error or any other body.
    fn failure(&self, digest: Digest, status: u16, fault: &fault::Fault) -> Script {
        let message = fault.message.as_deref().unwrap_or("the playbook says so");
        let kind = fault.error.as_deref().unwrap_or(fault::error_type(status));
        let mut body = wire::Bytes::default();
        body.bytes = match &fault.body {
            Some(body) => body.clone().into_bytes(),
            None => error_body(digest, kind, message).into_bytes(),
        };
        let end = fault.apply(&mut body, digest);
        let mut script = self.script(digest, status, "application/json");
        script.pieces = fault::Pace::default().pieces(body);
        script.end = end;
        script
    }

    fn error(&self, digest: Digest, status: u16, message: &str) -> Script {
        self.whole(digest, status, error_body(digest, fault::error_type(status), message))
    }

    fn whole(&self, digest: Digest, status: u16, body: String) -> Script {
        let mut script = self.script(digest, status, "application/json");
        script.pieces.push(Piece { delay_ms: 0, bytes: Bytes::from(body) });
        script
    }

    fn script(&self, digest: Digest, status: u16, content_type: &str) -> Script {
        let name = self.name.chars().map(|c| if (' '..='~').contains(&c) { c } else { '?' });
        Script {
            rule: None,
            delay_ms: 0,
            status,
            headers: vec![
                ("content-type".to_owned(), content_type.to_owned()),
                ("request-id".to_owned(), request_id(digest)),
                // Nobody shall take it for a real model.
                ("x-ennead-simulated".to_owned(), name.collect()),
            ],
            pieces: Vec::new(),
            end: End::Closed,
        }
    }
}

fn request_id(digest: Digest) -> String {
    format!("req_sim_{}", &digest.to_string()[..24])
}

fn error_body(digest: Digest, kind: &str, message: &str) -> String {
    format!(
        r#"{{"type":"error","error":{{"type":{},"message":{}}},"request_id":"{}"}}"#,
        wire::quoted(kind),
        wire::quoted(message),
        request_id(digest)
    )
}

fn set_header(headers: &mut Vec<(String, String)>, name: &str, value: &str) {
    headers.retain(|(other, _)| other != name);
    headers.push((name.to_owned(), value.to_owned()));
}
