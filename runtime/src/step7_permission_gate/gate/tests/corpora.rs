//! The two corpora of permission cases, each through a whole gate.
//!
//! Built under `#[cfg(test)]` only.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;
use crate::step7_permission_gate::conformance::{GateCase, decided};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    id: String,
    mode: Mode,
    tool: String,
    settings: Value,
    #[serde(default)]
    additional_directories: Vec<String>,
    #[serde(rename = "project_root")]
    project_root: Option<String>,
    cwd: String,
    home: String,
    #[serde(default)]
    tree: Vec<FileNode>,
    input: Value,
    expected: String,
    #[serde(default, rename = "also_ok")]
    also_ok: Vec<String>,
}

#[derive(Deserialize)]
struct FileNode {
    path: String,
    #[serde(rename = "type")]
    kind: String,
    target: Option<String>,
}

const ROOT: &str = "/tmp/root";

const PATHS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cases/path_permissions.jsonl"));
const COMMANDS: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cases/bash_permissions.jsonl"));

fn cases(text: &str) -> Vec<Case> {
    let text = text.replace("{ROOT}", ROOT);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

impl Case {
    /// The tree of the case as something that can be looked at.
    fn look(&self) -> impl FnMut(&str) -> PathEntry {
        let mut nodes = BTreeMap::from([
            ("/".to_owned(), PathEntry::Directory),
            ("/dev/zero".into(), PathEntry::Special),
            ("/proc/self".into(), PathEntry::Link("7".into())),
            ("/proc/7/root".into(), PathEntry::Link("/".into())),
            ("/proc/7/cwd".into(), PathEntry::Link("/".into())),
            ("/proc/7/environ".into(), PathEntry::File),
        ]);
        let base =
            ["home/dev/app/src/main.rs", "home/dev/app/README.md", "home/dev/app/tests/a.rs"];
        for path in base.iter().chain(&["home/dev/app/.git/config", "etc/hosts", "tmp/.keep"]) {
            nodes.insert(format!("{ROOT}/{path}"), PathEntry::File);
        }
        for node in &self.tree {
            let found = match (node.kind.as_str(), &node.target) {
                ("symlink", Some(target)) => PathEntry::Link(target.clone()),
                ("dir", _) => PathEntry::Directory,
                ("fifo", _) => PathEntry::Special,
                _ => PathEntry::File,
            };
            nodes.insert(format!("{ROOT}/{}", node.path), found);
        }
        for path in nodes.keys().cloned().collect::<Vec<_>>() {
            for (i, _) in path.match_indices('/').skip(1) {
                nodes.entry(path[..i].into()).or_insert(PathEntry::Directory);
            }
        }
        move |path| nodes.get(path).cloned().unwrap_or(PathEntry::Missing)
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        let one = [self.settings.clone()];
        let sources = self.settings.as_array().map_or(&one[..], Vec::as_slice);
        for source in sources {
            let scope = match source.get("source").and_then(Value::as_str) {
                Some("user") => Scope::User,
                Some("local") => Scope::Local,
                Some("cli") => Scope::CliArg,
                Some("policy" | "managed") => Scope::Policy,
                _ => Scope::Project,
            };
            for (name, kind) in
                [("allow", RuleKind::Allow), ("ask", RuleKind::Ask), ("deny", RuleKind::Deny)]
            {
                let list = source.get(name).and_then(Value::as_array).into_iter().flatten();
                let texts = list.filter_map(Value::as_str);
                let rules = texts.map(|it| RuleText { kind, scope, text: it.into() });
                settings.permissions.rules.extend(rules);
            }
            let more = source.get("additionalDirectories").and_then(Value::as_array);
            let more = more.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
            settings.permissions.additional_directories.extend(more);
        }
        settings.permissions.additional_directories.extend(self.additional_directories.clone());
        settings
    }

    fn got(&self) -> &'static str {
        let spec = match self.tool.as_str() {
            "Read" => read(),
            "Edit" => ToolSpec { name: "Edit".into(), ..write() },
            _ => bash(),
        };
        let case = GateCase {
            mode: self.mode,
            cwd: &self.cwd,
            home: &self.home,
            project_root: self.project_root.as_deref(),
            spec: &spec,
            input: &self.input.to_string(),
        };
        decided(case, self.settings(), &mut self.look()).unwrap()
    }

    fn passes(&self, got: &str) -> bool {
        got == self.expected || self.also_ok.iter().any(|it| it == got)
    }
}

// REQ: PRM-8
#[test]
fn every_path_case_is_decided_as_expected() {
    let cases = cases(PATHS);
    assert!(cases.len() >= 114);
    let misses: Vec<String> = cases
        .iter()
        .map(|case| (case, case.got()))
        .filter(|(case, got)| !case.passes(got))
        .map(|(case, got)| format!("{}: {got}, not {}", case.id, case.expected))
        .collect();
    assert_eq!(misses, Vec::<String>::new());
}

// REQ: PRM-8
#[test]
fn every_command_case_is_decided_as_expected() {
    let cases = cases(COMMANDS);
    assert!(cases.len() >= 422);
    let misses: Vec<String> = cases
        .iter()
        .map(|case| (case, case.got()))
        .filter(|(case, got)| !case.passes(got))
        .map(|(case, got)| format!("{}: {got}, not {}: {}", case.id, case.expected, case.input))
        .collect();
    assert!(misses.is_empty(), "{} misses: {misses:#?}", misses.len());
}

#[derive(Deserialize)]
struct ClassCase {
    id: String,
    cwd: String,
    home: String,
    input: Value,
    expected: String,
    #[serde(default)]
    also_ok: Vec<String>,
}

const CLASSES: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cases/bash_classify.jsonl"));

// REQ: TOL-9
#[test]
fn every_command_has_the_expected_class() {
    use crate::step7_permission_gate::command::{CommandContext, ShellCommand};
    let cases: Vec<ClassCase> =
        CLASSES.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(cases.len() >= 144);
    let mut misses = Vec::new();
    for case in cases {
        let around = CommandContext {
            links: crate::step7_permission_gate::command::Follower::default(),
            cwd: case.cwd.as_str().into(),
            home: case.home.as_str().into(),
            workspace: vec![case.cwd.clone()].into(),
        };
        let raw = case.input["command"].as_str().unwrap();
        let got = ShellCommand::read(raw, around).class().name();
        if got != case.expected && !case.also_ok.iter().any(|it| it == got) {
            misses.push(format!("{}: {got}, not {}: {raw}", case.id, case.expected));
        }
    }
    assert!(misses.is_empty(), "{} misses: {misses:#?}", misses.len());
}
