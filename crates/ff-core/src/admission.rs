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
        let Outcome { won, .. } =
            Round::new(backend, &wanted, applicants, Prize::Lease).run().await;
        errand::carry_out_noted(backend).await;
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

/// Rounds of one claim in which a limit cannot be asked: whoever stands under it is passed over, but a
/// store that is away is not asked for a whole crowd.
const FAULTS_MOST: u32 = 3;

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
    let mut faults = 0;
    loop {
        wider.max = wider.max.min(limits::CLAIM_TASKS);
        let Claimed { applicants, .. } = backend.take(wider.clone(), Duration::ZERO).await?;
        if applicants.is_empty() {
            return Ok(Vec::new());
        }
        let Outcome { won, fault } = Round::new(backend, claim, applicants, prize).run().await;
        errand::carry_out_noted(backend).await;
        if !won.is_empty() {
            return Ok(won);
        }
        if let Some(fault) = fault {
            faults += 1;
            if faults == FAULTS_MOST {
                return Err(fault);
            }
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
    /// What is left to do for those who are not let in.
    blocked: Vec<Command>,
    fault: Option<EngineError>,
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

/// What one round came to.
struct Outcome {
    won: Vec<Won>,
    /// Why a limit could not be asked. Whoever stands under it stays set aside for a moment.
    fault: Option<EngineError>,
}

impl<'a, B: Backend + ?Sized> Round<'a, B> {
    fn new(backend: &'a B, claim: &'a Claim, applicants: Vec<Applicant>, prize: Prize) -> Self {
        let under_way = applicants.into_iter().map(|applicant| UnderWay::new(applicant, &[]));
        let (under_way, blocked, fault) = (under_way.collect(), Vec::new(), None);
        Self { backend, claim, prize, under_way, blocked, fault }
    }

    /// Asks no more quota policies at a time than there is something to win, unless all are refused:
    /// what is asked for and not used is kept from others meanwhile.
    async fn run(mut self) -> Outcome {
        self.ask_budgets().await;
        let most = self.claim.max as usize;
        let (mut won, mut reach) = (Vec::new(), most);
        while won.len() < most && !self.under_way.is_empty() {
            let rest = self.under_way.split_off(reach.min(self.under_way.len()));
            let asked = std::mem::replace(&mut self.under_way, rest);
            let admitted = self.ask_quotas(asked).await;
            let more = self.hand_out(admitted, most - won.len()).await;
            reach = if more.is_empty() { reach * 2 } else { most - won.len() - more.len() };
            won.extend(more);
        }
        let rest = std::mem::take(&mut self.under_way);
        self.let_fall(rest).await;
        self.keep_back().await;
        Outcome { won, fault: self.fault }
    }

    async fn ask_budgets(&mut self) {
        let all = self.under_way.iter().flat_map(|it| &it.applicant.standing.budget_ids);
        let asked: Vec<BudgetId> = all.copied().collect::<HashSet<_>>().into_iter().collect();
        let questions = asked.iter().map(|&budget_id| GetBudgetStatus { budget_id }).collect();
        let mut found: HashMap<BudgetId, Option<Breach>> = HashMap::new();
        for (budget_id, status) in asked.into_iter().zip(self.backend.ask_all(questions).await) {
            match status {
                Ok(status) => {
                    found.insert(budget_id, status.and_then(|status| status.blocked_by));
                }
                Err(error) => self.fault = Some(error),
            }
        }
        let blocked = &mut self.blocked;
        self.under_way.retain(|it| {
            let budget_ids = &it.applicant.standing.budget_ids;
            if !budget_ids.iter().all(|id| found.contains_key(id)) {
                return false;
            }
            let used_up = |id: &BudgetId| found.get(id)?.as_ref().map(|breach| (*id, breach));
            let Some((id, Breach { dimension, current, limit })) =
                budget_ids.iter().find_map(used_up)
            else {
                return true;
            };
            let detail = format!("budget {id}: {dimension} is at {current} of {limit}");
            blocked.push(it.block(AdmissionReason::Budget, LimitId::Budget(id), detail));
            false
        });
    }

    /// Asks the quota policies of each in order: those whom all of them let in.
    async fn ask_quotas(&mut self, mut under_way: Vec<UnderWay>) -> Vec<UnderWay> {
        loop {
            let mut asked = Vec::new();
            let mut commands: Vec<Command> = Vec::new();
            for (at, it) in under_way.iter_mut().enumerate() {
                if let Some(quota_policy_id) = it.left.next() {
                    asked.push((at, quota_policy_id));
                    commands.push(it.check(quota_policy_id).into());
                }
            }
            if commands.is_empty() {
                return under_way;
            }
            let replies = self.backend.apply(commands).await;
            let mut out: HashSet<usize> = HashSet::new();
            for ((at, id), reply) in asked.into_iter().zip(replies) {
                let it = &mut under_way[at];
                match it.note(id, reply) {
                    Ok(None) => continue,
                    Ok(Some(Refusal { detail, .. })) => {
                        let (by, detail) = (LimitId::Quota(id), detail.into());
                        self.blocked.push(it.block(AdmissionReason::Quota, by, detail));
                        // A slot of another policy is not kept from others.
                        self.blocked.extend(it.releases());
                    }
                    // A slot that it may have got asks its execution later.
                    Err(error) => self.fault = Some(error),
                }
                out.insert(at);
            }
            let mut at = 0..;
            under_way.retain(|_| at.next().is_none_or(|at| !out.contains(&at)));
        }
    }

    /// Keeps back whom a limit did not let in. One that changed meanwhile is where it belongs.
    async fn keep_back(&mut self) {
        if !self.blocked.is_empty() {
            self.backend.apply(std::mem::take(&mut self.blocked)).await;
        }
    }

    /// Leases those whom all their limits let in, or grants them, as many as were asked for.
    async fn hand_out(&mut self, mut under_way: Vec<UnderWay>, most: usize) -> Vec<Won> {
        let mut lost = under_way.split_off(most.min(under_way.len()));
        let mut commands: Vec<_> =
            under_way.iter().map(|it| it.take(self.claim, self.prize)).collect();
        commands.append(&mut self.blocked);
        let replies =
            if commands.is_empty() { Vec::new() } else { self.backend.apply(commands).await };
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
        let is_void = |reply: &_| match reply {
            Ok(Reply::VoidAdmission(voided)) => {
                matches!(voided, AdmissionVoided::Void | AdmissionVoided::Never)
            }
            _ => false,
        };
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
