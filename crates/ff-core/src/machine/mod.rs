//! The rules, written once.
//!
//! [`apply`] and [`claim`] take facts, a command and the time, and answer with a reply and the
//! changes that make it true. They are total and pure: no I/O, no clock, no randomness. A fact that
//! is not at hand is a *need*; the caller loads all needs and runs the step again, which costs
//! nothing because nothing was written. Reply and changes are independent: a refusal may carry
//! changes (an expired lease is refused *and* its expiry performed).
//!
//! Stores do not decide. They load what a step needs, perform its [`Changes`], and derive queue
//! places and timers from the executions before and after.

mod admission;
mod apply;
mod around;
mod budget;
mod bulk;
mod cancel;
mod claim;
mod complete;
mod consult;
mod delay;
mod delete;
mod document;
mod draft;
mod errands;
mod extras;
mod facts;
mod fail;
mod fence;
mod flow;
mod frame;
mod grant;
mod hold;
mod key;
mod lane;
mod layered;
mod namespace;
mod overlay;
mod pages;
mod priority;
mod progress;
mod quota;
mod renew;
mod replay;
mod revision;
mod revoke;
mod rows;
mod secret;
mod signal;
mod standing;
mod step;
mod submit;
mod suspend;
mod tags;
mod tick;
mod transition;
#[cfg(test)]
mod trial;
mod waitpoint;
mod waits;
mod worker;

pub use apply::{apply, check};
pub use claim::{Gate, LeaseTerms, claim, gate, lease, set_aside};
pub use consult::consult;
pub use extras::extras;
pub use facts::{
    Candidates, DedupKey, DedupRecord, DedupScope, DueList, Facts, Known, Need, Needs, QueueView,
    Settings,
};
pub(crate) use flow::{SIBLING_IMPOSSIBLE, SIBLING_SATISFIED};
pub use overlay::Overlay;
pub use rows::{Family, RowChange, RowKey, decode as decode_row};
pub use standing::of_execution as standing_of;
pub use step::{Changed, ChangedDocument, Changes, FrameChange, PassedSibling, ShelfChange, Step};
