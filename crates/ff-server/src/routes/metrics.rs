//! Metrics, in the text form that Prometheus reads.

use std::collections::BTreeSet;

use axum::http::header;
use axum::response::Response;
use ff_core::backend::{Backend, BackendExt as _};
use ff_core::error::EngineError;
use ff_core::id::Namespace;
use ff_core::limits;
use ff_core::read::{LaneSnapshot, ListLanes};
use ff_core::state::Scope::MetricsRead;
use ff_observe::MEDIA_TYPE;

use crate::app::App;
use crate::call::Call;
use crate::failure::Failed;
use crate::reply;
use crate::route::Route;
use crate::route::Verb::Get;

/// Lanes whose depth one look asks for.
const LANES: usize = 1_000;

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
    match lanes(&*app.backend).await {
        Ok(lanes) => metrics.set_lanes(&lanes),
        Err(error) => {
            tracing::warn!(%error, "lanes could not be looked at for the metrics");
            metrics.set_lanes(&[]);
        }
    }
    let text = metrics.text().map_err(|error| EngineError::bug(format!("metrics: {error}")))?;
    Ok(reply::with(Response::new(text.into()), header::CONTENT_TYPE, MEDIA_TYPE))
}

/// Lanes of every namespace that this process has had to do with.
async fn lanes(backend: &dyn Backend) -> Result<Vec<LaneSnapshot>, EngineError> {
    let mut namespaces: BTreeSet<Namespace> = backend.tally().counts().namespaces;
    namespaces.insert(Namespace::default());
    let mut all = Vec::new();
    for namespace in namespaces {
        let mut cursor = None;
        while all.len() < LANES {
            let limit = limits::PAGE_MAX;
            let page = backend
                .ask(ListLanes { namespace: namespace.clone(), within: None, cursor, limit })
                .await?;
            all.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(all)
}
