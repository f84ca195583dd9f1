//! What the program asks for, and what it is answered.

use std::{sync::Arc, time::Duration};

use ennead::{
    SessionOptions,
    permission::{HookEvent, PermissionMode},
};
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
            Ok(Incoming::Prompt(prompt)) if !prompt.is_asking => {
                self.said.extend(prompt.content);
                false
            }
            Ok(Incoming::Prompt(mut prompt)) => {
                prompt.said_before = std::mem::take(&mut self.said);
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
                let n_meant = usize::from(self.interrupts_next);
                if fields.get("cancel_queued") == Some(&true.into()) {
                    self.queue.truncate(n_meant);
                }
                let queued = self.queue.iter().skip(n_meant).filter_map(|it| it.uuid.as_deref());
                Ok(json!({"still_queued": queued.collect::<Vec<_>>()}))
            }
            "set_permission_mode" => {
                let mode = fields.get("mode").cloned().unwrap_or_default();
                match serde_json::from_value(mode.clone()) {
                    Ok(mode) => self.choose_mode(mode).await.map(|()| json!({"mode": mode})),
                    Err(_) => Err(format!("there is no permission mode {mode}")),
                }
            }
            "set_model" => match fields.get("model") {
                None | Some(Value::Null) => Ok(self.choose_model(None)),
                Some(Value::String(model)) if !model.trim().is_empty() => {
                    Ok(self.choose_model(Some(model)))
                }
                Some(other) => Err(format!("{other} is not a model")),
            },
            "stop_task" => self.stop_task(fields.get("task_id").and_then(Value::as_str)),
            "rewind_files" => {
                self.rewind(fields.get("user_message_id").and_then(Value::as_str)).await
            }
            "get_context_usage" => Ok(self.context.usage(&self.facts)),
            "mcp_status" => Ok(json!({"mcpServers": self.servers()})),
            "mcp_toggle" => self.toggle_server(fields),
            "mcp_reconnect" => {
                let name = fields.get("serverName").and_then(Value::as_str);
                self.reconnect_server(id, name);
                return false;
            }
            other => Err(format!("Unsupported control request subtype: {other}")),
        };
        self.answer(id, result);
        false
    }

    /// Puts files into the state that they had when a prompt began.
    async fn rewind(&mut self, prompt: Option<&str>) -> Result<Value, String> {
        let prompt = prompt.ok_or("rewind_files names no user_message_id")?.to_owned();
        let kept = self.checkpoints.clone().ok_or("file checkpoints are not switched on")?;
        if self.running.is_some() {
            return Err("files cannot be put back while a prompt is being answered".into());
        }
        let changed = tokio::task::spawn_blocking(move || kept.rewind(&prompt)).await;
        let changed = changed.map_err(|it| it.to_string())?.map_err(|it| it.to_string())?;
        Ok(json!({"canRewind": true, "filesChanged": changed}))
    }

    /// Ends one sub-agent; its parent goes on.
    fn stop_task(&self, task: Option<&str>) -> Result<Value, String> {
        let task = task.ok_or("stop_task names no task_id")?;
        let call = self.translator.stoppable(task)?;
        self.session.iter().for_each(|it| it.stop_agent(call.as_str()));
        Ok(json!({}))
    }

    /// Asks another model from the next turn on; a session that is being opened, from its first turn on.
    fn choose_model(&mut self, model: Option<&str>) -> Value {
        self.facts.model = model.unwrap_or(&self.default_model).to_owned();
        match &self.session {
            Some(session) => session.set_model(model),
            None => self.chosen_model = Some(model.map(str::to_owned)),
        }
        json!({})
    }

    /// Changes the permission mode; of a session that is being opened once it is there.
    pub(super) async fn choose_mode(&mut self, mode: PermissionMode) -> Result<(), String> {
        match &self.session {
            Some(session) => session.set_mode(mode).await.map_err(|it| it.to_string())?,
            None => self.chosen_mode = Some(mode),
        }
        self.mode_changed(mode);
        Ok(())
    }

    pub(super) fn answer(&self, id: &str, result: Result<Value, String>) {
        let response = match result {
            Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
            Err(error) => json!({"subtype": "error", "request_id": id, "error": error}),
        };
        self.output.write(json!({"type": "control_response", "response": response}));
    }

    fn initialize(&mut self, fields: &Map<String, Value>) -> Result<Value, String> {
        let Some(options) = self.options.take() else {
            return Err("Already initialized".into());
        };
        let kept = options.clone();
        let hooked = match fields.get("skills") {
            None | Some(Value::Null | Value::Array(_)) => {
                self.with_hooks(options, fields.get("hooks"))
            }
            Some(other) => Err(format!("`skills` is not a list of names: {other}")),
        };
        let mut options = match hooked {
            Ok(options) => options,
            Err(error) => {
                self.options = Some(kept);
                return Err(error);
            }
        };
        let (agents, problems) = agents::read(fields.get("agents").unwrap_or(&Value::Null));
        self.warnings.extend(problems);
        options = agents.into_iter().fold(options, SessionOptions::agent_type);
        self.facts.add_agents(&options.agent_types);
        self.skills.restrict(fields.get("skills"));
        options.static_system_prompt |= fields.get("excludeDynamicSections") == Some(&true.into());
        self.options = Some(options);
        if fields.get("forwardSubagentText") == Some(&true.into()) {
            self.face.shown.agent_text = true;
            self.translator.show(self.face.shown);
        }
        Ok(json!({
            "commands": self.skills.described(),
            "output_style": "default",
            "available_output_styles": ["default"],
            "models": [{"value": self.facts.model, "displayName": self.facts.model, "description": ""}],
            "account": {},
            "agents": self.facts.described_agents(),
            "hook_on_failure_supported": true,
            "pid": self.pid,
        }))
    }

    /// Registers the callbacks of the program. Events that never fire here are of no interest; what has
    /// another shape is refused, since a guard could be lost with it.
    fn with_hooks(
        &self,
        mut options: SessionOptions,
        hooks: Option<&Value>,
    ) -> Result<SessionOptions, String> {
        let none = Map::new();
        let hooks = match hooks {
            None | Some(Value::Null) => &none,
            Some(hooks) => hooks.as_object().ok_or("`hooks` is not an object")?,
        };
        for (name, matchers) in hooks {
            let Ok(event) = serde_json::from_value::<HookEvent>(name.as_str().into()) else {
                continue;
            };
            let matchers = matchers.as_array().ok_or(format!("`hooks.{name}` is not a list"))?;
            for matcher in matchers {
                let pattern = matcher["matcher"].as_str().unwrap_or_default();
                let seconds = matcher["timeout"].as_f64().filter(|it| 0.0 < *it && *it < 1e6);
                let limit = Duration::from_secs_f64(seconds.unwrap_or(CALLBACK_SECONDS));
                let on_failure = matcher["onFailure"].as_str().unwrap_or("continue");
                let callbacks = matcher["hookCallbackIds"].as_array();
                for callback in callbacks.ok_or(format!("`hooks.{name}` has no hookCallbackIds"))? {
                    let callback = callback.as_str().ok_or("the id of a callback is not a text")?;
                    let (host, shown) = (self.host.clone(), self.shown_calls.clone());
                    let hook = Arc::new(HostHook::new(host, shown, callback));
                    // No failure holds the end of a run up.
                    let is_end = matches!(event, HookEvent::Stop | HookEvent::SubagentStop);
                    let added = if on_failure == "continue" || is_end {
                        options.hook(event, pattern, limit, hook)
                    } else {
                        options.guarding_hook(event, pattern, limit, hook)
                    };
                    options = added.map_err(|it| it.to_string())?;
                }
            }
        }
        Ok(options)
    }
}
