//! The flags of `serve`, and its sub-commands.

use std::{net::SocketAddr, path::PathBuf};

use clap::Subcommand;
use ennead::serve::{Role, TenantLimits};

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
    /// Seconds that runs under way have to settle after SIGTERM or Ctrl-C and --notice.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) drain: u64,
    /// Seconds before that in which only /readyz says that the server ends, and runs are still taken: as long as load
    /// balancers need to notice.
    #[arg(long, value_name = "SECONDS", default_value_t = 2)]
    pub(crate) notice: u64,
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
    /// Mebibytes of the directories and transcripts of all tenants.
    #[arg(long, value_name = "MIB")]
    pub(crate) max_disk: Option<u64>,
    /// Mebibytes of memory that the sessions of one tenant take that are actors.
    #[arg(long, value_name = "MIB")]
    pub(crate) tenant_memory: Option<u64>,
    /// Mebibytes of memory that the sessions of all tenants take that are actors.
    #[arg(long, value_name = "MIB")]
    pub(crate) max_memory: Option<u64>,
}

impl Limits {
    /// Returns these limits as the server takes them.
    pub(crate) fn limits(&self) -> TenantLimits {
        let mut limits = TenantLimits::default();
        (limits.all_runs, limits.runs) = (self.max_runs.max(1), self.tenant_runs.max(1));
        limits.sessions = self.tenant_sessions;
        limits.tokens_per_day = self.tenant_tokens;
        // What is not an amount counts as 0.
        let micro_usd = |it: f64| format!("{:.0}", it.max(0.0) * 1e6).parse().unwrap_or(0);
        limits.micro_usd_per_day = self.tenant_usd.map(micro_usd);
        let bytes = |mebibytes: Option<u64>| mebibytes.map(|it| it.saturating_mul(1024 * 1024));
        limits.disk_bytes = bytes(self.tenant_disk);
        limits.all_disk_bytes = bytes(self.max_disk);
        limits.memory_bytes = bytes(self.tenant_memory);
        limits.all_memory_bytes = bytes(self.max_memory);
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
