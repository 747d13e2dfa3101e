//! A change on condition: only of what the caller has seen.

use crate::error::{Code, Refusal};

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
