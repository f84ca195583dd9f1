//! What the server counts, as Prometheus reads it. Numbers alone: no text of any conversation.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
};

use ennead_runtime::event::Event;

/// The counters of a server.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<BTreeMap<Series, u64>>);

/// A counter: its name, and the value of its label.
type Series = (&'static str, &'static str, String);

impl Metrics {
    pub(crate) fn add(&self, name: &'static str, label: &'static str, value: &str, n: u64) {
        // One step, so a panic elsewhere spoils nothing.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *all.entry((name, label, value.to_owned())).or_default() += n;
    }

    /// A request was refused with this code.
    pub(crate) fn refused(&self, code: &'static str) {
        self.add("ennead_refusals_total", "code", code, 1);
    }

    /// Counts what a session or one of its sub-agents did.
    pub(crate) fn observe(&self, event: &Event) {
        let one = |name, label, value: &str| self.add(name, label, value, 1);
        match event {
            Event::RunFinished { reason, .. } => one("ennead_runs_total", "end", reason),
            Event::RunFailed { .. } => one("ennead_runs_total", "end", "failed"),
            Event::TurnFinished { .. } => one("ennead_turns_total", "", ""),
            Event::StepStarted { step, .. } => one("ennead_steps_total", "step", step.name()),
            Event::MessageCompleted { usage, .. } => {
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
                Event::RunFinished { .. } | Event::RunFailed { .. } => {}
                event => self.observe(event),
            },
            _ => {}
        }
    }

    /// The text that Prometheus reads, with these gauges after the counters.
    pub(crate) fn render(&self, gauges: &[(&'static str, &'static str, String, f64)]) -> String {
        let mut text = String::new();
        let mut last = "";
        {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            for ((name, label, value), n) in &*all {
                head(&mut text, &mut last, name, "counter");
                line(&mut text, name, label, value, *n as f64);
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
        // Writing to a string does not fail.
        let _written = writeln!(text, "# TYPE {name} {kind}");
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
