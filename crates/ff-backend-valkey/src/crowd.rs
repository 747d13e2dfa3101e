//! What many callers ask for at once, in few calls.
//!
//! A call of a function costs the server more than an item in it. So only a few calls of a kind are
//! under way at a time; what other callers bring meanwhile waits and goes with the next call. A caller
//! alone sends at once. In a cluster, where a call is of one home, each home has a line of its own.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ff_core::error::EngineError;
use ff_core::id::Home;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::ask::Ask;
use crate::commit::Batch;
use crate::store::Shared;

/// Calls under way at a time: while the server works on some, others are on their way, or are being
/// read. Fewer carry more each, and leave the server without work now and then.
pub(crate) const CALLS_MOST: usize = 8;

/// What a caller brings.
pub(crate) trait Joint: fmt::Debug + Send + Sync + Sized + 'static {
    type Answer: Send + 'static;
    /// How much a call holds so far.
    type Load: Default;

    /// Where it goes. On one node a call may be for several homes.
    fn home(&self) -> Home;

    /// Adds it to a call; false, and the load unchanged, when it is too much for it.
    fn joins(&self, load: &mut Self::Load) -> bool;

    /// One call for all of these: an answer for each.
    fn send(
        shared: &Shared,
        all: &[Self],
    ) -> impl Future<Output = Result<Vec<Self::Answer>, EngineError>> + Send;
}

/// One crowd for each function that many call.
#[derive(Debug, Default)]
pub(crate) struct Crowds {
    pub(crate) commits: Crowd<Batch>,
    pub(crate) freeing: Crowd<Batch>,
    pub(crate) claims: Crowd<Ask>,
}

/// The lines of those who are there: one for all, in a cluster one for each home.
#[derive(Debug)]
pub(crate) struct Crowd<J: Joint>(Mutex<HashMap<Option<Home>, Line<J>>>);

impl<J: Joint> Default for Crowd<J> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

#[derive(Debug)]
struct Line<J: Joint> {
    under_way: usize,
    /// Bounded by the callers: each waits for its own entry.
    waiting: VecDeque<Waiting<J>>,
}

impl<J: Joint> Default for Line<J> {
    fn default() -> Self {
        Self { under_way: 0, waiting: VecDeque::new() }
    }
}

struct Waiting<J: Joint> {
    brought: J,
    since: Instant,
    answer: oneshot::Sender<Result<J::Answer, EngineError>>,
}

impl<J: Joint> fmt::Debug for Waiting<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("brought", &self.brought).finish_non_exhaustive()
    }
}

/// Which crowd somebody joins.
pub(crate) type Which<J> = fn(&Crowds) -> &Crowd<J>;

/// Sends what fits into one call, alone or with what others bring.
pub(crate) async fn send<J: Joint>(
    shared: &Arc<Shared>,
    which: Which<J>,
    brought: J,
) -> Result<J::Answer, EngineError> {
    let home = shared.client.is_cluster().then(|| brought.home());
    let (answer, answered) = oneshot::channel();
    let turn = {
        let mut lines = which(&shared.crowds).lock();
        let line = lines.entry(home.clone()).or_default();
        let turn = (line.under_way < CALLS_MOST).then(|| {
            line.under_way += 1;
            Turn { shared: Arc::clone(shared), which, home, idle: false }
        });
        match turn {
            Some(turn) if line.under_way == 1 => Err((turn, brought)),
            turn => {
                line.waiting.push_back(Waiting { brought, since: Instant::now(), answer });
                Ok(turn)
            }
        }
    };
    match turn {
        // Nobody else is there.
        Err((_turn, brought)) => return send_one(shared, brought).await,
        Ok(Some(turn)) => drop(tokio::spawn(turn.serve())),
        Ok(None) => {}
    }
    let gone = |_| EngineError::unavailable("the store was closed before it sent this");
    answered.await.map_err(gone)?
}

async fn send_one<J: Joint>(shared: &Shared, brought: J) -> Result<J::Answer, EngineError> {
    let mut answers = J::send(shared, &[brought]).await?;
    answers.pop().ok_or_else(|| EngineError::bug("a call has no answer"))
}

/// The right to have a call under way. Whoever is done with it, or gives up, passes it on.
struct Turn<J: Joint> {
    shared: Arc<Shared>,
    which: Which<J>,
    /// The line that it is of.
    home: Option<Home>,
    /// It was passed on, and nobody has taken it up yet.
    idle: bool,
}

impl<J: Joint> Drop for Turn<J> {
    /// A runtime that shuts down drops at once what is spawned on it: then, and where there is no
    /// runtime, nobody will serve those who wait, and they learn of it.
    fn drop(&mut self) {
        let mut lines = (self.which)(&self.shared.crowds).lock();
        let line = lines.entry(self.home.clone()).or_default();
        let runtime = tokio::runtime::Handle::try_current().ok();
        let runtime = runtime.filter(|_| !self.idle && !line.waiting.is_empty());
        let left = match runtime {
            Some(_) => VecDeque::new(),
            None => {
                line.under_way -= 1;
                let left = std::mem::take(&mut line.waiting);
                if line.under_way == 0 {
                    lines.remove(&self.home);
                }
                left
            }
        };
        // What is dropped or spawned here may take the lock.
        drop(lines);
        drop(left);
        if let Some(runtime) = runtime {
            let (shared, which, home) = (Arc::clone(&self.shared), self.which, self.home.take());
            runtime.spawn(Self { shared, which, home, idle: true }.serve());
        }
    }
}

impl<J: Joint> Turn<J> {
    /// One call for as many as wait and fit into it.
    async fn serve(mut self) {
        self.idle = false;
        // Who is about to come goes along.
        tokio::task::yield_now().await;
        let patience = self.shared.options.call_timeout;
        let (all, answers) = {
            let mut lines = (self.which)(&self.shared.crowds).lock();
            lines.entry(self.home.clone()).or_default().take(patience)
        };
        match J::send(&self.shared, &all).await {
            Ok(outcomes) => {
                for (answer, outcome) in answers.into_iter().zip(outcomes) {
                    let _ = answer.send(Ok(outcome));
                }
            }
            Err(error) => {
                for answer in answers {
                    let _ = answer.send(Err(error.clone()));
                }
            }
        }
    }
}

impl<J: Joint> Crowd<J> {
    fn lock(&self) -> MutexGuard<'_, HashMap<Option<Home>, Line<J>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Answers<J> = Vec<oneshot::Sender<Result<<J as Joint>::Answer, EngineError>>>;

impl<J: Joint> Line<J> {
    /// As much of what waits as goes into one call. What nobody waits for any more is not sent.
    fn take(&mut self, patience: Duration) -> (Vec<J>, Answers<J>) {
        let (mut all, mut answers, mut load) = (Vec::new(), Vec::new(), J::Load::default());
        while let Some(waiting) = self.waiting.pop_front() {
            if waiting.answer.is_closed() {
                continue;
            }
            if waiting.since.elapsed() > patience {
                let late = EngineError::unavailable("too many calls wait for the store");
                let _ = waiting.answer.send(Err(late));
                continue;
            }
            if !waiting.brought.joins(&mut load) {
                self.waiting.push_front(waiting);
                break;
            }
            all.push(waiting.brought);
            answers.push(waiting.answer);
        }
        (all, answers)
    }
}
