//! `vault`: its keys, and where `verify` reads them from.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use ennead::internal::{new_vault_key, public_vault_key};
use ennead_command::exit::{Exit, Failure};

use crate::{args::VaultCommand, show};

/// Bytes of a file with a key at most, comments included.
const MAX_KEY_FILE: u64 = 4096;

pub(crate) fn vault(command: &VaultCommand) -> Result<Exit, Failure> {
    let public = match command {
        VaultCommand::Keygen { file } => keygen(file)?,
        VaultCommand::Public { file } => {
            let text = read_key(file)?;
            public_vault_key(&text).map_err(|it| failed(file, &it))?.to_string()
        }
    };
    show::result(&public)?;
    Ok(Exit::Success)
}

/// Writes a new secret key to a file that is not there yet. Returns the public one.
fn keygen(file: &Path) -> Result<String, Failure> {
    let (secret, public) = new_vault_key();
    let text = format!(
        "# The secret key of an ennead vault: who has it can read what was sealed to\n# {public}\n{secret}\n"
    );
    let options = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let mut made = options.map_err(|error| failed(file, &error))?;
    made.write_all(text.as_bytes()).and_then(|()| made.sync_all()).map_err(|error| {
        // Half a key is none.
        let _gone = fs::remove_file(file);
        failed(file, &error)
    })?;
    Ok(public)
}

/// Reads secret keys and makes sure that they are some.
pub(crate) fn read_keys(files: &[PathBuf]) -> Result<Vec<String>, Failure> {
    let key = |file: &PathBuf| {
        let text = read_key(file)?;
        public_vault_key(&text).map_err(|it| failed(file, &it))?;
        Ok(text)
    };
    files.iter().map(key).collect()
}

fn read_key(file: &Path) -> Result<String, Failure> {
    // Somebody has given the key itself: it is not to be seen in a log.
    if public_vault_key(&file.to_string_lossy()).is_ok() {
        let why = "the secret key itself is not a file: name the file that it is in, and make a new key if others could see this one";
        return Err(Failure::new(Exit::BadInput, why));
    }
    let read = || -> io::Result<String> {
        let mut text = String::new();
        File::open(file)?.take(MAX_KEY_FILE).read_to_string(&mut text)?;
        Ok(text)
    };
    read().map_err(|error| failed(file, &error))
}

fn failed(file: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::BadInput, format!("{}: {why}", file.display()))
}
