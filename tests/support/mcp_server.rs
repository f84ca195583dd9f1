//! A real MCP server, for other processes to start: this very binary, told to run one of its tests,
//! which is ignored otherwise. It speaks through the official library.
//!
//! It runs in the directory of the session and says there what it does: one line in `starts` for
//! each start, and `alive` is a pipe that is open as long as a held call, its server or what it has
//! started live.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use ennead_runtime::mcp::config::{ServerConfig, ServerTransport};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject,
        ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities,
        ServerConfig as Info, Tool, ToolAnnotations,
    },
    service::RequestContext,
    transport::stdio,
};
use serde_json::{Value, json};

/// The server, as a session is configured with it.
pub(crate) fn configured(name: &str) -> ServerConfig {
    let this = std::env::current_exe().unwrap();
    let args = ["--ignored", "--exact", "--nocapture", "support::mcp_server::serve"];
    let mut config = ServerConfig::stdio(name, this.to_str().unwrap(), &args);
    if let ServerTransport::Stdio(program) = &mut config.reach {
        program.env.insert("TEST_MCP_SERVER".into(), name.into());
    }
    config
}

/// The same, as an entry of a file.
pub(crate) fn entry() -> Value {
    let ServerTransport::Stdio(program) = configured("any").reach else {
        panic!("it is a process")
    };
    json!({ "command": program.command, "args": program.args })
}

/// How often servers were started in a directory.
pub(crate) fn n_starts(directory: &Path) -> usize {
    std::fs::read_to_string(directory.join("starts")).unwrap_or_default().lines().count()
}

/// The process of the server that was started last in a directory.
pub(crate) fn last_pid(directory: &Path) -> u32 {
    let starts = std::fs::read_to_string(directory.join("starts")).unwrap();
    starts.lines().last().unwrap().parse().unwrap()
}

#[test]
#[ignore = "it is the MCP server that other tests start"]
fn serve() {
    let mut starts = OpenOptions::new().create(true).append(true).open("starts").unwrap();
    writeln!(starts, "{}", std::process::id()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let serving = EchoHandler.serve(stdio()).await.unwrap();
        serving.waiting().await.unwrap();
    });
    // The thread that reads standard input cannot be interrupted.
    std::process::exit(0);
}

struct EchoHandler;

impl ServerHandler for EchoHandler {
    fn get_info(&self) -> Info {
        Info::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let any = json!({"oneOf": [
            {"properties": {"name": {"type": "string"}}}, {"properties": {"path": {}}},
        ]});
        let text = json!({"type": "string"});
        let tool = |name: &'static str, schema: Value| {
            Tool::new(name, format!("The tool {name}."), object(schema))
        };
        Ok(ListToolsResult::with_all_items(vec![
            tool("echo", any.clone()).annotate(ToolAnnotations::new().read_only(true)),
            tool("fail", any.clone()),
            tool("hold", any.clone()),
            tool("garble", any.clone()),
            tool("big", any.clone()),
            tool("step", any),
            tool("text", text),
            tool("say", json!({"type": "object", "properties": {"text": {"type": "string"}}})),
        ]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text_content = |text: &str| vec![ContentBlock::text(text)];
        Ok(match &*request.name {
            "echo" => {
                let arguments = Value::Object(request.arguments.unwrap_or_default());
                CallToolResult::success(text_content(&format!("heard {arguments}")))
            }
            "say" => {
                let arguments = request.arguments.unwrap_or_default();
                CallToolResult::success(text_content(arguments["text"].as_str().unwrap()))
            }
            "fail" => CallToolResult::error(text_content("boom")),
            "garble" => {
                // Beside the library, which would not.
                std::io::stdout().write_all(b"{no message\n").unwrap();
                std::io::stdout().flush().unwrap();
                context.ct.cancelled().await;
                CallToolResult::success(text_content("not read any more"))
            }
            "big" => CallToolResult::success(text_content(&"x".repeat(200_000))),
            "step" => {
                if let Some(token) = context.meta.get_progress_token() {
                    let mut progress = ProgressNotificationParam::new(token, 1.0);
                    progress.total = Some(4.0);
                    progress.message = Some("half of a half".into());
                    context.peer.notify_progress(progress).await.unwrap();
                }
                context.ct.cancelled().await;
                CallToolResult::success(text_content("stepped"))
            }
            "hold" => {
                hold(&context).await;
                CallToolResult::success(text_content("not held any more"))
            }
            other => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        }
        .into())
    }
}

/// Lets the test know, and waits until the call is cancelled. A process that was started meanwhile
/// has the pipe open as long as it lives.
async fn hold(context: &RequestContext<RoleServer>) {
    let mut alive = OpenOptions::new().write(true).open("alive").unwrap();
    let open = |it: &File| Stdio::from(it.try_clone().unwrap());
    let mut child = Command::new("sleep").arg("100000").stdout(open(&alive)).spawn().unwrap();
    writeln!(alive, "up").unwrap();
    context.ct.cancelled().await;
    child.kill().unwrap();
    child.wait().unwrap();
    writeln!(alive, "cancelled").unwrap();
}

fn object(value: Value) -> JsonObject {
    value.as_object().unwrap().clone()
}
