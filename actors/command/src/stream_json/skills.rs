//! Skills and commands of a session: what is offered, and prompts that call one.

use std::{collections::BTreeSet, mem, sync::Arc};

use ennead::{
    PromptBlock, SessionOptions,
    tool::{AgentType, Tool},
};
use ennead_runtime::skill::{Skill, SkillContext, TooLong};
use ennead_tools::skill::skill_tool;
use serde_json::{Value, json};

/// Commands that are not files: name, hint, and what each does.
const BUILT_IN: [(&str, &str, &str); 2] = [
    ("clear", "", "Begin another conversation"),
    ("compact", "[focus]", "Go on from a summary of the conversation"),
];

/// The skills and commands that were found.
#[derive(Clone, Debug, Default)]
pub struct Skills {
    /// In the order in which they hold.
    pub all: Vec<Skill>,
    /// Whether the model may be offered the tool that loads them.
    pub has_tool: bool,
    /// Those that the program wants nothing to be known of.
    pub hidden: BTreeSet<Arc<str>>,
}

impl Skills {
    /// Hides from the model what a list does not name; without a list nothing is hidden.
    pub fn restrict(&mut self, names: Option<&Value>) {
        let Some(names) = names.and_then(Value::as_array) else { return };
        let is_named = |it: &Skill| names.iter().any(|name| name.as_str() == Some(&it.name));
        for skill in self.all.iter_mut().filter(|it| !is_named(it)) {
            skill.is_for_people_only = true;
            self.hidden.insert(skill.name.clone());
        }
    }

    /// Adds the tool that loads skills to the session, if there are some for its model, and to its agents the texts of
    /// those that they name; returns what cannot be had, in words.
    pub fn offer(&self, options: &mut SessionOptions, context: SkillContext<'_>) -> Vec<String> {
        let problems = self.preload(&mut options.agent_types, context);
        self.offer_tool(options);
        problems
    }

    /// Adds the texts of the skills that agents name to their system prompts; returns what cannot be had, in words.
    pub(crate) fn preload(
        &self,
        agents: &mut [AgentType],
        context: SkillContext<'_>,
    ) -> Vec<String> {
        let mut problems = Vec::new();
        for agent in agents {
            let mut text = agent.system_prompt.to_string();
            let names: BTreeSet<Arc<str>> = mem::take(&mut agent.skills).into_iter().collect();
            for name in names {
                match self.text_for_models(&name, context) {
                    Ok(skill) => text.push_str(&format!("\n\nSkill `{name}`. {skill}")),
                    Err(why) => problems
                        .push(format!("the agent `{}` has no skill `{name}`: {why}", agent.name)),
                }
            }
            agent.system_prompt = text.into();
        }
        problems
    }

    fn text_for_models(&self, name: &str, context: SkillContext<'_>) -> Result<String, String> {
        let found = self.all.iter().find(|it| it.directory.is_some() && &*it.name == name);
        match found {
            None => Err("there is none of this name".into()),
            Some(it) if it.is_for_people_only => Err("it is not for models".into()),
            Some(it) => Ok(in_directory(it, it.render("", context).map_err(|it| it.to_string())?)),
        }
    }

    fn offer_tool(&self, options: &mut SessionOptions) {
        let skills: Arc<[Skill]> =
            self.all.iter().filter(|it| it.directory.is_some()).cloned().collect();
        let is_taken = options.tools.iter().any(|it| it.spec().name.as_str() == "Skill");
        if !self.has_tool || is_taken || skills.iter().all(|it| it.is_for_people_only) {
            return;
        }
        if let Ok(tool) = skill_tool(skills) {
            options.tools.push(Arc::new(tool) as Arc<dyn Tool>);
        }
    }

    /// Returns the names of what people can call, those of the program itself first.
    pub(crate) fn commands(&self) -> Vec<&str> {
        let own = BUILT_IN.iter().map(|it| it.0);
        own.chain(self.for_people().map(|it| &*it.name)).collect()
    }

    /// Returns the names of the skills, without those that are hidden.
    pub fn names(&self) -> Vec<&str> {
        let is_shown = |it: &&Skill| it.directory.is_some() && !self.hidden.contains(&it.name);
        let skills = self.all.iter().filter(is_shown);
        skills.map(|it| &*it.name).collect()
    }

