//! What the server says of itself.

use axum::http::header;
use axum::response::Response;
use ff_api::problem::{Failure, Problem};
use ff_api::system::{Capabilities, Health, Partitions, Supports, Version};
use ff_core::error::Code;

use crate::app::App;
use crate::call::Call;
use crate::failure::Failed;
use crate::route::Route;
use crate::route::Verb::Get;
use crate::{openapi, problems, reader, reply};
use ff_core::state::Scope::{ExecutionsRead, WorkersClaim};

pub(super) const ROUTES: &[Route] = &[
    Route::open(Get, "/healthz", "Whether the server runs and its store answers", |call| {
        Box::pin(ready(call))
    })
    .answers::<Health>(200),
    Route::open(Get, "/livez", "Whether the server runs", |call| Box::pin(live(call)))
        .answers::<Health>(200),
    Route::open(Get, "/readyz", "Whether the server can take requests", |call| {
        Box::pin(ready(call))
    })
    .answers::<Health>(200),
    Route::open(Get, "/version", "Version of the server", |call| Box::pin(version(call)))
        .answers::<Version>(200),
    Route::open(Get, "/openapi.json", "This description", |call| Box::pin(description(call))),
    Route::open(Get, "/docs", "The same as a page to read", |call| Box::pin(page(call))),
    Route::open(Get, "/problems/{code}", "What a code means", |call| Box::pin(problem(call))),
    Route::new(
        Get,
        "/v1/capabilities",
        ExecutionsRead,
        "What the store can do; a key that claims tasks may ask too, since workers connect by it",
        |call| Box::pin(capabilities(call)),
    )
    .or(WorkersClaim)
    .answers::<Capabilities>(200),
];

async fn live(_: Call) -> Result<Response, Failed> {
    alive()
}

async fn ready(call: Call) -> Result<Response, Failed> {
    readiness(&call.app).await
}

/// The answer of a process that runs.
pub(crate) fn alive() -> Result<Response, Failed> {
    reply::ok(&Health { status: "ok".to_owned(), reasons: Vec::new() })
}

/// Whether the process can do its work: the same, or why not.
pub(crate) async fn readiness(app: &App) -> Result<Response, Failed> {
    let reason = if app.shutdown.is_requested() {
        Some("the server is stopping".to_owned())
    } else {
        app.backend.ping().await.err().map(|error| format!("the store does not answer: {error}"))
    };
    match reason {
        None => alive(),
        Some(reason) => Err(Failure::new(Problem::new(Code::Unavailable, reason)).into()),
    }
}

async fn version(_: Call) -> Result<Response, Failed> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    reply::ok(&Version { version, api: "v1".to_owned() })
}

async fn description(_: Call) -> Result<Response, Failed> {
    reply::ok(&openapi::document())
}

async fn page(_: Call) -> Result<Response, Failed> {
    let page = Response::new(reader::page().into());
    let page = reply::with(page, header::CONTENT_SECURITY_POLICY, reader::POLICY);
    Ok(reply::with(page, header::CONTENT_TYPE, "text/html; charset=utf-8"))
}

async fn problem(call: Call) -> Result<Response, Failed> {
    let Ok(code) = call.part("code").parse::<Code>() else {
        let problem = Problem::new(Code::RouteNotFound, "there is no such code");
        return Err(Failure::new(problem).into());
    };
    let page = Response::new(problems::page(code).into());
    Ok(reply::with(page, header::CONTENT_TYPE, "text/markdown; charset=utf-8"))
}

async fn capabilities(call: Call) -> Result<Response, Failed> {
    let identity = call.backend().identity();
    let settings = call.backend().settings();
    let (partitions, retention) = (settings.partitions, settings.retention.into());
    let server_time = Some(call.backend().server_time_ms().await?.into());
    let embedded = identity.backend == "sqlite";
    reply::ok(&Capabilities {
        backend: identity.backend.to_owned(),
        version: identity.version,
        durability: identity.durability,
        partitions: Partitions {
            flow: partitions.flow,
            budget: partitions.budget,
            quota: partitions.quota,
        },
        supports: Supports {
            executions: true,
            flows: true,
            suspension: true,
            streams: true,
            events: true,
            budgets: true,
            quotas: true,
            many_processes: !embedded,
            exact_priority: embedded || identity.backend == "postgres",
        },
        retention,
        server_time,
    })
}
