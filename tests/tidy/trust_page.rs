//! `docs/trust.md` says what holds: its tests exist, and its list of keys is the one that is used.

use ennead_runtime::step1_settings_resolution::secrets::PROVIDER_KEYS;

use super::{read, rust_files};

#[test]
fn tests_that_the_page_on_trust_names_exist() {
    let page = read("docs/trust.md");
    let (_, held) = page.split_once("## Held by").unwrap();
    let named: Vec<&str> = held.split('`').skip(1).step_by(2).collect();
    assert!(10 < named.len(), "{named:?}");
    let sources: Vec<String> = rust_files().iter().map(read).collect();
    let exists = |name: &&&str| {
        let test = format!("fn {name}(");
        sources.iter().any(|it| it.contains(&test))
    };
    let missing: Vec<_> = named.iter().filter(|it| !exists(it)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn keys_that_the_page_on_trust_names_are_those_that_are_kept_back() {
    let page = read("docs/trust.md");
    let (_, keys) = page.split_once("## Keys").unwrap();
    let (keys, _) = keys.split_once("; nor any").unwrap();
    let named: Vec<&str> = keys.split('`').skip(1).step_by(2).collect();
    assert_eq!(named, PROVIDER_KEYS);
}
