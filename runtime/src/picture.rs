//! Pictures and PDF files by their bytes: what they are, how large, and whether a model is shown them.
//!
//! A provider refuses a whole request for one picture that it cannot read, and the conversation would
//! hold that picture from then on. So what is shown has the first bytes of its format, sides and a size
//! that providers take.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{
    run::{ImageType, InvalidRequest, PromptBlock},
    step5_model_call::view::MAX_IMAGE_BYTES,
};

/// Pixels of one side of a picture that providers take.
pub(crate) const MAX_SIDE: u32 = 8_000;

/// Bytes of a PDF file that is shown as a whole: some hundred pages of text.
pub(crate) const MAX_PDF_BYTES: usize = 10_000_000;

/// What the first bytes of a picture say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The format that the bytes show, whatever the name of the file says.
    pub kind: ImageType,
    /// Its width in pixels.
    pub width: u32,
    /// Its height in pixels.
    pub height: u32,
}

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {} x {} pixels]", self.kind.media_type(), self.width, self.height)
    }
}

/// Why a model is not shown a picture or a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotShown {
    /// The bytes do not begin as a PNG, JPEG, GIF or WebP picture does.
    #[error("it is not a PNG, JPEG, GIF or WebP picture")]
    NoPicture,
    /// Providers refuse sides over `MAX_SIDE`, and none at all.
    #[error("it has {width} x {height} pixels; each side may have 1 to {MAX_SIDE}")]
    Sides {
        /// Its width in pixels.
        width: u32,
        /// Its height in pixels.
        height: u32,
    },
    /// More than a provider takes.
    #[error("it has {bytes} bytes; {max} are the most that can be shown")]
    TooLarge {
        /// Length of the file, in bytes.
        bytes: usize,
        /// The greatest size that is shown.
        max: usize,
    },
    /// The bytes do not begin and end as a PDF file does.
    #[error("it is not a whole PDF file")]
    NoPdf,
    /// It can be read only with its password.
    #[error("it is encrypted")]
    Encrypted,
}

/// Returns the picture as a block of a message, and what it is.
///
/// # Errors
///
/// [`NotShown`].
pub fn picture(bytes: &[u8]) -> Result<(PromptBlock, Picture), NotShown> {
    let Some(found) = sniff(bytes) else { return Err(NotShown::NoPicture) };
    let Picture { kind, width, height } = found;
    if !(1..=MAX_SIDE).contains(&width) || !(1..=MAX_SIDE).contains(&height) {
        return Err(NotShown::Sides { width, height });
    }
    // Four characters for three bytes.
    let max = MAX_IMAGE_BYTES / 4 * 3;
    let too_large = |_: InvalidRequest| NotShown::TooLarge { bytes: bytes.len(), max };
    if max < bytes.len() {
        return Err(NotShown::TooLarge { bytes: bytes.len(), max });
    }
    let block =
        PromptBlock::image(kind.media_type(), &STANDARD.encode(bytes)).map_err(too_large)?;
    Ok((block, found))
}

/// Returns the PDF file as a block of a message.
///
/// # Errors
///
/// [`NotShown`].
pub fn pdf(bytes: &[u8], title: &str) -> Result<PromptBlock, NotShown> {
    let has = |part: &[u8], word: &[u8]| memchr::memmem::find(part, word).is_some();
    if !is_pdf(bytes) || !has(&bytes[bytes.len().saturating_sub(1024)..], b"%%EOF") {
        return Err(NotShown::NoPdf);
    }
    if MAX_PDF_BYTES < bytes.len() {
        return Err(NotShown::TooLarge { bytes: bytes.len(), max: MAX_PDF_BYTES });
    }
    if has(bytes, b"/Encrypt") {
        return Err(NotShown::Encrypted);
    }
    let too_large = |_: InvalidRequest| NotShown::NoPdf;
    PromptBlock::pdf(&STANDARD.encode(bytes), Some(title)).map_err(too_large)
}

/// Returns whether the bytes begin as a PDF file does.
pub fn is_pdf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%PDF-")
}

/// Returns the picture that the bytes begin with; `None` when they begin with none. Looks at the headers alone.
pub fn sniff(bytes: &[u8]) -> Option<Picture> {
    let (kind, (width, height)) = match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => {
            (ImageType::Png, (be32(bytes, 16)?, be32(bytes, 20)?))
        }
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => {
            (ImageType::Gif, (le16(bytes, 6)?, le16(bytes, 8)?))
        }
        [0xff, 0xd8, 0xff, ..] => (ImageType::Jpeg, jpeg(bytes)?),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => {
            (ImageType::Webp, webp(bytes)?)
        }
        _ => return None,
    };
    Some(Picture { kind, width, height })
}

