//! What a turn costs after a long conversation.
//!
//! The work of a turn is to follow what is new and not what was said before; only the bytes of the request grow with the
//! conversation, and are joined and copied. Sessions go on from transcripts of other programs, as long as is asked.

use std::{fs, time::Duration};

use ennead::{Placement, SessionHandle};
use memchr::memmem;
use serde::Serialize;
use serde_json::json;

use super::{
    BenchError,
    samples::{as_us, median},
    stage::{CALLS, Stage, answered},
    turns::Reading,
};

/// Bytes of a message of the user, and of an answer.
const PROMPT: usize = 600;
const ANSWER: usize = 3_400;

/// Sessions for each length, in turn with those of the other lengths, so that a busy moment falls on all of them.
const ROUNDS: u32 = 5;

/// What turns cost after a conversation of some length.
#[derive(Clone, Debug, Serialize)]
pub struct HistoryCost {
    /// Bytes of text that was said before.
    pub n_bytes: u64,
    /// Messages that hold them.
    pub n_messages: u64,
    /// Turns that were run.
    pub n_turns: u32,
    /// Processor time of the process for each turn, without the model's own: the median of the sessions.
    #[serde(rename = "cpu_us", serialize_with = "as_us")]
    pub cpu: Duration,
    /// From the opening until the first answer, without the model's own: reading, checking and encoding all of it.
    #[serde(rename = "first_us", serialize_with = "as_us")]
    pub first: Duration,
}

impl HistoryCost {
    /// Measures turns after a conversation of each of these lengths, at least `n_turns` for each.
    ///
    /// # Errors
    ///
    /// [`BenchError`].
    pub async fn measure(kilobytes: &[u32], n_turns: u32) -> Result<Vec<Self>, BenchError> {
        let stage = Stage::new(Placement::Threads(1)).await?;
        // A run of the prompt has two turns.
        let n_runs = n_turns.div_ceil(2 * ROUNDS).max(1);
        let histories: Vec<PastConversation> =
            kilobytes.iter().map(|it| PastConversation::of(*it)).collect();
        let mut samples = vec![(Vec::new(), Vec::new(), 0); histories.len()];
        for round in 0..ROUNDS {
            for (at, history) in histories.iter().enumerate() {
                let (first, cpu, turns) = history.session(&stage, round, at, n_runs).await?;
                samples[at].0.push(first);
                samples[at].1.push(cpu);
                samples[at].2 += turns;
            }
        }
        stage.end().await;
        let costs = histories.iter().zip(samples).map(|(it, (mut first, mut cpu, n_turns))| Self {
            n_bytes: it.n_bytes,
            n_messages: it.n_messages,
            n_turns,
            cpu: median(&mut cpu),
            first: median(&mut first),
        });
        Ok(costs.collect())
    }
}

/// A conversation that went before, as lines of a transcript without seals.
struct PastConversation {
    lines: String,
    n_bytes: u64,
    n_messages: u64,
}

impl PastConversation {
    fn of(kilobytes: u32) -> Self {
        let text = "We looked at the module and noted line by line what it does. ";
        let (mut lines, mut parent) = (String::new(), None);
        let (mut n_bytes, mut n_messages) = (0, 0);
        while n_bytes < u64::from(kilobytes) * 1000 {
            for (kind, len) in [("user", PROMPT), ("assistant", ANSWER)] {
                let uuid = format!("{n_messages}-{kind}");
                let text = format!("[{n_messages}] {}", &text.repeat(len / text.len()));
                n_bytes += text.len() as u64;
                n_messages += 1;
                let content = json!([{ "type": "text", "text": text }]);
                let line = json!({
                    "type": kind,
                    "uuid": uuid,
                    "parentUuid": parent,
                    "sessionId": "SESSION",
                    "timestamp": "2026-01-01T00:00:00.000Z",
                    "isSidechain": false,
                    "message": { "role": kind, "content": content },
                });
                lines.push_str(&line.to_string());
                lines.push('\n');
                parent = Some(uuid);
            }
        }
        Self { lines, n_bytes, n_messages }
    }

    /// Goes on with it: the time until the first answer, the processor time of each later turn, and their number.
    async fn session(
        &self,
        stage: &Stage,
        round: u32,
        at: usize,
        n_runs: u32,
    ) -> Result<(Duration, Duration, u32), BenchError> {
        let id = format!("00000000-0000-7000-8000-{round:06x}{at:06x}");
        let transcripts = stage.path().join("transcripts");
        fs::create_dir_all(&transcripts)?;
        let lines = self.lines.replace("SESSION", &id);
        fs::write(transcripts.join(format!("{id}.jsonl")), lines)?;
        // So large that no shaper has anything to do, and a model without a price, since what was spent is a
        // reason to sum up, too.
        let shapers = json!({ "maxMessages": 1_000_000 });
        let roomy = json!({
            "model": "unpriced",
            "ennead": { "contextWindow": 100_000_000, "shapers": shapers },
        });
        let options = stage.session()?.settings_json(roomy)?.id(id);
        let opening = Reading::of(stage);
        let session = stage.ennead.open(options).await?;
        answered(&session, CALLS).await?;
        let first = Reading::of(stage).since(opening).own_wall();
        let (cpu, n_turns) = turns(stage, &session, n_runs).await?;
        let transcript = session.transcript().to_owned();
        session.close().await;
        if memmem::find(&fs::read(transcript)?, br#""kind":"shaper""#).is_some() {
            return Err(BenchError::Shaped);
        }
        Ok((first, cpu, n_turns))
    }
}

async fn turns(
    stage: &Stage,
    session: &SessionHandle,
    n_runs: u32,
) -> Result<(Duration, u32), BenchError> {
    let before = Reading::of(stage);
    let mut n_turns = 0;
    for _ in 0..n_runs {
        n_turns += answered(session, CALLS).await?;
    }
    Ok((Reading::of(stage).since(before).own_cpu() / n_turns.max(1), n_turns))
}
