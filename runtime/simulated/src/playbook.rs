//! Reads a playbook file, and says in one line what is wrong with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, de::DeserializeOwned};

use super::{
    condition::{RawWhen, When},
    fault::{Fault, RawFault, ReadFile},
    pace::Pace,
    reply::{BlockRule, RawBlock, RawUsage},
    template::{TemplateId, Templates},
};

/// Characters of a delta, where a rule does not say.
const DELTA: usize = 64;

/// A playbook: rules in order, of which the first that applies answers.
///
/// The format is described in `docs/playbooks.md`.
#[derive(Debug)]
pub struct Playbook {
    pub(super) name: Arc<str>,
    pub(super) key: Option<String>,
    /// Values that rules share.
    pub(super) values: BTreeMap<String, Locals>,
    pub(super) rules: Vec<Rule>,
    pub(super) templates: Templates,
}

/// What is wrong with a playbook. One line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("playbook {playbook}{}: {what}", rule.as_ref().map(|rule| format!(", rule `{rule}`")).unwrap_or_default())]
#[non_exhaustive]
pub struct PlaybookError {
    /// The file, as the caller named it.
    pub playbook: String,
    /// The name of the rule, or its number from 1 when it has none. `None`: the file as a whole.
    pub rule: Option<String>,
    /// What is wrong, in words.
    pub what: String,
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) name: Arc<str>,
    pub(super) when: When,
    pub(super) times: Option<u64>,
    /// The values it shares.
    pub(super) with: Option<String>,
    /// Its own named values, in order.
    pub(super) locals: Locals,
    pub(super) reply: Vec<BlockRule>,
    pub(super) stop: Option<String>,
    pub(super) stop_sequence: Option<String>,
    pub(super) usage: RawUsage,
    pub(super) delta: usize,
    pub(super) pace: Pace,
    faults: Faults,
}

/// What goes wrong when.
#[derive(Debug)]
enum Faults {
    /// The same fault every time, or none.
    Always(Option<Box<Fault>>),
    /// One fault after the other, and then none.
    InTurn(Vec<Fault>),
}

/// How a named value is computed.
#[derive(Clone, Debug)]
pub(super) enum Local {
    Expression(String),
    /// A template that writes JSON.
    Json(TemplateId),
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected an expression, or a table with `json`")]
enum RawLocal {
    Expression(String),
    Table(RawJson),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawJson {
    json: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    values: toml::Table,
    #[serde(default)]
    rule: Vec<toml::Table>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    name: String,
    times: Option<u64>,
    with: Option<String>,
    #[serde(default, rename = "let")]
    locals: toml::Table,
    reply: Option<Vec<RawBlock>>,
    stop: Option<String>,
    stop_sequence: Option<String>,
    delta: Option<usize>,
}

impl Playbook {
    /// Reads a playbook that names no files. `name` represents it in errors, headers and logs;
    /// usually the file name.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it.
    pub fn parse(text: &str, name: &str) -> Result<Self, PlaybookError> {
        Self::parse_with(text, name, |_| Err("no files can be read here".to_owned()))
    }

