//! Logs on standard error, and traces to a collector.

use ff_observe::traces::Exporter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::config::{Format, Misconfigured, Settings};

/// A command that answers and ends logs only what somebody asks for with `RUST_LOG`: its standard
/// error is for its own words.
pub(crate) fn of_client() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("off"));
    begin(filter, Format::Text, None);
}

/// A server logs as its settings say, and sends traces if they say where.
pub(crate) fn of_server(settings: &Settings) -> Result<Option<Exporter>, Misconfigured> {
    let wrong = |error| Misconfigured(format!("otlp.endpoint: {error}"));
    let exporter = settings.otlp_endpoint.as_deref().map(Exporter::new).transpose();
    let exporter = exporter.map_err(wrong)?;
    begin(EnvFilter::new(&settings.log_filter), settings.log_format, exporter.as_ref());
    Ok(exporter)
}

fn begin(filter: EnvFilter, format: Format, exporter: Option<&Exporter>) {
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        Format::Text => lines.boxed(),
        Format::Json => lines.json().boxed(),
    };
    let traces = exporter.map(Exporter::layer);
    tracing_subscriber::registry().with(lines.with_filter(filter)).with(traces).init();
}
