//! The guides' programs are compiled with the documentation's tests.

#[doc = include_str!("../../../docs/guides/clients-in-rust.md")]
mod clients {}

#[doc = include_str!("../../../docs/guides/testing-your-workers.md")]
mod testing {}

#[doc = include_str!("../../../docs/guides/workers-in-rust.md")]
mod workers {}
