//! Every route of the table with keys: which scope it needs, and that nothing of another tenant, or of
//! another lane, is there. A route that this table does not know fails the test.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use ff_test::http::{Answer, Site, Task, Tenant, merged};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

ff_test::on_every_store! {
    every_route_needs_its_scopes_and_nothing_else
    nothing_of_another_tenant_is_there
    nothing_of_another_lane_is_there
    parts_of_a_record_need_their_scope
    an_operator_without_a_fence_needs_a_scope_of_its_own
    what_a_bulk_operation_does_decides_its_scope
    what_a_bulk_operation_does_decides_who_may_stop_it
    lists_leave_other_lanes_out
    listed_executions_are_of_the_lanes_of_the_key
    claims_stay_on_the_lanes_of_the_key
    a_flow_needs_the_lanes_of_all_its_members
}

/// What somebody gets who may not see the thing that the request is about.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stranger {
    /// The route is about nothing that belongs to anybody.
    Served,
    /// It is not there.
    NotFound(&'static str),
    /// A list without it.
    Empty,
    /// Each item is answered on its own, with a code of this kind.
    Item(&'static str),
    /// What is named is another's.
    Forbidden,
}
use Stranger::{Empty, Forbidden, Item, NotFound, Served};

/// One route, a well formed request for it, and what becomes of it.
struct Row {
    method: &'static str,
    path: &'static str,
    scopes: &'static [&'static str],
    body: Value,
    /// For a key of another namespace.
    other_tenant: Stranger,
    /// For a key of another lane.
    other_lane: Stranger,
}

const READ: &[&str] = &["executions:read"];
const WRITE: &[&str] = &["executions:write"];
const PAYLOADS: &[&str] = &["executions:read", "payloads:read"];
const CLAIM: &[&str] = &["workers:claim"];
const APPROVE: &[&str] = &["signals:approve"];
const SEND: &[&str] = &["signals:send"];
const EVENTS: &[&str] = &["events:read"];
const ADMIN: &[&str] = &["admin"];
const FLOWS: &[&str] = &["flows:write"];
const BUDGETS: &[&str] = &["budgets:write"];
const LANES: &[&str] = &["lanes:write"];
const METRICS: &[&str] = &["metrics:read"];
const OPEN: &[&str] = &[];

const GONE: Stranger = NotFound("execution_not_found");
const NO_FLOW: Stranger = NotFound("flow_not_found");
const NO_BUDGET: Stranger = NotFound("budget_not_found");
const NO_QUOTA: Stranger = NotFound("quota_policy_not_found");
const NO_BULK: Stranger = NotFound("bulk_not_found");
const NO_WORKER: Stranger = NotFound("worker_not_found");
const UNREGISTERED: Stranger = NotFound("worker_not_registered");

fn row(
    route: &'static str,
    scopes: &'static [&'static str],
    body: Value,
    (other_tenant, other_lane): (Stranger, Stranger),
) -> Row {
    let (method, path) = route.split_once(' ').unwrap();
    Row { method, path, scopes, body, other_tenant, other_lane }
}

