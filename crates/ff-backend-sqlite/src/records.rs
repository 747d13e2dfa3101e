//! Decoded records of executions that were touched lately. The writer is the only one that writes,
//! so what it keeps is what the store has.

use std::collections::HashMap;
use std::sync::Arc;

use ff_core::id::ExecutionId;
use ff_core::state::Execution;
use ff_relational::Writes;

/// Records of one generation; about twice as many are kept.
const GENERATION: usize = 8192;

/// Two generations: what is asked for moves to the young one, and what was not asked for during a
/// whole generation goes.
#[derive(Debug, Default)]
pub(crate) struct Records {
    young: HashMap<ExecutionId, Arc<Execution>>,
    old: HashMap<ExecutionId, Arc<Execution>>,
}

impl Records {
    pub(crate) fn get(&mut self, id: ExecutionId) -> Option<Arc<Execution>> {
        if let Some(found) = self.young.get(&id) {
            return Some(Arc::clone(found));
        }
        let found = self.old.remove(&id)?;
        self.keep(Arc::clone(&found));
        Some(found)
    }

    /// Keeps a record that stands in the store.
    pub(crate) fn keep(&mut self, execution: Arc<Execution>) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(execution.id, execution);
    }

    /// Takes over what a committed batch wrote. What has ended is not asked for again soon.
    pub(crate) fn committed(&mut self, writes: &Writes) {
        for write in &writes.executions {
            self.old.remove(&write.id);
            match &write.after {
                Some(after) if !after.is_terminal() => self.keep(Arc::clone(after)),
                _ => {
                    self.young.remove(&write.id);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ff_core::id::{Kind, LaneId};
    use ff_core::machine::{Overlay, Settings, apply};
    use ff_core::operation::Submit;
    use ff_core::partition::PartitionConfig;
    use ff_core::time::TimestampMs;
    use uuid::Uuid;

    use super::*;

    fn execution(n: usize) -> Arc<Execution> {
        let id = ExecutionId::new(0, Uuid::from_u128(n as u128));
        let settings = Settings::new("sqlite", PartitionConfig::default());
        let mut overlay = Overlay::new(Arc::new(settings));
        overlay.supply_execution(id, None);
        let submit = Submit::new(id, LaneId::new("lane").unwrap(), Kind::new("kind").unwrap());
        let step = apply(&overlay, &submit.into(), TimestampMs(1)).unwrap();
        step.changes.executions[0].after.clone().unwrap()
    }

    #[test]
    fn what_is_used_stays_and_the_rest_goes() {
        let mut records = Records::default();
        let first = execution(0);
        records.keep(Arc::clone(&first));
        for n in 1..=4 * GENERATION {
            records.keep(execution(n));
            if n % 100 == 0 {
                assert!(records.get(first.id).is_some(), "still used after {n}");
            }
        }
        assert!(records.young.len() + records.old.len() <= 2 * GENERATION + 1);
        assert!(records.get(execution(1).id).is_none());
    }
}
