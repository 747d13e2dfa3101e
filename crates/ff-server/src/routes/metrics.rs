//! Metrics, in the text form that Prometheus reads.

use axum::http::header;
use axum::response::Response;
use ff_core::error::EngineError;
use ff_core::state::Scope::MetricsRead;
use ff_observe::MEDIA_TYPE;

use crate::app::App;
use crate::call::Call;
use crate::failure::Failed;
use crate::reply;
use crate::route::Route;
use crate::route::Verb::Get;

pub(super) const ROUTES: &[Route] = &[Route::new(
    Get,
    "/metrics",
    MetricsRead,
    "Metrics of this process and of the lanes, as Prometheus reads them",
    |call| Box::pin(metrics(call)),
)];

async fn metrics(call: Call) -> Result<Response, Failed> {
    Ok(response(&call.app).await?)
}

/// Everything there is to say at this moment. A store that does not answer leaves out its lanes.
pub(crate) async fn response(app: &App) -> Result<Response, EngineError> {
    let metrics = &app.options.metrics;
    let show = async { app.depths.lock().await.show(&*app.backend, metrics).await };
    // A look that failed has shown that nothing is known.
    let _ = app.looking_at_depths.ask(|| None, show).await;
    let text = metrics.text().map_err(|error| EngineError::bug(format!("metrics: {error}")))?;
    Ok(reply::with(Response::new(text.into()), header::CONTENT_TYPE, MEDIA_TYPE))
}