/// A route about the execution of its path, written `X`.
fn of_execution(route: &'static str, scopes: &'static [&'static str], body: Value) -> Row {
    row(route, scopes, body, (GONE, GONE))
}

/// The whole table. Bodies that show a fence show the one of `task`.
fn rows(task: &Task, things: &Things) -> Vec<Row> {
    let mut rows = executions(task);
    rows.extend(workers(task));
    rows.extend(waits(task));
    rows.extend(flows(things, task));
    rows.extend(limits(task));
    rows.extend(fleet());
    rows.extend(rest());
    rows
}

fn executions(task: &Task) -> Vec<Row> {
    let none = || json!({});
    let submit = json!({ "lane": "l", "kind": "k" });
    let batch = json!({ "items": [submit] });
    let tags = json!({ "tags": { "a.b": "c" } });
    let mut rows = vec![
        row("POST /v1/executions", WRITE, submit, (Served, Forbidden)),
        row("POST /v1/executions/batch", WRITE, batch, (Served, Item("forbidden"))),
        row("GET /v1/executions", READ, none(), (Empty, Empty)),
        row("POST /v1/executions/search", READ, none(), (Empty, Empty)),
        of_execution("PUT X/priority", WRITE, json!({ "new_priority": 1 })),
        of_execution("PATCH X/tags", WRITE, tags),
        of_execution("DELETE X", ADMIN, none()),
        of_execution("GET X/events", EVENTS, none()),
        of_execution("POST X/usage", CLAIM, task.with(json!({ "dimensions": { "a": 1 } }))),
    ];
    for route in ["GET X", "GET X/state", "GET X/attempts", "GET X/attempts/{attempt_index}"] {
        rows.push(of_execution(route, READ, none()));
    }
    rows.push(of_execution("GET X/explain", READ, none()));
    rows.push(of_execution("GET X/pending-waitpoints", READ, none()));
    for route in [
        "GET X/result",
        "GET X/payload",
        "GET X/signals",
        "GET X/resume-signals",
        "GET X/stream",
        "GET X/attempts/{attempt_index}/stream",
        "GET X/attempts/{attempt_index}/stream/tail",
        "GET X/attempts/{attempt_index}/summary",
    ] {
        rows.push(of_execution(route, PAYLOADS, none()));
    }
    for route in [
        "POST X/cancel",
        "POST X/replay",
        "POST X/revoke-lease",
        "POST X/hold",
        "POST X/release",
        "POST X/resume",
    ] {
        rows.push(of_execution(route, WRITE, none()));
    }
    rows
}

fn workers(task: &Task) -> Vec<Row> {
    let none = || json!({});
    let by_name = || json!({ "worker_id": "w", "worker_instance_id": "w-1" });
    let register = merged(by_name(), json!({ "boot_id": "b1", "lanes": ["l"] }));
    let lease = json!({ "execution_id": task.id, "handle": task.handle });
    let claim = merged(by_name(), json!({ "lanes": ["l"], "capabilities": [] }));
    let for_worker = json!({ "lane": "l", "worker_instance_id": "w-1" });
    let reclaim = merged(by_name(), json!({ "lane": "l" }));
    let frames = task.with(json!({ "frames": [{ "type": "x" }] }));
    vec![
        row("POST /v1/workers", CLAIM, register, (Served, Forbidden)),
        row("GET /v1/workers", READ, none(), (Empty, Empty)),
        row("GET /v1/workers/{worker_instance_id}", READ, none(), (NO_WORKER, NO_WORKER)),
        row(
            "POST /v1/workers/{worker_instance_id}/heartbeat",
            CLAIM,
            json!({ "boot_id": "b1" }),
            (NO_WORKER, NO_WORKER),
        ),
        row("POST /v1/workers/{worker_instance_id}/drain", CLAIM, none(), (NO_WORKER, NO_WORKER)),
        row(
            "POST /v1/workers/{worker_instance_id}/mark-dead",
            CLAIM,
            none(),
            (NO_WORKER, NO_WORKER),
        ),
        // What is not registered is already gone.
        row("DELETE /v1/workers/{worker_instance_id}", CLAIM, none(), (Served, NO_WORKER)),
        row("POST /v1/workers/{worker_id}/claim", CLAIM, for_worker, (UNREGISTERED, Forbidden)),
        row("POST /v1/leases", CLAIM, claim, (UNREGISTERED, Forbidden)),
        row(
            "POST /v1/leases/renew",
            CLAIM,
            json!({ "items": [lease] }),
            (Item("execution_not_found"), Item("execution_not_found")),
        ),
        of_execution("POST X/claim", CLAIM, by_name()),
        row("POST X/reclaim", CLAIM, reclaim, (GONE, Forbidden)),
        of_execution("POST X/grant-and-claim", ADMIN, by_name()),
        of_execution("POST X/renew", CLAIM, task.with(none())),
        of_execution("POST X/progress", CLAIM, task.with(json!({ "pct": 1 }))),
        of_execution("POST X/frames", CLAIM, frames),
        of_execution("POST X/complete", CLAIM, task.with(none())),
        of_execution("POST X/fail", CLAIM, task.with(json!({ "reason": "r", "category": "c" }))),
        of_execution("POST X/delay", CLAIM, task.with(json!({ "delay_ms": 1 }))),
        of_execution("POST X/wait-children", CLAIM, task.with(none())),
    ]
}

fn waits(task: &Task) -> Vec<Row> {
    let none = || json!({});
    let suspend = task.with(json!({ "bindings": [], "condition": "operator_only" }));
    let signal = json!({ "waitpoint_key": "k", "name": "n", "token": "k1:0:00" });
    vec![
        of_execution("POST X/waitpoints", CLAIM, task.with(json!({ "key": "k" }))),
        of_execution("POST X/suspend", CLAIM, suspend),
        of_execution("POST X/signal", SEND, signal),
        row("GET /v1/waitpoints", READ, none(), (Empty, Empty)),
        of_execution("GET X/waitpoints/{waitpoint}/token", ADMIN, none()),
        of_execution("POST X/waitpoints/{waitpoint}/token", ADMIN, none()),
        of_execution("POST X/waitpoints/{waitpoint}/approve", APPROVE, none()),
        of_execution("POST X/waitpoints/{waitpoint}/deny", APPROVE, none()),
        of_execution("POST X/waitpoints/{waitpoint}/close", WRITE, none()),
    ]
}

fn flows(things: &Things, task: &Task) -> Vec<Row> {
    let none = || json!({});
    let empty = json!({ "kind": "k" });
    let edge = json!({ "upstream": things.member, "downstream": things.other_member });
    let mut rows = vec![
        row("POST /v1/flows", FLOWS, empty, (Served, Served)),
        row("GET /v1/flows", READ, none(), (Empty, Empty)),
    ];
    for (route, scopes, body) in [
        ("GET F", READ, none()),
        ("GET F/graph", READ, none()),
        ("GET F/members", READ, none()),
        ("GET F/edges", READ, none()),
        ("GET F/events", EVENTS, none()),
        ("POST F/members", FLOWS, json!({ "execution_id": task.id })),
        ("POST F/edges", FLOWS, edge),
        ("POST F/edges/apply", FLOWS, json!({ "edge_id": things.edge })),
        ("PUT F/groups/{execution_id}", FLOWS, json!({ "policy": "all_of" })),
        ("PATCH F/tags", FLOWS, json!({ "tags": { "a.b": "c" } })),
        ("POST F/replay", FLOWS, none()),
        ("POST F/cancel", FLOWS, none()),
        ("DELETE F", ADMIN, none()),
    ] {
        rows.push(row(route, scopes, body, (NO_FLOW, NO_FLOW)));
    }
    rows
}

/// Limits belong to the namespace: a key of another lane reaches them too.
fn limits(task: &Task) -> Vec<Row> {
    let none = || json!({});
    let budget = json!({
        "scope_type": "lane", "scope_id": "l", "dimensions": { "a": { "hard": 9 } },
    });
    let quota = json!({ "window_seconds": 1, "max_requests_per_window": 1, "max_concurrent": 1 });
    let usage = json!({ "dimensions": { "a": 1 } });
    let release = json!({ "execution_id": task.id });
    let limits = json!({ "dimensions": { "a": { "hard": 10 } } });
    let mut rows = vec![
        row("POST /v1/budgets", BUDGETS, budget, (Served, Forbidden)),
        row("GET /v1/budgets", READ, none(), (Empty, Served)),
        row("POST /v1/quotas", BUDGETS, quota, (Served, Served)),
        row("GET /v1/quotas", READ, none(), (Empty, Served)),
        row("GET /v1/quotas/{quota_policy_id}/holders", READ, none(), (NO_QUOTA, Empty)),
        row("POST /v1/budgets/{budget_id}/release", BUDGETS, release, (NO_BUDGET, GONE)),
        row("GET /v1/budgets/{budget_id}/ledgers/{execution_id}", READ, none(), (NO_BUDGET, GONE)),
    ];
    for (route, scopes, body) in [
        ("GET /v1/budgets/{budget_id}", READ, none()),
        ("PATCH /v1/budgets/{budget_id}", BUDGETS, limits),
        ("POST /v1/budgets/{budget_id}/usage", BUDGETS, usage),
        ("POST /v1/budgets/{budget_id}/reset", BUDGETS, none()),
        ("DELETE /v1/budgets/{budget_id}", BUDGETS, none()),
    ] {
        rows.push(row(route, scopes, body, (NO_BUDGET, Served)));
    }
    for (route, scopes, body) in [
        ("GET /v1/quotas/{quota_policy_id}", READ, none()),
        ("PATCH /v1/quotas/{quota_policy_id}", BUDGETS, json!({ "max_concurrent": 2 })),
        ("DELETE /v1/quotas/{quota_policy_id}", BUDGETS, none()),
    ] {
        rows.push(row(route, scopes, body, (NO_QUOTA, Served)));
    }
    rows
}

fn fleet() -> Vec<Row> {
    let none = || json!({});
    let bulk = json!({ "action": "hold", "filter": { "lane": "l" }, "dry_run": true });
    let secret = json!({ "new_kid": "k2", "new_secret_hex": "ab".repeat(32) });
    let mut rows = vec![
        row("GET /v1/lanes", READ, none(), (Empty, Empty)),
        // A namespace that nobody has said anything of has the lane as well, and nothing stands in it.
        row("GET /v1/lanes/{lane}", READ, none(), (Served, Forbidden)),
        row("GET /v1/namespaces/{namespace}", READ, none(), (Forbidden, Served)),
        row("PATCH /v1/namespaces/{namespace}", LANES, none(), (Forbidden, Forbidden)),
        row("POST /v1/bulk", WRITE, bulk, (Served, Forbidden)),
        row("GET /v1/bulk", READ, none(), (Empty, Empty)),
        row("GET /v1/bulk/{bulk_id}", READ, none(), (NO_BULK, NO_BULK)),
        row("GET /v1/system/scanners", READ, none(), (Served, Served)),
        row("GET /v1/system/invariants", READ, none(), (Forbidden, Forbidden)),
        row("POST /v1/system/audit", ADMIN, none(), (Forbidden, Forbidden)),
        row("POST /v1/admin/rotate-waitpoint-secret", ADMIN, secret, (Forbidden, Forbidden)),
        row("GET /v1/admin/waitpoint-kids", ADMIN, none(), (Forbidden, Forbidden)),
    ];
    for route in ["pause", "resume", "drain"] {
        let route = match route {
            "pause" => "POST /v1/lanes/{lane}/pause",
            "resume" => "POST /v1/lanes/{lane}/resume",
            _ => "POST /v1/lanes/{lane}/drain",
        };
        rows.push(row(route, LANES, none(), (Served, Forbidden)));
    }
    rows.push(row("PATCH /v1/lanes/{lane}", LANES, none(), (Served, Forbidden)));
    for route in [
        "POST /v1/bulk/{bulk_id}/pause",
        "POST /v1/bulk/{bulk_id}/resume",
        "POST /v1/bulk/{bulk_id}/abort",
    ] {
        rows.push(row(route, WRITE, none(), (NO_BULK, NO_BULK)));
    }
    rows
}

fn rest() -> Vec<Row> {
    let none = || json!({});
    let key = json!({ "name": "stranger", "scopes": ["admin"] });
    let (unseen, kept) = (Empty, Forbidden);
    let mut rows = vec![
        row("GET /v1/events", EVENTS, none(), (Empty, Empty)),
        row("POST /v1/keys", ADMIN, key, (Served, Served)),
        row("GET /v1/keys", ADMIN, none(), (unseen, unseen)),
        row("DELETE /v1/keys/{key_id}", ADMIN, none(), (kept, kept)),
        row("GET /v1/capabilities", READ, none(), (Served, Served)),
        row("GET /metrics", METRICS, none(), (kept, kept)),
    ];
    for route in [
        "GET /healthz",
        "GET /livez",
        "GET /readyz",
        "GET /version",
        "GET /openapi.json",
        "GET /docs",
        "GET /problems/{code}",
    ] {
        rows.push(row(route, OPEN, none(), (Served, Served)));
    }
    rows
}

/// What tells of all namespaces, and is told to keys of all of them alone.
const OF_ALL: [&str; 4] = ["/metrics", "/v1/admin/", "/v1/system/audit", "/v1/system/invariants"];

impl Row {
    /// The scope that is enough in place of its own: a worker's client asks what it stands before.
    fn instead(&self) -> Option<&'static str> {
        (self.path == "/v1/capabilities").then_some("workers:claim")
    }

    fn is_of_all_namespaces(&self) -> bool {
        OF_ALL.iter().any(|path| self.path.starts_with(path))
    }

    /// Limits of a key that is let in with these scopes.
    fn limits(&self, scopes: &[&str]) -> Value {
        match self.is_of_all_namespaces() {
            true => json!({ "scopes": scopes }),
            false => json!({ "namespaces": ["a"], "scopes": scopes }),
        }
    }

    fn full_path(&self) -> String {
        if let Some(rest) = self.path.strip_prefix('X') {
            return format!("/v1/executions/{{execution_id}}{rest}");
        }
        match self.path.strip_prefix('F') {
            Some(rest) => format!("/v1/flows/{{flow_id}}{rest}"),
            None => self.path.to_owned(),
        }
    }

    /// The path about the things of `scene`.
    fn target(&self, scene: &Scene<'_>) -> String {
        let query = match (self.method, self.path) {
            ("GET", "/v1/events") => "?after=start",
            _ => "",
        };
        let execution = match self.path.starts_with('F') {
            true => &scene.things.member,
            false => &scene.task.id,
        };
        self.full_path()
            .replace("{execution_id}", execution)
            .replace("{flow_id}", &scene.things.flow)
            .replace("{budget_id}", &scene.things.budget)
            .replace("{quota_policy_id}", &scene.things.quota)
            .replace("{bulk_id}", &scene.things.bulk)
            .replace("{lane}", "l")
            .replace("{namespace}", "a")
            .replace("{attempt_index}", "0")
            .replace("{waitpoint}", "k")
            .replace("{worker_instance_id}", "w-1")
            .replace("{worker_id}", "w")
            .replace("{key_id}", &scene.owner.key_id)
            .replace("{code}", "forbidden")
            + query
    }

    fn request(&self, request: RequestBuilder) -> RequestBuilder {
        if self.method == "GET" { request } else { request.body(self.body.to_string()) }
    }

    async fn by(&self, caller: &Tenant<'_>, scene: &Scene<'_>) -> Answer {
        let request = self.request(caller.request(self.method, &self.target(scene)));
        answer_of(request).await
    }
}

