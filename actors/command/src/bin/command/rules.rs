//! Permission rules as they are written on a command line.

/// Splits lists of rules at commas and blanks, but not inside parentheses.
///
/// `["Bash(git log *),Read", "Edit"]` are three rules.
pub(crate) fn split(lists: &[String]) -> Vec<String> {
    let mut rules = Vec::new();
    for list in lists {
        let mut rule = String::new();
        let mut depth = 0_u32;
        for c in list.chars() {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && (c == ',' || c.is_whitespace()) {
                rules.push(std::mem::take(&mut rule));
            } else {
                rule.push(c);
            }
        }
        rules.push(rule);
    }
    rules.retain(|it| !it.is_empty());
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lists: &[&str], expected: &[&str]) {
        let lists: Vec<String> = lists.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(split(&lists), expected);
    }

    // REQ: SUR-2
    #[test]
    fn rules_are_split_at_commas_and_blanks_outside_of_parentheses() {
        check(&["Bash(git log *),Read", "Edit"], &["Bash(git log *)", "Read", "Edit"]);
        check(&["Bash(a, b) , Read  Glob"], &["Bash(a, b)", "Read", "Glob"]);
        check(&["Bash(echo (x y)),Read"], &["Bash(echo (x y))", "Read"]);
        check(&["", " , "], &[]);
    }
}
