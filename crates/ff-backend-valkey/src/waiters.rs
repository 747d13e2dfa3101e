//! Who waits for work in this process, and who of them is woken.
//!
//! Claims with the same lanes and capabilities can run the same work, so they are kept together: what
//! covers a queue is asked of each kind of claim, and not of each claim.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ff_core::capability::Capabilities;
use ff_core::id::Namespace;
use ff_core::operation::{Claim, LaneShare};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::classes::Classes;
use crate::keys::{NO_CAPABILITIES, lane_name, split_queue};
use crate::token::Token;

/// All waiting claims of this process.
#[derive(Debug)]
pub(crate) struct Waiters {
    /// Names the inbox of this process.
    pub(crate) process: String,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next_ticket: u64,
    /// Those of a namespace are there as long as a task waits for it.
    lines: HashMap<Namespace, Line>,
}

/// Those who wait in a namespace.
#[derive(Debug, Default)]
struct Line {
    /// None of them is empty.
    kinds: HashMap<Arc<Kind>, Peers>,
    /// Queues that the namespace's task waits for at present.
    queues: BTreeSet<String>,
    /// Somebody waits again.
    arrival: Arc<Notify>,
}

/// What a claim can run.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    /// As [`lane_name`] writes them.
    lanes: BTreeSet<String>,
    capabilities: Capabilities,
}

/// Claims of one kind, by their tickets: the longest waiting first.
#[derive(Debug, Default)]
struct Peers {
    waiting: BTreeMap<u64, Waiter>,
    /// Those of them that nobody has woken.
    asleep: BTreeSet<u64>,
}

#[derive(Debug, Default)]
struct Waiter {
    notify: Arc<Notify>,
    /// It was woken and has not noticed it: to look, and where tokens point to.
    woken: Option<Vec<Token>>,
}

/// A place in line.
#[derive(Debug)]
pub(crate) struct Ticket {
    namespace: Namespace,
    kind: Arc<Kind>,
    number: u64,
    notify: Arc<Notify>,
}

/// What somebody who joins a line has to see to.
pub(crate) enum Joined {
    /// Nobody waits for tokens in this namespace: when told, somebody is there.
    First(Arc<Notify>),
    /// Whoever waits for tokens does not wait for all that the newcomer covers.
    Unheard,
    Heard,
}

impl Kind {
    fn of(claim: &Claim) -> Self {
        let lane = |share: &LaneShare| lane_name(&claim.namespace, &share.lane);
        let lanes = claim.lanes.iter().map(lane).collect();
        Self { lanes, capabilities: claim.capabilities.clone() }
    }

    /// The queues that it covers, as far as their classes are known.
    fn queues(&self, classes: &Classes) -> impl Iterator<Item = String> {
        let mut covered = classes.covered_by(&self.capabilities);
        covered.push(NO_CAPABILITIES.to_owned());
        self.lanes.iter().flat_map(move |lane| {
            covered.iter().map(|class| format!("{lane}{class}")).collect::<Vec<_>>()
        })
    }

    fn covers(&self, lane: &str, required: &Capabilities) -> bool {
        self.lanes.contains(lane) && self.capabilities.covers(required)
    }
}

impl Peers {
    fn wake(&mut self, ticket: u64, token: Option<Token>) {
        self.asleep.remove(&ticket);
        if let Some(waiter) = self.waiting.get_mut(&ticket) {
            let tokens = waiter.woken.get_or_insert_default();
            tokens.extend(token.filter(|token| !tokens.contains(token)));
            waiter.notify.notify_one();
        }
    }
}

