//! What comes: events of the log, and output of attempts. Each is a long poll.

use std::time::{Duration, Instant};

use ff_api::event::EventPage;
use ff_api::frame::{self, Stream};
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::limits;
use ff_core::read::{EventFilter, Follow, Followed, From, StreamPage, Tail, Topic};
use ff_core::state::Outcome;

use crate::exchange::{Exchange, unreadable};
use crate::http::Request;
use crate::link::{Link, path};
use crate::no_route::refused;
use crate::questions::output::FRAMES;

/// Longest wait of one request for events.
const EVENTS: Duration = Duration::from_millis(limits::CLAIM_WAIT_MS);

impl Link {
    pub(crate) async fn follow(
        &self,
        topic: Topic,
        wait: Duration,
    ) -> Result<Followed, EngineError> {
        match topic {
            Topic::Events(follow) => self.events(follow, wait).await,
            Topic::Frames(tail) => self.tail(&tail, wait).await.map(Followed::Frames),
            Topic::Timers { .. } => {
                Err(refused("timers", "the server's engine lets time pass by itself"))
            }
        }
    }

    /// A wait that is longer than one request may last is made of several.
    async fn events(&self, mut follow: Follow, wait: Duration) -> Result<Followed, EngineError> {
        follow.check()?;
        let begun = Instant::now();
        loop {
            let left = wait.saturating_sub(begun.elapsed());
            let page = self.page(&follow, left.min(EVENTS)).await?;
            let Followed::Events { items, cursor, gap, .. } = &page else { return Ok(page) };
            if !items.is_empty() || *gap || left <= EVENTS {
                return Ok(page);
            }
            follow.from = From::Cursor(cursor.clone());
        }
    }

    async fn page(&self, follow: &Follow, wait: Duration) -> Result<Followed, EngineError> {
        let mut request = filtered(Request::get(path(&["events"])?), &follow.filter);
        request = match &follow.from {
            From::Now => request,
            From::Start => request.query("after", "start"),
            // To a server these say something else than to a store.
            From::Cursor(cursor) if matches!(cursor.as_str(), "" | "start") => {
                let detail = "the text is not the cursor of a log";
                return Err(Refusal::at(Code::InvalidCursor, "cursor", detail).into());
            }
            From::Cursor(cursor) => request.query("after", cursor),
        };
        // A page has one cursor: who wants one behind each event gets them one by one.
        let limit = if follow.each { 1 } else { follow.limit };
        request = request.query("limit", &limit).wait_ms(ms(wait));
        let namespace = follow.filter.namespace.as_ref().or(self.known.own());
        let each = follow.each;
        let page = Exchange::answer(request.namespace(namespace), move |answer| {
            let form: EventPage = answer.form().map_err(unreadable)?;
            let items = form.items.into_iter().map(|event| event.try_into().map_err(unreadable));
            let items: Vec<_> = items.collect::<Result<_, _>>()?;
            let (cursor, gap) = (form.next_cursor, form.gap);
            let cursors = items.iter().filter(|_| each).map(|_| cursor.clone()).collect();
            Ok(Followed::Events { items, cursors, cursor, gap })
        });
        self.send(page).await
    }

    async fn tail(&self, tail: &Tail, wait: Duration) -> Result<StreamPage, EngineError> {
        tail.check(wait, &self.settings.partitions)?;
        let (id, index) = (tail.execution_id.to_string(), tail.attempt_index.to_string());
        let path = path(&["executions", &id, "attempts", &index, "stream", "tail"])?;
        let request = Request::get(path)
            .query("after", &tail.after)
            .query("block_ms", &ms(wait))
            .query("limit", &tail.limit.min(FRAMES))
            .query("visibility", frame::visibility(tail.visibility))
            .lasting(wait);
        let namespace = self.known.of(tail.execution_id.uuid());
        let page = Exchange::plain::<Stream>(request.namespace(namespace.as_ref()));
        self.send(page).await
    }
}

fn ms(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

/// Texts with commas between; nothing when there are none.
fn listed(request: Request, name: &'static str, texts: &[&str]) -> Request {
    if texts.is_empty() { request } else { request.query(name, &texts.join(",")) }
}

fn filtered(request: Request, filter: &EventFilter) -> Request {
    let kinds: Vec<_> = filter.kinds_of_event.iter().map(|kind| kind.as_str()).collect();
    let outcomes: Vec<_> = filter.outcomes.iter().copied().map(Outcome::as_str).collect();
    let request = listed(request, "types", &kinds);
    listed(request, "outcome", &outcomes)
        .each("lane", filter.lanes.iter())
        .each("kind", filter.kinds.iter())
        .each("tag", filter.tags.iter().map(|(key, value)| format!("{key}:{value}")))
        .each("flow", filter.flow)
}
