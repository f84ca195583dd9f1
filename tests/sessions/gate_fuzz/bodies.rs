//! What must hold of the gate for any bytes: shared by the fuzz targets and by a test of every run.

use ennead_runtime::permission::PermissionMode;
use serde_json::json;

use super::judged::{self, Outcome};

const MODES: [PermissionMode; 4] = [
    PermissionMode::Default,
    PermissionMode::AcceptEdits,
    PermissionMode::Plan,
    PermissionMode::BypassPermissions,
];

/// Any text as a command: it is judged to its end, a denied command in front of it is found, and one
/// deny rule more loosens nothing.
pub(super) fn shell_command(data: &[u8]) {
    let Some((mode, command)) = data.split_first() else { return };
    let mode = MODES[usize::from(*mode) % MODES.len()];
    let command = String::from_utf8_lossy(command);
    let rules = json!({"allow": ["Bash(npm *)", "Edit(src/**)"], "ask": ["Bash(git push *)"]});
    let stricter = json!({
        "allow": ["Bash(npm *)", "Edit(src/**)"], "ask": ["Bash(git push *)"],
        "deny": ["Bash(rm *)", "Read(.env)"],
    });
    let before = outcome(mode, &rules, &command);
    let after = outcome(mode, &stricter, &command);
    assert!(after <= before, "{mode:?} {command:?}: {before:?}, then {after:?}");
    for joint in ["\n", "; ", " && "] {
        let denied = format!("rm x{joint}{command}");
        let found = outcome(mode, &stricter, &denied);
        assert_eq!(found, Outcome::Denied, "{mode:?} {denied:?}");
    }
}

/// A line as the specifier of a rule, and what follows as a command: as a deny rule it loosens nothing, as an
/// allow rule it makes nothing stricter, and it overrides no deny rule.
pub(super) fn permission_rules(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (specifier, command) = text.split_once('\n').unwrap_or((&text, "npm test && ls > out"));
    let rule = format!("Bash({specifier})");
    let some = json!(["Bash(npm *)"]);
    for mode in MODES {
        let plain = outcome(mode, &json!({"allow": some}), command);
        let denied = outcome(mode, &json!({"allow": some, "deny": [rule]}), command);
        let allowed = outcome(mode, &json!({"allow": ["Bash(npm *)", rule]}), command);
        assert!(denied <= plain && plain <= allowed, "{mode:?} {rule:?} {command:?}");
        let rules = json!({"allow": [rule], "deny": ["Bash(rm *)"]});
        let found = outcome(mode, &rules, &format!("rm x\n{command}"));
        assert_eq!(found, Outcome::Denied, "{mode:?} {rule:?} {command:?}");
    }
}

fn outcome(mode: PermissionMode, permissions: &serde_json::Value, command: &str) -> Outcome {
    judged::outcome(&judged::setup(mode, "/w", permissions), command)
}
