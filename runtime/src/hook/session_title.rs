//! What a hook has the session be known by.

/// The first revision of the rules in which hooks say what a session is known by.
pub(crate) const HOOKS_NAME_SESSIONS: u32 = 25;

/// Characters of a title at most.
const MAX_TITLE: usize = 200;

/// Returns a title as one line of bounded length; `None` if nothing is left of it.
pub(super) fn session_title(text: &str) -> Option<String> {
    let mut title = String::new();
    let mut n_chars = 0;
    let is_gap = |it: char| it.is_whitespace() || it.is_control();
    for word in text.split(is_gap).filter(|it| !it.is_empty()) {
        if n_chars != 0 {
            title.push(' ');
            n_chars += 1;
        }
        let left = MAX_TITLE.saturating_sub(n_chars);
        title.extend(word.chars().take(left));
        n_chars += word.chars().take(left).count();
        if MAX_TITLE <= n_chars {
            break;
        }
    }
    title.truncate(title.trim_end().len());
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    // REQ: HKS-4
    #[test]
    fn title_is_one_line_of_at_most_two_hundred_characters() {
        let long = "\u{e9}".repeat(MAX_TITLE);
        let words = "ab ".repeat(MAX_TITLE);
        for (text, title) in [
            ("Plan", Some("Plan")),
            (" the\r\n plan\u{2028}of\u{1b}[2J\ttoday ", Some("the plan of [2J today")),
            ("", None),
            (" \n\u{0}", None),
            (&long, Some(&*long)),
            (&format!("{long}x y"), Some(&*long)),
            (&words, Some(words[..MAX_TITLE].trim_end())),
        ] {
            assert_eq!(session_title(text).as_deref(), title, "{text:?}");
        }
    }
}
