//! The guide, so that its programs are compiled and run with the tests of the documentation.

#![doc = include_str!("../../../../docs/guides/workers-in-rust.md")]
