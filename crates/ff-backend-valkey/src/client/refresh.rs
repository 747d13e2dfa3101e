//! Learns the layout of the cluster anew when it may have changed.
//!
//! One task per store, so there is one question at a time however many calls ask for it. It asks
//! one node after the other, beginning with another each time: a node that was cut off may keep an
//! old view for long.

use std::sync::{Arc, Weak};
use std::time::Duration;

use redis::Value;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::address::Address;
use super::backoff::Backoff;
use super::connection::Connection;
use super::node::Node;
use super::router::Inner;
use super::topology::Share;

/// Between two questions at least.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// For one node to answer: one that hangs must not hide the others.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Ends with the store. It holds no part of it alive between questions.
pub(super) fn start(inner: &Arc<Inner>) -> AbortHandle {
    let ground = Arc::clone(&inner.ground);
    let inner = Arc::downgrade(inner);
    let task = async move {
        let mut first = 0;
        loop {
            ground.stale.notified().await;
            let mut backoff = Backoff::new();
            while let Some(healthy) = refresh(&inner, first).await {
                first += 1;
                if healthy {
                    sleep(PAUSE_MIN).await;
                    break;
                }
                sleep(PAUSE_MIN.max(backoff.pause())).await;
            }
        }
    };
    tokio::spawn(task).abort_handle()
}

/// Whether every slot has a node that can be reached. None when the store is gone.
async fn refresh(inner: &Weak<Inner>, first: usize) -> Option<bool> {
    let inner = inner.upgrade()?;
    if let Some(shares) = inner.layout(first).await {
        inner.table.send_if_modified(|table| {
            let is_new = shares != table.shares();
            if is_new {
                tracing::info!(primaries = ?addresses(&shares), "the cluster has a new layout");
                *table = Arc::new(inner.next(table, shares));
            }
            is_new
        });
    }
    let table = Arc::clone(&inner.table.borrow());
    Some(table.is_whole() && table.nodes().all(|node| node.link.is_up() && !node.is_silent()))
}

fn addresses(shares: &[Share]) -> Vec<String> {
    let mut addresses: Vec<String> = shares.iter().map(|it| it.address.to_string()).collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

impl Inner {
    async fn layout(&self, first: usize) -> Option<Vec<Share>> {
        let table = Arc::clone(&self.table.borrow());
        let answers = |node: &&Arc<Node>| node.link.is_up() && !node.is_silent();
        let nodes: Vec<_> = table.nodes().filter(answers).collect();
        let turned = (0..nodes.len()).map(|index| nodes[(index + first) % nodes.len()]);
        for node in turned {
            let Ok(mut connection) = node.link.connection() else { continue };
            let shares = ask(&mut connection, &node.address).await;
            if shares.is_some() {
                return shares;
            }
        }
        let opening = self.ground.connector.open(&self.seed);
        let mut connection = timeout(ANSWER_MAX, opening).await.ok()?.ok()?;
        ask(&mut connection, &self.seed).await
    }
}

/// The layout as one node sees it; none if it does not answer or knows of no slots.
pub(super) async fn ask(connection: &mut Connection, address: &Address) -> Option<Vec<Share>> {
    let question = Share::question();
    let answer = timeout(ANSWER_MAX, connection.call(&question)).await.ok()?.ok()?;
    match answer {
        Value::ServerError(_) => None,
        answer => Share::read_all(&answer, address).filter(|shares| !shares.is_empty()),
    }
}
