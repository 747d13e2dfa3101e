//! Claims that found nothing and wait.
//!
//! One task per namespace waits for all of them on a connection of its own: whatever makes work
//! pushes a token to the list of its queue, and a blocked process takes one. A token wakes the
//! longest waiting claim that covers the queue; that one looks, and waits on if others were faster.
//! A turn of the wait is short, and each ends with a look, so a lost token costs one turn.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ff_core::capability::Capabilities;
use ff_core::error::EngineError;
use ff_core::id::Namespace;
use ff_core::operation::{Claim, Claimed};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::claim;
use crate::client::slot_of;
use crate::keys::{NO_CAPABILITIES, lane_name};
use crate::store::Shared;
use crate::{near, reply};

/// How long one turn of the wait lasts.
const TURN: Duration = Duration::from_secs(1);

/// How long a watch stays when nobody waits any more: busy workers come back.
const LINGER: Duration = Duration::from_secs(30);

/// Pause after the connection failed.
const REST: Duration = Duration::from_millis(200);

/// All waiting claims of this process.
#[derive(Debug)]
pub(crate) struct Waiters {
    /// Names the inbox of this process.
    process: String,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    waiters: BTreeMap<u64, Waiter>,
    next_ticket: u64,
    watches: HashMap<Namespace, Watch>,
}

/// The task that waits for a namespace.
#[derive(Debug, Default)]
struct Watch {
    /// Queues that it waits for at present.
    queues: BTreeSet<String>,
    /// Somebody waits again.
    arrival: Arc<Notify>,
}

#[derive(Debug)]
struct Waiter {
    namespace: Namespace,
    /// As [`lane_name`] writes them.
    lanes: Vec<String>,
    capabilities: Capabilities,
    signal: Arc<Signal>,
}

#[derive(Debug, Default)]
struct Signal {
    notify: Notify,
    /// The token that this waiter has been given and has not acted on.
    token: Mutex<Option<Token>>,
}

/// Something stands in a queue of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) namespace: Namespace,
    pub(crate) queue: String,
    pub(crate) partition: u16,
}

/// What became ready and was left to a caller that claims right afterwards. Whatever that one does
/// not take is told to others, also when it never gets to its claim.
pub(crate) struct Left {
    shared: Arc<Shared>,
    tokens: Vec<Token>,
}

impl Left {
    pub(crate) fn new(shared: &Arc<Shared>, tokens: Vec<Token>) -> Self {
        Self { shared: Arc::clone(shared), tokens }
    }

    /// The caller has claimed, and its view knows what is still there.
    pub(crate) fn claimed(mut self) {
        let views = &self.shared.views;
        self.tokens.retain(|token| views.may_have_work(token.partition, &token.queue));
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        self.tokens.iter().for_each(|token| hand_on(&self.shared, token));
    }
}

/// A place in line; leaves it when dropped, and hands on a token that came too late.
struct Place {
    shared: Arc<Shared>,
    ticket: u64,
    signal: Arc<Signal>,
}

