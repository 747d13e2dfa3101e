//! The rules of budgets.

mod draft;
mod keys;
mod ledger;
mod life;
mod recount;
mod release;
mod report;
mod scope;
#[cfg(test)]
mod tests;

pub(super) use ledger::read as read_ledger;
pub(super) use life::{create, delete, fire, reset, settle, update};
pub(super) use recount::recount;
pub(super) use release::{disown, release};
pub(super) use report::report;
pub(super) use scope::attach;
