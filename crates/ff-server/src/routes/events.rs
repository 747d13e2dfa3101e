//! The log: of everything, of one execution and of one flow.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use ff_api::event::{Event, EventPage, Events};
use ff_api::list::{Page, Paging, scope};
use ff_core::backend::{BackendExt as _, EventsAfter};
use ff_core::cursor;
use ff_core::error::EngineError;
use ff_core::event::EventKind;
use ff_core::id::{ExecutionId, FlowId, Namespace};
use ff_core::limits;
use ff_core::read::{EventFilter, Events as Listed, Follow, From, ListEvents, ListFlowEvents};

use crate::app::App;
use crate::call::Call;
use crate::failure::Failed;
use crate::route::Route;
use crate::route::Verb::Get;
use crate::sse::{self, Chunk, Feed, QUIET};
use crate::{flows, reply};
use ff_core::state::Scope::EventsRead;

/// Events of one look. Every event is sent with the place behind it, so that whoever comes back hears
/// none twice.
const PIECE: u32 = 256;

pub(super) const ROUTES: &[Route] = &[
    Route::new(
        Get,
        "/v1/events",
        EventsRead,
        "Read the log, wait for events, or follow them",
        |call| Box::pin(events(call)),
    )
    .asks::<Events>()
    .waits(limits::CLAIM_WAIT_MS)
    .answers::<EventPage>(200),
    Route::new(
        Get,
        "/v1/executions/{execution_id}/events",
        EventsRead,
        "List the events of an execution, or follow them",
        |call| Box::pin(of_execution(call)),
    )
    .asks::<Paging>()
    .answers::<Page<Event>>(200),
    Route::new(
        Get,
        "/v1/flows/{flow_id}/events",
        EventsRead,
        "List the events of a flow, or follow them",
        |call| Box::pin(of_flow(call)),
    )
    .asks::<Paging>()
    .answers::<Page<Event>>(200),
];

fn from(text: Option<&str>) -> From {
    match text {
        None | Some("") => From::Now,
        Some("start") => From::Start,
        Some(cursor) => From::Cursor(cursor.to_owned()),
    }
}

fn last_seen(call: &Call) -> Option<&str> {
    let seen = call.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    seen.filter(|text| !text.is_empty())
}

async fn events(call: Call) -> Result<Response, Failed> {
    let form: Events = call.query()?;
    let mut filter = form.filter(call.namespace.clone())?;
    filter.lanes = call.caller.lanes_among(filter.lanes)?;
    if call.accepts(sse::MEDIA_TYPE) {
        return follow(&call, filter, &form).await;
    }
    let limit = form.limit.unwrap_or(limits::PAGE);
    let follow = Follow { filter, from: from(form.after.as_deref()), limit, each: false };
    let mut shutdown = call.app.shutdown.clone();
    let waiting = call.backend().events(follow.clone(), call.wait);
    let after = match shutdown.or(waiting).await {
        Some(after) => after?,
        None => call.backend().events(follow, Duration::ZERO).await?,
    };
    let items = after.items.into_iter().map(Event::from).collect();
    reply::ok(&EventPage { items, next_cursor: after.cursor, gap: after.gap })
}

async fn follow(call: &Call, filter: EventFilter, form: &Events) -> Result<Response, Failed> {
    let from = from(last_seen(call).or(form.after.as_deref()));
    // The place is taken, and a bad cursor refused, before the stream begins.
    let first = Follow { filter: filter.clone(), from, limit: PIECE, each: true };
    let first = call.backend().events(first, Duration::ZERO).await?;
    let place = call.app.admit_tail()?;
    let app = Arc::clone(&call.app);
    let feed = Log { app, filter, cursor: first.cursor.clone(), first: Some(chunk(first)) };
    Ok(sse::response(feed, call, place))
}

/// What was read, as it is sent.
fn chunk(after: EventsAfter) -> Chunk {
    let mut chunk = Chunk::default();
    if after.gap {
        chunk.push(None, "gap", &serde_json::json!({}));
    }
    for (event, cursor) in after.items.into_iter().map(Event::from).zip(&after.cursors) {
        chunk.push(Some(cursor), event.type_.as_str(), &event);
    }
    chunk
}

/// Follows the log.
struct Log {
    app: Arc<App>,
    filter: EventFilter,
    cursor: String,
    first: Option<Chunk>,
}

impl Feed for Log {
    async fn next(&mut self) -> Option<Chunk> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let from = From::Cursor(self.cursor.clone());
        let follow = Follow { filter: self.filter.clone(), from, limit: PIECE, each: true };
        let after = self.app.backend.events(follow, QUIET).await.ok()?;
        self.cursor.clone_from(&after.cursor);
        Some(chunk(after))
    }
}

