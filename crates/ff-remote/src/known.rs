//! In which namespaces things are.
//!
//! Operations name executions, flows and limits by id alone; a server looks for them in one namespace.
//! What was made, claimed or read in another one than the connection's own is remembered here.

use std::sync::{Mutex, PoisonError};

use ff_core::id::Namespace;
use ff_core::recent::Recent;
use uuid::Uuid;

/// Things of one generation that are remembered.
const REMEMBERED: usize = 50_000;

#[derive(Debug)]
pub(crate) struct Known {
    own: Option<Namespace>,
    others: Mutex<Recent<Uuid, Namespace>>,
}

impl Known {
    pub(crate) fn new(own: Option<Namespace>) -> Self {
        Self { own, others: Mutex::new(Recent::new(REMEMBERED)) }
    }

    /// The namespace that things are in of which nothing else is known.
    pub(crate) fn own(&self) -> Option<&Namespace> {
        self.own.as_ref()
    }

    /// Notes where a thing is.
    pub(crate) fn note(&self, id: Uuid, namespace: &Namespace) {
        let is_own = match &self.own {
            Some(own) => own == namespace,
            None => *namespace == Namespace::default(),
        };
        if !is_own {
            let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
            others.keep(id, namespace.clone());
        }
    }

    /// Where a thing is looked for.
    pub(crate) fn of(&self, id: Uuid) -> Option<Namespace> {
        let found = self.others.lock().unwrap_or_else(PoisonError::into_inner).get(&id);
        found.or_else(|| self.own.clone())
    }
}
