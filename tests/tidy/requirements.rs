//! Tests cite what they prove as `REQ:` and ids; every id is in `tests/requirements.md`.

use std::collections::BTreeSet;

use super::{read, rust_files};

/// The ids in the first column of the tables.
pub(super) fn known() -> BTreeSet<String> {
    let text = read("tests/requirements.md");
    let ids = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let known: BTreeSet<String> = ids.filter(|it| is_id(it)).map(str::to_owned).collect();
    assert!(known.contains("TRN-1") && known.contains("SCL-3"), "{known:?}");
    known
}

/// Three capital letters, a dash, a number.
pub(super) fn is_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(area, number)| {
        area.len() == 3
            && area.bytes().all(|it| it.is_ascii_uppercase())
            && number.parse::<u32>().is_ok()
    })
}

/// The ids that a line cites, split at commas, or nothing if it cites none.
fn cited(line: &str) -> Option<Vec<&str>> {
    let ids = line.trim_start().strip_prefix("// REQ:")?;
    Some(ids.split(',').map(str::trim).collect())
}

#[test]
fn every_requirement_that_a_test_cites_exists() {
    let known = known();
    let mut n_cited = 0;
    let mut wrong = Vec::new();
    for path in rust_files() {
        for (number, line) in read(&path).lines().enumerate() {
            for id in cited(line).into_iter().flatten() {
                n_cited += 1;
                if !known.contains(id) {
                    wrong.push(format!("{}:{}: {id:?}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(0 < n_cited);
}

#[test]
fn a_citation_is_a_list_of_ids() {
    assert_eq!(cited("    // REQ: SHP-4, MDL-12"), Some(vec!["SHP-4", "MDL-12"]));
    assert_eq!(cited("let req = 1; // a REQ: SHP-4"), None);
    assert!(is_id("SHP-4") && !is_id("SHP-") && !is_id("shp-4") && !is_id("SHP-4 and more"));
}
