//! Settings that are long: who merges them.

use std::sync::Arc;

use serde_json::json;

use super::{play::Play, script::text, world::World};
use crate::{permission::Scope, step1_settings_resolution::LayerText};

/// A session whose settings file has about so many bytes.
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
    assert!(kept.is_some_and(|it| Arc::ptr_eq(it, &merged[0])), "nobody merged them again");
    assert!(2_000_000 < merged[0].text.len(), "{}", merged[0].text.len());
}

#[test]
fn short_settings_are_merged_in_place() {
    let mut play = of_bytes(1_000);
    play.run("first");
    assert_eq!(play.world.merged, []);
    assert_eq!(play.conversation.memory.merged.as_ref().map(|it| it.layers.len()), Some(3));
}
