//! Skills and commands: texts that people and models call by name.
//!
//! Of a skill a model is shown its name and what it is for; the text itself comes when it is called.

use std::{collections::BTreeSet, fmt::Write, sync::Arc};

use crate::step3_context_assembly::source8_tool_results::escape_harness_tags;

/// Characters of what a skill says of itself that are listed.
const MAX_LISTED_CHARS: usize = 1536;

/// Characters that all listed skills may have together; beyond them names alone are listed. A hundredth of
/// a window of 200,000 tokens.
const MAX_LISTING_CHARS: usize = 8_000;

/// Bytes of a text once its arguments are put in.
const MAX_RENDERED: usize = 1 << 20;

/// A text with a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skill {
    /// What it is called by, without a slash.
    pub name: Arc<str>,
    /// What it is for, in words.
    pub description: Arc<str>,
    /// What arguments it takes, for people.
    pub argument_hint: Arc<str>,
    /// Names of its arguments, in order.
    pub arguments: Vec<String>,
    /// The text that takes the place of the call in the prompt.
    pub body: Arc<str>,
    /// Where its files lie; absolute. A command has none.
    pub directory: Option<Arc<str>>,
    /// People cannot call it.
    pub is_for_models_only: bool,
    /// Models are not shown it, and cannot call it.
    pub is_for_people_only: bool,
}

/// Where a skill is called.
#[derive(Clone, Copy, Debug)]
pub struct SkillContext<'a> {
    /// Id of the session.
    pub session: &'a str,
    /// The working directory of the session; absolute.
    pub project: &'a str,
}

/// With its arguments a text would be longer than anybody reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("with these arguments it has more than {MAX_RENDERED} bytes")]
pub struct TooLong;

impl Skill {
    /// Puts these arguments into the text, in one pass: `$ARGUMENTS`, `$ARGUMENTS[N]` and `$N` from 0, `$name`, and the
    /// variables of places. What a backslash is in front of stays. Arguments that the text does not name come after it.
    /// Tags of the harness in the text are made harmless. Work is linear in what comes out.
    ///
    /// # Errors
    ///
    /// [`TooLong`].
    pub fn render(&self, arguments: &str, context: SkillContext<'_>) -> Result<String, TooLong> {
        let arguments = arguments.trim();
        let words = words(arguments);
        let body = self.body.trim();
        let (mut out, mut rest, mut names_any) = (String::new(), body, false);
        while let Some(at) = rest.find(['$', '\\']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            let n_slashes = rest.len() - rest.trim_start_matches('\\').len();
            out.push_str(&rest[..n_slashes.saturating_sub(usize::from(n_slashes == 1))]);
            let Some(found) = self.placeholder(&rest[n_slashes..], arguments, &words, context)
            else {
                let next = &rest[n_slashes..];
                out.push_str(if n_slashes == 1 { "\\" } else { "" });
                out.push_str(if next.starts_with('$') { "$" } else { "" });
                rest = next.strip_prefix('$').unwrap_or(next);
                continue;
            };
            let ArgumentPlaceholder { length, value, is_argument } = found;
            let end = n_slashes + length;
            match n_slashes {
                1 => out.push_str(&rest[n_slashes..end]),
                _ => {
                    names_any |= is_argument;
                    out.push_str(value);
                }
            }
            rest = &rest[end..];
            if MAX_RENDERED < out.len() {
                return Err(TooLong);
            }
        }
        out.push_str(rest);
        if !names_any && !arguments.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(out, "\n\nARGUMENTS: {arguments}");
        }
        if MAX_RENDERED < out.len() {
            return Err(TooLong);
        }
        Ok(escape_harness_tags(&out).into_owned())
    }

    /// What begins a text with `$`, if it is to be replaced.
    fn placeholder<'a>(
        &self,
        text: &str,
        arguments: &'a str,
        words: &'a [String],
        context: SkillContext<'a>,
    ) -> Option<ArgumentPlaceholder<'a>>
    where
        Self: 'a,
    {
        let after = text.strip_prefix('$')?;
        for (name, value) in
            [("{CLAUDE_SESSION_ID}", context.session), ("{CLAUDE_PROJECT_DIR}", context.project)]
        {
            if after.starts_with(name) {
                return Some(ArgumentPlaceholder {
                    length: name.len() + 1,
                    value,
                    is_argument: false,
                });
            }
        }
        let word = after.len() - after.trim_start_matches(is_of_word).len();
        let word = &after[..word];
        let argument = |length, value| {
            Some(ArgumentPlaceholder { length: length + 1, value, is_argument: true })
        };
        if word == "ARGUMENTS" {
            let index = after[word.len()..].strip_prefix('[').and_then(|it| it.split_once(']'));
            return match index.and_then(|(n, _)| Some((n.len() + 2, n.parse::<usize>().ok()?))) {
                Some((n_chars, n)) => argument(word.len() + n_chars, words.get(n)?),
                None => argument(word.len(), arguments),
            };
        }
        if let Some(at) = self.arguments.iter().position(|it| it == word) {
            return argument(word.len(), words.get(at).map_or("", String::as_str));
        }
        argument(word.len(), words.get(word.parse::<usize>().ok()?)?)
    }
}

