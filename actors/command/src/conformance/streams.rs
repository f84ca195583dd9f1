//! Cases of `sse_streams`: in one piece, in many, and ended early.

use ennead_runtime::step5_model_call::stream::conformance::conformance_report;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Outcome, compare::ensure};

/// Streams up to this long are ended at every byte; of longer ones some places are tried.
const SMALL: usize = 16 * 1024;

/// Reads a recorded stream. What came out is what the whole stream gives in one piece.
pub(super) fn run(stream: &[u8], expected: &Value) -> Outcome {
    let got = conformance_report([stream]);
    let compared = compare(expected, &got)
        .and_then(|()| pieces(stream, &got))
        .and_then(|()| endings(stream, expected));
    (got, compared)
}

/// The same answer for every way of cutting.
fn pieces(stream: &[u8], whole: &Value) -> Result<(), String> {
    for n in [1, 7, 1460] {
        let same = conformance_report(stream.chunks(n)) == *whole;
        ensure(same, || format!("in pieces of {n} bytes it is read otherwise"))?;
    }
    Ok(())
}

/// Incomplete until the outcome has come, the outcome from then on.
fn endings(stream: &[u8], expected: &Value) -> Result<(), String> {
    let number =
        |at: usize| expected["complete_at"][at].as_u64().and_then(|it| usize::try_from(it).ok());
    let (Some(first), Some(last)) = (number(0), number(1)) else { return Ok(()) };
    let n = stream.len();
    ensure(first <= n && last <= n, || "`complete_at` is after the end of the stream".into())?;
    let step = if n <= SMALL { 1 } else { n / 40 };
    for k in (0..first).step_by(step).chain(first.saturating_sub(20)..first) {
        let got = conformance_report([&stream[..k]]);
        let incomplete = got["outcome"] == "incomplete"
            && got["retryable"] == true
            && got["executable_tools"] == serde_json::json!([]);
        ensure(incomplete, || format!("ended at byte {k} it is not incomplete"))?;
    }
    for k in (last..=n).step_by(step.min(7)) {
        compare(expected, &conformance_report([&stream[..k]]))
            .map_err(|why| format!("ended at byte {k}: {why}"))?;
    }
    Ok(())
}

fn compare(expected: &Value, got: &Value) -> Result<(), String> {
    for field in ["outcome", "error", "partial_text", "executable_tools", "retryable"] {
        if let Some(expected) = expected.get(field) {
            let it = &got[field];
            ensure(it == expected, || format!("{field} is {it}, not {expected}"))?;
        }
    }
    let Some(message) = expected.get("message") else { return Ok(()) };
    let (mut message, mut read) = (message.clone(), got["message"].clone());
    let (blocks, read_blocks) = (message["content"].take(), read["content"].take());
    ensure(message == read, || format!("message is {read}, not {message}"))?;
    let blocks = blocks.as_array().map_or(&[][..], Vec::as_slice);
    let read_blocks = read_blocks.as_array().map_or(&[][..], Vec::as_slice);
    ensure(blocks.len() == read_blocks.len(), || format!("{} blocks", read_blocks.len()))?;
    for (block, read) in blocks.iter().zip(read_blocks) {
        compare_block(expected, block, read)?;
    }
    Ok(())
}

fn compare_block(expected: &Value, block: &Value, read: &Value) -> Result<(), String> {
    if let Some(length) = block["text_length"].as_u64() {
        let text = read["text"].as_str().unwrap_or_default();
        let chars = text.chars().count() as u64;
        ensure(chars == length, || format!("a text of {chars} characters, not {length}"))?;
        let sum = hex(text.as_bytes());
        return ensure(block["text_sha256"] == *sum, || "the long text is another one".into());
    }
    let also = expected["accept_text"].as_array().is_some_and(|it| it.contains(&read["text"]));
    ensure(block == read || also, || format!("{read}, not {block}"))
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
