//! The command `ennead`, run as a reader would run it: a process in a directory of its own.

mod bad_input;
mod bench;
mod cases;
mod config;
mod demo;
mod doctor;
mod endpoints;
mod evaluation;
mod failure;
mod going_on;
mod kills;
mod mcp;
mod print;
mod processes;
mod proxy;
mod sandbox;
mod signals;
mod stream;
mod terminal;
mod transcripts;
mod trust;

use crate::support::command::{CommandDirs, Ended, Simulation, text, with_input};

/// What the tests ask of the model. Its key is `right`.
const PLAYBOOK: &str = r#"
key = "right"

[[rule]]
name = "loop"
when.prompt.regex = "^loop"
reply = [{ tool = "Glob", input = { pattern = "*" } }]

[[rule]]
name = "busy"
when.prompt.regex = "^busy"
fault = { status = 429, headers = { "retry-after" = "300" } }

[[rule]]
name = "says that its limit is used up"
when.prompt.regex = "^limited"
reply = [{ tool = "Glob", input = { pattern = "*" } }]
fault.headers = { x-ratelimit-remaining-requests = "0", x-ratelimit-reset-requests = "5m0s" }

[[rule]]
name = "full"
when.model.regex = "^full$"
fault = { status = 529 }

[[rule]]
name = "calls a server"
when.prompt.regex = "^mcp"
when.answers = 0
reply = [{ tool = "mcp__srv__echo", input = {} }]

[[rule]]
name = "has called it"
when.prompt.regex = "^mcp"
reply = [{ text = "{{ new_results|join }}" }]

[[rule]]
name = "writes"
when.prompt.regex = "^write"
when.answers = 0
reply = [{ tool = "Write", input = { file_path = "new.txt", content = "hello\n" } }]

[[rule]]
name = "wrote"
when.prompt.regex = "^write"
reply = [{ text = "done" }]

[[rule]]
name = "takes long"
when.prompt.regex = "^sleep"
reply = [{ tool = "Bash", input = { command = "sleep 600" } }]

[[rule]]
name = "system"
when.prompt.regex = "^system$"
reply = [{ text = "{{ system }}" }]

[[rule]]
name = "echo"
reply = [{ text = "{{ model }}: {{ prompt }}" }]
"#;

impl Simulation {
    /// Serves [`PLAYBOOK`].
    fn start(place: &CommandDirs) -> Self {
        Self::playing(place, PLAYBOOK)
    }
}
