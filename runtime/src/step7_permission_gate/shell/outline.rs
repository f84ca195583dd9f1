//! The commands of a text in one row, for who does not judge it: what was last, and what was alone.

use super::{
    read,
    tree::{Command, CommandKind},
};

/// One command of a list or pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlined {
    /// Its words without quotes; none for a compound command. What the shell expands is as written.
    pub words: Vec<String>,
    /// Nothing is expanded, redirected, negated, set or grouped in it.
    pub is_plain: bool,
}

/// Returns the commands of a text in the order in which they are written, those inside others left out. `None` for a
/// text that bash would not read.
pub fn outline(text: &str) -> Option<Vec<Outlined>> {
    let script = read(text);
    if script.fault.is_some() {
        return None;
    }
    let mut found = Vec::new();
    for item in &script.list.0 {
        for pipeline in [&item.first].into_iter().chain(item.rest.iter().map(|it| &it.1)) {
            for command in &pipeline.commands {
                let mut one = outlined(command);
                one.is_plain &= !pipeline.is_negated && !item.is_background;
                found.push(one);
            }
        }
        if item.is_background {
            // How it ends is not known.
            found.push(Outlined::default());
        }
    }
    Some(found)
}

fn outlined(command: &Command) -> Outlined {
    let CommandKind::Simple(simple) = &command.kind else { return Outlined::default() };
    let is_plain = simple.assignments.is_empty()
        && simple.redirections.is_empty()
        && command.redirections.is_empty()
        && simple.words.iter().all(|it| it.is_literal() && !it.text.contains(['{', '!']));
    Outlined { words: simple.words.iter().map(|it| it.text.clone()).collect(), is_plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_commands_are_plain() {
        for (text, is_plain) in [
            ("cat 'a b'", true),
            ("cat $f", false),
            ("cat < f", false),
            ("cat *.rs", false),
            ("! cat f", false),
            ("x=1 cat f", false),
            ("cat ~/f", false),
            ("cat f &", false),
        ] {
            assert_eq!(outline(text).unwrap()[0].is_plain, is_plain, "{text}");
        }
        assert_eq!(outline("cat 'a b' c\\ d").unwrap()[0].words, ["cat", "a b", "c d"]);
        assert_eq!(outline("a | b && (c; d)").unwrap().len(), 3);
        assert_eq!(outline("a '"), None);
    }
}
