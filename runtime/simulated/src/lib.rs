//! The simulated model: a provider whose answers are written in a playbook.
//!
//! It speaks the same bytes as a real provider, faults included, so that everything from the
//! stream reader up is used as it is. Its answer is a function of the request: the same request
//! gives the same bytes. Only faults that pass need to be counted, and the counting is the
//! caller's ([`Attempts`]). Sending the bytes, and taking the time, is the caller's too.

mod playbook;

mod attempts;
mod check;
mod condition;
mod content;
mod count;
mod fault;
mod fields;
mod members;
mod models;
mod openai;
mod pace;
mod reply;
mod request;
mod script;
mod template;
mod tool_choice;
mod wire;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use minijinja::value::Value;

pub use self::{
    attempts::{Attempt, Attempts},
    playbook::{Playbook, PlaybookError},
    script::{End, Exchange, Piece, Script},
};
use self::{
    content::Block,
    fault::Fault,
    openai::Dialect,
    playbook::{Local, Rule},
    request::{Request, Scope},
    template::Templates,
    wire::{AnswerParts, request_id},
};
use ennead_runtime::digest::Digest;

/// Bytes a request may have, as at the real API.
pub const MAX_REQUEST: usize = 32 << 20;

/// Bytes that the named values of one request may take together.
const MAX_VALUES: usize = 64 << 20;

impl Playbook {
    /// Answers a request to a Messages API (`/v1/messages` and `/v1/messages/count_tokens`), to
    /// Chat Completions (`/chat/completions`) or to the Responses API (`/responses`), below any
    /// prefix.
    ///
    /// `attempts` is asked only for rules with `times` or `faults`, with what [`Attempts::next`] takes, and
    /// gives what it returns. Never fails: what cannot be answered is answered with an error, as
    /// a server would.
    #[doc(hidden)]
    pub fn exchange(
        &self,
        exchange: &Exchange<'_>,
        attempts: &mut dyn FnMut(Attempt) -> u64,
    ) -> Script {
        let digest = Digest::of(exchange.body);
        let counting = exchange.path.ends_with("/v1/messages/count_tokens");
        let dialect = Dialect::of(exchange.path);
        let error =
            |status, why: &str| self.error(dialect.unwrap_or_default(), digest, status, why);
        if let Some(asked) = models::asked(exchange.path) {
            return self.list_models(exchange, &asked, digest);
        }
        let Some(dialect) = dialect else {
            return error(404, &format!("no such path: {}", exchange.path));
        };
        if exchange.method != "POST" {
            return error(405, &format!("{} is not allowed", exchange.method));
        }
        if !self.admits(exchange.headers) {
            return error(401, "invalid x-api-key");
        }
        if exchange.body.len() > MAX_REQUEST {
            return error(413, "request exceeds the maximum size of 32 MB");
        }
        let body = match serde_json::from_slice(exchange.body) {
            Ok(body) => body,
            Err(cause) => return error(400, &format!("the body is not JSON: {cause}")),
        };
        let (dialect, body) = match dialect.read(body, counting) {
            Ok(read) => read,
            Err(why) => return self.whole(digest, 400, dialect.refusal(digest, &why)),
        };
        // An answer that was paused comes back as the last message.
        let pauses = self.rules.iter().any(|it| it.stop.as_deref() == Some("pause_turn"));
        if let Err(why) = check::check(&body, !counting, pauses) {
            return error(400, &why);
        }
        if counting {
            let n_tokens = (request::count_chars(exchange.body) / 4).max(1);
            return self.whole(digest, 200, format!("{{\"input_tokens\":{n_tokens}}}"));
        }
        let request = Arc::new(Request::read(dialect, exchange.body, body));
        self.play(&request, attempts).unwrap_or_else(|(rule, why)| {
            // A mistake in a playbook does not go away by asking again, so it is not a 500.
            let rule = rule.map(|rule| format!(", rule `{}`", rule.name)).unwrap_or_default();
            self.error(dialect, digest, 400, &format!("playbook {}{rule}: {why}", self.name))
        })
    }

    fn list_models(
        &self,
        exchange: &Exchange<'_>,
        asked: &models::Asked<'_>,
        digest: Digest,
    ) -> Script {
        let dialect = models::dialect(exchange.headers);
        if exchange.method != "GET" {
            let why = format!("{} is not allowed", exchange.method);
            return self.error(dialect, digest, 405, &why);
        }
        if !self.admits(exchange.headers) {
            return self.error(dialect, digest, 401, "invalid x-api-key");
        }
        match models::answer(asked, dialect) {
            Some(body) => self.whole(digest, 200, body),
            None => self.error(dialect, digest, 404, "no such model"),
        }
    }

