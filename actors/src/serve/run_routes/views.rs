//! A run as the API takes and shows it.

use ennead_runtime::{
    ids::{RunId, SessionId},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::serve::{
    hosted::Hosted,
    runs::{Delivery, Run, RunState},
};

/// What a run is asked for with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRun {
    /// The text of the prompt, at most a mebibyte.
    pub(super) prompt: String,
    /// How it is taken while a run is under way.
    #[serde(default)]
    pub(super) delivery: Delivery,
}

/// A run, as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunView {
    /// The id, a UUID; the transcript has it too.
    #[schema(value_type = String)]
    id: RunId,
    /// The id of the session that it is a run of.
    #[schema(value_type = String)]
    session: SessionId,
    /// How the run was to be delivered.
    delivery: Delivery,
    /// How far it is.
    state: RunState,
    /// Runs before it when it was accepted, that under way included; only in a receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
    /// When it was accepted, in milliseconds since 1970.
    #[schema(value_type = u64)]
    accepted_at: Timestamp,
    /// When it began, in milliseconds since 1970.
    #[schema(value_type = Option<u64>)]
    started_at: Option<Timestamp>,
    /// When it ended, in milliseconds since 1970.
    #[schema(value_type = Option<u64>)]
    ended_at: Option<Timestamp>,
    /// What it left: `end`, `is_success`, `text`, `error`, `turns`, `usage`, `cost_usd`, `duration_ms`,
    /// `model`, `denials`. Without an outcome `end` is `failed`.
    #[schema(value_type = Option<Object>)]
    outcome: Option<Value>,
    /// The run of an earlier process that it goes on with.
    #[schema(value_type = Option<String>)]
    continues: Option<RunId>,
    /// The run that goes on with it.
    #[schema(value_type = Option<String>)]
    continued_by: Option<RunId>,
}

impl RunView {
    pub(crate) fn new(session: &Hosted, run: &Run, position: Option<usize>) -> Self {
        Self {
            id: run.id.clone(),
            session: session.id().clone(),
            delivery: run.delivery,
            state: run.state,
            position,
            accepted_at: run.accepted_at,
            started_at: run.started_at,
            ended_at: run.ended_at,
            outcome: run.outcome.clone(),
            continues: run.continues.clone(),
            continued_by: run.continued_by.clone(),
        }
    }
}

/// The newest runs of a session.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunList {
    /// The runs, the newest first.
    pub(super) runs: Vec<RunView>,
}
