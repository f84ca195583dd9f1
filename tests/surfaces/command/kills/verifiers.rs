//! SIGKILL while an agent verifies for a hook.

use serde_json::json;

use super::*;

const PLAYBOOK: &str = r#"
key = "right"

[[rule]]
name = "looks about"
when.system = "you verify one event"
when.answers = { max = 3 }
reply = [{ tool = "Glob", input = { pattern = "p{{ answers }}" } }]

[[rule]]
name = "is content"
when.system = "you verify one event"
reply = [{ text = "{\"ok\":true}" }]

[[rule]]
name = "works"
when.prompt = "work"
when.answers = { max = 1 }
reply = [{ tool = "Bash", input = { command = "echo {{ answers }} >> ran" } }]

[[rule]]
name = "is done"
reply = [{ text = "done" }]
"#;

fn ask_verified(server: &Simulation, place: &CommandDirs, prompt: &str) -> std::process::Command {
    let handlers = json!([{"hooks": [{"type": "agent", "prompt": "Harmless?"}]}]);
    let hooks = json!({"hooks": {"PreToolUse": handlers, "Stop": handlers}});
    let mut command = ask(server, place, prompt);
    command.args(["--settings", &hooks.to_string()]);
    command
}

// REQ: HKS-1, SES-3, SES-4, AGT-3
#[test]
#[expect(clippy::print_stdout, reason = "the counts are worth knowing")]
fn sessions_with_agents_that_verify_are_in_order_after_a_kill_at_any_point() {
    let n_kills: u32 =
        std::env::var("ENNEAD_KILLS").ok().and_then(|it| it.parse().ok()).unwrap_or(6);
    let home = CommandDirs::new();
    let server = Simulation::playing(&home, PLAYBOOK);
    #[expect(clippy::disallowed_methods, reason = "points in real time are what this is about")]
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let (place, begun) = (CommandDirs::new(), now());
    let whole: Ended = ask_verified(&server, &place, "work").output().unwrap().into();
    assert_eq!((whole.code, whole.stdout.as_str()), (Some(0), "done\n"), "{whole:?}");
    let takes = u64::try_from((now() - begun).as_micros()).unwrap();
    assert_eq!(transcripts(&place).len(), 3, "one for each call, and one for the end");
    let seed = u64::try_from(now().as_nanos() & u128::from(u64::MAX)).unwrap();
    let (mut random, mut n_open) = (Random(seed), 0);
    for _ in 0..n_kills {
        let place = CommandDirs::new();
        // In the first half little happens but the start of the process.
        let after = Duration::from_micros(takes / 4 + random.below(takes - takes / 4));
        let mut child = ask_verified(&server, &place, "work").spawn().unwrap();
        let (_never, time) = mpsc::channel::<()>();
        let _over = time.recv_timeout(after);
        child.kill().unwrap();
        child.wait().unwrap();
        n_open += transcripts(&place).iter().filter(|it| !is_closed(it)).count();
        let resumed: Ended = ask_verified(&server, &place, "go on").output().unwrap().into();
        assert_eq!(resumed.code, Some(0), "{after:?}: {resumed:?}");
        let verified = place.run(&["verify", text(&place.transcript(".transcripts"))]);
        assert_eq!(verified.code, Some(0), "{after:?}: {verified:?}");
        assert!(transcripts(&place).iter().all(|it| is_closed(it)), "{after:?}");
        let ran = fs::read_to_string(place.work().join("ran")).unwrap_or_default();
        let different: BTreeSet<&str> = ran.lines().collect();
        assert_eq!(different.len(), ran.lines().count(), "{after:?}: a tool ran twice: {ran}");
    }
    println!("{n_kills} kills within {takes} µs, seed {seed}: {n_open} agents closed on resume");
}
