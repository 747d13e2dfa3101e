//! Submitting, alone and in batches.

use std::time::Instant;

use ff_core::backend::BackendExt as _;
use ff_core::error::EngineError;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{Submit, Submitted};
use ff_core::time::TimestampMs;
use uuid::Uuid;

use super::{Client, Execution, Submission};
use crate::error::{SdkError, is_fault};
use crate::outage::Pauses;
use crate::patience::{PATIENCE, within};

/// Payloads of one request of a batch, however many it has: with all that stands around them, and
/// in base64, they stay below what a server takes.
const BATCH_BYTES: usize = 8 << 20;

impl Client {
    /// Submits a piece of work. Sent again when the reply is lost: it is made once.
    ///
    /// ```
    /// # use ff_sdk::{Client, Submission};
    /// # #[tokio::main] async fn main() -> Result<(), ff_sdk::SdkError> {
    /// # let client = Client::connect("sqlite::memory:").await?;
    /// let work = Submission::new("greet").idempotency_key("order-17");
    /// let first = client.submit(work.clone()).await?;
    /// let again = client.submit(work).await?;
    /// assert_eq!(first.id(), again.id());
    /// assert!(again.was_there_already());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] with the name of what is wrong in the submission, before it is sent;
    /// `idempotency_mismatch` when the key was given to other content; `lane_not_accepting` while
    /// the lane drains; `payload_too_large`.
    pub async fn submit(&self, submission: Submission) -> Result<Execution, SdkError> {
        let now = self.clock_for(submission.needs_clock()).await?;
        let submit = self.prepare(submission, now)?;
        let minted = submit.execution_id;
        let submitted = self.insist(submit).await?;
        Ok(self.submitted(minted, &submitted))
    }

    /// Submits many, each on its own, and answers in the same order. A list of any length: what is
    /// more than one request takes goes in several. What the store did not answer is sent again.
    ///
    /// ```
    /// # use ff_sdk::{Client, Submission};
    /// # #[tokio::main] async fn main() -> Result<(), ff_sdk::SdkError> {
    /// # let client = Client::connect("sqlite::memory:").await?;
    /// let lines = (0..2_500).map(|n| Submission::new("line").payload(format!("{n}")));
    /// let made = client.submit_batch(lines).await?;
    /// assert!(made.len() == 2_500 && made.iter().all(Result::is_ok));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a submission that is wrong: then nothing was sent. What becomes of
    /// each of the others is in the answer, as [`Self::submit`] tells it.
    pub async fn submit_batch(
        &self,
        submissions: impl IntoIterator<Item = Submission>,
    ) -> Result<Vec<Result<Execution, SdkError>>, SdkError> {
        let submissions: Vec<Submission> = submissions.into_iter().collect();
        let now = self.clock_for(submissions.iter().any(Submission::needs_clock)).await?;
        let prepared = submissions.into_iter().map(|submission| self.prepare(submission, now));
        let submits: Vec<Submit> = prepared.collect::<Result<_, _>>()?;
        let mut made = Vec::with_capacity(submits.len());
        for page in pages(submits) {
            made.extend(self.submit_page(page).await);
        }
        Ok(made)
    }

    /// A handle of an execution that somebody has submitted. Whether there is one is not asked.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// let submitted = client.submit(Submission::new("greet")).await?;
    /// // Elsewhere, with nothing but the id.
    /// let greeting = client.execution(submitted.id());
    /// assert_eq!(greeting.describe().await?.kind.as_str(), "greet");
    /// # Ok(())
    /// # }
    /// ```
    pub fn execution(&self, execution_id: ExecutionId) -> Execution {
        Execution::new(self.clone(), execution_id, true)
    }

    /// The id that was minted for it tells whether somebody else was there before.
    fn submitted(&self, minted: ExecutionId, submitted: &Submitted) -> Execution {
        let id = submitted.execution_id();
        Execution::new(self.clone(), id, id != minted)
    }

    /// The store's clock, asked only if it is needed.
    pub(super) async fn clock_for(&self, is_needed: bool) -> Result<TimestampMs, SdkError> {
        if is_needed { self.server_time().await } else { Ok(TimestampMs::default()) }
    }

    fn prepare(&self, submission: Submission, now: TimestampMs) -> Result<Submit, SdkError> {
        let partitions = &self.backend().settings().partitions;
        let id = match submission.key()? {
            Some(key) => ExecutionId::for_key(Uuid::now_v7(), &self.namespace, &key, partitions),
            None => ExecutionId::mint(partitions),
        };
        submission.operation(id, &self.namespace, now)
    }

    /// Up to as many as one request takes. Those that nobody answered for are sent again.
    async fn submit_page(&self, page: Vec<Submit>) -> Vec<Result<Execution, SdkError>> {
        let (begun, mut pauses) = (Instant::now(), Pauses::default());
        let mut made: Vec<Option<Result<Submitted, EngineError>>> = vec![None; page.len()];
        let minted: Vec<ExecutionId> = page.iter().map(|submit| submit.execution_id).collect();
        let mut open: Vec<(usize, Submit)> = page.into_iter().enumerate().collect();
        loop {
            let submits = open.iter().map(|(_, submit)| submit.clone()).collect();
            let replies = within("submit_batch", self.backend().submit_batch(submits)).await;
            let replies = replies.unwrap_or_else(|error| vec![Err(error); open.len()]);
            for ((place, _), reply) in open.iter().zip(replies) {
                made[*place] = Some(reply);
            }
            let is_open = |place: usize| matches!(&made[place], Some(Err(e)) if is_fault(e));
            open.retain(|(place, _)| is_open(*place));
            let left = PATIENCE.saturating_sub(begun.elapsed());
            if open.is_empty() || left.is_zero() {
                break;
            }
            tokio::time::sleep(pauses.next().min(left)).await;
        }
        let lost = || Err(EngineError::bug("no reply to an item of a batch"));
        let made = made.into_iter().map(|reply| reply.unwrap_or_else(lost));
        made.zip(minted).map(|(reply, minted)| Ok(self.submitted(minted, &reply?))).collect()
    }
}

/// Cuts a list into what one request takes.
fn pages(submits: Vec<Submit>) -> Vec<Vec<Submit>> {
    let (mut pages, mut page, mut bytes) = (Vec::new(), Vec::new(), 0);
    for submit in submits {
        let size = submit.payload.bytes.len();
        if page.len() == limits::BATCH_ITEMS || (!page.is_empty() && bytes + size > BATCH_BYTES) {
            pages.push(std::mem::take(&mut page));
            bytes = 0;
        }
        bytes += size;
        page.push(submit);
    }
    if !page.is_empty() {
        pages.push(page);
    }
    pages
}
