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
    pub async fn describe(&self, execution_id: ExecutionId) -> Result<Record, SdkError> {
        Ok(*self.look_at(execution_id).await?)
    }

    /// Only its state.
    pub async fn read_state(&self, execution_id: ExecutionId) -> Result<StateVector, SdkError> {
        let found = self.ask(ReadState { execution_id }).await?;
        found.ok_or_else(|| missing(execution_id))
    }

    /// Payload, kind and tags.
    pub async fn read_context(&self, execution_id: ExecutionId) -> Result<Context, SdkError> {
        let found = self.ask(ReadContext { execution_id }).await?;
        found.ok_or_else(|| missing(execution_id))
    }

    /// The result of the last success, or of one attempt. `result_not_found` while there is none.
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ff_sdk::SdkError> {
    /// # let client = Client::connect("sqlite::memory:").await?;
    /// let execution = client.submit(Submission::new("greet").held()).await?;
    /// let why = client.explain(execution.id()).await?;
    /// assert_eq!(why.cause.as_str(), "operator_hold");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn explain(&self, execution_id: ExecutionId) -> Result<Explanation, SdkError> {
        let found = within("explain", self.backend().explain(execution_id)).await?;
        found.ok_or_else(|| missing(execution_id))
    }

    /// Attempts in the order of their index, from behind `after` on: a page of up to 500.
    pub async fn list_attempts(
        &self,
        execution_id: ExecutionId,
        after: Option<u32>,
    ) -> Result<Attempts, SdkError> {
        self.ask(ListAttempts { execution_id, after, limit: limits::PAGE_MAX }).await
    }

    /// Events of one execution, oldest first, from behind the number `after_seq` on: a page of up
    /// to 500.
    pub async fn list_events(
        &self,
        execution_id: ExecutionId,
        after_seq: u64,
    ) -> Result<Events, SdkError> {
        self.ask(ListEvents { execution_id, after_seq, limit: limits::PAGE_MAX }).await
    }

    /// Signals that an execution has accepted, in order, from number `from` on: a page of up to 500.
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ff_sdk::SdkError> {
    /// # let client = Client::connect("sqlite::memory:").await?;
    /// client.submit(Submission::new("greet").tag("for", "ada")).await?;
    /// let filter = Filter { tags: vec![("for".into(), "ada".into())], ..Filter::default() };
    /// let page = client.search(filter, None, 50).await?;
    /// assert_eq!(page.items.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
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
    pub async fn server_time(&self) -> Result<TimestampMs, SdkError> {
        Ok(within("server_time_ms", self.backend().server_time_ms()).await?)
    }
}
