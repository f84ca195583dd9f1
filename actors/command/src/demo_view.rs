//! Where each agent of a demonstration is, as text: lines to read on, or a table to draw again.
//!
//! Pure: events go in, text comes out. The one that draws decides when.

use std::fmt::Write;

use ennead_runtime::{event::Event, ids::AgentId, output::terminal::clean_line, step::Step};

/// Rows that a table shows; what has ended gives way first.
const MAX_ROWS: usize = 20;

/// Characters of a line.
const MAX_CHARS: usize = 78;

/// The agents of a survey and where they are.
#[derive(Clone, Debug)]
pub struct View {
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    agent: Option<AgentId>,
    name: String,
    turn: u32,
    step: Option<Step>,
    /// Tools that run now.
    tools: Vec<String>,
    end: Option<String>,
    /// Turn, step and end as they were last printed.
    last_shown: Option<(u32, Option<Step>, bool)>,
}

impl Row {
    fn new(agent: Option<AgentId>, name: String) -> Self {
        Self { agent, name, turn: 0, step: None, tools: Vec::new(), end: None, last_shown: None }
    }

    fn observe(&mut self, event: &Event) {
        match event {
            Event::TurnStarted { turn } => {
                self.turn = *turn;
                self.step = None;
            }
            Event::StepStarted { turn, step } => {
                self.turn = *turn;
                self.step = Some(*step);
                self.tools.clear();
            }
            Event::ToolStarted { tool, .. } => self.tools.push(tool.to_string()),
            Event::ToolFinished { tool, .. } => {
                if let Some(at) = self.tools.iter().position(|it| it == tool.as_str()) {
                    self.tools.remove(at);
                }
            }
            Event::RunFinished { reason, .. } => self.end = Some((*reason).to_owned()),
            Event::RunLost { reason, .. } => self.end = Some(format!("failed: {reason}")),
            _ => {}
        }
    }

    fn line(&self) -> String {
        let mut line = format!("{:<24} turn {}", self.name, self.turn);
        // Writing to a string does not fail.
        let _written = match (&self.end, self.step) {
            (Some(end), _) => write!(line, ", ended: {end}"),
            (None, Some(step)) => write!(line, ", step {} {}", step.number(), step.name()),
            (None, None) => write!(line, ", begins"),
        };
        if !self.tools.is_empty() && self.end.is_none() {
            let _written = write!(line, ": {}", counted(&self.tools));
        }
        cut(&line, MAX_CHARS)
    }
}

impl Default for View {
    fn default() -> Self {
        Self::new()
    }
}

impl View {
    /// Makes the view of a coordinator that has not begun.
    pub fn new() -> Self {
        Self { rows: vec![Row::new(None, "coordinator".into())] }
    }

    /// Updates the rows by an event of the session.
    pub fn observe(&mut self, event: &Event) {
        match event {
            Event::AgentStarted { agent, description, .. } => {
                self.rows.push(Row::new(Some(agent.clone()), cut(description, 24)));
            }
            Event::Agent { agent, event } => {
                let row = self.rows.iter_mut().find(|it| it.agent.as_ref() == Some(agent));
                if let Some(row) = row {
                    row.observe(event);
                }
            }
            event => self.rows[0].observe(event),
        }
    }

    /// Returns a line for each agent that is at another step than at the last call. Step 8 is shown with the first tool
    /// that runs.
    pub fn changed(&mut self) -> Vec<String> {
        let mut changed = Vec::new();
        for row in &mut self.rows {
            let at = (row.turn, row.step, row.end.is_some());
            let waits = match row.step {
                Some(step) => step == Step::ToolExecution && row.tools.is_empty(),
                // Between turns; the next step is printed at once.
                None => 0 < row.turn,
            };
            if row.last_shown != Some(at) && (!waits || row.end.is_some()) {
                row.last_shown = Some(at);
                changed.push(row.line());
            }
        }
        changed
    }

    /// Lists all agents; those that work are shown first when there are many.
    pub fn table(&self) -> Vec<String> {
        let n_left_out = self.rows.len().saturating_sub(MAX_ROWS);
        let mut n_hidden = 0;
        let mut lines: Vec<String> = Vec::new();
        for row in &self.rows {
            if n_hidden < n_left_out && row.end.is_some() {
                n_hidden += 1;
            } else {
                lines.push(row.line());
            }
        }
        n_hidden += lines.len().saturating_sub(MAX_ROWS);
        lines.truncate(MAX_ROWS);
        if 0 < n_hidden {
            lines.push(format!("and {n_hidden} more"));
        }
        lines
    }
}

/// `Grep x2, Read` for tools that run side by side.
fn counted(tools: &[String]) -> String {
    let mut counts: Vec<(&str, u32)> = Vec::new();
    for tool in tools {
        match counts.iter_mut().find(|(name, _)| name == tool) {
            Some((_, n)) => *n += 1,
            None => counts.push((tool, 1)),
        }
    }
    let shown = counts.iter().map(|(name, n)| match n {
        1 => (*name).to_owned(),
        n => format!("{name} x{n}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// The first `max` characters of what a terminal may show of it.
fn cut(text: &str, max: usize) -> String {
    let text = clean_line(text);
    match text.char_indices().nth(max) {
        Some(_) => text.chars().take(max - 1).chain(['…']).collect(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn started(agent: &str) -> Event {
        Event::AgentStarted {
            agent: agent.into(),
            call: "c".into(),
            description: format!("Survey {agent}").into(),
            in_background: false,
        }
    }

    fn of(agent: &str, event: Event) -> Event {
        Event::Agent { agent: agent.into(), event: Arc::new(event) }
    }

    // REQ: AGT-2
    #[test]
    fn each_agent_is_shown_where_it_is() {
        let mut view = View::new();
        view.observe(&Event::StepStarted { turn: 2, step: Step::ToolExecution });
        assert_eq!(view.changed(), Vec::<String>::new());
        for call in ["c", "d"] {
            view.observe(&Event::ToolStarted { call: call.into(), tool: "Agent".into() });
        }
        view.observe(&started("src"));
        view.observe(&of("src", Event::StepStarted { turn: 1, step: Step::ModelCall }));
        let lines = view.changed();
        assert_eq!(
            lines,
            [
                "coordinator              turn 2, step 8 tool_execution: Agent x2",
                "Survey src               turn 1, step 5 model_call",
            ]
        );
        assert_eq!(view.changed(), Vec::<String>::new());
        view.observe(&of("src", Event::RunFinished { run: "r".into(), reason: "done" }));
        assert_eq!(view.changed(), ["Survey src               turn 1, ended: done"]);
    }

    #[test]
    fn many_agents_leave_room_for_those_at_work() {
        let mut view = View::new();
        for n in 0..30 {
            view.observe(&started(&format!("a{n}")));
        }
        for n in 0..15 {
            let end = Event::RunFinished { run: "r".into(), reason: "done" };
            view.observe(&of(&format!("a{n}"), end));
        }
        let table = view.table();
        assert_eq!(table.len(), 21);
        assert_eq!(table[20], "and 11 more");
        assert_eq!(table.iter().filter(|it| it.contains("begins")).count(), 16);
    }
}
