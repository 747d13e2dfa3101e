//! What this process knows of queues, and which of their entries a claim should take.
//!
//! The store's queues are the truth; a view is a guess at where the best entry stands. It is fed by
//! looks at all partitions, by the new front that every claim brings back, by wake tokens, and by
//! what this process itself makes ready. A wrong guess costs a round trip and never a wrong claim:
//! the function takes what is there, up to a bound.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ff_core::capability::Capabilities;
use ff_core::error::EngineError;
use ff_core::id::{ExecutionId, Home};
use ff_core::operation::Claim;
use ff_core::rota::Rota;
use ff_core::shared_look::SharedLook;
use redis::{Cmd, Value};
use uuid::Uuid;

use crate::due::Expired;
use crate::everywhere::{Answered, Missing, Tour};
use crate::keys::split_queue;
use crate::reply;
use crate::store::Shared;

/// A view that is older is looked at anew before a claim: work of a higher priority elsewhere is
/// passed over no longer than that.
const FRESH: Duration = Duration::from_millis(50);

/// Entries of a front that a process gathers itself: a claim takes no more at once, and a process that
/// only submits would gather them without end.
const FRONT_MOST: usize = 64;

/// How many entries stand behind a front of which only that is known: any number.
const ANY: u32 = u32::MAX;

/// Behind every entry of the same score.
const LAST: ExecutionId = ExecutionId::new(u16::MAX, Uuid::max());

/// In place of the class to look at.
const EVERY_CLASS: &str = "";

/// Lanes that a process remembers; beyond that it forgets those it has not claimed from just now.
const LANES_MOST: usize = 1000;

/// An entry of a queue. The derived order is the order of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Candidate {
    pub(crate) score: i64,
    pub(crate) id: ExecutionId,
    /// Its deadline has passed: it is to be ended, and not to be taken.
    pub(crate) expired: bool,
}

/// What a claim left in a queue.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) first: Candidate,
    /// How many stand behind it.
    pub(crate) behind: u32,
    /// The score of one of these, counted from 1; 0: of the first.
    pub(crate) ahead: (u32, i64),
}

/// What a claim goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// What other claims under way may get is theirs.
    Promises,
    /// Only what the store said. Its answers are not read in the order in which they were given, so an
    /// entry may be promised to a claim that has got another one already.
    Store,
}

/// How much of a lane a look saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sight {
    #[default]
    Whole,
    /// Some partitions could not be read.
    Partial,
}

/// The front of one queue of one partition.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    pub(crate) partition: u16,
    pub(crate) name: Arc<str>,
    required: Capabilities,
    /// Best first.
    front: Vec<Candidate>,
    /// How many entries stand behind the front, as far as is known.
    behind: u32,
    /// None of them has a lower score.
    floor: i64,
    /// The score of one of them, counted from 1; 0 when none is known.
    ahead: (u32, i64),
    /// Those that claims under way may get.
    promised: u32,
    /// Entries, known or not, that calls under way ask for.
    asked: u32,
}

/// What to take from one queue.
#[derive(Debug, Clone)]
pub(crate) struct Taking {
    pub(crate) partition: u16,
    pub(crate) queue: Arc<str>,
    /// Place of its lane among those of the claim.
    pub(crate) lane: usize,
    /// Nothing behind it is taken; none: whatever the queue has.
    pub(crate) bound: Option<(i64, ExecutionId)>,
    /// Places of its entries in the order of the claim.
    pub(crate) places: Vec<u32>,
}

/// What a round of a claim does.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) takings: Vec<Taking>,
    /// Met on the way, and past their deadline.
    pub(crate) expired: Vec<Expired>,
}

/// The views of all lanes that this process claims from, by their names.
#[derive(Debug, Default)]
pub(crate) struct Views {
    lanes: Mutex<HashMap<String, LaneView>>,
    /// Claims that want to look wait for each other: one look serves all.
    turn: SharedLook,
}

#[derive(Debug, Default)]
struct LaneView {
    looked_at: Option<Instant>,
    sight: Sight,
    queues: Vec<Queue>,
    /// Something in it was too large to be taken with others.
    large: bool,
}

impl Views {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, LaneView>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all these lanes were looked at a moment ago.
    pub(crate) fn are_fresh(&self, lanes: &[String]) -> bool {
        Instant::now().checked_sub(FRESH).is_none_or(|since| self.are_newer(lanes, since))
    }

