//! What goes wrong, on demand.

use ff_core::id::ExecutionId;
use ff_core::operation::Command;

use super::TestEngine;
use super::bench::{CLAIM, Fault};
use super::engine::must;

impl TestEngine {
    /// The next `n` operations and claims of clients and workers do not reach the store. What
    /// workers send by themselves (heartbeats, renewals) and questions are left alone.
    ///
    /// ```
    /// # use ff_sdk::testing::TestEngine;
    /// # use ff_sdk::Submission;
    /// # #[tokio::main] async fn main() -> Result<(), ff_sdk::SdkError> {
    /// # let engine = TestEngine::start().await;
    /// engine.fail_next(2);
    /// let greeting = engine.client().submit(Submission::new("greet")).await?;
    /// assert_eq!(engine.history(greeting.id()).await, ["execution.submitted"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fail_next(&self, n: u32) {
        self.plan(Fault::NoAnswer, None, n);
    }

    /// The same for the next `n` operations of this name: `claim`, or a name of [`Command::NAMES`]
    /// as `complete_execution`.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// engine.fail_next_of("complete_execution", 2);
    /// let id = task.execution_id();
    /// task.complete(None).await?;
    /// engine.assert_completed(id).await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When no operation has this name.
    pub fn fail_next_of(&self, name: &str, n: u32) {
        self.plan(Fault::NoAnswer, Some(name), n);
    }

    /// The next `n` operations of this name are carried out, and their replies are lost.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_core::read::Filter;
    ///
    /// engine.lose_reply_of("submit_execution", 1);
    /// let client = engine.client();
    /// client.submit(Submission::new("greet")).await?;
    /// let found = client.search(Filter::default(), None, 50).await?;
    /// assert_eq!(found.items.len(), 1, "it was sent twice, and made once");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When no operation has this name.
    pub fn lose_reply_of(&self, name: &str, n: u32) {
        self.plan(Fault::LostReply, Some(name), n);
    }

    fn plan(&self, fault: Fault, name: Option<&str>, n: u32) {
        let is_known = name.is_none_or(|name| name == CLAIM || Command::NAMES.contains(&name));
        assert!(
            is_known,
            "no operation is called {name:?}; there are claim and {:?}",
            Command::NAMES
        );
        if n > 0 {
            self.inner.bench.plan(fault, name.map(str::to_owned), n);
        }
    }

    /// Cancels an execution, as an operator does.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let task = engine.claimed(Submission::new("work")).await;
    /// engine.cancel(task.execution_id(), "not needed").await;
    /// task.cancelled().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When it has ended already in another way.
    pub async fn cancel(&self, execution_id: ExecutionId, reason: &str) {
        must("cancel", self.client().cancel(execution_id, reason).await);
    }
}
