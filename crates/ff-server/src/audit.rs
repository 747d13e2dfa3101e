//! The audit log: who did what to which thing, and what came of it.
//!
//! Entries go to the target `audit` of the log. They name keys by their ids and things by their names;
//! no part of them is ever a secret.

use axum::response::Response;

use crate::caller::Caller;
use crate::failure::Failed;
use crate::route::Route;
use crate::trace::Trace;

/// What a request made, told by the handler where the path does not name it.
#[derive(Debug, Clone)]
pub(crate) struct Made(pub(crate) String);

/// Writes the entry of a request for a route that is audited.
pub(crate) fn note(
    route: &Route,
    caller: Option<&Caller>,
    things: &[(String, String)],
    answered: &Result<Response, Failed>,
    trace: &Trace,
) {
    if !route.is_audited() {
        return;
    }
    let made = answered.as_ref().ok().and_then(|response| response.extensions().get::<Made>());
    let thing = match made {
        Some(Made(name)) => name.clone(),
        None => things.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" "),
    };
    let outcome = match answered {
        Ok(_) => "ok",
        Err(failed) => failed.code().as_str(),
    };
    tracing::info!(
        target: "audit",
        key = caller.map_or("none", Caller::label),
        action = %format_args!("{} {}", route.verb.as_str(), route.path),
        thing,
        outcome,
        trace_id = %trace.id,
        "audited"
    );
}
