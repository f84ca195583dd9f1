//! `config --explain`: the settings that hold, each with where it comes from.

use std::fs;

use serde_json::{Value, json};

use super::CommandDirs;

// REQ: TRN-4
#[test]
fn each_setting_is_printed_with_its_source_and_what_it_replaces() {
    let place = CommandDirs::new();
    let user =
        json!({"model": "a", "permissions": {"deny": ["Read(x)"]}, "env": {"TOKEN": "s3cret"}});
    let of_user = place.dir.path().join("home/.claude/settings.json");
    fs::create_dir_all(of_user.parent().unwrap()).unwrap();
    fs::write(of_user, user.to_string()).unwrap();
    place.file(".claude/settings.json", &json!({"model": "b"}).to_string());
    let ended = place.run(&["config", "--explain"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let line = |key: &str| {
        let found = ended.stdout.lines().find(|it| it.starts_with(key));
        found.unwrap_or_else(|| panic!("{key} in {}", ended.stdout)).to_owned()
    };
    let model = line("model = ");
    assert!(
        model.contains("\"b\"  from ") && model.contains("work/.claude/settings.json"),
        "{model}"
    );
    assert!(
        model.contains(", in place of ") && model.ends_with("home/.claude/settings.json"),
        "{model}"
    );
    assert!(line("permissions.deny = ").contains("\"Read(x)\""));
    assert!(line("env.TOKEN = ").contains("(set)") && !ended.stdout.contains("s3cret"));
    let ended = place.run(&["config", "--explain", "--output-format", "json"]);
    let rows = ended.stdout.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    assert!(rows.into_iter().any(|it| it["key"] == "model" && it["value"] == "\"b\""));
}
