//! Reads `skills/*/SKILL.md` and `commands/**/*.md` of users and repositories.

use std::{fs, path::Path, sync::Arc};

use ennead_runtime::{
    skill::{Skill, first_of_each},
    step1_settings_resolution::trust::{SettingSources, Trust},
};
use ennead_tools::source_file::Root;

use super::rules::{
    files_below,
    header::{Node, fields},
    split, text_of,
};

/// Bytes of a file that are read.
const MAX_BYTES: u64 = 256 << 10;

/// Skills, and commands, of one directory that are read.
const MAX_FILES: usize = 500;

/// Reads the skills of the user, below `config`, and of the repository, then the commands of both; of one name the
/// first. What cannot be read is returned next to them, in words. Those of a repository count where it is trusted or
/// its settings were named. Reads files on the thread of the caller.
pub fn skill_files(
    workspace: &Path,
    config: &Path,
    sources: SettingSources,
    trust: Trust,
) -> (Vec<Skill>, Vec<String>) {
    let of_project = workspace.join(".claude");
    let reads_project = sources.project && trust != Trust::Untrusted;
    // What cannot be opened holds nothing.
    let root = reads_project.then(|| Root::open(workspace).ok()).flatten();
    let user = sources.user.then_some((config, None));
    let project = root.as_ref().map(|it| (&*of_project, Some(it)));
    let places: Vec<(&Path, Option<&Root>)> = user.into_iter().chain(project).collect();
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for (place, within) in &places {
        let kind = SkillKind { within: *within, is_skill: true, takes_name: false };
        read_skills(&place.join("skills"), kind, &mut found, &mut problems);
    }
    for (place, within) in &places {
        let kind = SkillKind { within: *within, is_skill: false, takes_name: false };
        read_commands(&place.join("commands"), kind, &mut found, &mut problems);
    }
    (first_of_each(found), problems)
}

/// What files of a directory are.
#[derive(Clone, Copy, Debug)]
pub(super) struct SkillKind<'a> {
    /// The directory out of which no link leads.
    pub(super) within: Option<&'a Root>,
    /// Skills have a directory of their own; commands are single files.
    pub(super) is_skill: bool,
    /// A `name` in the header takes the place of that of the file.
    pub(super) takes_name: bool,
}

pub(super) fn read_commands(
    directory: &Path,
    kind: SkillKind<'_>,
    found: &mut Vec<Skill>,
    problems: &mut Vec<String>,
) {
    for path in files_below(directory, kind.within.map(Root::real)).into_iter().take(MAX_FILES) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        take(&path, kind, &name, found, problems);
    }
}

pub(super) fn read_skills(
    directory: &Path,
    kind: SkillKind<'_>,
    found: &mut Vec<Skill>,
    problems: &mut Vec<String>,
) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|it| it.path().join("SKILL.md")).collect();
    // The order of a listing is the file system's.
    paths.sort();
    let is_inside = |path: &Path| match path.canonicalize() {
        Ok(real) => real.is_file() && kind.within.is_none_or(|it| real.starts_with(it.real())),
        Err(_) => false,
    };
    for path in paths.into_iter().filter(|it| is_inside(it)).take(MAX_FILES) {
        let name = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        take(&path, kind, &name, found, problems);
    }
}

fn take(
    path: &Path,
    kind: SkillKind<'_>,
    name: &str,
    found: &mut Vec<Skill>,
    problems: &mut Vec<String>,
) {
    match read(path, kind, name) {
        Ok(skill) => found.push(skill),
        Err(why) => problems.push(format!("{}: {why}", path.display())),
    }
}

/// Returns whether people can call something by this name.
pub(super) fn is_callable(name: &str) -> bool {
    let is_of_name = |it: char| it.is_alphanumeric() || matches!(it, '-' | '_' | '.');
    name.chars().all(is_of_name) && !name.is_empty()
}

