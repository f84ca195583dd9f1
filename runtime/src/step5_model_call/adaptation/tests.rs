//! What is asked for, what a model is sent, and what is reported about the difference.
//!
//! Built under `#[cfg(test)]` only.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::catalogue::Catalogue;

const CEILING: u32 = 8_192;

fn described(model: &str) -> Option<ModelFacts> {
    Catalogue::built_in().find(model).map(|it| ModelFacts::clone(it))
}

#[track_caller]
fn check(model: &str, asked: Value, sent: Value, changes: &[Change]) {
    let asked: Parameters = serde_json::from_value(asked).unwrap();
    let (adapted, changed) = match described(model) {
        Some(model) => asked.adapted(&model, CEILING),
        None => (asked, Vec::new()),
    };
    let mut members = String::new();
    adapted.push_members(&mut members);
    let object = format!("{{{}}}", members.trim_start_matches(','));
    assert_eq!(serde_json::from_str::<Value>(&object).unwrap(), sent, "{members}");
    assert_eq!(changed, changes);
}

// REQ: MDL-8
#[test]
fn budget_becomes_adaptive_and_temperature_goes_where_both_are_refused() {
    let asked = json!({
        "thinking": {"type": "enabled", "budget_tokens": 4096, "display": "omitted"},
        "temperature": 0.5, "top_k": 3,
    });
    for model in ["claude-opus-4-8", "us.anthropic.claude-opus-4-7-v1:0", "claude-sonnet-5"] {
        check(
            model,
            asked.clone(),
            json!({"thinking": {"type": "adaptive", "display": "omitted"}}),
            &[Change::BudgetToAdaptive, Change::SamplingLeftOut],
        );
    }
}

// REQ: MDL-8
#[test]
fn disabled_is_sent_only_where_it_is_taken() {
    let off = json!({"thinking": {"type": "disabled"}});
    check("claude-fable-5", off.clone(), json!({}), &[Change::CannotDisable]);
    check("claude-sonnet-5", off.clone(), off.clone(), &[]);
    check("claude-opus-5", off.clone(), off.clone(), &[]);
    let off_at_most = json!({"thinking": {"type": "disabled"}, "effort": "max"});
    check("claude-opus-5", off_at_most.clone(), off, &[Change::EffortLowered]);
    check(
        "claude-sonnet-5",
        off_at_most,
        json!({"thinking": {"type": "disabled"}, "output_config": {"effort": "max"}}),
        &[],
    );
}

// REQ: MDL-8
#[test]
fn adaptive_becomes_a_budget_below_the_ceiling_where_there_is_nothing_else() {
    let adaptive = json!({"thinking": {"type": "adaptive"}});
    check("claude-opus-4-6", adaptive.clone(), adaptive.clone(), &[]);
    check(
        "claude-haiku-4-5-20251001",
        adaptive,
        // A quarter of the ceiling, as the catalogue has it.
        json!({"thinking": {"type": "enabled", "budget_tokens": 2048}}),
        &[Change::AdaptiveToBudget],
    );
    let asked = |n: u32| json!({"thinking": {"type": "enabled", "budget_tokens": n}});
    check("claude-opus-4-6", asked(CEILING), asked(CEILING - 1), &[Change::BudgetMoved]);
    check("claude-opus-4-6", asked(1), asked(MIN_THINKING_BUDGET), &[Change::BudgetMoved]);
    let parameters: Parameters = serde_json::from_value(asked(2_000)).unwrap();
    let manual = described("claude-sonnet-4-5").unwrap();
    let (sent, changes) = parameters.adapted(&manual, MIN_THINKING_BUDGET);
    assert_eq!((sent.thinking, &changes[..]), (None, &[Change::ThinkingLeftOut][..]));
    let (sent, changes) = parameters.adapted(&manual, MIN_THINKING_BUDGET + 1);
    let budget_tokens = MIN_THINKING_BUDGET;
    assert_eq!(sent.thinking, Some(Thinking::Enabled { budget_tokens, display: None }));
    assert_eq!(changes, [Change::BudgetMoved]);
}

// REQ: MDL-8
#[test]
fn task_budget_stands_beside_the_effort_and_names_its_beta_once() {
    let budget = json!({"task_budget": {"type": "tokens", "total": 64_000}});
    let sent = json!({"output_config": budget});
    check("claude-opus-4-8", json!({"task_budget": 64_000}), sent, &[]);
    let both = json!({"task_budget": 5, "effort": "low"});
    let budget = json!({"effort": "low", "task_budget": {"type": "tokens", "total": 5}});
    check("claude-opus-4-8", both, json!({"output_config": budget}), &[]);
    let header = |value: Value| {
        let parameters: Parameters = serde_json::from_value(value).unwrap();
        (parameters.beta_header().map(|it| it.to_string()), parameters.quoted_betas())
    };
    let own = "task-budgets-2026-03-13";
    let alone = header(json!({"task_budget": 5}));
    assert_eq!(alone, (Some(own.to_owned()), format!("\"{own}\"")));
    let named = header(json!({"task_budget": 5, "betas": [own, "b"]}));
    assert_eq!(named.0, Some(format!("{own},b")));
    assert_eq!(header(json!({})), (None, String::new()));
}

