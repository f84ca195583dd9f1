//! Frames of `application/vnd.amazon.eventstream`: bytes in, headers and payload out.
//!
//! It knows nothing of models. Both checksums of a frame are checked, so a byte that
//! changed on the way ends the stream instead of becoming an answer.

use thiserror::Error;

/// Bytes of the three numbers that a frame begins with.
const PRELUDE: usize = 12;

/// Bytes of the checksum that a frame ends with.
const TRAILER: usize = 4;

/// Bytes of one frame, as in the decoders of AWS: 24 MiB.
pub(crate) const MAX_FRAME_BYTES: usize = 24 * 1024 * 1024;

/// Puts frames together from pieces of any size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frames {
    /// The begin of a frame whose end has not come.
    pending: Vec<u8>,
}

/// One whole frame of an event stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventFrame<'a> {
    /// Names and values of the headers that are texts, in order.
    pub headers: Vec<(&'a str, &'a str)>,
    /// Bytes that the frame carries.
    pub payload: &'a [u8],
}

impl EventFrame<'_> {
    /// Returns the text of a header.
    pub(crate) fn header(&self, wanted: &str) -> Option<&str> {
        self.headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value)
    }
}

/// Why bytes are not frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum FrameError {
    /// The lengths contradict each other or are beyond `MAX_FRAME_BYTES`.
    #[error("a frame has an impossible length")]
    Length,
    /// A checksum does not match.
    #[error("the checksum of a frame does not match")]
    Checksum,
    /// The headers cannot be read.
    #[error("the headers of a frame cannot be read")]
    Headers,
    /// The payload is not what the headers say.
    #[error("the payload of a frame cannot be read")]
    Payload,
}

impl Frames {
    /// Feeds bytes; calls `take` for each frame that is whole.
    ///
    /// # Errors
    ///
    /// [`FrameError`] of the first bad frame, or what `take` says. Nothing can be read after it.
    pub(crate) fn push_chunk(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(EventFrame<'_>) -> Result<(), FrameError>,
    ) -> Result<(), FrameError> {
        self.pending.extend_from_slice(bytes);
        let mut rest = &self.pending[..];
        let mut read = Ok(());
        while let Some(length) = whole_length(rest).transpose() {
            read = length.and_then(|length| {
                let (frame, after) = rest.split_at_checked(length).ok_or(FrameError::Length)?;
                rest = after;
                take(parse(frame)?)
            });
            if read.is_err() {
                break;
            }
        }
        let n_read = self.pending.len() - rest.len();
        self.pending.drain(..n_read);
        read
    }
}

/// The length of the frame that the bytes begin with, if all of it is there.
fn whole_length(bytes: &[u8]) -> Result<Option<usize>, FrameError> {
    let Some(prelude) = bytes.get(..PRELUDE) else { return Ok(None) };
    let (numbers, _) = prelude.split_at(PRELUDE - TRAILER);
    check(numbers, prelude)?;
    let (length, headers) = (number(prelude, 0)?, number(prelude, 4)?);
    let fits = headers.checked_add(PRELUDE + TRAILER).is_some_and(|least| least <= length);
    if !fits || MAX_FRAME_BYTES < length {
        return Err(FrameError::Length);
    }
    Ok((length <= bytes.len()).then_some(length))
}

fn parse(frame: &[u8]) -> Result<EventFrame<'_>, FrameError> {
    let (body, _) = frame.split_at_checked(frame.len() - TRAILER).ok_or(FrameError::Length)?;
    check(body, frame)?;
    let n_headers = number(frame, 4)?;
    let (headers, payload) =
        body[PRELUDE..].split_at_checked(n_headers).ok_or(FrameError::Length)?;
    Ok(EventFrame { headers: read_headers(headers).ok_or(FrameError::Headers)?, payload })
}

/// Whether `covered` has the checksum that is at the end of `with_sum`.
fn check(covered: &[u8], with_sum: &[u8]) -> Result<(), FrameError> {
    let sum = number(with_sum, with_sum.len() - TRAILER)?;
    let same = usize::try_from(crc32fast::hash(covered)) == Ok(sum);
    if same { Ok(()) } else { Err(FrameError::Checksum) }
}

/// The number of four bytes at a place, highest byte first.
fn number(bytes: &[u8], at: usize) -> Result<usize, FrameError> {
    let four = bytes.get(at..).and_then(|it| it.first_chunk::<4>()).ok_or(FrameError::Length)?;
    usize::try_from(u32::from_be_bytes(*four)).map_err(|_| FrameError::Length)
}

/// Headers of other types than text are passed over.
fn read_headers(mut bytes: &[u8]) -> Option<Vec<(&str, &str)>> {
    let mut headers = Vec::new();
    while !bytes.is_empty() {
        let n_name = usize::from(take(&mut bytes, 1)?[0]);
        let name = std::str::from_utf8(take(&mut bytes, n_name)?).ok()?;
        let kind = take(&mut bytes, 1)?[0];
        let n_value = match kind {
            // True and false.
            0 | 1 => 0,
            2 => 1,
            3 => 2,
            4 => 4,
            // A number, or a moment.
            5 | 8 => 8,
            9 => 16,
            // Bytes and texts have a length in front.
            6 | 7 => usize::from(u16::from_be_bytes(*take(&mut bytes, 2)?.first_chunk()?)),
            _ => return None,
        };
        let value = take(&mut bytes, n_value)?;
        if kind == 7 {
            headers.push((name, std::str::from_utf8(value).ok()?));
        }
    }
    Some(headers)
}

fn take<'a>(bytes: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(n)?;
    *bytes = rest;
    Some(front)
}
