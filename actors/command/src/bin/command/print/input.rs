//! What is piped into the command, to go with its prompt.

use std::{
    io::{self, IsTerminal, Read},
    time::Duration,
};

use ennead_command::{
    exit::{Exit, Failure},
    print::MAX_INPUT,
};

use crate::show;

/// How long standard input may be silent before a line says so.
const PATIENCE: Duration = Duration::from_secs(3);

/// Returns what is piped in; nothing when standard input is a terminal. A pipe that somebody holds open and
/// writes nothing into is waited for, and a line says so.
pub(super) async fn piped_in() -> Result<Vec<u8>, Failure> {
    if io::stdin().is_terminal() {
        return Ok(Vec::new());
    }
    let mut reading = tokio::task::spawn_blocking(|| {
        let mut input = Vec::new();
        io::stdin().lock().take(MAX_INPUT as u64 + 1).read_to_end(&mut input).map(|_| input)
    });
    let read = match tokio::time::timeout(PATIENCE, &mut reading).await {
        Ok(read) => read,
        Err(_) => {
            show::problem("waiting for the end of standard input; `< /dev/null` leaves it out");
            reading.await
        }
    };
    read.map_err(io::Error::other).flatten().map_err(|error| {
        Failure::new(Exit::BadInput, format!("cannot read standard input: {error}"))
    })
}
