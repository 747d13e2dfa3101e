//! Which connections wait for tokens, and for which namespaces each of them does.
//!
//! On one node one command waits for lists of any namespace, so all claims of a process share a connection
//! until there are very many namespaces. In a cluster a command waits for lists of one slot, and with
//! it of one namespace. There are so many connections at the most; beyond that nobody waits for tokens, and
//! claims look once a second.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ff_core::id::Namespace;
use tokio::sync::Notify;

/// Connections that wait.
const WATCHES_MOST: usize = 256;

/// Namespaces of one of them.
const NAMESPACES_MOST: usize = 256;

/// The watch of all who have no connection.
const REST: usize = usize::MAX;

/// All watches of this process.
#[derive(Debug)]
pub(crate) struct Watches {
    /// A command may wait for one namespace only.
    apart: bool,
    all: BTreeMap<usize, Watch>,
}

/// What one task waits for.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Those in which somebody waits.
    pub(crate) namespaces: BTreeSet<Namespace>,
    /// Queues that it waits for at present; none while it looks at who waits, or nobody does.
    pub(crate) queues: BTreeSet<String>,
    /// Somebody waits again.
    pub(crate) arrival: Arc<Notify>,
    /// The namespace that it was begun for, which its inbox is named by.
    pub(crate) begun_for: Namespace,
}

impl Watches {
    pub(crate) fn new(apart: bool) -> Self {
        Self { apart, all: BTreeMap::new() }
    }

    /// Whether somebody with this number has no connection.
    pub(crate) const fn is_deaf(number: usize) -> bool {
        number == REST
    }

    /// The watch of a namespace in which somebody waits from now on; true: it is a new one.
    pub(crate) fn add(&mut self, namespace: &Namespace) -> (usize, bool) {
        let has_room = |(number, watch): &(&usize, &Watch)| match self.apart {
            _ if Self::is_deaf(**number) => false,
            true => watch.begun_for == *namespace,
            false => watch.namespaces.len() < NAMESPACES_MOST,
        };
        let found = self.all.iter().find(has_room).map(|(number, _)| *number);
        let free = || (0..WATCHES_MOST).find(|number| !self.all.contains_key(number));
        let number = found.or_else(free).unwrap_or(REST);
        let is_new = !self.all.contains_key(&number);
        let watch = self.all.entry(number).or_insert_with(|| Watch {
            namespaces: BTreeSet::new(),
            queues: BTreeSet::new(),
            arrival: Arc::default(),
            begun_for: namespace.clone(),
        });
        watch.namespaces.insert(namespace.clone());
        (number, is_new)
    }

    /// Nobody waits in a namespace any more.
    pub(crate) fn remove(&mut self, number: usize, namespace: &Namespace) {
        if let Some(watch) = self.all.get_mut(&number) {
            watch.namespaces.remove(namespace);
        }
    }

    pub(crate) fn get(&self, number: usize) -> Option<&Watch> {
        self.all.get(&number)
    }

    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut Watch> {
        self.all.get_mut(&number)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Watch> {
        self.all.values()
    }

    /// Ends a watch, unless somebody came at the last moment.
    pub(crate) fn end(&mut self, number: usize) -> bool {
        let idle = self.all.get(&number).is_none_or(|watch| watch.namespaces.is_empty());
        if idle {
            self.all.remove(&number);
        }
        idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace(number: usize) -> Namespace {
        Namespace::new(format!("n{number}")).unwrap()
    }

    #[test]
    fn on_one_node_namespaces_share_a_watch() {
        let mut watches = Watches::new(false);
        let numbers: BTreeSet<_> =
            (0..NAMESPACES_MOST).map(|n| watches.add(&namespace(n)).0).collect();
        assert_eq!(numbers, BTreeSet::from([0]));
        assert_eq!(watches.add(&namespace(NAMESPACES_MOST)), (1, true), "too many for one command");
        watches.remove(0, &namespace(7));
        assert_eq!(watches.add(&namespace(NAMESPACES_MOST + 1)), (0, false));
    }

    #[test]
    fn in_a_cluster_each_has_its_own_as_far_as_there_are_connections() {
        let mut watches = Watches::new(true);
        for number in 0..WATCHES_MOST {
            assert_eq!(watches.add(&namespace(number)), (number, true));
        }
        let (beyond, is_new) = watches.add(&namespace(WATCHES_MOST));
        assert!(is_new && Watches::is_deaf(beyond));
        assert_eq!(watches.add(&namespace(WATCHES_MOST + 1)), (beyond, false));
        watches.remove(3, &namespace(3));
        assert_eq!(watches.add(&namespace(3)), (3, false), "it lingers");
        watches.remove(3, &namespace(3));
        assert!(watches.end(3) && !watches.end(4));
        assert_eq!(watches.add(&namespace(WATCHES_MOST + 2)), (3, true));
    }
}
