//! Files that are shown as they are: pictures and PDF files, known by their first bytes.

use std::path::Path;

use ennead_runtime::{
    picture,
    run::PromptBlock,
    tool::{ToolNote, ToolOutcome},
};
use serde_json::{Value, json};

use crate::files::Loaded;

/// Characters of base64 that a structured result carries at most, and with it the line of the result;
/// above, it is `null`. What the model is shown does not depend on it.
const MAX_BASE64: usize = 256 << 10;

/// Shows a picture or a PDF file, or returns why it is not shown; `None` for any other file.
pub(super) fn show(path: &str, loaded: &Loaded) -> Option<Result<ToolOutcome, String>> {
    let bytes = &loaded.bytes;
    if picture::is_pdf(bytes) {
        return Some(shown_pdf(path, loaded));
    }
    let found = picture::sniff(bytes)?;
    let shown = picture::picture(bytes).map(|(block, found)| {
        let file = json!({
            "base64": base64_of(&block),
            "type": found.kind.media_type(),
            "originalSize": bytes.len(),
            "dimensions": {"originalWidth": found.width, "originalHeight": found.height},
        });
        outcome(found.to_string(), "image", file, block, loaded)
    });
    Some(shown.map_err(|why| format!("The picture {found} cannot be shown: {why}.")))
}

fn shown_pdf(path: &str, loaded: &Loaded) -> Result<ToolOutcome, String> {
    let title = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    let shown = picture::pdf(&loaded.bytes, &title).map(|block| {
        let size = loaded.bytes.len();
        let file = json!({"filePath": path, "base64": base64_of(&block), "originalSize": size});
        outcome(format!("[PDF file of {size} bytes]"), "pdf", file, block, loaded)
    });
    shown.map_err(|why| format!("The PDF file cannot be shown: {why}."))
}

fn outcome(
    text: String,
    kind: &str,
    file: Value,
    block: PromptBlock,
    loaded: &Loaded,
) -> ToolOutcome {
    let mut outcome = ToolOutcome::ok(text).with_media([block]);
    outcome.structured = Some(json!({"type": kind, "file": file}).to_string());
    // The path is filled in by the caller, who knows where the file really is.
    outcome.notes.push(ToolNote::FileSeen { path: String::new(), seen: loaded.as_seen(false) });
    outcome
}

/// The data of a block, if it is not too long for a structured result.
fn base64_of(block: &PromptBlock) -> Option<Value> {
    let wire = block.block().wire_open();
    if MAX_BASE64 < wire.len() {
        return None;
    }
    let block: Value = serde_json::from_str(&format!("{wire}}}")).ok()?;
    Some(block["source"]["data"].clone())
}
