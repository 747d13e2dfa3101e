//! Runs one sequence on the oracle and on a store.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ff_core::backend::Backend;
use ff_core::capability::Capabilities;
use ff_core::content::Content;
use ff_core::error::EngineError;
use ff_core::id::{
    Authority, ExecutionId, IdempotencyKey, Kind, LaneId, LeaseFence, Namespace, WorkerId,
    WorkerInstanceId,
};
use ff_core::operation::{
    Cancel, ChangePriority, Claim, ClaimNext, Command, Complete, Delay, DelayUntil, Delete,
    ExpireExecution, Fail, Hold, LaneShare, MarkLeaseExpired, PromoteDelayed, Release, Renew,
    Replay, Revoke, SetTags, Submit, Task, Tick, Trim, UpdateProgress,
};
use ff_core::policy::Policy;
use ff_core::state::{CancelSource, Document, Execution};
use ff_core::tags::Tags;
use ff_core::time::TimestampMs;
use uuid::Uuid;

use super::admissions::{Applicants, Around};
use super::compare::{same_claimed, same_reply, same_state};
use super::coverage::{Coverage, state_of};
use super::fleet::{self, FleetOp};
use super::flows::Flows;
use super::grants;
use super::limits::Limited;
use super::op::{ClaimOp, FenceOf, Op, SubmitOp, Target};
use super::output::{self, Appended, OutputOp};
use super::waits::Made;
use crate::oracle::{Oracle, State};
use crate::stages::BEGINNING;
use crate::world::World;

/// Where oracle and store parted.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Place in the sequence.
    pub at: usize,
    pub difference: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operation {}: {}", self.at, self.difference)
    }
}

/// Runs `ops` on a fresh oracle and on `world`, which must be fresh too.
pub async fn replay(ops: &[Op], world: &World, coverage: &mut Coverage) -> Result<(), Failure> {
    let oracle = Oracle::new(world.backend.settings().clone(), BEGINNING);
    let mut run = Run {
        oracle,
        world,
        executions: Vec::new(),
        tasks: Vec::new(),
        granted: Vec::new(),
        made: Made::default(),
        appended: Appended::default(),
        flows: Flows::default(),
        limited: Limited::default(),
        applicants: Applicants::default(),
        coverage,
    };
    for command in fleet::registrations() {
        run.apply(command).await.map_err(|difference| Failure { at: 0, difference })?;
    }
    for (at, op) in ops.iter().enumerate() {
        run.step(op).await.map_err(|difference| Failure { at, difference })?;
    }
    let at = ops.len();
    same_state(&run.oracle, world).await.map_err(|difference| Failure { at, difference })
}

struct Run<'a> {
    oracle: Oracle,
    world: &'a World,
    executions: Vec<ExecutionId>,
    tasks: Vec<Task>,
    granted: Vec<ExecutionId>,
    made: Made,
    appended: Appended,
    flows: Flows,
    limited: Limited,
    applicants: Applicants,
    coverage: &'a mut Coverage,
}

