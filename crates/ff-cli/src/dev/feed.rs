//! A line for every event, as it happens.

use std::sync::Arc;
use std::time::Duration;

use ff_api::event::Event;
use ff_core::backend::{Backend, BackendExt, EventsAfter};
use ff_core::error::EngineError;
use ff_core::limits;
use ff_core::read::{EventFilter, Follow, From};
use ff_engine::Shutdown;

use crate::output::say;
use crate::show::{Console, event_line};

const WAIT: Duration = Duration::from_secs(60);

pub(crate) struct Feed {
    backend: Arc<dyn Backend>,
    cursor: String,
    colour: bool,
}

impl Feed {
    /// A feed of everything that happens after this call.
    pub(crate) async fn from_now(backend: Arc<dyn Backend>) -> Result<Self, EngineError> {
        let now = backend.events(follow(From::Now), Duration::ZERO).await?;
        let colour = Console::new(false, false).colour;
        Ok(Self { backend, cursor: now.cursor, colour })
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

    fn print(&mut self, found: EventsAfter) -> anyhow::Result<()> {
        for envelope in found.items {
            let event = serde_json::to_value(Event::from(envelope))?;
            say(event_line(&event, self.colour))?;
        }
        self.cursor = found.cursor;
        Ok(())
    }
}

fn follow(from: From) -> Follow {
    Follow { filter: EventFilter::default(), from, limit: limits::PAGE_MAX, each: false }
}
