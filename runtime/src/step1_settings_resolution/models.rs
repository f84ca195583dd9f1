//! What a session's settings make of the catalogue: names for names, a user's own facts, and the
//! limits that hold where none is set.

use std::sync::Arc;

use serde_json::Value;

use super::{Settings, ennead_section};
use crate::{approval::classifier::FAST_MODEL, catalogue::Catalogue};

/// Variables that say what an alias represents.
const ALIASES: [(&str, &str); 4] = [
    ("ANTHROPIC_DEFAULT_OPUS_MODEL", "opus"),
    ("ANTHROPIC_DEFAULT_SONNET_MODEL", "sonnet"),
    ("ANTHROPIC_DEFAULT_HAIKU_MODEL", "haiku"),
    ("ANTHROPIC_DEFAULT_FABLE_MODEL", "fable"),
];

/// Puts what is known about the model into the settings, before the keys that set limits. Gives what
/// of the catalogue was used.
pub(super) fn apply(
    merged: &Value,
    known: &Arc<Catalogue>,
    settings: &mut Settings,
    warnings: &mut Vec<String>,
) -> Catalogue {
    let variable = |name: &str| {
        let value = merged.get("env")?.get(name)?.as_str()?;
        Some(value).filter(|it| !it.is_empty())
    };
    let mut over = merged.get("ennead").map(ennead_section::overrides).unwrap_or_default();
    for (name, alias) in ALIASES {
        if let (Some(model), false) = (variable(name), over.aliases.contains_key(alias)) {
            over.aliases.insert(alias.into(), model.into());
        }
    }
    settings.models = Arc::clone(known);
    if !over.models.is_empty() || !over.aliases.is_empty() {
        let (models, wrong) = known.with(&over);
        settings.models = Arc::new(models);
        warnings.extend(wrong.iter().map(|it| format!("ennead.catalogue: {it}")));
    }
    let given = std::mem::take(&mut settings.model);
    settings.model = settings.models.resolve(&given).to_owned();
    // A fast model is asked for what is judged or put together aside. What an earlier version recorded knows none, and
    // nothing is added to that.
    let knows_fast = known.find(FAST_MODEL).is_some() || known.resolve(FAST_MODEL) != FAST_MODEL;
    let fast = knows_fast.then_some(FAST_MODEL);
    let used = settings.models.excerpt(others(merged).chain(fast).chain([given.as_str()]));
    if let Some(facts) = settings.models.find(&settings.model) {
        settings.context_window = facts.window;
        settings.model_max_output_tokens = facts.max_output;
        settings.max_output_tokens = facts.default_output;
    }
    let ceiling = variable("CLAUDE_CODE_MAX_OUTPUT_TOKENS").and_then(|it| it.parse().ok());
    settings.max_output_tokens = ceiling.filter(|it| 0 < *it).unwrap_or(settings.max_output_tokens);
    used
}

/// Names of the model that may decide about calls.
fn classifiers(merged: &Value) -> impl Iterator<Item = &str> {
    let own = merged.get("ennead").and_then(|it| it.get("approvals"));
    let own = own.and_then(|it| it.get("classifier_model")).and_then(Value::as_str);
    let mode = merged.pointer("/permissions/defaultMode").and_then(Value::as_str);
    let fast = (mode == Some("auto")).then_some(FAST_MODEL);
    own.into_iter().chain(fast)
}

