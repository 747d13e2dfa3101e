//! Logs on standard error, traces to a collector, errors and panics to whoever looks after them.

use std::io::IsTerminal as _;
use std::time::Duration;

use ff_observe::reports::Reporter;
use ff_observe::traces::Exporter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::config::{Format, Misconfigured, Settings};

/// How long the last reports may take.
const REPORTING: Duration = Duration::from_secs(2);

/// Who is told of what a process does, besides its log.
#[derive(Default)]
pub(crate) struct Watchers {
    exporter: Option<Exporter>,
    reporter: Option<Reporter>,
}

impl Watchers {
    /// Sends what is left.
    pub(crate) fn finish(self) {
        if let Some(exporter) = self.exporter {
            exporter.finish();
        }
        if let Some(reporter) = self.reporter
            && !reporter.finish(REPORTING)
        {
            tracing::warn!("the last errors were not reported");
        }
    }
}

/// A command that answers and ends logs only what somebody asks for with `RUST_LOG`: its standard
/// error is for its own words.
pub(crate) fn of_client() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("off"));
    begin(filter, Format::Text, &Watchers::default());
}

/// A server logs as its settings say, and sends traces and reports if they say where.
pub(crate) fn of_server(settings: &Settings) -> Result<Watchers, Misconfigured> {
    let wrong = |error| Misconfigured(format!("otlp.endpoint: {error}"));
    let exporter = settings.otlp_endpoint.as_deref().map(Exporter::new).transpose();
    let exporter = exporter.map_err(wrong)?;
    let wrong = |error| Misconfigured(format!("sentry.dsn: no thread can be started: {error}"));
    let reporter = settings.sentry_dsn.clone().map(Reporter::start).transpose().map_err(wrong)?;
    let watchers = Watchers { exporter, reporter };
    begin(EnvFilter::new(&settings.log_filter), settings.log_format, &watchers);
    if let Some(reporter) = &watchers.reporter {
        reporter.hear_panics();
    }
    Ok(watchers)
}

fn begin(filter: EnvFilter, format: Format, watchers: &Watchers) {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colours = std::io::stderr().is_terminal() && !is_plain;
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(colours);
    let lines = match format {
        Format::Text => lines.boxed(),
        Format::Json => lines.json().boxed(),
    };
    let traces = watchers.exporter.as_ref().map(Exporter::layer);
    let reports = watchers.reporter.as_ref().map(Reporter::layer);
    let all = tracing_subscriber::registry().with(lines.with_filter(filter));
    all.with(traces).with(reports).init();
}