    /// Whether something in these lanes may be too large to be taken with others.
    pub(crate) fn are_large(&self, lanes: &[String]) -> bool {
        let views = self.lock();
        lanes.iter().any(|lane| views.get(lane).is_some_and(|view| view.large))
    }

    /// Notes whether something was.
    pub(crate) fn note_large(&self, lanes: &[String], large: bool) {
        let mut views = self.lock();
        for lane in lanes {
            if let Some(view) = views.get_mut(lane) {
                view.large = large;
            }
        }
    }

    /// Whether the last look at each of these lanes began at `since` or later.
    fn are_newer(&self, lanes: &[String], since: Instant) -> bool {
        let views = self.lock();
        lanes.iter().all(|lane| {
            let looked_at = views.get(lane).and_then(|view| view.looked_at);
            looked_at.is_some_and(|at| at >= since)
        })
    }

    /// How much the last look at each of these lanes saw.
    pub(crate) fn sight_of(&self, lanes: &[String]) -> Sight {
        let views = self.lock();
        let is_partial =
            |lane: &String| views.get(lane).is_some_and(|it| it.sight == Sight::Partial);
        if lanes.iter().any(is_partial) { Sight::Partial } else { Sight::Whole }
    }

    /// Takes over what a look found, begun at `begun`.
    fn replace(
        &self,
        lanes: &[String],
        queues: Vec<(usize, Queue)>,
        (begun, sight): (Instant, Sight),
    ) {
        let mut views = self.lock();
        if views.len() > LANES_MOST {
            views.retain(|_, view| view.looked_at.is_some_and(|at| at.elapsed() < FRESH));
        }
        let mut before = HashMap::new();
        for lane in lanes {
            let view = views.entry(lane.clone()).or_default();
            (view.looked_at, view.sight) = (Some(begun), sight);
            let known = view.queues.drain(..);
            before.extend(known.map(|queue| ((queue.partition, Arc::clone(&queue.name)), queue)));
        }
        let mut seen = HashSet::with_capacity(queues.len());
        for (lane, queue) in queues {
            let name = (queue.partition, Arc::clone(&queue.name));
            let known = before.remove(&name).filter(|known| known.is_as(&queue));
            if let Some(view) = views.get_mut(&lanes[lane])
                && seen.insert(name)
            {
                view.queues.push(known.unwrap_or(queue));
            }
        }
    }

    /// What is known of some partitions is of no use: nobody answers there.
    pub(crate) fn leave_out(&self, lanes: &[String], partition: impl Fn(u16) -> bool) {
        let mut views = self.lock();
        for lane in lanes {
            if let Some(view) = views.get_mut(lane) {
                view.queues.retain(|queue| !partition(queue.partition));
            }
        }
    }

    /// This process has made an execution ready.
    pub(crate) fn note_ready(&self, queue: &Arc<str>, required: &Capabilities, at: Candidate) {
        let mut views = self.lock();
        let Some(view) = views.get_mut(split_queue(queue).0) else { return };
        let known = view.find(at.id.partition(), queue);
        match known {
            Some(known) if known.behind == 0 || known.front.first().is_some_and(|f| at < *f) => {
                known.enter(at);
            }
            Some(known) => known.behind = known.behind.saturating_add(1),
            None => {
                let (name, required) = (Arc::clone(queue), required.clone());
                let front = vec![at];
                let made = Queue::new(at.id.partition(), name, required, front, (0, at.score));
                view.queues.push(made);
            }
        }
    }

    /// A token says that something stands in a queue.
    pub(crate) fn note_token(&self, queue: &str, partition: u16, required: Capabilities) {
        let mut views = self.lock();
        let view = views.entry(split_queue(queue).0.to_owned()).or_default();
        if view.find(partition, queue).is_none() {
            let (front, name) = (Vec::new(), queue.into());
            let found = Queue::new(partition, name, required, front, (ANY, i64::MIN));
            view.queues.push(found);
        }
    }

    /// Whether something is known to stand in a queue.
    pub(crate) fn has_work(&self, partition: u16, queue: &str) -> bool {
        let mut views = self.lock();
        let view = views.get_mut(split_queue(queue).0);
        view.and_then(|view| view.find(partition, queue)).is_some_and(|q| !q.front.is_empty())
    }

