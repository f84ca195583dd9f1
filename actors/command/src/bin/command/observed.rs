//! What sees spans and log lines of the process.

use std::{
    fs::File,
    io::{self, IsTerminal},
    sync::Arc,
};

use ennead_command::exit::{Exit, Failure};
use tokio::runtime::Runtime;
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    fmt::{self, format::FmtSpan, writer::BoxMakeWriter},
    layer::SubscriberExt,
};

use crate::args::Log;
#[cfg(feature = "otlp")]
use crate::telemetry::Telemetry;

/// What sees spans and log lines until the process ends.
#[derive(Default)]
pub(crate) struct Observed {
    #[cfg(feature = "otlp")]
    telemetry: Option<Telemetry>,
}

impl Observed {
    /// Has log lines go where the flags say, or to standard error where only `RUST_LOG` asks for them, and spans to the
    /// collector that the environment names. Without any of them nothing looks at them.
    ///
    /// # Errors
    ///
    /// The filter cannot be read, the file cannot be opened, or the collector cannot be used.
    pub(crate) fn begin(runtime: &Runtime, log: &Log) -> Result<Self, Failure> {
        let _within = runtime.enter();
        let observed = Self {
            #[cfg(feature = "otlp")]
            telemetry: Telemetry::begin()?,
        };
        let log = log_layer(log)?;
        let wants_log = log.is_some();
        let subscriber = tracing_subscriber::registry().with(log);
        #[cfg(feature = "otlp")]
        let subscriber = subscriber.with(observed.telemetry.as_ref().map(Telemetry::layer));
        if wants_log || observed.is_seen() {
            // Nothing else in this process sets one.
            let _first = tracing::subscriber::set_global_default(subscriber);
        }
        Ok(observed)
    }

    fn is_seen(&self) -> bool {
        #[cfg(feature = "otlp")]
        return self.telemetry.is_some();
        #[cfg(not(feature = "otlp"))]
        false
    }

    /// Hands over what is not sent yet.
    pub(crate) fn end(&self) {
        #[cfg(feature = "otlp")]
        if let Some(telemetry) = &self.telemetry {
            telemetry.end();
        }
    }
}

/// Writes log lines, and with a flag of the command line the beginning and the end of each span, too.
fn log_layer(log: &Log) -> Result<Option<Box<dyn Layer<Registry> + Send + Sync>>, Failure> {
    let bad = |what: String| Failure::new(Exit::BadInput, what);
    let (filter, spans) = match log.filter() {
        Some(filter) => {
            let filter = EnvFilter::try_new(filter);
            let filter = filter.map_err(|it| bad(format!("--debug: {it}")))?;
            (filter, FmtSpan::NEW | FmtSpan::CLOSE)
        }
        None if std::env::var_os(EnvFilter::DEFAULT_ENV).is_none_or(|it| it.is_empty()) => {
            return Ok(None);
        }
        None => (EnvFilter::from_default_env(), FmtSpan::NONE),
    };
    let (writer, is_colored) = match &log.debug_file {
        None => (BoxMakeWriter::new(io::stderr), io::stderr().is_terminal()),
        Some(path) => {
            let file = File::options().create(true).append(true).open(path);
            let file = file.map_err(|error| {
                bad(format!("--debug-file: {} cannot be opened: {error}", path.display()))
            })?;
            (BoxMakeWriter::new(Arc::new(file)), false)
        }
    };
    let layer = fmt::layer().with_writer(writer).with_ansi(is_colored).with_span_events(spans);
    Ok(Some(layer.with_filter(filter).boxed()))
}
