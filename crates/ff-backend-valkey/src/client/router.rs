//! Calls to the node that serves them.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ff_core::error::EngineError;
use redis::{Cmd, Value};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use super::address::Address;
use super::dedicated::Dedicated;
use super::effort::Effort;
use super::ground::Ground;
use super::node::Node;
use super::settle::{Route, Stop};
use super::topology::{Primary, Share, Topology, moved};
use super::verdict::{Redirection, Verdict, judge};
use crate::upsets::Upsets;

/// How long a look over a cluster waits for one of its nodes.
const LOOK_PATIENCE: Duration = Duration::from_secs(1);

/// Nodes outside of the table that are kept.
const HELPERS_MOST: usize = 8;

/// The way to one server or one cluster. Clones share it.
#[derive(Clone)]
pub(crate) struct Client(pub(super) Arc<Inner>);

/// What came of a look at a node.
#[derive(Debug)]
pub(crate) enum Looked {
    Answer(Result<Value, EngineError>),
    /// It does not answer.
    Silence,
}

pub(super) struct Inner {
    pub(super) ground: Arc<Ground>,
    pub(super) table: watch::Sender<Arc<Topology>>,
    /// Nodes outside of the table that calls are sent on to, the newest last. They are kept until the table
    /// changes, so that such calls share a connection.
    pub(super) helpers: Mutex<Vec<Arc<Node>>>,
    /// Where the store was opened: the last resort when no known node answers.
    pub(super) seed: Address,
    pub(super) server_version: String,
    /// The task that learns the cluster's layout.
    pub(super) refresher: Mutex<Option<AbortHandle>>,
    /// Ends when the last connection is gone.
    pub(super) all_gone: tokio::sync::Mutex<mpsc::Receiver<Infallible>>,
}

impl Client {
    /// To the primary that owns the slot. Calls sent at the same time travel together.
    pub(crate) async fn send(&self, slot: u16, command: &Cmd) -> Result<Value, EngineError> {
        let effort = Effort::new(&self.0.ground);
        let table = self.table();
        let Some(node) = table.owner(slot) else {
            let (route, stop) = (Route::Slot(slot), Stop::unowned(slot));
            return Box::pin(self.settle(route, command, stop, effort)).await;
        };
        match judge(node.call(command, effort.deadline()).await) {
            Verdict::Done(value) => Ok(value),
            Verdict::Failed(error) => Err(self.suspect_node(node, error)),
            Verdict::Again(again) => {
                let stop = Stop { node: Some(Arc::clone(node)), again };
                Box::pin(self.settle(Route::Slot(slot), command, stop, effort)).await
            }
        }
    }

    /// To one node, for a read of all it holds. When the slots move meanwhile the answer is a
    /// [`EngineError::Transport`] with a known outcome: ask for the primaries again.
    pub(crate) async fn send_to(
        &self,
        primary: &Primary,
        command: &Cmd,
    ) -> Result<Value, EngineError> {
        let effort = Effort::new(&self.0.ground);
        let node = &primary.node;
        match judge(node.call_directly(command).await) {
            Verdict::Done(value) => Ok(value),
            Verdict::Failed(error) => Err(self.suspect_node(node, foreign_slot(error))),
            Verdict::Again(again) => {
                let stop = Stop { node: Some(Arc::clone(node)), again };
                Box::pin(self.settle(Route::Node(node), command, stop, effort)).await
            }
        }
    }

    /// The same for a look that goes on without nodes that do not answer: none is waited for long, and
    /// one that is known to be silent not at all.
    pub(crate) async fn look_at(&self, primary: &Primary, command: &Cmd) -> Looked {
        if primary.node.is_silent() {
            return Looked::Silence;
        }
        match tokio::time::timeout(LOOK_PATIENCE, self.send_to(primary, command)).await {
            Ok(Err(EngineError::Transport { outcome_unknown: true, .. })) => Looked::Silence,
            Ok(answer) => Looked::Answer(answer),
            Err(_) => {
                primary.node.fall_silent();
                self.0.ground.stale.notify_one();
                Looked::Silence
            }
        }
    }

    /// The same for one slot.
    pub(crate) async fn look_at_slot(&self, slot: u16, command: &Cmd) -> Looked {
        match self.primaries().iter().find(|primary| primary.owns(slot)) {
            Some(owner) => self.look_at(owner, command).await,
            None => Looked::Silence,
        }
    }

    /// A connection of its own, for commands that block. It follows the slot.
    pub(crate) async fn dedicated(&self, slot: u16) -> Result<Dedicated, EngineError> {
        Dedicated::open(self.clone(), slot).await
    }

    /// Counts the moments after which a store may have forgotten what it said.
    pub(crate) fn upsets(&self) -> &Upsets {
        &self.0.ground.upsets
    }

