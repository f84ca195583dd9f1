//! Reads a plug-in of `--plugin-dir`: `.claude-plugin/plugin.json`, `skills/`, `commands/`, `agents/`, `hooks/` and
//! `.mcp.json`.
//!
//! What it brings is called `plugin:name`. Who names the directory trusts it, but no link leads out of it.

mod configured;

use std::path::{Path, PathBuf};

use ennead_runtime::{run::agent_types::AgentType, skill::Skill};
use ennead_tools::source_file::{ReadError, Root};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    agent_files::read_all,
    skill_files::{SkillKind, is_callable, read_commands, read_skills},
};

/// Parts of plug-ins that are not used.
const UNUSED: [&str; 2] = [".lsp.json", "output-styles"];

/// Stands for the directory of the plug-in in what it brings.
const PLACE: &str = "${CLAUDE_PLUGIN_ROOT}";

/// A plug-in that was read.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Plugin {
    /// Its name: that of its manifest, or of its directory without one.
    pub name: String,
    /// Where it lies; absolute.
    pub path: PathBuf,
    /// The version that its manifest names.
    pub version: Option<String>,
    /// Its skills, then its commands.
    pub skills: Vec<Skill>,
    /// Its types of sub-agents.
    pub agents: Vec<AgentType>,
    /// Its hooks, as the key `hooks` of a settings file has them.
    pub hooks: Map<String, Value>,
    /// Its MCP servers by name (`plugin:kit:db`), as the key `mcpServers` of a configuration has them.
    pub servers: Map<String, Value>,
}

/// What a manifest says; other keys are passed over.
#[derive(Debug, Default, Deserialize)]
struct Manifest {
    name: String,
    version: Option<String>,
    #[serde(rename = "description")]
    _description: Option<String>,
    #[serde(rename = "keywords")]
    _keywords: Option<Vec<String>>,
    /// Hooks in addition to `hooks/hooks.json`: an object, a path or several.
    hooks: Option<Value>,
    /// Servers in addition to `.mcp.json`: an object, a path or several.
    #[serde(rename = "mcpServers")]
    servers: Option<Value>,
}

/// Reads the plug-in of a directory, on the thread of the caller; and what of it cannot be used, in words.
///
/// # Errors
///
/// Why there is none, in words.
pub fn plugin_files(directory: &Path) -> Result<(Plugin, Vec<String>), String> {
    let root = Root::open(directory).map_err(|it| it.to_string())?;
    let manifest = match root.read_text(Path::new(".claude-plugin/plugin.json")) {
        Ok(text) => Some(
            serde_json::from_str::<Manifest>(&text)
                .map_err(|error| format!("its plugin.json cannot be used: {error}"))?,
        ),
        Err(ReadError::Missing) => None,
        Err(error) => return Err(format!("its plugin.json cannot be read: {error}")),
    };
    let Manifest { name, version, hooks, servers, .. } = manifest.unwrap_or_else(|| {
        let name = root.real().file_name().unwrap_or_default().to_string_lossy().into_owned();
        Manifest { name, ..Manifest::default() }
    });
    if !is_callable(&name) {
        return Err(format!(
            "its name {name:?} has other characters than letters, digits, `-`, `_` and `.`"
        ));
    }
    let path = root.real().to_owned();
    let (mut skills, mut agents, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    let kind = SkillKind { within: Some(&root), is_skill: true, takes_name: true };
    read_skills(&path.join("skills"), kind, &mut skills, &mut problems);
    let kind = SkillKind { is_skill: false, takes_name: false, ..kind };
    read_commands(&path.join("commands"), kind, &mut skills, &mut problems);
    read_all(&path.join("agents"), Some(&root), true, &mut agents, &mut problems);
    let place = path.to_string_lossy();
    for skill in &mut skills {
        skill.name = format!("{name}:{}", skill.name).into();
        skill.body = skill.body.replace(PLACE, &place).into();
    }
    for agent in &mut agents {
        agent.name = format!("{name}:{}", agent.name).into();
    }
    let unused = UNUSED.iter().filter(|it| path.join(it).exists());
    problems.extend(unused.map(|it| format!("{it} of the plug-in `{name}` is not used")));
    let hooks = configured::hooks(&root, hooks, &mut problems);
    let servers = configured::servers(&root, &name, servers, &mut problems);
    Ok((Plugin { name, path, version, skills, agents, hooks, servers }, problems))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    // REQ: SUR-3
    #[test]
    fn plug_in_brings_skills_commands_and_agents_under_its_name() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = place.path().join("kit").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "skills/plain/SKILL.md",
            "---\nname: Fancy\ndescription: d\n---\nIn ${CLAUDE_PLUGIN_ROOT}.",
        );
        write("commands/deep/fix.md", "Fix it.");
        write("agents/poet.md", "---\nname: poet\ndescription: writes\n---\nWrite.");
        write(".lsp.json", "{}");
        std::os::unix::fs::symlink("/etc/passwd", place.path().join("kit/commands/out.md"))
            .unwrap();
        let directory = place.path().join("kit");
        let (plugin, problems) = plugin_files(&directory).unwrap();
        assert_eq!((&*plugin.name, plugin.version), ("kit", None));
        let names: Vec<_> = plugin.skills.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["kit:Fancy", "kit:fix"]);
        let root = directory.canonicalize().unwrap();
        assert_eq!(&*plugin.skills[0].body, format!("In {}.", root.display()));
        assert_eq!(&*plugin.agents[0].name, "kit:poet");
        assert!(problems.len() == 2 && problems[0].contains("out.md"), "{problems:?}");
        assert!(problems[1].contains(".lsp.json"), "{problems:?}");
        write(".claude-plugin/plugin.json", r#"{"name": "p", "version": "1.2", "foo": 1}"#);
        let (plugin, _) = plugin_files(&directory).unwrap();
        assert_eq!((&*plugin.name, plugin.version.as_deref()), ("p", Some("1.2")));
        for (manifest, why) in [
            (r#"{"name": "p", "keywords": "x"}"#, "keywords"),
            (r#"{"version": "1"}"#, "name"),
            (r#"{"name": "a b"}"#, "characters"),
            ("no json", "cannot be used"),
        ] {
            write(".claude-plugin/plugin.json", manifest);
            let refused = plugin_files(&directory).unwrap_err();
            assert!(refused.contains(why) || refused.contains("cannot be used"), "{refused}");
        }
        assert!(plugin_files(&place.path().join("none")).is_err());
    }
}
