//! The nine sources in their places.
//!
//! Built under `#[cfg(test)]` only.

use super::*;
use crate::{
    digest::Digest,
    message::Role,
    permission::Scope,
    step3_context_assembly::{InstructionFile, PathRule},
    tool::{Access, FileSeen, ToolEffect, ToolNote},
};

fn texts() -> SourceTexts {
    let file = |scope, path: &str, text: &str| InstructionFile {
        scope,
        path: path.into(),
        text: text.into(),
    };
    SourceTexts {
        append_system_prompt: Some("APPENDED".into()),
        environment: vec![("Platform".into(), "linux".into())],
        git: "On branch main".into(),
        instructions: vec![
            file(Scope::User, "/h/.claude/CLAUDE.md", "U said"),
            file(Scope::Project, "/r/CLAUDE.md", "A said"),
            file(Scope::Project, "/r/s/CLAUDE.md", "B said"),
            file(Scope::Local, "/r/s/CLAUDE.local.md", "C said"),
        ],
        path_rules: vec![PathRule {
            path: "/r/.claude/rules/ts.md".into(),
            base: "/r".into(),
            paths: vec!["src/**/*.{ts,tsx}".into(), "[".into()],
            text: "TYPED".into(),
        }],
        auto_memory: Some("MEMORY".into()),
        ..SourceTexts::default()
    }
}

fn tool() -> Arc<ToolSpec> {
    Arc::new(
        ToolSpec::new("Read", "reads", "{}")
            .with_effect(ToolEffect::ReadOnly)
            .with_access(Access::Free),
    )
}

fn sources() -> Sources {
    let parts = SystemPromptParts { adaptation: "STYLE", directory: "/r/s", ..Default::default() };
    Sources::new(&texts(), &parts, vec![tool()], "context".into())
}

fn message(id: &str, kind: MessageKind, block: Block) -> Arc<Message> {
    Arc::new(Message::user(id.into(), kind, vec![block]))
}

fn conversation() -> Messages {
    let call = "t1".into();
    vec![
        message("1", MessageKind::Prompt, Block::text("old")),
        message("2", MessageKind::CompactSummary, Block::text("summary")),
        message("3", MessageKind::Prompt, Block::text("new")),
        Arc::new(Message::answer(
            "4".into(),
            "m",
            vec![Block::tool_use(&call, &"Read".into(), "{}")],
        )),
        message("5", MessageKind::ToolResults, Block::tool_result(&call, "result", false)),
        Arc::new(Message::mark("6".into(), Block::error("gone"))),
    ]
}

fn read(path: &str) -> ToolMemory {
    let seen =
        FileSeen { mtime_ns: 0, size: 0, digest: Digest::default(), partial: false, cells: None };
    let mut memory = ToolMemory::default();
    memory.fold(&ToolNote::FileSeen { path: path.into(), seen });
    memory
}

/// The context of a conversation of which nothing was counted before.
fn assembled(sources: &Sources, conversation: &[Arc<Message>]) -> Assembled {
    let conversation = conversation.to_vec().into();
    assemble_grown(sources, &conversation, &mut CountedMessages::default())
}

fn ids(assembled: &Assembled) -> Vec<&str> {
    let messages = assembled.context.iter().chain(assembled.conversation.walk());
    messages.map(|it| it.id.as_str()).collect()
}

// REQ: CTX-1
#[test]
fn nine_sources_stand_in_their_places() {
    let mut sources = Arc::new(sources());
    assert!(sources.files_read(&read("/r/src/a.tsx"), || "rules".into()));
    let assembled = assembled(&sources, &conversation());
    assert_eq!(ids(&assembled), ["context", "rules", "2", "3", "4", "5"]);
    assert_eq!(assembled.context.len(), 2);
    assert_eq!(*assembled.tools, [tool()]);
    assert!(assembled.sizes.iter().all(|size| *size > 0), "{:?}", assembled.sizes);
    assert_eq!(assembled.sizes[5..], [11, 5, 6, 7]);
    let place = |text: &str| assembled.system.iter().position(|it| it.contains(text));
    let places = ["STYLE", "On branch main", "/r/s", "Read", "APPENDED"].map(place);
    assert_eq!(places, [1, 2, 3, 4, 5].map(Some));
}

// REQ: CTX-2
#[test]
fn instructions_are_said_by_the_user_nearest_last() {
    let assembled = assembled(&sources(), &[]);
    let context = &assembled.context[0];
    assert_eq!((context.role, context.kind), (Role::User, MessageKind::Meta));
    let text = context.text();
    let order = ["linux", "U said", "A said", "B said", "C said", "MEMORY"]
        .map(|it| text.find(it).unwrap());
    assert!(order.is_sorted(), "{order:?}");
    assert!(!assembled.system.iter().any(|it| it.contains("CLAUDE.md") || it.contains("MEMORY")));
}

// REQ: CTX-2
#[test]
fn path_rule_is_shown_once_a_file_of_its_kind_was_read() {
    let mut sources = Arc::new(sources());
    assert!(!sources.files_read(&read("/r/src/a.rs"), || "x".into()));
    assert!(!sources.files_read(&read("/other/src/a.ts"), || "x".into()));
    assert_eq!(assembled(&sources, &[]).context.len(), 1);
    assert!(sources.files_read(&read("/r/src/deep/a.ts"), || "rules".into()));
    assert!(!sources.files_read(&read("/r/src/b.ts"), || "again".into()));
    let assembled = assembled(&sources, &[]);
    assert_eq!(ids(&assembled), ["context", "rules"]);
    assert!(assembled.context[1].text().contains("TYPED"));
}

