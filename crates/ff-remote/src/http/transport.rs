//! Connections to one server.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Certificate, Response, Url};

use super::request::Accept;
use super::{Answer, Fault, Request};

/// A server closes what was quiet for ten seconds; a connection is let go of before that.
const QUIET: Duration = Duration::from_secs(8);

/// No answer takes longer, whatever was asked for.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Where a server is, and how it is spoken to.
pub struct Ends<'a> {
    /// `http://` or `https://`, a host, and a path where the server stands behind one.
    pub url: &'a str,
    /// Shown with every request.
    pub key: Option<&'a str>,
    /// What the server's log calls this side.
    pub agent: &'a str,
    pub connect_timeout: Duration,
    /// How long an answer may take, besides the wait that was asked for.
    pub call_timeout: Duration,
    /// Certificates, as PEM, that are trusted besides those of the system.
    pub roots: &'a [Vec<u8>],
}

/// Why there can be no connection at all. None of these tells a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadEnd {
    #[error("the URL of the server, {0:?}, is none; write http://host:port or https://host")]
    Url(String),
    #[error(
        "the URL of a server begins with http:// or https://, this one with {0}://; a store is \
         opened by its own crate, or named with --store"
    )]
    Scheme(String),
    #[error("the key holds characters that no key has; give it as it was shown when it was made")]
    Key,
    #[error("a root certificate cannot be read; give it as PEM: {0}")]
    Certificate(String),
    #[error("connections cannot be made: {0}")]
    Client(String),
}

/// A pool of connections to one server. Requests do not wait for each other: each has a connection of
/// its own while it is under way, and one that was closed before anything was sent on it is replaced.
pub struct Transport {
    http: reqwest::Client,
    base: Url,
    key: Option<HeaderValue>,
    call_timeout: Duration,
}

impl Transport {
    /// Connects when the first request is sent.
    pub fn new(ends: &Ends<'_>) -> Result<Self, BadEnd> {
        let base: Url = ends.url.parse().map_err(|_| BadEnd::Url(ends.url.to_owned()))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(BadEnd::Scheme(base.scheme().to_owned()));
        }
        if !base.has_host() {
            return Err(BadEnd::Url(ends.url.to_owned()));
        }
        let key = ends.key.map(bearer).transpose()?;
        let mut http = reqwest::Client::builder()
            .connect_timeout(ends.connect_timeout)
            .pool_idle_timeout(QUIET)
            .tcp_nodelay(true)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(ends.agent);
        for root in ends.roots {
            let root = Certificate::from_pem(root)
                .map_err(|error| BadEnd::Certificate(error.to_string()))?;
            http = http.add_root_certificate(root);
        }
        // What is on this machine is never behind a proxy.
        let http = if is_loopback(&base) { http.no_proxy() } else { http };
        let http = http.build().map_err(|error| BadEnd::Client(error.to_string()))?;
        Ok(Self { http, base, key, call_timeout: ends.call_timeout })
    }

    /// Where the server is, as people write it.
    pub fn base(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// The request as HTTP.
    pub fn build(&self, request: &Request) -> Result<reqwest::Request, Fault> {
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
            built = built.timeout(self.call_timeout.saturating_add(request.wait).min(LONGEST));
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
        built.build().map_err(|error| Fault::of(self.base(), &error))
    }

    /// The beginning of an answer, whatever its status; the rest comes as it is sent.
    pub async fn begin(&self, request: &Request) -> Result<Response, Fault> {
        let built = self.build(request)?;
        self.http.execute(built).await.map_err(|error| Fault::of(self.base(), &error))
    }

    /// The whole of an answer whose beginning is here.
    pub async fn finish(&self, response: Response) -> Result<Answer, Fault> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await.map_err(|error| Fault::of(self.base(), &error))?;
        Ok(Answer { status, headers, body })
    }

    /// The next piece of an answer that comes as it is sent; none at its end.
    pub async fn chunk(&self, response: &mut Response) -> Result<Option<bytes::Bytes>, Fault> {
        response.chunk().await.map_err(|error| Fault::of(self.base(), &error))
    }

    /// The whole of an answer. A question whose connection broke is asked once more: the server may
    /// have let go of the connection just as it was sent.
    pub async fn send(&self, request: &Request) -> Result<Answer, Fault> {
        match self.send_once(request).await {
            Err(Fault::Broken { .. }) if !request.changes() => self.send_once(request).await,
            sent => sent,
        }
    }

    async fn send_once(&self, request: &Request) -> Result<Answer, Fault> {
        let response = self.begin(request).await?;
        self.finish(response).await
    }
}

fn bearer(key: &str) -> Result<HeaderValue, BadEnd> {
    let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| BadEnd::Key)?;
    value.set_sensitive(true);
    Ok(value)
}

fn is_loopback(base: &Url) -> bool {
    let host = base.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
