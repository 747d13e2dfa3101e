//! The rules of budgets.

mod draft;
mod keys;
mod ledger;
mod life;
mod report;
mod scope;
#[cfg(test)]
mod tests;

pub(super) use life::{create, delete, fire, reset, settle, update};
pub(super) use report::{release, report};
pub(super) use scope::attach;
