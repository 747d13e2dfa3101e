//! Settings of `ff server` and `ff dev`: a file, the environment, flags; what comes later wins.
//!
//! [`field::fields`] is the table of all settings, one line each: how a value is read, checked, put
//! into the options of its component, and shown. [`layers`] finds the values, [`print`] tells them.

mod field;
mod given;
mod layers;
mod print;
mod settings;

pub(crate) use layers::{Flags, Loaded, Misconfigured, load};
pub(crate) use print::toml;
pub(crate) use settings::{Format, Settings};
#[cfg(test)]
mod page;
