//! Random operations on the oracle and on a store, every reply and the whole state compared.
//!
//! A sequence is data: each [`Op`] names executions and tasks by their place in the lists of what
//! came before, so a sequence with parts cut out still means something. That is what lets a
//! failure shrink to a few operations. [`run`] is the way in.

mod admissions;
mod compare;
mod coverage;
mod crowd;
mod fleet;
mod flows;
mod generate;
mod grants;
mod limits;
mod op;
mod output;
mod replay;
mod shrink;
mod waits;

pub use coverage::{Coverage, OPERATIONS, STATES, state_of};
pub use crowd::crowd;
pub use generate::generate;
pub use op::{FenceOf, Op, Target};
pub use replay::{Failure, replay};
pub use shrink::{Plan, run};
