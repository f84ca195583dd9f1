//! The templates of a playbook: minijinja with a bound on everything, and a few functions for
//! reading the texts of tool results.
//!
//! A template is the one thing in a playbook that runs. What it may cost is set here: steps by fuel,
//! depth by the recursion limit, output by a counting writer, and memory by [`bounds`].

mod bounds;
mod rewrite;

use std::{
    collections::BTreeMap,
    fmt, io,
    sync::{Arc, PoisonError, RwLock},
};

use minijinja::{
    Environment, Error, ErrorKind, State, UndefinedBehavior,
    syntax::SyntaxConfig,
    value::{Serde, Value},
};
use regex::{Regex, RegexBuilder};

/// Steps one template or expression may take. A survey of 50 folders needs about 20,000.
const FUEL: u64 = 5_000_000;
/// Calls within calls; well within the stack of a thread of 2 MiB.
const MAX_DEPTH: usize = 64;
/// Bytes one template may write: more than any model answers at once.
pub(super) const MAX_OUTPUT: usize = 8 << 20;
/// Bytes a compiled regular expression may take.
const MAX_REGEX: usize = 1 << 20;
/// Compiled regular expressions that are kept.
const MAX_REGEXES: usize = 256;

/// Compiled templates, by number.
pub(super) struct Templates {
    env: Environment<'static>,
    n_templates: usize,
}

/// A template of a [`Templates`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TemplateId(usize);

impl Templates {
    pub(super) fn new() -> Self {
        let mut env = Environment::new();
        env.set_fuel(Some(FUEL));
        env.set_recursion_limit(MAX_DEPTH);
        // A misspelt name is an error of the playbook, not an empty text in an answer.
        env.set_undefined_behavior(UndefinedBehavior::Strict);
        // A tag on a line of its own leaves no line behind, so that long templates can be laid out.
        if let Ok(syntax) = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build() {
            env.set_syntax(syntax);
        }
        env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        bounds::install(&mut env);
        let regexes = Arc::new(Regexes::default());
        let with = regexes.clone();
        env.add_filter("matches", move |text: &str, pattern: &str| {
            with.get(pattern).map(|pattern| pattern.is_match(text))
        });
        let with = regexes.clone();
        env.add_filter("capture", move |text: &str, pattern: &str| {
            with.get(pattern).map(|pattern| capture(text, &pattern))
        });
        let with = regexes.clone();
        env.add_filter("find_all", move |state: &mut State<'_, '_>, text: &str, pattern: &str| {
            let found = Value::from(find_all(text, &with.get(pattern)?));
            bounds::charge(state, &found)?;
            Ok::<Value, Error>(found)
        });
        env.add_filter(
            "sub",
            move |state: &mut State<'_, '_>, text: &str, pattern: &str, to: &str| {
                bounds::sub(state, text, &regexes.get(pattern)?, to)
            },
        );
        env.add_filter("quote_regex", |state: &mut State<'_, '_>, text: &str| {
            let quoted = Value::from(regex::escape(text));
            bounds::charge(state, &quoted).map(|()| quoted)
        });
        env.add_filter("number", number);
        env.add_filter("json", |state: &mut State<'_, '_>, value: &Value| {
            bounds::charge(state, value)?;
            json(value)
        });
        env.add_filter("parse_json", parse_json);
        Self { env, n_templates: 0 }
    }

    /// Compiles a template.
    ///
    /// # Errors
    ///
    /// What is wrong with it, on one line.
    pub(super) fn add(&mut self, source: &str) -> Result<TemplateId, String> {
        let id = TemplateId(self.n_templates);
        self.env
            .add_template_owned(id.0.to_string(), rewrite::template(source)?)
            .map_err(|error| one_line(&error))?;
        self.n_templates += 1;
        Ok(id)
    }

    /// Writes a template out.
    pub(super) fn render(&self, id: TemplateId, scope: Value) -> Result<String, String> {
        let mut out = Bounded(Vec::new());
        self.env
            .get_template(&id.0.to_string())
            .and_then(|template| template.render_captured_to(scope, &mut out).map(drop))
            .map_err(|error| one_line(&error))?;
        String::from_utf8(out.0)
            .map_err(|_| "a template wrote bytes that are not a text".to_owned())
    }

    /// Checks that an expression can be compiled.
    pub(super) fn check(&self, expression: &str) -> Result<(), String> {
        // Compiled expressions borrow from the environment and cannot be kept next to it;
        // compiling one takes microseconds.
        let expression = rewrite::expression(expression)?;
        self.env.compile_expression(&expression).map(drop).map_err(|error| one_line(&error))
    }

