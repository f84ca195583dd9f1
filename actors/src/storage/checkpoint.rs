//! Where a transcript ended when it was closed in order, so that the next writer reads only what
//! came after, and the one that checks the transcript sees whether its end is still there. Never
//! needed: a missing, old or damaged one is made anew from the transcript. Written only when
//! everything that it speaks of is on disk.

use std::{
    io,
    path::Path,
    sync::{Arc, Mutex},
};

use ennead_runtime::{
    digest::Digest,
    ids::EntryId,
    transcript::seal::{Head, OpenLines},
};

use crate::{
    ports::transcript_store::{StoreError, TranscriptStore},
    storage::frame::FrameKind,
};

const KIND: FrameKind = FrameKind { kind: 1, version: 1 };
/// Bytes that decoding may allocate; a checkpoint takes about a hundred.
const LIMIT: usize = 64 * 1024;

/// Where a transcript ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    /// Bytes of the transcript that the checkpoint covers.
    pub offset: u64,
    /// The end of the chain.
    pub head: Head,
    /// The newest conversation line.
    pub last: Option<EntryId>,
    /// Lines that no hash covers yet. A checkpoint that is left behind has none.
    pub open: Option<Arc<OpenLines>>,
}

#[derive(bincode::Encode, bincode::Decode)]
struct Wire {
    offset: u64,
    seq: u64,
    hash: [u8; 16],
    last: Option<String>,
}

/// How far everything is acknowledged. Outlives a crash of the writer; what lies after it may
/// come a second time.
pub(crate) type Acknowledged = Arc<Mutex<Option<Checkpoint>>>;

/// Encodes the frame; `None` if it cannot be encoded or lines have no hash yet.
pub(crate) fn encode(checkpoint: &Checkpoint) -> Option<Vec<u8>> {
    if checkpoint.open.is_some() {
        return None;
    }
    let wire = Wire {
        offset: checkpoint.offset,
        seq: checkpoint.head.seq,
        hash: checkpoint.head.hash.0,
        last: checkpoint.last.as_ref().map(|id| id.as_str().to_owned()),
    };
    KIND.encode(wire)
}

/// Decodes the checkpoint; `None` unless the frame is whole and of this version.
pub(crate) fn decode(frame: &[u8]) -> Option<Checkpoint> {
    let wire: Wire = KIND.decode::<_, LIMIT>(frame)?;
    Some(Checkpoint {
        offset: wire.offset,
        head: Head { seq: wire.seq, hash: Digest(wire.hash) },
        last: wire.last.map(EntryId::from),
        open: None,
    })
}

/// Reads the checkpoint of this name, if there is a usable one.
pub(crate) fn read(store: &dyn TranscriptStore, name: &Path) -> Option<Checkpoint> {
    decode(&store.read(name).ok()?)
}

/// Writes a checkpoint in place of an older one, whole or not at all.
///
/// # Errors
///
/// Those of the store; the older one is then still there.
pub(crate) fn write(
    store: &dyn TranscriptStore,
    name: &Path,
    checkpoint: &Checkpoint,
) -> Result<(), StoreError> {
    let frame = encode(checkpoint).ok_or_else(|| io::Error::other("cannot be encoded"))?;
    store.write(name, &frame)
}

#[cfg(test)]
mod tests {
    use ennead_runtime::transcript::seal::SealLink;

    use super::*;

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            offset: 7,
            head: Head { seq: 3, hash: Digest::of(b"x") },
            last: Some("u1".into()),
            open: None,
        }
    }

    // REQ: SES-5
    #[test]
    fn frame_reads_back() {
        let frame = encode(&checkpoint()).unwrap();
        assert_eq!(decode(&frame), Some(checkpoint()));
    }

    // REQ: SES-5
    #[test]
    fn end_without_a_hash_is_none() {
        let open =
            OpenLines { bytes: b"{}\n".to_vec(), link: SealLink::to_hash(Digest::default()) };
        assert_eq!(encode(&Checkpoint { open: Some(Arc::new(open)), ..checkpoint() }), None);
    }

    // REQ: SES-5
    #[test]
    fn no_damaged_frame_is_taken() {
        let frame = encode(&checkpoint()).unwrap();
        for at in 0..frame.len() {
            let mut bad = frame.clone();
            bad[at] ^= 1;
            assert_eq!(decode(&bad), None, "byte {at}");
            assert_eq!(decode(&frame[..at]), None, "cut at {at}");
        }
        let longer = [&frame[..], b"x"].concat();
        assert_eq!(decode(&longer), None);
    }

    // REQ: SES-5
    #[test]
    fn length_from_a_hostile_payload_is_not_allocated() {
        // An `Option` that is there, holding a string of 2^40 bytes.
        let mut payload = vec![0; 32];
        payload.push(1);
        payload.extend_from_slice(&(1_u64 << 40).to_le_bytes());
        let mut frame = b"ennd\x01\x01\x01".to_vec();
        frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        frame.extend_from_slice(&Digest::of(&payload).0);
        frame.extend_from_slice(&payload);
        assert_eq!(decode(&frame), None);
    }
}
