//! The API as a service.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{RawPathParams, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::{MethodRouter, any, future::RouteFuture, get};
use ff_core::backend::Backend;
use ff_engine::Shutdown;
use tower::Service;

use crate::app::App;
use crate::failure::{self, Failed};
use crate::options::ServerOptions;
use crate::route::Route;
use crate::routes::{metrics, system};
use crate::trace::Trace;
use crate::{serve, table};

const PREFIX: &str = "/v1/namespaces/{namespace}";

/// Every route over one store, callable in process and behind a socket alike.
#[derive(Clone)]
pub struct Api {
    router: Router,
}

impl Api {
    /// `shutdown` ends what waits and what streams.
    pub fn new(backend: Arc<dyn Backend>, options: ServerOptions, shutdown: Shutdown) -> Self {
        Self::of(App::new(backend, options, shutdown))
    }

    pub(crate) fn of(app: Arc<App>) -> Self {
        let mut router = Router::new();
        for (path, routes) in table::by_path() {
            let namespaced = routes.first().is_some_and(|route| route.is_namespaced());
            let routes: Arc<[&'static Route]> = routes.into();
            router = router.route(path, method_router(&app, &routes));
            if namespaced {
                let rest = path.strip_prefix("/v1").unwrap_or(path);
                router = router.route(&format!("{PREFIX}{rest}"), method_router(&app, &routes));
            }
        }
        let fallback = move |request: Request<Body>| serve::unknown(Arc::clone(&app), request);
        Self { router: router.fallback(fallback) }
    }
}

/// Metrics, and whether the process lives and is ready, for whoever reaches the address.
pub(crate) fn of_metrics(app: &Arc<App>) -> Api {
    let (shown, asked) = (Arc::clone(app), Arc::clone(app));
    let metrics = move |head: Parts| {
        let app = Arc::clone(&shown);
        async move { answer(&head, metrics::response(&app).await.map_err(Failed::from)) }
    };
    let ready = move |head: Parts| {
        let app = Arc::clone(&asked);
        async move { answer(&head, system::readiness(&app).await) }
    };
    let live = |head: Parts| async move { answer(&head, system::alive()) };
    let elsewhere = "here are /metrics, /livez and /readyz, and nothing else\n";
    let router = Router::new().route("/metrics", get(metrics));
    let router = router.route("/livez", get(live)).route("/readyz", get(ready));
    Api { router: router.fallback(move || async move { (StatusCode::NOT_FOUND, elsewhere) }) }
}

fn answer(head: &Parts, answer: Result<Response, Failed>) -> Response {
    answer.unwrap_or_else(|failed| failure::response(failed, &Trace::of(head)))
}

fn method_router(app: &Arc<App>, routes: &Arc<[&'static Route]>) -> MethodRouter {
    let (app, routes) = (Arc::clone(app), Arc::clone(routes));
    any(move |path: RawPathParams, request: Request<Body>| {
        let path = path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        serve::serve(Arc::clone(&app), Arc::clone(&routes), path, request)
    })
}

impl<B> Service<axum::http::Request<B>> for Api
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: axum::http::Request<B>) -> Self::Future {
        self.router.call(request)
    }
}
