//! Standard input and output, each on a thread of its own.
//!
//! The program may stop reading for as long as it likes: lines wait in memory, and its requests are read
//! and answered all the same. There is one writer, so no line is ever torn by another.

use std::{
    io::{self, Read, Write},
    thread,
};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::fit::line_of;

/// Bytes of a line of the program at most; images and inputs of tools are in such lines.
const MAX_INPUT_LINE: usize = 64 * 1024 * 1024;

/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;

/// OutputLines of the program that wait to be looked at, at most. Its writes wait then.
pub(crate) const N_WAITING: usize = 64;

/// Something that came on standard input.
#[derive(Debug)]
pub enum Input {
    /// A line, without its end.
    Line(String),
    /// A line that is not a text or too long, in words.
    Bad(String),
}

/// Reads lines until standard input ends.
pub fn read_lines(mut source: impl Read + Send + 'static) -> mpsc::Receiver<Input> {
    let (sender, receiver) = mpsc::channel(N_WAITING);
    thread::spawn(move || {
        let (mut splitter, mut buffer) = (LineSplitter::default(), vec![0; PIECE]);
        loop {
            let inputs = match source.read(&mut buffer) {
                Ok(n_read @ 1..) => splitter.take(&buffer[..n_read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => splitter.end().into_iter().collect(),
            };
            for input in inputs {
                if sender.blocking_send(input).is_err() {
                    return;
                }
            }
            if splitter.has_ended() {
                return;
            }
        }
    });
    receiver
}

/// Makes lines of pieces. Cost: linear in their bytes.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    /// The beginning of the next line.
    line: Vec<u8>,
    /// It is too long, and the rest of it is passed over.
    is_too_long: bool,
    has_ended: bool,
}

impl LineSplitter {
    /// Takes the next bytes; the lines that end in them, without blank ones.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> Vec<Input> {
        let mut inputs = Vec::new();
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            self.append(&bytes[..=at]);
            inputs.extend(self.line());
            bytes = &bytes[at + 1..];
        }
        self.append(bytes);
        inputs
    }

    /// Ends the input; its last line, where that has no end.
    pub(crate) fn end(&mut self) -> Option<Input> {
        self.has_ended = true;
        self.line()
    }

    /// Returns whether the input has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn append(&mut self, bytes: &[u8]) {
        self.is_too_long |= MAX_INPUT_LINE < self.line.len() + bytes.len();
        match self.is_too_long {
            true => self.line = Vec::new(),
            false => self.line.extend_from_slice(bytes),
        }
    }

    fn line(&mut self) -> Option<Input> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            return Some(Input::Bad(format!("it is longer than {MAX_INPUT_LINE} bytes")));
        }
        if line.trim_ascii().is_empty() {
            return None;
        }
        let line = String::from_utf8(line).map_err(|it| it.to_string());
        Some(line.map_or_else(Input::Bad, Input::Line))
    }
}

/// Where lines are written. Clones write to the same place.
#[derive(Clone, Debug)]
pub struct Output(mpsc::UnboundedSender<Option<Value>>);

impl Output {
    /// Writes lines to this place. The receiver is answered when everything is written after [`Output::end`]
    /// or the loss of all clones, or as soon as the reader is gone.
    pub fn start(place: impl Write + Send + 'static) -> (Self, oneshot::Receiver<io::Result<()>>) {
        let (output, lines) = Self::channel();
        let (ended, end) = oneshot::channel();
        thread::spawn(move || {
            // Its end may not be waited for.
            let _gone = ended.send(write_all(place, lines.0));
        });
        (output, end)
    }

    /// Returns an output whose lines are taken elsewhere.
    pub(crate) fn channel() -> (Self, OutputLines) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), OutputLines(receiver))
    }

    /// Writes a line, after all that were handed over before it. Without a reader a line is dropped.
    pub fn write(&self, line: Value) {
        let _unread = self.0.send(Some(line));
    }

    /// Ends the output: nothing is written any more, by no clone, but what was handed over before.
    pub fn end(&self) {
        let _unread = self.0.send(None);
    }
}

