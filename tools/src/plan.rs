//! EnterPlanMode and ExitPlanMode: the model asks for the mode `plan`, and for approval of its plan.
//!
//! The mode is changed by the answer to the question about the call; here is what the model reads of it.

use std::sync::Arc;

use ennead_runtime::{
    ports::ToolContext,
    tool::{ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::built_in::{BuiltIn, BuiltInCall, person_spec};

pub(crate) struct EnterPlanMode;

pub(crate) struct ExitPlanMode;

/// Asks for nothing.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnterInput {}

/// What a person is shown, which the harness fills in.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct ExitInput {
    /// Filled in from the plan file; leave it out.
    plan: Option<String>,
    /// Filled in; leave it out.
    plan_file_path: Option<String>,
    /// Has no effect; leave it out.
    #[expect(dead_code, reason = "models that know it from elsewhere give it")]
    allowed_prompts: Option<Value>,
}

impl BuiltIn for EnterPlanMode {
    type Input = EnterInput;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        let description = "Asks a person for plan mode, in which you read, search and write a plan, and \
                           change nothing else. For work that needs agreement before it begins.";
        person_spec("EnterPlanMode", description, input_schema)
    }

    async fn call(_: BuiltInCall<EnterInput>, _: ToolContext) -> ToolOutcome {
        let text = "Plan mode holds now. Change nothing but your plan file, of which you are told.";
        ToolOutcome::ok(text).with_structured(&json!({ "message": text }))
    }
}

impl BuiltIn for ExitPlanMode {
    type Input = ExitInput;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        let description = "Shows the plan in your plan file to a person and asks for approval. Call it in \
                           plan mode, with an empty input, when the plan is whole. Approval ends plan mode.";
        person_spec("ExitPlanMode", description, input_schema)
    }

    async fn call(call: BuiltInCall<ExitInput>, _: ToolContext) -> ToolOutcome {
        let ExitInput { plan, plan_file_path, .. } = call.input;
        let mut text = "Your plan is approved and plan mode is over. You may begin.".to_owned();
        if let Some(plan) = &plan {
            text.push_str(&format!("\n\nThe plan as it was approved:\n\n{plan}"));
        }
        let mut result = json!({ "plan": plan, "isAgent": false });
        if let Some(file) = plan_file_path {
            result["filePath"] = file.into();
        }
        ToolOutcome::ok(text).with_structured(&result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{World, structured};

    // REQ: TOL-6
    #[test]
    fn approved_plan_is_what_the_model_and_programs_read() {
        let mut world = World::new();
        let input = json!({"plan": "first the bridge", "planFilePath": "/p.md"});
        let outcome = world.ok::<ExitPlanMode>(input);
        assert!(outcome.text.contains("first the bridge"), "{}", outcome.text);
        let expected = json!({"plan": "first the bridge", "isAgent": false, "filePath": "/p.md"});
        assert_eq!(structured(&outcome), expected);
        let outcome = world.ok::<EnterPlanMode>(json!({}));
        assert_eq!(structured(&outcome)["message"], outcome.text);
    }
}