    /// Reads a playbook that serves recorded bodies. `read` returns the bytes of a file that the playbook names, as
    /// written, or why it cannot.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it, what `read` says included.
    pub fn parse_with(
        text: &str,
        name: &str,
        mut read: impl FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Self, PlaybookError> {
        let error = |rule: Option<String>, what: String| PlaybookError {
            playbook: one_line(name),
            rule: rule.map(|rule| one_line(&rule)),
            what: one_line(&what),
        };
        let file: RawFile = toml::from_str(text).map_err(|cause| {
            let line = cause.span().map(|span| {
                let before = text.as_bytes().iter().take(span.start);
                format!("line {}: ", 1 + before.filter(|byte| **byte == b'\n').count())
            });
            error(None, format!("{}{}", line.unwrap_or_default(), cause.message()))
        })?;
        if file.rule.is_empty() {
            return Err(error(None, "it has no rule".to_owned()));
        }
        let mut templates = Templates::new();
        let mut shared = BTreeMap::new();
        for (name, table) in file.values {
            let what = format!("values.{name}");
            let table = table.as_table().cloned();
            let table = table.ok_or_else(|| error(None, format!("{what}: must be a table")))?;
            let values = locals(table, &what, &mut templates).map_err(|why| error(None, why))?;
            shared.insert(name, values);
        }
        let mut rules: Vec<Rule> = Vec::new();
        let mut names = BTreeSet::new();
        for (index, table) in file.rule.into_iter().enumerate() {
            let label = match table.get("name").and_then(toml::Value::as_str) {
                Some(name) if !name.is_empty() => name.to_owned(),
                _ => (index + 1).to_string(),
            };
            let rule = Rule::compile(table, &shared, &mut templates, &mut read)
                .map_err(|why| error(Some(label.clone()), why))?;
            if !names.insert(rule.name.clone()) {
                return Err(error(Some(label), "another rule has this name".to_owned()));
            }
            rules.push(rule);
        }
        Ok(Self { name: one_line(name).into(), key: file.key, values: shared, rules, templates })
    }

    /// Returns the name that it had when it was read.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Rule {
    fn compile(
        mut table: toml::Table,
        shared: &BTreeMap<String, Locals>,
        templates: &mut Templates,
        read_file: &mut ReadFile<'_>,
    ) -> Result<Self, String> {
        // Entry by entry, so that an error can say which one is meant.
        let when: RawWhen = take(&mut table, "when")?.unwrap_or_default();
        let pace: Option<Pace> = take(&mut table, "pace")?;
        let fault: Option<RawFault> = take(&mut table, "fault")?;
        let faults: Option<Vec<RawFault>> = take(&mut table, "faults")?;
        let usage: Option<RawUsage> = take(&mut table, "usage")?;
        let raw: RawRule = read(toml::Value::Table(table), "")?;
        if raw.name.is_empty() {
            return Err("name: must not be empty".to_owned());
        }
        if let Some(with) = &raw.with
            && !shared.contains_key(with)
        {
            return Err(format!("with: there are no `values.{with}`"));
        }
        let locals = locals(raw.locals, "let", templates)?;
        let faults = Faults::compile(fault, faults, templates, read_file)?;
        let times = faults.check(raw.reply.is_some(), raw.times)?;
        let mut reply = Vec::new();
        for (i, block) in raw.reply.unwrap_or_default().into_iter().enumerate() {
            reply.push(
                BlockRule::compile(block, templates)
                    .map_err(|why| format!("reply {}: {why}", i + 1))?,
            );
        }
        let when = When::compile(when, templates)?;
        let (usage, pace) = (usage.unwrap_or_default(), pace.unwrap_or_default());
        usage.check(templates)?;
        pace.check()?;
        if raw.delta == Some(0) || raw.times == Some(0) {
            return Err("`delta` and `times` must be at least 1".to_owned());
        }
        Ok(Self {
            name: raw.name.into(),
            when,
            times,
            with: raw.with,
            locals,
            reply,
            stop: raw.stop,
            stop_sequence: raw.stop_sequence,
            usage,
            delta: raw.delta.unwrap_or(DELTA),
            pace,
            faults,
        })
    }

    /// Returns whether it must know how often it answered before.
    pub(super) fn counts(&self) -> bool {
        self.times.is_some() || matches!(self.faults, Faults::InTurn(_))
    }

    /// Returns what goes wrong after this many answers.
    pub(super) fn fault(&self, attempt: u64) -> Option<&Fault> {
        match &self.faults {
            Faults::Always(fault) => fault.as_deref(),
            Faults::InTurn(faults) => faults.get(usize::try_from(attempt).ok()?),
        }
    }
}

impl Faults {
    fn compile(
        fault: Option<RawFault>,
        faults: Option<Vec<RawFault>>,
        templates: &Templates,
        read: &mut ReadFile<'_>,
    ) -> Result<Self, String> {
        Ok(match (fault, faults) {
            (None, None) => Self::Always(None),
            (Some(fault), None) => {
                Self::Always(Some(Box::new(fault.compile("fault", templates, read)?)))
            }
            (None, Some(faults)) => Self::InTurn(
                (1..)
                    .zip(faults)
                    .map(|(i, fault)| fault.compile(&format!("faults {i}"), templates, read))
                    .collect::<Result<_, _>>()?,
            ),
            (Some(_), Some(_)) => return Err("both `fault` and `faults` are given".to_owned()),
        })
    }

    /// Whether every answer comes from somewhere. Gives how often the rule applies: one that has
    /// nothing to say after its faults is passed over then.
    fn check(&self, replies: bool, times: Option<u64>) -> Result<Option<u64>, String> {
        let faults = match self {
            Self::Always(fault) => {
                let replaced = fault.as_ref().is_some_and(|it| it.replaces_answer());
                return match (replies, replaced) {
                    (false, false) => Err("it has neither `reply` nor `fault.status`".to_owned()),
                    (true, true) => Err("the fault answers in place of `reply`; only one of them \
                                         can be given"
                        .to_owned()),
                    _ => Ok(times),
                };
            }
            Self::InTurn(faults) => faults,
        };
        if replies {
            return Ok(times);
        }
        let needs = |it: &Fault| !it.replaces_answer();
        if let Some(at) = faults.iter().position(needs) {
            return Err(format!("faults {} has no `status`, and there is no `reply`", at + 1));
        }
        let n_faults = faults.len() as u64;
        if n_faults == 0 || times.is_some_and(|it| n_faults < it) {
            return Err("it has neither `reply` nor enough `faults`".to_owned());
        }
        Ok(times.or(Some(n_faults)))
    }
}

/// Named values, in the order in which they are computed.
pub(super) type Locals = Vec<(Arc<str>, Local)>;

fn locals(table: toml::Table, place: &str, templates: &mut Templates) -> Result<Locals, String> {
    let mut locals = Locals::new();
    for (name, raw) in table {
        let place = format!("{place}.{name}: ");
        let local = match read(raw, &place)? {
            RawLocal::Expression(expression) => {
                templates.check(&expression).map_err(|why| format!("{place}{why}"))?;
                Local::Expression(expression)
            }
            RawLocal::Table(RawJson { json }) => {
                Local::Json(templates.add(&json).map_err(|why| format!("{place}{why}"))?)
            }
        };
        locals.push((Arc::from(name), local));
    }
    Ok(locals)
}

fn take<T: DeserializeOwned>(table: &mut toml::Table, key: &str) -> Result<Option<T>, String> {
    table.remove(key).map(|value| read(value, &format!("{key}: "))).transpose()
}

fn read<T: DeserializeOwned>(value: toml::Value, place: &str) -> Result<T, String> {
    value.try_into().map_err(|error: toml::de::Error| {
        // After the message come lines that name the keys on the way to the place.
        let text = error.to_string();
        format!("{place}{}", text.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim())
    })
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ").trim().to_owned()
}
