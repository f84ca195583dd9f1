//! The program that drives a session: that of this process, or that of a client which is hosted here.

use std::collections::BTreeMap;

use ennead_command::shared_host::guest::Notes;

tokio::task_local! {
    /// The client that the current task works for.
    static CLIENT: HostedProgram;
}

/// What of its process a client has for itself.
#[derive(Debug)]
pub(crate) struct HostedProgram {
    /// Where its standard error is written.
    pub(crate) notes: Notes,
    /// The variables by which it chooses how it is served.
    pub(crate) variables: BTreeMap<String, String>,
}

/// Does work for a client, whose variables count and who reads what is noted.
pub(crate) async fn on_behalf_of<T>(client: HostedProgram, work: impl Future<Output = T>) -> T {
    CLIENT.scope(client, work).await
}

/// Returns a variable by which a program chooses how it is served, if it is set and not empty. What clients send of theirs is
/// listed in `shared_host/environment.rs`.
pub(crate) fn variable(name: &str) -> Option<String> {
    let of_client = CLIENT.try_with(|it| it.variables.get(name).cloned());
    of_client.unwrap_or_else(|_| std::env::var(name).ok()).filter(|it| !it.is_empty())
}

/// Returns whether a variable switches something on.
pub(crate) fn is_set(name: &str) -> bool {
    variable(name).is_some_and(|it| !matches!(it.trim(), "" | "0" | "false"))
}

/// Writes text to the client that the current task works for. Returns whether there is one.
pub(crate) fn is_noted(text: &str) -> bool {
    CLIENT.try_with(|it| it.notes.write(text)).is_ok()
}
