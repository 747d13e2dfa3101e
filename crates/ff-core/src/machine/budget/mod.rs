//! The rules of budgets.

mod draft;
mod keys;
mod ledger;
mod life;
mod report;
#[cfg(test)]
mod tests;

pub(super) use life::{create, delete, fire, reset, update};
pub(super) use report::{release, report};
