//! Claims: looks over all partitions for the best entries and leases them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, LeaseId};
use ff_core::limits;
use ff_core::machine::{Gate, Needs, Overlay, extras, standing_of};
use ff_core::operation::{Applicant, Claim, Claimed, Extras, Task};
use ff_core::rota::{Rota, best_first};
use ff_core::state::Standing;
use ff_core::time::TimestampMs;

use crate::ask::{self, Ask, Leased, Limits, Place, SetAside, Taken};
use crate::commit::ITEMS_MOST;
use crate::due::Expired;
use crate::entries::Beside;
use crate::keys::lane_name;
use crate::record::{Entry, encode_who};
use crate::store::{Shared, join_all};
use crate::view::{self, Plan, Sight, Taking, Trust};
use crate::{due, log, near, query};

/// How often a claim looks again after others took what it had seen.
const ROUNDS_MOST: usize = 100;

/// Why a worker that is registered gets nothing.
const APART: &str = "by the clock of a partition's node the registration of the worker is over, by that of its \
                     namespace's node it is not: set the clocks of the nodes to the same time";

/// In a claim of more tasks, payloads alone may be more than one reply holds, so its calls go one
/// after the other.
const PARALLEL_TASKS: u32 = ask::JOINT_TASKS as u32;

/// Up to `max` tasks and applicants, best first, and how much was seen. None: a look made after the
/// call began found nothing.
pub(crate) async fn claim(
    shared: &Arc<Shared>,
    claim: &Claim,
) -> Result<(Claimed, Sight), EngineError> {
    let claimed = enter(shared, claim, Look::Everywhere, Limited::SetAside).await?;
    Ok((claimed, shared.views.sight_of(&lanes_of(claim))))
}

/// Whether nothing means that there is nothing: not where not everything was seen.
pub(crate) fn seen(sight: Sight) -> Result<(), EngineError> {
    match sight {
        Sight::Whole => Ok(()),
        Sight::Partial => Err(EngineError::unavailable(
            "a node of the cluster does not answer, and the others have nothing to claim",
        )),
    }
}

/// Up to `max` of those that this process knows of; none says nothing about others.
pub(crate) async fn claim_known(
    shared: &Arc<Shared>,
    claim: &Claim,
) -> Result<Claimed, EngineError> {
    if shared.options.fifo_slack_ms == 0 {
        return Ok(Claimed::default());
    }
    enter(shared, claim, Look::Nowhere, Limited::SetAside).await
}

/// Up to `max` tasks that stand under no limits. It does not look behind many that do.
pub(crate) async fn claim_free(
    shared: &Arc<Shared>,
    claim: &Claim,
) -> Result<Vec<Task>, EngineError> {
    Ok(enter(shared, claim, Look::Everywhere, Limited::PassOver).await?.tasks)
}

/// Whether a claim looks at all partitions, or at what is known of them only.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Everywhere,
    Nowhere,
}

/// What becomes of executions that stand under limits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limited {
    SetAside,
    PassOver,
}

/// Claims from the lanes that let this worker in.
async fn enter(
    shared: &Arc<Shared>,
    claim: &Claim,
    look: Look,
    limited: Limited,
) -> Result<Claimed, EngineError> {
    claim.check()?;
    let begun = Instant::now();
    let (mut gate, mut remembered) = near::gate(shared, claim).await?;
    let mut told_silent = false;
    loop {
        let claimed = match Entered::new(claim, (gate, remembered), limited) {
            Some(entered) => run(shared, &entered, look).await?,
            None => Some(Claimed::default()),
        };
        match claimed {
            Some(claimed) if !claimed.is_empty() || !remembered || look == Look::Nowhere => {
                return Ok(claimed);
            }
            // Nothing, for a worker that was let in by what was remembered: that rests on what it is
            // now, as exactly as a decision knows the time.
            Some(nothing) => {
                let behind = Duration::from_millis(shared.clock.window().behind_ms.into());
                let since = begun.checked_sub(behind).unwrap_or(begun);
                near::gate_since(shared, claim, since).await?;
                return Ok(nothing);
            }
            // Meanwhile it counts as silent. Where its own node says twice that it does not, the clocks
            // of the two are too far apart, and asking again would not end.
            None => {
                gate = near::gate_since(shared, claim, Instant::now()).await?;
                if told_silent {
                    return Err(EngineError::unavailable(APART));
                }
                (told_silent, remembered) = (true, false);
            }
        }
    }
}

