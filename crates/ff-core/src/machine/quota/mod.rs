//! The rules of quota policies.

mod admit;
mod describe;
mod draft;
mod life;
mod slots;
#[cfg(test)]
mod tests;
mod waiting;
mod window;

pub(super) use admit::{check, confirm, release, settle_waking};
pub(super) use describe::{describe, verdict};
pub(super) use life::{create, delete, fire, update};
