//! What a task can do while it goes on.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ff_core::backend::BackendExt as _;
use ff_core::content::Content;
use ff_core::id::{BudgetId, IdempotencyKey, WaitpointId};
use ff_core::operation::{
    AppendFrames, CreatePendingWaitpoint, NewFrame, Renew, ReportToAll, ReportUsage, ResumeSignal,
    Spender, UpdateProgress, UsageReported,
};
use ff_core::read::{ObserveSignals, StreamCursor, Visibility};
use ff_core::state::FrameMode;
use ff_core::time::TimestampMs;
use tokio::time::Instant;
use uuid::Uuid;

use super::{AppendFrameOutcome, ClaimedTask, Usage, WaitpointTicket};
use crate::config::parse;
use crate::error::SdkError;
use crate::outage::Pauses;
use crate::stream::{self, StreamFrames};

impl ClaimedTask {
    /// Renews the lease now. It is renewed by itself while the task lives; this is for whoever
    /// wants to know.
    pub async fn renew_lease(&self) -> Result<TimestampMs, SdkError> {
        let (execution_id, fence) = (self.execution_id(), self.fence());
        let sent = Instant::now();
        let renewed = self.call(Renew { execution_id, fence, ttl_ms: None }).await;
        self.worker().leases().heard(self.lease(), sent, renewed.clone());
        Ok(renewed?.expires_at)
    }

    /// Says how far the task is: 0 to 100, and a word for people.
    pub async fn update_progress(
        &self,
        pct: u8,
        message: impl Into<String>,
    ) -> Result<(), SdkError> {
        let (execution_id, fence, message) = (self.execution_id(), self.fence(), message.into());
        self.call(UpdateProgress { execution_id, fence, pct, message }).await?;
        Ok(())
    }

    /// Counts usage against a budget. Sent again after a lost reply it counts once: by `dedup`, or
    /// by a key that is made here.
    pub async fn report_usage(
        &self,
        budget_id: BudgetId,
        usage: &Usage,
        dedup: Option<&str>,
    ) -> Result<UsageReported, SdkError> {
        let report = ReportUsage {
            budget_id,
            spender: self.spender(),
            dimensions: usage.dimensions()?,
            dedup_key: Some(self.dedup_key(dedup)?),
            mode: None,
        };
        Ok(self.insist(report).await?)
    }

    /// The same for every budget that the execution stands under: its own, and those of its flow,
    /// lane and namespace.
    pub async fn report_usage_to_all(
        &self,
        usage: &Usage,
        dedup: Option<&str>,
    ) -> Result<Vec<(BudgetId, UsageReported)>, SdkError> {
        let report = ReportToAll {
            spender: self.spender(),
            dimensions: usage.dimensions()?,
            dedup_key: Some(self.dedup_key(dedup)?),
            mode: None,
        };
        Ok(self.worker().backend().report_to_all(report).await?)
    }

    fn spender(&self) -> Spender {
        Spender { execution_id: self.execution_id(), attempt_index: self.attempt_index() }
    }

    fn dedup_key(&self, given: Option<&str>) -> Result<IdempotencyKey, SdkError> {
        match given {
            Some(key) => parse("dedup_key", key),
            None => parse("dedup_key", &Uuid::now_v7().to_string()),
        }
    }

    /// Makes a waitpoint that keeps what is said to it for a suspend to come; the lease is kept.
    /// So the token can be given away before the task stops.
    pub async fn create_pending_waitpoint(
        &self,
        key: &str,
        expires_at: Option<TimestampMs>,
    ) -> Result<WaitpointTicket, SdkError> {
        let create = CreatePendingWaitpoint {
            execution_id: self.execution_id(),
            fence: self.fence(),
            waitpoint_id: WaitpointId::mint(),
            key: parse("waitpoint_key", key)?,
            expires_at,
            token_ttl_ms: None,
        };
        Ok(self.insist(create).await?.into())
    }

