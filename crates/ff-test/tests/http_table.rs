//! The table of routes against the contract.

/// The routes of the contract that are served, by group; `X` stands for one execution.
const CLAIMED: &[(&str, &str)] = &[
    ("POST", "/v1/executions"),
    ("POST", "/v1/executions/batch"),
    ("GET", "/v1/executions"),
    ("POST", "/v1/executions/search"),
    ("GET", "X"),
    ("GET", "X/state"),
    ("GET", "X/result"),
    ("GET", "X/payload"),
    ("GET", "X/attempts"),
    ("GET", "X/attempts/{attempt_index}"),
    ("GET", "X/signals"),
    ("GET", "X/events"),
    ("GET", "X/explain"),
    ("POST", "X/cancel"),
    ("PUT", "X/priority"),
    ("POST", "X/replay"),
    ("POST", "X/revoke-lease"),
    ("POST", "X/hold"),
    ("POST", "X/release"),
    ("POST", "X/resume"),
    ("PATCH", "X/tags"),
    ("DELETE", "X"),
    ("POST", "/v1/workers"),
    ("GET", "/v1/workers"),
    ("GET", "/v1/workers/{worker_instance_id}"),
    ("POST", "/v1/workers/{worker_instance_id}/heartbeat"),
    ("POST", "/v1/workers/{worker_instance_id}/drain"),
    ("POST", "/v1/workers/{worker_instance_id}/mark-dead"),
    ("DELETE", "/v1/workers/{worker_instance_id}"),
    ("POST", "/v1/workers/{worker_id}/claim"),
    ("POST", "/v1/leases"),
    ("POST", "/v1/leases/renew"),
    ("POST", "X/claim"),
    ("POST", "X/reclaim"),
    ("POST", "X/grant-and-claim"),
    ("POST", "X/renew"),
    ("POST", "X/progress"),
    ("POST", "X/frames"),
    ("POST", "X/usage"),
    ("POST", "X/complete"),
    ("POST", "X/fail"),
    ("POST", "X/delay"),
    ("POST", "X/wait-children"),
    ("POST", "X/waitpoints"),
    ("POST", "X/suspend"),
    ("GET", "X/resume-signals"),
    ("POST", "X/signal"),
    ("GET", "X/pending-waitpoints"),
    ("GET", "/v1/waitpoints"),
    ("GET", "X/waitpoints/{waitpoint}/token"),
    ("POST", "X/waitpoints/{waitpoint}/token"),
    ("POST", "X/waitpoints/{waitpoint}/approve"),
    ("POST", "X/waitpoints/{waitpoint}/deny"),
    ("POST", "X/waitpoints/{waitpoint}/close"),
    ("GET", "X/attempts/{attempt_index}/stream"),
    ("GET", "X/attempts/{attempt_index}/stream/tail"),
    ("GET", "X/attempts/{attempt_index}/summary"),
    ("GET", "X/stream"),
    ("GET", "/v1/events"),
    ("POST", "/v1/keys"),
    ("GET", "/v1/keys"),
    ("DELETE", "/v1/keys/{key_id}"),
    ("GET", "/v1/capabilities"),
    ("GET", "/healthz"),
    ("GET", "/livez"),
    ("GET", "/readyz"),
    ("GET", "/version"),
    ("GET", "/openapi.json"),
    ("GET", "/docs"),
    ("GET", "/metrics"),
    ("GET", "/problems/{code}"),
];

#[test]
fn what_is_claimed_is_served_and_nothing_else() {
    let full = |(method, path): &(&str, &str)| {
        let path = match path.strip_prefix('X') {
            Some(rest) => format!("/v1/executions/{{execution_id}}{rest}"),
            None => (*path).to_owned(),
        };
        format!("{method} {path}")
    };
    let mut claimed: Vec<String> = CLAIMED.iter().map(full).collect();
    let mut served: Vec<String> = ff_server::served().iter().map(full).collect();
    claimed.sort_unstable();
    served.sort_unstable();
    assert_eq!(served, claimed);
}
