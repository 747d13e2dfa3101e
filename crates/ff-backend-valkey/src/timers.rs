//! Telling engines of timers that are due sooner than they know.
//!
//! An engine looks at all timers once a second. What is due before that is told: in this process
//! at once, and to an engine elsewhere by a token when this process has none.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ff_core::error::EngineError;
use ff_core::id::Home;
use ff_core::read::Followed;
use ff_core::time::TimestampMs;
use tokio::sync::watch;

use crate::attendance::Attendance;
use crate::client::slot_of;
use crate::follow::LONGEST_WAIT;
use crate::store::Shared;
use crate::{reply, token};

/// What is due later than this is found by an engine's own look.
const LOOK_MS: u64 = 1_000;

/// How long one turn of the wait for tokens lasts.
const TURN: Duration = Duration::from_secs(5);

/// Pause after the connection failed.
const REST: Duration = Duration::from_millis(200);

/// Tokens that lie in the list at most; engines that come later look anyway.
const TOKENS_MOST: usize = 8;

/// The soonest timer that was set and not told.
pub(crate) struct Timers {
    soonest: watch::Sender<Option<TimestampMs>>,
    /// Engines of this process.
    engines: Attendance,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self { soonest: watch::Sender::new(None), engines: Attendance::default() }
    }

    /// A timer was set.
    pub(crate) fn set(&self, due: TimestampMs) {
        self.soonest.send_if_modified(|soonest| {
            let sooner = soonest.is_none_or(|known| due < known);
            if sooner {
                *soonest = Some(due);
            }
            sooner
        });
    }
}

/// A timer of `home` was set by this process.
pub(crate) fn note(shared: &Arc<Shared>, home: &Home, due: TimestampMs) {
    shared.timers.set(due);
    let now = shared.clock.estimate(home);
    let soon = now.is_some_and(|now| due < now.after(LOOK_MS));
    if soon && !shared.timers.engines.is_running() {
        tokio::spawn(push(Arc::clone(shared), due));
    }
}

async fn push(shared: Arc<Shared>, due: TimestampMs) {
    let key = shared.keys.timer_wake();
    let mut push = redis::cmd("LPUSH");
    push.arg(&key).arg(due.0);
    let mut trim = redis::cmd("LTRIM");
    trim.arg(&key).arg(0).arg(TOKENS_MOST - 1);
    for command in [push, trim, token::expiry(&key)] {
        if let Err(error) = shared.send_lightly(slot_of(key.as_bytes()), &command).await {
            tracing::debug!(%error, "an engine could not be told of a timer; it will look");
        }
    }
}

/// Takes tokens as long as an engine of this process follows.
async fn listen(shared: Arc<Shared>, shift: u64) {
    let key = shared.keys.timer_wake();
    let slot = slot_of(key.as_bytes());
    let mut connection = None;
    while shared.timers.engines.goes_on(shift) && !shared.is_closing() {
        if connection.is_none() {
            connection = shared.client.dedicated(slot).await.ok();
        }
        let token = match &mut connection {
            Some(dedicated) => {
                let mut pop = redis::cmd("BRPOP");
                pop.arg(&key).arg(TURN.as_secs());
                dedicated.query(&pop, TURN + shared.options.call_timeout).await
            }
            None => Err(EngineError::unavailable("no connection to wait on")),
        };
        match token {
            Ok(redis::Value::Nil) => {}
            Ok(popped) => {
                let due = reply::array(popped).ok().and_then(|items| items.into_iter().nth(1));
                if let Some(Ok(due)) = due.map(|due| reply::instant(&due)) {
                    shared.timers.set(due);
                }
            }
            Err(error) => {
                tracing::debug!(%error, "the wait for timers broke off");
                connection = None;
                tokio::time::sleep(REST).await;
            }
        }
    }
}

pub(crate) async fn sooner(
    shared: &Arc<Shared>,
    known: Option<TimestampMs>,
    wait: Duration,
) -> Result<Followed, EngineError> {
    let deadline = Instant::now() + wait.min(LONGEST_WAIT);
    let (_present, start) = shared.timers.engines.join();
    if let Some(shift) = start {
        tokio::spawn(listen(Arc::clone(shared), shift));
    }
    let mut soonest = shared.timers.soonest.subscribe();
    loop {
        let found = *soonest.borrow_and_update();
        if let Some(at) = found
            && known.is_none_or(|known| at < known)
        {
            // Told once: the caller looks at all timers next.
            shared.timers.soonest.send_if_modified(|soonest| {
                *soonest = None;
                false
            });
            return Ok(Followed::Timers { sooner: Some(at) });
        }
        let changed = tokio::time::timeout_at(deadline.into(), soonest.changed()).await;
        if changed.is_err() || shared.is_closing() {
            return Ok(Followed::Timers { sooner: None });
        }
    }
}
