//! Traces: spans of requests and operations, sent to a collector over OTLP, and the W3C context that
//! travels with an execution from its submit to whoever works on it.

use std::collections::HashMap;

use ff_core::id::ExecutionId;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::field::Empty;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

/// Of the spans that are exported; no log shows them unless it asks for this target.
pub const TARGET: &str = "ff_trace";

const SERVICE: &str = "flowfabric";
const PARENT: &str = "traceparent";

/// Sends spans to a collector, many at a time.
pub struct Exporter(SdkTracerProvider);

impl Exporter {
    /// To a collector at this address, as `http://127.0.0.1:4318`. Whether anybody listens there is
    /// not asked: traces that cannot be sent are lost, and nothing waits for them.
    pub fn new(endpoint: &str) -> Result<Self, ExporterBuildError> {
        let base = endpoint.trim_end_matches('/');
        let url = if base.ends_with("/v1/traces") {
            base.to_owned()
        } else {
            format!("{base}/v1/traces")
        };
        let exporter = SpanExporter::builder().with_http().with_endpoint(url).build()?;
        let resource = Resource::builder().with_service_name(SERVICE).build();
        let provider = SdkTracerProvider::builder();
        Ok(Self(provider.with_resource(resource).with_batch_exporter(exporter).build()))
    }

    /// What takes the spans up.
    pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(&self) -> impl Layer<S> + use<S> {
        let spans = Targets::new().with_target(TARGET, tracing::Level::DEBUG);
        tracing_opentelemetry::layer().with_tracer(self.0.tracer(SERVICE)).with_filter(spans)
    }

    /// Sends what is left.
    pub fn finish(&self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}

/// The span of a request; it belongs to the trace that the caller names.
pub fn request(method: &'static str, route: &'static str, traceparent: Option<&str>) -> Span {
    let span = tracing::debug_span!(
        target: TARGET,
        "request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
    );
    belong(&span, traceparent);
    span
}

/// The span of a handler's work on a task; it belongs to the trace of whoever submitted it.
pub fn task(
    kind: &str,
    execution_id: ExecutionId,
    attempt: u32,
    trace_context: Option<&str>,
) -> Span {
    let span = tracing::debug_span!(
        target: TARGET,
        "task",
        otel.name = format!("handle {kind}"),
        otel.kind = "consumer",
        otel.status_code = Empty,
        execution_id = %execution_id,
        kind,
        attempt,
        outcome = Empty,
    );
    belong(&span, trace_context);
    span
}

/// How the handler ended.
pub fn handled(span: &Span, outcome: &str, failed: bool) {
    span.record("outcome", outcome);
    if failed {
        span.record("otel.status_code", "ERROR");
    }
}

fn belong(span: &Span, traceparent: Option<&str>) {
    if let Some(parent) = traceparent
        && !span.is_disabled()
    {
        let carrier = HashMap::from([(PARENT.to_owned(), parent.to_owned())]);
        // Without a collector there is nothing to belong to.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&carrier));
    }
}

/// What the request was answered with.
pub fn answered(span: &Span, status: u16) {
    span.record("http.response.status_code", status);
}

/// The context of this span, as it travels: `00-<trace>-<span>-<flags>`. None without a collector.
pub fn context(span: &Span) -> Option<String> {
    let context = span.context();
    context.span().span_context().is_valid().then_some(())?;
    let mut carrier = HashMap::new();
    TraceContextPropagator::new().inject_context(&context, &mut carrier);
    carrier.remove(PARENT)
}
