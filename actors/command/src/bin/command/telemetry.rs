//! Spans as OpenTelemetry has them, sent by OTLP over HTTP to the collector that the environment names.
//!
//! Nothing is sent unless `OTEL_EXPORTER_OTLP_ENDPOINT` or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is set. The
//! other variables of the exporter's documentation hold, `OTEL_SERVICE_NAME` and
//! `OTEL_RESOURCE_ATTRIBUTES` among them. Spans hold names, ids, numbers and times, never text of messages.

mod collector;
mod conventions;

use std::time::Duration;

use collector::Collector;
use conventions::Conventional;
use ennead_command::exit::{Exit, Failure};
use ennead_tools::withdrawn_keys;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing::Subscriber;
use tracing_subscriber::{Layer, filter::Targets, registry::LookupSpan};

/// Either says where spans go.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// What goes with each request, `name=value` with commas between. They may hold a key, so the process has
/// taken them out of its environment.
const HEADERS: [&str; 2] = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"];

/// How long the end of the process waits for spans to be sent.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Sends spans until it ends.
pub(crate) struct Telemetry {
    provider: SdkTracerProvider,
}

impl Telemetry {
    /// Sends spans from now on if the environment names a collector. To be called in a runtime.
    ///
    /// # Errors
    ///
    /// [`Failure`] with the reason when the variables make no sense.
    pub(crate) fn begin() -> Result<Option<Self>, Failure> {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|it| !it.is_empty());
        if !ENDPOINTS.into_iter().any(is_set) {
            return Ok(None);
        }
        let wrong = |why: &dyn std::fmt::Display| {
            Failure::new(Exit::BadInput, format!("spans cannot be sent: {why}"))
        };
        let headers = HEADERS.into_iter().filter_map(withdrawn_keys::text);
        let headers = headers.flat_map(|it| conventions::headers(&it)).collect();
        let collector = Collector::new().map_err(|error| wrong(&error))?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_http_client(collector)
            .with_headers(headers)
            .build()
            .map_err(|error| wrong(&error))?;
        let resource = Resource::builder().with_attribute(opentelemetry::KeyValue::new(
            "service.version",
            env!("CARGO_PKG_VERSION"),
        ));
        let resource = match std::env::var_os("OTEL_SERVICE_NAME") {
            Some(_) => resource,
            None => resource.with_service_name("ennead"),
        };
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(Conventional(exporter))
            .with_resource(resource.build())
            .build();
        Ok(Some(Self { provider }))
    }

    /// Makes the layer that a subscriber of `tracing` hands spans to.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        // Spans of libraries are none of the agent's, and sending one would make more of them.
        let ours = Targets::new().with_target("ennead", tracing::Level::INFO);
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("ennead"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(ours)
    }

    /// Sends what is left, for five seconds at most. To be called while the runtime still runs, from a
    /// thread that may wait.
    pub(crate) fn end(&self) {
        if let Err(error) = self.provider.shutdown_with_timeout(LAST_WAIT) {
            crate::show::problem(&format!("some spans were not sent: {error}"));
        }
    }
}
