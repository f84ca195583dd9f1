//! Sub-agents: a parent gives three files to three agents, which really read them, side by side.
//!
//! Events of a sub-agent come through its parent's session, wrapped in [`Event::Agent`]; printed
//! with an indent they show the tree. The model is the simulated one. Its playbook plays both
//! parts, told apart by their prompts; the numbers come from what the tools read.

#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use ennead::{Endpoint, Ennead, Event, Options, SessionOptions, clean, testing::Playbook};

const PLAYBOOK: &str = r#"
[[rule]]
name = "agent reads"
when.users.regex = "(?m)^Count the lines of "
when.turns = 0
let.path = "(users|capture('(?m)^Count the lines of (.+)$'))[1]"
reply = [{ tool = "Read", input = { file_path = "{{ path }}" } }]

[[rule]]
name = "agent reports"
when.users.regex = "(?m)^Count the lines of "
reply = [{ text = "{{ results[0].input.file_path }} has {{ results[0].text|trim|lines|length }} lines." }]

[[rule]]
name = "parent looks"
when.turns = 0
reply = [{ tool = "Glob", input = { pattern = "*.txt" } }]

[[rule]]
name = "parent sends"
when.turns = 1
let.files = "results[0].text|find_all('(?m)^.*[.]txt$')"
reply = [
  { text = "{{ files|length }} files, an agent for each." },
  { tool = "Agent", each = "files", input = { description = "Count lines", prompt = "Count the lines of {{ item }}" } },
]

[[rule]]
name = "parent reports"
reply = [{ text = "{% for it in results if it.name == 'Agent' %}{{ it.text }}\n{% endfor %}" }]
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workspace = tempfile::tempdir()?;
    for (name, n_lines) in [("oak", 3), ("elm", 5), ("ash", 8)] {
        let text = format!("{name}\n").repeat(n_lines);
        std::fs::write(workspace.path().join(name).with_extension("txt"), text)?;
    }

    let ennead = Ennead::start(Options::simulated(Playbook::parse(PLAYBOOK, "trees")?)).await?;
    let options = SessionOptions::new(workspace.path(), Endpoint::simulated()).isolated();
    let session = ennead.open(options).await?;

    let mut events = session.events();
    let (outcome, ()) = tokio::join!(session.prompt("How long are the text files here?"), async {
        while let Some(numbered) = events.next().await {
            print("", &numbered.event);
            if matches!(numbered.event, Event::RunFinished { .. } | Event::RunLost { .. }) {
                break;
            }
        }
    });
    println!("\n{}", outcome?.into_answer()?);

    ennead.shutdown().await;
    Ok(())
}

/// A line for what shows the tree; the rest is passed over. `who` is in front of it.
fn print(who: &str, event: &Event) {
    match event {
        Event::Agent { agent, event } => print(&format!("    agent {agent} "), event),
        Event::TurnStarted { turn } => println!("{who}turn {turn}"),
        Event::AgentStarted { agent, description, .. } => {
            println!("{who}starts agent {agent}: {}", clean(description));
        }
        Event::ToolStarted { tool, .. } => println!("{who}runs {tool}"),
        Event::MessageCompleted { text, .. } if !text.is_empty() => {
            println!("{who}says: {}", clean(text).trim_end().replace('\n', "; "));
        }
        Event::RunFinished { reason, .. } => println!("{who}ends: {reason}"),
        _ => {}
    }
}