    /// Of each of these lanes a queue that may have something for one more claim with these
    /// capabilities, beside what claims under way will get.
    pub(crate) fn more(
        &self,
        lanes: &[String],
        capabilities: &Capabilities,
    ) -> Vec<(u16, Arc<str>)> {
        let views = self.lock();
        let known = lanes.iter().filter_map(|lane| views.get(lane));
        let more = known.filter_map(|view| {
            let queue = &view.queues[view.best(capabilities, 0, Trust::Promises)?];
            Some((queue.partition, Arc::clone(&queue.name)))
        });
        more.collect()
    }

    /// Whether something may stand in a queue, as far as this process knows.
    pub(crate) fn may_have_work(&self, partition: u16, queue: &str) -> bool {
        let mut views = self.lock();
        let view = views.get_mut(split_queue(queue).0);
        let known = view.and_then(|view| view.find(partition, queue));
        known.is_some_and(|queue| queue.behind > 0 || !queue.front.is_empty())
    }

    /// What a claim left in a queue.
    pub(crate) fn note_front(&self, taking: &Taking, front: Option<&Front>) {
        let (partition, queue) = (taking.partition, &*taking.queue);
        let mut views = self.lock();
        let Some(view) = views.get_mut(split_queue(queue).0) else { return };
        match front {
            None => view.queues.retain(|q| q.partition != partition || &*q.name != queue),
            Some(front) => {
                let asked = u32::try_from(taking.places.len()).unwrap_or(u32::MAX);
                if let Some(known) = view.find(partition, queue) {
                    known.learn(front, asked);
                }
            }
        }
    }

    /// Chooses up to `wanted` entries in the order of the rota and, inside a lane, of the queues;
    /// what is chosen is not chosen again before the store has been asked. `first` is the place of
    /// the first of them in the claim.
    pub(crate) fn plan(
        &self,
        claim: &Claim,
        lanes: &[String],
        rota: &mut Rota,
        (first, wanted): (u32, usize),
        (slack_ms, trust): (u32, Trust),
    ) -> Plan {
        let mut views = self.lock();
        let mut plan = Plan::default();
        let last = first.saturating_add(u32::try_from(wanted).unwrap_or(u32::MAX));
        let mut place = first;
        while place < last {
            let Some(lane) = rota.pick() else { break };
            let view = views.entry(lanes[lane].clone()).or_default();
            let Some(best) = view.best(&claim.capabilities, slack_ms, trust) else {
                rota.mark_empty(lane);
                continue;
            };
            // The exact order is not left to a guess: the next round looks again.
            if slack_ms == 0 && view.queues[best].front.is_empty() {
                break;
            }
            match view.queues[best].take() {
                Some(Candidate { id, expired: true, .. }) => {
                    let queue = Arc::clone(&view.queues[best].name);
                    plan.expired.push(Expired { id, queue });
                }
                taken => {
                    rota.charge(lane);
                    let taken = taken.map(|candidate| (candidate.score, candidate.id));
                    plan.note(&view.queues[best], lane, taken, place);
                    place += 1;
                }
            }
        }
        for taking in &mut plan.takings {
            let view = &views[&lanes[taking.lane]];
            let beside = view.best_beside(taking, &claim.capabilities, slack_ms);
            taking.bound = beside.map(|beside| taking.bound.map_or(beside, |b| b.max(beside)));
        }
        plan
    }
}

impl Plan {
    fn note(&mut self, queue: &Queue, lane: usize, taken: Option<(i64, ExecutionId)>, place: u32) {
        let same = |t: &&mut Taking| t.partition == queue.partition && t.queue == queue.name;
        if let Some(taking) = self.takings.iter_mut().find(same) {
            taking.places.push(place);
            taking.bound = taking.bound.max(taken);
            return;
        }
        self.takings.push(Taking {
            partition: queue.partition,
            queue: Arc::clone(&queue.name),
            lane,
            bound: taken,
            places: vec![place],
        });
    }
}

impl LaneView {
    fn find(&mut self, partition: u16, name: &str) -> Option<&mut Queue> {
        self.queues.iter_mut().find(|q| q.partition == partition && &*q.name == name)
    }

