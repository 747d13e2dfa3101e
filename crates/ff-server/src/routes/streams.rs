//! Output of attempts: appended, read, followed.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use ff_api::fence::Fence;
use ff_api::frame::{Append, Appended, Frame, NewFrame, ReadFrames, Stream, Summary, TailFrames};
use ff_api::problem::Failure;
use ff_core::backend::BackendExt as _;
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::event::EventKind;
use ff_core::id::{ExecutionId, Namespace, Subject};
use ff_core::limits;
use ff_core::operation::AppendFrames;
use ff_core::read::{
    EventFilter, Follow, From, ReadSummary, SUPERSEDED, StreamClosed, StreamCursor, StreamPage,
    Subscription, Tail, Visibility,
};
use ff_core::state::{Outcome, PublicState, StreamEnd};
use serde::Deserialize;
use utoipa::ToSchema;

use super::reads::own;
use crate::app::App;
use crate::call::{Body, Call};
use crate::caller::Caller;
use crate::failure::Failed;
use crate::reply;
use crate::route::Route;
use crate::route::Verb::{Get, Post};
use crate::sse::{self, Chunk, Feed, QUIET};
use ff_core::state::Scope::{ExecutionsRead, PayloadsRead, WorkersClaim};

const FRAMES_BYTES: usize = 16 << 20;
/// Frames that are sent in one piece.
const PIECE: u32 = 100;

pub(super) const ROUTES: &[Route] = &[
    Route::new(
        Post,
        "/v1/executions/{execution_id}/frames",
        WorkersClaim,
        "Append output",
        |call| Box::pin(append(call)),
    )
    .takes::<Append>()
    .fenced()
    .or_raw()
    .up_to(FRAMES_BYTES)
    .answers::<Appended>(200),
    Route::new(
        Get,
        "/v1/executions/{execution_id}/attempts/{attempt_index}/stream",
        ExecutionsRead,
        "Read the output of an attempt, or follow it",
        |call| Box::pin(read(call)),
    )
    .also(PayloadsRead)
    .asks::<ReadFrames>()
    .answers::<Stream>(200),
    Route::new(
        Get,
        "/v1/executions/{execution_id}/attempts/{attempt_index}/stream/tail",
        ExecutionsRead,
        "Wait for output of an attempt",
        |call| Box::pin(tail(call)),
    )
    .also(PayloadsRead)
    .asks::<TailFrames>()
    .answers::<Stream>(200),
    Route::new(
        Get,
        "/v1/executions/{execution_id}/attempts/{attempt_index}/summary",
        ExecutionsRead,
        "Read the summary of an attempt",
        |call| Box::pin(summary(call)),
    )
    .also(PayloadsRead)
    .answers::<Summary>(200),
    Route::new(
        Get,
        "/v1/executions/{execution_id}/stream",
        ExecutionsRead,
        "Follow the output of all attempts",
        |call| Box::pin(follow_all(call)),
    )
    .also(PayloadsRead)
    .asks::<After>(),
];

/// Behind which frame: `<attempt>:<ms-seq>`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct After {
    after: Option<String>,
}

/// A frame that is the body stands in no list.
fn of_parameters(mut failure: Failure) -> Failed {
    for error in &mut failure.errors {
        error.pointer = error.pointer.replacen("/frames/0", "", 1);
    }
    failure.into()
}

async fn append(mut call: Call) -> Result<Response, Failed> {
    let is_raw = matches!(call.body, Body::Raw(..));
    let (mut fields, raw) = call.fields();
    let fence = Fence::take(&mut fields)?;
    let id = call.execution_id()?;
    let fence = fence.required(id, call.app.store())?;
    let operation = if is_raw {
        let frame: NewFrame = fields.read()?;
        AppendFrames { execution_id: id, fence, frames: vec![frame.operation(raw)?] }
    } else {
        fields.read::<Append>()?.operation(id, fence)?
    };
    call.check(id).await?;
    let appended = call.act(operation).await;
    let appended = appended.map_err(|error| match is_raw {
        true => of_parameters(call.failure(error.into())),
        false => error.into(),
    })?;
    reply::ok(&Appended::from(appended))
}

