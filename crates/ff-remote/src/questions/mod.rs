//! Questions as requests, group by group.

pub(crate) mod execution;
pub(crate) mod fleet;
pub(crate) mod flow;
pub(crate) mod limit;
pub(crate) mod output;
pub(crate) mod page;
pub(crate) mod system;
pub(crate) mod wait;
