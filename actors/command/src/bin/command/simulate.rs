//! `simulate`: a playbook as a model server, until a signal.

use std::{fs, path::Path};

use ennead::{
    internal::{EMBEDDED, Simulator, parse_in},
    testing::Playbook,
};
use ennead_command::{
    exit::{Exit, Failure},
    signals::Signals,
    simulate::serve,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{args::Simulate, show};

pub(crate) async fn run(args: Simulate) -> Result<Exit, Failure> {
    let playbook = playbook(&args.playbook)?;
    let mut signals = Signals::take().await?;
    let bad_port = |error: std::io::Error| {
        let what = format!(
            "cannot listen on 127.0.0.1:{}: {error}; choose another --port, or 0",
            args.port
        );
        Failure::new(Exit::BadInput, what)
    };
    let listener = TcpListener::bind(("127.0.0.1", args.port)).await.map_err(bad_port)?;
    let address = listener.local_addr().map_err(bad_port)?;
    show::result(&format!("http://{address}"))?;
    show::problem(&format!(
        "serving the playbook `{}`; use it with ANTHROPIC_BASE_URL=http://{address}, end it with \
         Ctrl-C",
        args.playbook
    ));
    let stop = CancellationToken::new();
    let stopping = async {
        signals.next().await;
        stop.cancel();
    };
    let serving = serve(Simulator::new(playbook), listener, stop.clone());
    let (served, ()) = futures::future::join(serving, stopping).await;
    served.map_err(|error| Failure::of(Exit::RunFailed, &error))?;
    Ok(Exit::Success)
}

/// A file, or an embedded playbook where no file has the name.
fn playbook(name: &str) -> Result<Playbook, Failure> {
    let text = match (fs::read_to_string(name), EMBEDDED.iter().find(|it| it.0 == name)) {
        (Ok(text), _) => text,
        (Err(_), Some((_, text))) => (*text).to_owned(),
        (Err(error), None) => {
            let names: Vec<&str> = EMBEDDED.iter().map(|it| it.0).collect();
            let what = format!(
                "cannot read the playbook {name}: {error}; name a file, or one of {}",
                names.join(", ")
            );
            return Err(Failure::new(Exit::BadInput, what));
        }
    };
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    parse_in(folder, &text, name).map_err(|error| Failure::of(Exit::BadInput, &error))
}
