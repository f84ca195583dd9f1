//! TodoWrite: the model's own list of tasks, replaced as a whole.

use std::sync::Arc;

use ennead_runtime::{
    ports::ToolContext,
    tool::{Access, Todo, TodoStatus, ToolEffect, ToolNote, ToolOutcome, ToolSpec},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::built_in::{BuiltIn, BuiltInCall};

pub(crate) struct TodoWrite;

/// The list.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TodoInput {
    /// All tasks, in order; what is not in it is forgotten.
    todos: Vec<Item>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Item {
    /// What is to be done, as an order: "Run the tests".
    #[schemars(length(min = 1))]
    content: String,
    /// How far it is. One task at a time should be in progress.
    status: Status,
    /// The same as something under way: "Running the tests".
    #[schemars(length(min = 1))]
    active_form: String,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

impl From<Item> for Todo {
    fn from(item: Item) -> Self {
        let status = match item.status {
            Status::Pending => TodoStatus::Pending,
            Status::InProgress => TodoStatus::InProgress,
            Status::Completed => TodoStatus::Completed,
        };
        Self::new(item.content, status, item.active_form)
    }
}

impl BuiltIn for TodoWrite {
    type Input = TodoInput;

    fn spec(input_schema: Arc<str>) -> ToolSpec {
        ToolSpec::new(
            "TodoWrite",
            "Keeps the list of tasks of this conversation. Give the whole list each \
                time. Use it for work of three steps or more; mark a task as completed as soon as \
                it is.",
            input_schema,
        )
        .with_effect(ToolEffect::ReadOnly)
        .with_access(Access::Free)
        .with_output_cap(20_000)
    }

    async fn call(call: BuiltInCall<TodoInput>, context: ToolContext) -> ToolOutcome {
        let todos: Vec<Todo> = call.input.todos.into_iter().map(Todo::from).collect();
        let count = |status| todos.iter().filter(|todo| todo.status == status).count();
        let text = format!(
            "The list of tasks has been replaced: {} pending, {} in progress, {} completed.",
            count(TodoStatus::Pending),
            count(TodoStatus::InProgress),
            count(TodoStatus::Completed)
        );
        let result = json!({"oldTodos": context.memory.todos, "newTodos": todos});
        let mut outcome = ToolOutcome::ok(text).with_structured(&result);
        outcome.notes.push(ToolNote::Todos(todos));
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{World, structured};

    #[test]
    fn the_list_is_replaced_as_a_whole_and_remembered() {
        let mut world = World::new();
        let first = json!([{"content": "Test", "status": "pending", "activeForm": "Testing"}]);
        world.ok::<TodoWrite>(json!({"todos": first}));
        let second = json!([
            {"content": "Test", "status": "completed", "activeForm": "Testing"},
            {"content": "Ship", "status": "in_progress", "activeForm": "Shipping"},
        ]);
        let outcome = world.ok::<TodoWrite>(json!({"todos": second}));
        assert!(outcome.text.contains("0 pending, 1 in progress, 1 completed"));
        assert_eq!(structured(&outcome), json!({"oldTodos": first, "newTodos": second}));
        assert_eq!(world.context.memory.todos[1].content, "Ship");
    }
}