/// The lines of an output, in order.
#[derive(Debug)]
pub(crate) struct OutputLines(mpsc::UnboundedReceiver<Option<Value>>);

impl OutputLines {
    /// Receives the next lines, at most as many; none after the last. It can be dropped and called again.
    pub(crate) async fn receive(&mut self, max: usize) -> Vec<Value> {
        let mut lines = Vec::new();
        self.0.recv_many(&mut lines, max).await;
        if let Some(end) = lines.iter().position(Option::is_none) {
            lines.truncate(end);
            self.0.close();
            // What was handed over after the end is dropped.
            while self.0.try_recv().is_ok() {}
        }
        lines.into_iter().flatten().collect()
    }
}

/// Returns lines as they are written. They are made on the blocking pool, as one of them may be long.
pub(crate) async fn encoded(lines: Vec<Value>) -> Vec<u8> {
    let encode = || {
        lines.into_iter().fold(Vec::new(), |mut bytes, line| {
            bytes.extend_from_slice(line_of(line).as_bytes());
            bytes.push(b'\n');
            bytes
        })
    };
    // Only a runtime that ends does not run it.
    tokio::task::spawn_blocking(encode).await.unwrap_or_default()
}

fn write_all(
    mut place: impl Write,
    mut lines: mpsc::UnboundedReceiver<Option<Value>>,
) -> io::Result<()> {
    while let Some(Some(line)) = lines.blocking_recv() {
        let mut line = line_of(line);
        line.push('\n');
        place.write_all(line.as_bytes())?;
        place.flush()?;
    }
    Ok(())
}

/// Reads the output for tests: what was written, as values.
#[cfg(test)]
pub(crate) fn written(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes.split(|it| *it == b'\n').filter(|it| !it.is_empty());
    lines.map(|it| serde_json::from_slice(it).unwrap()).collect()
}

/// A place in memory that several threads write to.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedBytes(pub(crate) std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

#[cfg(test)]
impl Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // REQ: SUR-3
    #[tokio::test]
    async fn lines_are_read_whole_whatever_their_ends_and_a_bad_one_loses_no_other() {
        let mut text = b"a\r\n\n  \n".to_vec();
        text.extend_from_slice(b"\xff\n");
        text.extend_from_slice("x".repeat(3_000_000).as_bytes());
        text.extend_from_slice(b"\nlast");
        let mut lines = read_lines(io::Cursor::new(text));
        let mut seen = Vec::new();
        while let Some(input) = lines.recv().await {
            seen.push(match input {
                Input::Line(line) => line.trim_end().to_owned(),
                Input::Bad(_) => "bad".into(),
            });
        }
        assert_eq!(
            (&*seen[0], &*seen[1], seen[2].len(), &*seen[3]),
            ("a", "bad", 3_000_000, "last")
        );
    }

    // REQ: SUR-3
    #[tokio::test]
    async fn end_holds_for_clones_that_somebody_keeps() {
        let place = SharedBytes::default();
        let (output, end) = Output::start(place.clone());
        let kept = output.clone();
        output.write(json!({"n": 1}));
        output.end();
        kept.write(json!({"n": 2}));
        end.await.unwrap().unwrap();
        assert_eq!(written(&place.0.lock().unwrap()), [json!({"n": 1})]);
    }

    // REQ: SUR-3
    #[tokio::test]
    async fn lines_are_written_in_order_and_the_end_is_after_the_last() {
        let place = SharedBytes::default();
        let (output, end) = Output::start(place.clone());
        let other = output.clone();
        (0..100).for_each(|n| output.write(json!({"n": n})));
        other.write(json!({"text": "\u{1b}[2J\nü"}));
        drop((output, other));
        end.await.unwrap().unwrap();
        let lines = written(&place.0.lock().unwrap());
        assert_eq!((lines.len(), &lines[99]["n"]), (101, &json!(99)));
        assert_eq!(lines[100]["text"], "\u{1b}[2J\nü");
        assert!(!place.0.lock().unwrap().contains(&0x1b), "control characters are escapes");
    }
}