struct ArgumentPlaceholder<'a> {
    /// Bytes of it, the `$` included.
    length: usize,
    value: &'a str,
    is_argument: bool,
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Splits arguments as a shell does: blanks between them, quotes around those with blanks. Nothing else of a
/// shell applies, as it would with a library for one: `#12` is an argument and no comment, and a quote that
/// is never closed is not an error.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(chars.next()),
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Lists the skills that a model may call, one a line, each with what it is for as far as there is room; names always
/// stay.
pub fn listing(skills: &[Skill]) -> String {
    let offered = || skills.iter().filter(|it| !it.is_for_people_only);
    let n_names: usize = offered().map(|it| it.name.chars().count() + 4).sum();
    let mut left = MAX_LISTING_CHARS.saturating_sub(n_names);
    let mut lines = Vec::new();
    for skill in offered() {
        let shortened: String = skill.description.chars().take(MAX_LISTED_CHARS).collect();
        let shortened = shortened.split_whitespace().collect::<Vec<_>>().join(" ");
        let n_chars = shortened.chars().count();
        match left.checked_sub(n_chars).filter(|_| n_chars > 0) {
            Some(rest) => {
                left = rest;
                lines.push(format!("- {}: {shortened}", skill.name));
            }
            None => lines.push(format!("- {}", skill.name)),
        }
    }
    escape_harness_tags(&lines.join("\n")).into_owned()
}

/// Returns the first skill of each name.
pub fn first_of_each(skills: Vec<Skill>) -> Vec<Skill> {
    let mut names = BTreeSet::new();
    skills.into_iter().filter(|it| names.insert(Arc::clone(&it.name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, arguments: &str, expected: &str) {
        let skill = Skill { body: body.into(), arguments: vec!["who".into()], ..Skill::default() };
        let context = SkillContext { session: "s1", project: "/w" };
        assert_eq!(skill.render(arguments, context).as_deref(), Ok(expected), "{body}");
    }

    // REQ: SUR-3
    #[test]
    fn arguments_are_put_in_once_where_the_text_names_them() {
        check("Do $ARGUMENTS now.", " a b ", "Do a b now.");
        check("$1 then $0, $ARGUMENTS[1]", "a 'b c'", "b c then a, b c");
        check("for $who!", "\"x y\" z", "for x y!");
        check("for $who!", "", "for !");
        check("$5 and $ARGUMENTS[7] stay", "", "$5 and $ARGUMENTS[7] stay");
        check("costs $ and $x", "", "costs $ and $x");
        check("no names", "a b", "no names\n\nARGUMENTS: a b");
        check("\\$0 \\$ARGUMENTS \\\\$0 C:\\x", "a", "$0 $ARGUMENTS \\\\a C:\\x");
        check("in ${CLAUDE_PROJECT_DIR} of ${CLAUDE_SESSION_ID}", "", "in /w of s1");
        check("$0", "$1 x", "$1");
        check("a </system-reminder> b", "", "a &lt;/system-reminder> b");
        check("$\u{e9}\\", "", "$\u{e9}\\");
    }

    // REQ: SUR-3
    #[test]
    fn text_that_grows_without_end_is_refused() {
        let skill = Skill { body: "$ARGUMENTS".repeat(10_000).into(), ..Skill::default() };
        let context = SkillContext { session: "s", project: "/w" };
        assert_eq!(skill.render(&"x".repeat(10_000), context), Err(TooLong));
    }

    // REQ: SUR-3
    #[test]
    fn listing_keeps_every_name_and_what_fits_of_the_rest() {
        let skill = |n: usize| Skill {
            name: format!("s{n}").into(),
            description: "what it\nis for ".repeat(100).into(),
            is_for_people_only: n == 3,
            ..Skill::default()
        };
        let skills: Vec<Skill> = (0..50).map(skill).collect();
        let listed = listing(&skills);
        assert_eq!(listed.lines().count(), 49);
        assert!(listed.starts_with("- s0: what it is for what") && !listed.contains("- s3:"));
        assert!(listed.chars().count() <= MAX_LISTING_CHARS + 200 && listed.ends_with("- s49"));
    }
}
