//! Admission: a claim asks the limits of what it has set aside, and leases what they let in.
//!
//! 1. The claim's own step sets executions that stand under limits aside, for five seconds.
//! 2. Budgets are read: one that is used up keeps its executions back.
//! 3. Quota policies are asked in order; each gives a slot that is pending. One that refuses puts
//!    the execution in line, and slots that were given before it are given back.
//! 4. What was let in is leased, and the lease knows its slots.
//!
//! Every prefix is safe: what was set aside goes back to its place by time, and a pending slot asks
//! its execution whether it became a lease.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::act;
use crate::backend::{Backend, BackendExt};
use crate::errand;
use crate::error::{EngineError, Refusal};
use crate::id::{BudgetId, LeaseId};
use crate::limits;
use crate::operation::{
    AdmissionVoided, Applicant, Claim, ClaimForWorker, ClaimGrant, Claimed, Command, LaneOrder,
    LaneShare, Reply, Task, VoidAdmission,
};
use crate::read::GetBudgetStatus;
use crate::rota::best_first;
use crate::routes;
use crate::state::{AdmissionReason, Breach, LimitId};

pub(crate) use by_name::{ByName, report_to_all, take_up};
use under_way::UnderWay;

mod by_name;
mod under_way;

/// Tasks for a worker; with nothing found it waits for work, up to `wait`.
pub(crate) async fn claim<B: Backend + ?Sized>(
    backend: &B,
    claim: Claim,
    wait: Duration,
) -> Result<Vec<Task>, EngineError> {
    let begun = Instant::now();
    let mut all = Tasks::new(&claim);
    let mut left = wait;
    loop {
        let wanted = all.wanted(&claim);
        let Some(Claimed { tasks, applicants }) =
            all.or(backend.take(wanted.clone(), left).await)?
        else {
            break;
        };
        all.add(tasks);
        if applicants.is_empty() {
            errand::carry_out_noted(backend).await;
            break;
        }
        let round = Round::new(backend, &wanted, applicants, Prize::Lease).run().await;
        errand::carry_out_noted(backend).await;
        let Some(won) = all.or(round)? else { break };
        let in_vain = won.is_empty();
        all.admit(won);
        if in_vain {
            // A crowd that a limit keeps back may stand before others.
            let wanted = all.wanted(&claim);
            let further =
                look_on(backend, &wanted, wanted.max.saturating_mul(2), Prize::Lease).await;
            match all.or(further)? {
                Some(won) if !won.is_empty() => all.admit(won),
                _ if !all.is_empty() => break,
                _ => {}
            }
        }
        if all.is_full() {
            break;
        }
        // Who has something waits for no more.
        left = if all.is_empty() { wait.saturating_sub(begun.elapsed()) } else { Duration::ZERO };
    }
    Ok(all.best_first())
}

/// The tasks of one claim, which several rounds may bring together.
struct Tasks {
    found: Vec<Task>,
    max: u32,
    rounds: u32,
    /// Some were let in by limits, and stand behind those that need not ask.
    mixed: bool,
}

impl Tasks {
    fn new(claim: &Claim) -> Self {
        Self { found: Vec::new(), max: claim.max, rounds: 0, mixed: false }
    }

    /// The claim of the next round: of what is left, with lease ids of its own.
    fn wanted(&mut self, claim: &Claim) -> Claim {
        let max = self.max - u32::try_from(self.found.len()).unwrap_or(self.max);
        let seed = LeaseId::from_seed(claim.seed, self.rounds * limits::CLAIM_TASKS).uuid();
        self.rounds += 1;
        Claim { max, seed, ..claim.clone() }
    }