    /// The queue that a worker with these capabilities should look at first.
    fn best(&self, capabilities: &Capabilities, slack_ms: u32, trust: Trust) -> Option<usize> {
        let covered = self.queues.iter().enumerate();
        let covered = covered.filter(|(_, queue)| capabilities.covers(&queue.required));
        let ranked = covered.filter_map(|(n, queue)| Some((queue.rank(slack_ms, trust)?, n)));
        ranked.min().map(|(_, n)| n)
    }

    /// The best entry in the other queues that these capabilities cover, known or expected. What is
    /// expected may not be there: then less is taken than there is, and the next round knows.
    fn best_beside(
        &self,
        taking: &Taking,
        capabilities: &Capabilities,
        slack_ms: u32,
    ) -> Option<(i64, ExecutionId)> {
        let others = self.queues.iter().filter(|queue| {
            (queue.partition != taking.partition || queue.name != taking.queue)
                && capabilities.covers(&queue.required)
        });
        let ranks = others.filter_map(|queue| queue.rank(slack_ms, Trust::Promises));
        ranks.map(|(score, id)| (score, id.unwrap_or(LAST))).min()
    }
}

impl Queue {
    /// With so many entries behind its front, none of them with a lower score than this.
    const fn new(
        partition: u16,
        name: Arc<str>,
        required: Capabilities,
        front: Vec<Candidate>,
        (behind, floor): (u32, i64),
    ) -> Self {
        let (ahead, promised, asked) = ((0, floor), 0, 0);
        Self { partition, name, required, front, behind, floor, ahead, promised, asked }
    }

    /// Another entry, which stands in the front, or before it. The last ones go behind a front that
    /// is full.
    fn enter(&mut self, at: Candidate) {
        let place = self.front.partition_point(|candidate| *candidate < at);
        self.front.insert(place, at);
        while self.front.len() > FRONT_MOST {
            self.front.pop();
            self.behind = self.behind.saturating_add(1);
        }
    }

    /// What the store said after a call that had asked for so many entries. Other calls under way will
    /// get what stands first.
    fn learn(&mut self, &Front { first, behind, ahead }: &Front, asked: u32) {
        self.asked = self.asked.saturating_sub(asked);
        (self.floor, self.ahead, self.promised) = (first.score, ahead, self.asked);
        if self.asked == 0 {
            (self.front, self.behind) = (vec![first], behind);
        } else {
            (self.front, self.behind) = (Vec::new(), behind.saturating_add(1));
            self.ahead.0 += 1;
        }
    }

    /// Whether a look that found no more than a score says nothing that is not known.
    fn is_as(&self, looked: &Self) -> bool {
        let is_first = |first: &Candidate| first.score == looked.floor;
        looked.front.is_empty()
            && self.front.first().is_some_and(is_first)
            && self.partition == looked.partition
            && self.name == looked.name
    }

    /// Where it stands among others: by its first known entry, or by what may be behind; none when
    /// nothing can be there.
    fn rank(&self, slack_ms: u32, trust: Trust) -> Option<(i64, Option<ExecutionId>)> {
        let promised = if trust == Trust::Promises { self.promised } else { 0 };
        match self.front.first() {
            Some(first) => Some((first.score, Some(first.id))),
            None if promised >= self.behind => None,
            None => Some((self.expected(slack_ms), None)),
        }
    }

    /// The score that the next entry behind the front may have, when other claims of this process
    /// have got theirs: evenly up to the one that is known ahead, and behind that by the slack each,
    /// so that claims spread over queues. The store sees to it that nothing is taken before what is
    /// older by more than the slack.
    ///
    /// By more than the slack each it is never put off: entries are not even where priorities differ, and
    /// one that is thought worse than it is would be passed over for another queue's.
    fn expected(&self, slack_ms: u32) -> i64 {
        let ((known, ahead), promised) = (self.ahead, self.promised);
        if promised < known {
            let share = i64::from(promised + 1);
            let evenly = (ahead - self.floor).max(0) / i64::from(known);
            return self.floor + share * evenly.min(i64::from(slack_ms));
        }
        let aged = i64::from(promised - known) * i64::from(slack_ms);
        ahead.max(self.floor).saturating_add(aged)
    }

    /// Takes its first entry; none: one that is not known, of a queue that goes on.
    fn take(&mut self) -> Option<Candidate> {
        if self.front.is_empty() {
            self.promised += 1;
            self.asked += 1;
            return None;
        }
        let first = self.front.remove(0);
        self.floor = first.score;
        self.asked += u32::from(!first.expired);
        Some(first)
    }
}

