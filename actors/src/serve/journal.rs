//! The journal of a session's runs: a line for each run as it was accepted, began and ended; the last line of a
//! run counts. To be called where the disk may be waited for.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    path::Path,
};

use super::runs::{Run, Runs};
use crate::groundwork::files;

/// Bytes of one line of a journal at most: a prompt of a mebibyte, every byte of it escaped.
const MAX_LINE: u64 = 8 * 1024 * 1024;

/// Reads a journal; without one there were no runs. What is left over of a line that was not written to its end
/// is passed over.
///
/// # Errors
///
/// When it cannot be read, or cannot be written anew where it has to be.
pub(crate) fn load(journal: &Path) -> io::Result<Runs> {
    let (mut runs, mut n_lines, mut is_damaged) = (Runs::default(), 0, false);
    match fs::File::open(journal) {
        Ok(file) => {
            let mut file = BufReader::new(file);
            while let Some(line) = read_line(&mut file)? {
                n_lines += 1;
                match serde_json::from_slice::<Run>(&line) {
                    Ok(run) => runs.replay(run),
                    Err(_) => is_damaged = true,
                }
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let runs = runs.replayed();
    // Written anew when most of it is of no use any more; and a line that was not written to its end would take
    // the next one along.
    if is_damaged || 4 * (runs.oldest_first().count() + 16) < n_lines {
        files::write_whole(journal, &text(runs.oldest_first())?)?;
    }
    Ok(runs)
}

/// Appends these runs as they are now.
pub(crate) fn append(journal: &Path, runs: &[Run]) -> io::Result<()> {
    let text = text(runs.iter())?;
    let open = |path: &Path| files::private().append(true).create(true).open(path);
    files::in_directory(journal, open)?.write_all(&text)
}

fn text<'a>(runs: impl Iterator<Item = &'a Run>) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for run in runs {
        serde_json::to_writer(&mut text, run)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// The next line without its end; a longer one than there are is empty.
fn read_line(file: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let n = file.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
    if n == 0 {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        line.clear();
        file.skip_until(b'\n')?;
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use ennead_runtime::time::Timestamp;

    use super::*;
    use crate::serve::runs::{Delivery, RunState};

    // REQ: INP-2, RUN-9
    #[test]
    fn order_of_those_that_wait_is_the_same_after_a_restart_and_a_torn_line_costs_itself_alone() {
        let directory = tempfile::tempdir().unwrap();
        let journal = directory.path().join("s.runs.jsonl");
        let mut runs = load(&journal).unwrap();
        let run = |id: &str, delivery| Run::new(id.into(), "p".into(), delivery, Timestamp(1));
        let change = |runs: &mut Runs, changed: Vec<Run>| {
            append(&journal, &changed).unwrap();
            changed.into_iter().map(|it| runs.apply(it)).last().unwrap()
        };
        change(&mut runs, vec![run("first", Delivery::Queue)]);
        let begun = runs.begun(Timestamp(2));
        change(&mut runs, begun.into_iter().collect());
        assert_eq!(runs.running().unwrap().as_str(), "first");
        assert_eq!(change(&mut runs, vec![run("last", Delivery::Queue)]), 1);
        assert_eq!(change(&mut runs, vec![run("steers", Delivery::Steer)]), 1);
        assert_eq!(change(&mut runs, vec![run("interrupts", Delivery::Interrupt)]), 2);
        let gone_on = runs.gone_on(&"first".into(), run("goes on", Delivery::Queue));
        change(&mut runs, gone_on);
        let expected = ["goes on", "steers", "interrupts", "last"];
        let queue = |runs: &Runs| runs.open().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(queue(&runs), expected);
        let mut file = fs::OpenOptions::new().append(true).open(&journal).unwrap();
        file.write_all(b"{\"id\":\"torn").unwrap();
        let mut again = load(&journal).unwrap();
        assert_eq!(queue(&again), expected);
        let first = again.get(&"first".into()).unwrap();
        assert_eq!(first.state, RunState::Continued);
        assert!(first.ended.is_cancelled() && first.continued_by == Some("goes on".into()));
        change(&mut again, vec![run("newest", Delivery::Queue)]);
        assert_eq!(load(&journal).unwrap().n_queued(), 5);
    }
}