fn read(path: &Path, kind: SkillKind<'_>, name: &str) -> Result<Skill, String> {
    let text = text_of(path, kind.within, MAX_BYTES).map_err(|it| it.to_string())?;
    // A header that cannot be read is none: the text is there all the same.
    let (header, body) = split(&text).unwrap_or(("", &text));
    let header = fields(header).unwrap_or_default();
    let word = |key: &str| match header.get(key) {
        Some(Node::Text(text)) => text.trim(),
        _ => "",
    };
    let name = Some(word("name")).filter(|it| kind.takes_name && !it.is_empty()).unwrap_or(name);
    if !is_callable(name) {
        return Err("its name has other characters than letters, digits, `-`, `_` and `.`".into());
    }
    let is = |key: &str, words: [&str; 4]| words.contains(&&*word(key).to_lowercase());
    let texts = [word("description"), word("when_to_use")].map(str::to_owned);
    let texts: Vec<String> = texts.into_iter().filter(|it| !it.is_empty()).collect();
    let description = if texts.is_empty() {
        body.trim().split("\n\n").next().unwrap_or_default().trim().to_owned()
    } else {
        texts.join(" ")
    };
    let arguments = match header.get("arguments") {
        Some(Node::Text(text)) => text.split_whitespace().map(str::to_owned).collect(),
        Some(Node::Texts(names)) => names.clone(),
        _ => Vec::new(),
    };
    let directory =
        path.parent().filter(|_| kind.is_skill).map(|it| Arc::from(it.to_string_lossy()));
    let no_place = directory.as_deref().unwrap_or("${CLAUDE_SKILL_DIR}");
    Ok(Skill {
        name: name.into(),
        description: description.into(),
        argument_hint: word("argument-hint").into(),
        arguments,
        body: body.replace("${CLAUDE_SKILL_DIR}", no_place).into(),
        is_for_models_only: is("user-invocable", ["false", "no", "off", "0"]),
        is_for_people_only: is("disable-model-invocation", ["true", "yes", "on", "1"]),
        directory,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SUR-3
    #[test]
    fn skills_of_the_user_come_first_then_those_of_a_trusted_repository_then_commands() {
        let place = tempfile::tempdir().unwrap();
        let (work, config) = (place.path().join("w"), place.path().join("c"));
        let write = |path: std::path::PathBuf, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(config.join("skills/pot/SKILL.md"), "---\ndescription: of the user\n---\nTurn it.");
        let own = work.join(".claude");
        write(own.join("skills/pot/SKILL.md"), "---\ndescription: of the project\n---\nx");
        let header = "---\nname: Other\nwhen_to_use: at noon\nuser-invocable: no\n---\n";
        write(own.join("skills/pan/SKILL.md"), &format!("{header}In ${{CLAUDE_SKILL_DIR}}."));
        write(own.join("commands/deep/fix.md"), "Fix $ARGUMENTS.\n\nMore.");
        write(own.join("commands/pan.md"), "never");
        write(own.join("commands/large.md"), &"x".repeat(300_000));
        fs::create_dir_all(own.join("skills/out")).unwrap();
        write(place.path().join("secret"), "secret");
        let link = own.join("skills/out/SKILL.md");
        std::os::unix::fs::symlink(place.path().join("secret"), link).unwrap();
        let command = own.join("commands/out.md");
        std::os::unix::fs::symlink(place.path().join("secret"), command).unwrap();
        let all = SettingSources::default();
        let (found, problems) = skill_files(&work, &config, all, Trust::Headless);
        let names: Vec<_> = found.iter().map(|it| (&*it.name, &*it.description)).collect();
        let expected = [("pot", "of the user"), ("pan", "at noon"), ("fix", "Fix $ARGUMENTS.")];
        assert_eq!(names, expected);
        assert!(found[1].is_for_models_only && found[1].body.contains(".claude/skills/pan."));
        assert_eq!((found[2].directory.as_ref(), found[0].is_for_models_only), (None, false));
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("large.md") && problems[1].contains("leads out of"));
        assert_eq!(skill_files(&work, &config, all, Trust::Untrusted).0.len(), 1);
        assert!(skill_files(&work, &config, SettingSources::NONE, Trust::Trusted).0.is_empty());
    }
}
