//! Reads `agents/**/*.md`: types of sub-agents that users and repositories define.

use std::path::Path;

use ennead_runtime::{
    run::agent_types::AgentType,
    step1_settings_resolution::trust::{SettingSources, Trust},
};
use ennead_tools::source_file::Root;
use serde_json::{Map, Value};

use super::rules::{
    files_below,
    header::{Node, fields},
    split, text_of,
};

/// Bytes of a file at most; a definition of 250 KB is large.
const MAX_BYTES: u64 = 4 << 20;

/// Files of one directory that are read.
const MAX_FILES: usize = 1_000;

/// Reads the agent types that files of the user, below `config`, and of the repository define, those of the repository
/// first; and the problems of files that cannot be used, in words. Files of a repository count where it is trusted or
/// its settings were named, and say nothing of permissions and notes where it is not trusted. Reads files on the thread of the
/// caller.
pub fn agent_files(
    workspace: &Path,
    config: &Path,
    sources: SettingSources,
    trust: Trust,
) -> (Vec<AgentType>, Vec<String>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    if sources.project && trust != Trust::Untrusted {
        // What cannot be opened holds nothing.
        if let Ok(root) = Root::open(workspace) {
            let directory = workspace.join(".claude/agents");
            read_all(&directory, Some(&root), trust == Trust::Trusted, &mut found, &mut problems);
            if trust != Trust::Trusted {
                // Notes are written without being asked.
                found.iter_mut().for_each(|it| it.memory = None);
            }
        }
    }
    if sources.user {
        read_all(&config.join("agents"), None, true, &mut found, &mut problems);
    }
    (found, problems)
}

/// Reads all agents. The first one of a name wins.
pub(super) fn read_all(
    directory: &Path,
    within: Option<&Root>,
    may_choose_mode: bool,
    found: &mut Vec<AgentType>,
    problems: &mut Vec<String>,
) {
    for path in files_below(directory, within.map(Root::real)).into_iter().take(MAX_FILES) {
        match read(&path, within) {
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

fn read(path: &Path, within: Option<&Root>) -> Result<AgentType, String> {
    let text = text_of(path, within, MAX_BYTES).map_err(|it| it.to_string())?;
    let (header, body) = split(&text).ok_or("it has no header")?;
    let header = fields(header).ok_or("its header is not YAML")?;
    let mut definition = Map::new();
    for (key, value) in header {
        let value = match value {
            Node::Text(text) if key == "maxTurns" => {
                text.parse::<u64>().map_or(text.into(), Value::from)
            }
            Node::Text(text) if key == "background" => {
                text.parse::<bool>().map_or(text.into(), Value::from)
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
    use std::{fs, os::unix::fs::symlink};

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
             background: true\npermissionMode: bypassPermissions\nmemory: local\n---\nWrite.\n",
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
        assert!(found[0].in_background && !found[1].in_background && found[0].memory.is_none());
        assert_eq!(found[0].max_turns.map(|it| it.get()), Some(3));
        assert!(problems.len() == 1 && problems[0].contains("bad.md"), "{problems:?}");
        let trusted = &agent_files(&work, &config, all, Trust::Trusted).0[0];
        assert!(trusted.mode.is_some() && trusted.memory.is_some());
        assert_eq!(agent_files(&work, &config, SettingSources::NONE, Trust::Trusted).0, []);
    }
    // REQ: AGT-4
    #[test]
    fn agent_of_a_repository_is_a_regular_file_in_it() {
        let place = tempfile::tempdir().unwrap();
        let (work, config) = (place.path().join("w"), place.path().join("c"));
        let directory = work.join(".claude/agents");
        fs::create_dir_all(&directory).unwrap();
        let outside = place.path().join("secret.md");
        fs::write(&outside, "---\nname: spy\ndescription: a secret\n---\nWrite.").unwrap();
        fs::write(directory.join("a.md"), "---\nname: poet\ndescription: x\n---\nWrite.").unwrap();
        symlink(&outside, directory.join("link.md")).unwrap();
        symlink("a.md", directory.join("b.md")).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let (pipe, fifo) = (directory.join("pipe.md"), rustix::fs::FileType::Fifo);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, fifo, mode, 0).unwrap();
        let (found, problems) =
            agent_files(&work, &config, SettingSources::default(), Trust::Trusted);
        assert_eq!(found.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["poet"]);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("link.md") && problems[0].contains("leads out of"));
        assert!(problems[1].contains("pipe.md") && problems[1].contains("not a regular file"));
    }
}
