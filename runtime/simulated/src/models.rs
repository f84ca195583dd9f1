//! The list of models, as clients ask for it to see whether a server is there.
//!
//! A playbook answers in the name of any model. Listed are those that the catalogue knows.

use serde_json::{Value as Json, json};

use super::openai::Dialect;
use ennead_runtime::catalogue::Catalogue;

/// When a model was made is not known here.
const MADE: &str = "1970-01-01T00:00:00Z";

/// Who is asked, by a path that ends with `/models` or names one after it.
pub(super) enum Asked<'a> {
    All,
    One(&'a str),
}

/// Returns what of the list a path asks for, below any prefix.
pub(super) fn asked(path: &str) -> Option<Asked<'_>> {
    match path.rsplit_once("/models") {
        Some((_, "")) => Some(Asked::All),
        Some((_, one)) => {
            one.strip_prefix('/').filter(|it| !it.is_empty() && !it.contains('/')).map(Asked::One)
        }
        None => None,
    }
}

/// Returns the format of the answer: that of the Messages API for those who name its version.
pub(super) fn dialect(headers: &[(String, String)]) -> Dialect {
    if headers.iter().any(|(name, _)| name == "anthropic-version" || name == "x-api-key") {
        Dialect::Messages
    } else {
        Dialect::Chat { with_usage: false }
    }
}

/// Returns the answer; `None`: there is no such model.
pub(super) fn answer(asked: &Asked<'_>, dialect: Dialect) -> Option<String> {
    let catalogue = Catalogue::built_in();
    let entry = |id: &str| match dialect {
        Dialect::Messages => {
            json!({"type": "model", "id": id, "display_name": id, "created_at": MADE})
        }
        _ => json!({"id": id, "object": "model", "created": 0, "owned_by": "ennead-simulated"}),
    };
    let body = match asked {
        Asked::One(name) => entry(&catalogue.find(name)?.id),
        Asked::All => {
            let all: Vec<Json> = catalogue.models().map(|it| entry(&it.id)).collect();
            match dialect {
                Dialect::Messages => {
                    let id = |it: Option<&Json>| it.map_or(Json::Null, |it| it["id"].clone());
                    let (first, last) = (id(all.first()), id(all.last()));
                    json!({"data": all, "has_more": false, "first_id": first, "last_id": last})
                }
                _ => json!({"object": "list", "data": all}),
            }
        }
    };
    Some(body.to_string())
}
