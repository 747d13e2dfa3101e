//! Acts: what callers do in several steps on a store, and in one request where a server stands before
//! it.
//!
//! A store has none of its own: [`crate::backend::BackendExt`] and the engine write them once over its
//! steps. A backend that is a server's client answers [`crate::backend::Backend::acts`], and is then
//! asked for the whole.

use std::time::Duration;

use crate::backend::Pending;
use crate::error::EngineError;
use crate::id::{BudgetId, ExecutionId, LaneId, LeaseId, Namespace, WorkerInstanceId};
use crate::operation::{
    BulkCreated, CancelFlow, ClaimForWorker, ClaimGrant, Command, CreateBulk, DeregisterWorker,
    FlowCancelled, MarkWorkerDead, Renew, Renewed, Reply, ReportToAll, SubmitFlow, SubmittedFlow,
    UsageReported, WorkerGone,
};
use crate::read::Explanation;
use crate::state::{BulkTargets, CancelNotice};
use crate::time::TimestampMs;

/// Carries out acts as a whole.
pub trait Acts: Send + Sync {
    fn act(&self, act: Act) -> Pending<'_, Result<Acted, EngineError>>;
}

/// An act with a typed outcome.
pub trait Whole: Into<Act> + Send {
    type Outcome: Send;

    /// Picks the outcome of this act out of the common one.
    fn outcome(acted: Acted) -> Result<Self::Outcome, EngineError>;
}

/// Carries out one act as a whole.
pub async fn whole<W: Whole>(acts: &dyn Acts, act: W) -> Result<W::Outcome, EngineError> {
    W::outcome(acts.act(act.into()).await?)
}

/// A claim of one execution by its name, with a slot of every quota policy that it stands under.
#[derive(Debug, Clone, PartialEq)]
pub struct TakeUp(pub Command);

/// Why an execution is where it is.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainWhole {
    pub execution_id: ExecutionId,
}

/// The cancel of a flow, carried on until all whom it ends have ended, or `wait` has passed.
#[derive(Debug, Clone, PartialEq)]
pub struct CancelWholeFlow {
    pub cancel: CancelFlow,
    pub wait: Duration,
}

/// A heartbeat that waits for news.
#[derive(Debug, Clone, PartialEq)]
pub struct HearNews {
    pub heartbeat: Heartbeat,
    pub wait: Duration,
}

/// A look at whom a bulk operation would act on.
#[derive(Debug, Clone, PartialEq)]
pub struct PreviewBulk {
    pub namespace: Namespace,
    pub targets: BulkTargets,
}

/// One heartbeat of a worker instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Heartbeat {
    pub namespace: Namespace,
    pub worker_instance_id: WorkerInstanceId,
    pub boot_id: String,
    /// The leases that it holds; renewed with it.
    pub leases: Vec<Renew>,
    /// The cursor of the news before: what was stopped since is told, however long ago that was.
    pub after: Option<String>,
}

/// What became of a heartbeat.
#[derive(Debug, Clone, PartialEq)]
pub enum Beat {
    Refreshed(News),
    /// Not at all, or under another boot: register again.
    NotRegistered,
}

/// What a worker is told.
#[derive(Debug, Clone, PartialEq)]
pub struct News {
    pub next_expiry: TimestampMs,
    /// Told again with every heartbeat for a minute.
    pub cancellations: Vec<Cancellation>,
    pub paused_lanes: Vec<LaneId>,
    pub drain: bool,
    /// What became of each lease, in the order in which they were listed.
    pub leases: Vec<Result<Renewed, EngineError>>,
    /// Tasks that were taken from the worker since `after`, or since it began to wait, listed or not.
    pub stopped: Vec<Stopped>,
    /// Where the next heartbeat goes on; none for one that neither waited nor went on.
    pub cursor: Option<String>,
}

/// A task that nobody wants any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancellation {
    pub execution_id: ExecutionId,
    pub lease_id: LeaseId,
    pub reason: String,
}

impl News {
    /// Adds cancellations that are not told yet.
    pub fn add(&mut self, cancellations: Vec<Cancellation>) {
        for cancellation in cancellations {
            if self.cancellations.iter().all(|told| told.lease_id != cancellation.lease_id) {
                self.cancellations.push(cancellation);
            }
        }
    }
}

impl From<CancelNotice> for Cancellation {
    fn from(notice: CancelNotice) -> Self {
        let CancelNotice { execution_id, lease_id, reason, .. } = notice;
        Self { execution_id, lease_id, reason }
    }
}

/// A task that was taken from its worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    pub execution_id: ExecutionId,
    /// The lease that is over.
    pub lease_epoch: u64,
    pub by: StoppedBy,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoppedBy {
    /// Nobody wants its outcome any more.
    Cancel { reason: String },
    /// Its lease ran out or was revoked, or its deadline has passed.
    Loss,
}

/// What a bulk operation would act on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preview {
    pub matched: u64,
    /// The first of them, newest first.
    pub sample: Vec<ExecutionId>,
}

macro_rules! acts {
    ($($act:ident => $outcome:ty, $name:literal;)*) => {
        /// Any act.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Act { $($act($act),)* }

        /// What became of any act.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Acted { $($act($outcome),)* }

        impl Act {
            /// The name in metrics and traces.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$act(_) => $name,)* }
            }
        }

        $(
            impl From<$act> for Act {
                fn from(act: $act) -> Self {
                    Self::$act(act)
                }
            }

            impl Whole for $act {
                type Outcome = $outcome;

                fn outcome(acted: Acted) -> Result<$outcome, EngineError> {
                    match acted {
                        Acted::$act(outcome) => Ok(outcome),
                        other => Err(EngineError::bug(format!("{}: got {other:?}", $name))),
                    }
                }
            }
        )*
    };
}

acts! {
    TakeUp => Reply, "take_up";
    ClaimForWorker => Option<ClaimGrant>, "claim_for_worker";
    ReportToAll => Vec<(BudgetId, UsageReported)>, "report_to_all";
    ExplainWhole => Option<Explanation>, "explain_execution";
    SubmitFlow => SubmittedFlow, "submit_graph";
    CancelWholeFlow => FlowCancelled, "cancel_whole_flow";
    HearNews => Beat, "heartbeat";
    DeregisterWorker => WorkerGone, "leave";
    MarkWorkerDead => WorkerGone, "mark_dead";
    PreviewBulk => Preview, "preview_bulk";
    CreateBulk => (BulkCreated, u64), "create_bulk";
}