// REQ: CTX-2, AGT-1
#[test]
fn rules_for_files_hold_for_those_of_a_worktree_that_stand_for_them() {
    let worktree = "/r/.claude/worktrees/agent-1";
    let isolation = Isolation { worktree: vec![worktree.into()], checkout: vec!["/r".into()] };
    let mut sources = Arc::new(sources().in_worktree(isolation));
    for other in ["/lib/a.ts", "0/src/a.ts"] {
        let file = format!("{worktree}{other}");
        assert!(!sources.files_read(&read(&file), || "x".into()), "{file}");
    }
    assert!(sources.files_read(&read(&format!("{worktree}/src/a.ts")), || "rules".into()));
    assert!(assembled(&sources, &[]).context[1].text().contains("TYPED"));
}

// REQ: CTX-5
#[test]
fn assembly_is_idempotent_and_shares_messages() {
    let (sources, conversation) = (sources(), conversation());
    let first = assembled(&sources, &conversation);
    let second = assembled(&sources, &conversation);
    assert_eq!(first, second);
    let messages = |it: &Assembled| -> Messages {
        it.context.iter().chain(it.conversation.walk()).cloned().collect()
    };
    let (one, other) = (messages(&first), messages(&second));
    assert!(one.iter().zip(&other).all(|(a, b)| Arc::ptr_eq(a, b)));
    // What was assembled once and is assembled again without its context is the same.
    let again = assembled(&sources, &first.conversation);
    assert_eq!(again, first);
}

#[test]
fn session_without_any_text_has_only_the_base() {
    let empty = SystemPromptParts::default();
    let sources = Sources::new(&SourceTexts::default(), &empty, Vec::new(), "context".into());
    let assembled = assembled(&sources, &[]);
    let n_messages = assembled.context.len() + assembled.conversation.len();
    assert_eq!((assembled.system.len(), n_messages), (1, 0));
}

// REQ: CTX-3
#[test]
fn other_tools_give_what_the_texts_give_with_them() {
    let named = |name: &str| Arc::new(ToolSpec { name: name.into(), ..(*tool()).clone() });
    let many: Vec<_> = (0..2000).map(|i| named(&format!("mcp__server__tool_{i}"))).collect();
    let lists = [vec![], vec![tool()], vec![tool(), named("mcp__late__echo")], many];
    let plain = SourceTexts { git: String::new(), append_system_prompt: None, ..texts() };
    let long = SourceTexts { git: "g".repeat(SYSTEM_PROMPT_BUDGET_CHARS), ..texts() };
    let nearly = SYSTEM_PROMPT_BUDGET_CHARS - 2_000;
    let nearly = SourceTexts { git: "g".repeat(nearly), ..texts() };
    let directory =
        |directory| SystemPromptParts { adaptation: "STYLE", directory, ..Default::default() };
    for (texts, parts) in [
        (texts(), directory("/r/s")),
        (plain, directory("")),
        (long, directory("/r/s")),
        (nearly, directory("/r/s")),
    ] {
        let made = |tools: &Vec<_>| Sources::new(&texts, &parts, tools.clone(), "context".into());
        for (before, now) in lists.iter().flat_map(|it| lists.iter().map(move |now| (it, now))) {
            let offering = made(before).offering(now.clone());
            assert_eq!(assembled(&offering, &[]), assembled(&made(now), &[]));
            let back = offering.offering(before.clone());
            assert_eq!(assembled(&back, &[]), assembled(&made(before), &[]));
        }
    }
}

// REQ: CTX-1
#[test]
fn context_of_a_conversation_that_grows_is_the_one_counted_anew() {
    let (sources, mut counted) = (sources(), CountedMessages::default());
    let mut all = conversation();
    for i in 0..40 {
        let call = format!("c{i}").into();
        let uses = vec![Block::tool_use(&call, &"Read".into(), "{}")];
        all.push(Arc::new(Message::answer(format!("a{i}").into(), "m", uses)));
        let result = Block::tool_result(&call, &"r".repeat(i), false);
        all.push(message(&format!("r{i}"), MessageKind::ToolResults, result));
    }
    // From the summary on, as a session has it after a compaction.
    let grows: Vec<&[Arc<Message>]> = (1..all.len()).map(|end| &all[1..=end]).collect();
    let others = [&all[..], &all[..9], &all[4..], &all[4..30], &[]];
    for conversation in grows.into_iter().chain(others) {
        let grown = assemble_grown(&sources, &conversation.to_vec().into(), &mut counted);
        assert_eq!(grown, assembled(&sources, conversation));
        let messages = grown.context.iter().chain(grown.conversation.walk());
        assert_eq!(grown.estimate, estimate_of(messages));
        let results = grown.conversation.walk().flat_map(|it| &it.blocks);
        let results = results.filter(|it| it.as_tool_result().is_some());
        assert_eq!(grown.sizes[7], results.map(Block::chars).sum::<u64>());
    }
    assert!(counted.looks() < 4 * all.len() as u64, "{}", counted.looks());
}