// REQ: MDL-8
#[test]
fn effort_is_lowered_to_what_the_model_knows() {
    let asked = |effort: &str| json!({"effort": effort});
    let sent = |effort: &str| json!({"output_config": {"effort": effort}});
    check("claude-opus-4-8", asked("xhigh"), sent("xhigh"), &[]);
    check("claude-opus-4-8", asked("high"), json!({}), &[]);
    check("claude-opus-4-6", asked("max"), sent("max"), &[]);
    check("claude-opus-4-6", asked("xhigh"), json!({}), &[Change::EffortLowered]);
    check("claude-opus-4-5", asked("max"), json!({}), &[Change::EffortLowered]);
    check("claude-haiku-4-5", asked("low"), json!({}), &[Change::EffortLeftOut]);
    check("claude-haiku-4-5", asked("high"), json!({}), &[]);
}

// REQ: MDL-8
#[test]
fn sampling_is_left_alone_where_it_may_be_changed() {
    let warm = json!({"temperature": 0.5, "top_p": 0.9});
    check("claude-sonnet-4-6", warm.clone(), warm.clone(), &[]);
    check("llama", warm.clone(), warm.clone(), &[]);
    check("claude-sonnet-5", warm, json!({}), &[Change::SamplingLeftOut]);
    check(
        "claude-sonnet-4-6",
        json!({"thinking": {"type": "adaptive"}, "top_k": 5}),
        json!({"thinking": {"type": "adaptive"}}),
        &[Change::SamplingLeftOut],
    );
}

// REQ: MDL-1
#[test]
fn the_rest_is_sent_as_it_is() {
    check(
        "claude-opus-4-8",
        json!({"stop_sequences": ["a\"b", "c"], "user_id": "u", "betas": ["x"]}),
        json!({"stop_sequences": ["a\"b", "c"], "metadata": {"user_id": "u"}}),
        &[],
    );
    let betas = Parameters { betas: vec!["x".into(), "y".into()], ..Parameters::default() };
    assert_eq!(betas.beta_header().as_deref(), Some("x,y"));
    assert_eq!(betas.quoted_betas(), r#""x","y""#);
    assert_eq!(Parameters::default().beta_header(), None);
}

fn any_parameters() -> impl Strategy<Value = Parameters> {
    use Effort::{High, Low, Max, Medium, Xhigh};
    let display = || {
        proptest::option::of(prop_oneof![
            Just(ThinkingDisplay::Summarized),
            Just(ThinkingDisplay::Omitted)
        ])
    };
    let thinking = prop_oneof![
        Just(Thinking::Disabled),
        display().prop_map(|display| Thinking::Adaptive { display }),
        (any::<u32>(), display())
            .prop_map(|(budget_tokens, display)| Thinking::Enabled { budget_tokens, display }),
    ];
    let effort = prop_oneof![Just(Low), Just(Medium), Just(High), Just(Xhigh), Just(Max)];
    let number = || proptest::option::of(any::<u8>().prop_map(serde_json::Number::from));
    (proptest::option::of(thinking), proptest::option::of(effort), number(), number()).prop_map(
        |(thinking, effort, temperature, top_p)| Parameters {
            thinking,
            effort,
            temperature,
            top_p,
            ..Parameters::default()
        },
    )
}

proptest! {
    // REQ: MDL-8
    #[test]
    fn what_is_sent_is_always_taken(
        asked in any_parameters(),
        model in prop_oneof![
            Just("claude-fable-5"), Just("claude-opus-5"), Just("claude-sonnet-5"),
            Just("claude-opus-4-8"), Just("claude-opus-4-6"), Just("claude-opus-4-5"),
            Just("claude-haiku-4-5"),
        ],
        max_tokens in prop_oneof![0..3_000u32, any::<u32>()],
    ) {
        let model = described(model).unwrap();
        let (sent, changes) = asked.adapted(&model, max_tokens);
        let support = &model.thinking;
        prop_assert_eq!(changes.is_empty(), sent == asked);
        match sent.thinking {
            None => {}
            Some(Thinking::Adaptive { .. }) => prop_assert!(support.adaptive),
            Some(Thinking::Enabled { budget_tokens, .. }) => {
                prop_assert!(support.manual);
                prop_assert!(MIN_THINKING_BUDGET <= budget_tokens && budget_tokens < max_tokens);
            }
            Some(Thinking::Disabled) => {
                prop_assert!(support.may_disable(sent.effort));
            }
        }
        let effort = sent.effort.unwrap_or(Effort::High);
        prop_assert!(effort == Effort::High || support.efforts.contains(&effort));
        let (again, changes) = sent.adapted(&model, max_tokens);
        prop_assert_eq!((again, changes), (sent, Vec::new()));
    }
}
