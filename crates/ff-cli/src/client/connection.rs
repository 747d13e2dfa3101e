//! Who answers: a server, or the same API in this process over a store.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::http;
use bytes::Bytes;
use ff_core::backend::Backend;
use ff_core::error::Code;
use ff_engine::{Engine, EngineOptions, Shutdown};
use ff_server::{Api, ApiToken, ServerOptions};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use reqwest::{Body, Response, Url};
use serde_json::Value;
use tokio::sync::watch;
use tower::ServiceExt as _;
use uuid::Uuid;

use super::request::Accept;
use super::{Refused, Request, secret_of};
use crate::failure::Usage;
use crate::stores::{Options, Store};

/// A person at a terminal is soon told that nobody is there.
const CONNECT: Duration = Duration::from_secs(5);
/// The server gives up a request after a minute; a little later so does this side.
const ANSWER: Duration = Duration::from_secs(75);
const CLOSING: Duration = Duration::from_secs(10);
const TOKEN: &str = "FF_API_TOKEN";
/// Under which name the API is called in process.
const HERE: &str = "http://localhost";

/// Where requests go.
pub(crate) struct Client {
    http: reqwest::Client,
    base: Url,
    namespace: Option<HeaderValue>,
    key: Option<HeaderValue>,
    here: Option<Here>,
}

/// The API over a store of this process.
struct Here {
    api: Api,
    backend: Arc<dyn Backend>,
    stop: watch::Sender<bool>,
    shutdown: Shutdown,
}

/// What was answered, all well.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body as JSON; null when there is none.
    pub(crate) fn json(&self) -> anyhow::Result<Value> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body).context("the answer is not JSON")
    }
}

impl Client {
    /// Asks a server.
    pub(crate) fn of_server(url: &str, namespace: Option<&str>) -> anyhow::Result<Self> {
        let base: Url =
            url.parse().map_err(|_| Usage(format!("the URL of the server, {url:?}, is none")))?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            let detail = "the URL of a server begins with http:// or https://; a store is named \
                          with --store";
            return Err(Usage(detail.to_owned()).into());
        }
        let key = match secret_of(TOKEN)? {
            Some(token) => Some(bearer(&token)?),
            None => None,
        };
        Self::new(base, namespace, key, None)
    }

    /// Opens a store and answers from it. Its owner needs no key.
    pub(crate) async fn of_store(url: &str, namespace: Option<&str>) -> anyhow::Result<Self> {
        let backend = Store::open(&Options::parse(url)?).await?.backend();
        let (stop, shutdown) = Shutdown::channel();
        // Whoever opens the store needs no key of it, so a token is made for this process alone.
        let token = format!("{}{}", Uuid::now_v7().simple(), Uuid::now_v7().simple());
        let options =
            ServerOptions { api_token: Some(ApiToken::new(&token)?), ..ServerOptions::default() };
        let key = HeaderValue::from_str(&format!("Bearer {token}"))?;
        let api = Api::new(Arc::clone(&backend), options, shutdown.clone());
        let here = Here { api, backend, stop, shutdown };
        Self::new(HERE.parse()?, namespace, Some(key), Some(here))
    }

    fn new(
        base: Url,
        namespace: Option<&str>,
        key: Option<HeaderValue>,
        here: Option<Here>,
    ) -> anyhow::Result<Self> {
        let namespace = namespace.map(HeaderValue::from_str).transpose();
        let namespace = namespace
            .map_err(|_| Refused::new(Code::InvalidInput, "the namespace is no plain text"))?;
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("ff/", env!("CARGO_PKG_VERSION")));
        // What is on this machine is never behind a proxy.
        let http = if is_loopback(&base) { http.no_proxy() } else { http };
        Ok(Self { http: http.build()?, base, namespace, key, here })
    }

    /// Whether the store is open in this process, and nobody else does its background work.
    pub(crate) fn is_here(&self) -> bool {
        self.here.is_some()
    }

    /// Runs the engine beside, when the store is open in this process: work that is left to the
    /// engine is done by nobody else then.
    pub(crate) fn run_engine(&self) {
        if let Some(here) = &self.here {
            let engine = Engine::new(Arc::clone(&here.backend), EngineOptions::default());
            tokio::spawn(engine.run(here.shutdown.clone()));
        }
    }

    /// The answer, if it is well.
    pub(crate) async fn send(&self, request: Request) -> anyhow::Result<Answer> {
        let response = self.begin(&request).await?;
        let body = response.bytes().await.map_err(|error| broken(&error))?;
        Ok(Answer { body })
    }

    /// The answer as JSON, if it is well.
    pub(crate) async fn ask(&self, request: Request) -> anyhow::Result<Value> {
        self.send(request).await?.json()
    }

    /// The beginning of an answer; the rest comes as it is sent.
    pub(super) async fn begin(&self, request: &Request) -> anyhow::Result<Response> {
        let response = self.exchange(request).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.bytes().await.map_err(|error| broken(&error))?;
        Err(Refused::of(status.as_u16(), body).into())
    }

    async fn exchange(&self, request: &Request) -> anyhow::Result<Response> {
        let built = self.build(request)?;
        let Some(here) = &self.here else {
            let answered = self.http.execute(built).await;
            return answered.map_err(|error| self.unreachable(&error).into());
        };
        let built: http::Request<Body> = built.try_into()?;
        let (head, body) = here.api.clone().oneshot(built).await?.into_parts();
        Ok(http::Response::from_parts(head, Body::wrap_stream(body.into_data_stream())).into())
    }

    fn build(&self, request: &Request) -> anyhow::Result<reqwest::Request> {
        let mut url = self.base.clone();
        let prefix = self.base.path().trim_end_matches('/');
        url.set_path(&format!("{prefix}{}", request.path));
        url.set_query(None);
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        let mut built = self.http.request(request.method.clone(), url);
        built = built.header(ACCEPT, request.accept.media_type());
        if request.accept != Accept::Events {
            built = built.timeout(ANSWER + request.wait);
        }
        if self.is_here() {
            built = built.header(HOST, "localhost");
        }
        if let Some(namespace) = &self.namespace {
            built = built.header("ff-namespace", namespace);
        }
        if let Some(key) = &self.key {
            built = built.header(AUTHORIZATION, key);
        }
        for (name, value) in &request.headers {
            built = built.header(*name, value);
        }
        if let Some(body) = &request.body {
            built = built.header(CONTENT_TYPE, request.content_type).body(body.clone());
        }
        Ok(built.build()?)
    }

    fn unreachable(&self, error: &reqwest::Error) -> Refused {
        let base = self.base.as_str().trim_end_matches('/');
        if error.is_timeout() && !error.is_connect() {
            return Refused::new(Code::Timeout, format!("{base} did not answer in time"));
        }
        let cause = root(error);
        Refused::new(Code::Unavailable, format!("no answer from {base}: {cause}"))
    }

    /// Lets go of the store.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        if let Some(here) = self.here {
            here.stop.send_replace(true);
            drop(here.api);
            here.backend.shutdown_prepare(CLOSING).await?;
        }
        Ok(())
    }
}

fn bearer(token: &str) -> Result<HeaderValue, Usage> {
    let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {token}")) else {
        return Err(Usage(format!("{TOKEN} holds characters that no key has")));
    };
    value.set_sensitive(true);
    Ok(value)
}

fn is_loopback(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The cause at the bottom: what stands above it says only that there is one.
fn root(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

pub(super) fn broken(error: &reqwest::Error) -> Refused {
    let detail = format!("the answer broke off: {}", root(error));
    Refused::new(if error.is_timeout() { Code::Timeout } else { Code::Unavailable }, detail)
}
