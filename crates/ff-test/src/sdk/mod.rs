//! Workers and clients of the SDK over every store, with a hand on the store's clock.

mod running;
mod suite;
mod wire;
mod workshop;

pub use running::{Running, eventually};
pub use suite::{Case, on_http, on_sqlite, on_valkey};
pub use wire::{Fault, Wire};
pub use workshop::Workshop;
