//! What other programs know a session by, as they write it themselves.

use ennead_runtime::ids::SessionId;
use serde::Serialize;

/// A line that programs which list sessions look for, by its first key and by its text.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TitleLine<'a> {
    r#type: &'static str,
    custom_title: &'a str,
    session_id: &'a str,
}

/// Returns the line with a title, without its end. It is not sealed: any program may add another one.
pub(super) fn title_line(title: &str, session: &SessionId) -> String {
    let line =
        TitleLine { r#type: "custom-title", custom_title: title, session_id: session.as_str() };
    serde_json::to_string(&line).unwrap_or_default()
}
