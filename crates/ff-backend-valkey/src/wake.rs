//! Claims that found nothing and wait.
//!
//! A task waits for all of them on a connection of its own, in a cluster one for each namespace
//! (`watches.rs`): whatever makes work
//! pushes a token to the list of its queue, and a blocked process takes one. A token wakes the
//! longest waiting claim that covers the queue; that one looks, and waits on if others were faster.
//! Whoever finds something wakes the next as long as more may be there, so a burst needs no token for
//! each execution. About once a second one claim of each kind looks, so a lost token costs no more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_core::error::EngineError;
use ff_core::id::Namespace;
use ff_core::operation::{Claim, Claimed};
use tokio::sync::Notify;

use crate::claim;
use crate::client::{Dedicated, slot_of};
use crate::store::Shared;
use crate::token::InHand;
use crate::view::Sight;
use crate::waiters::{Joined, Ticket};
use crate::{near, reply, token};

pub(crate) use crate::token::{Left, Token};

/// How often one claim of each kind looks.
const TURN: Duration = Duration::from_secs(1);

/// How long a watch stays when nobody waits any more: busy workers come back.
const LINGER: Duration = Duration::from_secs(30);

/// Pause after the connection failed.
const REST: Duration = Duration::from_millis(200);

/// The least that a server is asked to wait: none at all would be for ever.
const SHORTEST_MS: u128 = 1;

/// A place in line; leaves it when dropped, and hands on tokens that came too late.
struct Place {
    shared: Arc<Shared>,
    ticket: Ticket,
}

impl Drop for Place {
    fn drop(&mut self) {
        let tokens = self.shared.waiters.leave(&self.ticket);
        tokens.iter().for_each(|token| token.hand_on(&self.shared));
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
        let (claimed, sight) = claim::claim(shared, &request).await?;
        return if claimed.is_empty() { claim::seen(sight).map(|()| claimed) } else { Ok(claimed) };
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
    let mut tokens = Vec::new();
    loop {
        let in_hand = InHand::new(shared, tokens);
        let (claimed, seen) = try_claim(shared, &request, &in_hand).await?;
        if !claimed.is_empty() {
            drop(place);
            wake_next(shared, &request, in_hand);
            return Ok(claimed);
        }
        // It gets nothing whatever there is: its tokens are for others.
        if near::drains(shared, &request) {
            return Ok(claimed);
        }
        in_hand.spend();
        let woken = shared.waiters.sleep(&place.ticket);
        match tokio::time::timeout_at(deadline.into(), woken).await {
            Ok(_) if shared.is_closing() => return Ok(Claimed::default()),
            Ok(woken) => tokens = woken,
            Err(_) => return seen.map(|()| Claimed::default()),
        }
    }
}

/// What a claim got, and whether nothing means that there is nothing.
type Tried = (Claimed, Result<(), EngineError>);

/// Claims where tokens point to, and else wherever there is something. Where a node of a cluster does not
/// answer, others may have something soon: whoever waits goes on waiting.
async fn try_claim(
    shared: &Arc<Shared>,
    request: &Claim,
    in_hand: &InHand<'_>,
) -> Result<Tried, EngineError> {
    match claim_pointed(shared, request, in_hand).await {
        Ok((claimed, sight)) => Ok((claimed, claim::seen(sight))),
        Err(error @ EngineError::Transport { .. }) if shared.client.is_cluster() => {
            Ok((Claimed::default(), Err(error)))
        }
        Err(error) => Err(error),
    }
}

async fn claim_pointed(
    shared: &Arc<Shared>,
    request: &Claim,
    in_hand: &InHand<'_>,
) -> Result<(Claimed, Sight), EngineError> {
    if in_hand.point() {
        let claimed = claim::claim_known(shared, request).await?;
        if !claimed.is_empty() {
            return Ok((claimed, Sight::Whole));
        }
    }
    claim::claim(shared, request).await
}

/// A claim that waited has found something: the next in line comes for what may still be there. It
/// ends with the first that looks and finds nothing.
fn wake_next(shared: &Shared, request: &Claim, in_hand: InHand<'_>) {
    if in_hand.pass_on() {
        return;
    }
    for (partition, queue) in shared.views.more(&claim::lanes_of(request), &request.capabilities) {
        let (namespace, queue) = (request.namespace.clone(), queue.to_string());
        let token = Token { namespace, queue, partition };
        if shared.waiters.wake_sleeping(&shared.classes, &token) {
            return;
        }
    }
}

fn stand_in_line(shared: &Arc<Shared>, request: &Claim) -> Place {
    let (ticket, joined) = shared.waiters.join(&shared.classes, request);
    match joined {
        Joined::First(watch, arrival) => {
            tokio::spawn(keep_watch(Arc::clone(shared), watch, arrival));
        }
        Joined::Unheard => interrupt(shared, &request.namespace),
        Joined::Heard => {}
    }
    Place { shared: Arc::clone(shared), ticket }
}

/// Lets the watch of a namespace look at its waiters again, if it waits for tokens.
pub(crate) fn interrupt(shared: &Arc<Shared>, namespace: &Namespace) {
    let Some(named_by) = shared.waiters.inbox_of(namespace) else { return };
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let inbox = shared.keys.inbox(&named_by, &shared.waiters.process);
        let mut push = redis::cmd("LPUSH");
        push.arg(&inbox).arg("1");
        for command in [push, token::expiry(&inbox)] {
            if let Err(error) = shared.send_lightly(slot_of(inbox.as_bytes()), &command).await {
                tracing::debug!(%error, "a watch could not be interrupted; its turn will end");
            }
        }
    });
}

