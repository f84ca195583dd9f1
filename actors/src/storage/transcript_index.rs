//! The index of a transcript: with it a session goes on after reading the end of a long transcript alone.
//!
//! `<session>/index`, and `agent-<id>.index` next to the transcript of a sub-agent. Never needed: one that is missing,
//! damaged, of another release or of another transcript is not used, and made anew from the transcript, which is
//! then read once, a piece at a time. Whatever is wrong with the transcript itself is left to the load that repairs.
//! Blocks.

use std::path::{Path, PathBuf};

use ennead_runtime::{
    digest::Digest,
    saturating::Saturating as _,
    transcript::{
        load::{IndexedLoad, LoadAs, Loaded, TranscriptIndex, load as load_all},
        seal::{Head, end_of_last_hash},
    },
};

use crate::{
    ports::transcript_store::{StoreError, TranscriptStore},
    storage::frame::FrameKind,
};

const KIND: FrameKind = FrameKind { kind: 2, version: 3 };

/// Bytes that decoding may allocate.
const LIMIT: usize = 64 * 1024 * 1024;

/// Bytes of a transcript that are worth an index, and bytes after its end that are worth a new one. Reading
/// them takes some milliseconds.
pub(crate) const WORTH: u64 = 256 * 1024;

/// Bytes that are read at once, unless a line is longer.
const PIECE: u64 = 2 * 1024 * 1024;

/// Which lines are read in which way may differ from release to release, and so may the sums.
const RELEASE: &str = env!("CARGO_PKG_VERSION");

#[derive(bincode::Encode, bincode::Decode)]
struct IndexWire {
    release: String,
    is_sidechain: bool,
    from: u64,
    end: u64,
    seq: u64,
    hash: [u8; 16],
    sums: Vec<u8>,
}

/// Returns the name of the index of a transcript.
pub(crate) fn name_of(transcript: &Path) -> PathBuf {
    match transcript.parent() {
        Some(parent) if parent.ends_with("subagents") => transcript.with_extension("index"),
        _ => transcript.with_extension("").join("index"),
    }
}

fn encode(index: &TranscriptIndex) -> Option<Vec<u8>> {
    KIND.encode(IndexWire {
        release: RELEASE.to_owned(),
        is_sidechain: index.load_as == LoadAs::Sidechain,
        from: index.from,
        end: index.end,
        seq: index.head.seq,
        hash: index.head.hash.0,
        sums: index.sums.clone(),
    })
}

fn decode(frame: &[u8]) -> Option<TranscriptIndex> {
    let wire: IndexWire = KIND.decode::<_, LIMIT>(frame)?;
    (wire.release == RELEASE && wire.from < wire.end).then_some(TranscriptIndex {
        load_as: if wire.is_sidechain { LoadAs::Sidechain } else { LoadAs::Session },
        from: wire.from,
        end: wire.end,
        head: Head { seq: wire.seq, hash: Digest(wire.hash) },
        sums: wire.sums,
    })
}

/// Loads a transcript, from its index on where there is one that holds. Leaves an index where a long part was read
/// without one.
///
/// # Errors
///
/// Those of the store.
pub(crate) fn load(
    store: &dyn TranscriptStore,
    file: &Path,
    load_as: LoadAs,
) -> Result<Loaded, StoreError> {
    let begun = match begin(store, file, load_as) {
        Some(begun) => begun,
        None => {
            let bytes = store.read_range(file, 0, WORTH)?;
            if u64::saturating(bytes.len()) < WORTH {
                return Ok(load_all(&bytes, load_as));
            }
            IndexedLoad::new(load_as)
        }
    };
    let by_index = read_on(store, file, begun).and_then(IndexedLoad::loaded);
    match by_index {
        Some(loaded) => Ok(loaded),
        None => Ok(load_all(&store.read(file)?, load_as)),
    }
}

/// Brings the index of a transcript up to date where it is worth it. Nothing needs to wait for that, and a transcript
/// that is appended to meanwhile is indexed up to a line of it or not at all.
#[cfg(feature = "serve")]
pub(crate) fn refresh(store: &dyn TranscriptStore, file: &Path, load_as: LoadAs) {
    let begun = begin(store, file, load_as).unwrap_or_else(|| IndexedLoad::new(load_as));
    // Whether there is that much.
    let last = store.read_range(file, begun.end() + WORTH - 1, 1);
    if last.is_ok_and(|it| it.is_empty()) {
        return;
    }
    drop(read_on(store, file, begun));
}

/// What the index holds, if there is a usable one.
fn begin(store: &dyn TranscriptStore, file: &Path, load_as: LoadAs) -> Option<IndexedLoad> {
    let index = decode(&store.read(&name_of(file)).ok()?)?;
    if index.load_as != load_as {
        return None;
    }
    let kept = store.read_range(file, index.from, index.end - index.from).ok()?;
    IndexedLoad::going_on(&index, &kept)
}

/// Reads what follows, and leaves an index if that was long.
fn read_on(store: &dyn TranscriptStore, file: &Path, mut load: IndexedLoad) -> Option<IndexedLoad> {
    let indexed = load.end();
    let (mut max, mut index) = (PIECE, None);
    loop {
        let bytes = store.read_range(file, load.end(), max).ok()?;
        let is_end = u64::saturating(bytes.len()) < max;
        let n_lines = match bytes.iter().rposition(|it| *it == b'\n') {
            // The last line may be torn.
            _ if is_end => bytes.len(),
            Some(at) => at + 1,
            None => {
                max = max.saturating_mul(2);
                continue;
            }
        };
        if is_end {
            // An index ends with a hash, and a process that was killed has left lines without one.
            let (hashed, open) = bytes.split_at(end_of_last_hash(&bytes));
            load.take(hashed)?;
            if WORTH <= load.end() - indexed {
                index = load.index();
            }
            load.take(open)?;
            break;
        }
        load.take(&bytes[..n_lines])?;
        max = PIECE;
    }
    if let Some(frame) = index.and_then(|it| encode(&it))
        && let Err(error) = store.write(&name_of(file), &frame)
    {
        tracing::warn!(error = %std::io::Error::from(error), "the index of a transcript is not kept");
    }
    Some(load)
}
