//! `eval`: what each shaper is worth in recorded sessions.

use std::{fs, path::Path};

use ennead_command::{
    evaluation::{chart, evaluate, tables},
    exit::{Exit, Failure},
};
use ennead_runtime::step4_context_shapers::Stage;

use crate::{
    args::{Evaluate, TableFormat},
    show,
};

pub(crate) fn run(args: &Evaluate) -> Result<Exit, Failure> {
    let ablated = stages(&args.ablate)?;
    let found = evaluate(&args.dir, &ablated).map_err(|error| {
        Failure::new(Exit::BadInput, format!("cannot list {}: {error}", args.dir.display()))
    })?;
    match args.output_format {
        TableFormat::Text => show::result(&tables(&found))?,
        TableFormat::Json => {
            let value = serde_json::to_value(&found)
                .map_err(|error| Failure::of(Exit::RunFailed, &error))?;
            show::json(&value)?;
        }
    }
    if let Some(file) = &args.chart {
        write(file, &chart(&found.longest))?;
    }
    match found.sessions {
        0 => {
            let what = format!("{} holds no recorded session", args.dir.display());
            Err(Failure::new(Exit::NotVerified, what))
        }
        _ => Ok(Exit::Success),
    }
}

/// The named stages, or all.
fn stages(names: &[String]) -> Result<Vec<Stage>, Failure> {
    let find = |name: &String| {
        Stage::ALL.into_iter().find(|it| it.name() == name).ok_or_else(|| {
            let all = Stage::ALL.map(Stage::name).join(", ");
            Failure::new(Exit::BadInput, format!("there is no stage `{name}`; take one of {all}"))
        })
    };
    match names {
        [] => Ok(Stage::ALL.to_vec()),
        names => names.iter().map(find).collect(),
    }
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text).map_err(|error| {
        Failure::new(Exit::BadInput, format!("cannot write {}: {error}", file.display()))
    })
}