/// The answer; of a stream only its head, since it does not end.
async fn answer_of(request: RequestBuilder) -> Answer {
    let response = request.send().await.expect("an answer");
    let of_events = |value: &reqwest::header::HeaderValue| value == "text/event-stream";
    if response.headers().get("content-type").is_some_and(of_events) {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        return Answer { status, headers, bytes: Vec::new() };
    }
    Answer::of(response).await
}

/// A task under way in namespace `a` on lane `l`, of a worker that a key of its own registered.
struct Scene<'a> {
    owner: Tenant<'a>,
    tenant: Tenant<'a>,
    task: Task,
    things: Things,
    rows: Vec<Row>,
}

/// What else there is in namespace `a`, on lane `l` where it is on one.
struct Things {
    flow: String,
    member: String,
    other_member: String,
    edge: String,
    budget: String,
    quota: String,
    bulk: String,
}

async fn things(tenant: &Tenant<'_>) -> Things {
    let member = |name: &str| json!({ "name": name, "lane": "l", "kind": "k" });
    let graph = json!({
        "kind": "k",
        "members": [member("x"), member("y")],
        "edges": [{ "from": "x", "to": "y" }],
    });
    let flow = tenant.post("/v1/flows", graph).await.expect(201);
    let dimensions = json!({ "a": { "hard": 9 } });
    let budget = json!({ "scope_type": "custom", "scope_id": "s", "dimensions": dimensions });
    let budget = tenant.post("/v1/budgets", budget).await.expect(201);
    let quota = json!({ "window_seconds": 1, "max_requests_per_window": 9, "max_concurrent": 9 });
    let quota = tenant.post("/v1/quotas", quota).await.expect(201);
    let none = json!({ "action": "hold", "filter": { "lane": "l", "kind": "none" } });
    let bulk = tenant.post("/v1/bulk", none).await.expect(202);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Things {
        flow: text(&flow["flow_id"]),
        member: text(&flow["members"]["x"]),
        other_member: text(&flow["members"]["y"]),
        edge: text(&flow["edges"][0]["edge_id"]),
        budget: text(&budget["budget_id"]),
        quota: text(&quota["quota_policy_id"]),
        bulk: text(&bulk["bulk_id"]),
    }
}

