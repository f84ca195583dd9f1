//! What a rule answers: its content, computed from the request.

use std::sync::Arc;

use minijinja::value::Value;
use serde::Deserialize;
use serde_json::Value as Json;

use super::{
    content::{Block, Usage},
    count::Count,
    request::{Request, Scope},
    template::{MAX_OUTPUT, TemplateId, Templates},
};
use ennead_runtime::digest::Digest;

/// Blocks one answer may have; a loop over a long list ends here.
const MAX_BLOCKS: usize = 1000;

/// One entry of `reply`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBlock {
    text: Option<String>,
    thinking: Option<String>,
    tool: Option<String>,
    input: Option<toml::Table>,
    input_json: Option<String>,
    each: Option<String>,
    #[serde(rename = "if")]
    condition: Option<String>,
}

/// The `usage` of a rule, as written: numbers or expressions.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawUsage {
    input_tokens: Option<Count>,
    output_tokens: Option<Count>,
    cache_creation_input_tokens: Option<Count>,
    cache_read_input_tokens: Option<Count>,
}

/// One entry of `reply`, compiled.
#[derive(Debug)]
pub(super) struct BlockRule {
    what: ReplyPart,
    each: Option<String>,
    condition: Option<String>,
}

#[derive(Debug)]
enum ReplyPart {
    Text(TemplateId),
    Thinking(TemplateId),
    Tool { name: TemplateId, input: Shape },
}

/// The input of a call: JSON whose texts are templates.
#[derive(Debug)]
enum Shape {
    Text(TemplateId),
    Whole(TemplateId),
    Plain(Json),
    List(Vec<Shape>),
    Map(Vec<(String, Shape)>),
}

impl BlockRule {
    pub(super) fn compile(raw: RawBlock, templates: &mut Templates) -> Result<Self, String> {
        for expression in raw.each.iter().chain(&raw.condition) {
            templates.check(expression)?;
        }
        let has_input = raw.input.is_some() || raw.input_json.is_some();
        if raw.tool.is_none() && has_input {
            return Err("an input without `tool`".to_owned());
        }
        let what = match (raw.text, raw.thinking, raw.tool) {
            (Some(text), None, None) => ReplyPart::Text(templates.add(&text)?),
            (None, Some(thinking), None) => ReplyPart::Thinking(templates.add(&thinking)?),
            (None, None, Some(tool)) => {
                let input = match (raw.input, raw.input_json) {
                    (None, None) => Shape::Map(Vec::new()),
                    (Some(table), None) => Shape::compile(toml::Value::Table(table), templates)?,
                    (None, Some(json)) => Shape::Whole(templates.add(&json)?),
                    (Some(_), Some(_)) => {
                        return Err("both `input` and `input_json` are given".to_owned());
                    }
                };
                ReplyPart::Tool { name: templates.add(&tool)?, input }
            }
            _ => return Err("exactly one of `text`, `thinking`, `tool` is needed".to_owned()),
        };
        Ok(Self { what, each: raw.each, condition: raw.condition })
    }

    /// Appends the blocks that this entry makes: one, none, or one for each item.
    pub(super) fn answer(
        &self,
        scope: &Scope,
        templates: &Templates,
        blocks: &mut Vec<Block>,
    ) -> Result<(), String> {
        let Some(each) = &self.each else {
            return self.one(scope, templates, blocks);
        };
        let items = templates.eval(each, scope.value())?;
        let items = items.try_iter().map_err(|_| format!("`each` gives no list: {each}"))?;
        for (index, item) in items.enumerate() {
            let mut scope = scope.clone();
            scope.set(&Arc::from("item"), item);
            scope.set(&Arc::from("index"), Value::from(index));
            self.one(&scope, templates, blocks)?;
        }
        Ok(())
    }

