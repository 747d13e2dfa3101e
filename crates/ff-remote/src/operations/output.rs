//! Output of attempts.

use ff_api::frame::{Append, Appended as AppendedForm};
use ff_core::operation::{AppendFrames, Appended};

use super::Asked;
use super::execution::post_fenced;
use crate::exchange::Exchange;
use crate::link::Link;

pub(crate) fn append(link: &Link, op: AppendFrames) -> Asked<Appended> {
    let (id, fence) = (op.execution_id, op.fence);
    let request = post_fenced(link, id, "frames", fence, Append::from(op))?;
    Ok(Exchange::plain::<AppendedForm>(request))
}