async fn scene(site: &Site) -> Scene<'_> {
    let owner = site.owner().await;
    let tenant = owner.makes(json!({ "namespaces": ["a"] })).await;
    let task = started(&tenant).await;
    let waitpoint = task.with(json!({ "key": "k" }));
    let path = format!("/v1/executions/{}/waitpoints", task.id);
    tenant.post(&path, waitpoint).await.expect(201);
    let things = things(&tenant).await;
    let rows = rows(&task, &things);
    let full = |method: &str, path: String| format!("{method} {path}");
    let mut known: Vec<String> = rows.iter().map(|row| full(row.method, row.full_path())).collect();
    let mut served: Vec<String> = ff_server::served()
        .into_iter()
        .map(|(method, path)| full(method, path.to_owned()))
        .collect();
    known.sort_unstable();
    served.sort_unstable();
    assert_eq!(known, served, "every route stands in this table, and no other");
    Scene { owner, tenant, task, things, rows }
}

/// Submits to lane `l`, registers worker `w` and claims.
async fn started(tenant: &Tenant<'_>) -> Task {
    tenant.submit("l").await;
    let worker = json!({ "worker_id": "w", "worker_instance_id": "w-1" });
    let register = merged(worker.clone(), json!({ "boot_id": "b1", "lanes": ["l"] }));
    tenant.post("/v1/workers", register).await.expect(201);
    let claimed = tenant.post("/v1/leases", worker).await.expect(200);
    Task::from(claimed["tasks"][0].clone())
}

