//! Loading a transcript without reading all of it.
//!
//! An index has the sums of everything up to one of the lines, and the place of the oldest line that the
//! conversation needs. What lies before that is not read again. Only a transcript with which nothing is wrong is
//! read so: each line is one of this writer, whole, unchanged and linked to the one before it. Whatever is not
//! certain is left to [`load`](super::load), which reads every line and repairs.

use std::mem;

use super::{LoadAs, Loaded, Loader, TranscriptSums, finished, tail};
use crate::{
    digest::Digest,
    transcript::{
        read::read_line,
        seal::{Head, Seal},
    },
};

/// What a transcript says up to the end of one of its lines, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptIndex {
    /// Which lines are the conversation.
    pub load_as: LoadAs,
    /// Offset of the oldest line that the conversation needs.
    pub from: u64,
    /// Offset of the end of the last line that the sums have.
    pub end: u64,
    /// The end of the chain at that line, which holds a hash.
    pub head: Head,
    /// The sums, as JSON.
    pub sums: Vec<u8>,
}

/// A transcript of which some was read.
#[expect(missing_debug_implementations, reason = "holds the lines of a conversation")]
pub struct IndexedLoad {
    load_as: LoadAs,
    loader: Loader,
    from: u64,
    end: u64,
    /// Of the last line.
    last: Option<Seal>,
    /// The last line that holds a hash, and those after it.
    open: Vec<u8>,
}

/// Whether the sums have a line already.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tallied {
    Yes,
    No,
}

impl IndexedLoad {
    /// Begins with the first line of a transcript.
    pub fn new(load_as: LoadAs) -> Self {
        Self::beginning(load_as, 0, Loader::new(load_as))
    }

    /// Goes on from an index; `kept` are the bytes from [`TranscriptIndex::from`] to [`TranscriptIndex::end`].
    /// `None` where the index is not of this transcript.
    pub fn going_on(index: &TranscriptIndex, kept: &[u8]) -> Option<Self> {
        let TranscriptIndex { load_as, from, end, head, sums } = index;
        let sums: TranscriptSums = serde_json::from_slice(sums).ok()?;
        let mut load = Self::beginning(*load_as, *from, Loader::going_on(*load_as, sums));
        load.read(kept, Tallied::Yes)?;
        let last = load.last?;
        let fits = load.end == *end && (last.seq, last.hash()) == (head.seq, Some(head.hash));
        fits.then_some(load)
    }

    fn beginning(load_as: LoadAs, from: u64, loader: Loader) -> Self {
        Self { load_as, loader, from, end: from, last: None, open: Vec::new() }
    }

    /// Takes the lines that follow. `None` where something is wrong with one of them, or the last is not whole.
    pub fn take(&mut self, lines: &[u8]) -> Option<()> {
        self.read(lines, Tallied::No)?;
        if let Some(number) = self.loader.forget_unused() {
            self.from = number - 1;
        }
        Some(())
    }

    fn read(&mut self, lines: &[u8], counted: Tallied) -> Option<()> {
        let mut report = Vec::new();
        let (mut start, mut hashed) = (0, None);
        for end in memchr::memchr_iter(b'\n', lines) {
            let line = std::str::from_utf8(&lines[start..end]).ok()?;
            let read = read_line(line).ok()?;
            let seal = read.seal.filter(|it| it.intact && self.is_next(it))?;
            // Of the line, from 1: 0 has none of this writer.
            let number = self.end + 1;
            match counted {
                Tallied::Yes => self.loader.link(number, &read, &mut report),
                Tallied::No => self.loader.take(number, &read, &mut report),
            }
            if !report.is_empty() {
                return None;
            }
            if seal.hash().is_some() {
                hashed = Some(start);
            }
            self.last = Some(seal);
            self.end += (end + 1 - start) as u64;
            start = end + 1;
        }
        if let Some(hashed) = hashed {
            self.open.clear();
            self.open.extend_from_slice(&lines[hashed..start]);
        } else {
            self.open.extend_from_slice(&lines[..start]);
        }
        (start == lines.len()).then_some(())
    }

    /// Whether a line follows the one before it: by its number and by what it says of that.
    fn is_next(&self, seal: &Seal) -> bool {
        match &self.last {
            Some(last) => seal.seq == last.seq + 1 && seal.prev == last.link,
            // Of a part, any number may be the first.
            None => seal.seq == 1 || 0 < self.from,
        }
    }

    /// Returns how many bytes of the transcript were taken.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the index of what was taken; `None` where nothing was, where the last line holds no hash, or where
    /// the conversation does not follow from the lines without a doubt.
    pub fn index(&self) -> Option<TranscriptIndex> {
        let last = self.last?;
        let hash: Digest = last.hash()?;
        let mut report = Vec::new();
        drop(self.loader.nodes.conversation(&mut report));
        report.is_empty().then_some(())?;
        Some(TranscriptIndex {
            load_as: self.load_as,
            from: self.from,
            end: self.end,
            head: Head { seq: last.seq, hash },
            sums: serde_json::to_vec(&self.loader.sums).ok()?,
        })
    }