async fn of_execution(call: Call) -> Result<Response, Failed> {
    let id = call.execution_id()?;
    let record = call.record(id).await?;
    let filter = EventFilter {
        namespace: Some(record.namespace.clone()),
        lanes: vec![record.lane.clone()],
        ..EventFilter::default()
    };
    of_one(call, Of::Execution(id), filter).await
}

async fn of_flow(call: Call) -> Result<Response, Failed> {
    let id = call.flow_id()?;
    flows::flow(&call, id).await?;
    let of_flows = |kind: &&EventKind| {
        let name = kind.as_str();
        name.starts_with("flow.") || name.starts_with("edge.")
    };
    let filter = EventFilter {
        kinds_of_event: EventKind::ALL.iter().filter(of_flows).copied().collect(),
        namespace: Some(call.namespace.clone()),
        flow: Some(id),
        ..EventFilter::default()
    };
    of_one(call, Of::Flow(id), filter).await
}

/// Whose events.
#[derive(Debug, Clone, Copy)]
enum Of {
    Execution(ExecutionId),
    Flow(FlowId),
}

impl Of {
    /// What a cursor is bound to.
    fn scope(self, namespace: &Namespace) -> String {
        match self {
            Self::Execution(id) => scope("events", namespace, id),
            Self::Flow(id) => scope("flow events", namespace, id),
        }
    }

    async fn list(self, app: &App, after_seq: u64, limit: u32) -> Result<Listed, EngineError> {
        match self {
            Self::Execution(execution_id) => {
                app.backend.ask(ListEvents { execution_id, after_seq, limit }).await
            }
            Self::Flow(flow_id) => {
                app.backend.ask(ListFlowEvents { flow_id, after_seq, limit }).await
            }
        }
    }
}

/// A page, or all that comes. `filter` lets pass at least what is new of the one.
async fn of_one(call: Call, of: Of, filter: EventFilter) -> Result<Response, Failed> {
    let paging: Paging = call.query()?;
    let scope = of.scope(&call.namespace);
    let place = last_seen(&call).or(paging.cursor.as_deref());
    let after_seq = place.map(|text| cursor::decode::<u64>(&scope, text)).transpose()?;
    let after_seq = after_seq.unwrap_or(0);
    if call.accepts(sse::MEDIA_TYPE) {
        let now = Follow { filter: filter.clone(), from: From::Now, limit: 1, each: false };
        let cursor = call.backend().events(now, Duration::ZERO).await?.cursor;
        let place = call.app.admit_tail()?;
        let app = Arc::clone(&call.app);
        let feed = OfOne { app, of, scope, after_seq, filter, cursor, gap_told: None };
        return Ok(sse::response(feed, &call, place));
    }
    let page = of.list(&call.app, after_seq, paging.limit()).await?;
    let items: Vec<Event> = page.items.into_iter().map(Into::into).collect();
    let next_cursor = page.next.map(|seq| cursor::encode(&scope, &seq));
    reply::page(&call, &Page { gap: page.gap, ..Page::new(items, next_cursor) })
}

/// Follows one execution or flow. The log as a whole tells when to look.
struct OfOne {
    app: Arc<App>,
    of: Of,
    scope: String,
    after_seq: u64,
    filter: EventFilter,
    cursor: String,
    /// Behind which event the last gap was told: until there is another one, it is the same gap.
    gap_told: Option<u64>,
}

impl OfOne {
    async fn look(&mut self) -> Result<Chunk, EngineError> {
        let page = self.of.list(&self.app, self.after_seq, limits::PAGE_MAX).await?;
        let mut chunk = Chunk::default();
        if page.gap && self.gap_told.replace(self.after_seq) != Some(self.after_seq) {
            chunk.push(None, "gap", &serde_json::json!({}));
        }
        for envelope in page.items {
            self.after_seq = envelope.event.seq;
            let id = cursor::encode(&self.scope, &self.after_seq);
            let event = Event::from(envelope);
            chunk.push(Some(&id), event.type_.as_str(), &event);
        }
        Ok(chunk)
    }
}

impl Feed for OfOne {
    async fn next(&mut self) -> Option<Chunk> {
        let chunk = self.look().await.ok()?;
        if !chunk.is_empty() {
            return Some(chunk);
        }
        let from = From::Cursor(self.cursor.clone());
        let follow =
            Follow { filter: self.filter.clone(), from, limit: limits::PAGE_MAX, each: false };
        self.cursor = self.app.backend.events(follow, QUIET).await.ok()?.cursor;
        self.look().await.ok()
    }
}