/// Names of models that may be asked in the first one's place, with or without a provider.
fn others(merged: &Value) -> impl Iterator<Item = &str> {
    let lists = [merged.get("fallbackModel"), merged.pointer("/ennead/fallback")];
    let all = lists.into_iter().flatten().filter_map(Value::as_array).flatten();
    let all = all.filter_map(|it| it.as_str().or_else(|| it.get("model")?.as_str()));
    all.chain(classifiers(merged)).flat_map(|name| {
        let own_name = name.split_once('/').map(|(_, model)| model);
        [Some(name), own_name].into_iter().flatten()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{
        catalogue::Catalogue,
        permission::Scope,
        step1_settings_resolution::{LayerText, Resolved, merge, merge_with},
    };

    fn resolved(given: serde_json::Value) -> Resolved {
        let text = given.to_string();
        let layer = LayerText { scope: Scope::User, source: "user".into(), text };
        merge_with(&[layer], &Catalogue::built_in().into())
    }

    /// Model, window, highest and usual output.
    #[track_caller]
    fn check(given: serde_json::Value, model: &str, limits: (u64, u32, u32)) {
        let settings = resolved(given).settings;
        let found =
            (settings.context_window, settings.model_max_output_tokens, settings.max_output_tokens);
        assert_eq!((settings.model.as_str(), found), (model, limits));
    }

    // REQ: CTX-4
    #[test]
    fn limits_are_those_of_the_model_unless_they_are_set() {
        let known = (200_000, 64_000, 32_000);
        check(json!({}), "claude-sonnet-5", (1_000_000, 128_000, 32_000));
        check(json!({"model": "haiku"}), "claude-haiku-4-5", known);
        check(json!({"model": "nobody-knows"}), "nobody-knows", known);
        check(
            json!({"model": "opus", "ennead": {"contextWindow": 50_000, "maxOutputTokens": 9}}),
            "claude-opus-5",
            (50_000, 128_000, 9),
        );
        let env = json!({"ANTHROPIC_DEFAULT_OPUS_MODEL": "claude-opus-4-5",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "7000"});
        check(json!({"model": "opus", "env": env}), "claude-opus-4-5", (200_000, 64_000, 7_000));
        let mine = json!({"models": {"mine": {"window": 32_000, "max_output": 8_000,
            "default_output": 4_000}}, "aliases": {"fast": "mine"}});
        check(
            json!({"model": "fast", "ennead": {"catalogue": mine}}),
            "mine",
            (32_000, 8_000, 4_000),
        );
    }

    #[test]
    fn facts_of_every_model_that_settings_name_are_kept_for_a_replay() {
        let given = json!({
            "model": "opus",
            "fallbackModel": ["haiku", "nobody-knows"],
            "ennead": {"fallback": ["far/claude-fable-5", {"model": "sonnet"}]},
        });
        let kept = resolved(given).models;
        let names = ["opus", "haiku", "claude-fable-5", "sonnet"];
        assert!(names.iter().all(|it| kept.find(it).is_some()));
        assert_eq!(kept.models().count(), names.len());
        assert!(merge(&[]).models.is_empty());
    }

    // REQ: AGT-4, SES-9
    #[test]
    fn fast_model_is_kept_for_a_replay_and_not_added_to_what_was_recorded_without_it() {
        let kept = resolved(json!({"model": "opus"})).models;
        assert_eq!(kept.resolve("haiku"), "claude-haiku-4-5");
        assert!(kept.find("haiku").is_some());
        let env = json!({"ANTHROPIC_DEFAULT_HAIKU_MODEL": "nobody-knows"});
        let text = json!({"model": "opus", "env": env}).to_string();
        let layer = LayerText { scope: Scope::User, source: "user".into(), text };
        let again =
            |of: &Catalogue| merge_with(std::slice::from_ref(&layer), &of.clone().into()).models;
        for recorded in [again(&Catalogue::built_in()), Catalogue::built_in().excerpt(["opus"])] {
            assert_eq!(again(&recorded), recorded, "as it was recorded");
        }
    }

    #[test]
    fn wrong_facts_are_named_and_the_others_hold() {
        let models = json!({"a": {"window": 10}, "b": {"prices": "free"}, "c": {"window": 99_000}});
        let resolved = resolved(json!({"model": "c", "ennead": {"catalogue": {"models": models}}}));
        assert_eq!(resolved.settings.context_window, 99_000);
        assert_eq!(resolved.warnings.len(), 2, "{:?}", resolved.warnings);
        assert!(
            resolved.warnings[1].starts_with("ennead.catalogue: the catalogue's entry for `b`")
        );
    }

    #[test]
    fn without_a_catalogue_every_model_has_the_limits_of_an_unknown_one() {
        let settings = merge(&[]).settings;
        assert_eq!((settings.context_window, settings.max_output_tokens), (200_000, 32_000));
    }
}
