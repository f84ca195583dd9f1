//! The limit on what the model sees of one result: what is longer is put in a file and begun.
//!
//! For tools whose output is made elsewhere, by a server, an embedder or a sub-agent, and so can be
//! of any length.

use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Write},
    mem,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use ennead_runtime::{
    ids::ToolUseId,
    ports::ToolContext,
    saturating::Saturating as _,
    tool::{ToolOutcome, Truncation},
};

use crate::{blocking::stoppable, output::spill_path};

/// Characters of a text that was too long that the model is shown; fewer where the limit is lower.
const PREVIEW: usize = 2000;

/// Returns the outcome as it is, or, if its text has more than `max_chars` characters, with the
/// text in a file and its path and beginning in the place of it. Where no file can be written the
/// beginning is all that is left, and the text says so. `None` means no limit.
pub(crate) async fn capped(
    mut outcome: ToolOutcome,
    max_chars: Option<u32>,
    id: &ToolUseId,
    context: &ToolContext,
) -> ToolOutcome {
    let Some(max_chars) = max_chars.and_then(|it| usize::try_from(it).ok()) else { return outcome };
    // A text has at most as many characters as bytes.
    if outcome.text.len() <= max_chars {
        return outcome;
    }
    let (text, truncation) = (mem::take(&mut outcome.text), outcome.truncation.take());
    let path = spill_path(context, id);
    let redactor = context.redactor.clone();
    // On the thread that the call's hold waits for, as with every other file of a tool.
    (outcome.text, outcome.truncation) = match stoppable(context, move |_| {
        // Before it is cut, so that no half of a secret is left.
        let text = match redactor {
            Some(redactor) => redactor.text(&text).into_owned(),
            None => text,
        };
        cut(text, truncation, max_chars, &path)
    })
    .await
    {
        Ok(cut) => cut,
        Err(_) => ("The result is too long to show, and was lost.".into(), None),
    };
    outcome
}

fn cut(
    text: String,
    truncation: Option<Truncation>,
    max_chars: usize,
    path: &Path,
) -> (String, Option<Truncation>) {
    let n_chars = text.chars().count();
    if n_chars <= max_chars {
        return (text, truncation);
    }
    let n_shown = PREVIEW.min(max_chars);
    let head: String = text.chars().take(n_shown).collect();
    let name = path.to_string_lossy().into_owned();
    let (place, stored_at) = match keep(path, text.as_bytes()) {
        Ok(()) => (format!("All of it is in {name}."), Some(name)),
        Err(error) => (format!("It could not be kept: {error}."), None),
    };
    let text = format!(
        "The result has {n_chars} characters, too many to show. {place} It begins:\n{head}"
    );
    let count = |n: usize| u64::saturating(n);
    let (original_chars, kept_chars) = (count(n_chars), count(n_shown));
    (text, Some(Truncation::new(original_chars, kept_chars, stored_at)))
}

fn keep(path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    // For the owner alone, as all that is kept of a session.
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{World, block_on};

    #[track_caller]
    fn check(text: &str, max_chars: Option<u32>, shown: Option<&str>) -> ToolOutcome {
        let world = World::new();
        let id = "id".into();
        let outcome = block_on(capped(ToolOutcome::ok(text), max_chars, &id, &world.context));
        match shown {
            None => assert_eq!((outcome.text.as_str(), &outcome.truncation), (text, &None)),
            Some(head) => {
                let path = outcome.truncation.clone().unwrap().stored_at.unwrap();
                assert!(outcome.text.contains(&path), "{}", outcome.text);
                assert!(outcome.text.ends_with(&format!("begins:\n{head}")), "{}", outcome.text);
                assert_eq!(std::fs::read_to_string(path).unwrap(), text);
            }
        }
        outcome
    }

    // REQ: TOL-1
    #[test]
    fn limit_counts_characters_and_one_more_puts_the_whole_in_a_file() {
        check("äöü", Some(3), None);
        check("äöüß", Some(3), Some("äöü"));
        check(&"x".repeat(100_000), None, None);
        let long = "ä".repeat(30_000);
        let outcome = check(&long, Some(20_000), Some(&"ä".repeat(2000)));
        let truncation = outcome.truncation.unwrap();
        assert_eq!((truncation.original_chars, truncation.kept_chars), (30_000, 2000));
    }

    // REQ: SES-8
    #[test]
    fn secret_at_the_cut_is_neither_in_the_file_nor_in_half_before_it() {
        const TOKEN: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
        let world = World::new();
        let text = format!("{}{TOKEN}{}", "- ".repeat(990), "x".repeat(20_000));
        let text = text.replace(TOKEN, &format!("{TOKEN} "));
        let outcome =
            block_on(capped(ToolOutcome::ok(text), Some(9000), &"id".into(), &world.context));
        let path = outcome.truncation.unwrap().stored_at.unwrap();
        let kept = std::fs::read_to_string(path).unwrap();
        assert!(kept.contains("[secret:github-token:1]") && !kept.contains("ghp_"));
        assert!(!outcome.text.contains("ghp_"), "{}", outcome.text);
    }

    // REQ: TOL-1
    #[test]
    fn limit_holds_where_no_file_can_be_written() {
        let mut world = World::new();
        world.context.spill_directory = "/proc/no/such".into();
        let long = ToolOutcome::ok("x".repeat(50));
        let outcome = block_on(capped(long, Some(9), &"id".into(), &world.context));
        assert!(outcome.text.contains("could not be kept: "), "{}", outcome.text);
        assert!(outcome.text.ends_with(&format!("\n{}", "x".repeat(9))), "{}", outcome.text);
        assert_eq!(outcome.truncation.unwrap().stored_at, None);
    }
}
