//! A line for every event, as it happens.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt, EventsAfter};
use ff_core::error::EngineError;
use ff_core::event::Envelope;
use ff_core::limits;
use ff_core::read::{EventFilter, Follow, From};
use ff_core::time::TimestampMs;
use ff_engine::Shutdown;

use crate::output::say;

const WAIT: Duration = Duration::from_secs(60);

pub(crate) struct Feed {
    backend: Arc<dyn Backend>,
    cursor: String,
}

impl Feed {
    /// A feed of everything that happens after this call.
    pub(crate) async fn from_now(backend: Arc<dyn Backend>) -> Result<Self, EngineError> {
        let now = backend.events(follow(From::Now), Duration::ZERO).await?;
        Ok(Self { backend, cursor: now.cursor })
    }

    /// Prints until the wish to stop, and then what there is up to it.
    pub(crate) async fn run(mut self, mut shutdown: Shutdown) -> anyhow::Result<()> {
        while let Some(found) = shutdown.or(self.next(WAIT)).await {
            self.print(found?)?;
        }
        loop {
            let found = self.next(Duration::ZERO).await?;
            if found.items.is_empty() {
                return Ok(());
            }
            self.print(found)?;
        }
    }

    async fn next(&self, wait: Duration) -> Result<EventsAfter, EngineError> {
        self.backend.events(follow(From::Cursor(self.cursor.clone())), wait).await
    }

    fn print(&mut self, found: EventsAfter) -> io::Result<()> {
        for envelope in &found.items {
            say(line(envelope))?;
        }
        self.cursor = found.cursor;
        Ok(())
    }
}

fn follow(from: From) -> Follow {
    Follow { filter: EventFilter::default(), from, limit: limits::PAGE_MAX }
}

/// Time, execution, event, lane, kind, outcome.
fn line(Envelope { event, about }: &Envelope) -> String {
    let time = time_of_day(event.time);
    let kind = about.as_ref().and_then(|about| about.kind.as_deref()).unwrap_or("-");
    let outcome = event.outcome.map_or("", |outcome| outcome.as_str());
    let (id, event_kind, lane) =
        (event.subject.to_string(), event.kind.as_str(), event.lane.as_deref());
    let lane = lane.unwrap_or("-");
    let text = format!("{time}  {id:<44}  {event_kind:<25}  {lane}  {kind}  {outcome}");
    text.trim_end().to_owned()
}

/// As 13:37:00.042Z.
fn time_of_day(at: TimestampMs) -> String {
    let ms = at.0.rem_euclid(86_400_000);
    let (seconds, ms) = (ms / 1000, ms % 1000);
    format!("{:02}:{:02}:{:02}.{ms:03}Z", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_the_day_in_utc() {
        assert_eq!(time_of_day(TimestampMs(0)), "00:00:00.000Z");
        assert_eq!(time_of_day(TimestampMs(1_700_000_000_123)), "22:13:20.123Z");
    }
}
