//! Why an execution is where it is, in words a person can act on.
//!
//! `records` tells it from the execution and what it stands under; `waiting` and `limits` are its
//! larger parts. `workers` adds what only the workers know.

mod explanation;
mod limits;
mod records;
mod waiting;
mod workers;

pub use explanation::{Action, Around, Cause, Explained, Explanation, LimitFound, Upstream};
pub use records::explain;
