//! `serve`: hosts sessions of many tenants over HTTP until a signal, and keeps their tokens.

mod tls;

use std::{net::SocketAddr, time::Duration};

use ennead::{
    Ennead, SessionOptions,
    serve::{Role, ServeError, ServeOptions, Server, TokenFile},
};
use ennead_command::{
    exit::{Exit, Failure},
    signals::Signals,
};
use tokio::net::TcpListener;

use crate::{
    args::{Serve, ServeCommand, TokenCommand},
    demo, endpoint, show,
};

/// The name of the token that is made when there is none.
const FIRST_TOKEN: &str = "first";

/// What it means that no settings say whether commands are confined.
const UNCONFINED: &str = "Commands of sessions are not confined: one that somebody allows can do what the user of this \
     server can, with the files of other tenants and the tokens, too. Set `sandbox.required`, or \
     `sandbox.enabled` to false if that is meant.";

pub(crate) async fn run(args: Serve) -> Result<Exit, Failure> {
    match args.command {
        Some(ServeCommand::Token { ref command }) => token(&args, command),
        None => serve(args).await,
    }
}

fn token(args: &Serve, command: &TokenCommand) -> Result<Exit, Failure> {
    let file = TokenFile::new(args.dir.join("state/tokens.json"));
    match command {
        TokenCommand::Add { name, tenant, role } => {
            show::result(&file.add(name, tenant, *role).map_err(|it| failure(&it))?)?;
        }
        TokenCommand::List => {
            for it in file.list().map_err(|it| failure(&it))? {
                show::result(&format!("{}\t{}\t{}", it.name, it.tenant, it.role.name()))?;
            }
        }
        TokenCommand::Remove { name } => {
            if !file.remove(name).map_err(|it| failure(&it))? {
                return Err(Failure::new(
                    Exit::BadInput,
                    format!("there is no token named {name}"),
                ));
            }
        }
    }
    Ok(Exit::Success)
}

async fn serve(args: Serve) -> Result<Exit, Failure> {
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some(tls::config(cert, key)?),
        _ => None,
    };
    let mut signals = Signals::take().await?;
    // Each session that is an actor keeps two files open.
    demo::raise_open_files();
    let model = endpoint::of_user().await?;
    let session = SessionOptions::new(&args.dir, model.endpoint);
    let mut session = session.fallbacks(model.fallbacks);
    if let Some(name) = &args.model {
        session = session.model(name);
    }
    let mut options = ServeOptions::new(args.dir.join("work"), args.dir.join("state"), session)
        .passivate_after(Duration::from_secs(args.passivate_after.max(1)))
        .limits(args.limits.limits());
    if let Some(workspace) = &args.workspace {
        options = options.workspace(workspace);
    }
    for host in &args.host {
        options = options.host(host.as_str());
    }
    let is_plain = tls.is_none();
    if is_plain && !args.listen.ip().is_loopback() {
        return Err(failure(&ServeError::NoTls { address: args.listen }));
    }
    let tokens = TokenFile::new(options.token_file());
    let first = match tokens.list().map_err(|it| failure(&it))?.is_empty() {
        // On a loopback address the terminal's reader is the user that started the server.
        true if args.listen.ip().is_loopback() => {
            Some(tokens.add(FIRST_TOKEN, "default", Role::Admin).map_err(|it| failure(&it))?)
        }
        true => return Err(failure(&ServeError::NoTokens { path: tokens.path().to_owned() })),
        false => None,
    };
    let bad_address = |error: std::io::Error| {
        Failure::new(Exit::BadInput, format!("cannot listen on {}: {error}", args.listen))
    };
    let listener = TcpListener::bind(args.listen).await.map_err(bad_address)?;
    let address = listener.local_addr().map_err(bad_address)?;
    let ennead = Ennead::start(model.options).await;
    let ennead = ennead.map_err(|error| Failure::of(Exit::RunFailed, &error))?;
    let is_chosen = chooses_confinement(&ennead, &options.session).await;
    let server = Server::start(ennead, options).await.map_err(|it| failure(&it))?;
    if let Some(why) = model.why_simulated {
        show::problem(&why);
    }
    print_address(address, is_plain, first.as_deref())?;
    if !is_chosen {
        show::note(UNCONFINED);
    }
    let listening = server.listen(listener, tls, server.app());
    let mut listening = std::pin::pin!(listening);
    tokio::select! {
        ended = &mut listening => ended.map_err(|it| failure(&it))?,
        _exit = signals.next() => {
            show::note("Ending: runs under way settle, and no new ones begin.");
            let draining = async {
                // A second signal ends the notice.
                let notice = std::pin::pin!(server.announce_end(Duration::from_secs(args.notice)));
                futures::future::select(notice, std::pin::pin!(signals.next())).await;
                server.drain(Duration::from_secs(args.drain)).await;
            };
            // Status and outcomes can be read until the end.
            futures::future::join(draining, &mut listening).await.1.map_err(|it| failure(&it))?;
        }
    }
    Ok(Exit::Success)
}

/// Whether the settings of sessions say if commands are confined.
async fn chooses_confinement(ennead: &Ennead, session: &SessionOptions) -> bool {
    let said = ennead.explain(session).await.unwrap_or_default();
    said.iter().any(|it| matches!(&*it.key, "sandbox.enabled" | "sandbox.required"))
}

/// Prints the address on standard output, and the token that was made on standard error.
fn print_address(address: SocketAddr, is_plain: bool, first: Option<&str>) -> Result<(), Failure> {
    let scheme = if is_plain { "http" } else { "https" };
    show::result(&format!("{scheme}://{address}"))?;
    if let Some(token) = first {
        show::note(&format!(
            "There was no token, so one was made, named {FIRST_TOKEN}; it is shown this once:\n\
             {scheme}://{address}/#token={token}"
        ));
    }
    Ok(())
}

fn failure(error: &ServeError) -> Failure {
    let exit = match error {
        ServeError::InUse { .. } => Exit::Locked,
        ServeError::Random(_) => Exit::RunFailed,
        _ => Exit::BadInput,
    };
    Failure::of(exit, error)
}
