//! Reads just enough of a command to know what its exit code means and what it showed.
//!
//! Decides nothing about permission; the gate has a parser for that. Whatever is not plain here is
//! taken as unknown, and then no exception is made for it.

/// One command of a list or pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Simple {
    /// Its words, without quotes.
    pub(super) words: Vec<String>,
    /// Nothing is expanded, redirected or grouped in it.
    pub(super) plain: bool,
}

/// Splits a command at `;`, `&`, `|`, line ends outside quotes. `None` if a quote stays open.
pub(super) fn split(command: &str) -> Option<Vec<Simple>> {
    let mut all = Vec::new();
    let mut current = Simple { plain: true, ..Simple::default() };
    let mut word: Option<String> = None;
    let mut chars = command.trim().chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        other => word.push(other),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => word.push(chars.next()?),
                        other => {
                            current.plain &= !matches!(other, '$' | '`');
                            word.push(other);
                        }
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            ';' | '&' | '|' | '\n' => {
                current.words.extend(word.take());
                all.push(std::mem::replace(
                    &mut current,
                    Simple { plain: true, ..Simple::default() },
                ));
            }
            c if c.is_whitespace() => current.words.extend(word.take()),
            c => {
                let special = "$`<>(){}*?[]~!#";
                // `[` alone is a command.
                current.plain &= !special.contains(c);
                word.get_or_insert_default().push(c);
            }
        }
    }
    current.words.extend(word);
    all.push(current);
    // Whatever ended with `&` runs in the background: then the last one is empty and unknown.
    Some(all)
}

/// Whether exit code 1 of this command is an answer and not a failure.
pub(super) fn one_is_valid(command: &str) -> bool {
    let Some(all) = split(command) else { return false };
    let Some(last) = all.last() else { return false };
    let mut words = last.words.iter().skip_while(|word| is_assignment(word)).map(String::as_str);
    let Some(program) = words.next() else { return false };
    let program = program.rsplit('/').next().unwrap_or(program);
    match program {
        "grep" | "rg" | "egrep" | "fgrep" | "find" | "diff" | "test" | "[" => true,
        "git" => matches!(words.next(), Some("diff" | "grep")),
        _ => false,
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_command_says_what_exit_code_one_means() {
        let cases = [
            ("grep nope f", true),
            ("/usr/bin/grep -r 'a b' .", true),
            ("cat f | grep nope", true),
            ("cd sub && LC_ALL=C rg x", true),
            ("[ -f x ]", true),
            ("git diff --exit-code", true),
            ("git status", false),
            ("pgrep nope", false),
            ("grep a f; false", false),
            ("echo 'grep'", false),
            ("echo \"; grep\"", false),
            ("grep 'open", false),
            ("", false),
        ];
        for (command, valid) in cases {
            assert_eq!(one_is_valid(command), valid, "{command}");
        }
    }

    #[test]
    fn only_plain_commands_are_plain() {
        for (command, plain) in
            [("cat 'a b'", true), ("cat $f", false), ("cat < f", false), ("cat *.rs", false)]
        {
            assert_eq!(split(command).unwrap()[0].plain, plain, "{command}");
        }
        assert_eq!(split("cat 'a b' c\\ d").unwrap()[0].words, ["cat", "a b", "c d"]);
    }
}
