//! What the program sees of the MCP servers, and how it switches them off and on.

use ennead::{SessionHandle, data::McpServerStatus};
use ennead_runtime::mcp::{names::prefix, state::ServerState};
use serde_json::{Map, Value, json};

use super::Face;

impl Face {
    /// Lists the MCP servers, those in the program first, and their states.
    pub(super) fn servers(&self) -> Vec<Value> {
        let own = self.session.iter().flat_map(SessionHandle::mcp_servers).map(|server| {
            let prefix = prefix(&server.name);
            let offered = |it: &&String| self.facts.tools.contains(it);
            let tools = server.tools.iter().filter(offered);
            let tools = tools.filter_map(|it| it.strip_prefix(&prefix));
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
        let mut servers: Vec<Value> =
            self.facts.servers.iter().cloned().chain(pending).chain(own).collect();
        let disabled = &self.facts.disabled_servers;
        let is_disabled =
            |it: &&mut Value| it["name"].as_str().is_some_and(|it| disabled.contains(it));
        for server in servers.iter_mut().filter(is_disabled) {
            server["status"] = "disabled".into();
        }
        servers
    }

    /// Switches a server off, or on again. Its tools leave the next request, or come back with it; its connection
    /// stays.
    pub(super) fn toggle_server(&mut self, fields: &Map<String, Value>) -> Result<Value, String> {
        let name = fields.get("serverName").and_then(Value::as_str);
        let name = name.ok_or("mcp_toggle names no serverName")?;
        let enabled = fields.get("enabled").and_then(Value::as_bool);
        let enabled = enabled.ok_or("mcp_toggle does not say whether the server is `enabled`")?;
        if !self.has_server(name) {
            return Err(format!("there is no MCP server `{name}`"));
        }
        let changes = if enabled {
            self.facts.disabled_servers.remove(name)
        } else {
            self.facts.disabled_servers.insert(name.to_owned())
        };
        if let (true, Some(session)) = (changes, &self.session) {
            self.withhold_servers(session);
        }
        Ok(json!({}))
    }

    /// Has a server connected again that failed or was dropped; the request is answered once the server is. One that
    /// runs in the program cannot be lost.
    pub(super) fn reconnect_server(&mut self, id: &str, name: Option<&str>) {
        let Some(name) = name else {
            return self.answer(id, Err("mcp_reconnect names no serverName".into()));
        };
        if let Some(server) = self.facts.servers.iter().find(|it| it["name"] == name) {
            let failed = || format!("MCP server `{name}` runs in the program, and failed");
            let is_there = server["status"] == "connected";
            return self.answer(id, is_there.then(|| json!({})).ok_or_else(failed));
        }
        if !self.has_server(name) {
            return self.answer(id, Err(format!("there is no MCP server `{name}`")));
        }
        let (id, name) = (id.to_owned(), name.to_owned());
        match self.session.clone() {
            Some(session) => self.reconnects.running.push(Box::pin(async move {
                let server = session.reconnect_server(&name).await;
                (id, connected(&name, server))
            })),
            None => self.reconnects.early.push((id, name)),
        }
    }

    /// Begins what was asked for before there was a session.
    pub(super) fn begin_reconnects(&mut self) {
        for (id, name) in std::mem::take(&mut self.reconnects.early) {
            self.reconnect_server(&id, Some(&name));
        }
    }

    /// Answers what was asked of a session that is not opened.
    pub(super) fn refuse_reconnects(&mut self, why: &str) {
        for (id, _) in std::mem::take(&mut self.reconnects.early) {
            self.answer(&id, Err(why.to_owned()));
        }
    }

    /// Takes over the names of tools that servers have given the session since it was opened.
    pub(super) fn learn_tools(&mut self) {
        let servers = self.session.iter().flat_map(SessionHandle::mcp_servers);
        for tool in servers.flat_map(|it| it.tools.to_vec()) {
            if !self.facts.tools.contains(&tool) && !self.facts.denied.contains(&tool) {
                self.facts.tools.push(tool);
            }
        }
    }

    /// Withholds the tools of the servers that are switched off from the session.
    pub(super) fn withhold_servers(&self, session: &SessionHandle) {
        session.disable_servers(self.facts.disabled_servers.iter().cloned().collect());
    }

    /// Returns whether a server has this name. Before the session is opened only those are known that the program gave.
    fn has_server(&self, name: &str) -> bool {
        let mut given = self.options.iter().chain(&self.opened_with).flat_map(|it| &it.mcp_servers);
        given.any(|it| *it.name == *name) || self.servers().iter().any(|it| it["name"] == name)
    }
}

/// Returns the answer to a request by how far its server is.
fn connected(name: &str, server: Option<McpServerStatus>) -> Result<Value, String> {
    let server = server.ok_or_else(|| format!("there is no MCP server `{name}`"))?;
    if server.state == ServerState::Connected {
        return Ok(json!({}));
    }
    let why = server.error.as_deref().unwrap_or("it is not ready");
    Err(format!("MCP server `{name}` failed again: {why}"))
}