/// Sees to it that these lanes have been looked at since `since`, by this caller or by another.
pub(crate) async fn look_since(
    shared: &Arc<Shared>,
    lanes: &[String],
    since: Instant,
) -> Result<(), EngineError> {
    let known = || shared.views.are_newer(lanes, since).then_some(());
    shared.views.turn.ask(known, look(shared, lanes, 0)).await
}

/// Looks at the queues of some lanes in all partitions, at up to `most` entries of each (0: only at
/// the score of the first), and takes it over into the views.
pub(crate) async fn look(
    shared: &Arc<Shared>,
    lanes: &[String],
    most: usize,
) -> Result<(), EngineError> {
    let begun = Instant::now();
    let mut seen = Seen::default();
    let mut left = vec![(None, shared.partitions())];
    while let Some((from, homes)) = left.pop() {
        left.extend(seen.look(shared, lanes, (most, from), homes).await?);
    }
    let Seen { queues, sight } = seen;
    let named = queues.iter().map(|(_, queue)| (queue.partition, Arc::clone(&queue.name)));
    let required = shared.classes.required(shared, named.collect()).await?;
    let known = queues.into_iter().filter_map(|(lane, queue)| {
        let (_, class) = split_queue(&queue.name);
        // One of which the store does not know the class is empty by now.
        let required = required.get(class)?.clone();
        Some((lane, Queue { required, ..queue }))
    });
    shared.views.replace(lanes, known.collect(), (begun, sight));
    Ok(())
}

/// Where a call had no room for more: partition, place of the lane and cursor.
type Resume = (u16, i64, String);

/// What a look has found so far.
#[derive(Default)]
struct Seen {
    /// With the places of their lanes. What they require is yet to be found out.
    queues: Vec<(usize, Queue)>,
    sight: Sight,
}

impl Seen {
    /// Looks at these partitions, in the first perhaps from a place on: where there is more.
    async fn look(
        &mut self,
        shared: &Arc<Shared>,
        lanes: &[String],
        (most, from): (usize, Option<Resume>),
        homes: Vec<Home>,
    ) -> Result<Vec<(Option<Resume>, Vec<Home>)>, EngineError> {
        let arguments = |call: &mut Cmd, homes: &[Home]| {
            call.arg(most).arg(EVERY_CLASS).arg(lanes.len()).arg(lanes);
            for partition in homes.iter().filter_map(Home::flow_partition) {
                match &from {
                    Some((at, lane, cursor)) if *at == partition => {
                        call.arg(format!("{partition}:{lane}:{cursor}"))
                    }
                    _ => call.arg(partition),
                };
            }
        };
        // Each lane is a look at an index of its own.
        let peek = Tour::by("ff_peek", Missing::LeaveOut).entries(lanes.len() * (1 + most));
        let found = shared.everywhere(peek, homes, arguments).await?;
        let mut left = Vec::new();
        for Answered { mut homes, reply } in found.answered {
            for queue in reply::array(reply)? {
                if let Some(resume) = self.read_queue(reply::array(queue)?, lanes)? {
                    let is_at = |home: &Home| home.flow_partition() == Some(resume.0);
                    let seen = homes.iter().position(is_at).unwrap_or_default();
                    left.push((Some(resume), homes.split_off(seen)));
                }
            }
        }
        if !found.left_out.is_empty() {
            self.sight = Sight::Partial;
        }
        Ok(left)
    }

