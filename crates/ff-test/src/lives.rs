//! A store over many lives: the process on it is killed again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ff_core::backend::{Backend, Pending};
use ff_core::error::EngineError;
use ff_core::operation::{Claim, Claimed, Command, Reply};
use ff_core::read::{Answer, Query};

use crate::stages::{SqliteStage, ValkeyStage};
use crate::world::{Stage, World};
use ff_core::layer::{Layer, Layered};

/// A stage whose process can be killed.
pub trait Mortal: Stage + Sized {
    fn killed(self) -> impl Future<Output = Self>;
}

impl Mortal for SqliteStage {
    async fn killed(self) -> Self {
        self.after_a_kill()
    }
}

impl Mortal for ValkeyStage {
    async fn killed(self) -> Self {
        self.after_a_kill().await
    }
}

/// One store over many lives.
pub struct Lives<S>(Option<S>);

impl<S: Mortal> Lives<S> {
    pub fn new(stage: S) -> Self {
        Self(Some(stage))
    }

    /// Does something, and is killed.
    pub async fn once<T>(&mut self, act: impl AsyncFnOnce(&World) -> T) -> T {
        let stage = self.0.take().expect("a stage");
        let world = World::on(&stage);
        let done = act(&world).await;
        drop(world);
        self.0 = Some(stage.killed().await);
        done
    }

    /// Time passes; in each of so many lives all that is due is carried out.
    pub async fn pass(&mut self, lives: usize, ms: i64) {
        for _ in 0..lives {
            if let Some(stage) = &self.0 {
                stage.advance(ms).await;
            }
            self.once(async |world| world.settle().await).await;
        }
    }
}

/// A backend of a process that will be killed: so many more steps are carried out, and then none.
pub struct Doomed {
    inner: Arc<dyn Backend>,
    left: AtomicUsize,
    dead: AtomicBool,
}

impl Doomed {
    pub fn before(inner: &Arc<dyn Backend>, steps: usize) -> Layered<Self> {
        let (left, dead) = (AtomicUsize::new(steps), AtomicBool::new(false));
        Layered(Self { inner: Arc::clone(inner), left, dead })
    }

    /// Whether something was not carried out any more.
    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    fn step(&self) -> Result<(), EngineError> {
        let one_less = |left: usize| left.checked_sub(1);
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            return Ok(());
        }
        self.dead.store(true, Ordering::SeqCst);
        Err(EngineError::unavailable("the process was killed"))
    }
}

impl Layer for Doomed {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    /// Each command is a step.
    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        Box::pin(async move {
            let mut replies = Vec::with_capacity(commands.len());
            for command in commands {
                replies.extend(match self.step() {
                    Ok(()) => self.inner.apply(vec![command]).await.pop(),
                    Err(error) => Some(Err(error)),
                });
            }
            replies
        })
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        Box::pin(async move {
            self.step()?;
            self.inner.take(claim, wait).await
        })
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        Box::pin(async move {
            self.step()?;
            self.inner.query(query).await
        })
    }
}