    /// Returns what [`load`](super::load) returns for the whole transcript; `None` where that would report a damage
    /// of its lines.
    pub fn loaded(mut self) -> Option<Loaded> {
        self.last?;
        let open = mem::take(&mut self.open);
        let end = tail(&open, self.end - open.len() as u64);
        let mut report = Vec::new();
        drop(self.loader.nodes.conversation(&mut report));
        report.is_empty().then(|| finished(self.loader, report, end))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{transcript::load::load, turn::tests::random::random};

    const SESSION: LoadAs = LoadAs::Session;

    /// The ends of all lines, and the beginning of the first.
    fn ends(bytes: &[u8]) -> Vec<usize> {
        [0].into_iter().chain(memchr::memchr_iter(b'\n', bytes).map(|it| it + 1)).collect()
    }

    /// Takes a transcript in as many pieces as there are cuts, and goes on from an index at each where there is one.
    /// Returns how many there were, and how many of them let lines be left out.
    fn check(bytes: &[u8], cuts: &[usize]) -> (usize, usize) {
        let (mut n_indexes, mut n_shorter) = (0, 0);
        let mut load = IndexedLoad::new(SESSION);
        let mut from = 0;
        for cut in cuts.iter().copied().chain([bytes.len()]) {
            load.take(&bytes[from..cut]).unwrap();
            from = cut;
            if let Some(index) = load.index() {
                n_indexes += 1;
                n_shorter += usize::from(0 < index.from);
                let kept = &bytes[index.from as usize..index.end as usize];
                load = IndexedLoad::going_on(&index, kept).unwrap();
                assert_eq!(load.index().as_ref(), Some(&index));
            }
        }
        assert_eq!(load.loaded(), Some(super::super::load(bytes, SESSION)));
        (n_indexes, n_shorter)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10))]

        // REQ: SES-4, SES-5
        #[test]
        fn load_by_indexes_is_the_load_of_all_lines(seed in any::<u64>(), step in 3..120_usize) {
            let bytes = random(seed).bytes();
            let whole = load(&bytes, SESSION);
            prop_assume!(whole.report.is_empty());
            let ends = ends(&bytes);
            let cuts: Vec<usize> = ends.iter().copied().step_by(step).collect();
            // With few cuts none may fall after a line that holds a hash; then there is no index.
            check(&bytes, &cuts);
        }
    }

    // REQ: SES-5
    #[test]
    fn lines_before_a_compaction_are_not_read_again() {
        let (mut n_indexes, mut n_shorter) = (0, 0);
        for bytes in (0..12).map(|seed| random(seed).bytes()) {
            let cuts: Vec<usize> = ends(&bytes).into_iter().step_by(5).collect();
            if load(&bytes, SESSION).report.is_empty() {
                let (indexes, shorter) = check(&bytes, &cuts);
                n_indexes += indexes;
                n_shorter += shorter;
            }
        }
        assert!(4 < n_shorter && n_shorter < n_indexes, "{n_shorter} of {n_indexes}");
    }

    // REQ: SES-5
    #[test]
    fn whatever_is_wrong_with_a_line_is_left_to_the_load_that_repairs() {
        let bytes = random(3).bytes();
        assert_eq!(load(&bytes, SESSION).report, []);
        let ends = ends(&bytes);
        let at = ends[ends.len() / 2];
        let taken = |bytes: &[u8]| {
            let mut load = IndexedLoad::new(SESSION);
            load.take(bytes).and_then(|()| load.loaded()).is_some()
        };
        assert!(taken(&bytes));
        let line = at..ends[ends.len() / 2 + 1];
        let with = |piece: &[u8]| [&bytes[..at], piece, &bytes[at..]].concat();
        let damaged = [
            ("a line is gone", [&bytes[..line.start], &bytes[line.end..]].concat()),
            ("one comes twice", with(&bytes[line.clone()])),
            ("one of another program", with(b"{\"type\":\"user\",\"uuid\":\"x\"}\n")),
            ("no JSON", with(b"\x00\n")),
            ("blank", with(b"\n")),
            ("a carriage return", with(b"\r\n")),
            ("torn", bytes[..bytes.len() - 2].to_vec()),
            ("without its newline", bytes[..bytes.len() - 1].to_vec()),
            ("the first is gone", bytes[ends[1]..].to_vec()),
        ];
        for (what, bytes) in damaged {
            assert!(!taken(&bytes), "{what}");
        }
        let step = line.len() / 12;
        for at in line.step_by(step.max(1)) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            assert!(!taken(&bytes), "byte {at}");
        }
    }

    // REQ: SES-5
    #[test]
    fn index_of_another_transcript_is_not_gone_on_from() {
        let (bytes, others) = (random(3).bytes(), random(4).bytes());
        let index = |bytes: &[u8]| {
            let mut load = IndexedLoad::new(SESSION);
            load.take(bytes).unwrap();
            load.index().unwrap()
        };
        let index = index(&bytes);
        let kept = &bytes[index.from as usize..index.end as usize];
        let goes =
            |index: &TranscriptIndex, kept: &[u8]| IndexedLoad::going_on(index, kept).is_some();
        assert!(goes(&index, kept));
        let n = kept.len();
        assert!(!goes(&index, &others[others.len().saturating_sub(n)..]));
        assert!(!goes(&index, &kept[..n - 1]) && !goes(&index, b""));
        let other_end = TranscriptIndex { head: Head::default(), ..index.clone() };
        assert!(!goes(&other_end, kept));
        let other_sums = TranscriptIndex { sums: b"{}".to_vec(), ..index.clone() };
        assert!(!goes(&other_sums, kept));
        for at in (0..n).step_by(n / 12) {
            let mut kept = kept.to_vec();
            kept[at] ^= 1;
            assert!(!goes(&index, &kept), "byte {at}");
        }
    }
}
