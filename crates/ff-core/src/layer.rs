//! Layers: a backend that stands before another one and does as that does, except where it says otherwise.

use std::ops::Deref;
use std::time::Duration;

use crate::act::{Act, Acted, Acts};
use crate::backend::{Backend, Identity, Pending, Upkeep};
use crate::errand::Errands;
use crate::error::EngineError;
use crate::machine::Settings;
use crate::operation::{Claim, Claimed, Command, Reconcile, Reconciled, Reply, Trim, Trimmed};
use crate::read::{Answer, Followed, Query, Repaired, Topic};
use crate::tally::Tally;
use crate::time::TimestampMs;
use crate::turns::Turn;

/// What is done otherwise; the rest is left to the one behind it.
pub trait Layer: Send + Sync + 'static {
    fn inner(&self) -> &dyn Backend;

    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        self.inner().apply(commands)
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        self.inner().take(claim, wait)
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        self.inner().query(query)
    }

    fn follow(&self, topic: Topic, wait: Duration) -> Pending<'_, Result<Followed, EngineError>> {
        self.inner().follow(topic, wait)
    }

    /// An act that the one behind it carries out as a whole.
    fn act<'a>(
        &'a self,
        behind: &'a dyn Acts,
        act: Act,
    ) -> Pending<'a, Result<Acted, EngineError>> {
        behind.act(act)
    }
}

/// The backend that comes of it.
pub struct Layered<T>(pub T);

impl<T> Deref for Layered<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Layer> Backend for Layered<T> {
    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        self.0.apply(commands)
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        self.0.take(claim, wait)
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        self.0.query(query)
    }

    fn follow(&self, topic: Topic, wait: Duration) -> Pending<'_, Result<Followed, EngineError>> {
        self.0.follow(topic, wait)
    }

    fn acts(&self) -> Option<&dyn Acts> {
        self.0.inner().acts().map(|_| self as &dyn Acts)
    }
}

impl<T: Layer> Acts for Layered<T> {
    fn act(&self, act: Act) -> Pending<'_, Result<Acted, EngineError>> {
        match self.0.inner().acts() {
            Some(behind) => self.0.act(behind, act),
            None => {
                let detail = format!("{}: nobody carries it out as a whole", act.name());
                Box::pin(std::future::ready(Err(EngineError::bug(detail))))
            }
        }
    }
}

impl<T: Layer> Upkeep for Layered<T> {
    fn backend_label(&self) -> &'static str {
        self.0.inner().backend_label()
    }

    fn identity(&self) -> Identity {
        self.0.inner().identity()
    }

    fn settings(&self) -> &Settings {
        self.0.inner().settings()
    }

    fn errands(&self) -> &Errands {
        self.0.inner().errands()
    }

    fn tally(&self) -> &Tally {
        self.0.inner().tally()
    }

    fn ping(&self) -> Pending<'_, Result<(), EngineError>> {
        self.0.inner().ping()
    }

    fn server_time_ms(&self) -> Pending<'_, Result<TimestampMs, EngineError>> {
        self.0.inner().server_time_ms()
    }

    fn trim(&self, trim: Trim) -> Pending<'_, Result<Trimmed, EngineError>> {
        self.0.inner().trim(trim)
    }

    fn repair(&self) -> Pending<'_, Result<Repaired, EngineError>> {
        self.0.inner().repair()
    }

    fn reconcile(&self, page: Reconcile) -> Pending<'_, Result<Reconciled, EngineError>> {
        self.0.inner().reconcile(page)
    }

    fn take_turn(&self, turn: Turn) -> Pending<'_, Result<bool, EngineError>> {
        self.0.inner().take_turn(turn)
    }

    fn shutdown_prepare(&self, grace: Duration) -> Pending<'_, Result<(), EngineError>> {
        self.0.inner().shutdown_prepare(grace)
    }
}
