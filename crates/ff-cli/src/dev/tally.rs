//! How many executions a store holds, by state.

use std::collections::BTreeMap;
use std::fmt;

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::EngineError;
use ff_core::limits;
use ff_core::read::{Filter, Search};

pub(crate) struct Tally(BTreeMap<&'static str, u64>);

impl Tally {
    pub(crate) async fn of(backend: &dyn Backend) -> Result<Self, EngineError> {
        let mut counts = BTreeMap::new();
        let mut cursor = None;
        loop {
            let search = Search { filter: Filter::default(), cursor, limit: limits::PAGE_MAX };
            let page = backend.ask(search).await?;
            for record in &page.items {
                *counts.entry(record.state.public_state.as_str()).or_default() += 1;
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(Self(counts));
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} executions", self.0.values().sum::<u64>())?;
        if self.0.is_empty() {
            return Ok(());
        }
        let states: Vec<_> =
            self.0.iter().map(|(state, count)| format!("{count} {state}")).collect();
        write!(f, " ({})", states.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_listed_with_the_sum() {
        assert_eq!(Tally(BTreeMap::new()).to_string(), "0 executions");
        let tally = Tally([("completed", 4), ("delayed", 1)].into());
        assert_eq!(tally.to_string(), "5 executions (4 completed, 1 delayed)");
    }
}