/// Waits for tokens while somebody waits for work, and for somebody a while longer.
async fn keep_watch(shared: Arc<Shared>, number: usize, arrival: Arc<Notify>) {
    let Some(named_by) = shared.waiters.inbox(number) else { return };
    let inbox = shared.keys.inbox(&named_by, &shared.waiters.process);
    let mut watch = Watch { shared: &shared, inbox, connection: None, waits: 0 };
    let mut turn_ends = Instant::now() + TURN;
    while !shared.is_closing() {
        let Some(queues) = shared.waiters.queues(&shared.classes, number) else {
            let arrived = tokio::time::timeout(LINGER, arrival.notified()).await;
            if arrived.is_err() && shared.waiters.end(number) {
                return;
            }
            turn_ends = Instant::now() + TURN;
            continue;
        };
        if queues.is_empty() {
            // It has no connection.
            tokio::time::sleep_until(turn_ends.into()).await;
        } else if let Err(error) = watch.take(queues, turn_ends).await {
            tracing::debug!(%error, "the wait for work broke off");
            watch.connection = None;
            tokio::time::sleep(REST).await;
            shared.waiters.wake_all_of(number);
        }
        // Tokens may come without end, so it is the time that counts, and not that none came.
        if Instant::now() >= turn_ends {
            shared.waiters.wake_each_kind(number);
            turn_ends = Instant::now() + TURN;
        }
    }
    shared.waiters.end(number);
}

/// What a task waits on.
struct Watch<'a> {
    shared: &'a Arc<Shared>,
    inbox: String,
    connection: Option<Dedicated>,
    /// How often it has waited.
    waits: usize,
}

impl Watch<'_> {
    /// Takes one token of these queues, if one comes until the turn ends, and hands it on.
    async fn take(
        &mut self,
        mut queues: Vec<(Namespace, String)>,
        until: Instant,
    ) -> Result<(), EngineError> {
        let (shared, slot) = (self.shared, slot_of(self.inbox.as_bytes()));
        // The server takes from the first list that has something: each is the first in turn.
        let first = self.waits % queues.len().max(1);
        queues.rotate_left(first);
        self.waits = self.waits.wrapping_add(1);
        let lists = queues.iter().map(|(namespace, queue)| shared.keys.wake(namespace, queue));
        let lists: Vec<_> = std::iter::once(self.inbox.clone()).chain(lists).collect();
        if self.connection.is_none() {
            self.connection = Some(shared.client.dedicated(slot).await?);
        }
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let left = until.saturating_duration_since(Instant::now());
        let (pop, patience) = (pop(&lists, left), left + shared.options.call_timeout);
        let popped = connection.query(&pop, patience).await?;
        if popped == redis::Value::Nil {
            return Ok(());
        }
        let mut items = reply::array(popped)?.into_iter();
        let (list, partition) = (reply::text(reply::next(&mut items)?)?, reply::next(&mut items)?);
        let place = lists.iter().skip(1).position(|other| *other == list);
        if let Some((namespace, queue)) = place.and_then(|place| queues.get(place))
            && let Ok(token) = Token::read(namespace, queue, &partition)
        {
            token.hand_on(shared);
        }
        Ok(())
    }
}

/// Takes the oldest of one of these lists, and waits so long for it.
fn pop(lists: &[String], wait: Duration) -> redis::Cmd {
    let ms = wait.as_millis().max(SHORTEST_MS);
    let mut pop = redis::cmd("BRPOP");
    pop.arg(lists).arg(format!("{}.{:03}", ms / 1000, ms % 1000));
    pop
}