    /// Returns what people can call, with what it is for.
    pub fn described(&self) -> Vec<Value> {
        let described = |it: &Skill| {
            json!({
                "name": it.name.as_ref(),
                "description": it.description.as_ref(),
                "argumentHint": it.argument_hint.as_ref(),
            })
        };
        let own = BUILT_IN.iter().map(
            |(name, hint, what)| json!({"name": name, "description": what, "argumentHint": hint}),
        );
        own.chain(self.for_people().map(described)).collect()
    }

    /// Replaces a prompt that begins with the name of a command (`/name arguments`) by its text. Any other prompt stays
    /// as it is.
    ///
    /// # Errors
    ///
    /// [`TooLong`]: the prompt stays as it is.
    pub fn expand(
        &self,
        content: &mut [PromptBlock],
        context: SkillContext<'_>,
    ) -> Result<(), TooLong> {
        let Some(first) = content.first_mut() else { return Ok(()) };
        let Some(called) = first.block().as_text().and_then(|it| it.strip_prefix('/')) else {
            return Ok(());
        };
        let (name, arguments) = called.split_once(char::is_whitespace).unwrap_or((called, ""));
        let Some(skill) = self.for_people().find(|it| &*it.name == name) else { return Ok(()) };
        let text = skill.render(arguments, context)?;
        let text = in_directory(skill, text);
        // An empty text would be no prompt.
        if !text.trim().is_empty() {
            *first = PromptBlock::text(&text);
        }
        Ok(())
    }

    fn for_people(&self) -> impl Iterator<Item = &Skill> {
        self.all.iter().filter(|it| !it.is_for_models_only)
    }
}

/// The text of a skill, after where its files are.
fn in_directory(skill: &Skill, text: String) -> String {
    match &skill.directory {
        Some(directory) => format!("Base directory for this skill: {directory}\n\n{text}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: AGT-4
    #[test]
    fn agent_knows_the_skills_that_it_names_and_the_others_are_reported() {
        let skill = |name: &str, is_for_people_only| Skill {
            name: name.into(),
            body: format!("How to {name}.").into(),
            directory: Some("/skills".into()),
            is_for_people_only,
            ..Skill::default()
        };
        let skills = Skills {
            all: vec![skill("rhyme", false), skill("own", true)],
            has_tool: true,
            ..Skills::default()
        };
        let mut agent = AgentType::new("poet", "writes", "Write.");
        agent.skills = ["rhyme", "own", "none", "rhyme"].map(Into::into).to_vec();
        let mut agents = [agent];
        let problems = skills.preload(&mut agents, SkillContext { session: "s", project: "/w" });
        let prompt = &agents[0].system_prompt;
        assert!(prompt.starts_with("Write.\n\nSkill `rhyme`."), "{prompt}");
        assert_eq!(prompt.matches("How to").count(), 1, "{prompt}");
        assert_eq!(problems.len(), 2, "{problems:?}");
    }

    // REQ: SUR-3
    #[test]
    fn prompt_that_calls_a_command_becomes_its_text_and_no_other_does() {
        let skill = |name: &str, body: &str, is_for_models_only| Skill {
            name: name.into(),
            body: body.into(),
            is_for_models_only,
            ..Skill::default()
        };
        let all =
            vec![skill("fix", "Fix $0.", false), skill("own", "x", true), skill("no", "", false)];
        let skills = Skills { all, has_tool: true, ..Skills::default() };
        let context = SkillContext { session: "s", project: "/w" };
        let expanded = |text: &str| {
            let mut content = [PromptBlock::text(text), PromptBlock::text("more")];
            skills.expand(&mut content, context).unwrap();
            content[0].block().as_text().unwrap_or_default().to_owned()
        };
        assert_eq!(expanded("/fix it"), "Fix it.");
        for same in ["/own", "/fixed it", "/tmp/x", "fix /fix", "/", "/no"] {
            assert_eq!(expanded(same), same);
        }
        assert_eq!(skills.commands(), ["clear", "compact", "fix", "no"]);
    }
}
