//! The flags of `ennead vault`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, clap::Args)]
pub(crate) struct VaultArgs {
    #[command(subcommand)]
    pub(crate) command: VaultCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum VaultCommand {
    /// Make a key pair: the secret key goes into a new file, the public key for `ennead.redact.vault` is printed.
    Keygen {
        /// File for the secret key, which only its owner can read. Who has it can read what vaults hold.
        file: PathBuf,
    },
    /// Print the public key that belongs to a secret key.
    Public {
        /// File of the secret key.
        file: PathBuf,
    },
}
