//! How many executions a store holds, by state.

use std::collections::BTreeMap;
use std::fmt;

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::EngineError;
use ff_core::limits;
use ff_core::read::{Filter, Search};

/// Pages that are counted: a large store is ready as soon as a small one.
const PAGES: usize = 10;

pub(crate) struct Tally {
    counts: BTreeMap<&'static str, u64>,
    is_cut: bool,
}

impl Tally {
    pub(crate) async fn of(backend: &dyn Backend) -> Result<Self, EngineError> {
        let mut counts = BTreeMap::new();
        let mut cursor = None;
        for _ in 0..PAGES {
            let search = Search { filter: Filter::default(), cursor, limit: limits::PAGE_MAX };
            let page = backend.ask(search).await?;
            for record in &page.items {
                *counts.entry(record.state.public_state.as_str()).or_default() += 1;
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(Self { counts, is_cut: false });
            }
        }
        Ok(Self { counts, is_cut: true })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum: u64 = self.counts.values().sum();
        if self.is_cut {
            return write!(f, "more than {sum} executions");
        }
        write!(f, "{sum} executions")?;
        if self.counts.is_empty() {
            return Ok(());
        }
        let states: Vec<_> =
            self.counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
        write!(f, " ({})", states.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_listed_with_the_sum() {
        let tally = |counts, is_cut| Tally { counts, is_cut }.to_string();
        assert_eq!(tally(BTreeMap::new(), false), "0 executions");
        let counts = BTreeMap::from([("completed", 4), ("delayed", 1)]);
        assert_eq!(tally(counts.clone(), true), "more than 5 executions");
        assert_eq!(tally(counts, false), "5 executions (4 completed, 1 delayed)");
    }
}