impl Line {
    /// Those that cover a queue.
    fn covering(&mut self, queue: &str, required: &Capabilities) -> Vec<&mut Peers> {
        let (lane, _) = split_queue(queue);
        let kinds = self.kinds.iter_mut().filter(|(kind, _)| kind.covers(lane, required));
        kinds.map(|(_, peers)| peers).collect()
    }
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self { process: Uuid::now_v7().simple().to_string(), inner: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new place at the end of the line, awake.
    pub(crate) fn join(&self, classes: &Classes, claim: &Claim) -> (Ticket, Joined) {
        let (namespace, mut kind) = (claim.namespace.clone(), Arc::new(Kind::of(claim)));
        let mut inner = self.lock();
        let number = inner.next_ticket;
        inner.next_ticket += 1;
        let is_first = !inner.lines.contains_key(&namespace);
        let line = inner.lines.entry(namespace.clone()).or_default();
        let joined = match line.kinds.get_key_value(&kind) {
            Some((known, _)) => {
                kind = Arc::clone(known);
                Joined::Heard
            }
            None if is_first => Joined::First(Arc::clone(&line.arrival)),
            None if line.queues.is_empty() => {
                line.arrival.notify_one();
                Joined::Heard
            }
            None if kind.queues(classes).all(|queue| line.queues.contains(&queue)) => Joined::Heard,
            None => Joined::Unheard,
        };
        let waiter = Waiter::default();
        let notify = Arc::clone(&waiter.notify);
        line.kinds.entry(Arc::clone(&kind)).or_default().waiting.insert(number, waiter);
        (Ticket { namespace, kind, number, notify }, joined)
    }

    /// Gives a place up, with the tokens that came too late for it.
    pub(crate) fn leave(&self, ticket: &Ticket) -> Vec<Token> {
        let mut inner = self.lock();
        let Some(line) = inner.lines.get_mut(&ticket.namespace) else { return Vec::new() };
        let Some(peers) = line.kinds.get_mut(&ticket.kind) else { return Vec::new() };
        peers.asleep.remove(&ticket.number);
        let left = peers.waiting.remove(&ticket.number);
        if peers.waiting.is_empty() {
            line.kinds.remove(&ticket.kind);
        }
        left.and_then(|waiter| waiter.woken).unwrap_or_default()
    }

    /// What somebody was woken for; none: he sleeps from now on.
    fn take_up(&self, ticket: &Ticket) -> Option<Vec<Token>> {
        let mut inner = self.lock();
        let peers = inner.lines.get_mut(&ticket.namespace)?.kinds.get_mut(&ticket.kind)?;
        let woken = peers.waiting.get_mut(&ticket.number)?.woken.take();
        if woken.is_none() {
            peers.asleep.insert(ticket.number);
        }
        woken
    }

    /// Sleeps until somebody wakes it, with tokens or without.
    pub(crate) async fn sleep(&self, ticket: &Ticket) -> Vec<Token> {
        loop {
            if let Some(tokens) = self.take_up(ticket) {
                return tokens;
            }
            ticket.notify.notified().await;
        }
    }

    /// Gives a token to the longest sleeping claim that covers its queue; when all are awake, to one
    /// of them, since it may have looked already. False when there is none.
    pub(crate) fn wake(&self, classes: &Classes, token: &Token) -> bool {
        self.wake_one(classes, token, true)
    }

    /// The same, but nobody who is awake: whoever finds something there hands on in turn.
    pub(crate) fn wake_sleeping(&self, classes: &Classes, token: &Token) -> bool {
        self.wake_one(classes, token, false)
    }

    fn wake_one(&self, classes: &Classes, token: &Token, or_awake: bool) -> bool {
        let (_, class) = split_queue(&token.queue);
        let Some(required) = classes.known(class) else { return false };
        let mut inner = self.lock();
        let Some(line) = inner.lines.get_mut(&token.namespace) else { return false };
        let covering = line.covering(&token.queue, &required);
        let sleeping = |peers: &Peers| peers.asleep.first().map(|ticket| (0, *ticket));
        let awake = |peers: &Peers| peers.waiting.keys().next().map(|ticket| (1, *ticket));
        let first = |peers: &Peers| sleeping(peers).or_else(|| awake(peers).filter(|_| or_awake));
        let found = covering.into_iter().filter_map(|peers| Some((first(peers)?, peers)));
        let Some(((_, ticket), peers)) = found.min_by_key(|(order, _)| *order) else {
            return false;
        };
        peers.wake(ticket, Some(token.clone()));
        true
    }

    /// Lets one claim of each kind look that sleeps in a namespace.
    pub(crate) fn wake_each_kind(&self, namespace: &Namespace) {
        let mut inner = self.lock();
        let Some(line) = inner.lines.get_mut(namespace) else { return };
        for peers in line.kinds.values_mut() {
            if let Some(ticket) = peers.asleep.first().copied() {
                peers.wake(ticket, None);
            }
        }
    }

    /// Lets every waiting claim of a namespace look.
    pub(crate) fn wake_all_in(&self, namespace: &Namespace) {
        if let Some(line) = self.lock().lines.get_mut(namespace) {
            line.wake_all();
        }
    }

    /// Lets every waiting claim look, and every task that nobody waits for, since the store goes
    /// away.
    pub(crate) fn wake_all(&self) {
        for line in self.lock().lines.values_mut() {
            line.wake_all();
            line.arrival.notify_one();
        }
    }

    /// The queues that a namespace's waiting claims cover; its task waits for them from now on.
    pub(crate) fn queues(&self, classes: &Classes, namespace: &Namespace) -> BTreeSet<String> {
        let mut inner = self.lock();
        let Some(line) = inner.lines.get_mut(namespace) else { return BTreeSet::new() };
        line.queues = line.kinds.keys().flat_map(|kind| kind.queues(classes)).collect();
        line.queues.clone()
    }

    /// Ends the wait for a namespace, unless somebody came at the last moment.
    pub(crate) fn end(&self, namespace: &Namespace) -> bool {
        let mut inner = self.lock();
        let idle = inner.lines.get(namespace).is_none_or(|line| line.kinds.is_empty());
        if idle {
            inner.lines.remove(namespace);
        }
        idle
    }
}

impl Line {
    fn wake_all(&mut self) {
        for peers in self.kinds.values_mut() {
            let tickets: Vec<u64> = peers.waiting.keys().copied().collect();
            tickets.into_iter().for_each(|ticket| peers.wake(ticket, None));
        }
    }
}

#[cfg(test)]
mod tests {
    use ff_core::id::{LaneId, WorkerId, WorkerInstanceId};
    use ff_core::operation::LaneOrder;