    pub(crate) fn primaries(&self) -> Vec<Primary> {
        self.table().primaries().to_vec()
    }

    /// Which of the primaries owns the slot; the first where none does.
    pub(crate) fn owner_number(&self, slot: u16) -> usize {
        self.0.table.borrow().owner_number(slot).unwrap_or_default()
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.0.ground.cluster
    }

    /// With which every function is called.
    pub(crate) fn call_version(&self) -> u32 {
        self.0.ground.library.call_version
    }

    /// Like `valkey 9.1.2`.
    pub(crate) fn server_version(&self) -> String {
        self.0.server_version.clone()
    }

    /// Asks every primary.
    pub(crate) async fn ping(&self) -> Result<(), EngineError> {
        for primary in self.primaries() {
            self.send_to(&primary, &redis::cmd("PING")).await?;
        }
        Ok(())
    }

    /// Takes no more calls, and waits for the answers to those on their way.
    pub(crate) async fn close(&self, grace: Duration) {
        let inner = &self.0;
        inner.ground.close();
        inner.stop_refreshing();
        for node in self.table().nodes().chain(&inner.take_helpers()) {
            node.link.close();
        }
        let mut all_gone = inner.all_gone.lock().await;
        if tokio::time::timeout(grace, all_gone.recv()).await.is_err() {
            tracing::warn!(?grace, "calls to valkey were still on their way at the end");
        }
    }

    pub(super) fn table(&self) -> Arc<Topology> {
        Arc::clone(&self.0.table.borrow())
    }

    /// A call without an answer may mean that its node was replaced by another.
    pub(super) fn suspect(&self, error: EngineError) -> EngineError {
        if matches!(error, EngineError::Transport { .. }) {
            self.0.ground.stale.notify_one();
        }
        error
    }

    /// The same of a call that does not block by itself: the node may hang.
    pub(super) fn suspect_node(&self, node: &Arc<Node>, error: EngineError) -> EngineError {
        if matches!(error, EngineError::Transport { outcome_unknown: true, .. })
            && self.is_cluster()
        {
            node.fall_silent();
        }
        self.suspect(error)
    }

    /// Whether some node of a cluster is known not to answer.
    pub(crate) fn has_silent(&self) -> bool {
        self.is_cluster() && self.0.table.borrow().nodes().any(|node| node.is_silent())
    }

    /// Whether the node that owns a slot is.
    pub(crate) fn is_silent(&self, slot: u16) -> bool {
        self.0.table.borrow().owner(slot).is_some_and(|node| node.is_silent())
    }

    /// Believes a `MOVED`: it is newer than the table. The rest of the layout is asked for beside.
    pub(super) fn follow(&self, text: &str, answered: &Node) {
        self.0.ground.stale.notify_one();
        let Some(Redirection { slot, target }) = Redirection::read(text) else { return };
        let Some(address) = Address::redirected(target, &answered.address) else { return };
        self.0.table.send_if_modified(|table| {
            let shares = moved(table.shares(), slot, &address);
            let is_new = shares != table.shares();
            if is_new {
                *table = Arc::new(self.0.next(table, shares));
            }
            is_new
        });
    }

    /// The node at an address, whether or not it owns anything yet.
    pub(super) fn node_at(&self, address: &Address) -> Arc<Node> {
        if let Some(known) = self.table().node_at(address) {
            return Arc::clone(known);
        }
        let mut helpers = self.0.helpers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = helpers.iter().find(|node| node.address == *address) {
            return Arc::clone(known);
        }
        if helpers.len() == HELPERS_MOST {
            helpers.remove(0);
        }
        let helper = Node::start(&self.0.ground, address, None);
        helpers.push(Arc::clone(&helper));
        helper
    }
}

impl Inner {
    /// The table after `table`; nodes that stay keep their connections.
    pub(super) fn next(&self, table: &Topology, shares: Vec<Share>) -> Topology {
        self.ground.upsets.note();
        let helpers = self.take_helpers();
        Topology::new(table.generation + 1, shares, |address| {
            let helper = || helpers.iter().find(|node| node.address == *address);
            let known = table.node_at(address).or_else(helper).map(Arc::clone);
            known.unwrap_or_else(|| Node::start(&self.ground, address, None))
        })
    }

    fn take_helpers(&self) -> Vec<Arc<Node>> {
        std::mem::take(&mut *self.helpers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn stop_refreshing(&self) {
        let refresher = self.refresher.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = refresher {
            task.abort();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop_refreshing();
    }
}

/// A read over all slots of a node finds one gone while the table still says otherwise. Only reads
/// come here, so nothing was half written.
fn foreign_slot(error: EngineError) -> EngineError {
    match error {
        EngineError::Bug { detail, .. } if detail.contains("non local key") => {
            EngineError::Transport { outcome_unknown: false, detail }
        }
        other => other,
    }
}