/// A claim of those of its lanes that work is given out from.
struct Entered {
    claim: Claim,
    /// What all executions of each of its lanes stand under.
    under: Vec<Standing>,
    limited: Limited,
    /// From this instant on the worker counts as silent.
    until: TimestampMs,
    /// It was let in by what was remembered.
    remembered: bool,
}

impl Entered {
    /// None: there is no such lane.
    fn new(claim: &Claim, (gate, remembered): (Gate, bool), limited: Limited) -> Option<Self> {
        let (mut lanes, mut under) = (Vec::new(), Vec::new());
        for (share, standing) in claim.lanes.iter().zip(gate.lanes) {
            let passes = |it: &Standing| limited == Limited::SetAside || it.is_empty();
            if let Some(standing) = standing.filter(passes) {
                lanes.push(share.clone());
                under.push(standing);
            }
        }
        let claim = Claim { lanes, ..claim.clone() };
        let until = gate.until;
        (!under.is_empty()).then_some(Self { claim, under, limited, until, remembered })
    }

    /// What one call is asked for: takings of one lane, with so many bytes at the most. `any`: the
    /// claim has tasks already.
    fn ask(&self, takings: Vec<Taking>, bytes_left: usize, any: bool) -> Result<Ask, EngineError> {
        let claim = &self.claim;
        let place = takings.first().map_or(0, |taking| taking.lane);
        let (lane, instance) = (&claim.lanes[place].lane, &claim.worker_instance_id);
        Ok(Ask {
            ttl_ms: claim.lease_ttl_ms,
            who: encode_who(&claim.terms(0))?,
            event_tail: log::claimed_tail(&claim.namespace, lane, instance),
            namespace: claim.namespace.clone(),
            lane: lane.clone(),
            bytes_left,
            any,
            limits: self.limits(place),
            until: self.until,
            seed: claim.seed,
            takings,
        })
    }

    /// What a function is told of limits in a lane.
    fn limits(&self, lane: usize) -> Limits {
        match self.limited {
            Limited::PassOver => Limits::Pass,
            Limited::SetAside if self.under[lane].is_empty() && !self.claim.sets_aside => {
                Limits::Own
            }
            Limited::SetAside => Limits::All,
        }
    }
}

/// Whether what this process knows of the claim's lanes is fresh enough to go by it.
pub(crate) fn knows_lanes(shared: &Shared, claim: &Claim) -> bool {
    shared.views.are_fresh(&lanes_of(claim))
}

/// The lanes of a claim, as views name them.
pub(crate) fn lanes_of(claim: &Claim) -> Vec<String> {
    claim.lanes.iter().map(|share| lane_name(&claim.namespace, &share.lane)).collect()
}

/// None: the worker counts as silent.
async fn run(
    shared: &Arc<Shared>,
    entered: &Entered,
    look: Look,
) -> Result<Option<Claimed>, EngineError> {
    let (claim, lanes) = (&entered.claim, lanes_of(&entered.claim));
    let parallel = claim.max <= PARALLEL_TASKS && !shared.views.are_large(&lanes);
    let mut round = Round::new(shared, entered, parallel);
    if let Err(error) = go_round(&mut round, &lanes, look).await {
        round.get_over(error)?;
    }
    if round.late {
        return Ok(round.finish().filter(|claimed| !claimed.is_empty()));
    }
    if claim.max <= PARALLEL_TASKS && !round.parallel {
        shared.views.note_large(&lanes, round.full);
    }
    Ok(round.finish())
}

