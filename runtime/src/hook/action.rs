//! What a handler does when it runs.

use serde_json::{Map, Value};

use super::{HookEvent, LABEL_OF_AGENTS, McpHook, PromptHook};
use crate::permission::Scope;

/// What a handler does when it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAction {
    /// A shell command or a program runs, as a process of its own.
    Command {
        /// The shell command, or the program when `args` is there.
        command: String,
        /// Arguments; `None` means `sh -c`.
        args: Option<Vec<String>>,
    },
    /// Code of the embedder runs. Only options have such handlers.
    InProcess {
        /// The name by which the options know it.
        name: String,
    },
    /// The input is posted to a server.
    Http(HttpHook),
    /// A tool of an MCP server is called.
    McpTool(McpHook),
    /// A model is asked.
    Prompt(PromptHook),
    /// A sub-agent that can only read is asked.
    Agent(PromptHook),
}

/// A request to a server, whose body is what a command would read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpHook {
    /// Address, which begins with `http://` or `https://`.
    pub url: String,
    /// Names and values of headers, in order of the names. `$NAME` and `${NAME}` in a value stand for a variable.
    pub headers: Vec<(String, String)>,
    /// Variables that values of headers may hold; others count as empty.
    pub variables: Vec<String>,
}

impl HookAction {
    /// Reads what an entry of a settings file does at this event.
    pub(super) fn read(entry: &Value, event: HookEvent, scope: Scope) -> Result<Self, String> {
        match entry.get("type").and_then(Value::as_str) {
            Some("command") => {
                let args = match entry.get("args") {
                    None | Some(Value::Null) => None,
                    Some(args) => Some(texts(args).ok_or("its args are not a list of texts")?),
                };
                Ok(Self::Command { command: named(entry, "command")?, args })
            }
            // A file names no code of the program that reads it.
            Some("in_process") if scope == Scope::CliArg => {
                Ok(Self::InProcess { name: named(entry, "command")? })
            }
            Some("http") if event == HookEvent::SessionStart => {
                Err(format!("handlers of type `http` never run at {}", event.name()))
            }
            Some("http") => HttpHook::read(entry).map(Self::Http),
            // The server may be one of the user's, which acts with the user's credentials and asks no rule.
            Some("mcp_tool") if scope.is_of_repository() => {
                Err("hooks of a repository call no tools".into())
            }
            Some("mcp_tool") => McpHook::read(entry).map(Self::McpTool),
            Some("prompt") => PromptHook::read(entry, event, scope).map(Self::Prompt),
            Some("agent") => PromptHook::read(entry, event, scope).map(Self::Agent),
            Some(other) => Err(format!("handlers of type `{other}` are not known")),
            None => Err("it has no type".into()),
        }
    }

    /// What is shown of it.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Command { command, args } => {
                let words = std::iter::once(command).chain(args.iter().flatten());
                words.map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            Self::InProcess { name } => name.clone(),
            Self::Http(http) => http.shown().to_owned(),
            Self::McpTool(call) => call.shown(),
            Self::Prompt(prompt) => format!("prompt: {}", prompt.prompt),
            Self::Agent(prompt) => format!("{LABEL_OF_AGENTS}{}", prompt.prompt),
        }
    }
}

impl HttpHook {
    fn read(entry: &Value) -> Result<Self, String> {
        let url = named(entry, "url")?;
        if !["http://", "https://"].iter().any(|it| url.starts_with(it)) {
            return Err("its url does not begin with http:// or https://".into());
        }
        let headers = match entry.get("headers") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Object(headers)) => {
                header_texts(headers).ok_or("its headers are not all texts")?
            }
            Some(_) => return Err("its headers are not an object".into()),
        };
        let variables = match entry.get("allowedEnvVars") {
            None | Some(Value::Null) => Vec::new(),
            Some(names) => texts(names).ok_or("its allowedEnvVars are not a list of texts")?,
        };
        Ok(Self { url, headers, variables })
    }

    /// Returns the address as it may be shown: scheme and host. The rest of it is often a secret.
    pub fn shown(&self) -> String {
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("", &self.url));
        let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        format!("{scheme}://{host}/…")
    }

    /// Returns the headers with the variables in them, whose values `value_of` knows. One that is not among
    /// [`HttpHook::variables`] counts as empty. Takes time with the bytes of the headers.
    pub fn headers_with(&self, value_of: &dyn Fn(&str) -> Option<String>) -> Vec<(String, String)> {
        let value_of = |name: &str| {
            let is_allowed = self.variables.iter().any(|it| it == name);
            is_allowed.then(|| value_of(name)).flatten().unwrap_or_default()
        };
        let filled = |(name, value): &(String, String)| (name.clone(), filled(value, &value_of));
        self.headers.iter().map(filled).collect()
    }
}

