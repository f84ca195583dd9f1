//! Reads a Responses answer that came in one piece, by the same rules as the response in the last
//! event of a stream.

use super::stream::Responses;
use crate::{
    digest::Digest,
    step5_model_call::{
        ModelAnswer, ModelFailure,
        openai_shared::reader::{Broken, Format, Progress},
        stream::{Batch, StreamOutcome},
    },
};

/// The answer in the body of a response with status 200, to this request.
///
/// # Errors
///
/// The failure that the body names; [`StreamBroken`](crate::step5_model_call::FailureClass::StreamBroken)
/// when it is not an answer.
pub fn read_whole(body: &[u8], request: Digest) -> Result<ModelAnswer, ModelFailure> {
    read(body, request).or_else(|broken| StreamOutcome::from(broken).into_result())
}

fn read(body: &[u8], request: Digest) -> Result<ModelAnswer, Broken> {
    let text = String::from_utf8_lossy(body);
    let (mut responses, mut progress) = (Responses::new(request), Progress::default());
    let mut shown = Vec::new();
    let text = text.trim();
    if !text.starts_with('{') {
        return Err(Broken::malformed("the answer is no object"));
    }
    responses.conclude(text, "failed", &mut progress, &mut Batch::new(&mut shown))?;
    Ok(responses.into_answer(&progress))
}
