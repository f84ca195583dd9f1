//! Every shape of data, held against `serde_json`.
//!
//! Built under `#[cfg(test)]` only.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Serialize;

use super::{push, push_without_tag, to_string};

#[derive(Clone, Debug, Serialize)]
struct Unit;

#[derive(Clone, Debug, Serialize)]
struct Pair(i8, String);

#[derive(Clone, Debug, Serialize)]
enum EnumShapes {
    Unit,
    Newtype(Unit),
    Tuple(u64, Option<char>),
    Struct { of: Pair, text: Option<String> },
    Empty {},
}

#[derive(Clone, Debug, Serialize)]
struct All {
    kinds: Vec<EnumShapes>,
    by_name: BTreeMap<String, bool>,
    by_number: BTreeMap<u16, ()>,
    sizes: [i64; 2],
    float: f64,
    #[serde(rename = "a_name_that_is_longer_than_those_that_are_copied_at_once")]
    long: u8,
}

fn all() -> impl Strategy<Value = All> {
    let kind = prop_oneof![
        Just(EnumShapes::Unit),
        Just(EnumShapes::Newtype(Unit)),
        Just(EnumShapes::Empty {}),
        any::<(u64, Option<char>)>().prop_map(|(n, it)| EnumShapes::Tuple(n, it)),
        any::<(i8, String, Option<String>)>()
            .prop_map(|(n, it, text)| EnumShapes::Struct { of: Pair(n, it), text }),
    ];
    let kinds = prop::collection::vec(kind, 0..4);
    (kinds, any::<(BTreeMap<String, bool>, BTreeMap<u16, ()>, [i64; 2], f64)>()).prop_map(
        |(kinds, (by_name, by_number, sizes, float))| All {
            kinds,
            by_name,
            by_number,
            sizes,
            float,
            long: 7,
        },
    )
}

proptest! {
    #[test]
    fn every_shape_is_written_as_serde_json_writes_it(all in all()) {
        prop_assert_eq!(to_string(&all).unwrap(), serde_json::to_string(&all).unwrap());
        let mut bytes = b"before".to_vec();
        push(&all, &mut bytes).unwrap();
        let expected = format!("before{}", serde_json::to_string(&all).unwrap());
        prop_assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}

#[test]
fn fields_behind_a_tag_continue_an_object() {
    #[derive(Serialize)]
    #[serde(tag = "kind")]
    enum Tagged {
        Some { a: u8, b: Vec<Pair> },
        Newtype(Nested),
        None {},
    }
    #[derive(Serialize)]
    struct Nested {
        kind_of: EnumShapes,
    }
    let pair = Pair(-1, "x".into());
    for tagged in [
        Tagged::Some { a: 1, b: vec![pair.clone()] },
        Tagged::Newtype(Nested { kind_of: EnumShapes::Struct { of: pair, text: None } }),
        Tagged::None {},
    ] {
        let whole = serde_json::to_string(&tagged).unwrap();
        let (tag, fields) = whole.split_at(whole.find([',', '}']).unwrap());
        let mut bytes = tag.as_bytes().to_vec();
        push_without_tag(&tagged, &mut bytes).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap() + "}", format!("{tag}{fields}"));
    }
}
