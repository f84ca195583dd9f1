//! AskUserQuestion: the model asks a person to choose.
//!
//! The person is asked by the question about the call itself; a yes brings the input with the answers in it. Here is
//! what the model reads of them.

use std::{collections::BTreeMap, sync::Arc};

use ennead_runtime::{
    ports::ToolContext,
    tool::{ASK_USER_QUESTION, ToolErrorKind, ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::built_in::{BuiltIn, BuiltInCall, person_spec};

pub(crate) struct AskUserQuestion;

/// The questions that a person is asked, and the answers once there are some.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskInput {
    /// One to four questions.
    #[schemars(length(min = 1, max = 4))]
    questions: Vec<Question>,
    /// Filled in by the person; leave it out.
    answers: Option<BTreeMap<String, Answer>>,
    /// Filled in by the person; leave it out.
    response: Option<String>,
    /// Filled in; leave it out.
    annotations: Option<Value>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Question {
    /// The whole question, which ends with a question mark.
    #[schemars(length(min = 1))]
    question: String,
    /// A word for it, of at most 12 characters: "Library".
    #[schemars(length(min = 1, max = 12))]
    header: String,
    /// Two to four answers to choose from. The person may also give another one.
    #[schemars(length(min = 2, max = 4))]
    options: Vec<Choice>,
    /// Whether several may be chosen.
    #[serde(default)]
    multi_select: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Choice {
    /// The answer in one to five words.
    #[schemars(length(min = 1))]
    label: String,
    /// What it means to choose it.
    description: String,
    /// A sketch or a piece of code to compare it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<String>,
}

/// A label, or several.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum Answer {
    One(String),
    Several(Vec<String>),
}

impl Answer {
    fn text(&self) -> String {
        match self {
            Self::One(label) => label.clone(),
            Self::Several(labels) => labels.join(", "),
        }
    }
}

impl BuiltIn for AskUserQuestion {
    type Input = AskInput;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        let description = "Asks the person you work for to choose between answers, where you cannot go on well \
                without knowing. Do not ask what you can find out, or whether a plan is good.";
        person_spec(ASK_USER_QUESTION, description, input_schema)
    }

    async fn call(call: BuiltInCall<AskInput>, _: ToolContext) -> ToolOutcome {
        let AskInput { questions, answers, response, annotations } = call.input;
        let answers = answers.unwrap_or_default();
        let given = questions.iter().filter_map(|it| Some((it, answers.get(&it.question)?)));
        let mut lines: Vec<String> =
            given.map(|(it, answer)| format!("{}\n{}", it.question, answer.text())).collect();
        lines.extend(response.iter().map(|it| format!("In their own words:\n{it}")));
        if lines.is_empty() {
            let why = "The person let the question pass and answered nothing. Go on by your own judgement.";
            return ToolOutcome::failed(ToolErrorKind::Failed, why);
        }
        let mut result = json!({ "questions": questions, "answers": answers });
        for (name, value) in [("response", response.map(Value::from)), ("annotations", annotations)]
        {
            if let Some(value) = value {
                result[name] = value;
            }
        }
        let text = format!("The person answered.\n\n{}", lines.join("\n\n"));
        ToolOutcome::ok(text).with_structured(&result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{World, structured};

    fn input(more: &Value) -> Value {
        let option = |label: &str| json!({"label": label, "description": "d"});
        let mut input = json!({"questions": [
            {"question": "Which bridge?", "header": "Bridge", "options": [option("Stone"), option("Wood")]},
            {"question": "Which roads?", "header": "Roads", "multiSelect": true, "options": [option("A"), option("B")]},
        ]});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        input
    }

    // REQ: TOL-6, PRM-9
    #[test]
    fn answers_are_what_the_model_and_programs_read() {
        let mut world = World::new();
        let answers =
            json!({"Which bridge?": "Stone", "Which roads?": ["A", "B"], "Not asked?": "x"});
        let outcome = world.ok::<AskUserQuestion>(input(&json!({ "answers": answers })));
        let expected = "The person answered.\n\nWhich bridge?\nStone\n\nWhich roads?\nA, B";
        assert_eq!(outcome.text, expected);
        let result = structured(&outcome);
        assert_eq!(result["answers"], answers);
        assert_eq!(result["questions"][1]["multiSelect"], true);
        let outcome = world.ok::<AskUserQuestion>(input(&json!({"response": "neither"})));
        assert!(outcome.text.ends_with("In their own words:\nneither"), "{}", outcome.text);
    }

    // REQ: TOL-6
    #[test]
    fn question_without_an_answer_is_told() {
        let said = World::new().failed::<AskUserQuestion>(input(&json!({})));
        assert!(said.contains("answered nothing"), "{said}");
    }
}
