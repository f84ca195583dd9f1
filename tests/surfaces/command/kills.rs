//! SIGKILL at random points of runs with sub-agents: afterwards the session goes on, its transcripts
//! and those of its agents are in order, and no tool has run twice.
//!
//! `ENNEAD_KILLS` sets how many; 6 unless set.

mod several;
mod streaming;
mod verifiers;

use std::{
    collections::BTreeSet,
    fs,
    sync::mpsc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::{CommandDirs, Ended, Simulation, text};

const PLAYBOOK: &str = r#"
key = "right"

[[rule]]
name = "sends agents"
when.prompt = "delegate"
when.answers = 0
reply = [
  { text = "I send two." },
  { each = "range(2)", tool = "Agent", input = { description = "part {{ item }}", prompt = "part {{ item }}" } },
]

[[rule]]
name = "works on its part"
when.prompt.regex = '^part \d'
when.answers = { max = 3 }
let.part = "prompt|number"
reply = [
  { text = "step {{ answers }} of part {{ part }}" },
  { tool = "Bash", input = { command = "echo {{ part }}-{{ answers }} >> ran" } },
]

[[rule]]
name = "is done"
reply = [{ text = "done" }]
"#;

const SESSION: &str = "5f1c0000-0000-4000-8000-00000000000b";

/// A source of points in time; printed, so that a run can be done again.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }
}

fn ask(server: &Simulation, place: &CommandDirs, prompt: &str) -> std::process::Command {
    let mode = ["--permission-mode", "bypassPermissions", "--session-id", SESSION];
    server.command(place, &[&["-p", prompt], &mode[..]].concat())
}

/// What became of one kill.
#[derive(Debug, Default)]
struct KillCounts {
    /// It hit a run that had begun.
    begun: usize,
    /// It hit a run with sub-agents.
    with_agents: usize,
    /// Transcripts of agents that were closed on resume.
    closed: usize,
}

fn transcripts(place: &CommandDirs) -> Vec<String> {
    let below = place.work().join(".transcripts").join(SESSION).join("subagents");
    let files = fs::read_dir(below).into_iter().flatten().map(|it| it.unwrap().path());
    let files = files.filter(|it| it.extension().is_some_and(|it| it == "jsonl"));
    files.map(|it| fs::read_to_string(it).unwrap()).collect()
}

fn is_closed(transcript: &str) -> bool {
    transcript.is_empty() || transcript.contains(r#""kind":"run_end""#)
}

fn kill_once(server: &Simulation, after: Duration, counts: &mut KillCounts) {
    let place = CommandDirs::new();
    let mut child = ask(server, &place, "delegate").spawn().unwrap();
    // Nobody sends: it is the point in time that is waited for.
    let (_never, time) = mpsc::channel::<()>();
    let _over = time.recv_timeout(after);
    child.kill().unwrap();
    child.wait().unwrap();
    let agents = transcripts(&place);
    let n_open = agents.iter().filter(|it| !is_closed(it)).count();
    counts.with_agents += usize::from(!agents.is_empty());
    let resumed: Ended = ask(server, &place, "go on").output().unwrap().into();
    assert_eq!(resumed.code, Some(0), "{after:?}: {resumed:?}");
    let transcript = place.transcript(".transcripts");
    let verified = place.run(&["verify", text(&transcript)]);
    assert_eq!(verified.code, Some(0), "{after:?}: {verified:?}");
    let transcript_text = fs::read_to_string(&transcript).unwrap();
    counts.begun += usize::from(transcript_text.contains("delegate"));
    counts.closed += n_open;
    assert!(transcripts(&place).iter().all(|it| is_closed(it)));
    let ran = fs::read_to_string(place.work().join("ran")).unwrap_or_default();
    let different: BTreeSet<&str> = ran.lines().collect();
    assert_eq!(different.len(), ran.lines().count(), "{after:?}: a tool ran twice: {ran}");
}

// REQ: SES-3, SES-4, AGT-3
#[test]
#[expect(clippy::print_stdout, reason = "the counts are worth knowing")]
fn sessions_with_sub_agents_are_in_order_after_a_kill_at_any_point_and_no_tool_runs_twice() {
    let n_kills: u32 =
        std::env::var("ENNEAD_KILLS").ok().and_then(|it| it.parse().ok()).unwrap_or(6);
    let (home, place) = (CommandDirs::new(), CommandDirs::new());
    let server = Simulation::playing(&home, PLAYBOOK);
    // How long it takes when nobody ends it, within a factor of two.
    #[expect(clippy::disallowed_methods, reason = "points in real time are what this is about")]
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let begun = now();
    let whole: Ended = ask(&server, &place, "delegate").output().unwrap().into();
    assert_eq!((whole.code, whole.stdout.as_str()), (Some(0), "done\n"), "{whole:?}");
    assert_eq!(fs::read_to_string(place.work().join("ran")).unwrap().lines().count(), 8);
    let ended = now();
    // Before this file is written there is nothing that a kill could tear.
    let first_file = fs::metadata(place.work().join(".transcripts/.gitignore")).unwrap();
    let first_file = first_file.modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
    let micros = |it: Duration| u64::try_from(it.as_micros()).unwrap();
    let (first, takes) = (micros(first_file.saturating_sub(begun)), micros(ended - begun));
    let seed = u64::try_from(now().as_nanos() & u128::from(u64::MAX)).unwrap();
    let (mut random, mut counts) = (Random(seed), KillCounts::default());
    for _ in 0..n_kills {
        let after = first + random.below(takes.saturating_sub(first));
        kill_once(&server, Duration::from_micros(after), &mut counts);
    }
    println!("{n_kills} kills from {first} to {takes} µs, seed {seed}: {counts:?}");
}
