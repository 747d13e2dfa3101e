//! Classes: executions of one lane that require the same capabilities share a queue, and the name
//! of the class is a hash of what they require.

use std::sync::{Mutex, MutexGuard, PoisonError};

use ff_core::capability::Capabilities;
use ff_core::error::EngineError;
use ff_core::recent::Recent;

use crate::keys::{NO_CAPABILITIES, REQUIRED};
use crate::reply;
use crate::store::Shared;

/// Classes of one generation; about twice as many are kept.
const GENERATION: usize = 4096;

/// What classes require. A name is a hash, so what was read stays true.
#[derive(Debug)]
pub(crate) struct Classes(Mutex<Recent<String, Capabilities>>);

impl Classes {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Recent::new(GENERATION)))
    }

    /// What the class of a queue requires; none when the queue has no entries any more.
    pub(crate) async fn required(
        &self,
        shared: &Shared,
        partition: u16,
        (queue, class): (&str, &str),
    ) -> Result<Option<Capabilities>, EngineError> {
        if let Some(known) = self.known(class) {
            return Ok(Some(known));
        }
        let mut command = redis::cmd("HGET");
        command.arg(shared.keys.index(partition, REQUIRED)).arg(queue);
        let Some(csv) = reply::bytes(shared.send(partition, &command).await?)? else {
            return Ok(None);
        };
        let csv = std::str::from_utf8(&csv).unwrap_or_default();
        let required = Capabilities::from_csv(csv)?;
        self.lock().keep(class.to_owned(), required.clone());
        Ok(Some(required))
    }

    /// What a class requires, if this process knows it.
    pub(crate) fn known(&self, class: &str) -> Option<Capabilities> {
        if class == NO_CAPABILITIES {
            return Some(Capabilities::default());
        }
        self.lock().get(&class.to_owned())
    }

    /// Learns a class that this process has made use of; true when it is new here.
    pub(crate) fn learn(&self, class: &str, required: &Capabilities) -> bool {
        let mut known = self.lock();
        let new = known.get(&class.to_owned()).is_none();
        if new {
            known.keep(class.to_owned(), required.clone());
        }
        new
    }

    /// Names of the known classes that a worker with these capabilities covers.
    pub(crate) fn covered_by(&self, capabilities: &Capabilities) -> Vec<String> {
        let known = self.lock();
        let covered = known.iter().filter(|(_, required)| capabilities.covers(required));
        covered.map(|(class, _)| class.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Recent<String, Capabilities>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