/// Takes what there is, until the claim has enough or nothing is left.
async fn go_round(round: &mut Round<'_>, lanes: &[String], look: Look) -> Result<(), EngineError> {
    let (shared, claim, parallel) = (round.shared, round.claim, round.parallel);
    let (may_look, strict) = (look == Look::Everywhere, shared.options.fifo_slack_ms == 0);
    let mut rota = Rota::new(&claim.lanes, claim.order);
    let max = claim.max as usize;
    let (begun, mut looked, mut trust) = (Instant::now(), !may_look, Trust::Promises);
    let mut rounds = 0;
    while rounds < ROUNDS_MOST {
        let wanted = max - round.taken();
        let bounded = std::mem::take(&mut round.bounded);
        if strict || (bounded && may_look && wanted > 1) {
            // The exact order needs as many entries of each queue as are wanted. Where entries of
            // several queues are better in turn, a guess gets one of them at a time.
            view::look(shared, lanes, wanted.min(ITEMS_MOST)).await?;
            looked = true;
        } else if may_look && !shared.views.are_fresh(lanes) {
            view::look_since(shared, lanes, begun).await?;
            looked = true;
        }
        if shared.client.has_silent() {
            let is_silent = |partition| shared.client.is_silent(shared.keys.slot(partition));
            shared.views.leave_out(lanes, is_silent);
        }
        let places = (round.places, wanted);
        let slack_ms = slack_ms(shared, claim);
        let plan = shared.views.plan(claim, lanes, &mut rota, places, (slack_ms, trust));
        if plan.takings.is_empty() && plan.expired.is_empty() {
            if !looked {
                view::look_since(shared, lanes, begun).await?;
                looked = true;
            } else if trust == Trust::Promises && may_look && !strict && round.taken() == 0 {
                // Only the store knows that there is nothing.
                trust = Trust::Store;
            } else {
                break;
            }
        } else {
            round.carry_out(plan).await?;
            if round.late || round.full || round.left_behind || round.taken() >= max {
                break;
            }
        }
        // What was passed over is out of its queue: such rounds come to an end by themselves.
        let passed = std::mem::take(&mut round.passed);
        if passed {
            round.take_places_back();
        }
        rounds += usize::from(!passed);
        // What did not fit its share is asked for again, also where others cannot have come between.
        if !strict || passed || round.parallel != parallel {
            rota.reopen();
        }
    }
    Ok(())
}

/// How far apart entries of all lanes of a claim may be and count as equal; 0: the order is exact.
fn slack_ms(shared: &Shared, claim: &Claim) -> u32 {
    let lanes = claim.lanes.iter();
    let slacks = lanes.map(|share| near::slack_ms(shared, &claim.namespace, &share.lane));
    // Where that is not known they are told apart, and yet not looked at one by one.
    let least = slacks.min().unwrap_or_default().max(1);
    least.min(shared.options.fifo_slack_ms)
}

struct Round<'a> {
    shared: &'a Arc<Shared>,
    entered: &'a Entered,
    claim: &'a Claim,
    /// Its calls may go at the same time.
    parallel: bool,
    /// Places given out so far: each has a lease id of its own.
    places: u32,
    bytes: usize,
    /// The reply holds no more.
    full: bool,
    /// The last calls met entries of no use, and these are out of their queues.
    passed: bool,
    /// The last calls left entries that others were known to be better than.
    bounded: bool,
    /// Something that stands under limits was left where it is.
    left_behind: bool,
    /// The worker counts as silent.
    late: bool,
    tasks: Vec<(Place, Task)>,
    applicants: Vec<(Place, Applicant)>,
}

impl<'a> Round<'a> {
    fn new(shared: &'a Arc<Shared>, entered: &'a Entered, parallel: bool) -> Self {
        Self {
            shared,
            entered,
            claim: &entered.claim,
            parallel,
            places: 0,
            bytes: 0,
            full: false,
            passed: false,
            bounded: false,
            left_behind: false,
            late: false,
            tasks: Vec::new(),
            applicants: Vec::new(),
        }
    }

    fn taken(&self) -> usize {
        self.tasks.len() + self.applicants.len()
    }

    /// What was leased counts, whatever fails afterwards: nobody else can have it.
    fn get_over(&self, error: EngineError) -> Result<(), EngineError> {
        if self.taken() == 0 {
            return Err(error);
        }
        tracing::warn!(%error, taken = self.taken(), "a claim got less than there is");
        Ok(())
    }

    /// All that was taken, in its order.
    fn finish(self) -> Option<Claimed> {
        let tasks = in_order(self.tasks, |task| task.execution_id);
        let applicants = in_order(self.applicants, |applicant| applicant.execution_id);
        Some(Claimed { tasks, applicants })
    }

