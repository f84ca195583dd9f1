//! Reads a Responses answer that came in one piece, by the same rules as the response in the last
//! event of a stream.

use super::stream::Responses;
use crate::{
    digest::Digest,
    step5_model_call::{
        ModelAnswer, ModelFailure,
        openai_shared::reader::{Broken, Format, ReadProgress},
        stream::DeltaBatch,
    },
};

/// Reads the answer in the body of a response with status 200, to this request.
///
/// # Errors
///
/// The failure that the body names; [`StreamBroken`](crate::step5_model_call::FailureClass::StreamBroken)
/// when it ends too early, [`BadAnswer`](crate::step5_model_call::FailureClass::BadAnswer) when it is
/// not an answer.
pub fn read_whole(body: &[u8], request: Digest) -> Result<ModelAnswer, ModelFailure> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    read(text, request).or_else(|broken| broken.of_whole(text).into_result())
}

fn read(text: &str, request: Digest) -> Result<ModelAnswer, Broken> {
    let (mut responses, mut progress) = (Responses::new(request), ReadProgress::default());
    let mut shown = Vec::new();
    if !text.starts_with('{') {
        return Err(Broken::malformed("the answer is not an object"));
    }
    responses.conclude(text, "failed", &mut progress, &mut DeltaBatch::new(&mut shown))?;
    Ok(responses.into_answer(&progress))
}
