//! Revisions of records, and changes on condition: only of what the caller has seen.

use crate::error::{Code, Refusal};
use crate::time::TimestampMs;

/// Changes of one thing in a millisecond that are told apart from those of its successor. With so many
/// the revision fits into 48 bits.
const CHANGES_BITS: u32 = 6;

/// The revision before the first of what is made now. Whoever remembers a thing by its id and revision
/// must not take another one for it that was made under the same id after it was removed.
pub(super) fn before_first(now: TimestampMs) -> u64 {
    now.0.max(0).unsigned_abs() << CHANGES_BITS
}

/// Refuses the change of a thing that is not at the expected revision.
pub(super) fn check_revision(expected: Option<u64>, revision: u64) -> Result<(), Refusal> {
    match expected {
        Some(expected) if expected != revision => {
            let detail = format!("the revision is {revision}, expected was {expected}");
            Err(Refusal::new(Code::PreconditionFailed, detail))
        }
        _ => Ok(()),
    }
}
