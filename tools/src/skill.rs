//! Skill: loads the text of a skill when the model calls it.

use std::sync::Arc;

use ennead_runtime::{
    skill::{Skill, SkillContext, listing},
    tool::{Access, Concurrency},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::custom::{CustomTool, CustomToolError};

/// Characters of a skill that the model is shown at once; the rest is in a file.
const MAX_CHARS: u32 = 100_000;

/// A skill by its name.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SkillInput {
    /// The name of the skill.
    skill: String,
    /// Arguments, as the skill takes them.
    args: Option<String>,
}

/// Makes the tool for these skills. Rules `Skill(name)` are about one of them.
///
/// # Errors
///
/// Never for the name and the schema that are written here; as [`CustomToolError`] says.
pub fn skill_tool(skills: Arc<[Skill]>) -> Result<CustomTool, CustomToolError> {
    let description = format!(
        "Loads instructions for a kind of task. Call it before you begin a task that one of these \
         skills is for, and then follow what it says:\n{}",
        listing(&skills)
    );
    CustomTool::typed("Skill", &description, move |input: SkillInput, context| {
        let context =
            SkillContext { session: context.session.as_str(), project: &context.workspace };
        std::future::ready(loaded(&skills, &input, context))
    })
    .read_only()
    .concurrency(Concurrency::Together { max: 10 })
    .access(Access::Free)
    .output_cap(Some(MAX_CHARS))
    .build()
}

fn loaded(
    skills: &[Skill],
    input: &SkillInput,
    context: SkillContext<'_>,
) -> Result<String, String> {
    let name = input.skill.trim().trim_start_matches('/');
    let offered = || skills.iter().filter(|it| !it.is_for_people_only);
    let Some(skill) = offered().find(|it| &*it.name == name) else {
        let names: Vec<&str> = offered().map(|it| &*it.name).collect();
        return Err(format!("There is no skill `{name}`. There are: {}.", names.join(", ")));
    };
    let arguments = input.args.as_deref().unwrap_or_default();
    let text =
        skill.render(arguments, context).map_err(|it| format!("The skill is not loaded: {it}."))?;
    Ok(match &skill.directory {
        Some(directory) => format!("Base directory for this skill: {directory}\n\n{text}"),
        None => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SUR-3
    #[test]
    fn text_comes_when_it_is_called_and_only_to_models_that_may() {
        let skill = |name: &str, is_for_people_only| Skill {
            name: name.into(),
            description: "makes pots".into(),
            body: "Take $0.".into(),
            directory: Some("/skills/pot".into()),
            is_for_people_only,
            ..Skill::default()
        };
        let skills: Arc<[Skill]> = [skill("pot", false), skill("pan", true)].into();
        let tool = skill_tool(Arc::clone(&skills)).unwrap();
        let spec = ennead_runtime::ports::Tool::spec(&tool);
        assert!(spec.description.ends_with("- pot: makes pots"), "{}", spec.description);
        let context = SkillContext { session: "s", project: "/w" };
        let call = |name: &str| {
            let input = SkillInput { skill: name.into(), args: Some("clay".into()) };
            loaded(&skills, &input, context)
        };
        let text = "Base directory for this skill: /skills/pot\n\nTake clay.";
        assert_eq!(call("pot").as_deref(), Ok(text));
        assert_eq!(call("pan"), Err("There is no skill `pan`. There are: pot.".into()));
    }
}