impl Waiters {
    pub(crate) fn new() -> Self {
        Self { process: Uuid::now_v7().simple().to_string(), inner: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the longest waiting claim that covers a queue; false when there is none.
    fn wake(&self, shared: &Shared, token: &Token) -> bool {
        let inner = self.lock();
        let covering = inner.waiters.values().find(|waiter| {
            waiter.namespace == token.namespace
                && waiter.signal.is_idle()
                && waiter.queues(shared).contains(&token.queue)
        });
        match covering {
            Some(waiter) => {
                waiter.signal.give(Some(token.clone()));
                true
            }
            None => false,
        }
    }

    /// Lets waiting claims of a namespace look: one, or all of them.
    pub(crate) fn wake_to_look(&self, namespace: &Namespace, all: bool) {
        let inner = self.lock();
        let waiting = inner.waiters.values().filter(|waiter| waiter.namespace == *namespace);
        for waiter in waiting.take(if all { usize::MAX } else { 1 }) {
            waiter.signal.give(None);
        }
    }

    /// Lets every waiting claim look, and every watch that nobody waits for, since the store goes
    /// away.
    pub(crate) fn wake_all(&self) {
        let inner = self.lock();
        for waiter in inner.waiters.values() {
            waiter.signal.give(None);
        }
        for watch in inner.watches.values() {
            watch.arrival.notify_one();
        }
    }

    /// The queues that a namespace's waiting claims cover; its watch waits for them from now on.
    fn queues(&self, shared: &Shared, namespace: &Namespace) -> BTreeSet<String> {
        let mut inner = self.lock();
        let waiting = inner.waiters.values().filter(|waiter| waiter.namespace == *namespace);
        let queues: BTreeSet<_> = waiting.flat_map(|waiter| waiter.queues(shared)).collect();
        inner.watches.entry(namespace.clone()).or_default().queues.clone_from(&queues);
        queues
    }

    /// Ends a watch, unless somebody came at the last moment.
    fn end_watch(&self, namespace: &Namespace) -> bool {
        let mut inner = self.lock();
        let idle = !inner.waiters.values().any(|waiter| waiter.namespace == *namespace);
        if idle {
            inner.watches.remove(namespace);
        }
        idle
    }
}

impl Signal {
    fn is_idle(&self) -> bool {
        self.lock().is_none()
    }

    fn give(&self, token: Option<Token>) {
        if let Some(token) = token {
            *self.lock() = Some(token);
        }
        self.notify.notify_one();
    }

    fn take(&self) -> Option<Token> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Token>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    fn queues(&self, shared: &Shared) -> Vec<String> {
        let mut classes = shared.classes.covered_by(&self.capabilities);
        classes.push(NO_CAPABILITIES.to_owned());
        let queues =
            self.lanes.iter().map(|lane| classes.iter().map(move |c| format!("{lane}{c}")));
        queues.flatten().collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.waiters.lock().waiters.remove(&self.ticket);
        if let Some(token) = self.signal.take() {
            hand_on(&self.shared, &token);
        }
    }
}

/// Claims, and waits for work when there is none.
pub(crate) async fn claim_or_wait(
    shared: &Arc<Shared>,
    request: Claim,
    wait: Duration,
) -> Result<Claimed, EngineError> {
    request.check_wait(wait)?;
    if wait.is_zero() {
        return claim::claim(shared, &request).await;
    }
    if claim::knows_lanes(shared, &request) {
        let claimed = claim::claim_known(shared, &request).await?;
        if !claimed.is_empty() {
            return Ok(claimed);
        }
    }
    let deadline = Instant::now() + wait;
    // In line before the look: what comes afterwards leaves a token.
    let place = stand_in_line(shared, &request);
    let mut token = None;
    loop {
        let claimed = place.try_claim(&request, token.take()).await?;
        if !claimed.is_empty() || near::drains(shared, &request) {
            return Ok(claimed);
        }
        let woken = tokio::time::timeout_at(deadline.into(), place.signal.notify.notified()).await;
        if woken.is_err() || shared.is_closing() {
            return Ok(Claimed::default());
        }
        token = place.signal.take();
    }
}

impl Place {
    /// Claims where a token points to, and else wherever there is something.
    async fn try_claim(
        &self,
        request: &Claim,
        token: Option<Token>,
    ) -> Result<Claimed, EngineError> {
        let shared = &self.shared;
        let Some(token) = token else { return claim::claim(shared, request).await };
        token.note(shared);
        let mut claimed = claim::claim_known(shared, request).await?;
        if claimed.is_empty() {
            claimed = claim::claim(shared, request).await?;
        }
        // Others in line may have been left without a token for what is still there.
        if !claimed.is_empty() && shared.views.has_work(token.partition, &token.queue) {
            hand_on(shared, &token);
        }
        Ok(claimed)
    }
}

fn stand_in_line(shared: &Arc<Shared>, request: &Claim) -> Place {
    let namespace = request.namespace.clone();
    let signal = Arc::new(Signal::default());
    let waiter = Waiter {
        namespace: namespace.clone(),
        lanes: request.lanes.iter().map(|share| lane_name(&namespace, &share.lane)).collect(),
        capabilities: request.capabilities.clone(),
        signal: Arc::clone(&signal),
    };
    let queues = waiter.queues(shared);
    let mut inner = shared.waiters.lock();
    let ticket = inner.next_ticket;
    inner.next_ticket += 1;
    inner.waiters.insert(ticket, waiter);
    match inner.watches.get(&namespace) {
        None => {
            let watch = Watch::default();
            let arrival = Arc::clone(&watch.arrival);
            inner.watches.insert(namespace.clone(), watch);
            tokio::spawn(wait_for_tokens(Arc::clone(shared), namespace.clone(), arrival));
        }
        Some(watch) if watch.queues.is_empty() => watch.arrival.notify_one(),
        Some(watch) if queues.iter().all(|queue| watch.queues.contains(queue)) => {}
        Some(_) => interrupt(shared, namespace.clone()),
    }
    drop(inner);
    Place { shared: Arc::clone(shared), ticket, signal }
}

/// Lets the watch of a namespace look at its waiters again.
pub(crate) fn interrupt(shared: &Arc<Shared>, namespace: Namespace) {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let inbox = shared.keys.inbox(&namespace, &shared.waiters.process);
        let mut push = redis::cmd("LPUSH");
        push.arg(&inbox).arg("1");
        if let Err(error) = shared.client.send(slot_of(inbox.as_bytes()), &push).await {
            tracing::debug!(%error, "a watch could not be interrupted; its turn will end");
        }
    });
}