    /// What was leased already counts, whatever fails afterwards.
    fn or<T>(&self, outcome: Result<T, EngineError>) -> Result<Option<T>, EngineError> {
        match outcome {
            Ok(found) => Ok(Some(found)),
            Err(_) if !self.is_empty() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn add(&mut self, tasks: impl IntoIterator<Item = Task>) {
        self.found.extend(tasks);
    }

    fn admit(&mut self, won: Vec<Won>) {
        self.mixed = true;
        self.add(won.into_iter().filter_map(Won::task));
    }

    fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    fn is_full(&self) -> bool {
        self.found.len() >= self.max as usize
    }

    /// All of them, in their order.
    fn best_first(self) -> Vec<Task> {
        if !self.mixed {
            return self.found;
        }
        let order =
            |task: &Task| (Reverse(task.priority), task.created_at, task.execution_id.uuid());
        best_first(self.found, |task| task.lane.clone(), order)
    }
}

/// Sets executions aside, whether they stand under limits or not, until one is let in or nobody is
/// left: first `reach` at a time, then ever more. So a crowd that a limit keeps back is passed in few
/// steps, and whoever stands behind it still comes in turn.
async fn look_on<B: Backend + ?Sized>(
    backend: &B,
    claim: &Claim,
    reach: u32,
    prize: Prize,
) -> Result<Vec<Won>, EngineError> {
    let mut wider = Claim { max: reach, sets_aside: true, ..claim.clone() };
    loop {
        wider.max = wider.max.min(limits::CLAIM_TASKS);
        let Claimed { applicants, .. } = backend.take(wider.clone(), Duration::ZERO).await?;
        if applicants.is_empty() {
            return Ok(Vec::new());
        }
        let won = Round::new(backend, claim, applicants, prize).run().await?;
        errand::carry_out_noted(backend).await;
        if !won.is_empty() {
            return Ok(won);
        }
        wider.max *= 2;
    }
}

/// The next execution for a worker, set aside for it by a grant; none: there is nothing for it.
pub(crate) async fn claim_for_worker<B: Backend + ?Sized>(
    backend: &B,
    op: ClaimForWorker,
) -> Result<Option<ClaimGrant>, EngineError> {
    if let Some(acts) = backend.acts() {
        return act::whole(acts, op).await;
    }
    op.check()?;
    let claim = Claim {
        namespace: op.namespace,
        worker_id: op.worker_id,
        worker_instance_id: op.worker_instance_id,
        lanes: vec![LaneShare::new(op.lane)],
        order: LaneOrder::Ordered,
        capabilities: op.capabilities,
        max: 1,
        lease_ttl_ms: limits::LEASE_TTL_MS,
        seed: LeaseId::mint().uuid(),
        sets_aside: true,
    };
    let prize = Prize::Grant { ttl_ms: op.grant_ttl_ms };
    let mut won = look_on(backend, &claim, claim.max, prize).await?;
    if won.is_empty() {
        // It may be able to do more than it registered with: what waits for such a worker can come.
        let lanes: Vec<_> = claim.lanes.iter().map(|share| share.lane.clone()).collect();
        if routes::welcome(backend, &claim.namespace, &lanes, &claim.capabilities).await? > 0 {
            won = look_on(backend, &claim, claim.max, prize).await?;
        }
    }
    Ok(won.into_iter().find_map(Won::grant))
}

/// The applicants of one claim on their way.
struct Round<'a, B: ?Sized> {
    backend: &'a B,
    claim: &'a Claim,
    prize: Prize,
    under_way: Vec<UnderWay>,
    blocked: Vec<Command>,
}

/// What those get who are let in.
#[derive(Clone, Copy)]
enum Prize {
    Lease,
    Grant { ttl_ms: u64 },
}

enum Won {
    Task(Box<Task>),
    Grant(ClaimGrant),
}

impl<'a, B: Backend + ?Sized> Round<'a, B> {
    fn new(backend: &'a B, claim: &'a Claim, applicants: Vec<Applicant>, prize: Prize) -> Self {
        let under_way = applicants.into_iter().map(|applicant| UnderWay::new(applicant, &[]));
        Self { backend, claim, prize, under_way: under_way.collect(), blocked: Vec::new() }
    }

    async fn run(mut self) -> Result<Vec<Won>, EngineError> {
        let outcome = self.ask_all().await;
        if outcome.is_err() {
            // What cannot be asked blocks nothing for good: all of it goes back.
            let left = std::mem::take(&mut self.under_way);
            self.let_fall(left).await;
        }
        let won = self.hand_out().await;
        let blocked = std::mem::take(&mut self.blocked);
        if !blocked.is_empty() {
            // One that changed meanwhile is where it belongs.
            self.backend.apply(blocked).await;
        }
        outcome.map(|()| won)
    }

    async fn ask_all(&mut self) -> Result<(), EngineError> {
        self.ask_budgets().await?;
        while self.ask_quotas().await? {}
        Ok(())
    }

