//! A server's tool as a tool of a session.

use std::{
    fmt,
    fs::{DirBuilder, OpenOptions},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
};

use ennead_runtime::{
    ids::{ToolName, ToolUseId},
    mcp::result::kept_in_file,
    ports::{BoxFuture, Tool, ToolContext},
    step7_permission_gate::Permit,
    tool::{ToolErrorKind, ToolOutcome, ToolSpec},
};

use super::{CallError, Server};
use crate::{
    blocking::blocking,
    declared::{Declaration, parsed},
    output::spill_path,
    schema::{Schema, SchemaError},
};

/// One tool of one server.
pub struct McpTool {
    declaration: Declaration,
    /// Its name there.
    remote: Arc<str>,
    server: Arc<dyn Server>,
}

/// A listed tool cannot be one of ours.
#[derive(Debug, thiserror::Error)]
#[error("the input schema of {name} cannot be used")]
pub struct McpToolError {
    /// Which.
    pub name: ToolName,
    /// What is wrong.
    #[source]
    pub cause: SchemaError,
}

impl McpTool {
    /// The tool that `spec` declares and that its server knows by the name `remote`.
    ///
    /// # Errors
    ///
    /// [`McpToolError`], when no input could be checked with the schema.
    pub fn new(
        spec: ToolSpec,
        remote: &str,
        server: Arc<dyn Server>,
    ) -> Result<Self, McpToolError> {
        let schema = Schema::from_text(&spec.input_schema)
            .map_err(|cause| McpToolError { name: spec.name.clone(), cause })?;
        let declaration = Declaration::new(spec, schema);
        Ok(Self { declaration, remote: remote.into(), server })
    }

    fn call(
        &self,
        id: ToolUseId,
        input: &str,
        context: ToolContext,
    ) -> impl Future<Output = ToolOutcome> + Send + use<> {
        let answer = parsed(input).map(|arguments| self.server.call(&self.remote, arguments));
        let max_chars = self.declaration.spec().output_cap;
        let max_chars = max_chars.and_then(|it| usize::try_from(it).ok());
        async move {
            let answer = match answer {
                Ok(answer) => answer.await,
                Err(said) => return *said,
            };
            let outcome = match answer {
                Ok(result) => result.outcome(),
                Err(error) => ToolOutcome::failed(kind_of(&error), error.to_string()),
            };
            shortened(outcome, max_chars, &id, &context).await
        }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        self.declaration.spec()
    }

    fn check_input(&self, input: &str) -> Result<(), String> {
        self.declaration.check(input)
    }

    fn run(&self, permit: Permit, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        self.declaration.run(permit, context, |permit, context| {
            let call = permit.call();
            self.call(call.id.clone(), &call.input, context)
        })
    }
}

impl fmt::Debug for McpTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.declaration.spec().name;
        f.debug_struct("McpTool").field("name", name).finish_non_exhaustive()
    }
}

fn kind_of(error: &CallError) -> ToolErrorKind {
    match error {
        CallError::Gone { .. } => ToolErrorKind::Crashed,
        CallError::Silent { .. } => ToolErrorKind::TimedOut,
        CallError::NotConnected { .. } | CallError::Refused(_) => ToolErrorKind::Failed,
    }
}

/// The outcome as it is; or, if its text is too long, with the text in a file. A file that cannot
/// be written leaves the text as it is, for the shapers to cut.
async fn shortened(
    outcome: ToolOutcome,
    max_chars: Option<usize>,
    id: &ToolUseId,
    context: &ToolContext,
) -> ToolOutcome {
    let Some(max_chars) = max_chars else { return outcome };
    // A text has at most as many characters as bytes.
    if outcome.text.len() <= max_chars {
        return outcome;
    }
    let n_chars = outcome.text.chars().count();
    if n_chars <= max_chars {
        return outcome;
    }
    let path = spill_path(context, id);
    let (file, text) = (path.clone(), outcome.text.clone());
    // On the thread that the call's hold waits for, as with every other file of a tool.
    let kept = blocking(context, move |_| match keep(&file, text.as_bytes()) {
        Ok(()) => ToolOutcome::ok(String::new()),
        Err(error) => ToolOutcome::failed(ToolErrorKind::Failed, error.to_string()),
    });
    match kept.await.error {
        None => kept_in_file(outcome, n_chars, &path.to_string_lossy()),
        Some(_) => outcome,
    }
}

