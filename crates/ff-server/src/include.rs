//! What comes with a record on demand.

use ff_api::bytes::Base64;
use ff_api::execution::Record;
use ff_api::search::Include;
use ff_core::backend::{Backend, BackendExt as _};
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::limits;
use ff_core::read::{self, ListAttempts, ReadContext, ReadResult};
use ff_core::state::Scope;

use crate::caller::Caller;

/// Refuses parts that the caller has no scope for.
pub(crate) fn check(caller: &Caller, include: Include) -> Result<(), Refusal> {
    if include.payload || include.result {
        caller.need(Scope::PayloadsRead)?;
    }
    Ok(())
}

/// The record, with all that was asked for.
pub(crate) async fn record(
    backend: &dyn Backend,
    found: read::Record,
    include: Include,
) -> Result<Record, EngineError> {
    let execution_id = found.execution_id;
    let mut record = Record::from(found);
    if include.payload {
        let context = backend.ask(ReadContext { execution_id }).await?;
        record.payload_b64 = context.map(|context| Base64(context.payload));
    }
    if include.result {
        match backend.ask(ReadResult { execution_id, attempt_index: None }).await {
            Ok(result) => record.add_result(result),
            Err(error) if error.code() == Code::ResultNotFound => {}
            Err(error) => return Err(error),
        }
    }
    if include.attempts {
        let limit = limits::PAGE_MAX;
        let page = backend.ask(ListAttempts { execution_id, after: None, limit }).await?;
        record.attempts = Some(page.items.into_iter().map(Into::into).collect());
    }
    Ok(record)
}
