//! The spans that a subscriber of `tracing` sees.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex},
};

use serde_json::json;
use tracing::{
    Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{
    layer::{Context, Layer, SubscriberExt},
    registry::LookupSpan,
};

use crate::support::{
    scripted::{TestDirs, call, model, text},
    settings::SettingsJson as _,
};

/// Keeps the path of every span: names and fields, the outermost first.
#[derive(Clone, Default)]
struct Paths(Arc<Mutex<BTreeSet<String>>>);

/// The name of a span and its fields.
struct ShownSpan(String);

impl Visit for ShownSpan {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!(" {}={value:?}", field.name());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0 += &format!(" {}={value}", field.name());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Paths {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let mut shown = ShownSpan(span.name().to_owned());
        attributes.record(&mut shown);
        if span.name() == "turn" || span.name() == "session" {
            // Their ids are drawn.
            shown.0 = span.name().to_owned();
        }
        let above = span.parent();
        let above = above.and_then(|it| it.extensions().get::<ShownSpan>().map(|it| it.0.clone()));
        let path = above.map_or(shown.0.clone(), |above| format!("{above} > {}", shown.0));
        self.0.lock().unwrap().insert(path.clone());
        span.extensions_mut().insert(ShownSpan(path));
    }
}

#[test]
fn spans_nest_as_the_work_does() {
    let paths = Paths::default();
    // Next to a second one: what the only subscriber there is sees, threads of other tests decide.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let subscriber = tracing_subscriber::registry().with(paths.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tracing::subscriber::with_default(subscriber, || {
        runtime.block_on(async {
            let place = TestDirs::new();
            let hook = json!([{ "hooks": [{ "type": "command", "command": "true" }] }]);
            let options = place.session().setting("hooks", json!({ "PreToolUse": hook }));
            let model = model(|asked| match asked.n_answers() {
                0 => call("t1", "Bash", json!({ "command": "echo seen" })),
                _ => text("done"),
            });
            place.run(&model, options.allow("Bash").unwrap()).await;
        });
    });
    let paths = paths.0.lock().unwrap();
    for expected in [
        "session",
        "session > turn",
        "session > turn > step step.number=1",
        "session > turn > step step.number=9",
        "session > turn > step step.number=7 > hook hook.event=PreToolUse",
        "session > turn > step step.number=8 > tool tool.name=Bash tool_use.id=t1",
    ] {
        assert!(paths.contains(expected), "{expected} is not among {paths:#?}");
    }
    let calls = "session > turn > step step.number=5 > model_call gen_ai.request.model=";
    assert!(paths.iter().any(|it| it.starts_with(calls)), "{paths:#?}");
    assert!(!paths.iter().any(|it| it.contains("seen")), "text of a message: {paths:#?}");
}
