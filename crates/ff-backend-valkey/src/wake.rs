//! Claims that found nothing and wait.
//!
//! One task per namespace waits for all of them on a connection of its own: whatever makes work
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
use crate::client::slot_of;
use crate::store::Shared;
use crate::token::InHand;
use crate::view::Sight;
use crate::waiters::{Joined, Ticket};
use crate::{near, reply};

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
    let namespace = request.namespace.clone();
    match joined {
        Joined::First(arrival) => {
            tokio::spawn(wait_for_tokens(Arc::clone(shared), namespace, arrival));
        }
        Joined::Unheard => interrupt(shared, namespace),
        Joined::Heard => {}
    }
    Place { shared: Arc::clone(shared), ticket }
}

/// Lets the watch of a namespace look at its waiters again.
pub(crate) fn interrupt(shared: &Arc<Shared>, namespace: Namespace) {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let inbox = shared.keys.inbox(&namespace, &shared.waiters.process);
        let mut push = redis::cmd("LPUSH");
        push.arg(&inbox).arg("1");
        if let Err(error) = shared.send_lightly(slot_of(inbox.as_bytes()), &push).await {
            tracing::debug!(%error, "a watch could not be interrupted; its turn will end");
        }
    });
}

/// Waits for tokens while somebody waits for work, and for somebody a while longer.
async fn wait_for_tokens(shared: Arc<Shared>, namespace: Namespace, arrival: Arc<Notify>) {
    let inbox = shared.keys.inbox(&namespace, &shared.waiters.process);
    let slot = slot_of(inbox.as_bytes());
    let mut connection = None;
    let mut turn_ends = Instant::now() + TURN;
    while !shared.is_closing() {
        let queues = shared.waiters.queues(&shared.classes, &namespace);
        if queues.is_empty() {
            let arrived = tokio::time::timeout(LINGER, arrival.notified()).await;
            if arrived.is_err() && shared.waiters.end(&namespace) {
                return;
            }
            turn_ends = Instant::now() + TURN;
            continue;
        }
        if connection.is_none() {
            connection = shared.client.dedicated(slot).await.ok();
        }
        let token = match &mut connection {
            Some(dedicated) => {
                let mut lists: Vec<_> =
                    queues.iter().map(|queue| shared.keys.wake(&namespace, queue)).collect();
                lists.push(inbox.clone());
                let left = turn_ends.saturating_duration_since(Instant::now());
                dedicated.query(&pop(&lists, left), left + shared.options.call_timeout).await
            }
            None => Err(EngineError::unavailable("no connection to wait on")),
        };
        match token {
            Ok(redis::Value::Nil) => {}
            Ok(popped) => taken(&shared, &namespace, popped),
            Err(error) => {
                tracing::debug!(%error, "the wait for work broke off");
                connection = None;
                tokio::time::sleep(REST).await;
                shared.waiters.wake_all_in(&namespace);
            }
        }
        // Tokens may come without end, so it is the time that counts, and not that none came.
        if Instant::now() >= turn_ends {
            shared.waiters.wake_each_kind(&namespace);
            turn_ends = Instant::now() + TURN;
        }
    }
    shared.waiters.end(&namespace);
}

/// Takes the oldest of one of these lists, and waits so long for it.
fn pop(lists: &[String], wait: Duration) -> redis::Cmd {
    let ms = wait.as_millis().max(SHORTEST_MS);
    let mut pop = redis::cmd("BRPOP");
    pop.arg(lists).arg(format!("{}.{:03}", ms / 1000, ms % 1000));
    pop
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
    if let Some(Ok(token)) = queue.map(|queue| Token::read(namespace, queue, &partition)) {
        token.hand_on(shared);
    }
}
