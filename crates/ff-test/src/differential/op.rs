//! Operations as data, independent of what came before.

use super::admissions::AdmitOp;
use super::fleet::FleetOp;
use super::flows::FlowOp;
use super::grants::GrantOp;
use super::limits::LimitOp;
use super::output::OutputOp;
use super::waits::WaitOp;
use ff_core::operation::LaneOrder;
use ff_core::state::FailureClass;

/// An execution that came before, counted from the newest; none yet: one that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Among those submitted.
    Submitted(usize),
    /// Among those claimed.
    Claimed(usize),
    /// Among those granted.
    Granted(usize),
    /// Among the states that there are now: rare ones are met as often as others.
    Standing(usize),
}

/// Which fence an operation shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceOf {
    /// Of a task, by its place among those claimed so far, counted from the newest.
    Task(usize),
    /// Of a task of a flow's member.
    Member(usize),
    /// The same, with another epoch.
    WrongEpoch(usize),
    /// The same, with another attempt.
    WrongAttempt(usize),
    /// The same, but shown for another execution.
    WrongExecution(usize, Target),
}

/// What a submit says; small numbers choose from small sets, so that things meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitOp {
    pub uuid: u128,
    /// Repeat the id of an earlier one.
    pub again: Option<Target>,
    pub namespace: u8,
    pub lane: u8,
    pub capabilities: u8,
    pub priority: i64,
    pub policy: u8,
    pub key: Option<u8>,
    pub payload: u8,
    pub delay_ms: Option<i64>,
    pub deadline_ms: Option<i64>,
    pub held: bool,
    pub tagged: bool,
    pub limits: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimOp {
    pub seed: u128,
    pub namespace: u8,
    /// Lanes by bits, with weights from the same number.
    pub lanes: u8,
    pub order: LaneOrder,
    pub capabilities: u8,
    pub max: u32,
    pub ttl_ms: u64,
    pub instance: u8,
    pub sets_aside: bool,
}

/// One step of a sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    Submit(SubmitOp),
    Claim(ClaimOp),
    Renew(FenceOf, Option<u64>),
    Progress(FenceOf, u8),
    Complete {
        fence: FenceOf,
        result: Option<u8>,
        next: Option<ClaimOp>,
    },
    CompleteByOperator(Target),
    Fail {
        fence: FenceOf,
        class: Option<FailureClass>,
        category: u8,
        retry_after_ms: Option<u64>,
    },
    FailByOperator(Target),
    Cancel(Target),
    CancelByHolder(FenceOf),
    Delay {
        fence: FenceOf,
        ms: i64,
    },
    DelayByOperator(Target, u64),
    Revoke(Target, Option<FenceOf>),
    Hold(Target),
    Release(Target),
    ChangePriority(Target, i64),
    /// With the revision that it must have.
    SetTags(Target, u8, Option<u64>),
    Replay(Target),
    Delete(Target),
    Expire(Target),
    Promote(Target),
    MarkLeaseExpired(Target),
    Advance(i64),
    Tick(u32),
    /// Removes events older than this, and records of repetition past their window.
    Trim(i64),
    Wait(WaitOp),
    Grant(GrantOp),
    Output(OutputOp),
    Flow(FlowOp),
    Limit(LimitOp),
    Fleet(FleetOp),
    Admit(AdmitOp),
    /// Compare everything now, not only at the end.
    Compare,
}
