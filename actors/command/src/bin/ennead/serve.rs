//! `serve`: hosts sessions of many tenants over HTTP until a signal, and keeps their tokens.

mod tls;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Subcommand;
use ennead::{
    Ennead, SessionOptions,
    serve::{Role, ServeError, ServeOptions, Server, TenantLimits, TokenFile},
};
use tokio::net::TcpListener;

use crate::{
    demo, endpoint,
    exit::{Exit, Failure},
    show,
    signals::Signals,
};

/// The name of the token that is made when there is none.
const FIRST_TOKEN: &str = "first";

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Where everything lies that the server keeps: `work/TENANT` for the directories of sessions, `state` for
    /// transcripts, runs and tokens.
    #[arg(long, value_name = "DIR", default_value = "ennead-server", global = true)]
    pub(crate) dir: PathBuf,
    /// The address to listen on; port 0 takes a free one. Anything but loopback needs --tls-cert and --tls-key.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070")]
    pub(crate) listen: SocketAddr,
    /// The certificates of the server, PEM, its own first.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of the certificate, PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A name of this server next to those of loopback, as clients write it, repeatable.
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// The model of sessions that name none.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Seconds after which an idle session is not an actor any more, until it is asked again.
    #[arg(long, value_name = "SECONDS", default_value_t = 900)]
    pub(crate) passivate_after: u64,
    /// Seconds that runs under way have to settle after SIGTERM or Ctrl-C.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) drain: u64,
    /// The one directory that all sessions work in, in place of one for each; for a server of one person.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(subcommand)]
    pub(crate) command: Option<ServeCommand>,
}

/// What tenants may use.
#[derive(Debug, clap::Args)]
pub(crate) struct Limits {
    /// Runs at once in all.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub(crate) max_runs: usize,
    /// Runs of one tenant at once.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) tenant_runs: usize,
    /// Sessions of one tenant.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) tenant_sessions: usize,
    /// Tokens of one tenant in a day of UTC.
    #[arg(long, value_name = "N")]
    pub(crate) tenant_tokens: Option<u64>,
    /// US dollars of one tenant in a day of UTC, as far as prices are known.
    #[arg(long, value_name = "USD")]
    pub(crate) tenant_usd: Option<f64>,
    /// Mebibytes of the directories and transcripts of one tenant.
    #[arg(long, value_name = "MIB")]
    pub(crate) tenant_disk: Option<u64>,
}

impl Limits {
    fn limits(&self) -> TenantLimits {
        let mut limits = TenantLimits::default();
        (limits.all_runs, limits.runs) = (self.max_runs.max(1), self.tenant_runs.max(1));
        limits.sessions = self.tenant_sessions;
        limits.tokens_per_day = self.tenant_tokens;
        // What is not an amount counts as 0.
        let micro_usd = |it: f64| format!("{:.0}", it.max(0.0) * 1e6).parse().unwrap_or(0);
        limits.micro_usd_per_day = self.tenant_usd.map(micro_usd);
        limits.disk_bytes = self.tenant_disk.map(|it| it.saturating_mul(1024 * 1024));
        limits
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Make tokens, list them, and take them away.
    Token {
        #[command(subcommand)]
        command: TokenCommand,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it: the one time that it can be read.
    Add {
        /// Names the token for people.
        name: String,
        /// The tenant that its bearer works for.
        #[arg(long)]
        tenant: String,
        /// `viewer` looks, `user` works, `admin` does so with all tenants.
        #[arg(long, default_value = "user")]
        role: Role,
    },
    /// List the tokens with their tenants and roles.
    List,
    /// Take a token away; a server that runs notices at once.
    Remove {
        /// The name of the token.
        name: String,
    },
}

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
    let model = endpoint::from_environment()?;
    let mut session = SessionOptions::new(&args.dir, model.endpoint);
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
    let server = Server::start(ennead, options).await.map_err(|it| failure(&it))?;
    if let Some(why) = model.why_simulated {
        show::problem(&why);
    }
    print_address(address, is_plain, first.as_deref())?;
    let listening = server.listen(listener, tls, server.router());
    let mut listening = std::pin::pin!(listening);
    tokio::select! {
        ended = &mut listening => ended.map_err(|it| failure(&it))?,
        _exit = signals.next() => {
            show::note("Ending: runs under way settle, and no new ones begin.");
            let draining = server.drain(Duration::from_secs(args.drain));
            // Status and outcomes can be read until the end.
            futures::future::join(draining, &mut listening).await.1.map_err(|it| failure(&it))?;
        }
    }
    Ok(Exit::Success)
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
