//! Lines of a file, and whether a line that a turn makes is the same.

use serde::Deserialize;

use crate::{
    run::facts::SessionFacts,
    time::Timestamp,
    transcript::{
        codec::encode,
        entry::{Line, LineFrame},
        read::{body_of, read_line},
    },
};

/// Bytes that a difference shows.
const SHOWN: usize = 200;

/// A sealed line of ours.
pub(super) struct FileLine<'a> {
    /// Number of the line, counted from 1.
    pub(super) number: u64,
    /// Where it begins in the file.
    pub(super) offset: usize,
    pub(super) line: Line,
    body: &'a [u8],
}

/// All sealed lines, in order.
pub(super) fn read(bytes: &[u8]) -> Vec<FileLine<'_>> {
    let mut offset = 0;
    let mut lines = Vec::new();
    for (number, piece) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
        let raw = piece.strip_suffix(b"\n").unwrap_or(piece);
        let line = std::str::from_utf8(raw).ok().and_then(|it| read_line(it).ok());
        if let (Some(line), Some(body)) = (line.and_then(|it| it.entry.into_line()), body_of(raw)) {
            lines.push(FileLine { number, offset, line, body });
        }
        offset += piece.len();
    }
    lines
}

/// What the writer knew and a turn does not.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    version: Option<String>,
    git_branch: Option<String>,
}

impl FileLine<'_> {
    /// The clock reading of the input that caused it.
    pub(super) fn at(&self) -> Timestamp {
        match &self.line {
            Line::Conversation(line) => line.at,
            Line::Harness(record) => record.at,
        }
    }

    /// Compares with a line that a turn makes: nothing when they are the same, else both around
    /// the first difference, the made one first.
    pub(super) fn difference(&self, made: &Line, facts: &SessionFacts) -> Option<(String, String)> {
        let made = self.encode(made, facts);
        if made == self.body {
            return None;
        }
        let same = made.iter().zip(self.body).take_while(|(left, right)| left == right).count();
        let around = |bytes: &[u8]| {
            let from = same.saturating_sub(SHOWN / 4);
            let until = bytes.len().min(same + SHOWN);
            String::from_utf8_lossy(bytes.get(from..until).unwrap_or_default()).into_owned()
        };
        Some((around(&made), around(self.body)))
    }

    /// As the writer of this line would have written another one.
    fn encode(&self, made: &Line, facts: &SessionFacts) -> Vec<u8> {
        let text = format!("{}}}", String::from_utf8_lossy(self.body));
        let written: Option<Frame> = match made {
            Line::Conversation(_) => serde_json::from_str(&text).ok(),
            Line::Harness(_) => None,
        };
        let (version, branch) = written.map_or((None, None), |it| (it.version, it.git_branch));
        let frame = LineFrame {
            session: facts.session.clone(),
            agent: facts.agent.clone(),
            cwd: facts.workspace.clone(),
            git_branch: branch.map(Into::into),
            version: env!("CARGO_PKG_VERSION"),
        };
        let mut encoded = Vec::new();
        encode(made, &frame, &mut encoded);
        match version.filter(|it| it != frame.version) {
            // Other versions may have written the file; inside of texts quotes are escaped.
            Some(version) => {
                let ours = format!(r#","version":"{}""#, frame.version);
                let theirs = format!(r#","version":{}"#, crate::block::quote(&version));
                let text = String::from_utf8(encoded).unwrap_or_default();
                text.replacen(&ours, &theirs, 1).into_bytes()
            }
            None => encoded,
        }
    }
}

/// A made line that nothing represents, shortened.
pub(super) fn shown(made: &Line) -> String {
    let text = format!("{made:?}");
    text.chars().take(SHOWN).collect()
}
