//! The rules of flows.
//!
//! A member's record says what it is to its flow: its group, and how many edges lead from it and to
//! it. The edges stand in pages beside their two ends; the state of an edge is not kept but follows
//! from its upstream. What follows from the end of a member happens in `settle`, after the rule
//! that ended it, in the same step: so no rule can forget it. A step touches a bounded number of
//! members; the rest is left as work of the flow (`work.rs`) and carried on at once.

mod cancel;
mod children;
mod create;
mod edges;
mod gone;
mod inputs;
mod members;
mod pages;
mod read;
mod replay;
mod resolve;
mod scene;
mod settle;
mod submit;
#[cfg(test)]
mod tests;
mod work;

pub(super) use cancel::cancel;
pub(super) use children::wait;
pub(super) use create::{create, set_tags};
pub(super) use edges::{apply, resolve, set_policy, stage};
pub(super) use gone::remove_member;
pub(super) use inputs::{inputs, want_start};
pub(super) use members::{add, check_submit, delete, submit_into};
pub(super) use read::{describe_edge, eligibility, list_edges, list_members, waited_for};
pub(super) use replay::{replay_flow, replay_member};
pub(crate) use resolve::{SIBLING_IMPOSSIBLE, SIBLING_SATISFIED};
pub(super) use scene::Scene;
use settle::{
    already_terminal, existing, not_found, not_in_flow, not_terminal, open, still_at_work,
    without_members,
};
pub(super) use settle::{reply_of, settle, stopped, stops};
pub(super) use submit::submit;
pub(super) use work::cascade;
