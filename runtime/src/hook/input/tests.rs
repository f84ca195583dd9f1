//! What hooks read on standard input.
//!
//! Built under `#[cfg(test)]` only.

use super::*;
use crate::{
    hook::LoadedInstructions,
    ids::{ToolName, ToolUseId},
};

#[track_caller]
fn check(firing: Firing<'_>, expected: &str) {
    let context = HookContext {
        session: SessionId::from("s"),
        transcript_path: "/t.jsonl".into(),
        cwd: "/w".into(),
        mode: PermissionMode::AcceptEdits,
        prompt: None,
        agent: None,
    };
    let common = r#"{"session_id":"s","transcript_path":"/t.jsonl","cwd":"/w","#;
    let input = HookInput { context, firing: firing.into_owned() };
    assert_eq!(input.to_json(), format!("{common}{expected}}}"));
}

#[test]
fn input_names_what_happened() {
    let (id, tool) = (ToolUseId::from("t1"), ToolName::from("Bash"));
    check(
        Firing::PreToolUse {
            id: id.clone(),
            tool: tool.clone(),
            input: r#"{"command": "ls"}"#.into(),
        },
        r#""hook_event_name":"PreToolUse","permission_mode":"acceptEdits","tool_name":"Bash","tool_input":{"command": "ls"},"tool_use_id":"t1""#,
    );
    check(
        Firing::PostToolUse {
            id,
            tool,
            input: "{}".into(),
            response: "no json".into(),
            duration_ms: 7,
        },
        r#""hook_event_name":"PostToolUse","permission_mode":"acceptEdits","tool_name":"Bash","tool_input":{},"tool_use_id":"t1","tool_response":"no json","duration_ms":7"#,
    );
    check(
        Firing::PreCompact { trigger: "auto".into(), custom_instructions: "".into() },
        r#""hook_event_name":"PreCompact","permission_mode":"acceptEdits","trigger":"auto","custom_instructions":"""#,
    );
    check(
        Firing::Notification { message: "look".into(), kind: "permission_prompt".into() },
        r#""hook_event_name":"Notification","permission_mode":"acceptEdits","message":"look","notification_type":"permission_prompt""#,
    );
    check(
        Firing::SessionEnd { reason: "other".into() },
        r#""hook_event_name":"SessionEnd","permission_mode":"acceptEdits","reason":"other""#,
    );
    let loaded = LoadedInstructions {
        path: "/w/CLAUDE.md".into(),
        memory_type: "Project",
        reason: "path_glob_match",
        globs: vec!["src/**".into()],
    };
    check(
        Firing::InstructionsLoaded(loaded),
        r#""hook_event_name":"InstructionsLoaded","permission_mode":"acceptEdits","file_path":"/w/CLAUDE.md","memory_type":"Project","load_reason":"path_glob_match","globs":["src/**"]"#,
    );
    check(
        Firing::CwdChanged { old: "/w".into(), new: "/w/src".into() },
        r#""hook_event_name":"CwdChanged","permission_mode":"acceptEdits","old_cwd":"/w","new_cwd":"/w/src""#,
    );
    check(
        Firing::StopFailure {
            error: "overloaded".into(),
            details: "busy".into(),
            last_assistant_message: "so far".into(),
        },
        r#""hook_event_name":"StopFailure","permission_mode":"acceptEdits","last_assistant_message":"so far","error":"overloaded","error_details":"busy""#,
    );
    check(
        Firing::PermissionDenied {
            id: ToolUseId::from("t1"),
            tool: ToolName::from("Bash"),
            input: "{}".into(),
            reason: "no".into(),
        },
        r#""hook_event_name":"PermissionDenied","permission_mode":"acceptEdits","tool_name":"Bash","tool_input":{},"tool_use_id":"t1","reason":"no""#,
    );
    check(
        Firing::Stop { active: true, last_assistant_message: "done".into() },
        r#""hook_event_name":"Stop","permission_mode":"acceptEdits","stop_hook_active":true,"last_assistant_message":"done""#,
    );
}
