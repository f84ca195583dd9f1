//! MCP servers that run in the program: their messages go through control requests (`mcp_message`).
//!
//! They are joined before the session is opened, all at the same time. One that cannot be had is reported
//! and left out.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ennead::{
    SessionOptions,
    tool::{BoxFuture, ServerConfig, Tool},
};
use ennead_runtime::{
    mcp::{
        names::prefix,
        result::{CallResult, McpContent},
        spec::{CallLimits, Listed, offered},
    },
    ports::ReportProgress,
};
use ennead_tools::mcp::{CallError, McpTool, Server};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{
    fit::{MAX_LINE, question_of},
    host::{Host, NoAnswer},
};

/// How long a server of the program may take to list its tools.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Pages of a list of tools that are read at most; a server could go on for ever.
const MAX_PAGES: usize = 100;

/// The version of the protocol that is spoken.
const PROTOCOL: &str = "2025-06-18";

/// A server of the program. Clones are the same one.
#[derive(Clone, Debug)]
pub struct HostServer {
    name: Arc<str>,
    host: Host,
    n_messages: Arc<AtomicU64>,
}

/// Returns the servers of these names.
pub fn servers(host: &Host, names: &[String]) -> Vec<HostServer> {
    let server = |name: &String| HostServer {
        name: name.as_str().into(),
        host: host.clone(),
        n_messages: Arc::default(),
    };
    names.iter().map(server).collect()
}

/// Returns the server that a tool of this name belongs to (`mcp__server__tool`), and what the tool is called there. Of
/// several the one with the longest name.
pub fn tool_of<'a>(servers: &[HostServer], tool: &'a str) -> Option<(HostServer, &'a str)> {
    let found = servers.iter().filter_map(|server| {
        let rest = tool.strip_prefix(&prefix(&server.name)).filter(|it| !it.is_empty())?;
        Some((server.clone(), rest))
    });
    found.min_by_key(|(_, rest)| rest.len())
}

/// Adds the tools of these servers to the session. Returns what became of each, as `mcp_status` shows it.
pub async fn join(servers: Vec<HostServer>, options: &mut SessionOptions) -> Vec<Value> {
    let asked = servers.into_iter().map(|server| async move {
        let listed = timeout(START_LIMIT, server.listed()).await;
        let listed = listed.unwrap_or_else(|_| Err(format!("no answer within {START_LIMIT:?}")));
        (server, listed)
    });
    let mut states = Vec::new();
    for (server, listed) in futures::future::join_all(asked).await {
        let name = &*server.name;
        match listed {
            Ok((info, listed)) => {
                let (listed, tools): (Vec<Listed>, Vec<Value>) = listed.into_iter().unzip();
                add(options, &server, &listed);
                states.push(json!({
                    "name": name,
                    "status": "connected",
                    "serverInfo": info,
                    "scope": "dynamic",
                    "tools": tools,
                }));
            }
            Err(error) => {
                states.push(json!({"name": name, "status": "failed", "error": error}));
            }
        }
    }
    states
}

/// A tool as `mcp_status` shows it. A hint that is absent or no boolean is not guessed, but for `readOnly`,
/// which the session has decided on.
fn tool_status(tool: &Listed, hints: &Value) -> Value {
    let mut annotations = json!({"readOnly": tool.read_only});
    for (hint, name) in [("destructiveHint", "destructive"), ("openWorldHint", "openWorld")] {
        if let Some(hint) = hints[hint].as_bool() {
            annotations[name] = hint.into();
        }
    }
    json!({"name": tool.name, "description": tool.description, "annotations": annotations})
}

fn add(options: &mut SessionOptions, server: &HostServer, listed: &[Listed]) {
    let config = ServerConfig::stdio(&server.name, "", &[]);
    let (tools, _left_out) = offered(&config, listed, CallLimits::default());
    for (remote, spec) in tools {
        let is_taken = options.tools.iter().any(|it| it.spec().name == spec.name);
        let way = Arc::new(server.clone()) as Arc<dyn Server>;
        if let (false, Ok(tool)) = (is_taken, McpTool::new(spec, &remote, way)) {
            options.tools.push(Arc::new(tool) as Arc<dyn Tool>);
        }
    }
}

impl HostServer {
    /// Calls a tool by its name there; the texts of its result.
    ///
    /// # Errors
    ///
    /// Why there is no result, or what the tool says went wrong, in words.
    pub async fn text_of(&self, tool: &str, arguments: Value) -> Result<String, String> {
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.call_method("tools/call", params).await?;
        let blocks = result["content"].as_array().into_iter().flatten();
        let text: String = blocks.filter_map(|it| it["text"].as_str()).collect();
        if result["isError"] == true { Err(text) } else { Ok(text) }
    }

