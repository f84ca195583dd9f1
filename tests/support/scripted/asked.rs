//! A request to the scripted model.

use serde_json::Value;

/// What the model was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The request body; null if it is not JSON that can be read.
    pub(crate) body: Value,
    /// The request body as it came.
    pub(crate) text: String,
    /// The lines in front of the body: as they came over a socket, else the address and the headers.
    pub(crate) head: String,
    /// The number of the request to this model, from 1.
    pub(crate) number: usize,
}

impl Asked {
    pub(super) fn new(text: String, head: String, number: usize) -> Self {
        let body = serde_json::from_str(&text).unwrap_or_default();
        Self { body, text, head, number }
    }

    /// Whether a stream is asked for.
    pub(crate) fn streamed(&self) -> bool {
        self.body["stream"] == true
    }

    /// The model that is asked for.
    pub(crate) fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// Returns the number of answers of the model that the conversation holds.
    pub(crate) fn n_answers(&self) -> usize {
        self.messages().iter().filter(|it| it["role"] == "assistant").count()
    }

    fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    fn blocks(&self) -> impl Iterator<Item = &Value> {
        let user = self.messages().iter().filter(|it| it["role"] == "user");
        user.flat_map(|it| it["content"].as_array().into_iter().flatten())
    }

    /// Everything said in the role of the user, results left out.
    pub(crate) fn user(&self) -> String {
        let plain = self.messages().iter().filter(|it| it["role"] == "user");
        let plain = plain.filter_map(|it| it["content"].as_str().map(str::to_owned));
        let texts = self.blocks().filter_map(|it| it["text"].as_str().map(str::to_owned));
        plain.chain(texts).collect::<Vec<_>>().join("\n")
    }

    /// Returns the texts of the system prompt, one per line.
    pub(crate) fn system(&self) -> String {
        match &self.body["system"] {
            Value::String(text) => text.clone(),
            other => {
                let texts = other.as_array().into_iter().flatten();
                texts.filter_map(|it| it["text"].as_str()).collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// Whether a sub-agent asks.
    pub(crate) fn is_agent(&self) -> bool {
        self.system().contains("You are a sub-agent")
    }

    /// The tools that are offered.
    pub(crate) fn tools(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array().into_iter().flatten();
        tools.filter_map(|it| it["name"].as_str().map(str::to_owned)).collect()
    }

    /// Results in it: call, text, whether it failed.
    pub(crate) fn results(&self) -> Vec<(String, String, bool)> {
        let results = self.blocks().filter(|it| it["type"] == "tool_result");
        results
            .map(|it| {
                let text = match &it["content"] {
                    Value::String(text) => text.clone(),
                    parts => {
                        let parts = parts.as_array().into_iter().flatten();
                        parts.filter_map(|it| it["text"].as_str()).collect()
                    }
                };
                let id = it["tool_use_id"].as_str().unwrap_or_default().to_owned();
                (id, text, it["is_error"] == true)
            })
            .collect()
    }

    /// The text of one result.
    #[track_caller]
    pub(crate) fn result(&self, id: &str) -> String {
        let found = self.results().into_iter().find(|it| it.0 == id);
        found.unwrap_or_else(|| panic!("no result of {id} in {:#}", self.body)).1
    }
}
