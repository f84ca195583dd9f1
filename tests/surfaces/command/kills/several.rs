//! SIGKILL while the agents of one call with several prompts work, and while what they found is put together.

use serde_json::json;

use super::*;
use crate::{
    sessions::sub_agents::several::is_synthesis,
    support::{
        model_server::ModelServer,
        scripted::{Scripted, call, model, text as said},
        until::within,
    },
};

/// Which requests wait, so that the process is killed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KillPoint {
    Agents,
    Synthesis,
}

fn delegates(point: KillPoint) -> std::sync::Arc<Scripted> {
    let word = |it: KillPoint| if it == point { "held" } else { "free" };
    let (task, found) = (word(KillPoint::Agents), word(KillPoint::Synthesis));
    let prompts = [format!("{task} north"), format!("{task} south")];
    model(move |asked| match (asked.is_agent(), asked.n_answers()) {
        _ if is_synthesis(asked) => said("never"),
        (true, _) if asked.user().contains("north") => said(&format!("{found} in the north")),
        (true, _) => said(&format!("{found} in the south")),
        (false, 0) => call("a", "Agent", json!({"description": "look", "prompts": prompts})),
        (false, _) => said("done"),
    })
}

// REQ: AGT-4, AGT-8, SES-3, SES-4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_the_call_says_once_what_became_of_each_of_its_agents() {
    for (point, n_waiting, fate) in [
        (KillPoint::Agents, 2, "The sub-agent was cut off when its process ended."),
        (KillPoint::Synthesis, 1, "The sub-agent had ended, but the process ended before"),
    ] {
        let place = CommandDirs::new();
        let server = ModelServer::serve(delegates(point)).await;
        let ask = |prompt: &str| {
            let mode = ["--permission-mode", "bypassPermissions", "--session-id", SESSION];
            let mut command = place.command(&[&["-p", prompt], &mode[..]].concat());
            command.env("ANTHROPIC_BASE_URL", server.address()).env("ANTHROPIC_API_KEY", "right");
            command
        };
        let hold = server.model().hold();
        hold.close();
        let mut child = ask("delegate").spawn().unwrap();
        for _ in 0..n_waiting {
            within("a request that waits", hold.arrived()).await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        hold.open();
        let resumed: Ended = ask("go on").output().unwrap().into();
        assert_eq!((resumed.code, resumed.stdout.as_str()), (Some(0), "done\n"), "{resumed:?}");
        let result = server.model().last_of_top().result("a");
        assert_eq!(result.matches(fate).count(), 2, "{point:?}: {result}");
        let n_words =
            ["north", "south"].map(|it| result.matches(&format!("held in the {it}")).count());
        let n_expected = usize::from(point == KillPoint::Synthesis);
        assert_eq!(n_words, [n_expected; 2], "{point:?}: {result}");
        let transcript = place.transcript(".transcripts");
        let verified = place.run(&["verify", text(&transcript)]);
        assert_eq!(verified.code, Some(0), "{point:?}: {verified:?}");
        let agents = transcripts(&place);
        assert_eq!(agents.len(), 2, "{point:?}");
        assert!(agents.iter().all(|it| is_closed(it)), "{point:?}");
    }
}
