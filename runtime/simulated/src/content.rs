//! The content of an answer, before any format writes it down.

/// One content block of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Block {
    Text(String),
    Thinking { text: String, signature: String },
    Tool { id: String, name: String, input: String },
}

/// The four counts of a `usage`.
#[derive(Debug)]
pub(super) struct Usage {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_creation: u64,
    pub(super) cache_read: u64,
}

impl Block {
    /// Returns the bytes of all texts of the block.
    pub(super) fn len(&self) -> usize {
        match self {
            Block::Text(text) => text.len(),
            Block::Thinking { text, signature } => text.len() + signature.len(),
            Block::Tool { name, input, .. } => name.len() + input.len(),
        }
    }
}
