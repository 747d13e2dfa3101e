//! How lanes stand, and what is left of cancels, for the metrics: of every namespace that there is, by
//! looks that stay small however many there are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ff_core::backend::{Backend, BackendExt as _};
use ff_core::error::EngineError;
use ff_core::id::Namespace;
use ff_core::limits;
use ff_core::read::{LaneSnapshot, ListCancelBacklog, ListLanes, ListNamespaces};
use ff_observe::Metrics;

/// Namespaces that one look asks the store about. With more of them looks take turns, and a namespace
/// is shown as it stood at its last turn.
const NAMESPACES_A_LOOK: usize = 64;

/// Namespaces that are shown, the first by name.
const NAMESPACES: usize = 1_000;

/// Lanes that one look reads, unless one namespace alone has more; and the most of a namespace.
const LANES: usize = 1_000;

/// What is known of namespaces from the looks so far.
#[derive(Debug, Default)]
pub(crate) struct Depths {
    /// Those of this round that have not had their turn.
    left: VecDeque<Namespace>,
    seen: BTreeMap<Namespace, Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    lanes: Vec<LaneSnapshot>,
    /// Members of cancelled flows that are still to be cancelled.
    cancel_backlog: u64,
}

impl Depths {
    /// Looks, and shows what is known now. Of a store that does not answer nothing is shown: old
    /// numbers would look like new ones.
    pub(crate) async fn show(
        &mut self,
        backend: &dyn Backend,
        metrics: &Metrics,
    ) -> Result<(), EngineError> {
        let looked = self.look(backend).await;
        if let Err(error) = &looked {
            tracing::warn!(%error, "lanes could not be looked at for the metrics");
            *self = Self::default();
        }
        metrics.set_lanes(self.seen.values().flat_map(|seen| &seen.lanes));
        metrics.set_cancel_backlog(self.seen.values().map(|seen| seen.cancel_backlog).sum());
        looked
    }

    async fn look(&mut self, backend: &dyn Backend) -> Result<(), EngineError> {
        if self.left.is_empty() {
            let there_are = namespaces(backend).await?;
            self.seen.retain(|namespace, _| there_are.contains(namespace));
            self.left.extend(there_are);
        }
        let (mut namespaces, mut lanes) = (0, 0);
        while namespaces < NAMESPACES_A_LOOK && lanes < LANES {
            let Some(namespace) = self.left.pop_front() else { break };
            let seen = Seen::of(backend, &namespace).await?;
            (namespaces, lanes) = (namespaces + 1, lanes + seen.lanes.len());
            self.seen.insert(namespace, seen);
        }
        Ok(())
    }
}

async fn namespaces(backend: &dyn Backend) -> Result<BTreeSet<Namespace>, EngineError> {
    let mut all = BTreeSet::from([Namespace::default()]);
    let mut cursor = None;
    loop {
        let page = backend.ask(ListNamespaces { cursor, limit: limits::PAGE_MAX }).await?;
        all.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() || all.len() >= NAMESPACES {
            return Ok(all);
        }
    }
}

impl Seen {
    async fn of(backend: &dyn Backend, namespace: &Namespace) -> Result<Self, EngineError> {
        let mut seen = Self::default();
        let (mut cursor, limit) = (None, limits::PAGE_MAX);
        while seen.lanes.len() < LANES {
            let namespace = namespace.clone();
            let page = backend.ask(ListLanes { namespace, within: None, cursor, limit }).await?;
            seen.lanes.extend(page.items);
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        // A page holds more flows than a store in order ever has in hand.
        let namespace = namespace.clone();
        let page = backend.ask(ListCancelBacklog { namespace, cursor: None, limit }).await?;
        seen.cancel_backlog = page.items.iter().map(|flow| u64::from(flow.members)).sum();
        Ok(seen)
    }
}