async fn every_route_needs_its_scopes_and_nothing_else(site: &Site) {
    let scene = scene(site).await;
    let all = ff_core::state::Scope::ALL.iter().map(|scope| scope.as_str());
    let all: Vec<&str> = all.collect();
    for row in &scene.rows {
        let shown = format!("{} {}", row.method, row.path);
        let bare = row.request(site.request(row.method, &row.target(&scene)));
        let bare = answer_of(bare).await;
        if row.scopes.is_empty() {
            assert_eq!(bare.status, 200, "{shown}");
            continue;
        }
        bare.problem(401, "unauthenticated");
        for missing in row.scopes {
            // An operator without a fence is another matter: here a fence is shown.
            let others = all.iter().copied().filter(|scope| scope != missing);
            let others: Vec<_> = others.filter(|scope| row.instead() != Some(*scope)).collect();
            let lacking = scene.owner.makes(row.limits(&others)).await;
            let answer = row.by(&lacking, &scene).await;
            assert_eq!(answer.status, 403, "{shown} without {missing}");
            answer.problem(403, "forbidden");
        }
        if let Some(instead) = row.instead() {
            let answer = row.by(&scene.owner.makes(row.limits(&[instead])).await, &scene).await;
            assert_eq!(answer.status, 200, "{shown} with {instead}");
        }
        let answer = row.by(&scene.owner.makes(row.limits(row.scopes)).await, &scene).await;
        // The one that deletes keys may not delete one that is more than itself.
        let passes = if row.path == "/v1/keys/{key_id}" {
            answer.status == 403
        } else {
            !matches!(answer.status, 401 | 403) || answer.json()["code"] == "invalid_token"
        };
        assert!(passes, "{shown}: {}", answer.json());
    }
}

