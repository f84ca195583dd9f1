//! Settings that are long: who merges them.

use std::sync::Arc;

use serde_json::json;

use super::{
    play::Play,
    script::{calls, facts, layer, text},
    world::World,
};
use crate::{
    approval::{PermissionOverrides, RuleUpdate},
    catalogue::Catalogue,
    digest::Digest,
    permission::{PermissionMode, Scope},
    run::facts::{OFFERS_ANEW, SessionFacts},
    step1_settings_resolution::LayerText,
    step5_model_call::{ModelAnswer, ModelFailure},
    step7_permission_gate::Handler,
    transcript::entry::{Line, RecordKind, StepDetail, Stored},
};

/// A session whose settings file has about `n_bytes` bytes.
fn of_bytes(n_bytes: usize) -> Play {
    let names = vec!["NAME"; n_bytes / 7];
    let settings = json!({ "outputStyle": "terse", "companyAnnouncements": names }).to_string();
    let layer = LayerText { scope: Scope::User, source: "user.json".into(), text: settings };
    let mut world = World::new(vec![text("one"), text("two")]);
    world.layers[0].push(layer);
    Play::new(world)
}

// REQ: TRN-1
#[test]
fn turn_does_not_merge_two_mebibytes_of_settings_itself() {
    let mut play = of_bytes(2 << 20);
    play.run("first");
    play.run("second");
    let merged = &play.world.merged;
    assert_eq!(merged.len(), 1, "once, by a leaf");
    let kept = play.conversation.memory.merged.as_ref();
    assert!(kept.is_some_and(|it| Arc::ptr_eq(it, &merged[0].merged)), "nobody merged them again");
    let n_bytes = merged[0].merged.text.text().len();
    assert!(2_000_000 < n_bytes, "{n_bytes}");
}

/// Whether the session works with what leaves have compiled last.
fn is_compiled_by_leaf(play: &Play) -> bool {
    let kept = play.conversation.memory.derived_settings.as_ref();
    let made = play.world.merged.last();
    kept.zip(made).is_some_and(|(kept, made)| Arc::ptr_eq(kept, &made.derived))
}

// REQ: TRN-1
#[test]
fn turn_does_not_compile_two_mebibytes_of_rules_itself() {
    let mut play = of_bytes(2 << 20);
    play.run("first");
    assert!(is_compiled_by_leaf(&play));
    // As after a resume, whose opening has merged them, and has compiled nothing.
    play.conversation.memory.derived_settings = None;
    play.conversation.memory.resolved = None;
    play.last_layers = None;
    play.run("second");
    assert_eq!(play.world.merged.len(), 2);
    assert!(is_compiled_by_leaf(&play));
    // As where tools join, while the files are as they were.
    play.conversation.memory.derived_settings = None;
    play.run("third");
    assert_eq!(play.world.merged.len(), 3);
    assert!(is_compiled_by_leaf(&play));
    let merged =
        play.world.merged.iter().all(|it| Arc::ptr_eq(&it.merged, &play.world.merged[0].merged));
    assert!(merged, "the leaf merges once");
}

#[test]
fn short_settings_are_merged_in_place() {
    let mut play = of_bytes(1_000);
    play.run("first");
    assert!(play.world.merged.is_empty());
    assert_eq!(play.conversation.memory.merged.as_ref().map(|it| it.layers.len()), Some(3));
}

/// A session under rules that were compiled once, which asks about `make`.
fn of_rules(answers: Vec<Result<ModelAnswer, ModelFailure>>) -> Play {
    let settings = json!({ "permissions": { "deny": ["Read(secrets/**)", "Bash(curl *)"] } });
    let mut world = World::new(answers);
    world.facts = Arc::new(facts(Handler::Approver));
    world.layers = [vec![layer(Scope::User, settings)]].into();
    Play::new(world)
}

// REQ: TRN-1, PRM-4
#[test]
fn rules_are_not_compiled_anew_for_another_mode_and_are_for_another_rule() {
    let mut play = of_rules(vec![calls(&["x:Edit:src/a.rs"]), calls(&[])]);
    play.run("first");
    let memory = &play.conversation.memory;
    let derived = memory.derived_settings.as_ref().unwrap();
    let mut overrides = PermissionOverrides::default();
    overrides.mode = Some(PermissionMode::Plan);
    let planning = derived.gate_with(&overrides, &play.conversation.facts);
    assert!(planning.has_rules_of(&derived.gate));
    assert_eq!(planning.mode(), PermissionMode::Plan);
    assert_eq!(planning.settings().permissions.mode, PermissionMode::Plan);
    assert_ne!(planning.epoch(), derived.gate.epoch());
    overrides.add(&[RuleUpdate::allow("Bash(make)")]);
    let with_rule = derived.gate_with(&overrides, &play.conversation.facts);
    assert!(!with_rule.has_rules_of(&derived.gate));
    assert_ne!(with_rule.epoch(), planning.epoch(), "an answer under the other rules is not taken");
}

// REQ: PRM-1, TRN-4
#[test]
fn tool_that_new_rules_deny_as_a_whole_leaves_the_next_request_and_comes_back() {
    for (revision, offered) in [(OFFERS_ANEW, [true, false, true]), (OFFERS_ANEW - 1, [true; 3])] {
        let mut world = World::new(vec![text("one"), text("two"), text("three")]);
        let denying = json!({ "permissions": { "deny": ["Read"] } });
        let without = || vec![layer(Scope::User, json!({}))];
        world.layers = [without(), vec![layer(Scope::User, denying)], without()].into();
        world.facts = Arc::new(SessionFacts { revision, ..facts(Handler::Approver) });
        let mut play = Play::new(world);
        for prompt in ["first", "second", "third"] {
            play.run(prompt);
        }
        let named = |body: &[u8]| String::from_utf8_lossy(body).contains(r#""name":"Read""#);
        assert_eq!(
            play.requests.iter().map(|it| named(&it.request.body.to_bytes())).collect::<Vec<_>>(),
            offered
        );
    }
}

// REQ: SES-4, SES-8
#[test]
fn what_is_known_of_models_is_the_same_wherever_it_is_stored() {
    let world = World::with(json!({ "model": "claude-sonnet-5" }), vec![text("done")]);
    let mut play = Play::new(world);
    play.conversation.memory.catalogue = Arc::new(Catalogue::built_in());
    play.run("go");
    play.check_replay();
    let mut n_moved = 0;
    for line in &mut play.lines {
        if let Line::Harness(record) = line
            && let RecordKind::TurnStep { detail, .. } = &mut record.what
            && let StepDetail::Settings { models: Some(models), .. } = detail
            && let Stored::Text(text) = models
        {
            // As if layers had more room before secrets in them were replaced.
            let digest = Digest::of(text.as_bytes());
            play.stored.insert(digest, text.to_string());
            *models = Stored::At(digest);
            n_moved += 1;
        }
    }
    assert_eq!(n_moved, 1);
    play.check_replay();
}