/// Width and height of a JPEG picture: they are in the frame header, after any number of other segments.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        if *bytes.get(at)? != 0xff {
            return None;
        }
        match *bytes.get(at + 1)? {
            // Fill bytes.
            0xff => at += 1,
            // These have no length.
            0x01 | 0xd0..=0xd8 => at += 2,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some((be16(bytes, at + 7)?, be16(bytes, at + 5)?));
            }
            // The picture itself or its end, and no frame before it.
            0xd9 | 0xda => return None,
            _ => at += 2 + be16(bytes, at + 2)?.max(2) as usize,
        }
    }
}

/// Width and height of a WebP picture: each of its three forms has them elsewhere.
fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => Some((le16(bytes, 26)? & 0x3fff, le16(bytes, 28)? & 0x3fff)),
        b"VP8L" if bytes.get(20) == Some(&0x2f) => {
            let bits = le16(bytes, 21)? | le16(bytes, 23)? << 16;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => {
            let side = |at| Some((le16(bytes, at)? | u32::from(*bytes.get(at + 2)?) << 16) + 1);
            Some((side(24)?, side(27)?))
        }
        _ => None,
    }
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(be16(bytes, at)? << 16 | be16(bytes, at + 2)?)
}

fn be16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(*bytes.get(at)?) << 8 | u32::from(*bytes.get(at + 1)?))
}

fn le16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(*bytes.get(at)?) | u32::from(*bytes.get(at + 1)?) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend([width.to_be_bytes(), height.to_be_bytes()].concat());
        bytes
    }

    #[track_caller]
    fn check(bytes: &[u8], kind: ImageType, width: u32, height: u32) {
        assert_eq!(sniff(bytes), Some(Picture { kind, width, height }));
        for n in 0..bytes.len() {
            // A part of it is none, or the same; and no part is read past its end.
            assert!(sniff(&bytes[..n]).is_none_or(|it| it == Picture { kind, width, height }));
        }
    }

    // REQ: TOL-7
    #[test]
    fn each_format_says_its_sides() {
        check(&png(3, 70_000), ImageType::Png, 3, 70_000);
        check(b"GIF89a\x05\0\x00\x01\0\0", ImageType::Gif, 5, 256);
        let app = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x11\x08\0\x09\x01\x02\x03";
        check(app, ImageType::Jpeg, 258, 9);
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x40\0\x20\0";
        check(lossy, ImageType::Webp, 64, 32);
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x3f\xc0\x07\0";
        check(lossless, ImageType::Webp, 64, 32);
        let extended = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x3f\0\0\x1f\0\0";
        check(extended, ImageType::Webp, 64, 32);
    }

    // REQ: TOL-7
    #[test]
    fn what_a_provider_would_refuse_is_not_shown() {
        assert_eq!(picture(b"no picture"), Err(NotShown::NoPicture));
        let sides = NotShown::Sides { width: MAX_SIDE + 1, height: 1 };
        assert_eq!(picture(&png(MAX_SIDE + 1, 1)), Err(sides));
        assert_eq!(picture(&png(0, 1)), Err(NotShown::Sides { width: 0, height: 1 }));
        let mut large = png(1, 1);
        large.resize(MAX_IMAGE_BYTES, 0);
        assert!(matches!(picture(&large), Err(NotShown::TooLarge { .. })));
        let (block, found) = picture(&png(MAX_SIDE, 1)).unwrap();
        assert_eq!((found.width, block.block().tokens().0), (MAX_SIDE, 1600));
        assert!(pdf(b"%PDF-1.7\n1 0 obj\n%%EOF\n", "a.pdf").is_ok());
        assert_eq!(pdf(b"%PDF-1.7\n1 0 obj\n", "a.pdf"), Err(NotShown::NoPdf));
        let locked = b"%PDF-1.7\ntrailer <</Encrypt 1 0 R>>\n%%EOF\n";
        assert_eq!(pdf(locked, "a.pdf"), Err(NotShown::Encrypted));
    }

    // REQ: TOL-7
    #[test]
    fn segments_that_lead_nowhere_end_the_search() {
        let mut long = b"\xff\xd8".to_vec();
        long.extend(b"\xff\xe0\0\0".repeat(200_000));
        assert_eq!(sniff(&long), None);
        let fill = [b"\xff\xd8".to_vec(), vec![0xff; 1_000_000]].concat();
        assert_eq!(sniff(&fill), None);
    }
}
