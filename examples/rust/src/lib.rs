//! What all examples share: where they keep their work. Each example is a program of its own in
//! `src/bin`.

mod store;

pub use store::{PATIENCE, Store, StoreArgs};