    async fn carry_out(&mut self, plan: Plan) -> Result<(), EngineError> {
        let Plan { takings, expired } = plan;
        if self.entered.remembered && !expired.is_empty() {
            // A claim that is refused changes nothing.
            near::gate_since(self.shared, self.claim, Instant::now()).await?;
        }
        // They came before what is taken.
        self.passed |= due::expire(self.shared, &expired).await?;
        let mut expired = Vec::new();
        let last = takings.iter().flat_map(|taking| &taking.places).max();
        self.places = last.map_or(self.places, |last| last + 1);
        let calls = calls(self.shared.client.is_cluster(), &takings);
        let mut failed = Ok(());
        if self.parallel && calls.len() > 1 {
            for taken in self.send_together(calls).await {
                // Each has taken something by now, whatever became of the others.
                let stopped = matches!(&taken, Ok(taken) if taken.stopped);
                // Alone, or with fewer others, what did not fit may: it is asked for again.
                self.parallel &= !stopped;
                failed = failed.and(self.absorb(taken, &mut expired).await);
            }
        } else {
            for call in calls {
                let left = limits::CLAIM_REPLY_BYTES.saturating_sub(self.bytes);
                let any = !self.tasks.is_empty();
                let taken = ask::send(self.shared, self.entered.ask(call, left, any)?).await;
                self.full |= matches!(&taken, Ok(taken) if taken.stopped);
                failed = self.absorb(taken, &mut expired).await;
                if self.full || failed.is_err() {
                    break;
                }
            }
        }
        self.passed |= due::expire(self.shared, &expired).await?;
        failed
    }

    /// Sends calls at the same time, each with its share of the bytes that a reply holds. None takes
    /// more than that, not even its first task.
    async fn send_together(&self, calls: Vec<Vec<Taking>>) -> Vec<Result<Taken, EngineError>> {
        let wanted = |call: &[Taking]| call.iter().map(|t| t.places.len()).sum::<usize>();
        let tasks: usize = calls.iter().map(|call| wanted(call)).sum();
        let left = limits::CLAIM_REPLY_BYTES.saturating_sub(self.bytes);
        let (shared, entered) = (self.shared, self.entered);
        join_all(calls.into_iter().map(|call| async move {
            let share = left / tasks.max(1) * wanted(&call);
            ask::send(shared, entered.ask(call, share, true)?).await
        }))
        .await
    }

    /// Places that nothing took are given out again, where no later one was taken.
    fn take_places_back(&mut self) {
        let taken = self.taken();
        let places = self.tasks.iter().map(|(place, _)| place);
        let mut places = places.chain(self.applicants.iter().map(|(place, _)| place));
        if places.all(|place| (place.number as usize) < taken) {
            self.places = u32::try_from(taken).unwrap_or(u32::MAX);
        }
    }

    /// Keeps all that it can of what a call has taken, and says what hindered it.
    async fn absorb(
        &mut self,
        taken: Result<Taken, EngineError>,
        expired: &mut Vec<Expired>,
    ) -> Result<(), EngineError> {
        let taken = taken?;
        self.passed |= taken.passed;
        self.bounded |= taken.bounded;
        self.left_behind |= taken.left_behind;
        self.late |= taken.late;
        expired.extend(taken.expired);
        let kept = self.keep_tasks(taken.tasks).await;
        let applied = self.apply_for(taken.aside).await;
        kept.and(applied).and(taken.broken.map_or(Ok(()), Err))
    }

    /// Tasks with what goes along with them. Where that cannot be read for all at once, each is a
    /// case of its own, and what still lacks something comes back when its lease ends.
    async fn keep_tasks(&mut self, tasks: Vec<Leased>) -> Result<(), EngineError> {
        if let Ok(extras) = self.extras(&tasks).await {
            tasks.into_iter().zip(extras).for_each(|(task, extras)| self.keep(task, extras));
            return Ok(());
        }
        let mut failed = Ok(());
        for task in tasks {
            match self.extras(std::slice::from_ref(&task)).await {
                Ok(extras) => self.keep(task, extras.into_iter().next().unwrap_or_default()),
                Err(error) => failed = Err(error),
            }
        }
        failed
    }

    fn keep(&mut self, Leased { at, entry, payload }: Leased, extras: Extras) {
        self.bytes += payload.len() + extras.bytes();
        let task = Task::of(&entry.execution, payload, extras, &self.shared.settings);
        self.tasks.extend(task.map(|task| (at, task)));
        self.shared.entries.keep_claimed(&Arc::new(entry));
    }

    /// Finds out what those that were set aside stand under.
    async fn apply_for(&mut self, aside: Vec<SetAside>) -> Result<(), EngineError> {
        let overlay = Overlay::new(Arc::clone(&self.shared.settings));
        let standings = query::with_more(self.shared, overlay, |overlay| {
            let (mut all, mut needs) = (Vec::with_capacity(aside.len()), Needs::default());
            for (at, entry) in &aside {
                match standing_of(overlay, &self.entered.under[at.lane], &entry.execution) {
                    Ok(standing) => all.push(standing),
                    Err(lacking) => needs.merge(lacking),
                }
            }
            if needs.is_empty() { Ok(Ok(all)) } else { Err(needs) }
        })
        .await?;
        for ((at, entry), standing) in aside.into_iter().zip(standings) {
            let lease_id = LeaseId::from_seed(self.claim.seed, at.number);
            let applicant = Applicant::of(&entry.execution, lease_id, at.score, standing);
            self.applicants.push((at, applicant));
            self.shared.entries.keep_claimed(&Arc::new(entry));
        }
        Ok(())
    }

