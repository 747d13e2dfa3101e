//! The API without a socket: the same bodies as over one.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use ff_backend_sqlite::{SqliteOptions, SqliteStore};
use ff_engine::Shutdown;
use ff_server::{Api, ServerOptions};
use tower::ServiceExt as _;

#[tokio::test]
async fn the_api_is_callable_in_process() -> Result<(), Box<dyn std::error::Error>> {
    let store = Arc::new(SqliteStore::open(SqliteOptions::memory())?);
    let (_stop, shutdown) = Shutdown::channel();
    let api = Api::new(store, ServerOptions::default(), shutdown);
    let request = |method: &str, path: &str, body: &'static str| {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        request.body(Body::from(body))
    };
    let submit = request("POST", "/v1/executions", r#"{"lane":"l","kind":"k"}"#)?;
    let answer = api.clone().oneshot(submit).await?;
    assert_eq!(answer.status(), StatusCode::CREATED);
    let answer = api.oneshot(request("GET", "/v1/executions", "")?).await?;
    let body = to_bytes(answer.into_body(), 1 << 20).await?;
    let page: serde_json::Value = serde_json::from_slice(&body)?;
    assert_eq!(page["items"][0]["public_state"], "waiting");
    Ok(())
}
