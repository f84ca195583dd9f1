//! The floors of each crate, the lowest first: a folder or a file counts with everything below it.

/// What a floor is for, and its modules with everything below them. A longer path is stronger.
pub(super) type Floor = (&'static str, &'static [&'static str]);

/// The floors of `runtime`, the lowest first.
pub(super) const RUNTIME: &[Floor] = &[
    (
        "vocabulary",
        &[
            "agent_text",
            "block",
            "catalogue",
            "digest",
            "entropy",
            "hook",
            "ids",
            "input_schema",
            "json",
            "mcp",
            "message",
            "permission",
            "recovery::backoff",
            "redaction",
            "sandbox",
            "saturating",
            "shared",
            "skill",
            "step",
            "step3_context_assembly::source8_tool_results",
            "time",
            "tokens",
            "wire_body",
        ],
    ),
    (
        "what settings are made of",
        &[
            "approval",
            "mcp::result",
            "mcp::spec",
            "output::policy",
            "picture",
            "run::no_progress",
            "run::request",
            "step5_model_call::adaptation",
            "step5_model_call::envelope",
            "step5_model_call::model_name",
            "step5_model_call::openai_shared::encode",
            "step5_model_call::openai_shared::forms",
            "step5_model_call::purpose",
            "step5_model_call::request",
            "step5_model_call::view",
            "step5_model_call::wire_format",
            "step7_permission_gate",
            "tool",
        ],
    ),
    ("settings", &["mcp::policy", "step1_settings_resolution"]),
    (
        "ports, and what is recorded and counted",
        &[
            "approval::counts",
            "approval::overrides",
            "cost",
            "event",
            "governor",
            "lease",
            "output",
            "ports",
            "serve",
            "step5_model_call",
            "transcript::entry",
        ],
    ),
    (
        "steps and recovery",
        &[
            "recovery",
            "redaction::output",
            "run",
            "step2_state_initialization",
            "step3_context_assembly",
            "step4_context_shapers",
            "step6_tool_dispatch",
            "step7_permission_gate::conformance",
            "step7_permission_gate::gate",
            "step7_permission_gate::hook_condition",
            "step7_permission_gate::judgement",
            "step7_permission_gate::rule_book",
            "step7_permission_gate::setup",
            "step7_permission_gate::stage1_prefilter",
            "step7_permission_gate::stage2_pre_tool_use_hooks",
            "step7_permission_gate::stage3_rule_evaluation",
            "step7_permission_gate::stage4_permission_handler",
            "step7_permission_gate::web_hosts",
            "step8_tool_execution",
            "step9_stop_check",
            "transcript",
        ],
    ),
    ("turn", &["turn"]),
    ("session", &["redaction::inputs", "session"]),
    ("replay and evaluation", &["evaluation", "transcript::replay"]),
    ("the crate", &[""]),
];

/// The floors of `actors`, the lowest first: each folder is on one.
pub(super) const ACTORS: &[Floor] = &[
    ("groundwork", &["groundwork"]),
    ("ports, and what the operating system brings", &["ports", "world"]),
    ("options", &["options"]),
    ("storage", &["storage"]),
    ("services", &["services"]),
    ("turn and session", &["session", "turn"]),
    ("shard", &["shard"]),
    ("handle", &["handle"]),
    ("server", &["serve"]),
    ("the crate", &[""]),
];

/// Within the floor of turn and session: a leaf knows what it is given, and no supervisor.
pub(super) const LEAVES: &[Floor] = &[
    ("below them", &["groundwork", "options", "ports", "services", "storage", "world"]),
    (
        "leaves, and what they share",
        &[
            "session::background",
            "session::context",
            "session::tools",
            "turn::approval",
            "turn::gate_worker",
            "turn::hook_runner",
            "turn::model_call",
            "turn::shaper_stage",
            "turn::source_reader",
            "turn::tool_dispatcher",
            "turn::turn_supervisor::message",
            "turn::turn_supervisor::next_turn",
        ],
    ),
    ("supervisors", &["session", "turn"]),
    ("above them", &["", "handle", "serve", "shard"]),
];

/// The floors of `tools`, the lowest first.
pub(super) const TOOLS: &[Floor] = &[
    (
        "groundwork",
        &[
            "blocking",
            "files",
            "globs",
            "helper",
            "hidden",
            "hosted",
            "locked",
            "notebook",
            "output",
            "own_file",
            "page_text",
            "patch",
            "paths",
            "schema",
            "shells",
            "withdrawn_keys",
        ],
    ),
    ("confinement and files", &["sandbox", "source_file", "walk"]),
    ("processes, and answers within a size", &["capped", "declared", "process_tree", "rule_file"]),
    ("frames of tools", &["built_in", "replace", "text_edit", "custom", "mcp"]),
    (
        "tools",
        &[
            "agent",
            "bash",
            "edit",
            "glob",
            "grep",
            "multi_edit",
            "notebook_edit",
            "plan",
            "question",
            "read",
            "send_message",
            "skill",
            "tasks",
            "todo",
            "web_fetch",
            "web_search",
            "write",
        ],
    ),
    ("the list of tools", &["registry"]),
    ("the crate", &[""]),
];

/// The floors of the simulated model, the lowest first.
pub(super) const SIMULATED: &[Floor] = &[
    ("vocabulary", &["attempts", "content", "members", "script", "template"]),
    ("wire formats", &["check", "fields", "models", "openai", "pace", "tool_choice", "wire"]),
    ("a request", &["request"]),
    ("what a rule is made of", &["condition", "count", "fault", "reply"]),
    ("playbooks", &["playbook"]),
    ("the crate", &[""]),
];

/// The floors of the library of the command, the lowest first.
pub(super) const COMMAND: &[Floor] = &[
    (
        "ends, and texts to show",
        &[
            "ask",
            "conformance",
            "demo_view",
            "evaluation",
            "exit",
            "history",
            "print",
            "print_view",
            "recorded_page",
            "token_counts",
        ],
    ),
    (
        "signals, the end of the reader, and the simulated server",
        &["signals", "simulate", "unread"],
    ),
    ("what is run", &["demo", "stream_json"]),
    ("one process for many programs", &["shared_host"]),
    ("the demonstration under load and as a server", &["demo_load", "demo_serve"]),
    ("measurements", &["bench"]),
    ("the crate", &[""]),
];

/// The floors of the binary of the command, the lowest first.
pub(super) const BINARY: &[Floor] = &[
    ("forms of flags", &["args::formats", "args::vault", "endpoint", "program", "rules"]),
    ("the terminal", &["prompter", "screen", "show", "telemetry"]),
    ("flags", &["args"]),
    ("one prompt, and keys of vaults", &["mcp", "print", "stream", "trusted", "vault"]),
    ("the demonstration", &["demo"]),
    (
        "other commands",
        &[
            "bench",
            "config",
            "conformance",
            "doctor",
            "evaluate",
            "history",
            "host",
            "serve",
            "simulate",
            "transcripts",
        ],
    ),
    ("the program", &[""]),
];
