//! What is known, and what a user lays over it.
//!
//! Built under `#[cfg(test)]` only.

use serde_json::json;

use super::*;
use crate::tokens::Usage;

// REQ: CTX-4
#[test]
fn built_in_facts_can_be_read_and_every_entry_is_sound_and_names_its_source() {
    let catalogue = overrides::read(BUILT_IN).unwrap();
    assert!(12 <= catalogue.models().count());
    for facts in catalogue.models() {
        assert_eq!(canonical(&facts.id), &*facts.id);
        assert!(u64::from(facts.max_output) < facts.window, "{}", facts.id);
        assert!(facts.default_output <= facts.max_output, "{}", facts.id);
        assert!(facts.source.contains("2026-"), "{}", facts.id);
        assert!(facts.thinking.efforts.is_sorted(), "{}", facts.id);
    }
    for alias in ["opus", "sonnet", "haiku", "fable", "best"] {
        assert!(catalogue.find(alias).is_some(), "{alias}");
    }
}

// REQ: CTX-4
#[test]
fn facts_survive_being_recorded() {
    for facts in Catalogue::built_in().models() {
        let text = serde_json::to_string(facts).unwrap();
        let read: ModelFacts = serde_json::from_str(&text).unwrap();
        assert_eq!(read, ModelFacts { source: String::new(), ..ModelFacts::clone(facts) });
        assert!(text.len() < 1024, "{text}");
    }
}

