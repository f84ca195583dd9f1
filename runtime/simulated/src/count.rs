//! A number that a rule gives: written down, or computed from the request.

use serde::Deserialize;

use super::{request::Scope, template::Templates};

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a whole number or an expression")]
pub(super) enum Count {
    Number(u64),
    Expression(String),
}

impl Default for Count {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl Count {
    pub(super) fn check(&self, templates: &Templates) -> Result<(), String> {
        match self {
            Count::Number(_) => Ok(()),
            Count::Expression(expression) => templates.check(expression),
        }
    }

    pub(super) fn of(&self, scope: &Scope, templates: &Templates) -> Result<u64, String> {
        match self {
            Count::Number(n) => Ok(*n),
            Count::Expression(expression) => {
                let value = templates.eval(expression, scope.value())?;
                let n = value.as_i64().and_then(|n| u64::try_from(n).ok());
                n.ok_or_else(|| format!("no whole number: {expression}"))
            }
        }
    }
}