    fn one(
        &self,
        scope: &Scope,
        templates: &Templates,
        blocks: &mut Vec<Block>,
    ) -> Result<(), String> {
        if let Some(condition) = &self.condition
            && !templates.eval(condition, scope.value())?.is_true()
        {
            return Ok(());
        }
        if blocks.len() == MAX_BLOCKS {
            return Err(format!("more than {MAX_BLOCKS} blocks"));
        }
        let own = own_digest(&scope.request, blocks.len());
        let block = match &self.what {
            // The API sends no empty text either.
            ReplyPart::Text(id) => match templates.render(*id, scope.value())? {
                text if text.is_empty() => return Ok(()),
                text => Block::Text(text),
            },
            ReplyPart::Thinking(id) => Block::Thinking {
                text: templates.render(*id, scope.value())?,
                signature: format!("sim{own}"),
            },
            ReplyPart::Tool { name, input } => {
                let name = templates.render(*name, scope.value())?;
                let input = input
                    .render(scope, templates)
                    .map_err(|why| format!("input of {name}: {why}"))?;
                if !input.is_object() {
                    return Err(format!("input of {name}: no JSON object"));
                }
                Block::Tool {
                    id: format!("toolu_sim_{}", &own.to_string()[..20]),
                    name,
                    input: input.to_string(),
                }
            }
        };
        blocks.push(block);
        let size: usize = blocks.iter().map(Block::len).sum();
        if size > 2 * MAX_OUTPUT {
            Err("the answer is longer than 16 MiB".to_owned())
        } else {
            Ok(())
        }
    }
}

/// Returns a digest that differs between the blocks of an answer, and between requests.
fn own_digest(request: &Request, index: usize) -> Digest {
    request.digest.chain(Digest::of(&index.to_le_bytes()))
}

impl Shape {
    fn compile(value: toml::Value, templates: &mut Templates) -> Result<Self, String> {
        Ok(match value {
            toml::Value::String(text) => Shape::Text(templates.add(&text)?),
            toml::Value::Array(values) => {
                let values = values.into_iter().map(|value| Shape::compile(value, templates));
                Shape::List(values.collect::<Result<_, _>>()?)
            }
            toml::Value::Table(table) => {
                let values = table
                    .into_iter()
                    .map(|(key, value)| Ok((key, Shape::compile(value, templates)?)));
                Shape::Map(values.collect::<Result<_, String>>()?)
            }
            plain => Shape::Plain(serde_json::to_value(plain).map_err(|error| error.to_string())?),
        })
    }

    fn render(&self, scope: &Scope, templates: &Templates) -> Result<Json, String> {
        Ok(match self {
            Shape::Text(id) => Json::String(templates.render(*id, scope.value())?),
            Shape::Whole(id) => {
                let text = templates.render(*id, scope.value())?;
                serde_json::from_str(&text)
                    .map_err(|error| format!("`input_json` gives no JSON: {error}"))?
            }
            Shape::Plain(value) => value.clone(),
            Shape::List(values) => values
                .iter()
                .map(|value| value.render(scope, templates))
                .collect::<Result<_, _>>()?,
            Shape::Map(entries) => Json::Object(
                entries
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), value.render(scope, templates)?)))
                    .collect::<Result<_, String>>()?,
            ),
        })
    }
}

impl RawUsage {
    pub(super) fn check(&self, templates: &Templates) -> Result<(), String> {
        let counts = [
            &self.input_tokens,
            &self.output_tokens,
            &self.cache_creation_input_tokens,
            &self.cache_read_input_tokens,
        ];
        for count in counts.into_iter().flatten() {
            count.check(templates).map_err(|why| format!("usage: {why}"))?;
        }
        Ok(())
    }

    /// Evaluates the usage. What is not given is counted: a token for four characters.
    pub(super) fn of(
        &self,
        scope: &Scope,
        templates: &Templates,
        blocks: &[Block],
    ) -> Result<Usage, String> {
        let count = |raw: &Option<Count>, otherwise: u64| match raw {
            None => Ok(otherwise),
            Some(count) => count.of(scope, templates).map_err(|why| format!("usage: {why}")),
        };
        let written: usize = blocks.iter().map(Block::len).sum();
        Ok(Usage {
            input: count(&self.input_tokens, scope.request.n_chars / 4)?,
            output: count(&self.output_tokens, (written as u64 / 4).max(1))?,
            cache_creation: count(&self.cache_creation_input_tokens, 0)?,
            cache_read: count(&self.cache_read_input_tokens, 0)?,
        })
    }
}
