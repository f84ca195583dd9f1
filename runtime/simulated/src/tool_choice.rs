//! What a request says about calls: whether the answer may, must or must not make any.
//!
//! A rule answers as it is written; then its answer is made to fit. Calls that may not be are left
//! out; a call that must be and that no rule makes gets the smallest input that its schema demands.

use serde_json::{Map, Value as Json, json};

use super::{
    content::Block,
    members::{list, str_of},
};
use ennead_runtime::digest::Digest;

/// Levels of a schema that are followed, and values that are made of one.
const MAX_DEPTH: usize = 16;
const MAX_VALUES: usize = 1000;

/// What a request says about calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ToolChoice {
    wanted: Wanted,
    /// No more than one.
    one: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum Wanted {
    #[default]
    Any,
    Nothing,
    /// One of these tools, each with its schema; the first if the rule calls none of them.
    Call(Vec<(String, Json)>),
}

impl ToolChoice {
    /// Reads it off a body of the Messages API.
    ///
    /// # Errors
    ///
    /// Why the API would not take it.
    pub(super) fn read(body: &Json) -> Result<Self, String> {
        let choice = &body["tool_choice"];
        if choice.is_null() {
            return Ok(Self::default());
        }
        let one = match &choice["disable_parallel_tool_use"] {
            Json::Null => false,
            Json::Bool(one) => *one,
            _ => {
                let why = "tool_choice.disable_parallel_tool_use: Input should be a valid boolean";
                return Err(why.to_owned());
            }
        };
        let offered = |it: &Json| (str_of(&it["name"]).to_owned(), it["input_schema"].clone());
        let tools = list(&body["tools"]);
        let wanted = match str_of(&choice["type"]) {
            "none" => Wanted::Nothing,
            "auto" => Wanted::Any,
            "any" => Wanted::Call(tools.iter().map(offered).collect()),
            "tool" => {
                let name = str_of(&choice["name"]);
                if name.is_empty() {
                    return Err("tool_choice.tool.name: Field required".to_owned());
                }
                let found = tools.iter().find(|it| it["name"] == name).map(offered);
                Wanted::Call(vec![
                    found.ok_or_else(|| format!("Tool '{name}' not found in provided tools"))?,
                ])
            }
            other => {
                return Err(format!(
                    "tool_choice: Input tag '{other}' found using 'type' does not match any of the \
                     expected tags: 'any', 'auto', 'none', 'tool'"
                ));
            }
        };
        if tools.is_empty() && wanted != Wanted::Nothing {
            return Err("tool_choice may only be specified while providing tools".to_owned());
        }
        let thinks = matches!(str_of(&body["thinking"]["type"]), "enabled" | "adaptive");
        if thinks && matches!(wanted, Wanted::Call(_)) {
            return Err("Thinking may not be enabled when tool_choice forces tool use.".to_owned());
        }
        Ok(Self { wanted, one })
    }

    /// Returns whether an answer may end for this reason, where its rule says so.
    pub(super) fn keeps(&self, stop: &str) -> bool {
        match self.wanted {
            Wanted::Any => true,
            Wanted::Nothing => stop != "tool_use",
            Wanted::Call(_) => !matches!(stop, "end_turn" | "stop_sequence"),
        }
    }

    /// Makes an answer fit. `key` makes the id of a call that is added.
    pub(super) fn apply(&self, blocks: &mut Vec<Block>, key: Digest) {
        match &self.wanted {
            Wanted::Any => {}
            Wanted::Nothing => {
                blocks.retain(|it| !matches!(it, Block::Tool { .. }));
                if blocks.is_empty() {
                    blocks.push(Block::Text(
                        "(The rule calls a tool, and none may be called.)".into(),
                    ));
                }
            }
            Wanted::Call(tools) => {
                let is_wanted = |it: &Block| match it {
                    Block::Tool { name, .. } => tools.iter().any(|(tool, _)| tool == name),
                    _ => false,
                };
                // An answer that must call says nothing before it.
                blocks.retain(is_wanted);
                if let (true, Some((name, schema))) = (blocks.is_empty(), tools.first()) {
                    let input = smallest(schema).to_string();
                    let id = format!("toolu_sim_{}", &key.to_string()[..20]);
                    blocks.push(Block::Tool { id, name: name.clone(), input });
                }
            }
        }
        if self.one {
            let mut n_calls = 0;
            blocks.retain(|it| {
                n_calls += usize::from(matches!(it, Block::Tool { .. }));
                n_calls <= 1 || !matches!(it, Block::Tool { .. })
            });
        }
    }
}

/// The smallest object that has what a schema demands.
fn smallest(schema: &Json) -> Json {
    let mut n_left = MAX_VALUES;
    let made = value(schema, schema, 0, &mut n_left);
    if made.is_object() { made } else { json!({}) }
}

fn value(schema: &Json, root: &Json, depth: usize, n_left: &mut usize) -> Json {
    if MAX_DEPTH <= depth || *n_left == 0 {
        return Json::Null;
    }
    *n_left -= 1;
    let mut inner = |schema: &Json| value(schema, root, depth + 1, n_left);
    if let Some(known) = schema.get("const").or_else(|| list(&schema["enum"]).first()) {
        return known.clone();
    }
    if let Some(known) = schema.get("default") {
        return known.clone();
    }
    if let Some(named) = schema["$ref"].as_str().and_then(|it| root.pointer(it.strip_prefix('#')?))
    {
        return inner(named);
    }
    let of = ["anyOf", "oneOf", "allOf"].iter().find_map(|it| list(&schema[*it]).first());
    let kind = schema["type"].as_str().or_else(|| list(&schema["type"]).first()?.as_str());
    match (kind, of) {
        (None, Some(first)) => inner(first),
        (Some("string"), _) => json!(""),
        (Some("integer" | "number"), _) => schema.get("minimum").cloned().unwrap_or(json!(0)),
        (Some("boolean"), _) => json!(false),
        (Some("array"), _) => json!([]),
        (Some("null"), _) => Json::Null,
        (Some("object") | None, _) | (Some(_), _) => {
            let required = list(&schema["required"]).iter().filter_map(Json::as_str);
            let member = |name: &str| (name.to_owned(), inner(&schema["properties"][name]));
            Json::Object(required.map(member).collect::<Map<_, _>>())
        }
    }
}