async fn read(call: Call) -> Result<Response, Failed> {
    let form: ReadFrames = call.query()?;
    let index: u32 = call.parsed("attempt_index")?;
    let id = own(&call).await?;
    if call.accepts(sse::MEDIA_TYPE) {
        return follow(&call, id, index, form).await;
    }
    let page = call.ask(form.question(id, index)?).await?;
    reply::ok(&Stream::from(page))
}

async fn tail(call: Call) -> Result<Response, Failed> {
    let form: TailFrames = call.query()?;
    let index: u32 = call.parsed("attempt_index")?;
    let id = own(&call).await?;
    let question = form.question(id, index)?;
    let block = Duration::from_millis(form.block_ms);
    let _place = if block.is_zero() { None } else { Some(call.app.admit_tail()?) };
    let mut shutdown = call.app.shutdown.clone();
    let waiting = call.backend().tail(question.clone(), block);
    let page = match shutdown.or(waiting).await {
        Some(page) => page?,
        None => call.backend().tail(question, Duration::ZERO).await?,
    };
    reply::ok(&Stream::from(page))
}

async fn summary(call: Call) -> Result<Response, Failed> {
    let attempt_index: u32 = call.parsed("attempt_index")?;
    let execution_id = own(&call).await?;
    let read = call.ask(ReadSummary { execution_id, attempt_index }).await?;
    reply::ok(&Summary::from(read))
}

/// Where a follower goes on: the last id that it has seen, or what it asks for.
fn place(call: &Call, asked: Option<String>) -> Option<String> {
    let seen = call.headers.get("last-event-id").and_then(|value| value.to_str().ok());
    seen.filter(|text| !text.is_empty()).map(str::to_owned).or(asked)
}

async fn follow(
    call: &Call,
    execution_id: ExecutionId,
    attempt_index: u32,
    form: ReadFrames,
) -> Result<Response, Failed> {
    let after = cursor(place(call, form.after).as_deref())?;
    let output = Output { app: Arc::clone(&call.app), execution_id, attempt_index, after };
    // What is wrong with the place or the attempt is told before the stream begins.
    output.look(Duration::ZERO).await?;
    let place = call.app.admit_tail()?;
    let feed = OneAttempt { output };
    Ok(sse::response(feed, call, place))
}

fn cursor(text: Option<&str>) -> Result<StreamCursor, Refusal> {
    text.map_or(Ok(StreamCursor::Id { ms: 0, seq: 0 }), str::parse)
}

/// The output of one attempt behind a place.
struct Output {
    app: Arc<App>,
    execution_id: ExecutionId,
    attempt_index: u32,
    after: StreamCursor,
}

impl Output {
    async fn look(&self, wait: Duration) -> Result<StreamPage, EngineError> {
        let tail = Tail {
            execution_id: self.execution_id,
            attempt_index: self.attempt_index,
            after: self.after,
            limit: PIECE,
            visibility: Visibility::All,
        };
        self.app.backend.tail(tail, wait).await
    }

    /// Puts what comes next into a piece. The end of the stream comes out when all of it was sent.
    async fn next(&mut self, chunk: &mut Chunk, prefix: &str) -> Option<Option<StreamClosed>> {
        let page = self.look(QUIET).await.ok()?;
        if let Some(kept) = page.trimmed_before {
            chunk.push(None, "gap", &serde_json::json!({ "trimmed_before": kept.to_string() }));
        }
        for frame in page.frames {
            self.after = frame.id.into();
            if frame.frame_type != SUPERSEDED {
                let id = format!("{prefix}{}", frame.id);
                let frame = Frame::from(frame);
                chunk.push(Some(&id), &frame.type_.clone(), &frame);
            }
        }
        Some(page.closed.filter(|_| !page.more))
    }
}

/// The outcome that the end of a stream stands for.
fn end(closed: StreamClosed) -> serde_json::Value {
    let outcome = match closed.reason {
        StreamEnd::AttemptSuccess => "success",
        StreamEnd::AttemptFailure | StreamEnd::SuspensionTimeout => "failed",
        StreamEnd::AttemptCancelled => "cancelled",
        StreamEnd::Expired => "expired",
        StreamEnd::Reclaimed | StreamEnd::LeaseExpired => "interrupted",
    };
    let closed_at = ff_api::time::Time(closed.at);
    serde_json::json!({
        "outcome": outcome,
        "closed_reason": closed.reason.as_str(),
        "closed_at": closed_at,
    })
}