/// A text with `$NAME` and `${NAME}` replaced. A `$` without a name stays.
fn filled(text: &str, value_of: &dyn Fn(&str) -> String) -> String {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let braced = after.strip_prefix('{').and_then(|it| it.split_once('}'));
        let (name, left) = match braced {
            Some((name, left)) => (name, left),
            None => after.split_at(after.find(|c| !is_of_name(c)).unwrap_or(after.len())),
        };
        let is_name = !name.is_empty() && name.chars().all(is_of_name);
        if is_name && !name.starts_with(|c: char| c.is_ascii_digit()) {
            out.push_str(&value_of(name));
            rest = left;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out + rest
}

pub(super) fn named(entry: &Value, key: &str) -> Result<String, String> {
    let text = entry.get(key).and_then(Value::as_str).unwrap_or_default();
    if text.trim().is_empty() { Err(format!("it has no {key}")) } else { Ok(text.to_owned()) }
}

fn texts(list: &Value) -> Option<Vec<String>> {
    list.as_array()?.iter().map(|it| it.as_str().map(str::to_owned)).collect()
}

fn header_texts(headers: &Map<String, Value>) -> Option<Vec<(String, String)>> {
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    headers.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // REQ: HKS-1
    #[test]
    fn headers_hold_the_variables_that_the_handler_names_and_no_others() {
        let entry = json!({
            "type": "http", "url": "https://u:p@host/a/b?key=1#x", "allowedEnvVars": ["TOKEN", "NONE"],
            "headers": {"a": "Bearer $TOKEN", "b": "${TOKEN}x$SECRET|$", "c": "$1 ${TOKEN", "d": "$NONE-"},
        });
        let action = HookAction::read(&entry, HookEvent::PreToolUse, Scope::User);
        assert_eq!(action.as_ref().map(HookAction::label), Ok("https://host/…".into()));
        let Ok(HookAction::Http(http)) = action else { panic!("{action:?}") };
        let value_of = |name: &str| (name != "NONE").then(|| format!("<{name}>"));
        let headers = http.headers_with(&value_of);
        let values: Vec<&str> = headers.iter().map(|it| &it.1[..]).collect();
        assert_eq!(values, ["Bearer <TOKEN>", "<TOKEN>x|$", "$1 ${TOKEN", "-"]);
    }

    // REQ: HKS-1
    #[test]
    fn repository_has_no_handler_that_calls_a_tool() {
        let entry = json!({"type": "mcp_tool", "server": "s", "tool": "t"});
        for (scope, is_read) in [
            (Scope::User, true),
            (Scope::CliArg, true),
            (Scope::Project, false),
            (Scope::Local, false),
        ] {
            let read = HookAction::read(&entry, HookEvent::Stop, scope);
            assert_eq!(read.is_ok(), is_read, "{scope:?}: {read:?}");
        }
    }

    // REQ: HKS-1
    #[test]
    fn handler_that_asks_a_server_is_refused_where_it_makes_no_sense() {
        let read = |entry: Value, event| HookAction::read(&entry, event, Scope::User).unwrap_err();
        let post = HookEvent::PostToolUse;
        for (entry, event, why) in [
            (json!({"type": "http"}), post, "it has no url"),
            (json!({"type": "http", "url": "file:///etc/passwd"}), post, "its url does not begin"),
            (json!({"type": "http", "url": "http://h", "headers": []}), post, "its headers are no"),
            (
                json!({"type": "http", "url": "http://h", "headers": {"a": 1}}),
                post,
                "its headers are",
            ),
            (
                json!({"type": "http", "url": "http://h", "allowedEnvVars": "A"}),
                post,
                "its allowedEnv",
            ),
            (
                json!({"type": "http", "url": "http://h"}),
                HookEvent::SessionStart,
                "handlers of type",
            ),
        ] {
            let found = read(entry, event);
            assert!(found.starts_with(why), "{found}");
        }
    }
}
