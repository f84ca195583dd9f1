//! What the server counts, as Prometheus reads it. Numbers alone: no text of any conversation.

use std::{collections::BTreeMap, fmt::Write, sync::Mutex};

use ennead_runtime::event::Event;

use ennead_tools::locked::Locked as _;

/// The counter of money. It is counted in millionths of a dollar and shown in dollars.
pub(crate) const COST: &str = "ennead_cost_usd_total";

/// Every family of counters and gauges, and what it is in words.
const FAMILIES: &[(&str, &str)] = &[
    ("ennead_actors", "Actors that live, by kind."),
    ("ennead_agents_started_total", "Sub-agents that were started."),
    ("ennead_approvals_asked_total", "Questions that were asked about calls."),
    ("ennead_approvals_open", "Questions that wait for an answer."),
    ("ennead_approvals_settled_total", "Questions that were settled, by what settled them."),
    (
        "ennead_cache_drops_total",
        "Requests that read clearly less from the provider's cache than lay there.",
    ),
    (COST, "Cost of ended runs in US dollars, as far as prices are known."),
    ("ennead_decisions_total", "Decisions about calls, by what was decided."),
    (
        "ennead_events_missed_total",
        "Events that were missed because they came faster than they were taken.",
    ),
    ("ennead_mailbox_depth", "Messages that wait in the mailboxes of actors, by kind of actor."),
    ("ennead_model_retries_total", "Requests to a model that were sent again, by error."),
    (
        "ennead_parked_calls_total",
        "Requests to a model that were held back by what sessions share.",
    ),
    ("ennead_refusals_total", "Requests that were refused, by code."),
    ("ennead_runs_queued", "Accepted runs that have not begun."),
    ("ennead_runs_total", "Runs that have ended, by end; those of sub-agents are left out."),
    ("ennead_runs_waiting_for_their_turn", "Runs that wait until fewer are under way."),
    ("ennead_sessions", "Sessions that are known, by state."),
    ("ennead_shaper_saved_tokens_total", "Tokens that shapers took out of contexts, by shaper."),
    ("ennead_shapers_fired_total", "Times that a shaper changed a context, by shaper."),
    ("ennead_steps_total", "Steps of turns that were begun, by step."),
    ("ennead_streams", "Streams, waits for an outcome and transcripts that are being sent."),
    ("ennead_tokens_total", "Tokens that providers reported, by kind."),
    ("ennead_tool_calls_total", "Calls of tools that have ended, by outcome."),
    ("ennead_tree_readers", "Streams of the tree of actors that are open."),
    ("ennead_turns_total", "Turns that have ended."),
    ("process_resident_memory_bytes", "Memory of the process that is in use, in bytes."),
];

/// The counters of a server.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<BTreeMap<Series, u64>>);

/// A counter: its name, and the value of its label.
type Series = (&'static str, &'static str, String);

impl Metrics {
    pub(crate) fn add(&self, name: &'static str, label: &'static str, value: &str, n: u64) {
        // One step, so a panic elsewhere spoils nothing.
        let mut all = self.0.locked();
        *all.entry((name, label, value.to_owned())).or_default() += n;
    }

    /// Counts a request that was refused with this code.
    pub(crate) fn refused(&self, code: &'static str) {
        self.add("ennead_refusals_total", "code", code, 1);
    }

    /// Counts what a session or one of its sub-agents did.
    pub(crate) fn observe(&self, event: &Event) {
        let one = |name, label, value: &str| self.add(name, label, value, 1);
        match event {
            Event::RunFinished { reason, .. } => one("ennead_runs_total", "end", reason),
            Event::RunLost { .. } => one("ennead_runs_total", "end", "failed"),
            Event::TurnFinished { .. } => one("ennead_turns_total", "", ""),
            Event::StepStarted { step, .. } => one("ennead_steps_total", "step", step.name()),
            Event::MessageCompleted { usage, .. } | Event::TokensUsed { usage } => {
                let kinds = [
                    ("input", usage.input_tokens),
                    ("output", usage.output_tokens),
                    ("cache_read", usage.cache_read_input_tokens),
                    ("cache_write", usage.cache_creation_input_tokens),
                ];
                for (kind, n) in kinds {
                    self.add("ennead_tokens_total", "kind", kind, n);
                }
            }
            Event::ShaperApplied { stage, fired: true, tokens_before, tokens_after } => {
                one("ennead_shapers_fired_total", "shaper", stage);
                let saved = tokens_before.saturating_sub(*tokens_after).0;
                self.add("ennead_shaper_saved_tokens_total", "shaper", stage, saved);
            }
            Event::PermissionAsked { .. } => one("ennead_approvals_asked_total", "", ""),
            Event::PermissionSettled { by, .. } => {
                one("ennead_approvals_settled_total", "by", by.code());
            }
            Event::PermissionDecided { allowed, .. } => {
                let value = if *allowed { "allowed" } else { "denied" };
                one("ennead_decisions_total", "decision", value);
            }
            Event::ToolFinished { is_error, .. } => {
                let value = if *is_error { "error" } else { "ok" };
                one("ennead_tool_calls_total", "outcome", value);
            }
            Event::ModelRetry { error, .. } => one("ennead_model_retries_total", "error", error),
            Event::PromptCacheDropped { .. } => one("ennead_cache_drops_total", "", ""),
            Event::Parked { .. } => one("ennead_parked_calls_total", "", ""),
            Event::AgentStarted { .. } => one("ennead_agents_started_total", "", ""),
            Event::Agent { event, .. } => match &**event {
                // Runs of sub-agents are not what was asked for.
                Event::RunFinished { .. } | Event::RunLost { .. } => {}
                event => self.observe(event),
            },
            _ => {}
        }
    }

    /// Writes the text that Prometheus reads, with these gauges after the counters.
    pub(crate) fn render(&self, gauges: &[(&'static str, &'static str, String, f64)]) -> String {
        let mut text = String::new();
        let mut last = "";
        {
            let all = self.0.locked();
            for ((name, label, value), n) in &*all {
                head(&mut text, &mut last, name, "counter");
                let n = if *name == COST { *n as f64 / 1e6 } else { *n as f64 };
                line(&mut text, name, label, value, n);
            }
        }
        for (name, label, value, n) in gauges {
            head(&mut text, &mut last, name, "gauge");
            line(&mut text, name, label, value, *n);
        }
        text
    }
}

fn head(text: &mut String, last: &mut &'static str, name: &'static str, kind: &str) {
    if *last != name {
        let help = FAMILIES.iter().find(|(of, _)| *of == name).map_or("", |(_, help)| help);
        // Writing to a string does not fail.
        let _written = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        *last = name;
    }
}

fn line(text: &mut String, name: &str, label: &str, value: &str, n: f64) {
    let _written = match label {
        "" => writeln!(text, "{name} {n}"),
        _ => writeln!(text, "{name}{{{label}=\"{}\"}} {n}", escaped(value)),
    };
}

/// The value of a label, as the format wants it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
