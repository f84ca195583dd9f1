//! Cases of `path_permissions.jsonl`: a real tree, looked at as the product looks, and the gate.

use std::{fs, io, os::unix::fs::symlink, path::Path};

use ennead::internal::look_up;
use ennead_runtime::{
    ids::ToolName,
    permission::{PermissionMode, Scope},
    step1_settings_resolution::{LayerText, merge},
    step7_permission_gate::conformance::{GateCase, decided},
    tool::ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Outcome, compare};

/// What is there in every case.
const BASE: [&str; 6] = [
    "home/dev/app/src/main.rs",
    "home/dev/app/README.md",
    "home/dev/app/tests/a.rs",
    "home/dev/app/.git/config",
    "etc/hosts",
    "tmp/.keep",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PathCase {
    mode: PermissionMode,
    tool: ToolName,
    settings: Vec<Value>,
    #[serde(default)]
    additional_directories: Vec<String>,
    #[serde(rename = "project_root")]
    project_root: Option<String>,
    cwd: String,
    home: String,
    #[serde(default)]
    tree: Vec<Node>,
    input: Value,
}

#[derive(Deserialize)]
struct Node {
    path: String,
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Kind {
    File,
    Dir,
    Symlink { target: String },
    Fifo,
}

/// Runs a parsed case in a directory of its own.
pub(super) fn run(case: &Value) -> Outcome {
    match decide(case) {
        Ok(got) => compare::accepted(case, got.into()),
        Err(why) => (Value::Null, Err(why)),
    }
}

fn decide(case: &Value) -> Result<&'static str, String> {
    let cannot_make = |error: io::Error| format!("the tree cannot be made: {error}");
    let dir = tempfile::tempdir().map_err(cannot_make)?;
    let root = dir.path().canonicalize().map_err(cannot_make)?;
    let root_text = json!(root).as_str().unwrap_or_default().replace('\\', "\\\\");
    let text = case.to_string().replace("{ROOT}", &root_text.replace('"', "\\\""));
    let case: PathCase = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    case.make_tree(&root).map_err(cannot_make)?;
    case.decision()
}

impl PathCase {
    fn make_tree(&self, root: &Path) -> io::Result<()> {
        for path in BASE {
            make(&root.join(path), &Kind::File)?;
        }
        self.tree.iter().try_for_each(|it| make(&root.join(&it.path), &it.kind))
    }

    fn decision(&self) -> Result<&'static str, String> {
        let spec = self.tool_spec()?;
        let case = GateCase {
            mode: self.mode,
            cwd: &self.cwd,
            home: &self.home,
            project_root: self.project_root.as_deref(),
            spec: &spec,
            input: &self.input.to_string(),
        };
        decided(case, merge(&self.layers()).settings, &mut look_up)
    }

    fn tool_spec(&self) -> Result<ToolSpec, String> {
        let tools = ennead_tools::registry::builtin_tools();
        let tool = tools.iter().find(|it| it.spec().name == self.tool);
        tool.map(|it| it.spec().clone()).ok_or_else(|| format!("there is no tool {}", self.tool))
    }

    fn layers(&self) -> Vec<LayerText> {
        let layer = |(i, source): (usize, &Value)| {
            let mut permissions = json!({});
            for key in ["allow", "ask", "deny", "additionalDirectories"] {
                if let Some(list) = source.get(key) {
                    permissions[key] = list.clone();
                }
            }
            let scope = match source["source"].as_str() {
                Some("user") => Scope::User,
                Some("local") => Scope::Local,
                Some("cli") => Scope::CliArg,
                Some("policy" | "managed") => Scope::Policy,
                _ => Scope::Project,
            };
            layer_text(scope, format!("settings {i}"), permissions)
        };
        let more = json!({ "additionalDirectories": self.additional_directories });
        let more = layer_text(Scope::CliArg, "the case".into(), more);
        self.settings.iter().enumerate().map(layer).chain([more]).collect()
    }
}

fn layer_text(scope: Scope, source: String, permissions: Value) -> LayerText {
    LayerText::new(scope, source, json!({ "permissions": permissions }).to_string())
}

fn make(path: &Path, kind: &Kind) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match kind {
        Kind::File => fs::write(path, ""),
        Kind::Dir => fs::create_dir_all(path),
        Kind::Symlink { target } => symlink(target, path),
        Kind::Fifo => Ok(rustix::fs::mknodat(
            rustix::fs::CWD,
            path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )?),
    }
}