/// Asserts that a stranger got what the table says.
fn check(row: &Row, expected: Stranger, answer: &Answer) {
    let shown = format!("{} {}: {} {}", row.method, row.path, answer.status, answer.json());
    match expected {
        Served => assert!(matches!(answer.status, 200 | 201 | 204), "{shown}"),
        NotFound(code) => assert_eq!(answer.json()["code"], code, "{shown}"),
        Empty => {
            assert_eq!(answer.status, 200, "{shown}");
            let items = answer.json()["items"].as_array().unwrap().clone();
            // Of keys it sees its own.
            let others = items.iter().filter(|item| item["name"] != "stranger");
            assert_eq!(others.count(), 0, "{shown}");
        }
        Item(code) => {
            assert_eq!(answer.status, 200, "{shown}");
            assert_eq!(answer.json()["items"][0]["problem"]["code"], code, "{shown}");
        }
        Forbidden => {
            assert_eq!((answer.status, &answer.json()["code"]), (403, &json!("forbidden")));
        }
    }
}

/// What of the scene's task must stay as it is whoever else calls.
async fn revision(scene: &Scene<'_>) -> Value {
    let record = scene.tenant.get(&format!("/v1/executions/{}", scene.task.id)).await.expect(200);
    record["revision"].clone()
}

async fn nothing_of_another_tenant_is_there(site: &Site) {
    let scene = scene(site).await;
    let limits = json!({ "name": "stranger", "namespaces": ["b"] });
    let stranger = scene.owner.makes(limits).await;
    let before = revision(&scene).await;
    // What it may make of its own comes last, so that until then whatever it finds is another's.
    let (own, others): (Vec<&Row>, Vec<&Row>) =
        scene.rows.iter().partition(|row| row.other_tenant == Served);
    for row in others.into_iter().chain(own) {
        check(row, row.other_tenant, &row.by(&stranger, &scene).await);
        assert_eq!(revision(&scene).await, before, "{} {}", row.method, row.path);
    }
    for row in scene.rows.iter().filter(|row| !row.scopes.is_empty()) {
        let target = row.target(&scene);
        let Some(rest) = target.strip_prefix("/v1/") else { continue };
        let beside = ["keys", "capabilities", "system", "admin", "namespaces"];
        if beside.iter().any(|group| rest.starts_with(group)) {
            continue;
        }
        let prefixed = stranger.request(row.method, &format!("/v1/namespaces/a/{rest}"));
        let headed = stranger.request(row.method, &target).header("ff-namespace", "a");
        for request in [prefixed, headed] {
            answer_of(row.request(request)).await.problem(403, "forbidden");
        }
    }
    scene
        .tenant
        .post(&format!("/v1/executions/{}/renew", scene.task.id), scene.task.with(json!({})))
        .await
        .expect(200);
}

