//! The oracle: the machine with all facts at hand. It never lacks one, keeps no index that could be
//! wrong, and is slow on purpose.

mod backend;
mod fleet;
mod frames;
mod routes;
mod state;

pub use backend::Oracle;
pub use state::State;
