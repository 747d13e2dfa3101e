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
use crate::watches::Watches;

/// Lists that one command waits for. What is beyond that is found by the look of each second.
const LISTS_MOST: usize = 4096;

/// All waiting claims of this process.
#[derive(Debug)]
pub(crate) struct Waiters {
    /// Names the inbox of this process.
    pub(crate) process: String,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    next_ticket: u64,
    /// Those of namespaces in which somebody waits.
    lines: HashMap<Namespace, Line>,
    watches: Watches,
}

/// Those who wait in a namespace.
#[derive(Debug)]
struct Line {
    /// None of them is empty.
    kinds: HashMap<Arc<Kind>, Peers>,
    /// Who waits for tokens of the namespace.
    watch: usize,
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
    /// Nobody waits for tokens of this namespace yet: the number of the watch that is to begin, which is told
    /// when somebody is there again.
    First(usize, Arc<Notify>),
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
    /// `apart`: a command may wait for lists of one namespace only.
    pub(crate) fn new(apart: bool) -> Self {
        let inner = Inner { next_ticket: 0, lines: HashMap::new(), watches: Watches::new(apart) };
        Self { process: Uuid::now_v7().simple().to_string(), inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new place at the end of the line, awake.
    pub(crate) fn join(&self, classes: &Classes, claim: &Claim) -> (Ticket, Joined) {
        let (namespace, mut kind) = (claim.namespace.clone(), Arc::new(Kind::of(claim)));
        let mut guard = self.lock();
        let inner = &mut *guard;
        let number = inner.next_ticket;
        inner.next_ticket += 1;
        let mut begins = false;
        let line = inner.lines.entry(namespace.clone()).or_insert_with(|| {
            let (watch, is_new) = inner.watches.add(&namespace);
            begins = is_new;
            Line { kinds: HashMap::new(), watch }
        });
        let joined = match (line.kinds.get_key_value(&kind), inner.watches.get(line.watch)) {
            (Some((known, _)), _) => {
                kind = Arc::clone(known);
                Joined::Heard
            }
            (None, None) => Joined::Heard,
            (None, Some(watch)) if begins => Joined::First(line.watch, Arc::clone(&watch.arrival)),
            (None, Some(watch)) if watch.queues.is_empty() => {
                watch.arrival.notify_one();
                Joined::Heard
            }
            (None, Some(watch)) if kind.queues(classes).all(|it| watch.queues.contains(&it)) => {
                Joined::Heard
            }
            (None, Some(_)) => Joined::Unheard,
        };
        let waiter = Waiter::default();
        let notify = Arc::clone(&waiter.notify);
        line.kinds.entry(Arc::clone(&kind)).or_default().waiting.insert(number, waiter);
        (Ticket { namespace, kind, number, notify }, joined)
    }

    /// Gives a place up, with the tokens that came too late for it.
    pub(crate) fn leave(&self, ticket: &Ticket) -> Vec<Token> {
        let mut guard = self.lock();
        let inner = &mut *guard;
        let Some(line) = inner.lines.get_mut(&ticket.namespace) else { return Vec::new() };
        let Some(peers) = line.kinds.get_mut(&ticket.kind) else { return Vec::new() };
        peers.asleep.remove(&ticket.number);
        let left = peers.waiting.remove(&ticket.number);
        if peers.waiting.is_empty() {
            line.kinds.remove(&ticket.kind);
        }
        if line.kinds.is_empty() {
            inner.watches.remove(line.watch, &ticket.namespace);
            inner.lines.remove(&ticket.namespace);
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

    /// Lets one claim of each kind look that sleeps in a namespace of a watch.
    pub(crate) fn wake_each_kind(&self, watch: usize) {
        let mut inner = self.lock();
        let lines = inner.lines.values_mut().filter(|line| line.watch == watch);
        for peers in lines.flat_map(|line| line.kinds.values_mut()) {
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

    /// Lets every waiting claim look that a watch waits for.
    pub(crate) fn wake_all_of(&self, watch: usize) {
        let mut inner = self.lock();
        inner.lines.values_mut().filter(|line| line.watch == watch).for_each(Line::wake_all);
    }

    /// Lets every waiting claim look, and every watch that nobody waits in, since the store goes
    /// away.
    pub(crate) fn wake_all(&self) {
        let mut inner = self.lock();
        inner.lines.values_mut().for_each(Line::wake_all);
        inner.watches.iter().for_each(|watch| watch.arrival.notify_one());
    }

    /// The queues that the waiting claims of a watch cover, as many as a command waits for: it does so from
    /// now on. None: nobody waits.
    pub(crate) fn queues(
        &self,
        classes: &Classes,
        number: usize,
    ) -> Option<Vec<(Namespace, String)>> {
        let mut guard = self.lock();
        let Inner { lines, watches, .. } = &mut *guard;
        let watch = watches.get_mut(number)?;
        watch.queues.clear();
        if watch.namespaces.is_empty() {
            return None;
        }
        let mut queues = BTreeMap::new();
        let heard = watch.namespaces.iter().filter(|_| !Watches::is_deaf(number));
        for namespace in heard {
            let kinds = lines.get(namespace).into_iter().flat_map(|line| line.kinds.keys());
            let covered = kinds.flat_map(|kind| kind.queues(classes));
            queues.extend(covered.map(|queue| (queue, namespace.clone())));
        }
        let queues: Vec<_> = queues.into_iter().take(LISTS_MOST).collect();
        watch.queues = queues.iter().map(|(queue, _)| queue.clone()).collect();
        Some(queues.into_iter().map(|(queue, namespace)| (namespace, queue)).collect())
    }

    /// The namespace that names the inbox of a watch.
    pub(crate) fn inbox(&self, number: usize) -> Option<Namespace> {
        self.lock().watches.get(number).map(|watch| watch.begun_for.clone())
    }

    /// The same of the watch of a namespace, if that waits for tokens, and does not look at its claims
    /// meanwhile.
    pub(crate) fn inbox_of(&self, namespace: &Namespace) -> Option<Namespace> {
        let inner = self.lock();
        let watch = inner.watches.get(inner.lines.get(namespace)?.watch)?;
        (!watch.queues.is_empty()).then(|| watch.begun_for.clone())
    }

    /// Ends a watch, unless somebody came at the last moment.
    pub(crate) fn end(&self, number: usize) -> bool {
        self.lock().watches.end(number)
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
        let (waiters, classes) = (Waiters::new(false), Classes::new());
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
        waiters.wake_each_kind(0);
        let woken: Vec<_> =
            tickets.iter().map(|ticket| waiters.take_up(ticket).is_some()).collect();
        assert_eq!(woken, [true, true, false, false]);
    }

    #[test]
    fn a_watch_ends_when_nobody_waits() {
        let (waiters, classes, tickets) = asleep(&["a"]);
        let namespace = Namespace::default();
        assert!(!waiters.end(0));
        assert_eq!(waiters.inbox_of(&namespace), None, "it does not wait yet");
        let queues = waiters.queues(&classes, 0);
        assert_eq!(queues, Some(vec![(namespace.clone(), "default/a:-".to_owned())]));
        assert_eq!(waiters.inbox_of(&namespace), Some(namespace.clone()));
        waiters.leave(&tickets[0]);
        assert_eq!(waiters.inbox_of(&namespace), None);
        assert_eq!(waiters.queues(&classes, 0), None);
        assert!(waiters.end(0));
    }

    #[test]
    fn one_watch_waits_for_all_namespaces() {
        let (waiters, classes) = (Waiters::new(false), Classes::new());
        let other = Namespace::new("other").unwrap();
        let elsewhere = Claim { namespace: other.clone(), ..claim("a", &[]) };
        let (_first, joined) = waiters.join(&classes, &claim("a", &[]));
        assert!(matches!(joined, Joined::First(0, _)));
        waiters.queues(&classes, 0);
        let (_second, joined) = waiters.join(&classes, &elsewhere);
        assert!(matches!(joined, Joined::Unheard));
        let queues = waiters.queues(&classes, 0).unwrap_or_default();
        let namespaces: Vec<_> = queues.into_iter().map(|(namespace, _)| namespace).collect();
        assert_eq!(namespaces, [Namespace::default(), other.clone()]);
        assert_eq!(waiters.inbox_of(&other), Some(Namespace::default()));
    }
}
