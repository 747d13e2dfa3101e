//! A server over a store, reached by a remote backend: what has a route goes over HTTP, and what only an
//! engine does is done on the store behind the server.

use std::sync::Arc;
use std::time::Duration;

use ff_backend_sqlite::ManualClock;
use ff_core::act::Acts;
use ff_core::backend::{Backend, Identity, Pending, Upkeep};
use ff_core::errand::Errands;
use ff_core::error::EngineError;
use ff_core::machine::Settings;
use ff_core::operation::{Claim, Claimed, Command, Reconcile, Reconciled, Reply, Trim, Trimmed};
use ff_core::partition::PartitionConfig;
use ff_core::read::{Answer, Followed, Query, Repaired, Topic};
use ff_core::tally::Tally;
use ff_core::time::TimestampMs;
use ff_core::turns::Turn;
use ff_remote::{Options, Remote, no_route};

use crate::http::Site;
use crate::stages::SqliteStage;
use crate::world::{Stage, World};

/// The two ways to one store.
struct Both {
    remote: Remote,
    store: Arc<dyn Backend>,
}

/// A server in this process over a SQLite store in memory.
pub struct RemoteStage {
    backend: Arc<dyn Backend>,
    clock: ManualClock,
    _site: Site,
}

impl RemoteStage {
    pub async fn new() -> Self {
        let stage = SqliteStage::in_memory(PartitionConfig::default());
        let (store, clock) = (stage.backend(), stage.clock.clone());
        let site = Site::on(stage).await;
        let url = format!("http://{}", site.addr);
        let remote = Remote::connect(&url, Options::default()).await.expect("a connection");
        Self { backend: Arc::new(Both { remote, store }), clock, _site: site }
    }
}

impl Stage for RemoteStage {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.backend)
    }

    fn advance(&self, ms: i64) -> Pending<'_, ()> {
        self.clock.advance(ms);
        Box::pin(std::future::ready(()))
    }
}

/// A world behind a server.
pub async fn remote() -> World {
    World::new(RemoteStage::new().await)
}

/// Whether only an engine does it.
fn is_inside(name: &str, listed: &[(&str, &str)]) -> bool {
    listed.iter().any(|(known, _)| *known == name)
}

impl Both {
    /// Those of one way at a time, so that all keep their order.
    async fn apply_in_turn(&self, commands: Vec<Command>) -> Vec<Result<Reply, EngineError>> {
        let mut replies = Vec::with_capacity(commands.len());
        let mut commands = commands.into_iter().peekable();
        while let Some(first) = commands.next() {
            let inside = is_inside(first.name(), no_route::OPERATIONS);
            let mut same = vec![first];
            while let Some(next) =
                commands.next_if(|next| is_inside(next.name(), no_route::OPERATIONS) == inside)
            {
                same.push(next);
            }
            replies.extend(match inside {
                true => self.store.apply(same).await,
                false => self.remote.apply(same).await,
            });
        }
        replies
    }
}

impl Backend for Both {
    fn apply(&self, commands: Vec<Command>) -> Pending<'_, Vec<Result<Reply, EngineError>>> {
        Box::pin(self.apply_in_turn(commands))
    }

    fn take(&self, claim: Claim, wait: Duration) -> Pending<'_, Result<Claimed, EngineError>> {
        match claim.sets_aside {
            true => self.store.take(claim, wait),
            false => self.remote.take(claim, wait),
        }
    }

    fn query(&self, query: Query) -> Pending<'_, Result<Answer, EngineError>> {
        match is_inside(query.name(), no_route::QUESTIONS) {
            true => self.store.query(query),
            false => self.remote.query(query),
        }
    }

    fn follow(&self, topic: Topic, wait: Duration) -> Pending<'_, Result<Followed, EngineError>> {
        match topic {
            Topic::Timers { .. } => self.store.follow(topic, wait),
            topic => self.remote.follow(topic, wait),
        }
    }

    fn acts(&self) -> Option<&dyn Acts> {
        self.remote.acts()
    }
}

impl Upkeep for Both {
    fn backend_label(&self) -> &'static str {
        self.remote.backend_label()
    }

    fn identity(&self) -> Identity {
        self.remote.identity()
    }

    fn settings(&self) -> &Settings {
        self.remote.settings()
    }

    fn errands(&self) -> &Errands {
        self.store.errands()
    }

    fn tally(&self) -> &Tally {
        self.store.tally()
    }

    fn ping(&self) -> Pending<'_, Result<(), EngineError>> {
        self.remote.ping()
    }

    fn server_time_ms(&self) -> Pending<'_, Result<TimestampMs, EngineError>> {
        self.remote.server_time_ms()
    }

    fn trim(&self, trim: Trim) -> Pending<'_, Result<Trimmed, EngineError>> {
        self.store.trim(trim)
    }

    fn repair(&self) -> Pending<'_, Result<Repaired, EngineError>> {
        self.store.repair()
    }

    fn reconcile(&self, page: Reconcile) -> Pending<'_, Result<Reconciled, EngineError>> {
        self.store.reconcile(page)
    }

    fn take_turn(&self, turn: Turn) -> Pending<'_, Result<bool, EngineError>> {
        self.store.take_turn(turn)
    }

    fn shutdown_prepare(&self, grace: Duration) -> Pending<'_, Result<(), EngineError>> {
        self.remote.shutdown_prepare(grace)
    }
}