    /// A queue, or where to go on.
    fn read_queue(
        &mut self,
        queue: Vec<Value>,
        lanes: &[String],
    ) -> Result<Option<Resume>, EngineError> {
        let is_resume = queue.len() == 3;
        let mut items = queue.into_iter();
        let partition = reply::partition(&reply::next(&mut items)?)?;
        if is_resume {
            let lane = reply::number(&reply::next(&mut items)?)?;
            return Ok(Some((partition, lane, reply::text(reply::next(&mut items)?)?)));
        }
        let name = reply::text(reply::next(&mut items)?)?;
        let score = reply::number(&reply::next(&mut items)?)?;
        let complete = reply::number(&reply::next(&mut items)?)? == 1;
        let mut front: Vec<Candidate> = Vec::new();
        while let Some(score) = items.next() {
            let id = reply::entry(partition, &reply::next(&mut items)?);
            let expired = reply::number(&reply::next(&mut items)?)? == 1;
            front.push(Candidate { score: reply::number(&score)?, id, expired });
        }
        let (lane, _) = split_queue(&name);
        let lane = lanes.iter().position(|asked| asked == lane);
        let lane =
            lane.ok_or_else(|| EngineError::bug(format!("{name} is of no lane asked for")))?;
        let floor = front.last().map_or(score, |last| last.score);
        let behind = (if complete { 0 } else { ANY }, floor);
        let required = Capabilities::default();
        self.queues.push((lane, Queue::new(partition, name.into(), required, front, behind)));
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(score: i64) -> Candidate {
        let id = ExecutionId::new(1, uuid::Uuid::from_u128(score.unsigned_abs().into()));
        Candidate { score, id, expired: false }
    }

    fn queue(behind: u32) -> Queue {
        let (name, required) = ("ns/lane:-".into(), Capabilities::default());
        let mut queue = Queue::new(1, name, required, Vec::new(), (ANY, 0));
        queue.learn(&Front { first: candidate(1000), behind, ahead: (behind.min(31), 1310) }, 0);
        queue
    }

    fn rank(queue: &Queue) -> Option<i64> {
        queue.rank(100, Trust::Promises).map(|(score, _)| score)
    }

    #[test]
    fn a_queue_is_expected_to_go_on_evenly_up_to_what_was_seen_ahead() {
        let mut queue = queue(40);
        assert_eq!(rank(&queue), Some(1000));
        let ranks = [1010, 1020, 1030].map(Some);
        for expected in ranks {
            queue.take();
            assert_eq!(rank(&queue), expected);
        }
        for _ in 0..28 {
            queue.take();
        }
        assert_eq!(rank(&queue), Some(1310), "the last that was seen");
        queue.take();
        assert_eq!(rank(&queue), Some(1310));
        queue.take();
        assert_eq!(rank(&queue), Some(1410), "by the slack each");
    }

    #[test]
    fn what_is_not_known_is_not_thought_much_worse_than_what_was_seen() {
        let mut queue = queue(40);
        let far_ahead = Front { first: candidate(1000), behind: 40, ahead: (31, 9_000_000) };
        queue.learn(&far_ahead, 0);
        queue.take();
        assert_eq!(rank(&queue), Some(1100));
        queue.take();
        assert_eq!(rank(&queue), Some(1200));
    }

    #[test]
    fn no_more_is_promised_than_stands_there() {
        let mut queue = queue(2);
        for _ in 0..3 {
            assert!(rank(&queue).is_some());
            queue.take();
        }
        assert_eq!(rank(&queue), None);
        assert!(queue.rank(100, Trust::Store).is_some(), "the store said that there are some");
    }

    #[test]
    fn what_other_calls_will_get_stays_promised() {
        let mut queue = queue(9);
        // Two calls, of four and three entries; the first one answers.
        for _ in 0..7 {
            queue.take();
        }
        queue.learn(&Front { first: candidate(1040), behind: 5, ahead: (5, 1090) }, 4);
        assert!(queue.front.is_empty());
        let left = std::iter::from_fn(|| rank(&queue).map(|_| queue.take())).count();
        assert_eq!(left, 3, "six stand there, of which the second call gets three");
    }

    #[test]
    fn what_a_process_submits_and_never_claims_is_counted_from_some_point_on() {
        let views = Views::default();
        let (name, required) = ("ns/lane:-".into(), Capabilities::default());
        views.replace(&["ns/lane:".to_owned()], Vec::new(), (Instant::now(), Sight::Whole));
        for score in (0..100).rev() {
            views.note_ready(&name, &required, candidate(score));
        }
        let mut lanes = views.lock();
        let queue = lanes.get_mut("ns/lane:").unwrap().find(1, &name).unwrap();
        assert_eq!((queue.front.len(), queue.behind), (FRONT_MOST, 100 - FRONT_MOST as u32));
        assert_eq!(queue.front.first().map(|first| first.score), Some(0));
    }

    #[test]
    fn a_look_at_what_is_known_forgets_nothing() {
        let known = queue(40);
        let name = || "ns/lane:-".into();
        let looked =
            |score| Queue::new(1, name(), Capabilities::default(), Vec::new(), (ANY, score));
        assert!(known.is_as(&looked(1000)));
        assert!(!known.is_as(&looked(999)));
    }
}