/// Follows one attempt to its end.
struct OneAttempt {
    output: Output,
}

impl Feed for OneAttempt {
    async fn next(&mut self) -> Option<Chunk> {
        let mut chunk = Chunk::default();
        if let Some(closed) = self.output.next(&mut chunk, "").await? {
            chunk.push(None, "end", &end(closed));
            chunk.is_last = true;
        }
        Some(chunk)
    }
}

async fn follow_all(call: Call) -> Result<Response, Failed> {
    let After { after } = call.query()?;
    let execution_id = call.execution_id()?;
    let record = call.record(execution_id).await?;
    let place = place(&call, after);
    let (attempt_index, after) = match place.as_deref().map(|text| text.split_once(':')) {
        None => (0, cursor(None)?),
        Some(Some((index, after))) => {
            (index.parse().map_err(|_| bad_place())?, cursor(Some(after))?)
        }
        Some(None) => return Err(bad_place().into()),
    };
    let output = Output { app: Arc::clone(&call.app), execution_id, attempt_index, after };
    let news = News::begin(&call.app, execution_id, record.namespace.clone()).await?;
    let place = call.app.admit_tail()?;
    let feed = AllAttempts { output, caller: call.caller.clone(), news };
    Ok(sse::response(feed, &call, place))
}

fn bad_place() -> Refusal {
    Refusal::at(Code::InvalidCursor, "after", "a place is <attempt>:<ms-seq>")
}

/// Follows one attempt after the other, to the end of the execution.
struct AllAttempts {
    output: Output,
    caller: Caller,
    news: News,
}

impl Feed for AllAttempts {
    async fn next(&mut self) -> Option<Chunk> {
        let mut chunk = Chunk::default();
        let prefix = format!("{}:", self.output.attempt_index);
        let (app, id) = (Arc::clone(&self.output.app), self.output.execution_id);
        let (caller, namespace) = (&self.caller, &self.news.namespace);
        let record = app.namespaces.record(&*app.backend, caller, namespace, id).await.ok()?;
        let begun = self.output.attempt_index < record.total_attempt_count;
        if begun {
            let closed = self.output.next(&mut chunk, &prefix).await?;
            if closed.is_some() {
                self.output.attempt_index += 1;
                self.output.after = StreamCursor::Id { ms: 0, seq: 0 };
            }
            return Some(chunk);
        }
        let state = record.state.public_state;
        if PublicState::ENDED.contains(&state) {
            let outcome = record.state.terminal_outcome.map(Outcome::as_str);
            chunk.push(None, "end", &serde_json::json!({ "outcome": outcome }));
            chunk.is_last = true;
            return Some(chunk);
        }
        self.news.wait(&app, id).await.ok()?;
        Some(chunk)
    }
}

/// Tells when an execution may have begun another attempt, or ended.
struct News {
    namespace: Namespace,
    filter: EventFilter,
    cursor: String,
}

impl News {
    async fn begin(
        app: &App,
        execution_id: ExecutionId,
        namespace: Namespace,
    ) -> Result<Self, EngineError> {
        let mut kinds_of_event = Subscription::Completions.kinds_of_event();
        kinds_of_event.push(EventKind::Claimed);
        let filter = EventFilter {
            kinds_of_event,
            namespace: Some(namespace.clone()),
            ..EventFilter::default()
        };
        let follow = Follow { filter: filter.clone(), from: From::Now, limit: 1, each: false };
        let cursor = app.backend.events(follow, Duration::ZERO).await?.cursor;
        tracing::trace!(%execution_id, "its attempts are followed");
        Ok(Self { namespace, filter, cursor })
    }

    /// Waits up to [`QUIET`].
    async fn wait(&mut self, app: &App, id: ExecutionId) -> Result<(), EngineError> {
        let deadline = tokio::time::Instant::now() + QUIET;
        loop {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            let from = From::Cursor(self.cursor.clone());
            let follow =
                Follow { filter: self.filter.clone(), from, limit: limits::PAGE_MAX, each: false };
            let after = app.backend.events(follow, left).await?;
            self.cursor = after.cursor;
            let of_it = |subject: &Subject| *subject == Subject::Execution(id);
            let told = after.items.iter().any(|envelope| of_it(&envelope.event.subject));
            if told || after.gap || left.is_zero() {
                return Ok(());
            }
        }
    }
}
