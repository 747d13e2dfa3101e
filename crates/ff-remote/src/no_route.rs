//! What a client cannot ask a server for, and why.

use ff_core::error::{Code, EngineError, Refusal};

/// Why an operation has no route.
const TIME: &str = "the server's engine lets time pass by itself";
const ADMISSION: &str = "the server asks limits by itself, with the claim";
const ERRAND: &str = "the server carries out what steps mean elsewhere by itself";
const BY_ACT: &str = "the server does it as a part of an act: see ff_core::act";
const FLEET: &str = "the server's engine watches leases and workers by itself";
const SECRET: &str = "secrets of a store stay with its server";
const INSIDE: &str = "it tells of the inside of a store, which a server does not show";

/// Operations without a route, by their names, each with the reason.
pub const OPERATIONS: &[(&str, &str)] = &[
    ("issue_claim_grant", "a scheduler asks for the next execution of a worker: claim_for_worker"),
    (
        "reclaim_execution",
        "no route uses a reclaim grant; what lost its lease is claimed like other work",
    ),
    ("expire_execution", TIME),
    ("promote_delayed", TIME),
    ("mark_lease_expired_if_due", TIME),
    ("tick", TIME),
    ("resolve_dependency", ERRAND),
    ("cascade_completion", "the server carries flows on by itself"),
    ("record_spend", ERRAND),
    ("recount_budget", "the server's engine compares usage with ledgers by itself"),
    ("disown_usage", ERRAND),
    ("attach_budget", ERRAND),
    ("settle_budget", ERRAND),
    ("end_for_budget", ERRAND),
    ("check_admission", ADMISSION),
    ("confirm_admission", ADMISSION),
    ("release_admission", ADMISSION),
    ("settle_waking", ERRAND),
    ("heartbeat_worker", BY_ACT),
    ("settle_worker_loss", FLEET),
    ("note_cancellations", FLEET),
    ("lose_lease", FLEET),
    ("create_key", "the server makes the secret of a key itself: `ff key create`"),
    ("advance_bulk", "the server's engine carries bulk operations on by itself"),
    ("block_execution_for_admission", ADMISSION),
    ("unblock_execution", ERRAND),
    ("claim_admitted", ADMISSION),
    ("grant_admitted", ADMISSION),
    ("void_admission", ADMISSION),
    ("settle_slots", ERRAND),
    ("seed_waitpoint_hmac_secret", SECRET),
    ("rotate_waitpoint_hmac_secret", SECRET),
];

/// Questions without a route, by their names, each with the reason.
pub const QUESTIONS: &[(&str, &str)] = &[
    ("explain", BY_ACT),
    ("list_suspended", INSIDE),
    ("describe_edge", "edges are read together: list_edges"),
    ("evaluate_flow_eligibility", INSIDE),
    ("leases_of", FLEET),
    ("list_expired_leases", FLEET),
    ("list_blocked", INSIDE),
    ("list_limited", INSIDE),
    ("get_key", SECRET),
    ("list_keys", SECRET),
    ("get_bulk", "a server does not tell whom a bulk operation acts on: GET /v1/bulk/{bulk_id}"),
    ("list_bulks", "a server does not tell whom bulk operations act on: GET /v1/bulk"),
    ("read_standing", ADMISSION),
    ("read_lane_standing", ADMISSION),
    ("list_routes", INSIDE),
    ("list_queued", INSIDE),
    ("list_unrouted", INSIDE),
    ("list_offers", INSIDE),
    ("list_fleets", INSIDE),
    ("list_namespaces", INSIDE),
    ("list_cancel_backlog", INSIDE),
    ("due", TIME),
];

/// The refusal of what has no route.
pub(crate) fn refused(name: &str, why: &str) -> EngineError {
    Refusal::new(Code::RouteNotFound, format!("no server is asked for {name}: {why}")).into()
}

/// The same of an operation or a question of these tables.
pub(crate) fn listed(name: &str) -> EngineError {
    let all = OPERATIONS.iter().chain(QUESTIONS);
    let why = all.clone().find(|(known, _)| *known == name).map_or("", |(_, why)| why);
    refused(name, why)
}

#[cfg(test)]
mod tests {
    use ff_core::operation::Command;

    use super::*;
    use crate::command::SERVED;

    #[test]
    fn every_operation_is_served_or_has_its_reason() {
        for name in Command::NAMES {
            let unserved = OPERATIONS.iter().any(|(known, why)| known == name && !why.is_empty());
            assert_ne!(SERVED.contains(name), unserved, "{name}");
        }
        assert_eq!(SERVED.len() + OPERATIONS.len(), Command::NAMES.len());
    }
}
