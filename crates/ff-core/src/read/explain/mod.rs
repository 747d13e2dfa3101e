//! Why an execution is where it is, in words a person can act on.
//!
//! `records` tells it from the execution and what it stands under; `waiting`, `limits` and
//! `suspended` are its larger parts. `workers` adds what only the workers know, `action` writes the
//! commands and routes.

mod action;
mod explanation;
mod limits;
mod records;
mod suspended;
mod waiting;
mod workers;

pub use action::Action;
pub use explanation::{Around, Cause, Explained, Explanation, LimitFound, Upstream};
pub use records::explain;