    use super::*;

    fn claim(lane: &str, tokens: &[&str]) -> Claim {
        Claim {
            namespace: Namespace::default(),
            worker_id: WorkerId::new("w").unwrap(),
            worker_instance_id: WorkerInstanceId::new("w-1").unwrap(),
            lanes: vec![LaneShare::new(LaneId::new(lane).unwrap())],
            order: LaneOrder::default(),
            capabilities: Capabilities::new(tokens).unwrap(),
            max: 1,
            lease_ttl_ms: 1000,
            seed: Uuid::nil(),
            sets_aside: false,
        }
    }

    fn token(lane: &str) -> Token {
        let queue = format!("default/{lane}:-");
        Token { namespace: Namespace::default(), queue, partition: 3 }
    }

    /// Waiters for lanes, all asleep.
    fn asleep(lanes: &[&str]) -> (Waiters, Classes, Vec<Ticket>) {
        let (waiters, classes) = (Waiters::new(), Classes::new());
        let tickets: Vec<_> =
            lanes.iter().map(|lane| waiters.join(&classes, &claim(lane, &[])).0).collect();
        tickets.iter().for_each(|ticket| assert_eq!(waiters.take_up(ticket), None));
        (waiters, classes, tickets)
    }

    #[test]
    fn tokens_wake_those_who_cover_them_in_their_order() {
        let (waiters, classes, tickets) = asleep(&["a", "b", "b"]);
        assert!(waiters.wake(&classes, &token("b")));
        assert!(waiters.wake(&classes, &token("b")));
        let woken: Vec<_> = tickets.iter().map(|ticket| waiters.take_up(ticket)).collect();
        assert_eq!(woken, [None, Some(vec![token("b")]), Some(vec![token("b")])]);
        assert!(!waiters.wake(&classes, &token("c")));
    }

    #[test]
    fn who_is_awake_gets_a_token_only_when_nobody_sleeps() {
        let (waiters, classes, tickets) = asleep(&["a", "a"]);
        for _ in 0..2 {
            assert!(waiters.wake_sleeping(&classes, &token("a")));
        }
        tickets.iter().for_each(|ticket| assert!(waiters.take_up(ticket).is_some()));
        assert!(!waiters.wake_sleeping(&classes, &token("a")));
        assert!(waiters.wake(&classes, &token("a")));
        assert_eq!(waiters.leave(&tickets[0]), [token("a")], "it came too late for this one");
    }

    #[test]
    fn one_of_each_kind_looks() {
        let (waiters, _, tickets) = asleep(&["a", "b", "a", "b"]);
        waiters.wake_each_kind(&Namespace::default());
        let woken: Vec<_> =
            tickets.iter().map(|ticket| waiters.take_up(ticket).is_some()).collect();
        assert_eq!(woken, [true, true, false, false]);
    }

    #[test]
    fn a_line_ends_when_nobody_waits() {
        let (waiters, classes, tickets) = asleep(&["a"]);
        let namespace = Namespace::default();
        assert!(!waiters.end(&namespace));
        let queues = waiters.queues(&classes, &namespace);
        assert_eq!(queues.into_iter().collect::<Vec<_>>(), ["default/a:-"]);
        waiters.leave(&tickets[0]);
        assert!(waiters.end(&namespace));
    }
}