/// Gives a token to another waiting claim, here or elsewhere.
fn hand_on(shared: &Arc<Shared>, token: &Token) {
    if !shared.waiters.wake(shared, token) {
        push_token(shared, &token.namespace, &token.queue, token.partition);
    }
}

/// Pushes a token without waiting for it; the engine and the end of each turn find what is lost.
pub(crate) fn push_token(shared: &Arc<Shared>, namespace: &Namespace, queue: &str, partition: u16) {
    // Also called when something is dropped, perhaps with the runtime itself.
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let key = shared.keys.wake(namespace, queue);
    let shared = Arc::clone(shared);
    runtime.spawn(async move {
        let slot = slot_of(key.as_bytes());
        let mut push = redis::cmd("LPUSH");
        push.arg(&key).arg(partition);
        let mut trim = redis::cmd("LTRIM");
        trim.arg(&key).arg(0).arg(TOKENS_MOST - 1);
        for command in [push, trim] {
            if let Err(error) = shared.client.send(slot, &command).await {
                tracing::debug!(%error, "a wake token was lost");
            }
        }
    });
}

impl Token {
    /// Lets claims of this process know where to look.
    fn note(&self, shared: &Shared) {
        let class = self.queue.rsplit(':').next().unwrap_or_default();
        if let Some(required) = shared.classes.known(class) {
            shared.views.note_token(&self.queue, self.partition, required);
        }
    }
}

/// As in `lua/lib/wake.lua`.
const TOKENS_MOST: usize = 8;

/// Waits for tokens while somebody waits for work, and for somebody a while longer.
async fn wait_for_tokens(shared: Arc<Shared>, namespace: Namespace, arrival: Arc<Notify>) {
    let inbox = shared.keys.inbox(&namespace, &shared.waiters.process);
    let slot = slot_of(inbox.as_bytes());
    let mut connection = None;
    while !shared.is_closing() {
        let queues = shared.waiters.queues(&shared, &namespace);
        if queues.is_empty() {
            let arrived = tokio::time::timeout(LINGER, arrival.notified()).await;
            if arrived.is_err() && shared.waiters.end_watch(&namespace) {
                return;
            }
            continue;
        }
        if connection.is_none() {
            connection = shared.client.dedicated(slot).await.ok();
        }
        let token = match &mut connection {
            Some(dedicated) => {
                let mut pop = redis::cmd("BRPOP");
                for queue in &queues {
                    pop.arg(shared.keys.wake(&namespace, queue));
                }
                pop.arg(&inbox).arg(TURN.as_secs());
                dedicated.query(&pop, TURN + shared.options.call_timeout).await
            }
            None => Err(EngineError::unavailable("no connection to wait on")),
        };
        match token {
            Ok(redis::Value::Nil) => shared.waiters.wake_to_look(&namespace, false),
            Ok(popped) => taken(&shared, &namespace, popped),
            Err(error) => {
                tracing::debug!(%error, "the wait for work broke off");
                connection = None;
                tokio::time::sleep(REST).await;
                shared.waiters.wake_to_look(&namespace, true);
            }
        }
    }
    shared.waiters.lock().watches.remove(&namespace);
}

/// A token was taken: it goes to the claim that has waited longest for its queue.
fn taken(shared: &Arc<Shared>, namespace: &Namespace, popped: redis::Value) {
    let read = || {
        let mut items = reply::array(popped)?.into_iter();
        let key = reply::text(reply::next(&mut items)?)?;
        Ok::<_, EngineError>((key, reply::next(&mut items)?))
    };
    let Ok((key, partition)) = read() else { return };
    let family = shared.keys.wake(namespace, "");
    let queue = key.strip_prefix(&family).filter(|queue| !queue.starts_with("i:"));
    if let (Some(queue), Ok(partition)) = (queue, reply::partition(&partition)) {
        let (namespace, queue) = (namespace.clone(), queue.to_owned());
        hand_on(shared, &Token { namespace, queue, partition });
    }
}
