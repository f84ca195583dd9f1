//! `doctor`: what the harness would do, printed from what it does it by.

use ennead_runtime::recovery::{backoff::DEFAULT_RETRIES, table};

use crate::{
    args::{Doctor, TableFormat},
    exit::{Exit, Failure},
    show,
};

pub(crate) fn run(doctor: &Doctor) -> Result<Exit, Failure> {
    if doctor.recovery {
        match doctor.output_format {
            TableFormat::Text => show::result(table::print(DEFAULT_RETRIES).trim_end())?,
            TableFormat::Json => {
                let rows = serde_json::to_string_pretty(&table::shown(DEFAULT_RETRIES))
                    .map_err(|error| Failure::of(Exit::RunFailed, &error))?;
                show::result(&rows)?;
            }
        }
    }
    Ok(Exit::Success)
}