    /// Greets the server; its name and version, and its tools, each with how it is shown.
    async fn listed(&self) -> Result<(Value, Vec<(Listed, Value)>), String> {
        let client = json!({"name": "ennead", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client});
        let greeted = self.call_method("initialize", params).await?;
        self.notify("notifications/initialized").await?;
        let (mut tools, mut cursor) = (Vec::new(), Value::Null);
        for _ in 0..MAX_PAGES {
            let params = match &cursor {
                Value::Null => json!({}),
                cursor => json!({"cursor": cursor}),
            };
            let page = self.call_method("tools/list", params).await?;
            tools.extend(page["tools"].as_array().into_iter().flatten().filter_map(|it| {
                let tool = listed(it)?;
                let shown = tool_status(&tool, &it["annotations"]);
                Some((tool, shown))
            }));
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                return Ok((greeted["serverInfo"].clone(), tools));
            }
        }
        Err(format!("its list of tools has over {MAX_PAGES} pages"))
    }

    async fn notify(&self, method: &str) -> Result<(), String> {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": {}});
        self.send(message).await.map(drop).map_err(|error| error.to_string())
    }

    async fn call_method(&self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.n_messages.fetch_add(1, Ordering::Relaxed) + 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let mut answer = self.send(message).await.map_err(|error| error.to_string())?;
        match answer.get("error") {
            Some(error) => Err(error["message"].as_str().unwrap_or("it failed").to_owned()),
            None => Ok(answer["result"].take()),
        }
    }

    async fn send(&self, message: Value) -> Result<Value, NoAnswer> {
        let request = json!({
            "subtype": "mcp_message",
            "server_name": self.name.as_ref(),
            "message": message,
        });
        let (request, is_cut) = question_of(request);
        if is_cut {
            let why =
                format!("the message is longer than the {MAX_LINE} characters that programs read");
            return Err(NoAnswer::Failed(why));
        }
        let mut answer = self.host.ask(request).await?;
        Ok(answer["mcp_response"].take())
    }
}

impl Server for HostServer {
    fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        _progress: Option<Arc<dyn ReportProgress>>,
    ) -> BoxFuture<'static, Result<CallResult, CallError>> {
        let (server, params) = (self.clone(), json!({"name": tool, "arguments": arguments}));
        Box::pin(async move {
            let result = server.call_method("tools/call", params).await;
            result.map(|it| call_result(&it)).map_err(CallError::Refused)
        })
    }
}

/// A tool as the server lists it; `None` for what has no name.
fn listed(tool: &Value) -> Option<Listed> {
    let object = |name: &str| tool[name].as_object().cloned().unwrap_or_default();
    Some(Listed {
        name: tool["name"].as_str()?.to_owned(),
        description: tool["description"].as_str().unwrap_or_default().to_owned(),
        input_schema: object("inputSchema"),
        read_only: tool["annotations"]["readOnlyHint"] == true,
        needs_task: false,
        meta: object("_meta"),
    })
}

fn call_result(result: &Value) -> CallResult {
    let content = result["content"].as_array().into_iter().flatten().map(content).collect();
    CallResult {
        content,
        structured: result.get("structuredContent").filter(|it| !it.is_null()).cloned(),
        is_error: result["isError"] == true,
    }
}

fn content(block: &Value) -> McpContent {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match block["type"].as_str().unwrap_or_default() {
        "text" => McpContent::Text(text(&block["text"])),
        "resource_link" => {
            McpContent::Link { uri: text(&block["uri"]), name: text(&block["name"]) }
        }
        "resource" if block["resource"]["text"].is_string() => McpContent::Resource {
            uri: text(&block["resource"]["uri"]),
            text: text(&block["resource"]["text"]),
        },
        "image" => McpContent::Image { mime: text(&block["mimeType"]), data: text(&block["data"]) },
        kind => McpContent::Binary {
            mime: block["mimeType"].as_str().unwrap_or(kind).to_owned(),
            chars: block["data"].as_str().map_or(0, str::len),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::pipe::{Output, SharedBytes},
        *,
    };

    // REQ: SUR-3
    #[test]
    fn results_are_read_by_the_kinds_of_their_blocks() {
        let image = json!({"type": "image", "data": "QUJD", "mimeType": "image/png"});
        let result = call_result(&json!({
            "content": [{"type": "text", "text": "a"}, image],
            "isError": true,
        }));
        assert!(result.is_error);
        let expected = McpContent::Image { mime: "image/png".into(), data: "QUJD".into() };
        assert_eq!(result.content, [McpContent::Text("a".into()), expected]);
    }

    // REQ: SUR-3
    #[test]
    fn tool_is_found_at_the_server_with_the_longest_name_that_fits() {
        let (output, _end) = Output::start(SharedBytes::default());
        let names = ["a", "a__b", "odd name"].map(str::to_owned);
        let servers = servers(&Host::new(output), &names);
        let found = |tool| tool_of(&servers, tool).map(|(server, rest)| (server.name, rest));
        assert_eq!(found("mcp__a__b__ask"), Some(("a__b".into(), "ask")));
        assert_eq!(found("mcp__a__ask"), Some(("a".into(), "ask")));
        assert_eq!(found("mcp__odd_name__ask"), Some(("odd name".into(), "ask")));
        for none in ["mcp__c__ask", "mcp__a__", "ask", "stdio"] {
            assert_eq!(found(none), None, "{none}");
        }
    }

    // REQ: SUR-3
    #[test]
    fn tool_without_a_name_is_none() {
        assert!(listed(&json!({"description": "x"})).is_none());
        let tool = listed(&json!({"name": "x", "annotations": {"readOnlyHint": true}})).unwrap();
        assert!(tool.read_only && tool.input_schema.is_empty());
    }

    // REQ: SUR-3
    #[test]
    fn status_shows_the_hints_that_a_server_gives_and_guesses_none() {
        let annotations = |hints: Value| {
            let tool = listed(&json!({"name": "x", "annotations": hints.clone()})).unwrap();
            tool_status(&tool, &hints)["annotations"].clone()
        };
        let given = json!({"readOnlyHint": true, "destructiveHint": false, "openWorldHint": true});
        let expected = json!({"readOnly": true, "destructive": false, "openWorld": true});
        assert_eq!(annotations(given), expected);
        let hostile = json!({"destructiveHint": "no", "openWorldHint": {"a": 1}});
        assert_eq!(annotations(hostile), json!({"readOnly": false}));
        assert_eq!(annotations(json!([1])), json!({"readOnly": false}));
    }
}
