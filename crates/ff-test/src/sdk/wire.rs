//! The way between the SDK and a store, which a test may cut.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ff_core::act::{Act, Acted, Acts};
use ff_core::backend::{Backend, Pending};
use ff_core::error::EngineError;
use ff_core::layer::{Layer, Layered};
use ff_core::operation::{Claim, Claimed, Command, Reply};
use ff_core::read::{Answer, Followed, Query, Topic};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::world::PATIENCE;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It does not arrive.
    CallLost,
    /// It is carried out, and nobody hears so.
    ReplyLost,
}

/// Passes calls on, counts them, and loses those that a test wants lost.
pub struct Wire {
    inner: Arc<dyn Backend>,
    state: Mutex<State>,
    counted: Notify,
}

#[derive(Default)]
struct State {
    is_cut: bool,
    /// Faults to come, by the name of the operation.
    planned: Vec<(&'static str, Fault)>,
    /// How many of each operation were sent, and in how many calls.
    sent: BTreeMap<&'static str, (usize, usize)>,
    waits: usize,
}

impl Wire {
    pub fn to(inner: Arc<dyn Backend>) -> Arc<Layered<Self>> {
        let state = Mutex::default();
        Arc::new(Layered(Self { inner, state, counted: Notify::new() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next call of this operation meets a fault, and so do as many after it as are named.
    pub fn plan(&self, operation: &'static str, faults: impl IntoIterator<Item = Fault>) {
        check(operation);
        self.state().planned.extend(faults.into_iter().map(|fault| (operation, fault)));
    }

    /// Nothing arrives from now on.
    pub fn cut(&self) {
        self.state().is_cut = true;
    }

    pub fn mend(&self) {
        self.state().is_cut = false;
    }

    /// How many of an operation were sent so far, arrived or not.
    pub fn sent(&self, operation: &str) -> usize {
        check(operation);
        self.state().sent.get(operation).map_or(0, |(commands, _)| *commands)
    }

    /// In how many calls.
    pub fn calls(&self, operation: &str) -> usize {
        check(operation);
        self.state().sent.get(operation).map_or(0, |(_, calls)| *calls)
    }

    /// Claims and looks at logs so far.
    pub fn waits(&self) -> usize {
        self.state().waits
    }

    /// Waits until so many of an operation were sent.
    pub async fn until_sent(&self, operation: &str, count: usize) {
        self.until(|| self.sent(operation) >= count).await;
    }

    async fn until(&self, is_so: impl Fn() -> bool) {
        let waiting = async {
            loop {
                let counted = self.counted.notified();
                if is_so() {
                    return;
                }
                counted.await;
            }
        };
        timeout(PATIENCE, waiting).await.expect("in time");
    }

    /// Counts the commands of one call, and tells the fault that it meets.
    fn count(&self, commands: &[Command]) -> Option<Fault> {
        let mut state = self.state();
        let names: std::collections::BTreeSet<_> = commands.iter().map(Command::name).collect();
        for command in commands {
            state.sent.entry(command.name()).or_default().0 += 1;
        }
        for name in &names {
            state.sent.entry(name).or_default().1 += 1;
        }
        let planned = state.planned.iter().position(|(name, _)| names.contains(name));
        let planned = planned.map(|at| state.planned.remove(at).1);
        let fault = if state.is_cut { Some(Fault::CallLost) } else { planned };
        drop(state);
        self.counted.notify_waiters();
        fault
    }

    /// A call that is no command.
    fn wait(&self) -> Result<(), EngineError> {
        let mut state = self.state();
        state.waits += 1;
        if state.is_cut { Err(lost(false)) } else { Ok(()) }
    }
}

/// A name that no operation has would wait for ever.
fn check(operation: &str) {
    assert!(Command::NAMES.contains(&operation), "no operation is called {operation}");
}

fn lost(outcome_unknown: bool) -> EngineError {
    EngineError::Transport { outcome_unknown, detail: "a test has cut the wire".to_owned() }
}

impl Layer for Wire {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        let (fault, count) = (self.count(&commands), commands.len());
        Box::pin(async move {
            let outcome_unknown = match fault {
                None => return self.inner.apply(commands).await,
                Some(Fault::CallLost) => false,
                Some(Fault::ReplyLost) => {
                    self.inner.apply(commands).await;
                    true
                }
            };
            (0..count).map(|_| Err(lost(outcome_unknown))).collect()
        })
    }

    fn act<'a>(
        &'a self,
        behind: &'a dyn Acts,
        act: Act,
    ) -> Pending<'a, Result<Acted, EngineError>> {
        Box::pin(async move {
            self.wait()?;
            behind.act(act).await
        })
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        Box::pin(async move {
            self.wait()?;
            self.inner.take(claim, wait).await
        })
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        Box::pin(async move {
            self.wait()?;
            self.inner.query(query).await
        })
    }

    fn follow(&self, topic: Topic, wait: Duration) -> Pending<'_, Result<Followed, EngineError>> {
        Box::pin(async move {
            self.wait()?;
            self.inner.follow(topic, wait).await
        })
    }
}