#[test]
fn one_model_is_found_by_all_its_names() {
    let catalogue = Catalogue::built_in();
    for (name, id) in [
        ("claude-haiku-4-5", "claude-haiku-4-5"),
        ("haiku", "claude-haiku-4-5"),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("claude-haiku-4-5@20251001", "claude-haiku-4-5"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
        ("anthropic/claude-sonnet-5", "claude-sonnet-5"),
        ("claude-opus-5[1m]", "claude-opus-5"),
        ("claude-opus-5-latest", "claude-opus-5"),
        ("gpt-5.1-2025-11-13", "gpt-5.1"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("mistral-large-latest", "mistral-large"),
    ] {
        assert_eq!(catalogue.find(name).map(|it| &*it.id), Some(id), "{name}");
    }
    for unknown in ["", "m", "claude", "claude-opus-5-2", "simulated", "x-20251001", "é-2000000"] {
        assert_eq!(catalogue.find(unknown), None, "{unknown}");
    }
}

// REQ: CTX-4
#[test]
fn model_is_found_under_each_of_its_names_on_other_platforms() {
    let catalogue = Catalogue::built_in();
    for facts in catalogue.models() {
        let PlatformIds { bedrock_runtime, vertex } = &facts.ids;
        for name in bedrock_runtime.iter().chain(vertex) {
            assert_eq!(catalogue.find(name), Some(facts), "{name}");
        }
    }
    // No rule makes such a name of another.
    let profile = "arn:aws:bedrock:us-east-1:111122223333:application-inference-profile/abc";
    let ids = json!({"bedrock_runtime": profile, "vertex": "house-model"});
    let over = json!({"models": {"claude-opus-5": {"ids": ids}}});
    let over: CatalogueOverrides = serde_json::from_value(over).unwrap();
    let (named, wrong) = catalogue.with(&over);
    assert!(wrong.is_empty(), "{wrong:?}");
    for name in [profile, "house-model", "eu.house-model"] {
        assert_eq!(catalogue.find(name), None, "{name}");
        assert_eq!(named.find(name).map(|it| &*it.id), Some("claude-opus-5"), "{name}");
        let recorded = named.excerpt([name]);
        assert_eq!(recorded.find(name), named.find("claude-opus-5"), "{name}");
    }
}

// REQ: CTX-4
#[test]
fn user_lays_facts_over_the_built_in_ones_and_a_wrong_entry_loses_only_itself() {
    let over = json!({
        "models": {
            "claude-sonnet-5": {"window": 300_000, "thinking": {"efforts": ["low"]}},
            "mine": {"window": 32_000, "max_output": 4_000, "default_output": 2_000},
            "claude-opus-5": {"windows": 1},
            "small": {"window": 10},
        },
        "aliases": {"opus": "mine"},
    });
    let over: CatalogueOverrides = serde_json::from_value(over).unwrap();
    let (catalogue, wrong) = Catalogue::built_in().with(&over);
    let sonnet = catalogue.find("sonnet").unwrap();
    assert_eq!((sonnet.window, sonnet.max_output), (300_000, 128_000));
    assert_eq!(sonnet.thinking.efforts, [Effort::Low]);
    assert!(sonnet.thinking.adaptive && sonnet.prices.is_some());
    assert_eq!(catalogue.find("opus").unwrap().window, 32_000);
    assert_eq!(catalogue.find("mine").unwrap().prices, None);
    assert_eq!(catalogue.find("claude-opus-5").unwrap().window, 1_000_000);
    let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    assert_eq!(wrong.len(), 2);
    assert!(wrong[0].starts_with("the catalogue's entry for `claude-opus-5` is left out: unknown"));
    assert!(wrong[1].contains("`window` must be larger"), "{wrong:?}");
}

#[test]
fn thinking_rules_are_those_of_the_table() {
    let catalogue = Catalogue::built_in();
    let of = |model: &str| catalogue.find(model).unwrap().thinking.clone();
    let fable = of("claude-fable-5");
    assert!(fable.adaptive && !fable.manual && !fable.may_disable(None));
    let opus = of("claude-opus-5");
    assert!(opus.may_disable(Some(Effort::High)) && !opus.may_disable(Some(Effort::Xhigh)));
    let older = of("claude-opus-4-8");
    assert!(older.adaptive && !older.manual && !older.on_by_default);
    assert_eq!(older.sampling, Sampling::Refused);
    assert_eq!(of("claude-opus-4-6").effort(Effort::Xhigh), Some(Effort::High));
    assert_eq!(of("claude-opus-4-6").effort(Effort::Max), Some(Effort::Max));
    let haiku = of("claude-haiku-4-5");
    assert!(haiku.manual && !haiku.adaptive && haiku.effort(Effort::Max).is_none());
    assert!(ThinkingSupport::default().is_none());
}

#[test]
fn every_kind_of_token_has_its_price_and_long_prompts_theirs() {
    let catalogue = Catalogue::built_in();
    let cost = |model: &str, usage: Usage| {
        catalogue.find(model).unwrap().prices.unwrap().cost(&usage).unwrap().micro_usd()
    };
    let usage = Usage {
        input_tokens: 1_000_000,
        output_tokens: 1_000_000,
        cache_creation_input_tokens: 3_000_000,
        cache_creation_1h_input_tokens: 1_000_000,
        cache_read_input_tokens: 1_000_000,
        ..Usage::default()
    };
    // 5 + 25 + 2 x 6.25 + 10 + 0.50
    assert_eq!(cost("claude-opus-5", usage), 53_000_000);
    let short = Usage { input_tokens: 100_000, output_tokens: 1_000, ..Usage::default() };
    let long = Usage { input_tokens: 100_001, ..short };
    assert_eq!(cost("claude-haiku-5-5", short), 10_000 + 500);
    assert_eq!(cost("claude-haiku-5-5", long), 50_000 + 2_500);
    assert_eq!(Money(53_000_000_000_000).to_string(), "$53.0000");
    assert_eq!(Money(1).to_string(), "$0.0000");
}

// REQ: TRN-9
#[test]
fn searches_of_the_web_have_their_price_and_are_never_free_where_it_is_not_known() {
    let catalogue = Catalogue::built_in();
    let cost = |model: &str, n_searches: u64| {
        let usage = Usage {
            input_tokens: 100_001,
            web_search_requests: n_searches,
            web_fetch_requests: 7,
            ..Usage::default()
        };
        catalogue.find(model).unwrap().prices.unwrap().cost(&usage).map(Money::micro_usd)
    };
    // $10 for 1,000 of them; a long prompt changes nothing about that.
    for model in ["claude-opus-5", "claude-haiku-5-5"] {
        let searched = cost(model, 1_000).unwrap() - cost(model, 0).unwrap();
        assert_eq!(searched, 10_000_000, "{model}");
    }
    assert!(cost("gpt-5.1", 0).is_some());
    assert_eq!(cost("gpt-5.1", 1), None);
    for facts in catalogue.models().filter(|it| it.id.starts_with("claude-")) {
        assert!(facts.prices.is_none_or(|it| it.web_search.is_some()), "{}", facts.id);
    }
}

// REQ: CTX-4
#[test]
fn limits_of_models_at_other_servers_are_known() {
    let catalogue = Catalogue::built_in();
    for (name, window, max_output, default_output) in [
        ("gpt-4o", 128_000, 16_384, 16_384),
        ("gpt-4.1", 1_047_576, 32_768, 32_000),
        ("o3", 200_000, 100_000, 32_000),
        ("gpt-5", 400_000, 128_000, 32_000),
        ("gpt-oss-20b", 131_072, 65_536, 32_768),
        ("llama-3.3-70b-versatile", 131_072, 32_768, 32_768),
    ] {
        let facts = catalogue.find(name).unwrap();
        let found = (facts.window, facts.max_output, facts.default_output);
        assert_eq!(found, (window, max_output, default_output), "{name}");
    }
}
