//! What the program asks for, and what it is answered.

use std::{sync::Arc, time::Duration};

use ennead::{
    OptionError, SessionHandle, SessionOptions,
    permission::{HookEvent, PermissionMode},
};
use ennead_runtime::catalogue::Catalogue;
use serde_json::{Map, Value, json};

use super::{
    super::{
        agents,
        callbacks::HostHook,
        incoming::{self, BadLine, Incoming},
        pipe::Input,
        results::{RunNotes, of_error},
    },
    Face,
};

/// Seconds that a callback of the program may take where it names no limit.
const CALLBACK_SECONDS: f64 = 60.0;

impl Face {
    /// Takes a line; returns whether the session is to be opened.
    pub(super) async fn take(&mut self, input: Input) -> bool {
        let line = match input {
            Input::Line(line) => match incoming::read(&line) {
                // The program waits for a result.
                Err(error @ BadLine::Prompt(_)) => {
                    let notes = RunNotes::default();
                    let frame = self.translator.frame();
                    self.output.write(of_error(frame, &error.to_string(), &notes));
                    self.has_failed = true;
                    return false;
                }
                read => read.map_err(|it| it.to_string()),
            },
            Input::Bad(why) => Err(format!("a line on standard input cannot be read: {why}")),
        };
        match line {
            Ok(Incoming::Prompt(prompt)) => {
                self.queue.push_back(prompt);
                true
            }
            Ok(Incoming::Request { id, subtype, fields }) => {
                self.request(&id, &subtype, &fields).await
            }
            Ok(Incoming::Answer { id, result }) => {
                self.host.answered(&id, result);
                false
            }
            Ok(Incoming::Cancel { .. } | Incoming::Other) => false,
            Err(why) => {
                self.warn(&why);
                false
            }
        }
    }

    /// Answers a request; returns whether the session is to be opened.
    async fn request(&mut self, id: &str, subtype: &str, fields: &Map<String, Value>) -> bool {
        let result = match subtype {
            "initialize" => match self.initialize(fields) {
                Ok(answer) => {
                    self.answer(id, Ok(answer));
                    return true;
                }
                Err(why) => Err(why),
            },
            "interrupt" => {
                self.interrupt();
                Ok(json!({}))
            }
            "set_permission_mode" => {
                let mode = fields.get("mode").cloned().unwrap_or_default();
                match serde_json::from_value(mode.clone()) {
                    Ok(mode) => self.choose_mode(mode).await.map(|()| json!({"mode": mode})),
                    Err(_) => Err(format!("there is no permission mode {mode}")),
                }
            }
            "set_model" => {
                self.choose_model(fields.get("model").and_then(Value::as_str));
                Ok(json!({}))
            }
            "get_context_usage" => Ok(self.context_usage()),
            "mcp_status" => Ok(json!({"mcpServers": self.servers()})),
            other => Err(format!("Unsupported control request subtype: {other}")),
        };
        self.answer(id, result);
        false
    }

    /// How much of the model's window the last request took.
    fn context_usage(&self) -> Value {
        let known = Catalogue::built_in();
        let window = known.find(&self.facts.model).map_or(0, |it| it.window);
        let used = self.context_tokens;
        let percentage = used.saturating_mul(100).checked_div(window).unwrap_or(0);
        let free = window.saturating_sub(used);
        json!({
            "categories": [
                {"name": "Context", "tokens": used, "color": "blue"},
                {"name": "Free space", "tokens": free, "color": "gray"},
            ],
            "totalTokens": used,
            "maxTokens": window,
            "rawMaxTokens": window,
            "percentage": percentage,
            "model": self.facts.model,
            "isAutoCompactEnabled": true,
            "memoryFiles": [],
            "mcpTools": [],
            "agents": [],
            "gridRows": [],
        })
    }

