//! A server's tool as a tool of a session.

use std::{fmt, sync::Arc};

use ennead_runtime::{
    ids::{ToolName, ToolUseId},
    ports::{BoxFuture, Tool, ToolContext},
    step7_permission_gate::Permit,
    tool::{ToolErrorKind, ToolOutcome, ToolSpec},
};

use serde_json::{Map, Value};

use super::{CallError, Server};
use crate::{
    blocking::blocking,
    capped::capped,
    declared::{Declaration, parsed},
    schema::{Schema, SchemaError},
};

/// One tool of one server.
pub struct McpTool {
    declaration: Declaration,
    /// Name that the server knows the tool by.
    remote: Arc<str>,
    server: Arc<dyn Server>,
}

/// A listed tool cannot be one of ours.
#[derive(Debug, thiserror::Error)]
#[error("the input schema of {name} cannot be used")]
pub struct McpToolError {
    /// Name of the tool, as the model sees it.
    pub name: ToolName,
    /// What is wrong with its schema.
    #[source]
    pub cause: SchemaError,
}

impl McpTool {
    /// Makes the tool that `spec` declares and that its server knows by the name `remote`.
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
        let progress = context.progress.clone();
        let answer =
            parsed(input).map(|arguments| self.server.call(&self.remote, arguments, progress));
        let max_chars = self.declaration.spec().output_cap;
        async move {
            let answer = match answer {
                Ok(answer) => answer.await,
                Err(failure) => return *failure,
            };
            let outcome = match answer {
                Ok(result) if result.has_images() => {
                    blocking(&context, move |_| result.outcome()).await
                }
                Ok(result) => result.outcome(),
                Err(error) => ToolOutcome::failed(kind_of(&error), error.to_string()),
            };
            capped(outcome, max_chars, &id, &context).await
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

    fn call_at_server(
        &self,
        arguments: Map<String, Value>,
    ) -> Option<BoxFuture<'static, Result<String, String>>> {
        let answer = self.server.call(&self.remote, arguments, None);
        Some(Box::pin(async move {
            match answer.await {
                Ok(result) => result.texts(),
                Err(error) => Err(error.to_string()),
            }
        }))
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
        CallError::Gone { .. } | CallError::Garbled { .. } => ToolErrorKind::Crashed,
        CallError::Silent { .. } => ToolErrorKind::TimedOut,
        CallError::NotConnected { .. } | CallError::Refused(_) => ToolErrorKind::Failed,
    }
}

#[cfg(test)]
mod tests {
    use ennead_runtime::{
        mcp::{
            config::ServerConfig,
            result::{CallResult, McpContent},
            spec::{CallLimits, Listed, offered},
        },
        ports::ReportProgress,
    };
    use serde_json::json;

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
            _: Option<Arc<dyn ReportProgress>>,
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
            needs_task: false,
            meta: Map::new(),
        };
        let server = ServerConfig::stdio("s", "x", &[]);
        let (mut tools, _) = offered(&server, &[listed], CallLimits::default());
        let (remote, spec) = tools.remove(0);
        McpTool::new(spec, &remote, Arc::new(Fixed(answer))).unwrap()
    }

    fn text(text: impl Into<String>, is_error: bool) -> CallResult {
        CallResult { content: vec![McpContent::Text(text.into())], structured: None, is_error }
    }

    #[track_caller]
    fn run(answer: Result<CallResult, CallError>, world: &World) -> ToolOutcome {
        let tool = tool(answer);
        assert!(tool.check_input(r#"{"x":"y"}"#).is_err());
        assert_eq!(tool.check_input(r#"{"x":1}"#), Ok(()));
        block_on(tool.call("id".into(), r#"{"x":1}"#, world.context.clone()))
    }
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