async fn nothing_of_another_lane_is_there(site: &Site) {
    let scene = scene(site).await;
    let limits = json!({ "name": "stranger", "namespaces": ["a"], "lanes": ["m"] });
    let stranger = scene.owner.makes(limits).await;
    let before = revision(&scene).await;
    // What it may make of its own comes last here too.
    let (own, others): (Vec<&Row>, Vec<&Row>) =
        scene.rows.iter().partition(|row| row.other_lane == Served);
    for row in others.into_iter().chain(own) {
        check(row, row.other_lane, &row.by(&stranger, &scene).await);
        assert_eq!(revision(&scene).await, before, "{} {}", row.method, row.path);
    }
    for query in ["executions?lane=l", "waitpoints?lane=l", "events?lane=l"] {
        stranger.get(&format!("/v1/{query}")).await.problem(403, "forbidden");
    }
    let search = json!({ "lane": ["m", "l"] });
    stranger.post("/v1/executions/search", search).await.problem(403, "forbidden");
}

async fn parts_of_a_record_need_their_scope(site: &Site) {
    let scene = scene(site).await;
    let limits = json!({ "namespaces": ["a"], "scopes": ["executions:read"] });
    let reader = scene.owner.makes(limits).await;
    let record = format!("/v1/executions/{}", scene.task.id);
    reader.get(&format!("{record}?include=attempts")).await.expect(200);
    for part in ["payload", "result", "attempts,payload"] {
        for path in [&record, "/v1/executions", "/v1/executions/none"] {
            let answer = reader.get(&format!("{path}?include={part}")).await;
            answer.problem(403, "forbidden");
        }
        let search = json!({ "include": part });
        reader.post("/v1/executions/search", search).await.problem(403, "forbidden");
    }
    scene.tenant.get(&format!("{record}?include=payload,result")).await.expect(200);
}

async fn an_operator_without_a_fence_needs_a_scope_of_its_own(site: &Site) {
    let scene = scene(site).await;
    let with = |scopes: Value| scene.owner.makes(json!({ "namespaces": ["a"], "scopes": scopes }));
    let (worker, operator) = (with(json!(["workers:claim"])).await, with(json!(["admin"])).await);
    let path = format!("/v1/executions/{}/complete", scene.task.id);
    let by_override = json!({ "source": "operator_override" });
    worker.post(&path, by_override.clone()).await.problem(403, "forbidden");
    operator.post(&path, scene.task.with(json!({}))).await.problem(403, "forbidden");
    operator.post(&path, by_override).await.expect(200);
}

async fn what_a_bulk_operation_does_decides_its_scope(site: &Site) {
    let owner = site.owner().await;
    let with = |scopes: Value| owner.makes(json!({ "scopes": scopes }));
    let (writer, admin) = (with(json!(["executions:write"])).await, with(json!(["admin"])).await);
    let bulk =
        |action: &str| json!({ "action": action, "filter": { "lane": "l" }, "dry_run": true });
    writer.post("/v1/bulk", bulk("hold")).await.expect(200);
    writer.post("/v1/bulk", bulk("delete")).await.problem(403, "forbidden");
    admin.post("/v1/bulk", bulk("delete")).await.expect(200);
    admin.post("/v1/bulk", bulk("hold")).await.problem(403, "forbidden");
}

async fn what_a_bulk_operation_does_decides_who_may_stop_it(site: &Site) {
    let owner = site.owner().await;
    let with = |scopes: Value| owner.makes(json!({ "scopes": scopes }));
    let (writer, admin) = (with(json!(["executions:write"])).await, with(json!(["admin"])).await);
    for (action, may, may_not) in [("hold", &writer, &admin), ("delete", &admin, &writer)] {
        let bulk = json!({ "action": action, "filter": { "lane": "l" } });
        let made = may.post("/v1/bulk", bulk).await.expect(202);
        let path = format!("/v1/bulk/{}", made["bulk_id"].as_str().unwrap());
        for verb in ["pause", "resume", "abort"] {
            let path = format!("{path}/{verb}");
            may_not.post(&path, json!({})).await.problem(403, "forbidden");
            may.post(&path, json!({})).await.expect(200);
        }
    }
}

async fn lists_leave_other_lanes_out(site: &Site) {
    let owner = site.owner().await;
    for n in 0..60 {
        owner.submit(if n % 2 == 0 { "l" } else { "m" }).await;
    }
    let limits = json!({ "lanes": ["m", "n"] });
    let limited = owner.makes(limits).await;
    let page = limited.get("/v1/executions?limit=20&count=estimate").await.expect(200);
    let lanes = |page: &Value, field: &str| -> Vec<Value> {
        page["items"].as_array().unwrap().iter().map(|item| item[field].clone()).collect()
    };
    assert_eq!(lanes(&page, "lane"), vec![json!("m"); 20], "a page is full");
    assert_eq!(page["count"], 30);
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = limited.get(&format!("/v1/executions?limit=20&cursor={cursor}")).await.expect(200);
    assert_eq!(lanes(&rest, "lane"), vec![json!("m"); 10]);
    let events = limited.get("/v1/events?after=start&limit=500").await.expect(200);
    assert_eq!(lanes(&events, "lane"), vec![json!("m"); 30]);
}

