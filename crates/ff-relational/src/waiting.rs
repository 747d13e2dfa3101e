//! Claims that found nothing and wait, first come, first served.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Instant;

use ff_core::capability::Capabilities;
use ff_core::id::{LaneId, Namespace, WorkerInstanceId};
use ff_core::operation::Claim;

/// A claim that waits, with whatever its store needs to answer it.
#[derive(Debug)]
pub struct Waiter<T> {
    pub claim: Claim,
    pub until: Instant,
    pub answer: T,
    /// Keeps its place when it is woken for work that another took.
    ticket: Option<u64>,
}

/// All waiting claims of a process.
#[derive(Debug)]
pub struct Waiting<T> {
    waiters: BTreeMap<u64, Waiter<T>>,
    lanes: HashMap<(Namespace, LaneId), BTreeSet<u64>>,
    deadlines: BTreeSet<(Instant, u64)>,
    next_ticket: u64,
}

impl<T> Waiter<T> {
    pub fn new(claim: Claim, until: Instant, answer: T) -> Self {
        Self { claim, until, answer, ticket: None }
    }
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self {
            waiters: BTreeMap::new(),
            lanes: HashMap::new(),
            deadlines: BTreeSet::new(),
            next_ticket: 0,
        }
    }
}

impl<T> Waiting<T> {
    /// Puts a claim in line.
    pub fn park(&mut self, mut waiter: Waiter<T>) {
        let ticket = waiter.ticket.unwrap_or(self.next_ticket);
        self.next_ticket = self.next_ticket.max(ticket + 1);
        waiter.ticket = Some(ticket);
        for share in &waiter.claim.lanes {
            let lane = (waiter.claim.namespace.clone(), share.lane.clone());
            self.lanes.entry(lane).or_default().insert(ticket);
        }
        self.deadlines.insert((waiter.until, ticket));
        self.waiters.insert(ticket, waiter);
    }

    /// Takes the longest waiting claim that can run work of this lane and class.
    pub fn wake(
        &mut self,
        namespace: &Namespace,
        lane: &LaneId,
        class: &Capabilities,
    ) -> Option<Waiter<T>> {
        let line = self.lanes.get(&(namespace.clone(), lane.clone()))?;
        let able = |ticket: &&u64| {
            self.waiters.get(ticket).is_some_and(|w| w.claim.capabilities.covers(class))
        };
        let ticket = *line.iter().find(able)?;
        self.remove(ticket)
    }

    /// Takes a claim of this worker instance.
    pub fn of_instance(
        &mut self,
        namespace: &Namespace,
        instance: &WorkerInstanceId,
    ) -> Option<Waiter<T>> {
        let of_it = |waiter: &Waiter<T>| {
            waiter.claim.worker_instance_id == *instance && waiter.claim.namespace == *namespace
        };
        let (ticket, _) = self.waiters.iter().find(|(_, waiter)| of_it(waiter))?;
        self.remove(*ticket)
    }

    /// Takes a claim whose time is over.
    pub fn expired(&mut self, now: Instant) -> Option<Waiter<T>> {
        let &(until, ticket) = self.deadlines.first()?;
        if until <= now { self.remove(ticket) } else { None }
    }

    /// When the next claim's time is over.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(until, _)| *until)
    }

    /// Takes any claim; for the end.
    pub fn pop(&mut self) -> Option<Waiter<T>> {
        let ticket = *self.waiters.keys().next()?;
        self.remove(ticket)
    }

    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    fn remove(&mut self, ticket: u64) -> Option<Waiter<T>> {
        let waiter = self.waiters.remove(&ticket)?;
        self.deadlines.remove(&(waiter.until, ticket));
        for share in &waiter.claim.lanes {
            let lane = (waiter.claim.namespace.clone(), share.lane.clone());
            if let Some(line) = self.lanes.get_mut(&lane) {
                line.remove(&ticket);
                if line.is_empty() {
                    self.lanes.remove(&lane);
                }
            }
        }
        Some(waiter)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ff_core::id::WorkerId;
    use ff_core::operation::{LaneOrder, LaneShare};

    use super::*;

    fn waiter(name: &'static str, lane: &str, capabilities: &[&str]) -> Waiter<&'static str> {
        let claim = Claim {
            namespace: Namespace::default(),
            worker_id: WorkerId::new("w").unwrap(),
            worker_instance_id: WorkerInstanceId::new(name).unwrap(),
            lanes: vec![LaneShare::new(LaneId::new(lane).unwrap())],
            order: LaneOrder::Weighted,
            capabilities: Capabilities::new(capabilities).unwrap(),
            max: 1,
            lease_ttl_ms: 30_000,
            seed: Default::default(),
            sets_aside: false,
        };
        Waiter::new(claim, Instant::now() + Duration::from_secs(60), name)
    }

    fn wake(
        waiting: &mut Waiting<&'static str>,
        lane: &str,
        class: &[&str],
    ) -> Option<Waiter<&'static str>> {
        let lane = LaneId::new(lane).unwrap();
        waiting.wake(&Namespace::default(), &lane, &Capabilities::new(class).unwrap())
    }

    #[test]
    fn the_longest_waiting_able_claim_is_woken() {
        let mut waiting = Waiting::default();
        waiting.park(waiter("plain", "a", &[]));
        waiting.park(waiter("gpu", "a", &["gpu"]));
        waiting.park(waiter("other", "b", &["gpu"]));
        assert_eq!(wake(&mut waiting, "a", &["gpu"]).map(|w| w.answer), Some("gpu"));
        assert_eq!(wake(&mut waiting, "a", &["gpu"]).map(|w| w.answer), None);
        assert_eq!(wake(&mut waiting, "a", &[]).map(|w| w.answer), Some("plain"));
        assert_eq!(waiting.len(), 1);
    }

    #[test]
    fn a_claim_woken_in_vain_keeps_its_place() {
        let mut waiting = Waiting::default();
        waiting.park(waiter("first", "a", &[]));
        waiting.park(waiter("second", "a", &[]));
        let first = wake(&mut waiting, "a", &[]).unwrap();
        waiting.park(first);
        assert_eq!(wake(&mut waiting, "a", &[]).map(|w| w.answer), Some("first"));
    }

    #[test]
    fn time_ends_a_wait() {
        let mut waiting = Waiting::default();
        waiting.park(waiter("w", "a", &[]));
        let until = waiting.next_deadline().unwrap();
        assert!(waiting.expired(until - Duration::from_millis(1)).is_none());
        assert_eq!(waiting.expired(until).map(|w| w.answer), Some("w"));
        assert!(waiting.is_empty() && waiting.next_deadline().is_none());
    }
}
