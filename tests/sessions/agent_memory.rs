//! Notes of types of sub-agents: they are shown, and may be written there and nowhere else.

use std::{fs, os::unix::fs::symlink};

use ennead::{permission::Trust, tool::AgentType};
use serde_json::{Value, json};

use crate::support::{
    record,
    scripted::{Asked, TestDirs, call, calls, model, text},
};

/// An agent that keeps notes, with these tools.
fn keeper(memory: &str, tools: Value) -> AgentType {
    let definition = json!({
        "description": "d", "prompt": "You are a sub-agent.", "memory": memory, "tools": tools,
    });
    AgentType::read("keeper:of notes".replace(' ', "-").as_str(), &definition).unwrap()
}

fn write(id: &str, path: String) -> (String, Value) {
    (id.to_owned(), json!({"file_path": path, "content": "noted\n"}))
}

fn verdict(asked: &Asked, id: &str) -> bool {
    !asked.results().iter().find(|it| it.0 == id).unwrap_or_else(|| panic!("{asked:?}")).2
}

// REQ: AGT-5, AGT-9, PRM-4
#[tokio::test]
async fn agent_reads_its_notes_and_writes_them_and_nothing_else() {
    for (memory, folder) in [
        ("user", "home/.claude/agent-memory/keeper-of-notes"),
        ("project", "workspace/.claude/agent-memory/keeper-of-notes"),
        ("local", "workspace/.claude/agent-memory-local/keeper-of-notes"),
    ] {
        let place = TestDirs::new();
        let index = format!("a note\n{}", "line\n".repeat(300));
        place.write(&format!("{folder}/MEMORY.md"), &index);
        symlink(place.path("outside"), place.path(&format!("{folder}/link"))).unwrap();
        let paths = [
            ("in", format!("{folder}/new.md")),
            ("other", "workspace/other.md".to_owned()),
            ("up", format!("{folder}/../up.md")),
            ("out", format!("{folder}/link/out.md")),
        ];
        let writes: Vec<_> =
            paths.iter().map(|(id, path)| write(id, place.text("") + path)).collect();
        let script = model(move |asked| match (asked.is_agent(), asked.n_answers()) {
            (true, 0) => {
                let writes: Vec<_> =
                    writes.iter().map(|(id, input)| (&**id, "Write", input.clone())).collect();
                calls(&writes)
            }
            (false, 0) => call(
                "a",
                "Agent",
                json!({"description": "d", "prompt": "p", "subagent_type": "keeper:of-notes"}),
            ),
            _ => text("done"),
        });
        let mut options = place.session().agent_type(keeper(memory, json!(["Grep"])));
        options.trust = Trust::Trusted;
        place.run(&script, options).await;
        let asked = script.asked_by_agents().pop().unwrap();
        let user = asked.user();
        assert!(user.contains("Your notes lie in") && user.contains("a note"), "{memory}: {user}");
        assert_eq!(user.matches("line\n").count(), 199, "{memory}");
        let mut tools = asked.tools();
        tools.sort();
        assert_eq!(tools, ["Edit", "Grep", "Read", "Write"]);
        let verdicts = ["in", "other", "up", "out"].map(|it| verdict(&asked, it));
        assert_eq!(verdicts, [true, false, false, false], "{memory}: {:?}", asked.results());
        assert!(place.has(&format!("{folder}/new.md")));
        record::replayed(&place.sidechains()[0], 2);
    }
}

// REQ: AGT-5, AGT-9
#[tokio::test]
async fn notes_do_not_come_from_outside_and_types_without_them_have_none() {
    for (memory, is_linked) in [(Some("project"), true), (Some("project"), false), (None, false)] {
        let place = TestDirs::new();
        let folder = "workspace/.claude/agent-memory/keeper-of-notes";
        place.write("outside/MEMORY.md", "a secret");
        if is_linked {
            fs::create_dir_all(place.path("workspace/.claude/agent-memory")).unwrap();
            symlink(place.path("outside"), place.path(folder)).unwrap();
        } else {
            place.write(&format!("{folder}/MEMORY.md"), "a secret");
        }
        let script = model(|asked| match (asked.is_agent(), asked.n_answers()) {
            (false, 0) => call(
                "a",
                "Agent",
                json!({"description": "d", "prompt": "p", "subagent_type": "keeper:of-notes"}),
            ),
            _ => text("done"),
        });
        // What an untrusted repository says in its notes is not shown either.
        let trust = if is_linked { Trust::Trusted } else { Trust::Untrusted };
        let mut kind = keeper("project", json!(["Grep"]));
        if memory.is_none() {
            kind.memory = None;
        }
        let mut options = place.session().agent_type(kind);
        options.trust = trust;
        place.run(&script, options).await;
        let asked = script.asked_by_agents().pop().unwrap();
        assert!(!asked.user().contains("a secret"), "{}", asked.user());
        assert_eq!(asked.tools().len(), if memory.is_some() { 4 } else { 1 });
    }
}
