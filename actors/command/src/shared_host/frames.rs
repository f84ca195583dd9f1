//! What goes over the socket of a host: a kind, a length, and as many bytes.

use std::{collections::BTreeMap, io, path::PathBuf};

use ennead_runtime::digest::Digest;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bytes of a piece of input or output at most.
pub const PIECE: usize = 64 * 1024;

/// Pieces of input that a client may have sent and that are not taken, at most: so a signal is never behind input that
/// nobody takes.
pub const WINDOW: usize = 16;

/// Bytes of a frame at most. Arguments can hold agents and settings; a system takes a few megabytes of them.
const MAX_FRAME: usize = 16 * 1024 * 1024;

/// What a client says first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of its program.
    pub version: String,
    /// Its environment: variables with a digest of each value.
    pub environment: BTreeMap<String, Digest>,
    /// The variables by which it chooses how it is served, with their values.
    pub variables: BTreeMap<String, String>,
    /// The number of its process.
    pub pid: u32,
    /// The working directory of its process.
    pub directory: PathBuf,
    /// Its arguments, the name of the program included.
    pub arguments: Vec<String>,
}

/// What goes over the socket in one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostFrame {
    /// From the client: who it is and what it is to do.
    Hello(Hello),
    /// From the host: it serves the client.
    Welcome,
    /// From the host: it does not, and why.
    Refused(String),
    /// From the client: bytes of its standard input.
    Input(Vec<u8>),
    /// From the host: a piece of input was taken, and another one may be sent.
    Taken,
    /// From the client: its standard input has ended.
    EndOfInput,
    /// From the client: it received a signal; the exit code that goes with it.
    Signal(u8),
    /// From the client: nobody reads its standard output any more.
    NobodyReads,
    /// From the host: bytes for standard output.
    Output(Vec<u8>),
    /// From the host: bytes for standard error.
    Notes(Vec<u8>),
    /// From the host: how the client is to end. Nothing follows.
    Exit(u8),
}

/// Sends a frame in one write.
///
/// # Errors
///
/// Those of the socket.
pub async fn send(to: &mut (impl AsyncWrite + Unpin), frame: &HostFrame) -> io::Result<()> {
    let hello;
    let (kind, bytes): (u8, &[u8]) = match frame {
        HostFrame::Hello(it) => {
            hello = serde_json::to_vec(it)?;
            (b'h', &hello)
        }
        HostFrame::Welcome => (b'w', &[]),
        HostFrame::Refused(why) => (b'r', why.as_bytes()),
        HostFrame::Input(bytes) => (b'i', bytes),
        HostFrame::Taken => (b'k', &[]),
        HostFrame::EndOfInput => (b'e', &[]),
        HostFrame::Signal(code) => (b's', std::slice::from_ref(code)),
        HostFrame::NobodyReads => (b'n', &[]),
        HostFrame::Output(bytes) => (b'o', bytes),
        HostFrame::Notes(bytes) => (b't', bytes),
        HostFrame::Exit(code) => (b'x', std::slice::from_ref(code)),
    };
    let len = u32::try_from(bytes.len()).map_err(|_| bad("is too long"))?;
    let mut whole = Vec::with_capacity(5 + bytes.len());
    whole.push(kind);
    whole.extend_from_slice(&len.to_le_bytes());
    whole.extend_from_slice(bytes);
    to.write_all(&whole).await
}

/// Receives the next frame; `None` where the other end has closed. Not to be dropped before it has ended, as what was
/// read of a frame would be lost.
///
/// # Errors
///
/// Those of the socket; and [`io::ErrorKind::InvalidData`] where the bytes are not a frame.
pub async fn receive(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<HostFrame>> {
    let mut head = [0; 5];
    match from.read_exact(&mut head).await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    };
    let [kind, len @ ..] = head;
    let len = usize::try_from(u32::from_le_bytes(len)).map_err(|_| bad("is too long"))?;
    let max = if kind == b'h' { MAX_FRAME } else { PIECE };
    if max < len {
        return Err(bad("is too long"));
    }
    // Room is made as bytes come.
    let mut bytes = Vec::new();
    from.take(len as u64).read_to_end(&mut bytes).await?;
    if bytes.len() < len {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let code = |bytes: &[u8]| bytes.first().copied().ok_or_else(|| bad("has no code"));
    Ok(Some(match kind {
        b'h' => HostFrame::Hello(serde_json::from_slice(&bytes)?),
        b'w' => HostFrame::Welcome,
        b'r' => HostFrame::Refused(String::from_utf8_lossy(&bytes).into_owned()),
        b'i' => HostFrame::Input(bytes),
        b'k' => HostFrame::Taken,
        b'e' => HostFrame::EndOfInput,
        b's' => HostFrame::Signal(code(&bytes)?),
        b'n' => HostFrame::NobodyReads,
        b'o' => HostFrame::Output(bytes),
        b't' => HostFrame::Notes(bytes),
        b'x' => HostFrame::Exit(code(&bytes)?),
        _ => return Err(bad("is of an unknown kind")),
    }))
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a frame of the host's socket {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: SUR-3
    #[tokio::test]
    async fn frames_are_received_as_they_were_sent() {
        let hello = Hello {
            version: "1".into(),
            environment: BTreeMap::from([("A".into(), Digest::of(b"a"))]),
            variables: BTreeMap::from([("B".into(), "b".into())]),
            pid: 7,
            directory: "/w".into(),
            arguments: vec!["ennead".into(), "-p".into()],
        };
        let frames = [
            HostFrame::Hello(hello),
            HostFrame::Welcome,
            HostFrame::Refused("no".into()),
            HostFrame::Input(b"{}\n".to_vec()),
            HostFrame::Taken,
            HostFrame::EndOfInput,
            HostFrame::Signal(130),
            HostFrame::NobodyReads,
            HostFrame::Output(vec![b'x'; PIECE]),
            HostFrame::Notes(b"note\n".to_vec()),
            HostFrame::Exit(0),
        ];
        let mut wire = Vec::new();
        for frame in &frames {
            send(&mut wire, frame).await.unwrap();
        }
        let mut rest = &wire[..];
        for frame in frames {
            assert_eq!(receive(&mut rest).await.unwrap(), Some(frame));
        }
        assert_eq!(receive(&mut rest).await.unwrap(), None);
    }

    // REQ: SUR-3
    #[tokio::test]
    async fn what_is_no_frame_is_refused_before_room_is_made_for_it() {
        for wire in [
            &b"o\xff\xff\xff\xff"[..],
            &b"o\x01\x00\x01\x00"[..],
            b"h\x01\x00\x00\x01",
            b"?\0\0\0\0",
            b"x\0\0\0\0",
            b"h\x02\0\0\0{}",
        ] {
            let error = receive(&mut &wire[..]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        }
        let cut = receive(&mut &b"i\x05\0\0\0ab"[..]).await.unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
    }
}
