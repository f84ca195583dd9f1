//! The demonstration as a library: its figures come from the tools, and its agents run side by
//! side.

use std::{collections::BTreeSet, fs, path::Path, sync::Arc};

use ennead::{
    Event,
    tool::{BoxFuture, Tool, ToolOutcome},
};
use ennead_command::demo::{Demo, DemoOutcome};
use ennead_runtime::{ports::ToolContext, step7_permission_gate::Permit, tool::ToolSpec};
use ennead_tools::registry::builtin_tools;

/// Grep with one line too many in every count.
#[derive(Debug)]
struct Miscounts(Arc<dyn Tool>);

impl Tool for Miscounts {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }

    fn check_input(&self, input: &str) -> Result<(), String> {
        self.0.check_input(input)
    }

    fn run(&self, permit: Permit, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let run = self.0.run(permit, context);
        Box::pin(async move {
            let mut outcome = run.await;
            outcome.text = outcome.text.replace("Found 2 ", "Found 3 ");
            outcome
        })
    }
}

fn plant(root: &Path, folders: &[&str]) {
    for folder in folders {
        fs::create_dir(root.join(folder)).unwrap();
        fs::write(root.join(folder).join("a.txt"), "one\ntwo\n").unwrap();
    }
}

async fn survey(demo: Demo, watch: impl FnMut(&Event)) -> DemoOutcome {
    let mut watch = watch;
    demo.run(|_| (), |event| watch(&event.event)).await.unwrap()
}

// REQ: AGT-2, MDL-11
#[tokio::test(flavor = "multi_thread")]
async fn a_search_that_miscounts_changes_the_summary() {
    let dir = tempfile::tempdir().unwrap();
    plant(dir.path(), &["a", "b"]);
    let right = survey(Demo::new(dir.path()), |_| ()).await;
    assert!(right.outcome.text.contains("| a | 1 | 2 | 0 |"), "{}", right.outcome.text);
    let grep = builtin_tools().into_iter().find(|it| it.spec().name.as_str() == "Grep").unwrap();
    let demo = Demo::new(dir.path()).with_tool(Arc::new(Miscounts(grep)));
    let wrong = survey(demo, |_| ()).await;
    assert!(wrong.outcome.text.contains("| a | 1 | 3 | 0 |"), "{}", wrong.outcome.text);
}

// REQ: AGT-2
#[tokio::test(flavor = "multi_thread")]
async fn at_least_three_and_at_most_five_sub_agents_run_at_once() {
    let dir = tempfile::tempdir().unwrap();
    plant(dir.path(), &["a", "b", "c", "d", "e", "f", "g", "h"]);
    let (mut running, mut most, mut seen) = (BTreeSet::new(), 0, 0);
    let outcome = survey(Demo::new(dir.path()), |event| match event {
        Event::AgentStarted { agent, .. } => {
            seen += 1;
            running.insert(agent.clone());
            most = most.max(running.len());
        }
        Event::Agent { agent, event } if matches!(**event, Event::RunFinished { .. }) => {
            running.remove(agent);
        }
        _ => {}
    })
    .await;
    assert!(outcome.outcome.end.is_success(), "{:?}", outcome.outcome.end);
    assert_eq!(seen, 8);
    assert!((3..=5).contains(&most), "{most} at once");
}

/// The text with every number as `0`: how many files and lines there are changes with the tests.
fn without_numbers(text: &str) -> String {
    let digits = |it: char| it.is_ascii_digit();
    let parts: Vec<&str> = text.trim().split(digits).collect();
    parts.iter().enumerate().fold(String::new(), |mut all, (i, part)| {
        // Digits next to each other have nothing between them.
        if 0 < i && !all.ends_with('0') {
            all.push('0');
        }
        all + part
    })
}

// REQ: AGT-2
#[tokio::test(flavor = "multi_thread")]
async fn readme_shows_what_the_demonstration_prints() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let (_, shown) = readme.split_once("It prints:\n\n```text\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let printed = survey(Demo::new(root.join("tests/cases")), |_| ()).await.outcome.text;
    assert_eq!(without_numbers(shown), without_numbers(&printed), "{printed}");
}