async fn listed_executions_are_of_the_lanes_of_the_key(site: &Site) {
    let owner = site.owner().await;
    let limited = owner.makes(json!({ "lanes": ["m"] })).await;
    let (own, other) = (owner.submit("m").await, owner.submit("l").await);
    let bulk = |ids: &[&str]| json!({ "action": "hold", "ids": ids });
    for bad in [&[own.as_str(), &other][..], &[&other]] {
        limited.post("/v1/bulk", bulk(bad)).await.problem(404, "execution_not_found");
    }
    let made = limited.post("/v1/bulk", bulk(&[&own])).await.expect(202);
    let path = |made: &Value| format!("/v1/bulk/{}", made["bulk_id"].as_str().unwrap());
    assert_eq!(limited.get(&path(&made)).await.expect(200)["matched"], 1);
    let both = owner.post("/v1/bulk", bulk(&[&own, &other])).await.expect(202);
    limited.get(&path(&both)).await.problem(404, "bulk_not_found");
    let listed = limited.get("/v1/bulk").await.expect(200);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed}");
}

async fn claims_stay_on_the_lanes_of_the_key(site: &Site) {
    let owner = site.owner().await;
    let worker = json!({ "worker_id": "w", "worker_instance_id": "w-1" });
    let register = merged(worker.clone(), json!({ "boot_id": "b1", "lanes": ["l", "m"] }));
    owner.post("/v1/workers", register).await.expect(201);
    owner.submit("l").await;
    let id = owner.submit("m").await;
    let limited = owner.makes(json!({ "lanes": ["m"] })).await;
    // The worker serves a lane that is not the key's, so it is not there for it.
    limited.get("/v1/workers/w-1").await.problem(404, "worker_not_found");
    let named =
        |lanes: Value| merged(worker.clone(), json!({ "lanes": lanes, "capabilities": [] }));
    limited.post("/v1/leases", named(json!(["l", "m"]))).await.problem(403, "forbidden");
    let weighted = named(json!([{ "lane": "l", "weight": 3 }]));
    limited.post("/v1/leases", weighted).await.problem(403, "forbidden");
    let elsewhere = owner.makes(json!({ "lanes": ["n"] })).await;
    elsewhere.post("/v1/leases", worker.clone()).await.problem(403, "forbidden");
    // As registered, as far as the key goes.
    let claimed = limited.post("/v1/leases", merged(worker, json!({ "max": 9 }))).await.expect(200);
    assert_eq!(claimed["tasks"].as_array().unwrap().len(), 1);
    let task = Task::from(claimed["tasks"][0].clone());
    assert_eq!(task.id, id);
    let path = format!("/v1/executions/{id}/complete");
    let next = task.with(json!({ "next": { "lanes": ["l"] } }));
    limited.post(&path, next).await.problem(403, "forbidden");
    limited.post(&path, task.with(json!({}))).await.expect(200);
}

async fn a_flow_needs_the_lanes_of_all_its_members(site: &Site) {
    use ff_core::backend::BackendExt as _;
    use ff_core::id::{FlowId, Kind};
    use ff_core::operation::CreateFlow;

    let flow_id = FlowId::mint();
    let create = CreateFlow::new(flow_id, Kind::new("f").unwrap());
    site.backend.call(create).await.unwrap();
    let owner = site.owner().await;
    let limited = owner.makes(json!({ "lanes": ["m"] })).await;
    let stranger = owner.makes(json!({ "namespaces": ["b"] })).await;
    let member = |lane: &str| json!({ "lane": lane, "kind": "k", "flow_id": flow_id.to_string() });
    stranger.post("/v1/executions", member("m")).await.problem(404, "flow_not_found");
    let made = limited.post("/v1/executions", member("m")).await.expect(201);
    let id = made["execution_id"].as_str().unwrap();
    owner.post("/v1/executions", member("l")).await.expect(201);
    limited.post("/v1/executions", member("m")).await.problem(404, "flow_not_found");
    let batch = json!({ "items": [member("m")] });
    let items = limited.post("/v1/executions/batch", batch).await.expect(200);
    assert_eq!(items["items"][0]["problem"]["code"], "flow_not_found");
    let replay = json!({ "descendants": true });
    let path = format!("/v1/executions/{id}/replay");
    limited.post(&path, replay.clone()).await.problem(404, "flow_not_found");
    owner.post(&path, replay).await.problem(409, "execution_not_terminal");
}