impl Run<'_> {
    async fn step(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Advance(ms) => {
                self.oracle.advance(*ms);
                self.world.advance(*ms).await;
                Ok(())
            }
            Op::Compare => same_state(&self.oracle, self.world).await,
            Op::Trim(age) => self.trim(*age).await,
            Op::Claim(claim) => self.claim(claim).await,
            Op::Output(OutputOp::Look(look)) => {
                let backends: [&dyn Backend; 2] = [&self.oracle, &*self.world.backend];
                self.appended.look(*look, self.id(look.target), backends).await
            }
            Op::Fleet(FleetOp::Look(namespace)) => {
                fleet::look(&self.oracle, &*self.world.backend, *namespace).await
            }
            op => match self.command(op) {
                Some(command) => self.apply(command).await,
                None => Ok(()),
            },
        }
    }

    async fn apply(&mut self, command: Command) -> Result<(), String> {
        self.oracle.look(|state, now| self.coverage.note(state, now, &command));
        if let Command::Submit(submit) = &command
            && !self.executions.contains(&submit.execution_id)
        {
            self.executions.push(submit.execution_id);
        }
        self.executions.extend(Flows::made(&command));
        let expected = self.oracle.apply_now(&command).map_err(EngineError::from);
        let found = self.world.backend.apply(vec![command.clone()]).await.pop();
        let found = found.ok_or("no reply")?;
        if let Ok(reply) = &expected {
            self.made.note(command.execution_id(), reply);
            self.granted.extend(grants::granted(reply));
            self.tasks.extend_from_slice(grants::tasks(reply));
            self.appended.note(reply);
            self.flows.note(&command, reply);
            self.limited.note(&command, reply);
        }
        same_reply(&expected, &found).map_err(|difference| format!("{command:?}\n{difference}"))
    }

    async fn claim(&mut self, op: &ClaimOp) -> Result<(), String> {
        let claim = claim(op);
        self.oracle.look(|state, now| self.coverage.note_claim(state, now, &claim));
        let expected = self.oracle.claim_now(&claim).map_err(EngineError::from);
        let found = self.world.backend.take(claim.clone(), Duration::ZERO).await;
        if let Ok(claimed) = &expected {
            self.tasks.extend(claimed.tasks.iter().cloned());
            self.applicants.note(&claim, claimed);
        }
        same_claimed(&expected, &found).map_err(|difference| format!("{claim:?}\n{difference}"))
    }

    async fn trim(&self, age: i64) -> Result<(), String> {
        let events_before = TimestampMs(self.oracle.now().0 - age);
        let trim = Trim { events_before, event_bytes: u64::MAX >> 1, most: 100_000 };
        let backends: [&dyn Backend; 2] = [&self.oracle, &*self.world.backend];
        for backend in backends {
            backend.trim(trim.clone()).await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn id(&self, target: Target) -> ExecutionId {
        let (n, found) = match target {
            Target::Submitted(n) => (n, newest(&self.executions, n).copied()),
            Target::Claimed(n) => (n, newest(&self.tasks, n).map(|task| task.execution_id)),
            Target::Granted(n) => (n, newest(&self.granted, n).copied()),
            Target::Standing(n) => (n, self.oracle.look(|state, now| standing(state, n, now))),
        };
        found.unwrap_or_else(|| ExecutionId::new(0, Uuid::from_u128(n as u128)))
    }

    /// The lane of an execution, some lane of one that is not there.
    fn lane_of(&self, id: ExecutionId) -> LaneId {
        let found = |state: &State| state.executions.get(&id).map(|e| e.about.lane.clone());
        self.oracle.look(|state, _| found(state)).unwrap_or_else(|| lane(0))
    }

    /// The execution and fence that an operation shows; none before the first claim.
    fn fence(&self, of: FenceOf) -> Option<(ExecutionId, LeaseFence)> {
        let task = |n| newest(&self.tasks, n);
        Some(match of {
            FenceOf::Task(n) => (task(n)?.execution_id, task(n)?.fence()),
            FenceOf::Member(n) => {
                let members = self.tasks.iter().filter(|task| task.flow_id.is_some());
                let task = *newest(&members.collect::<Vec<_>>(), n)?;
                (task.execution_id, task.fence())
            }
            FenceOf::WrongEpoch(n) => {
                let fence = task(n)?.fence();
                let lease_epoch = fence.lease_epoch + 1;
                (task(n)?.execution_id, LeaseFence { lease_epoch, ..fence })
            }
            FenceOf::WrongAttempt(n) => {
                let attempt_id = ff_core::id::AttemptId::new(Uuid::from_u128(1));
                (task(n)?.execution_id, LeaseFence { attempt_id, ..task(n)?.fence() })
            }
            FenceOf::WrongExecution(n, target) => (self.id(target), task(n)?.fence()),
        })
    }

    fn command(&self, op: &Op) -> Option<Command> {
        if let Op::Wait(op) = op {
            let now = self.oracle.now();
            return self.made.command(op, now, |of| self.fence(of), |target| self.id(target));
        }
        if let Op::Grant(op) = op {
            let id = self.id(op.target);
            return Some(op.command(id, self.lane_of(id), self.limited.quota(0)));
        }
        if let Op::Fleet(op) = op {
            let attach = |n| self.limited.instead(n);
            return op.command(|of| self.fence(of), |target| self.id(target), attach);
        }
        if let Op::Admit(op) = op {
            let (limited, applicants) = (&self.limited, &self.applicants);
            let around = Around { limited, applicants, now: self.oracle.now() };
            return op.command(&around, |of| self.fence(of), |target| self.id(target));
        }
        if let Op::Flow(op) = op {
            let partitions = &self.world.backend.settings().partitions;
            return self.flows.command(
                op,
                partitions,
                |of| self.fence(of),
                |target| self.id(target),
                |n| self.limited.own(n),
            );
        }
        if let Op::Limit(op) = op {
            return self.limited.command(op, |target| self.id(target));
        }
        self.worker_command(op).or_else(|| self.operator_command(op))
    }

    fn worker_command(&self, op: &Op) -> Option<Command> {
        let shown = |of: &FenceOf| self.fence(*of);
        Some(match op {
            Op::Renew(of, ttl_ms) => {
                let (execution_id, fence) = shown(of)?;
                Renew { execution_id, fence, ttl_ms: *ttl_ms }.into()
            }
            Op::Progress(of, pct) => {
                let (execution_id, fence) = shown(of)?;
                let message = format!("at {pct}");
                UpdateProgress { execution_id, fence, pct: *pct, message }.into()
            }
            Op::Output(OutputOp::Append { fence: of, frames }) => {
                output::append(frames, shown(of)?)
            }
            Op::Complete { fence: of, result, next } => {
                let (execution_id, fence) = shown(of)?;
                Complete {
                    execution_id,
                    authority: Authority::Fence(fence),
                    result: result.map(|n| Content::new(payload(n))),
                    next: next.as_ref().filter(|_| !self.has_limits()).map(claim_next),
                }
                .into()
            }
            Op::Fail { fence: of, class, category, retry_after_ms } => {
                let (execution_id, fence) = shown(of)?;
                let authority = Authority::Fence(fence);
                let fail = fail(execution_id, authority, *category);
                Fail { class: *class, retry_after_ms: *retry_after_ms, ..fail }.into()
            }
            Op::CancelByHolder(of) => {
                let (execution_id, fence) = shown(of)?;
                cancel(execution_id, CancelSource::LeaseHolder, Some(fence)).into()
            }
            Op::Delay { fence: of, ms } => {
                let (execution_id, fence) = shown(of)?;
                let until = DelayUntil::At(TimestampMs(self.oracle.now().0 + ms));
                Delay { execution_id, authority: Authority::Fence(fence), until }.into()
            }
            _ => return None,
        })
    }

    fn operator_command(&self, op: &Op) -> Option<Command> {
        let id = |target: &Target| self.id(*target);
        Some(match op {
            Op::Submit(submit) => self.submit(submit).into(),
            Op::CompleteByOperator(target) => Complete {
                execution_id: id(target),
                authority: Authority::Override,
                result: None,
                next: None,
            }
            .into(),
            Op::FailByOperator(target) => fail(id(target), Authority::Override, 0).into(),
            Op::DelayByOperator(target, ms) => Delay {
                execution_id: id(target),
                authority: Authority::Override,
                until: DelayUntil::For(*ms),
            }
            .into(),
            Op::Cancel(target) => cancel(id(target), CancelSource::default(), None).into(),
            Op::Revoke(target, expected) => Revoke {
                execution_id: id(target),
                reason: "operator".to_owned(),
                expected_lease_id: expected
                    .and_then(|of| self.fence(of))
                    .map(|(_, fence)| fence.lease_id),
            }
            .into(),
            Op::Hold(target) => Hold { execution_id: id(target), detail: "wait".to_owned() }.into(),
            Op::Release(target) => Release { execution_id: id(target) }.into(),
            Op::ChangePriority(target, priority) => {
                ChangePriority { execution_id: id(target), priority: *priority }.into()
            }
            Op::SetTags(target, n, expected_revision) => SetTags {
                execution_id: id(target),
                tags: tags(*n),
                expected_revision: *expected_revision,
            }
            .into(),
            Op::Replay(target) => Replay { execution_id: id(target), descendants: false }.into(),
            Op::Delete(target) => Delete { execution_id: id(target) }.into(),
            Op::Expire(target) => ExpireExecution { execution_id: id(target) }.into(),
            Op::Promote(target) => PromoteDelayed { execution_id: id(target) }.into(),
            Op::MarkLeaseExpired(target) => MarkLeaseExpired { execution_id: id(target) }.into(),
            Op::Tick(most) => Tick { home: None, most: *most }.into(),
            _ => return None,
        })
    }

    /// Whether anything stands under limits: how far a completion looks behind that for its next
    /// tasks is left to each store.
    fn has_limits(&self) -> bool {
        self.oracle.look(|state, _| {
            let own = |execution: &Arc<Execution>| !execution.policy().attached.is_empty();
            let attached =
                |found: &Arc<Document>| found.attached().is_some_and(|it| !it.is_empty());
            state.executions.values().any(own) || state.documents.values().any(attached)
        })
    }

    fn submit(&self, op: &SubmitOp) -> Submit {
        let partitions = &self.world.backend.settings().partitions;
        let namespace = namespace(op.namespace);
        let key = op.key.map(|n| IdempotencyKey::new(format!("key-{n}")).expect("a key"));
        let uuid = Uuid::from_u128(op.uuid);
        let execution_id = match (op.again, &key) {
            (Some(target), _) => self.id(target),
            (None, Some(key)) => ExecutionId::for_key(uuid, &namespace, key, partitions),
            (None, None) => ExecutionId::solo(uuid, partitions),
        };
        let now = self.oracle.now().0;
        let policy = Policy {
            required_capabilities: capabilities(op.capabilities),
            attached: self.limited.own(op.limits),
            ..policy(op.policy)
        };
        Submit {
            namespace,
            payload: Content::new(payload(op.payload)),
            priority: op.priority,
            idempotency_key: key,
            tags: if op.tagged { tags(1) } else { Tags::default() },
            policy: policy.into(),
            delay_until: op.delay_ms.map(|ms| TimestampMs(now + ms)),
            execution_deadline_at: op.deadline_ms.map(|ms| TimestampMs(now + ms)),
            held: op.held,
            ..Submit::new(execution_id, lane(op.lane), Kind::new("random").expect("a kind"))
        }
    }
}

/// The item at this place, counted from the newest, and round again.
pub(super) fn newest<T>(items: &[T], n: usize) -> Option<&T> {
    let count = items.len();
    (count > 0).then(|| &items[count - 1 - n % count])
}

/// An execution that stands for its state, of those there are.
fn standing(state: &State, n: usize, now: TimestampMs) -> Option<ExecutionId> {
    let executions = state.executions.values();
    let by_state: BTreeMap<_, _> =
        executions.map(|execution| (state_of(Some(execution), now), execution.id)).collect();
    let ids: Vec<_> = by_state.into_values().collect();
    newest(&ids, n).copied()
}

const POLICIES: [&str; 11] = [
    "{}",
    r#"{"retry_policy":{"max_retries":1,"backoff":{"type":"fixed","delay_ms":0}},"timeout_policy":{"max_reclaim_count":1}}"#,
    r#"{"retry_policy":{"max_retries":2,"backoff":{"type":"exponential","initial_delay_ms":100,"multiplier":3,"max_delay_ms":250,"jitter":true}}}"#,
    r#"{"timeout_policy":{"attempt_timeout_ms":700,"max_reclaim_count":0},"retry_policy":{"max_retries":1,"backoff":{"type":"fixed","delay_ms":200}}}"#,
    r#"{"timeout_policy":{"execution_deadline_ms":4000},"max_replay_count":1}"#,
    r#"{"retention":{"success_ms":1000,"failed_ms":0,"cancelled_ms":2000,"expired_ms":500},"dedup_window_ms":1000}"#,
    r#"{"retry_policy":{"max_retries":5,"backoff":{"type":"fixed","delay_ms":50},"retryable_categories":["flaky"]}}"#,
    r#"{"timeout_policy":{"attempt_timeout_ms":500},"retry_policy":{"max_retries":0},"max_replay_count":0}"#,
    r#"{"suspension_policy":{"default_timeout_ms":2000,"timeout_behavior":"auto_resume"},"max_signals_per_execution":3}"#,
    r#"{"stream_policy":{"retention_maxlen":3,"retention_ttl_ms":1000},"retry_policy":{"backoff":{"type":"fixed","delay_ms":0}}}"#,
    r#"{"stream_policy":{"durability_mode":"best_effort","retention_maxlen":1,"retention_ttl_ms":0}}"#,
];

pub(super) fn policy(n: u8) -> Policy {
    Policy::from_json(POLICIES[usize::from(n) % POLICIES.len()]).expect("a policy")
}

const CATEGORIES: [&str; 4] = ["boom", "flaky", "permanent", "timeout"];

pub(super) fn namespace(n: u8) -> Namespace {
    if n == 0 { Namespace::default() } else { Namespace::new("other").expect("a namespace") }
}

pub(super) fn lane(n: u8) -> LaneId {
    LaneId::new(format!("lane-{n}")).expect("a lane")
}

pub(super) fn capabilities(bits: u8) -> Capabilities {
    let tokens = ["gpu", "eu"].into_iter().enumerate();
    let chosen = tokens.filter(|(bit, _)| bits & (1 << bit) != 0).map(|(_, token)| token);
    Capabilities::new(chosen).expect("capabilities")
}

fn payload(n: u8) -> Bytes {
    Bytes::from(vec![n; usize::from(n) * 40])
}

pub(super) fn tags(n: u8) -> Tags {
    let pair = |key: &str| (key.to_owned(), n.to_string());
    let pairs: BTreeMap<_, _> = match n {
        0 => BTreeMap::new(),
        1 => BTreeMap::from([pair("app.one")]),
        2 => BTreeMap::from([pair("app.one"), pair("app.two")]),
        _ => BTreeMap::from([pair("Plain")]),
    };
    Tags::new(pairs).expect("tags")
}

fn fail(execution_id: ExecutionId, authority: Authority, category: u8) -> Fail {
    Fail {
        execution_id,
        authority,
        reason: "it broke".to_owned(),
        category: CATEGORIES[usize::from(category)].to_owned(),
        class: None,
        retry_after_ms: None,
    }
}

fn cancel(execution_id: ExecutionId, source: CancelSource, fence: Option<LeaseFence>) -> Cancel {
    Cancel { execution_id, reason: "no longer wanted".to_owned(), source, fence }
}

fn claim(op: &ClaimOp) -> Claim {
    let ClaimNext { max, lanes, order, capabilities, lease_ttl_ms, seed } = claim_next(op);
    Claim {
        namespace: namespace(op.namespace),
        worker_id: WorkerId::new("pool").expect("a worker"),
        worker_instance_id: WorkerInstanceId::new(format!("pool-{}", op.instance))
            .expect("an instance"),
        lanes,
        order,
        capabilities,
        max,
        lease_ttl_ms,
        seed,
        sets_aside: op.sets_aside,
    }
}

fn claim_next(op: &ClaimOp) -> ClaimNext {
    let lanes = (0..3).filter(|n| op.lanes & (1 << n) != 0).map(|n| LaneShare {
        lane: lane(n),
        weight: u32::from(n) * 2 + 1,
        credit: 0,
    });
    ClaimNext {
        max: op.max,
        lanes: lanes.collect(),
        order: op.order,
        capabilities: capabilities(op.capabilities),
        lease_ttl_ms: op.ttl_ms,
        seed: Uuid::from_u128(op.seed),
    }
}
