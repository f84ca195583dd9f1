//! Takes the secrets out of what a session receives, writes and publishes (`ennead_runtime::redaction`).
//!
//! A session and its sub-agents have one [`Redaction`]: it knows the values that are secrets there and
//! numbers what it finds, so that a placeholder means one secret in all of them.

mod lines;
mod values;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

use ennead_runtime::{
    digest::Digest,
    redaction::{NumberSecrets, Patterns, Redactor, VaultKey, placeholder_in_json, placeholders},
    run::outcome::{RunError, RunOutcome},
    session::SessionInput,
    tool::{Access, ToolEffect, ToolSpec},
    turn::TurnInput,
};

use ennead_tools::locked::Locked as _;

pub(crate) use values::PatternsInUse;

/// Secrets that a session numbers; what it sees after them bears the kind alone.
const MAX_NUMBERED: usize = 10_000;

/// Takes secrets out of texts of one session. Clones share what they know.
#[derive(Clone, Debug)]
pub struct Redaction {
    redactor: Redactor,
    secrets: Arc<SecretNumbers>,
    /// Whether the model, too, reads placeholders.
    for_model: bool,
    /// What is written without its secrets is sealed to it.
    vault: Option<Arc<VaultKey>>,
}

impl Redaction {
    /// Makes the redaction of a session that knows these secrets.
    pub(crate) fn new(patterns: Arc<Patterns>, for_model: bool) -> Self {
        let secrets = Arc::<SecretNumbers>::default();
        let numbers: Arc<dyn NumberSecrets> = Arc::clone(&secrets) as _;
        Self { redactor: Redactor::new(patterns, numbers), secrets, for_model, vault: None }
    }

    /// Keeps what the model is shown in the vault of this key. Where it reads placeholders there is nothing to keep.
    pub(crate) fn with_vault(self, vault: Option<VaultKey>) -> Self {
        Self { vault: vault.filter(|_| !self.for_model).map(Arc::new), ..self }
    }

    /// Returns the key of the vault, if there is to be one.
    pub(crate) fn vault(&self) -> Option<VaultKey> {
        self.vault.as_deref().copied().filter(|_| cfg!(feature = "vault"))
    }

    /// Returns what a user is to know: that this program keeps no vault although settings name a key.
    pub(crate) fn notice(&self) -> Option<&'static str> {
        let is_missing = self.vault.is_some() && !cfg!(feature = "vault");
        is_missing.then_some(
            "`ennead.redact.vault` has no effect: this program was built without the feature `vault`",
        )
    }

    /// Returns the redactor of texts.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Returns whether the model, too, reads placeholders.
    pub(crate) fn is_for_model(&self) -> bool {
        self.for_model
    }

    /// Takes the secrets out of what a turn receives, unless its model is to see them.
    pub(crate) fn turn_input(&self, input: &mut TurnInput) {
        if self.for_model {
            self.redactor.turn_input(input);
        } else if let TurnInput::ModelAnswered(answered) = input
            && let Err(failure) = &mut answered.result
        {
            // Servers repeat the credentials that they were sent; those are not for the model.
            self.redactor.failure(failure);
        }
    }

    /// Redacts an input of a session. Of an earlier conversation the placeholders are remembered, so that no other
    /// secret bears their numbers.
    pub(crate) fn session_input(&self, input: &mut SessionInput) {
        if let SessionInput::Loaded(earlier) = input
            && let Ok(earlier) = &**earlier
        {
            let blocks = earlier.loaded.recorded.iter().flat_map(|it| &it.blocks);
            blocks.for_each(|it| self.secrets.remember(it.wire_open()));
        }
        if self.for_model {
            self.redactor.session_input(input);
        }
    }

    /// Takes the secrets out of the outcome of a run.
    pub(crate) fn result(&self, result: &mut Result<RunOutcome, RunError>) {
        match result {
            // Its messages were redacted when they were received.
            Ok(outcome) if self.for_model => {
                if let Some(error) = &mut outcome.error {
                    self.redactor.in_place(error);
                }
            }
            Ok(outcome) => self.redactor.run_outcome(outcome),
            Err(_) => {}
        }
    }

    /// Refuses an input with a placeholder in it for a call that would put that where the secret is.
    ///
    /// # Errors
    ///
    /// Why, in words for the model.
    pub(crate) fn check_input(&self, spec: &ToolSpec, input: &str) -> Result<(), String> {
        // What only looks finds nothing, and agents and lists of tasks take it for a word.
        let is_harmless = spec.effect == ToolEffect::ReadOnly || spec.access == Access::Free;
        match placeholder_in_json(input).filter(|_| !is_harmless) {
            None => Ok(()),
            Some(placeholder) => Err(format!(
                "The input holds {placeholder}, which is shown in the place of a secret. What is \
                 written or run is taken as it is: the placeholder would replace the secret. \
                 Nothing was done. Choose a part of the text without the secret, or have the \
                 command read it from where it is."
            )),
        }
    }
}

impl Default for Redaction {
    fn default() -> Self {
        Self::new(Arc::default(), true)
    }
}

/// The secrets that were found, by digest, and how many of each kind.
#[derive(Debug, Default)]
struct SecretNumbers(Mutex<KnownSecrets>);

#[derive(Debug, Default)]
struct KnownSecrets {
    numbers: BTreeMap<Digest, u32>,
    /// The last number of each kind.
    last: BTreeMap<String, u32>,
    /// Digests of texts that were written without their secrets, and those of what was written.
    renamed: BTreeMap<String, String>,
}

impl SecretNumbers {
    fn lock(&self) -> MutexGuard<'_, KnownSecrets> {
        // Whole values are put in, so a panic elsewhere spoils nothing.
        self.0.locked()
    }

    /// Leaves the numbers alone that a text has placeholders with.
    fn remember(&self, text: &str) {
        for (_, placeholder) in placeholders(text) {
            let number = placeholder.number.unwrap_or(0);
            let mut known = self.lock();
            let last = known.last.entry(placeholder.kind.to_owned()).or_default();
            *last = number.max(*last);
        }
    }
}

impl NumberSecrets for SecretNumbers {
    fn number(&self, kind: &'static str, secret: &[u8]) -> Option<u32> {
        let digest = Digest::of(&[kind.as_bytes(), b"\0", secret].concat());
        let mut known = self.lock();
        if let Some(number) = known.numbers.get(&digest) {
            return Some(*number);
        }
        if MAX_NUMBERED <= known.numbers.len() {
            return None;
        }
        let last = known.last.entry(kind.to_owned()).or_default();
        *last = last.saturating_add(1);
        let number = *last;
        known.numbers.insert(digest, number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";

    #[test]
    fn secrets_are_numbered_in_order_and_after_those_of_an_earlier_process() {
        let redaction = Redaction::default();
        redaction.secrets.remember("a [secret:github-token:4] b [secret:jwt:1]");
        let other = TOKEN.replace("abc", "xyz");
        let text = redaction.redactor().text(&format!("{TOKEN} {other} {TOKEN}")).into_owned();
        let [one, two] = [5, 6].map(|it| format!("[secret:github-token:{it}]"));
        assert_eq!(text, format!("{one} {two} {one}"));
    }

    #[test]
    fn secrets_without_number_are_taken_out_all_the_same() {
        let redaction = Redaction::default();
        for n in 0..MAX_NUMBERED {
            assert!(redaction.secrets.number("jwt", &n.to_le_bytes()).is_some());
        }
        assert_eq!(redaction.redactor().text(TOKEN), "[secret:github-token]");
        assert_eq!(redaction.secrets.number("jwt", &1_usize.to_le_bytes()), Some(2));
    }
}
