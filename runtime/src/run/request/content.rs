//! Blocks of a prompt. What is made here is a valid block of the Messages API; for other formats it
//! is rewritten when a request is built.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::InvalidRequest;
use crate::{
    block::{Block, quote},
    step5_model_call::view::{MAX_BLOCK_BYTES, MAX_IMAGE_BYTES},
};

/// Bytes for what is around the data of a block, its title included.
const AROUND: usize = 1024;

/// Characters of a title at most.
const MAX_TITLE_CHARS: usize = 200;

/// A text, an image or a document that somebody says. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptBlock(Block);

/// The formats that models read images in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImageType {
    /// JPEG, `image/jpeg` on the wire.
    Jpeg,
    /// PNG, `image/png` on the wire.
    Png,
    /// GIF; models see its first picture.
    Gif,
    /// WebP, `image/webp` on the wire.
    Webp,
}

impl ImageType {
    /// Returns the type that a media type names, if models read it.
    pub(crate) fn of(media_type: &str) -> Option<Self> {
        let all = [ImageType::Jpeg, ImageType::Png, ImageType::Gif, ImageType::Webp];
        all.into_iter().find(|it| it.media_type() == media_type)
    }

    /// Returns the media type, such as `image/png`.
    pub fn media_type(self) -> &'static str {
        match self {
            ImageType::Jpeg => "image/jpeg",
            ImageType::Png => "image/png",
            ImageType::Gif => "image/gif",
            ImageType::Webp => "image/webp",
        }
    }
}

impl PromptBlock {
    /// Returns the block that it is, to be replaced.
    pub(crate) fn block_mut(&mut self) -> &mut Block {
        &mut self.0
    }

    /// Returns a block of plain text.
    pub fn text(text: &str) -> Self {
        Self(Block::text(text))
    }

    /// Returns an image, as base64 of its file. Its media type is `image/jpeg`, `image/png`, `image/gif`, of
    /// which models see the first picture, or `image/webp`.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::UnknownImage`], [`InvalidRequest::NotBase64`], and [`InvalidRequest::TooLarge`]
    /// above 7 MB.
    pub fn image(media_type: &str, base64: &str) -> Result<Self, InvalidRequest> {
        let unknown = || InvalidRequest::UnknownImage { media_type: media_type.into() };
        let kind = ImageType::of(media_type).ok_or_else(unknown)?;
        let data = checked("image", base64, MAX_IMAGE_BYTES)?;
        Ok(Self::media("image", &in_request(kind.media_type(), data), None))
    }

    /// Makes an image that the provider fetches.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::NotUrl`].
    pub fn image_at(url: &str) -> Result<Self, InvalidRequest> {
        Ok(Self::media("image", &url_source("image", url)?, None))
    }

    /// Makes a PDF of its file as base64. A title is cut at 200 characters.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::NotBase64`], and [`InvalidRequest::TooLarge`] above 30 MB.
    pub fn pdf(base64: &str, title: Option<&str>) -> Result<Self, InvalidRequest> {
        let data = checked("document", base64, MAX_BLOCK_BYTES)?;
        Ok(Self::media("document", &in_request("application/pdf", data), title))
    }

    /// Makes a PDF that the provider fetches. Where a provider does not fetch it, the model reads the address.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::NotUrl`].
    pub fn pdf_at(url: &str, title: Option<&str>) -> Result<Self, InvalidRequest> {
        Ok(Self::media("document", &url_source("document", url)?, title))
    }

