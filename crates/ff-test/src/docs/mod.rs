//! Pages of the documentation that are made by the code, so that they cannot be wrong.

pub mod errors;
pub mod state_table;
