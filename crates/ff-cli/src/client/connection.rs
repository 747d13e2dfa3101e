//! Who answers: a server, or the same API in this process over a store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::http;
use bytes::Bytes;
use ff_core::backend::Backend;
use ff_core::error::Code;
use ff_core::id::Namespace;
use ff_engine::{Engine, EngineOptions, Shutdown};
use ff_remote::http::{Ends, Fault, Request, Transport};
use ff_server::{Api, ApiToken, ServerOptions};
use reqwest::header::{HOST, HeaderValue};
use reqwest::{Body, Response};
use serde_json::Value;
use tokio::sync::watch;
use tower::ServiceExt as _;
use uuid::Uuid;

use super::{Refused, secret_of};
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
    transport: Transport,
    shows_key: bool,
    namespace: Option<Namespace>,
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
    /// Asks a server, which certificates in the file `ca` may vouch for.
    pub(crate) fn of_server(
        url: &str,
        namespace: Option<&str>,
        ca: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let key = secret_of(TOKEN)?;
        let read =
            |path: &Path| std::fs::read(path).map_err(|error| Usage::unreadable(path, &error));
        let roots: Vec<Vec<u8>> = ca.map(read).transpose()?.into_iter().collect();
        let ends = Ends { key: key.as_deref(), roots: &roots, ..ends(url) };
        Self::new(&ends, namespace, None)
    }

    /// Opens a store and answers from it; `makes`: also one that is not there yet. Its owner needs no
    /// key.
    pub(crate) async fn of_store(
        url: &str,
        makes: bool,
        namespace: Option<&str>,
    ) -> anyhow::Result<Self> {
        let options = Options::parse(url)?;
        if !makes {
            options.check_there().await?;
        }
        let backend = Store::open(&options).await?.backend();
        let (stop, shutdown) = Shutdown::channel();
        // Whoever opens the store needs no key of it, so a token is made for this process alone.
        let token = format!("{}{}", Uuid::now_v7().simple(), Uuid::now_v7().simple());
        let options =
            ServerOptions { api_token: Some(ApiToken::new(&token)?), ..ServerOptions::default() };
        let api = Api::new(Arc::clone(&backend), options, shutdown.clone());
        let here = Here { api, backend, stop, shutdown };
        let ends = Ends { key: Some(&token), ..ends(HERE) };
        Self::new(&ends, namespace, Some(here))
    }

    fn new(ends: &Ends<'_>, namespace: Option<&str>, here: Option<Here>) -> anyhow::Result<Self> {
        let namespace = namespace.map(Namespace::new).transpose();
        let namespace =
            namespace.map_err(|error| Refused::new(Code::InvalidInput, error.to_string()))?;
        let transport = Transport::new(ends).map_err(|error| Usage(error.to_string()))?;
        Ok(Self { transport, shows_key: ends.key.is_some(), namespace, here })
    }

    /// Whether a server is shown a key, so that it asks for one.
    pub(crate) fn shows_key(&self) -> bool {
        self.shows_key && self.here.is_none()
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
        let body = self.transport.finish(response).await.map_err(|fault| lost(&fault))?.body;
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
        let body = self.transport.finish(response).await.map_err(|fault| lost(&fault))?.body;
        Err(Refused::of(status.as_u16(), body).into())
    }

    /// The next piece of an answer that comes as it is sent.
    pub(super) async fn chunk(&self, response: &mut Response) -> Result<Option<Bytes>, Refused> {
        self.transport.chunk(response).await.map_err(|fault| lost(&fault))
    }

    async fn exchange(&self, request: &Request) -> anyhow::Result<Response> {
        let request = request.clone().namespace(self.namespace.as_ref());
        let Some(here) = &self.here else {
            return Ok(self.transport.begin(&request).await.map_err(|fault| lost(&fault))?);
        };
        let mut built = self.transport.build(&request).map_err(|fault| lost(&fault))?;
        built.headers_mut().insert(HOST, HeaderValue::from_static("localhost"));
        let built: http::Request<Body> = built.try_into()?;
        let (head, body) = here.api.clone().oneshot(built).await?.into_parts();
        Ok(http::Response::from_parts(head, Body::wrap_stream(body.into_data_stream())).into())
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

/// How somebody at `url` is spoken to, without a key.
fn ends(url: &str) -> Ends<'_> {
    Ends {
        url,
        key: None,
        agent: concat!("ff/", env!("CARGO_PKG_VERSION")),
        connect_timeout: CONNECT,
        call_timeout: ANSWER,
        roots: &[],
    }
}

/// A request that got no answer, told as a server would.
fn lost(fault: &Fault) -> Refused {
    let code = match fault {
        Fault::Late { .. } => Code::Timeout,
        Fault::Unreachable { .. } | Fault::Broken { .. } => Code::Unavailable,
        Fault::Malformed { .. } => Code::InvalidInput,
    };
    Refused::new(code, fault.to_string())
}
