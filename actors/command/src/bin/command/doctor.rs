//! `doctor`: what the harness would do, printed from what it does it by.

use ennead::internal::Http;
use ennead_command::{
    exit::{Exit, Failure},
    token_counts::{self, CountError, TokenCount},
};
use ennead_runtime::recovery::{backoff::DEFAULT_RETRIES, table};
use ennead_tools::sandbox::{self, Bubblewrap, Confinement};
use serde_json::{Map, json};

use crate::{
    args::{Doctor, TableFormat},
    endpoint, show,
};

/// Prints the parts that were asked for, or all that ask nobody where none was. As JSON one part is its own text, and
/// several are fields of one object.
pub(crate) async fn run(doctor: &Doctor) -> Result<Exit, Failure> {
    let is_all = !doctor.recovery && !doctor.sandbox && doctor.tokens.is_none();
    let (asks_sandbox, recovery) = (doctor.sandbox || is_all, doctor.recovery || is_all);
    let tokens = match &doctor.tokens {
        Some(model) => Some(token_counts(model).await?),
        None => None,
    };
    match doctor.output_format {
        TableFormat::Text => {
            let parts = [
                asks_sandbox.then(sandbox_text),
                recovery.then(|| table::print(DEFAULT_RETRIES).trim_end().to_owned()),
                tokens.map(|it| token_counts::table(&it)),
            ];
            show::result(&parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n"))?;
        }
        TableFormat::Json => {
            let mut parts = Map::new();
            if asks_sandbox {
                let mut sandbox = json!(sandbox::kernel());
                sandbox["bubblewrap"] = json!(sandbox::bubblewrap());
                parts.insert("sandbox".to_owned(), sandbox);
            }
            if recovery {
                parts.insert("recovery".to_owned(), json!(table::displayed_rows(DEFAULT_RETRIES)));
            }
            if let Some(tokens) = tokens {
                parts.insert("tokens".to_owned(), json!(tokens));
            }
            let shown = match parts.len() {
                1 => parts.into_iter().map(|(_, part)| part).next().unwrap_or_default(),
                _ => parts.into(),
            };
            let text = serde_json::to_string_pretty(&shown)
                .map_err(|error| Failure::of(Exit::RunFailed, &error))?;
            show::result(&text)?;
        }
    }
    Ok(Exit::Success)
}

/// Asks the server that a prompt would be sent to.
async fn token_counts(model: &str) -> Result<Vec<TokenCount>, Failure> {
    let servers = endpoint::of_user().await?;
    if let Some(why) = servers.why_simulated {
        return Err(Failure::new(Exit::BadInput, format!("there is no server that counts: {why}")));
    }
    let http = Http::new().map_err(|error| Failure::of(Exit::RunFailed, &error))?;
    let counts = token_counts::counts(&http, &servers.endpoint, model).await;
    counts.map_err(|error| {
        let exit = match error {
            CountError::NoEndpoint { .. } => Exit::BadInput,
            _ => Exit::NoModel,
        };
        Failure::of(exit, &error)
    })
}

fn sandbox_text() -> String {
    let kernel = sandbox::kernel();
    let lacks = kernel.lacks.as_deref().unwrap_or_default();
    let can = match kernel.confinement {
        Some(Confinement::Landlock) => "commands can be confined: by Landlock".to_owned(),
        Some(Confinement::Bubblewrap) => "commands can be confined: by bubblewrap".to_owned(),
        None => format!("commands cannot be confined: {lacks}"),
    };
    let bubblewrap = match sandbox::bubblewrap() {
        Bubblewrap { path: Some(path), lacks: None } => {
            format!("yes  {path} works: files by mounts, the rest by namespaces and seccomp")
        }
        Bubblewrap { lacks, .. } => format!("no   {}", lacks.as_deref().unwrap_or_default()),
    };
    let bubblewrap = format!("{:<22}{bubblewrap}", "bubblewrap");
    let rows = kernel.levels.iter().map(|it| {
        let is_there = if it.is_there { "yes" } else { "no" };
        format!("{:<22}{is_there:<5}{}", it.name, it.holds)
    });
    let escapes = kernel.escapes.iter().map(|it| {
        let is_prevented = if it.is_prevented { "yes" } else { "no" };
        format!("{:<28}{is_prevented:<5}{}", it.name, it.by)
    });
    let ways = "\nWays out of the sandbox, each kind tried by tests: prevented here, and by what"
        .to_owned();
    let head = [can, format!("Landlock version: {}", kernel.landlock)];
    head.into_iter()
        .chain(rows)
        .chain([bubblewrap, ways])
        .chain(escapes)
        .collect::<Vec<_>>()
        .join("\n")
}