    /// The MCP servers, those in the program first, and how far they are.
    pub(super) fn servers(&self) -> Vec<Value> {
        let own = self.session.iter().flat_map(SessionHandle::mcp_servers).map(|server| {
            let prefix = format!("mcp__{}__", server.name);
            let tools = self.facts.tools.iter().filter_map(|it| it.strip_prefix(&prefix));
            let tools: Vec<Value> = tools.map(|it| json!({ "name": it })).collect();
            let mut state = json!({"name": server.name, "status": server.state, "tools": tools});
            if let Some(error) = &server.error {
                state["error"] = error.as_ref().into();
            }
            state
        });
        // Those of the program are asked while the session is opened.
        let pending = self.host_servers.iter().filter(|_| self.session.is_none());
        let pending = pending.map(|name| json!({"name": name, "status": "pending"}));
        self.facts.servers.iter().cloned().chain(pending).chain(own).collect()
    }

    /// Asks another model from the next turn on; a session that is being opened, from its first turn on.
    fn choose_model(&mut self, model: Option<&str>) {
        self.facts.model = model.unwrap_or(&self.default_model).to_owned();
        match &self.session {
            Some(session) => session.set_model(model),
            None => self.chosen_model = Some(model.map(str::to_owned)),
        }
    }

    /// Changes the permission mode; of a session that is being opened once it is there.
    pub(super) async fn choose_mode(&mut self, mode: PermissionMode) -> Result<(), String> {
        match &self.session {
            Some(session) => session.set_mode(mode).await.map_err(|it| it.to_string())?,
            None => self.chosen_mode = Some(mode),
        }
        self.facts.mode = mode;
        Ok(())
    }

    fn answer(&self, id: &str, result: Result<Value, String>) {
        let response = match result {
            Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
            Err(error) => json!({"subtype": "error", "request_id": id, "error": error}),
        };
        self.output.write(json!({"type": "control_response", "response": response}));
    }

    fn initialize(&mut self, fields: &Map<String, Value>) -> Result<Value, String> {
        if let Some(mut options) = self.options.take() {
            let (agents, problems) = agents::read(fields.get("agents").unwrap_or(&Value::Null));
            self.warnings.extend(problems);
            options = agents.into_iter().fold(options, SessionOptions::agent_type);
            self.facts.add_agents(&options.agent_types);
            let kept = options.clone();
            match self.with_hooks(options, fields.get("hooks")) {
                Ok(options) => self.options = Some(options),
                Err(error) => {
                    self.options = Some(kept);
                    return Err(error.to_string());
                }
            }
        }
        if fields.get("forwardSubagentText") == Some(&true.into()) {
            self.face.shown.agent_text = true;
            self.translator.show(self.face.shown);
        }
        Ok(json!({
            "commands": [],
            "output_style": "default",
            "available_output_styles": ["default"],
            "models": [{"value": self.facts.model, "displayName": self.facts.model, "description": ""}],
            "account": {},
            "agents": self.facts.described_agents(),
            "hook_on_failure_supported": true,
            "pid": std::process::id(),
        }))
    }

    /// Registers the callbacks of the program. Events that never fire here are of no interest.
    fn with_hooks(
        &self,
        mut options: SessionOptions,
        hooks: Option<&Value>,
    ) -> Result<SessionOptions, OptionError> {
        for (event, matchers) in hooks.and_then(Value::as_object).into_iter().flatten() {
            let Ok(event) = serde_json::from_value::<HookEvent>(event.as_str().into()) else {
                continue;
            };
            for matcher in matchers.as_array().into_iter().flatten() {
                let pattern = matcher["matcher"].as_str().unwrap_or_default();
                let seconds = matcher["timeout"].as_f64().filter(|it| 0.0 < *it && *it < 1e6);
                let limit = Duration::from_secs_f64(seconds.unwrap_or(CALLBACK_SECONDS));
                let on_failure = matcher["onFailure"].as_str().unwrap_or("continue");
                for callback in matcher["hookCallbackIds"].as_array().into_iter().flatten() {
                    let callback = callback.as_str().unwrap_or_default();
                    let (host, shown) = (self.host.clone(), self.shown_calls.clone());
                    let hook = Arc::new(HostHook::new(host, shown, callback));
                    // No failure holds the end of a run up.
                    let is_end = matches!(event, HookEvent::Stop | HookEvent::SubagentStop);
                    options = match on_failure == "continue" || is_end {
                        true => options.hook(event, pattern, limit, hook)?,
                        false => options.guarding_hook(event, pattern, limit, hook)?,
                    };
                }
            }
        }
        Ok(options)
    }
}
