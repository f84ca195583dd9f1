//! The order of events, as the documentation of the front door draws it: checked on every log of events.

use std::collections::{BTreeMap, BTreeSet};

use ennead::{Event, data::AgentId};
/// What the documentation shows.
const TREE: &str = include_str!("../../actors/src/front_door/order.txt");

/// Where the tree has an event.
#[derive(Clone, Debug)]
struct Place {
    /// The event below which it is; `None`: it comes at any time.
    parent: Option<String>,
    /// Steps in which it comes; empty: all.
    steps: BTreeSet<u8>,
}

/// Returns the places of all events, by their names in JSON.
fn places() -> BTreeMap<String, Place> {
    let mut places = BTreeMap::new();
    let mut open: Vec<(usize, String)> = Vec::new();
    for line in TREE.lines() {
        let depth = line.chars().take_while(|it| !it.is_alphabetic()).count();
        let line: String = line.chars().skip(depth).collect();
        let (names, note) = line.split_once("  ").unwrap_or((&line, ""));
        let note = note.trim();
        let steps = note.split_once(':').map_or(note, |(steps, _)| steps);
        let steps = steps.strip_prefix("steps ").or_else(|| steps.strip_prefix("step "));
        let steps = steps.unwrap_or_default().split(", ").filter_map(|it| it.parse().ok());
        open.retain(|(above, _)| *above < depth);
        let parent = open.last().map(|(_, name)| name.clone());
        for name in names.split(", ") {
            let place = Place { parent: parent.clone(), steps: steps.clone().collect() };
            let again = places.insert(snake(name), place);
            assert!(again.is_none(), "{name} stands twice in the tree");
        }
        open.push((depth, snake(names)));
    }
    places
}

/// Returns the name in JSON of a variant.
fn snake(name: &str) -> String {
    if name == "RunLost" {
        return "run_failed".to_owned();
    }
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// Checks the events of a session, run by run. A listener that is slow gets only the latest note of a kind, so
/// nothing is known of the order of a run of which it did not get every event.
#[derive(Debug, Default)]
pub(crate) struct EventOrder {
    of_run: Vec<Event>,
    is_slow: bool,
    checker: Checker,
}

impl EventOrder {
    /// Takes the next event; `is_whole` is false if it stands for others.
    pub(crate) fn take(&mut self, event: &Event, is_whole: bool) {
        self.is_slow |= !is_whole;
        self.of_run.push(event.clone());
        if !matches!(event, Event::RunFinished { .. } | Event::RunLost { .. }) {
            return;
        }
        let events = std::mem::take(&mut self.of_run);
        if std::mem::take(&mut self.is_slow) {
            self.checker = Checker::default();
        } else {
            events.iter().for_each(|it| self.checker.take(it));
        }
    }
}

/// Checks the events of a session one after the other.
#[derive(Debug)]
struct Checker {
    places: BTreeMap<String, Place>,
    /// Names of what is open; empty between runs; `None`: the log began or has a hole in a run.
    open: Option<BTreeSet<&'static str>>,
    /// The step that was reached, if it is known.
    step: Option<u8>,
    agents: BTreeMap<AgentId, Checker>,
}

impl Default for Checker {
    fn default() -> Self {
        Self { places: places(), open: None, step: None, agents: BTreeMap::new() }
    }
}

impl Checker {
    fn take(&mut self, event: &Event) {
        let json = serde_json::to_value(event).unwrap();
        let name = json["type"].as_str().unwrap();
        let place = self.places.get(name).unwrap_or_else(|| panic!("{name} is in the tree"));
        if let Event::Lagged { .. } = event {
            self.open = None;
        }
        if let (Some(open), Some(parent)) = (&self.open, &place.parent) {
            assert!(open.contains(parent.as_str()), "{name} outside of {parent}: {json}");
            let fits =
                self.step.is_none_or(|it| place.steps.is_empty() || place.steps.contains(&it));
            assert!(fits, "{name} in step {:?}: {json}", self.step);
        }
        match event {
            Event::RunStarted { .. } => {
                assert!(self.open.as_ref().is_none_or(BTreeSet::is_empty), "{json}: one is open");
                self.open = Some(BTreeSet::from(["run_started"]));
            }
            Event::TurnStarted { .. } => self.begin("turn_started"),
            Event::StepStarted { step, .. } => {
                self.begin("step_started");
                self.step = Some(step.number());
            }
            Event::TurnFinished { .. } => self.end(&["turn_started", "step_started"]),
            Event::RunFinished { .. } | Event::RunLost { .. } => {
                self.open = self.open.take().map(|_| BTreeSet::new());
                self.step = None;
            }
            Event::Agent { agent, event } => {
                self.agents.entry(agent.clone()).or_default().take(event);
            }
            _ => {}
        }
    }

    fn begin(&mut self, name: &'static str) {
        if let Some(open) = &mut self.open {
            open.insert(name);
        }
    }

    fn end(&mut self, names: &[&str]) {
        self.step = None;
        if let Some(open) = &mut self.open {
            open.retain(|it| !names.contains(it));
        }
    }
}

// REQ: MDL-3
#[test]
fn tree_of_events_in_the_documentation_has_every_event() {
    let source = include_str!("../../runtime/src/event.rs");
    let (_, events) = source.split_once("pub enum Event {\n").unwrap();
    let (events, _) = events.split_once("\n}\n").unwrap();
    let names = events.lines().filter_map(|it| it.strip_prefix("    ")?.strip_suffix(" {"));
    let names: BTreeSet<String> = names.filter(|it| !it.starts_with(' ')).map(snake).collect();
    assert!(30 < names.len(), "{names:?}");
    assert_eq!(names, places().into_keys().collect());
}
