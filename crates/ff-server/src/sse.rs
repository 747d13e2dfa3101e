//! Server-sent events: what a follower is sent as it happens.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use crate::auth;
use crate::call::Call;
use crate::reply;

/// A follower that hears nothing for so long is sent a comment, so that it and all that stands
/// between knows the connection is alive.
pub(crate) const QUIET: Duration = Duration::from_secs(15);

pub(crate) const MEDIA_TYPE: &str = "text/event-stream";

/// Somebody who follows something.
pub(crate) trait Feed: Send + 'static {
    /// What comes next, or an empty text when nothing came for [`QUIET`]; none at the end.
    fn next(&mut self) -> impl Future<Output = Option<Chunk>> + Send;
}

/// A piece of the stream: any number of events.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    text: String,
    /// Nothing follows it.
    pub(crate) is_last: bool,
}

impl Chunk {
    /// Adds an event.
    pub(crate) fn push(&mut self, id: Option<&str>, event: &str, data: &impl Serialize) {
        if let Some(id) = id {
            let _ = writeln!(self.text, "id: {id}");
        }
        let data = serde_json::to_string(data).unwrap_or_default();
        let _ = write!(self.text, "event: {event}\ndata: {data}\n\n");
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    fn bytes(self) -> Bytes {
        if self.is_empty() { Bytes::from_static(b":\n\n") } else { self.text.into() }
    }
}

/// The stream of a feed. It ends with the feed, with the server, or with the caller's key.
pub(crate) fn response<F: Feed>(feed: F, call: &Call, place: OwnedSemaphorePermit) -> Response {
    let (app, caller) = (Arc::clone(&call.app), call.caller.clone());
    let shutdown = app.shutdown.clone();
    let first = Some(Bytes::from_static(b"retry: 2000\n\n"));
    let state = (first, Some(feed), shutdown, (app, caller, place));
    let chunks = stream::unfold(state, |(first, feed, mut shutdown, held)| async move {
        if let Some(first) = first {
            return Some((Ok::<_, std::convert::Infallible>(first), (None, feed, shutdown, held)));
        }
        let mut feed = feed?;
        let chunk = shutdown.or(feed.next()).await??;
        let (app, caller, _) = &held;
        auth::check_still(app, caller).await.ok()?;
        let feed = (!chunk.is_last).then_some(feed);
        Some((Ok(chunk.bytes()), (None, feed, shutdown, held)))
    });
    let response = Response::new(Body::from_stream(chunks));
    let response = reply::with(response, header::CONTENT_TYPE, MEDIA_TYPE);
    reply::with(response, header::CACHE_CONTROL, "no-cache")
}
