//! Hooks that are asked before a changed settings file holds.

use std::fs;

use serde_json::json;

use super::{command, hooks};
use crate::support::{
    record,
    scripted::{TestDirs, alerts, finish, model, text, until_end},
    settings::SettingsJson as _,
};

// REQ: HKS-1, HKS-4
#[tokio::test]
async fn changed_settings_hold_when_hooks_have_not_refused_them() {
    let place = TestDirs::new();
    let user = |model: &str| {
        place.write("home/.claude/settings.json", &json!({ "model": model }).to_string())
    };
    let managed = |days: u32| {
        let settings = json!({ "cleanupPeriodDays": days }).to_string();
        place.write("managed/managed-settings.json", &settings)
    };
    let (log, refuse) = (place.text("log"), place.text("refuse"));
    let handler = command(&format!("cat >> {log}; echo >> {log}; [ ! -e {refuse} ] || exit 2"));
    let watched = hooks("ConfigChange", &[handler]);
    // A repository has no say about the settings of others.
    let own = command(&format!("echo not mine >> {log}; exit 2"));
    let project = json!({ "hooks": hooks("ConfigChange", &[own]) }).to_string();
    place.write("workspace/.claude/settings.json", &project);
    let fired = || {
        let log = fs::read_to_string(&log).unwrap_or_default();
        let inputs = log.lines().map(|it| serde_json::from_str::<serde_json::Value>(it).expect(it));
        inputs.map(|it| it["source"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };

    let asked = model(|_| text("ok"));
    let environment = ennead::Environment::empty().managed(Some(place.path("managed")));
    let ennead =
        ennead::Ennead::start(place.options(&asked).environment(environment)).await.unwrap();
    let session = ennead.open(place.session().setting("hooks", watched)).await.unwrap();
    let mut events = session.events();
    let mut last = None;
    let steps: [(&str, u32, bool, &str, &[&str]); 7] = [
        // What holds at first has not changed.
        ("one", 1, false, "one", &[]),
        ("two", 1, false, "two", &["user_settings"]),
        ("three", 1, true, "two", &["user_settings"]),
        // Nobody is asked again about the same.
        ("three", 1, true, "two", &[]),
        ("four", 1, false, "four", &["user_settings"]),
        // The organisation's settings hold whatever is answered.
        ("five", 2, true, "four", &["policy_settings", "user_settings"]),
        ("four", 2, true, "four", &[]),
    ];
    let mut n_before = 0;
    for (named, days, refuses, holds, sources) in steps {
        if last != Some((named, days)) {
            user(named);
            managed(days);
        }
        last = Some((named, days));
        if refuses {
            fs::write(&refuse, "").unwrap();
        } else {
            let _none = fs::remove_file(&refuse);
        }
        session.prompt("go").await.unwrap();
        let told = alerts(&until_end(&mut events).await).join("\n");
        let refused = refuses && !sources.is_empty();
        assert_eq!(told.contains("refused the change of"), refused, "{named}: {told}");
        assert_eq!(told.contains("cannot refuse"), sources.len() == 2, "{named}: {told}");
        assert_eq!(asked.last().model(), holds, "{named}");
        let all = fired();
        assert_eq!(all[n_before..], *sources, "{named}");
        n_before = all.len();
    }
    let transcript = session.transcript().to_owned();
    finish(ennead, session).await;
    record::replayed(&transcript, 7);
}
