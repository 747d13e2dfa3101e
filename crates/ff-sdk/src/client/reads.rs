//! Looking at executions.

use ff_core::backend::BackendExt as _;
use ff_core::content::Content;
use ff_core::error::{Code, Refusal};
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::read::{
    Attempts, Context, Events, Explanation, Filter, ListAttempts, ListEvents, ListSignals, Page,
    ReadContext, ReadResult, ReadState, Record, Search, Signals,
};
use ff_core::state::StateVector;
use ff_core::time::TimestampMs;

use super::Client;
use crate::error::SdkError;
use crate::patience::within;

fn missing(id: ExecutionId) -> SdkError {
    let detail = format!("no execution {id}");
    Refusal::at(Code::ExecutionNotFound, "execution_id", detail).into()
}

impl Client {
    /// All that is known of an execution, but for payload and results.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let greeting = client.submit(Submission::new("greet").lane("mail")).await?;
    /// let record = client.describe(greeting.id()).await?;
    /// assert_eq!((record.lane.as_str(), record.has_ended()), ("mail", false));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_found`, also for one that retention has removed.
    pub async fn describe(&self, execution_id: ExecutionId) -> Result<Record, SdkError> {
        Ok(*self.look_at(execution_id).await?)
    }

    /// Only its state.
    ///
    /// Cheaper than [`Self::describe`] for whoever looks often.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::state::PublicState;
    ///
    /// let greeting = client.submit(Submission::new("greet")).await?;
    /// assert_eq!(client.read_state(greeting.id()).await?.public_state, PublicState::Waiting);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_found`.
    pub async fn read_state(&self, execution_id: ExecutionId) -> Result<StateVector, SdkError> {
        let found = self.ask(ReadState { execution_id }).await?;
        found.ok_or_else(|| missing(execution_id))
    }

    /// Payload, kind and tags.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let greeting = client.submit(Submission::new("greet").payload("Ada")).await?;
    /// let context = client.read_context(greeting.id()).await?;
    /// assert_eq!((context.kind.as_str(), &context.payload[..]), ("greet", &b"Ada"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_found`.
    pub async fn read_context(&self, execution_id: ExecutionId) -> Result<Context, SdkError> {
        let found = self.ask(ReadContext { execution_id }).await?;
        found.ok_or_else(|| missing(execution_id))
    }

    /// The result of the last success, or of one attempt. `result_not_found` while there is none.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// let id = task.execution_id();
    /// task.complete(Some("42".into())).await?;
    /// let result = engine.client().get_result(id, None).await?;
    /// assert_eq!(&result.bytes[..], b"42");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `result_not_found`, `attempt_not_found` and `execution_not_found`.
    pub async fn get_result(
        &self,
        execution_id: ExecutionId,
        attempt_index: Option<u32>,
    ) -> Result<Content, SdkError> {
        self.ask(ReadResult { execution_id, attempt_index }).await
    }

    /// Why an execution is where it is, and what would change it.
    ///
    /// ```
    /// # use ff_sdk::{Client, Submission};
    /// # #[tokio::main] async fn main() -> Result<(), ff_sdk::SdkError> {
    /// # let client = Client::connect("sqlite::memory:").await?;
    /// let execution = client.submit(Submission::new("greet").held()).await?;
    /// let why = client.explain(execution.id()).await?;
    /// assert_eq!(why.cause.as_str(), "operator_hold");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_found`.
    pub async fn explain(&self, execution_id: ExecutionId) -> Result<Explanation, SdkError> {
        let found = within("explain", self.backend().explain(execution_id)).await?;
        found.ok_or_else(|| missing(execution_id))
    }

    /// Attempts in the order of their index, from behind `after` on: a page of up to 500.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// let client = engine.client();
    /// let greeting = client.submit(Submission::new("greet")).await?;
    /// let task = worker.claim_next().await?.expect("there is work");
    /// task.fail("no answer", "transient").await?;
    /// let attempts = client.list_attempts(greeting.id(), None).await?;
    /// assert_eq!(attempts.items[0].failure_reason.as_deref(), Some("no answer"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_found`.
    pub async fn list_attempts(
        &self,
        execution_id: ExecutionId,
        after: Option<u32>,
    ) -> Result<Attempts, SdkError> {
        self.ask(ListAttempts { execution_id, after, limit: limits::PAGE_MAX }).await
    }

    /// Events of one execution, oldest first, from behind the number `after_seq` on: a page of up
    /// to 500.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let greeting = client.submit(Submission::new("greet")).await?;
    /// greeting.cancel("not today").await?;
    /// let events = client.list_events(greeting.id(), 0).await?.items;
    /// let last = events.last().expect("an event");
    /// assert_eq!(last.event.kind.as_str(), "execution.cancelled");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_found`.
    pub async fn list_events(
        &self,
        execution_id: ExecutionId,
        after_seq: u64,
    ) -> Result<Events, SdkError> {
        self.ask(ListEvents { execution_id, after_seq, limit: limits::PAGE_MAX }).await
    }

    /// Signals that an execution has accepted, in order, from number `from` on: a page of up to
    /// 500.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// # use ff_core::id::WaitpointKey;
    /// # use ff_sdk::Suspension;
    /// let id = task.execution_id();
    /// task.suspend_on(Suspension::approval("go")?).await?;
    /// let go: WaitpointKey = "go".parse()?;
    /// engine.client().approve(id, go, "ada", None).await?;
    /// let signals = engine.client().list_signals(id, 0).await?.items;
    /// assert_eq!(signals[0].signal.source_identity, "ada");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `execution_not_found`.
    pub async fn list_signals(
        &self,
        execution_id: ExecutionId,
        from: u32,
    ) -> Result<Signals, SdkError> {
        self.ask(ListSignals { execution_id, from, limit: limits::PAGE_MAX }).await
    }

    /// Executions of the client's namespace, newest first: a page of up to `limit`, behind the
    /// place where the page before ended. A page may be short or empty while it has a cursor.
    ///
    /// ```
    /// use ff_core::read::Filter;
    /// # use ff_sdk::{Client, Submission};
    /// # #[tokio::main] async fn main() -> Result<(), ff_sdk::SdkError> {
    /// # let client = Client::connect("sqlite::memory:").await?;
    /// client.submit(Submission::new("greet").tag("for", "ada")).await?;
    /// let filter = Filter { tags: vec![("for".into(), "ada".into())], ..Filter::default() };
    /// let page = client.search(filter, None, 50).await?;
    /// assert_eq!(page.items.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid_cursor` for a cursor of another search.
    pub async fn search(
        &self,
        filter: Filter,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<Page<Record>, SdkError> {
        let filter = Filter { namespace: Some(self.namespace.clone()), ..filter };
        self.ask(Search { filter, cursor, limit }).await
    }

    /// The clock that decides: of the store.
    ///
    /// What is delayed, leased and kept goes by it, and not by the clock of this machine.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// assert_eq!(engine.client().server_time().await?, engine.now());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Backend`] when there is no answer.
    pub async fn server_time(&self) -> Result<TimestampMs, SdkError> {
        Ok(within("server_time_ms", self.backend().server_time_ms()).await?)
    }
}
