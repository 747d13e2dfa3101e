//! The conformance suite: one body of tests for every backend.
//!
//! `ff_test::conformance!(path::to::make_world)` makes one test of every case below. A case takes
//! a fresh [`crate::world::World`] and tells, by its name, the rule that it checks.

#[macro_use]
mod suite;

pub mod submit;

suite! { ($)
    submit {
        a_new_execution_waits_for_a_worker
    }
}
