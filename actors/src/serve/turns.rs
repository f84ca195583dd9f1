//! `/v1/sessions/{id}/turns`: the nine steps of each turn, from the transcript.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::PathBuf,
};

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::Uri,
};
use ennead_runtime::transcript::turn_record::{TurnReader, TurnRecord};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    Server,
    access::Caller,
    body,
    hosting::blocking,
    problem::{Code, Problem, ProblemBody},
};

/// Bytes of a line that is looked at; the records of the harness are at most 4 KiB.
const MAX_LINE: u64 = 64 * 1024;

/// A page of turns.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TurnList {
    /// In the order of the transcript: `number`, `run`, `turn`, `started_at`, `ended_at`, `end`, `usage`,
    /// `tokens_saved`, `calls` (their number), and of the steps `number`, `name` and `duration_ms`.
    #[schema(value_type = Vec<Object>)]
    turns: Vec<Value>,
    /// Where the next page begins, as `after`; `null` on the last one.
    next: Option<u64>,
}

/// Lists the turns of a session in their order.
#[utoipa::path(get, path = "/v1/sessions/{id}/turns", operation_id = "list_turns", tag = "records", security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The session"),
        ("agent" = Option<String>, Query, description = "A sub-agent, whose turns are given instead"),
        ("after" = Option<u64>, Query, description = "The number of the last turn that is known"),
        ("limit" = Option<u32>, Query, description = "1 to 200; 50 by default"),
    ),
    responses(
        (status = 200, description = "A page", body = TurnList),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn list(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<TurnList>, Problem> {
    let hosted = server.hosted(&caller, &id)?;
    let path = server.transcript_of(&hosted, body::query(&uri, "agent"))?;
    let (n, after) = (body::page(&uri)?, body::number(&uri, "after")?.unwrap_or(0));
    let read = move || {
        let mut found = Vec::new();
        read_turns(path, |turn| {
            if after < turn.number {
                found.push(turn);
            }
            found.len() <= n
        })?;
        Ok::<_, io::Error>(found)
    };
    let found = blocking(read).await?;
    let mut found = found.map_err(|it| Problem::internal("the transcript cannot be read", &it))?;
    let is_more = n < found.len();
    found.truncate(n);
    let next = found.last().filter(|_| is_more).map(|it| it.number);
    Ok(Json(TurnList { turns: found.iter().map(summary).collect(), next }))
}

/// Shows a turn: its nine steps with their durations and what each found, what shapers saved, the attempts
/// at the model with their causes, the decisions with rule and scope, and the calls of tools.
#[utoipa::path(get, path = "/v1/sessions/{id}/turns/{number}", operation_id = "show_turn", tag = "records", security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The session"),
        ("number" = u64, Path, description = "The turn, from 1 within the session"),
        ("agent" = Option<String>, Query, description = "A sub-agent, whose turn is given instead"),
    ),
    responses(
        (status = 200, description = "The turn", body = Object),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn show(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path((id, number)): Path<(String, String)>,
    uri: Uri,
) -> Result<Json<TurnRecord>, Problem> {
    let hosted = server.hosted(&caller, &id)?;
    let path = server.transcript_of(&hosted, body::query(&uri, "agent"))?;
    let none = || Problem::new(Code::NoTurn, "the session has no turn of this number");
    let number: u64 = number.parse().map_err(|_| none())?;
    let read = move || {
        let mut found = None;
        read_turns(path, |turn| {
            let is_it = turn.number == number;
            if is_it {
                found = Some(turn);
            }
            !is_it
        })?;
        Ok::<_, io::Error>(found)
    };
    let found = blocking(read).await?;
    let found = found.map_err(|it| Problem::internal("the transcript cannot be read", &it))?;
    found.map(Json).ok_or_else(none)
}

/// Gives the turns of a transcript one after another, as long as they are wanted.
fn read_turns(path: PathBuf, mut wanted: impl FnMut(TurnRecord) -> bool) -> io::Result<()> {
    let file = match File::open(path) {
        Ok(file) => file,
        // A session without a run has no transcript.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut file = BufReader::with_capacity(64 * 1024, file);
    let mut reader = TurnReader::default();
    loop {
        let mut line = Vec::new();
        if file.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.last() != Some(&b'\n') {
            // A message, or a line that is being written.
            file.skip_until(b'\n')?;
            continue;
        }
        if let Some(turn) = reader.line(&String::from_utf8_lossy(&line))
            && !wanted(turn)
        {
            return Ok(());
        }
    }
    if let Some(turn) = reader.finish() {
        wanted(turn);
    }
    Ok(())
}

fn summary(turn: &TurnRecord) -> Value {
    let steps: Vec<Value> = turn
        .steps
        .iter()
        .map(|it| json!({ "number": it.number, "name": it.name, "duration_ms": it.duration_ms }))
        .collect();
    json!({
        "number": turn.number,
        "run": turn.run,
        "turn": turn.turn,
        "started_at": turn.started_at,
        "ended_at": turn.ended_at,
        "end": turn.end,
        "usage": turn.usage,
        "tokens_saved": turn.tokens_saved,
        "attempts": turn.attempts.len(),
        "calls": turn.calls.iter().filter(|it| is_intent(it)).count(),
        "steps": steps,
    })
}

fn is_intent(call: &ennead_runtime::transcript::turn_record::Timed) -> bool {
    use ennead_runtime::transcript::entry::RecordKind;
    matches!(call.record, RecordKind::ToolIntent { .. })
}
