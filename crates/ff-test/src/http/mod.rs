//! A live server over a store of a test's own, and a client of it.

mod answer;
mod site;
mod suite;
mod tenant;

pub use answer::{Answer, SseEvent, base64_of, bytes_of, merged};
pub use site::{Site, Task};
pub use suite::{Case, on_sqlite, on_valkey};
pub use tenant::Tenant;
