//! Assertions that tell the whole story when they fail.

use std::fmt::Write as _;

use ff_core::backend::BackendExt as _;
use ff_core::event::Event;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::read::{Describe, ListEvents, Record};
use ff_core::state::{Outcome, PublicState};

use super::TestEngine;
use super::engine::must;
use crate::client::Finished;

impl TestEngine {
    /// All that is known of an execution.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let greeting = engine.client().submit(Submission::new("greet")).await?;
    /// assert_eq!(engine.describe(greeting.id()).await.kind.as_str(), "greet");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When there is no such execution.
    pub async fn describe(&self, execution_id: ExecutionId) -> Record {
        let found = must("describe", self.inner.store.ask(Describe { execution_id }).await);
        match found {
            Some(record) => *record,
            None => panic!("there is no execution {execution_id}"),
        }
    }

    /// All events about an execution, oldest first.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// let greeting = engine.client().submit(Submission::new("greet")).await?;
    /// let events = engine.events(greeting.id()).await;
    /// assert_eq!((events.len(), events[0].time), (1, engine.now()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn events(&self, execution_id: ExecutionId) -> Vec<Event> {
        let (mut found, mut after) = (Vec::new(), Some(0));
        while let Some(after_seq) = after {
            let page = ListEvents { execution_id, after_seq, limit: limits::PAGE_MAX };
            let page = must("list events", self.inner.store.ask(page).await);
            found.extend(page.items.into_iter().map(|envelope| envelope.event));
            after = page.next;
        }
        found
    }

    /// The names of these events, as `execution.completed`.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// let id = task.execution_id();
    /// task.complete(None).await?;
    /// let told = engine.history(id).await;
    /// assert_eq!(told.last(), Some(&"execution.completed"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn history(&self, execution_id: ExecutionId) -> Vec<&'static str> {
        self.events(execution_id).await.iter().map(|event| event.kind.as_str()).collect()
    }

    /// The execution ended with success.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// let id = task.execution_id();
    /// task.complete(None).await?;
    /// let finished = engine.assert_completed(id).await;
    /// assert_eq!(finished.record.total_attempt_count, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When it did not: tells its history.
    pub async fn assert_completed(&self, execution_id: ExecutionId) -> Finished {
        self.assert_outcome(execution_id, Outcome::Success).await
    }

    /// The execution ended with this outcome.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::state::Outcome;
    ///
    /// let id = task.execution_id();
    /// task.cancel("not needed").await?;
    /// engine.assert_outcome(id, Outcome::Cancelled).await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When it did not: tells its history.
    pub async fn assert_outcome(&self, execution_id: ExecutionId, outcome: Outcome) -> Finished {
        let record = self.describe(execution_id).await;
        let found = record.state.terminal_outcome;
        if found != Some(outcome) {
            let story = self.story(&record).await;
            let expected = outcome.as_str();
            let found = found.map_or("it has not ended", Outcome::as_str);
            panic!("expected the outcome {expected}, found: {found}\n{story}");
        }
        Finished { outcome, record: Box::new(record) }
    }

    /// The execution is in this state.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// use ff_core::state::PublicState;
    ///
    /// engine.assert_state(task.execution_id(), PublicState::Active).await;
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When it is in another one: tells its history.
    pub async fn assert_state(&self, execution_id: ExecutionId, state: PublicState) -> Record {
        let record = self.describe(execution_id).await;
        let found = record.state.public_state;
        if found != state {
            let story = self.story(&record).await;
            panic!("expected the state {}, found: {}\n{story}", state.as_str(), found.as_str());
        }
        record
    }

    /// What became of an execution so far, for people to read.
    pub(super) async fn story(&self, record: &Record) -> String {
        let mut story = format!("{} ({})", record.execution_id, record.kind);
        if let Some(reason) = &record.failure_reason {
            let _ = write!(story, ", last failure: {reason}");
        }
        let explained = self.inner.store.explain(record.execution_id).await;
        if let Some(why) = must("explain", explained) {
            let _ = write!(story, "\n{}", why.summary);
        }
        for event in self.events(record.execution_id).await {
            let after = event.time.since(record.created_at);
            let _ = write!(story, "\n{after:>10} ms  {}", event.kind.as_str());
            if let Some(attempt) = event.attempt_index {
                let _ = write!(story, "  attempt {attempt}");
            }
        }
        story
    }
}