    /// Renders a template that writes JSON, and returns its value.
    pub(super) fn render_json(&self, id: TemplateId, scope: Value) -> Result<Value, String> {
        parse_json(&self.render(id, scope)?).map_err(|error| one_line(&error))
    }

    /// Counts the bytes of a value that is kept for later ones.
    ///
    /// # Errors
    ///
    /// They are more than the values of a request may take.
    pub(super) fn size(value: &Value) -> Result<usize, String> {
        bounds::size(value).ok_or_else(|| "a value takes more than 32 MiB".to_owned())
    }

    /// Evaluates an expression, with `scope` as its variables.
    pub(super) fn eval(&self, expression: &str, scope: Value) -> Result<Value, String> {
        self.env
            .compile_expression_owned(rewrite::expression(expression)?)
            .and_then(|expression| expression.eval(scope))
            .map_err(|error| one_line(&error))
    }
}

impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Templates").field("n_templates", &self.n_templates).finish_non_exhaustive()
    }
}

/// Compiled regular expressions by their text. Compiling one takes longer than most searches, and
/// a playbook asks for the same few again and again.
#[derive(Default)]
struct Regexes(RwLock<BTreeMap<String, Regex>>);

impl Regexes {
    fn get(&self, pattern: &str) -> Result<Regex, Error> {
        // Entries are only ever added whole, so a poisoned map is as good as any.
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(pattern).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let compiled = regex(pattern).map_err(invalid)?;
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // A pattern made from a request is new every time; such a playbook starts over.
        if all.len() == MAX_REGEXES {
            all.clear();
        }
        all.insert(pattern.to_owned(), compiled.clone());
        Ok(compiled)
    }
}

/// Compiles a regular expression of a playbook.
pub(super) fn regex(pattern: &str) -> Result<Regex, String> {
    let compiled = RegexBuilder::new(pattern).size_limit(MAX_REGEX).build();
    // The crate draws a picture of the pattern; the last line says what is wrong.
    compiled.map_err(|error| {
        let text = error.to_string();
        let why = text.lines().next_back().unwrap_or_default().trim_start_matches("error: ");
        format!("bad regular expression `{pattern}`: {why}")
    })
}

fn one_line(error: &Error) -> String {
    let kind = error.kind();
    let line = error.line().map(|line| format!(" in line {line} of the template"));
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let text = format!("{kind}{detail}{}{}", cause.unwrap_or_default(), line.unwrap_or_default());
    text.replace(['\n', '\r'], " ")
}

struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_OUTPUT {
            return Err(io::Error::other("a template wrote more than 8 MiB"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn invalid(why: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, why)
}

fn groups(captures: &regex::Captures<'_>, from: usize) -> Vec<Value> {
    let text = |group: Option<regex::Match<'_>>| Value::from(group.map_or("", |m| m.as_str()));
    captures.iter().skip(from).map(text).collect()
}

/// The groups of the first match, the whole match first; empty when there is none.
fn capture(text: &str, pattern: &Regex) -> Vec<Value> {
    pattern.captures(text).map(|found| groups(&found, 0)).unwrap_or_default()
}

/// One entry for every match: its text, or its only group, or the list of its groups.
fn find_all(text: &str, pattern: &Regex) -> Vec<Value> {
    let one = |found: regex::Captures<'_>| match pattern.captures_len() {
        1 => Value::from(&found[0]),
        2 => Value::from(found.get(1).map_or("", |group| group.as_str())),
        _ => Value::from(groups(&found, 1)),
    };
    // One more than there may be is noticed by who counts them.
    pattern.captures_iter(text).take(bounds::MAX_ITEMS + 1).map(one).collect()
}

/// The first whole number in the text; thousands may be set off by `,` or `_`.
fn number(text: &str) -> Result<i64, Error> {
    let none = || invalid(format!("no number in `{}`", text.chars().take(80).collect::<String>()));
    let at = text.find(|c: char| c.is_ascii_digit()).ok_or_else(none)?;
    let digits = text[at..].chars().filter(|c| !matches!(c, ',' | '_'));
    let digits: String = digits.take_while(char::is_ascii_digit).collect();
    let sign = if text[..at].ends_with('-') { "-" } else { "" };
    format!("{sign}{digits}").parse().map_err(|_| none())
}

fn json(value: &Value) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| invalid(error.to_string()))
}

fn parse_json(text: &str) -> Result<Value, Error> {
    // A value takes many times the bytes of its text.
    if MAX_OUTPUT < text.len() {
        return Err(invalid("JSON of more than 8 MiB".to_owned()));
    }
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| invalid(format!("no JSON: {error}")))?;
    Ok(Value::from(Serde(&value)))
}

#[cfg(test)]
mod tests;
