//! Identifiers: one newtype and one text form each.
//!
//! Parsing a text form and printing it again gives the same text. No identifier can smuggle a
//! brace, a space or a control character into a place where a store would read it as structure.

mod document;
mod execution;
mod fence;
mod for_key;
mod handle;
mod partition_key;
mod text;
mod uuids;

pub use document::{DocumentId, DocumentIdParseError, DocumentKind, Home, HomeFamily, Subject};
pub use execution::{ExecutionId, ExecutionIdParseError};
pub(crate) use fence::fence_required;
pub use fence::{Authority, LeaseFence};
pub use handle::{Handle, HandleKind};
pub use partition_key::{PartitionFamily, PartitionKey, PartitionKeyParseError};
pub use text::{
    ContentType, Dimension, IdempotencyKey, KeyId, Kid, Kind, LaneId, LaneIdError, MemberName,
    Namespace, SignalName, TextError, WaitpointKey, WorkerId, WorkerInstanceId,
};
pub use uuids::{
    AttemptId, BudgetId, BulkId, EdgeId, FlowId, LeaseId, QuotaPolicyId, SignalId, SuspensionId,
    UuidParseError, WaitpointId,
};