    /// Makes an error as the API words it, for what never became an [`Exchange`].
    #[doc(hidden)]
    pub fn refusal(&self, status: u16, message: &str) -> Script {
        self.error(Dialect::Messages, Digest::of(message.as_bytes()), status, message)
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
            if rule.counts() {
                attempt = attempts(Attempt { rule: index, conversation: request.conversation });
                if rule.times.is_some_and(|times| times <= attempt) {
                    continue;
                }
            }
            scope.set(&Arc::from("attempt"), Value::from(attempt));
            return self.answer(rule, attempt, &scope).map_err(|why| (Some(rule), why));
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
        let nothing = Scope { request: request.clone(), locals: Vec::new(), n_bytes: 0 };
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
            let named = |why: String| format!("{place}.{name}: {why}");
            let value = value.map_err(named)?;
            let size = Templates::size(&value).map_err(named)?;
            scope.set(name, value);
            scope.n_bytes += size;
            if MAX_VALUES < scope.n_bytes {
                return Err(named("the values of a request take more than 64 MiB".to_owned()));
            }
        }
        Ok(scope)
    }

    fn answer(&self, rule: &Rule, attempt: u64, scope: &Scope) -> Result<Script, String> {
        let fault = rule.fault(attempt);
        let (mut body, mut script) = match fault.filter(|it| it.replaces_answer()) {
            Some(fault) => self.failure(&scope.request, fault),
            None => self.message(rule, scope)?,
        };
        if let Some(fault) = fault {
            let at =
                fault.at.of(scope, &self.templates).map_err(|why| format!("fault.at: {why}"))?;
            script.end = fault.apply(&mut body, at, scope.request.digest);
            script.before_head = fault.before_head;
            if let Some(content_type) = &fault.content_type {
                set_header(&mut script.headers, "content-type", content_type);
            }
            for (name, value) in &fault.headers {
                set_header(&mut script.headers, &name.to_ascii_lowercase(), value);
            }
        }
        if !script.before_head {
            script.pieces = rule.pace.pieces(body);
        }
        script.rule = Some(rule.name.clone());
        script.delay_ms = rule.pace.head_ms;
        Ok(script)
    }

    fn message(&self, rule: &Rule, scope: &Scope) -> Result<(wire::Bytes, Script), String> {
        let request = &scope.request;
        let mut blocks = Vec::new();
        for (i, block) in rule.reply.iter().enumerate() {
            let made = block.answer(scope, &self.templates, &mut blocks);
            made.map_err(|why| format!("reply {}: {why}", i + 1))?;
        }
        request.choice.apply(&mut blocks, request.digest);
        let answer = AnswerParts {
            id: format!("msg_sim_{}", &request.digest.to_string()[..24]),
            model: &request.model,
            stop_reason: stop_reason(rule, request, &blocks),
            stop_sequence: rule.stop_sequence.as_deref(),
            usage: rule.usage.of(scope, &self.templates, &blocks)?,
            blocks: &blocks,
            delta: rule.delta,
        };
        let (body, kind) = request.dialect.write(&answer, request.stream);
        Ok((body, self.script(request.digest, 200, kind)))
    }

    /// The answer of a fault that represents one: no message, but an error or any other body.
    fn failure(&self, request: &Request, fault: &Fault) -> (wire::Bytes, Script) {
        let (status, digest) = (fault.status(), request.digest);
        let message = fault.message.as_deref().unwrap_or("the playbook says so");
        let kind = fault.error.as_deref();
        let body = match &fault.body {
            Some(body) => wire::Bytes::recorded(body),
            None => {
                let error = request.dialect.error(digest, status, kind, message);
                wire::Bytes::recorded(error.as_bytes())
            }
        };
        (body, self.script(digest, status, "application/json"))
    }

    fn error(&self, dialect: Dialect, digest: Digest, status: u16, message: &str) -> Script {
        self.whole(digest, status, dialect.error(digest, status, None, message))
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
            before_head: false,
        }
    }
}

/// Returns why the answer ends: what the rule says, where the request lets it be, or what its blocks make of it.
fn stop_reason<'a>(rule: &'a Rule, request: &Request, blocks: &[Block]) -> &'a str {
    match (&rule.stop, &rule.stop_sequence) {
        (Some(stop), _) if request.choice.keeps(stop) => stop,
        (None, Some(_)) if request.choice.keeps("stop_sequence") => "stop_sequence",
        _ if blocks.iter().any(|block| matches!(block, Block::Tool { .. })) => "tool_use",
        _ => "end_turn",
    }
}

fn set_header(headers: &mut Vec<(String, String)>, name: &str, value: &str) {
    headers.retain(|(other, _)| other != name);
    headers.push((name.to_owned(), value.to_owned()));
}
