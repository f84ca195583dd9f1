//! A test that waits for what may never come ends with what it waited for, however it is run.

use super::{files_below, read};

/// Waits without a limit of their own. `within` of `tests/support/until.rs` gives them one.
const WAITS: [&str; 4] = ["recv", "acquire", "changed", "notified"];

/// Waits of actors and models that a test drives. The test itself waits for what they do.
const EXCEPTIONS: [&str; 1] = ["tests/groundwork/bounded_mailbox.rs: acquire().await?.forget()"];

/// The waits of a text that nothing limits, each to the end of its line.
fn bare_waits(text: &str) -> Vec<String> {
    // A call and the await after it may be on two lines.
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let text = lines.join("\n").replace("\n.await", ".await");
    let waits = WAITS.map(|it| format!(".{it}().await"));
    let bare = |line: &str| {
        let at = waits.iter().filter_map(|it| line.find(it)).min()?;
        Some(line[at + 1..].trim_end_matches(';').to_owned())
    };
    text.lines().filter(|it| !it.starts_with("//")).filter_map(bare).collect()
}

#[test]
fn tests_wait_within_a_limit() {
    let mut wrong = Vec::new();
    for file in
        files_below("tests").into_iter().filter(|it| it.extension().is_some_and(|it| it == "rs"))
    {
        if file.ends_with("tidy/waits.rs") {
            continue;
        }
        let found = bare_waits(&read(&file));
        wrong.extend(found.into_iter().map(|it| format!("{}: {it}", file.display())));
    }
    assert_eq!(wrong, EXCEPTIONS, "wrap these in `within`");
}

#[test]
fn wait_is_found_unless_something_is_around_it() {
    let text = "let a = rx.recv().await;\nlet b = rx\n    .recv()\n    .await?;\n// c.recv().await\n\
                let d = within(\"d\", rx.recv()).await;\nit.notified().await;\n";
    assert_eq!(bare_waits(text), ["recv().await", "recv().await?", "notified().await"]);
}