    async fn ask_budgets(&mut self) -> Result<(), EngineError> {
        let all = self.under_way.iter().flat_map(|it| &it.applicant.standing.budget_ids);
        let asked: HashSet<BudgetId> = all.copied().collect();
        let questions = asked.into_iter().map(|budget_id| GetBudgetStatus { budget_id }).collect();
        let found = self.backend.ask_all(questions).await?.into_iter().flatten();
        let used_up = found.filter_map(|status| Some((status.budget_id, status.blocked_by?)));
        let used_up: HashMap<BudgetId, Breach> = used_up.collect();
        let blocked = &mut self.blocked;
        self.under_way.retain(|it| {
            let mut budgets = it.applicant.standing.budget_ids.iter();
            let breach = budgets.find_map(|id| used_up.get(id).map(|breach| (*id, breach)));
            let Some((id, Breach { dimension, current, limit })) = breach else { return true };
            let detail = format!("budget {id}: {dimension} is at {current} of {limit}");
            blocked.push(it.block(AdmissionReason::Budget, LimitId::Budget(id), detail));
            false
        });
        Ok(())
    }

    /// Asks the next policy of each: whether there was any.
    async fn ask_quotas(&mut self) -> Result<bool, EngineError> {
        let mut asked = Vec::new();
        let mut commands: Vec<Command> = Vec::new();
        for (at, it) in self.under_way.iter_mut().enumerate() {
            if let Some(quota_policy_id) = it.left.next() {
                asked.push((at, quota_policy_id));
                commands.push(it.check(quota_policy_id).into());
            }
        }
        if commands.is_empty() {
            return Ok(false);
        }
        let replies = self.backend.apply(commands).await;
        let mut refused: HashMap<usize, Command> = HashMap::new();
        let mut failed = None;
        for ((at, id), reply) in asked.into_iter().zip(replies) {
            let it = &mut self.under_way[at];
            match it.note(id, reply) {
                Ok(None) => {}
                Ok(Some(Refusal { detail, .. })) => {
                    let block = it.block(AdmissionReason::Quota, LimitId::Quota(id), detail.into());
                    refused.insert(at, block);
                }
                Err(error) => failed = Some(error),
            }
        }
        self.set_down(refused).await;
        failed.map_or(Ok(true), Err)
    }

    /// Those who were refused give back what they hold.
    async fn set_down(&mut self, mut refused: HashMap<usize, Command>) {
        let mut releases: Vec<Command> = Vec::new();
        let mut kept = Vec::with_capacity(self.under_way.len());
        for (at, it) in std::mem::take(&mut self.under_way).into_iter().enumerate() {
            match refused.remove(&at) {
                Some(block) => {
                    releases.extend(it.releases());
                    self.blocked.push(block);
                }
                None => kept.push(it),
            }
        }
        self.under_way = kept;
        if !releases.is_empty() {
            // A pending slot that is not given back asks its execution later.
            self.backend.apply(releases).await;
        }
    }

    /// Leases those whom all their limits let in, or grants them, as many as were asked for.
    async fn hand_out(&mut self) -> Vec<Won> {
        let mut under_way = std::mem::take(&mut self.under_way);
        let most = (self.claim.max as usize).min(under_way.len());
        let mut lost = under_way.split_off(most);
        let commands = under_way.iter().map(|it| it.take(self.claim, self.prize)).collect();
        let replies =
            if under_way.is_empty() { Vec::new() } else { self.backend.apply(commands).await };
        let mut won = Vec::with_capacity(under_way.len());
        for (it, reply) in under_way.into_iter().zip(replies) {
            match reply {
                Ok(Reply::ClaimAdmitted(task)) => won.push(Won::Task(task)),
                Ok(Reply::GrantAdmitted(grant)) => won.push(Won::Grant(grant)),
                _ => lost.push(it),
            }
        }
        self.let_fall(lost).await;
        won
    }

    /// Gives everything back: first the execution, so that no late lease can begin, then its slots.
    async fn let_fall(&self, lost: Vec<UnderWay>) {
        if lost.is_empty() {
            return;
        }
        let voids = lost.iter().map(|it| {
            let Applicant { execution_id, lease_epoch, .. } = it.applicant;
            VoidAdmission { execution_id, lease_epoch, quota_policy_id: None }.into()
        });
        let replies = self.backend.apply(voids.collect()).await;
        // Of others a pending slot finds out later.
        let is_void = |reply: &_| matches!(reply, Ok(Reply::VoidAdmission(AdmissionVoided::Void)));
        let void = lost.iter().zip(&replies).filter(|(_, reply)| is_void(*reply));
        let releases: Vec<_> = void.flat_map(|(it, _)| it.releases()).collect();
        if !releases.is_empty() {
            self.backend.apply(releases).await;
        }
    }
}

impl Won {
    fn task(self) -> Option<Task> {
        match self {
            Self::Task(task) => Some(*task),
            Self::Grant(_) => None,
        }
    }

    fn grant(self) -> Option<ClaimGrant> {
        match self {
            Self::Grant(grant) => Some(grant),
            Self::Task(_) => None,
        }
    }
}
