//! When a rule applies.

use regex::Regex;
use serde::Deserialize;

use super::{
    request::{Request, Scope},
    template::{Templates, regex},
};

/// The `when` of a rule, as written. All that is given must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWhen {
    model: Option<RawText>,
    system: Option<RawText>,
    prompt: Option<RawText>,
    first_prompt: Option<RawText>,
    users: Option<RawText>,
    result: Option<RawText>,
    failed: Option<bool>,
    stream: Option<bool>,
    turns: Option<RawNumber>,
    answers: Option<RawNumber>,
    tokens: Option<RawNumber>,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(rename = "if")]
    expression: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a text, a list of texts, or a table of `any`, `regex`, `not`"
)]
enum RawText {
    Contains(String),
    All(Vec<String>),
    Table(RawTextTable),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTextTable {
    #[serde(default)]
    any: Vec<String>,
    regex: Option<String>,
    not: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a whole number, or a table of `min` and `max`")]
enum RawNumber {
    Equal(u64),
    Range(RawRange),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRange {
    #[serde(default)]
    min: u64,
    max: Option<u64>,
}

/// The `when` of a rule.
#[derive(Debug)]
pub(super) struct When {
    texts: Vec<(Text, TextTest)>,
    numbers: Vec<(Number, u64, u64)>,
    failed: Option<bool>,
    stream: Option<bool>,
    tools: Vec<String>,
    expression: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum Text {
    Model,
    System,
    Prompt,
    FirstPrompt,
    Users,
    Result,
}

#[derive(Clone, Copy, Debug)]
enum Number {
    Turns,
    Answers,
    Tokens,
}

#[derive(Debug, Default)]
struct TextTest {
    all: Vec<String>,
    any: Vec<String>,
    regex: Option<Regex>,
    not: Option<String>,
}

impl When {
    pub(super) fn compile(raw: RawWhen, templates: &Templates) -> Result<Self, String> {
        let mut texts = Vec::new();
        for (text, name, raw) in [
            (Text::Model, "model", raw.model),
            (Text::System, "system", raw.system),
            (Text::Prompt, "prompt", raw.prompt),
            (Text::FirstPrompt, "first_prompt", raw.first_prompt),
            (Text::Users, "users", raw.users),
            (Text::Result, "result", raw.result),
        ] {
            if let Some(raw) = raw {
                let test = TextTest::compile(raw).map_err(|why| format!("when.{name}: {why}"))?;
                texts.push((text, test));
            }
        }
        let given = [
            (Number::Turns, raw.turns),
            (Number::Answers, raw.answers),
            (Number::Tokens, raw.tokens),
        ];
        let numbers = given.into_iter().filter_map(|(number, raw)| {
            raw.map(|raw| match raw {
                RawNumber::Equal(n) => (number, n, n),
                RawNumber::Range(RawRange { min, max }) => (number, min, max.unwrap_or(u64::MAX)),
            })
        });
        if let Some(expression) = &raw.expression {
            templates.check(expression).map_err(|why| format!("when.if: {why}"))?;
        }
        Ok(Self {
            texts,
            numbers: numbers.collect(),
            failed: raw.failed,
            stream: raw.stream,
            tools: raw.tools,
            expression: raw.expression,
        })
    }

    /// Returns whether all but its `if` holds.
    pub(super) fn holds(&self, request: &Request) -> bool {
        let number = |number: &Number| match number {
            Number::Turns => request.turns,
            Number::Answers => request.answers,
            Number::Tokens => request.n_chars / 4,
        };
        self.failed.is_none_or(|failed| failed == request.failed)
            && self.stream.is_none_or(|stream| stream == request.stream)
            && self.numbers.iter().all(|(n, min, max)| (*min..=*max).contains(&number(n)))
            && self.tools.iter().all(|tool| request.tools.contains(tool))
            && self.texts.iter().all(|(text, test)| test.holds(text.of(request)))
    }

    /// Returns whether its `if` holds, given the values of the rule.
    ///
    /// # Errors
    ///
    /// What went wrong in the expression.
    pub(super) fn holds_with(&self, scope: &Scope, templates: &Templates) -> Result<bool, String> {
        let Some(expression) = &self.expression else { return Ok(true) };
        let value = templates.eval(expression, scope.value());
        value.map(|value| value.is_true()).map_err(|why| format!("when.if: {why}"))
    }
}

impl Text {
    fn of(self, request: &Request) -> &str {
        match self {
            Text::Model => &request.model,
            Text::System => &request.system,
            Text::Prompt => request.prompt(),
            Text::FirstPrompt => request.first_prompt(),
            Text::Users => &request.users,
            Text::Result => &request.result,
        }
    }
}

impl TextTest {
    fn compile(raw: RawText) -> Result<Self, String> {
        Ok(match raw {
            RawText::Contains(text) => Self { all: vec![text], ..Self::default() },
            RawText::All(all) => Self { all, ..Self::default() },
            RawText::Table(RawTextTable { any, regex: pattern, not }) => Self {
                all: Vec::new(),
                any,
                regex: pattern.as_deref().map(regex).transpose()?,
                not,
            },
        })
    }

    fn holds(&self, text: &str) -> bool {
        self.all.iter().all(|part| text.contains(part))
            && (self.any.is_empty() || self.any.iter().any(|part| text.contains(part)))
            && self.regex.as_ref().is_none_or(|regex| regex.is_match(text))
            && self.not.as_ref().is_none_or(|part| !text.contains(part))
    }
}