    /// Appends a piece of output, kept as the policy of the execution says. `metadata` is its
    /// correlation id.
    pub async fn append_frame(
        &self,
        frame_type: impl Into<String>,
        payload: impl Into<Bytes>,
        metadata: Option<&str>,
    ) -> Result<AppendFrameOutcome, SdkError> {
        let frame = NewFrame::new(frame_type, Content::new(payload));
        self.append_one(NewFrame { correlation_id: metadata.map(str::to_owned), ..frame }).await
    }

    /// The same, kept as `mode` says.
    pub async fn append_frame_with_mode(
        &self,
        frame_type: impl Into<String>,
        payload: impl Into<Bytes>,
        metadata: Option<&str>,
        mode: FrameMode,
    ) -> Result<AppendFrameOutcome, SdkError> {
        let frame = NewFrame::new(frame_type, Content::new(payload)).with_mode(mode);
        self.append_one(NewFrame { correlation_id: metadata.map(str::to_owned), ..frame }).await
    }

    async fn append_one(&self, frame: NewFrame) -> Result<AppendFrameOutcome, SdkError> {
        let appended = self.append_frames(vec![frame]).await?;
        appended.first().copied().ok_or_else(|| SdkError::Engine(no_frame()))
    }

    /// Appends up to a hundred pieces of output: all of them or none.
    pub async fn append_frames(
        &self,
        frames: Vec<NewFrame>,
    ) -> Result<Vec<AppendFrameOutcome>, SdkError> {
        let (execution_id, fence) = (self.execution_id(), self.fence());
        Ok(self.call(AppendFrames { execution_id, fence, frames }).await?.frames)
    }

    /// Reads output of this attempt: from one place to another, both included.
    pub async fn read_stream(
        &self,
        from: StreamCursor,
        to: StreamCursor,
        count_limit: u32,
    ) -> Result<StreamFrames, SdkError> {
        let (id, attempt) = (self.execution_id(), self.attempt_index());
        let backend = self.worker().backend();
        stream::read_stream(&**backend, id, attempt, from, to, count_limit).await
    }

    /// Output of this attempt behind a place; waits up to `block` for the first of it.
    pub async fn tail_stream(
        &self,
        after: StreamCursor,
        block: Duration,
        count_limit: u32,
    ) -> Result<StreamFrames, SdkError> {
        self.tail_stream_with_visibility(after, block, count_limit, Visibility::All).await
    }

    /// The same, with or without what is only for those who watch now.
    pub async fn tail_stream_with_visibility(
        &self,
        after: StreamCursor,
        block: Duration,
        count_limit: u32,
        visibility: Visibility,
    ) -> Result<StreamFrames, SdkError> {
        let (id, attempt) = (self.execution_id(), self.attempt_index());
        let backend = self.worker().backend();
        let tail = stream::TailOptions { after, block, count_limit, visibility };
        stream::tail_stream_with(&**backend, id, attempt, tail).await
    }

    /// The signals that resumed this attempt, in the order in which they came; none if it was not
    /// resumed by signals. To be asked before the next suspend.
    pub async fn resume_signals(&self) -> Result<Vec<ResumeSignal>, SdkError> {
        let came_along = &self.task().extras.resume_signals;
        if !self.signals_at_store && came_along.iter().all(|signal| signal.payload.is_some()) {
            return Ok(came_along.clone());
        }
        let question = ObserveSignals { execution_id: self.execution_id(), fence: self.fence() };
        Ok(self.worker().backend().ask(question).await?)
    }

    /// Takes up the signals of a suspend that was satisfied already, as a claim would have brought
    /// them along. A store that does not answer is asked again while the lease lasts.
    pub(crate) async fn observe_signals(&mut self) -> Result<(), SdkError> {
        let mut pauses = Pauses::default();
        let signals = loop {
            match self.resume_signals().await {
                Err(error) if error.is_retryable() && Instant::now() < self.lease().deadline() => {
                    tokio::time::sleep(pauses.next()).await;
                }
                decided => break decided?,
            }
        };
        Arc::make_mut(&mut self.task).extras.resume_signals = signals;
        self.signals_at_store = false;
        Ok(())
    }
}

fn no_frame() -> ff_core::error::EngineError {
    ff_core::error::EngineError::bug("no frame in the reply to a frame")
}
