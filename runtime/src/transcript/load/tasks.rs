//! The list of tasks of a session, as its transcript has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ids::ToolUseId, tool::Todo, transcript::entry::ConversationLine};

/// Name of the tool that replaces the list.
const TOOL: &str = "TodoWrite";

/// The list so far, and the calls that may replace it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tasks {
    /// Calls without a result, with the list that each asks for.
    calls: BTreeMap<ToolUseId, Vec<Todo>>,
    todos: Vec<Todo>,
}

/// Input of a call.
#[derive(Deserialize)]
struct TodoInput {
    todos: Vec<Todo>,
}

/// Structured result of a call. A hook may have changed the input, so the result has the last word.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Came {
    new_todos: Vec<Todo>,
}

impl Tasks {
    /// Returns the list that the last successful call left.
    pub(crate) fn todos(&self) -> &[Todo] {
        &self.todos
    }

    pub(super) fn note(&mut self, line: &ConversationLine) {
        for block in line.message.blocks.iter() {
            if let Some((id, name, input)) = block.as_tool_use() {
                if name.as_str() == TOOL
                    && let Ok(TodoInput { todos }) = serde_json::from_str(input)
                {
                    self.calls.insert(id.clone(), todos);
                }
            } else if let Some((id, _, is_error)) = block.as_tool_result()
                && let Some(wanted) = self.calls.remove(id)
                && !is_error
            {
                let structured = line.tool_result.as_ref().and_then(|it| it.structured.as_ref());
                let came = structured.and_then(|it| serde_json::from_str::<Came>(it).ok());
                self.todos = came.map_or(wanted, |it| it.new_todos);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::{
        block::Block,
        message::{Message, MessageKind},
        time::Timestamp,
        transcript::entry::ToolResultFields,
    };

    fn list(content: &str) -> Value {
        json!([{ "content": content, "status": "pending", "activeForm": "at it" }])
    }

    fn call(tasks: &mut Tasks, id: &str, tool: &str, content: &str) {
        let input = json!({ "todos": list(content) }).to_string();
        take_block(tasks, Block::tool_use(&id.into(), &tool.into(), &input), None);
    }

    fn take_block(tasks: &mut Tasks, block: Block, structured: Option<Value>) {
        let message = Message::user("m".into(), MessageKind::Prompt, vec![block]);
        let mut line = ConversationLine::of(Timestamp::default(), None, message.into());
        line.tool_result = structured.map(|it| ToolResultFields {
            structured: Some(Arc::from(it.to_string())),
            source: "m".into(),
        });
        tasks.note(&line);
    }

    fn contents(tasks: &Tasks) -> Vec<&str> {
        tasks.todos().iter().map(|it| it.content.as_str()).collect()
    }

    // REQ: SHP-7
    #[test]
    fn list_is_what_the_last_call_that_succeeded_left() {
        let mut tasks = Tasks::default();
        call(&mut tasks, "a", TOOL, "first");
        assert_eq!(contents(&tasks), [""; 0], "it is not answered");
        take_block(&mut tasks, Block::tool_result(&"a".into(), "ok", false), None);
        assert_eq!(contents(&tasks), ["first"]);
        call(&mut tasks, "b", TOOL, "failed");
        take_block(&mut tasks, Block::tool_result(&"b".into(), "no", true), None);
        assert_eq!(contents(&tasks), ["first"]);
        call(&mut tasks, "c", TOOL, "asked for");
        let came = json!({ "oldTodos": list("first"), "newTodos": list("changed by a hook") });
        take_block(&mut tasks, Block::tool_result(&"c".into(), "ok", false), Some(came.clone()));
        assert_eq!(contents(&tasks), ["changed by a hook"]);
        call(&mut tasks, "d", "mcp__x__TodoWrite", "of another tool");
        take_block(
            &mut tasks,
            Block::tool_result(&"d".into(), "ok", false),
            Some(json!({ "newTodos": [] })),
        );
        take_block(&mut tasks, Block::tool_result(&"e".into(), "ok", false), Some(came));
        assert_eq!(contents(&tasks), ["changed by a hook"]);
    }
}
