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
    if doctor.sandbox {
        print_sandbox(doctor.output_format)?;
    }
    Ok(Exit::Success)
}

fn print_sandbox(format: TableFormat) -> Result<(), Failure> {
    let kernel = ennead_tools::sandbox::kernel();
    if let TableFormat::Json = format {
        let text = serde_json::to_string_pretty(kernel)
            .map_err(|error| Failure::of(Exit::RunFailed, &error))?;
        return show::result(&text);
    }
    let can = match &kernel.lacks {
        None => "commands can be confined".to_owned(),
        Some(why) => format!("commands cannot be confined: {why}"),
    };
    let rows = kernel.levels.iter().map(|it| {
        let is_there = if it.is_there { "yes" } else { "no" };
        format!("{:<22}{is_there:<5}{}", it.name, it.holds)
    });
    let head = [can, format!("Landlock version: {}", kernel.landlock)];
    show::result(&head.into_iter().chain(rows).collect::<Vec<_>>().join("\n"))
}
