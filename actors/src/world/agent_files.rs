//! Reads `agents/**/*.md`: types of sub-agents that users and repositories define.

use std::{fs, io::Read, path::Path};

use ennead_runtime::{
    run::agent_types::AgentType,
    step1_settings_resolution::trust::{SettingSources, Trust},
};
use serde_json::{Map, Value};

use super::rules::{
    files_below,
    header::{Node, fields},
    split,
};

/// Bytes of a file that are read; a definition of 250 KB is large.
const MAX_BYTES: u64 = 4 << 20;

/// Files of one directory that are read.
const MAX_FILES: usize = 1_000;

/// The types that files of the user, below `config`, and of the repository define, those of the
/// repository first; and what cannot be used, in words. Files of a repository count where it is trusted or
/// its settings were named, and say nothing of permissions where it is not trusted. Reads files on the
/// thread of the caller.
pub fn agent_files(
    workspace: &Path,
    config: &Path,
    sources: SettingSources,
    trust: Trust,
) -> (Vec<AgentType>, Vec<String>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    if sources.project && trust != Trust::Untrusted {
        let within = workspace.canonicalize().ok();
        let directory = workspace.join(".claude/agents");
        read_all(&directory, within.as_deref(), trust == Trust::Trusted, &mut found, &mut problems);
    }
    if sources.user {
        read_all(&config.join("agents"), None, true, &mut found, &mut problems);
    }
    (found, problems)
}

/// Of one name the first holds.
fn read_all(
    directory: &Path,
    within: Option<&Path>,
    may_choose_mode: bool,
    found: &mut Vec<AgentType>,
    problems: &mut Vec<String>,
) {
    for path in files_below(directory, within).into_iter().take(MAX_FILES) {
        match read(&path) {
            Ok(mut kind) => {
                if !may_choose_mode {
                    kind.mode = None;
                }
                if found.iter().all(|it| it.name != kind.name) {
                    found.push(kind);
                }
            }
            Err(why) => problems.push(format!("{}: {why}", path.display())),
        }
    }
}

fn read(path: &Path) -> Result<AgentType, String> {
    let mut text = String::new();
    let file = fs::File::open(path).map_err(|it| it.to_string())?;
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(|it| it.to_string())?;
    let (header, body) = split(&text).ok_or("it has no header")?;
    let header = fields(header).ok_or("its header is no YAML")?;
    let mut definition = Map::new();
    for (key, value) in header {
        let value = match value {
            Node::Text(text) if key == "maxTurns" => {
                text.parse::<u64>().map_or(text.into(), Value::from)
            }
            Node::Text(text) => text.into(),
            Node::Texts(list) => list.into(),
            Node::Other => continue,
        };
        definition.insert(key, value);
    }
    definition.insert("prompt".into(), body.trim().into());
    let name = definition.get("name").and_then(Value::as_str).ok_or("it has no `name`")?.to_owned();
    if name.contains(':') {
        return Err("its `name` has a colon".into());
    }
    AgentType::read(&name, &definition.into()).map_err(|it| it.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: AGT-4
    #[test]
    fn agents_of_a_repository_wait_for_trust_and_come_before_those_of_the_user() {
        let place = tempfile::tempdir().unwrap();
        let (work, config) = (place.path().join("w"), place.path().join("c"));
        let write = |path: &Path, name: &str, text: &str| {
            fs::create_dir_all(path).unwrap();
            fs::write(path.join(name), text).unwrap();
        };
        let of_project = work.join(".claude/agents/deep");
        write(
            &of_project,
            "a.md",
            "---\nname: poet\ndescription: of the project\ntools: [Read, Grep]\nmaxTurns: 3\n\
             permissionMode: bypassPermissions\n---\nWrite.\n",
        );
        write(&of_project, "bad.md", "---\ndescription: x\n---\n");
        let of_user = config.join("agents");
        write(&of_user, "p.md", "---\nname: poet\ndescription: of the user\n---\nWrite.");
        write(&of_user, "q.md", "---\nname: cook\ndescription: cooks\ntools: Read\n---\nCook.");
        let all = SettingSources::default();
        let (found, problems) = agent_files(&work, &config, all, Trust::Untrusted);
        let names: Vec<_> = found.iter().map(|it| (&*it.name, &*it.description)).collect();
        assert_eq!(names, [("poet", "of the user"), ("cook", "cooks")]);
        assert_eq!(problems, [""; 0]);
        let (found, problems) = agent_files(&work, &config, all, Trust::Headless);
        assert_eq!((found.len(), &*found[0].description), (2, "of the project"));
        assert_eq!((found[0].mode, &*found[0].system_prompt), (None, "Write."));
        assert_eq!(found[0].max_turns.map(|it| it.get()), Some(3));
        assert!(problems.len() == 1 && problems[0].contains("bad.md"), "{problems:?}");
        assert!(agent_files(&work, &config, all, Trust::Trusted).0[0].mode.is_some());
        assert_eq!(agent_files(&work, &config, SettingSources::NONE, Trust::Trusted).0, []);
    }
}