    /// What is known beside the records before they were claimed: a claim changes none of it. Only a
    /// child may be replayed without a change of the parent that waited for it: children are read. So
    /// are upstreams of several tasks: what one of them has waited for may have got edges to another
    /// since.
    fn beside(&self, tasks: &[Leased]) -> Overlay {
        let mut overlay = Overlay::new(Arc::clone(&self.shared.settings));
        for Leased { entry: Entry { execution, .. }, .. } in tasks {
            let before = execution.revision.saturating_sub(1);
            let Beside { rows, ended } = self.shared.entries.beside(execution.id, before);
            for (key, bytes) in rows {
                overlay.supply_row(execution.id.into(), key, Some(bytes));
            }
            let has_children = execution.member.as_ref().is_some_and(|member| member.children > 0);
            let is_told = tasks.len() == 1 && !has_children;
            for entry in ended.into_iter().filter(|_| is_told) {
                let id = entry.execution.id;
                overlay.supply_execution(id, Some(Arc::clone(&entry.execution)));
                if let Some(result) = entry.newest_result() {
                    overlay.supply_result(id, Some(result.clone()));
                }
            }
        }
        overlay
    }

    /// What goes along with each of these tasks, read for all of them at once.
    async fn extras(&self, tasks: &[Leased]) -> Result<Vec<Extras>, EngineError> {
        query::with_more(self.shared, self.beside(tasks), |overlay| {
            let (mut all, mut needs) = (Vec::with_capacity(tasks.len()), Needs::default());
            let mut bytes = self.bytes;
            for Leased { entry, payload, .. } in tasks {
                bytes += payload.len();
                // Only the first task of a claim may carry more than this: bodies that do not fit
                // are left for its worker to read.
                let left = limits::CLAIM_REPLY_BYTES.saturating_sub(bytes);
                match extras(overlay, &entry.execution, left) {
                    Ok(Ok(extras)) => {
                        bytes += extras.bytes();
                        all.push(extras);
                    }
                    Ok(Err(refusal)) => return Ok(Err(refusal)),
                    Err(lacking) => {
                        let expected = entry.execution.extras_bytes();
                        bytes += usize::try_from(expected).unwrap_or(usize::MAX).min(left);
                        needs.merge(lacking);
                    }
                }
            }
            if needs.is_empty() { Ok(Ok(all)) } else { Err(needs) }
        })
        .await
    }
}

/// Lanes in the order in which they were chosen, and in each of them the best first: which entries
/// queues had was a guess when they were.
fn in_order<T>(mut taken: Vec<(Place, T)>, id: impl Fn(&T) -> ExecutionId) -> Vec<T> {
    taken.sort_by_key(|(place, _)| place.number);
    let lane = |(place, _): &(Place, T)| place.lane;
    let order = |(place, it): &(Place, T)| (place.score, id(it).uuid());
    best_first(taken, lane, order).into_iter().map(|(_, it)| it).collect()
}

/// Cuts takings into calls: of one lane, in a cluster of one partition, of at most so many tasks. What
/// is to be taken of one queue may be more: an entry of the log has no numbers for so many events.
fn calls(cluster: bool, takings: &[Taking]) -> Vec<Vec<Taking>> {
    let mut calls: Vec<Vec<Taking>> = Vec::new();
    for taking in takings.iter().flat_map(|taking| {
        let parts = taking.places.chunks(ITEMS_MOST);
        parts.map(|places| Taking { places: places.to_vec(), ..taking.clone() })
    }) {
        let fits = calls.last().is_some_and(|call| {
            let tasks: usize = call.iter().map(|taking| taking.places.len()).sum();
            !cluster
                && call.iter().all(|other| other.lane == taking.lane)
                && tasks + taking.places.len() <= ITEMS_MOST
        });
        match calls.last_mut().filter(|_| fits) {
            Some(call) => call.push(taking),
            None => calls.push(vec![taking]),
        }
    }
    calls
}
