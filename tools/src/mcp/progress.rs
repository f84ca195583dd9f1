//! What a server reports of a call under way, in the words of the harness.

use ennead_runtime::ports::Progress;
use rmcp::model::ProgressNotificationParam;

/// Characters of a text of a server that are passed on.
const MAX_TEXT: usize = 500;

/// Returns how far a call is: the server's own words, or its numbers where it has none. Whatever
/// could control a terminal becomes a blank.
pub(super) fn progress(notification: &ProgressNotificationParam) -> Progress {
    let total = notification.total.filter(|it| it.is_finite() && 0.0 < *it);
    let share = total.map(|it| (notification.progress / it * 100.0).clamp(0.0, 100.0));
    let text = match &notification.message {
        Some(message) => one_line(message),
        None => match total {
            Some(total) => format!("{} of {total}", notification.progress),
            None => notification.progress.to_string(),
        },
    };
    // A share that is not a number becomes 0.
    Progress::new(share.map(|it| it as u8), text)
}

fn one_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(MAX_TEXT).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use rmcp::model::{NumberOrString, ProgressToken};

    use super::*;

    #[track_caller]
    fn check(
        done: f64,
        total: Option<f64>,
        message: Option<&str>,
        percent: Option<u8>,
        text: &str,
    ) {
        let token = ProgressToken(NumberOrString::Number(1));
        let mut notification = ProgressNotificationParam::new(token, done);
        notification.total = total;
        notification.message = message.map(str::to_owned);
        assert_eq!(progress(&notification), Progress::new(percent, text));
    }

    // REQ: TOL-11
    #[test]
    fn progress_is_a_share_and_one_line_whatever_a_server_sends() {
        check(3.0, Some(12.0), None, Some(25), "3 of 12");
        check(3.0, None, Some("copying"), None, "copying");
        check(3.5, None, None, None, "3.5");
        check(9.0, Some(3.0), Some("late\n\u{1b}[2J"), Some(100), "late  [2J");
        check(-1.0, Some(2.0), Some(""), Some(0), "");
        for total in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            check(1.0, Some(total), None, None, "1");
        }
        check(f64::NAN, Some(1.0), Some("x"), Some(0), "x");
        check(1.0, None, Some(&"x".repeat(9_000)), None, &"x".repeat(500));
    }
}
