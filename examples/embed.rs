//! An agent in ten lines, on the simulated model: no network, no key.
//!
//! With a key the model is real: `Ennead::start(Options::default())`, and as endpoint
//! `Endpoint::messages("https://api.anthropic.com", Some(key))`. The rest stays as it is. A run that
//! failed, for a wrong key or an overloaded server, is an error: the program says why and ends with 1.

#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use ennead::{Endpoint, Ennead, SessionOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let workspace = tempfile::tempdir()?.keep();
    let ennead = Ennead::simulated().await?;
    let session = ennead.open(SessionOptions::new(workspace, Endpoint::simulated())).await?;

    let answer = session.prompt("Hello! Who are you?").await?.into_answer()?;
    println!("{answer}");
    println!("Its transcript is {}", session.transcript().display());

    ennead.shutdown().await;
    Ok(())
}