    /// Makes a document of plain text.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest::Empty`] when it is blank, [`InvalidRequest::TooLarge`] above 30 MB.
    pub fn document(text: &str, title: Option<&str>) -> Result<Self, InvalidRequest> {
        if text.trim().is_empty() {
            return Err(InvalidRequest::Empty);
        }
        fits("document", quote(text).len(), MAX_BLOCK_BYTES)?;
        let source = format!(r#""type":"text","media_type":"text/plain","data":{}"#, quote(text));
        Ok(Self::media("document", &source, title))
    }

    /// Makes a block of a prompt that was accepted earlier.
    pub(crate) fn recorded(block: Block) -> Self {
        Self(block)
    }

    /// Returns the block, as a message holds it.
    pub fn block(&self) -> &Block {
        &self.0
    }

    fn media(kind: &'static str, source: &str, title: Option<&str>) -> Self {
        let cut = |it: &str| quote(&it.chars().take(MAX_TITLE_CHARS).collect::<String>());
        let title = title.map(|it| format!(r#","title":{}"#, cut(it))).unwrap_or_default();
        let wire = format!(r#"{{"type":"{kind}","source":{{{source}}}{title}"#);
        Self(Block::media(kind, wire))
    }
}

fn in_request(media_type: &str, data: &str) -> String {
    format!(r#""type":"base64","media_type":"{media_type}","data":"{data}""#)
}

fn url_source(of: &'static str, url: &str) -> Result<String, InvalidRequest> {
    let is_plain = |it: char| it.is_ascii_graphic();
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    match rest {
        Some(rest) if !rest.is_empty() && rest.chars().all(is_plain) => {
            Ok(format!(r#""type":"url","url":{}"#, quote(url)))
        }
        _ => Err(InvalidRequest::NotUrl { of }),
    }
}

fn checked<'a>(of: &'static str, data: &'a str, max: usize) -> Result<&'a str, InvalidRequest> {
    fits(of, data.len(), max)?;
    let is_data = !data.is_empty() && STANDARD.decode(data).is_ok();
    if is_data { Ok(data) } else { Err(InvalidRequest::NotBase64 { of }) }
}

fn fits(of: &'static str, bytes: usize, max: usize) -> Result<(), InvalidRequest> {
    let max = max - AROUND;
    if bytes <= max { Ok(()) } else { Err(InvalidRequest::TooLarge { of, bytes, max }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(block: &PromptBlock) -> serde_json::Value {
        let mut wire = Vec::new();
        block.block().push_wire(&mut wire);
        // What a transcript gives back is the same block.
        let read = Block::from_wire(std::str::from_utf8(&wire).unwrap()).unwrap();
        assert_eq!(&read, block.block());
        assert_eq!((read.kind(), read.chars()), (block.block().kind(), block.block().chars()));
        serde_json::from_slice(&wire).unwrap()
    }

    // REQ: TRN-14
    #[test]
    fn blocks_are_those_of_the_messages_api() {
        use serde_json::json;
        let png = PromptBlock::image("image/png", "QUJD").unwrap();
        let source = json!({"type": "base64", "media_type": "image/png", "data": "QUJD"});
        assert_eq!(wire(&png), json!({"type": "image", "source": source}));
        let at = PromptBlock::image_at("https://a.test/x.png").unwrap();
        let source = json!({"type": "url", "url": "https://a.test/x.png"});
        assert_eq!(wire(&at), json!({"type": "image", "source": source}));
        let pdf = PromptBlock::pdf("QUJD", Some("a \"b\"")).unwrap();
        let source = json!({"type": "base64", "media_type": "application/pdf", "data": "QUJD"});
        assert_eq!(wire(&pdf), json!({"type": "document", "source": source, "title": "a \"b\""}));
        let at = PromptBlock::pdf_at("http://a.test/x.pdf", None).unwrap();
        let source = json!({"type": "url", "url": "http://a.test/x.pdf"});
        assert_eq!(wire(&at), json!({"type": "document", "source": source}));
        let text = PromptBlock::document("one\ntwo", None).unwrap();
        let source = json!({"type": "text", "media_type": "text/plain", "data": "one\ntwo"});
        assert_eq!(wire(&text), json!({"type": "document", "source": source}));
    }

    // REQ: TRN-14
    #[test]
    fn what_no_model_takes_is_refused() {
        let of = "image";
        for data in ["", "Q", "QUJD\n", "not base64"] {
            let made = PromptBlock::image("image/gif", data);
            assert_eq!(made, Err(InvalidRequest::NotBase64 { of }), "{data:?}");
        }
        for media_type in ["", "image/tiff", "IMAGE/PNG", "text/html\",\"data\":\""] {
            let unknown = InvalidRequest::UnknownImage { media_type: media_type.into() };
            assert_eq!(PromptBlock::image(media_type, "QUJD"), Err(unknown));
        }
        for url in ["", "file:///etc/passwd", "https://", "https://a test", "a.png"] {
            assert_eq!(PromptBlock::image_at(url), Err(InvalidRequest::NotUrl { of }), "{url:?}");
        }
        let large = "QUJD".repeat(MAX_IMAGE_BYTES / 4);
        let made = PromptBlock::image("image/jpeg", &large);
        assert!(matches!(made, Err(InvalidRequest::TooLarge { .. })));
        assert!(PromptBlock::pdf(&large, None).is_ok());
        assert_eq!(PromptBlock::document(" ", None), Err(InvalidRequest::Empty));
    }

    // REQ: TRN-14, CTX-8
    #[test]
    fn picture_counts_by_what_it_costs_and_not_by_its_bytes() {
        let large = "QUJD".repeat(100_000);
        let image = PromptBlock::image("image/png", &large).unwrap();
        assert_eq!(image.block().tokens().0, 1600);
        let pdf = PromptBlock::pdf(&large, None).unwrap();
        assert!(pdf.block().tokens().0 < 20_000);
    }
}