fn keep(path: &Path, text: &[u8]) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    // For the owner alone, as all that is kept of a session.
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(text)
}

#[cfg(test)]
mod tests {
    use ennead_runtime::mcp::{
        config::ServerConfig,
        result::{CallResult, Content},
        spec::{CallLimits, Listed, offered},
    };
    use serde_json::{Map, Value, json};

    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::test_support::{World, block_on};

    /// Answers with what it was made with.
    #[derive(Debug)]
    struct Fixed(Result<CallResult, CallError>);

    impl Server for Fixed {
        fn call(
            &self,
            tool: &str,
            arguments: Map<String, Value>,
        ) -> BoxFuture<'static, Result<CallResult, CallError>> {
            assert_eq!((tool, Value::Object(arguments)), ("say it", json!({"x": 1})));
            Box::pin(std::future::ready(self.0.clone()))
        }
    }

    fn tool(answer: Result<CallResult, CallError>) -> McpTool {
        let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
        let listed = Listed {
            name: "say it".into(),
            description: String::new(),
            input_schema: schema.as_object().unwrap().clone(),
            read_only: true,
            meta: Map::new(),
        };
        let server = ServerConfig::stdio("s", "x", &[]);
        let (mut tools, _) = offered(&server, &[listed], CallLimits::default());
        let (remote, spec) = tools.remove(0);
        McpTool::new(spec, &remote, Arc::new(Fixed(answer))).unwrap()
    }

    fn text(text: impl Into<String>, is_error: bool) -> CallResult {
        CallResult { content: vec![Content::Text(text.into())], structured: None, is_error }
    }

    #[track_caller]
    fn run(answer: Result<CallResult, CallError>, world: &World) -> ToolOutcome {
        let tool = tool(answer);
        assert!(tool.check_input(r#"{"x":"y"}"#).is_err());
        assert_eq!(tool.check_input(r#"{"x":1}"#), Ok(()));
        block_on(tool.call("id".into(), r#"{"x":1}"#, world.context.clone()))
    }

    // T7.11
    #[test]
    fn an_answer_of_the_server_is_the_outcome_and_its_error_is_one() {
        let world = World::new();
        let outcome = run(Ok(text("said", false)), &world);
        assert_eq!((outcome.text.as_str(), outcome.error), ("said", None));
        let outcome = run(Ok(text("boom", true)), &world);
        assert_eq!((outcome.text.as_str(), outcome.error), ("boom", Some(ToolErrorKind::Failed)));
        let gone = CallError::Gone { server: "s".into() };
        let outcome = run(Err(gone), &world);
        assert_eq!(outcome.error, Some(ToolErrorKind::Crashed));
        assert!(outcome.text.contains("`s` ended"), "{}", outcome.text);
    }

    // T7.10
    #[test]
    fn result_of_200_000_characters_is_kept_in_a_file_and_its_beginning_shown() {
        let world = World::new();
        let long = "x".repeat(200_000);
        let outcome = run(Ok(text(long.clone(), false)), &world);
        let path = outcome.truncation.unwrap().stored_at.unwrap();
        assert!(outcome.text.contains(&path) && outcome.text.len() < 3000, "{}", outcome.text);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), long);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "it is for its owner alone");
        let fits = "x".repeat(100_000);
        assert_eq!(run(Ok(text(fits.clone(), false)), &world).text, fits);
    }
}
