//! Standard input and output, each on a thread of its own.
//!
//! The program may stop reading for as long as it likes: lines wait in memory, and its requests are read
//! and answered all the same. There is one writer, so no line is ever torn by another.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    thread,
};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::fit::line_of;

/// Bytes of a line of the program at most; images and inputs of tools are in such lines.
const MAX_INPUT_LINE: u64 = 64 * 1024 * 1024;

/// Lines of the program that wait to be looked at, at most. Its writes wait then.
const N_WAITING: usize = 64;

/// Something that came on standard input.
#[derive(Debug)]
pub enum Input {
    /// A line, without its end.
    Line(String),
    /// A line that is not a text or too long, in words.
    Bad(String),
}

/// Reads lines until standard input ends.
pub fn read_lines(source: impl Read + Send + 'static) -> mpsc::Receiver<Input> {
    let (sender, receiver) = mpsc::channel(N_WAITING);
    thread::spawn(move || {
        let mut source = BufReader::new(source);
        while let Some(input) = next_line(&mut source) {
            if sender.blocking_send(input).is_err() {
                return;
            }
        }
    });
    receiver
}

fn next_line(source: &mut impl BufRead) -> Option<Input> {
    loop {
        let mut line = Vec::new();
        let read = source.by_ref().take(MAX_INPUT_LINE).read_until(b'\n', &mut line);
        match read {
            Ok(0) | Err(_) => return None,
            Ok(_) if line.last() != Some(&b'\n') && MAX_INPUT_LINE <= line.len() as u64 => {
                skip_line(source).ok()?;
                return Some(Input::Bad(format!("it is longer than {MAX_INPUT_LINE} bytes")));
            }
            Ok(_) if line.trim_ascii().is_empty() => {}
            Ok(_) => {
                let line = String::from_utf8(line).map_err(|it| it.to_string());
                return Some(line.map_or_else(Input::Bad, Input::Line));
            }
        }
    }
}

fn skip_line(source: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = source.fill_buf()?;
        let end = buffer.iter().position(|it| *it == b'\n');
        let n_used = end.map_or(buffer.len(), |it| it + 1);
        let is_over = end.is_some() || buffer.is_empty();
        source.consume(n_used);
        if is_over {
            return Ok(());
        }
    }
}

/// Where lines are written. Clones write to the same place.
#[derive(Clone, Debug)]
pub struct Output(mpsc::UnboundedSender<Option<Value>>);

impl Output {
    /// Writes lines to this place. The receiver is answered when everything is written after [`Output::end`]
    /// or the loss of all clones, or as soon as the reader is gone.
    pub fn start(place: impl Write + Send + 'static) -> (Self, oneshot::Receiver<io::Result<()>>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (ended, end) = oneshot::channel();
        thread::spawn(move || {
            // Its end may not be waited for.
            let _gone = ended.send(write_all(place, receiver));
        });
        (Self(sender), end)
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
