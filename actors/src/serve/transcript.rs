//! `/v1/sessions/{id}/transcript`: the transcript as it is on the disk.

use std::{io::SeekFrom, path::PathBuf};

use axum::{
    Extension,
    body::{Body, Bytes},
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header},
};
use futures::stream;
use tokio::{
    fs::File,
    io::{AsyncReadExt, AsyncSeekExt},
};

use super::{
    Server,
    access::Caller,
    body,
    hosted::Hosted,
    problem::{Code, Problem, ProblemBody},
    shares::TakenShare,
};

/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// Returns the transcript as JSON lines. `Range` with one range of bytes returns a part of it.
#[utoipa::path(get, path = "/v1/sessions/{id}/transcript", operation_id = "show_transcript", tag = "records", security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The session"),
        ("agent" = Option<String>, Query, description = "A sub-agent, whose transcript is given instead"),
        ("Range" = Option<String>, Header, description = "`bytes=A-B`, `bytes=A-` or `bytes=-N`"),
    ),
    responses(
        (status = 200, description = "All of it", body = String, content_type = "application/x-ndjson"),
        (status = 206, description = "A part", body = String, content_type = "application/x-ndjson"),
        (status = "default", description = "A refusal", body = ProblemBody, content_type = "application/problem+json"),
    ))]
pub(crate) async fn show(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response<Body>, Problem> {
    let hosted = server.hosted(&caller, &id)?;
    let path = server.transcript_of(&hosted, body::query(&uri, "agent"))?;
    let slot = server.take_long_answer(&caller)?;
    let file = match File::open(&path).await {
        Ok(file) => Some(file),
        // A session without a run has none yet.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(Problem::internal("the transcript cannot be read", &error)),
    };
    let length = match &file {
        Some(file) => {
            let found = file.metadata().await;
            found.map_err(|it| Problem::internal("the transcript cannot be read", &it))?.len()
        }
        None => 0,
    };
    let range = body::header_text(&headers, &header::RANGE).map(|it| parse(it, length));
    let (start, end, is_part) = match range {
        None | Some(Range::Ignored) => (0, length, false),
        Some(Range::Part(start, end)) => (start, end, true),
        Some(Range::Outside) => {
            let detail = format!("the transcript has {length} bytes");
            return Err(Problem::new(Code::Range, detail));
        }
    };
    let mut response = Response::new(match file {
        Some(file) => read(file, start, end, slot).await?,
        None => Body::empty(),
    });
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_LENGTH, (end - start).into());
    if is_part {
        let range = format!("bytes {start}-{}/{length}", end.saturating_sub(1));
        if let Ok(range) = HeaderValue::from_str(&range) {
            headers.insert(header::CONTENT_RANGE, range);
        }
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    Ok(response)
}

impl Server {
    /// Returns the path of the transcript of a session, or of one of its sub-agents.
    pub(crate) fn transcript_of(
        &self,
        hosted: &Hosted,
        agent: Option<&str>,
    ) -> Result<PathBuf, Problem> {
        let transcript = self.0.paths.transcript(hosted.tenant(), hosted.id());
        let Some(agent) = agent else { return Ok(transcript) };
        if agent.len() != 16 || !agent.bytes().all(|it| it.is_ascii_hexdigit()) {
            return Err(Problem::new(Code::BadRequest, "an agent is 16 hexadecimal digits"));
        }
        Ok(transcript.with_extension("").join("subagents").join(format!("agent-{agent}.jsonl")))
    }
}

/// A range of bytes that was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Range {
    /// Not one that is understood; all is given, as the standard says.
    Ignored,
    /// Bytes from the first number up to, and without, the second.
    Part(u64, u64),
    Outside,
}

fn parse(text: &str, length: u64) -> Range {
    let Some((first, last)) = text.strip_prefix("bytes=").and_then(|it| it.split_once('-')) else {
        return Range::Ignored;
    };
    match (first.parse::<u64>(), last.parse::<u64>()) {
        (Ok(first), Ok(last)) if first <= last && first < length => {
            Range::Part(first, last.saturating_add(1).min(length))
        }
        (Ok(first), Err(_)) if last.is_empty() && first < length => Range::Part(first, length),
        (Err(_), Ok(n)) if first.is_empty() && 0 < n && 0 < length => {
            Range::Part(length.saturating_sub(n), length)
        }
        (Ok(first), Ok(last)) if last < first => Range::Ignored,
        (Ok(_), Ok(_)) => Range::Outside,
        (Ok(_), Err(_)) if last.is_empty() => Range::Outside,
        (Err(_), Ok(_)) if first.is_empty() => Range::Outside,
        _ => Range::Ignored,
    }
}

async fn read(mut file: File, start: u64, end: u64, slot: TakenShare) -> Result<Body, Problem> {
    let sought = file.seek(SeekFrom::Start(start)).await;
    sought.map_err(|it| Problem::internal("the transcript cannot be read", &it))?;
    let chunks = stream::unfold((file, end - start, slot), |(mut file, left, slot)| async move {
        let n = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        if n == 0 {
            return None;
        }
        let mut chunk = vec![0; n];
        match file.read(&mut chunk).await {
            // It has become shorter, which no writer does: the answer is broken off.
            Ok(0) => Some((
                Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof)),
                (file, 0, slot),
            )),
            Ok(n) => {
                chunk.truncate(n);
                Some((Ok(Bytes::from(chunk)), (file, left - n as u64, slot)))
            }
            Err(error) => Some((Err(error), (file, 0, slot))),
        }
    });
    Ok(Body::from_stream(chunks))
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SUR-5
    #[test]
    fn ranges_are_cut_at_the_end_and_refused_outside() {
        let cases = [
            ("bytes=0-3", Range::Part(0, 4)),
            ("bytes=2-", Range::Part(2, 10)),
            ("bytes=-4", Range::Part(6, 10)),
            ("bytes=-40", Range::Part(0, 10)),
            ("bytes=5-400", Range::Part(5, 10)),
            ("bytes=9-9", Range::Part(9, 10)),
            ("bytes=10-", Range::Outside),
            ("bytes=10-12", Range::Outside),
            ("bytes=-0", Range::Outside),
            ("bytes=3-2", Range::Ignored),
            ("bytes=0-1,3-4", Range::Ignored),
            ("lines=0-1", Range::Ignored),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text, 10), expected, "{text}");
        }
        assert_eq!(parse("bytes=0-", 0), Range::Outside);
    }
}
