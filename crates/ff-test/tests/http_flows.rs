//! Flows over HTTP: graphs, members, edges, joins, cancels and replays.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use ff_test::http::{Answer, Site, Task, bytes_of, merged};
use serde_json::{Value, json};

ff_test::on_every_store! {
    a_graph_is_submitted_whole_and_runs
    a_graph_of_many_members_is_submitted_whole
    a_graph_that_changes_is_told_without_contradiction
    a_key_makes_a_graph_once
    a_bad_graph_is_refused_with_its_place
    a_flow_grows_member_by_member
    edges_are_staged_and_applied
    groups_join_as_they_are_told
    flows_are_listed_in_pages_and_by_filter
    a_read_waits_for_the_end
    cancels_are_told_and_waited_for
    a_cancel_whose_wait_running_members_outlast_is_a_timeout
    what_failed_is_replayed
    tags_are_changed_on_condition
    events_are_listed_and_followed
    an_ended_flow_is_removed
    a_flow_of_another_namespace_is_not_there
}

/// Member `a` before member `b`.
fn chain() -> Value {
    json!({
        "kind": "etl",
        "members": [
            { "name": "a", "lane": "l", "kind": "x" },
            { "name": "b", "lane_id": "l", "execution_kind": "y" },
        ],
        "edges": [{ "from": "a", "to": "b" }],
    })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Submits a graph: its path, and the reply.
async fn submitted(site: &Site, graph: Value) -> (String, Value) {
    let reply = site.post("/v1/flows", graph).await.expect(201);
    (format!("/v1/flows/{}", text(&reply["flow_id"])), reply)
}

/// Makes a flow without members: its path.
async fn empty(site: &Site) -> String {
    submitted(site, json!({ "kind": "etl" })).await.0
}

async fn complete(site: &Site, task: &Task) {
    site.act(&task.id, "complete", task.with(json!({}))).await.expect(200);
}

async fn fail(site: &Site, task: &Task) {
    let body = task.with(json!({ "reason": "no", "category": "permanent" }));
    site.act(&task.id, "fail", body).await.expect(200);
}

async fn tasks(site: &Site) -> usize {
    let claim = json!({ "worker_id": "w", "worker_instance_id": "w-1" });
    let reply = site.post("/v1/leases", claim).await.expect(200);
    reply["tasks"].as_array().unwrap().len()
}

async fn a_graph_is_submitted_whole_and_runs(site: &Site) {
    let graph = merged(chain(), json!({ "tags": { "team": "data" }, "retention_ms": 60_000 }));
    let answer = site.post("/v1/flows", graph).await;
    let reply = answer.expect(201);
    let path = format!("/v1/flows/{}", text(&reply["flow_id"]));
    assert_eq!(answer.header("location"), path);
    let (a, b) = (&reply["members"]["a"], &reply["members"]["b"]);
    let edge = &reply["edges"][0];
    assert_eq!((&edge["from"], &edge["to"]), (&json!("a"), &json!("b")));

    let flow = site.get(&path).await;
    assert_eq!(flow.header("etag"), format!("\"{}\"", flow.json()["revision"]));
    let flow = flow.expect(200);
    for (field, value) in [
        ("flow_id", reply["flow_id"].clone()),
        ("kind", json!("etl")),
        ("state", json!("open")),
        ("graph_revision", reply["graph_revision"].clone()),
        ("node_count", json!(2)),
        ("edge_count", json!(1)),
        ("counts", json!({ "waiting": 1, "waiting_children": 1 })),
        ("tags", json!({ "team": "data" })),
        ("created_at", json!("2027-01-15T08:00:00.000Z")),
        ("completed_at", Value::Null),
        ("retention_ms", json!(60_000)),
    ] {
        assert_eq!(flow[field], value, "{field}");
    }
    let members = site.get(&format!("{path}/members")).await.expect(200);
    assert_eq!(members["items"][0]["name"], "a");
    assert_eq!(&members["items"][1]["execution_id"], b);
    assert_eq!(members["items"][1]["public_state"], "waiting_children");
    let edges = site.get(&format!("{path}/edges?count=estimate")).await.expect(200);
    assert_eq!(edges["count"], 1);
    let listed = &edges["items"][0];
    assert_eq!((&listed["edge_id"], &listed["upstream"]), (&edge["edge_id"], a));
    assert_eq!((&listed["kind"], &listed["state"]), (&json!("success_only"), &json!("pending")));
    let graph = site.get(&format!("{path}/graph")).await.expect(200);
    assert_eq!((&graph["members"], &graph["edges"]), (&members["items"], &edges["items"]));
    assert_eq!((&graph["kind"], &graph["members_cursor"]), (&json!("etl"), &Value::Null));

    site.register().await;
    let first = site.claim().await;
    assert_eq!(json!(first.id), *a);
    let result = first.with(json!({ "result_json": 7 }));
    site.act(&first.id, "complete", result).await.expect(200);
    let second = site.claim().await;
    assert_eq!(json!(second.id), *b);
    assert_eq!(bytes_of(&second.json["inputs"]["a"]["result_b64"]), b"7");
    complete(site, &second).await;
    let flow = site.get(&path).await.expect(200);
    assert_eq!(flow["state"], "completed");
    assert_eq!(flow["counts"], json!({ "completed": 2 }));
    assert_eq!(flow["completed_at"], "2027-01-15T08:00:00.000Z");
}

async fn a_graph_of_many_members_is_submitted_whole(site: &Site) {
    let members: Vec<Value> =
        (0..150).map(|n| json!({ "name": format!("m{n}"), "lane": "l", "kind": "k" })).collect();
    let edges: Vec<Value> =
        (1..150).map(|n| json!({ "from": "m0", "to": format!("m{n}") })).collect();
    let graph = json!({ "kind": "fan", "members": members, "edges": edges });
    let (path, reply) = submitted(site, graph).await;
    assert_eq!(reply["members"].as_object().unwrap().len(), 150);
    let flow = site.get(&path).await.expect(200);
    assert_eq!(flow["counts"], json!({ "waiting": 1, "waiting_children": 149 }));
    let graph = site.get(&format!("{path}/graph")).await.expect(200);
    assert_eq!(graph["members"].as_array().unwrap().len(), 150);
    assert_eq!(graph["edges"].as_array().unwrap().len(), 149);
    let seen = walk(site, &format!("{path}/members?limit=40")).await;
    let names: Vec<&Value> = seen.iter().map(|member| &member["name"]).collect();
    assert_eq!((names.len(), names[149]), (150, &json!("m149")));
    assert_eq!(walk(site, &format!("{path}/edges?limit=40")).await.len(), 149);
}

/// All items of a list, page by page, as its links lead.
async fn walk(site: &Site, path: &str) -> Vec<Value> {
    let (mut items, mut path) = (Vec::new(), path.to_owned());
    loop {
        let answer = site.get(&path).await;
        let page = answer.expect(200);
        items.extend(page["items"].as_array().unwrap().clone());
        let link = answer.header("link");
        if page["next_cursor"].is_null() {
            assert_eq!(link, "", "no link without a cursor");
            return items;
        }
        let target = link.strip_prefix('<').unwrap().strip_suffix(">; rel=\"next\"").unwrap();
        target.clone_into(&mut path);
    }
}

async fn a_graph_that_changes_is_told_without_contradiction(site: &Site) {
    const MEMBERS: usize = 24;
    let name = |n: usize| format!("m{n}");
    let member = |n| json!({ "name": name(n), "lane": "l", "kind": "x" });
    let edge = |n: usize| json!({ "from": name(n - 1), "to": name(n) });
    let graph = json!({
        "kind": "etl",
        "members": (0..MEMBERS).map(member).collect::<Vec<_>>(),
        "edges": (1..MEMBERS).map(edge).collect::<Vec<_>>(),
    });
    let path = submitted(site, graph).await.0;
    site.register().await;
    let run = async {
        for _ in 0..MEMBERS {
            complete(site, &site.claim().await).await;
        }
    };
    let look = async {
        loop {
            let graph = site.get(&format!("{path}/graph")).await.expect(200);
            let members = graph["members"].as_array().unwrap();
            let state_of = |id: &Value| {
                let found = members.iter().find(|member| member["execution_id"] == *id);
                text(&found.unwrap()["public_state"])
            };
            let mut counts = serde_json::Map::new();
            for member in members {
                let count = counts.entry(text(&member["public_state"])).or_insert(json!(0));
                *count = json!(count.as_u64().unwrap() + 1);
            }
            assert_eq!(graph["counts"], json!(counts));
            for edge in graph["edges"].as_array().unwrap() {
                let ended = state_of(&edge["upstream"]) == "completed";
                assert!(edge["state"] == "pending" || ended, "{graph}");
            }
            if counts.len() == 1 && counts.contains_key("completed") {
                break;
            }
        }
    };
    tokio::join!(run, look);
}

async fn a_key_makes_a_graph_once(site: &Site) {
    let with_key = |graph: Value| {
        let request = site.request("POST", "/v1/flows").header("idempotency-key", "\"daily\"");
        site.send(request.body(graph.to_string()))
    };
    let first = with_key(chain()).await.expect(201);
    let again = with_key(chain()).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    let again = again.expect(200);
    assert_eq!((&first["status"], &again["status"]), (&json!("created"), &json!("duplicate")));
    for field in ["flow_id", "members", "edges", "graph_revision"] {
        assert_eq!(first[field], again[field], "{field}");
    }
    with_key(merged(chain(), json!({ "edges": [] }))).await.problem(422, "idempotency_mismatch");
    let in_body = merged(chain(), json!({ "idempotency_key": "daily" }));
    assert_eq!(
        site.post("/v1/flows", in_body.clone()).await.expect(200)["flow_id"],
        first["flow_id"]
    );
    with_key(merged(chain(), json!({ "idempotency_key": "other" })))
        .await
        .problem(400, "invalid_input");
    let with_id = merged(in_body, json!({ "flow_id": uuid::Uuid::now_v7() }));
    site.post("/v1/flows", with_id).await.invalid("/flow_id");

    let bare = json!({ "kind": "etl", "idempotency_key": "bare" });
    let made = site.post("/v1/flows", bare.clone()).await.expect(201);
    let known = site.post("/v1/flows", bare.clone()).await;
    assert_eq!(known.header("idempotency-replayed"), "true");
    assert_eq!(known.expect(200)["flow_id"], made["flow_id"]);
    let other = merged(bare, json!({ "kind": "other" }));
    site.post("/v1/flows", other).await.problem(422, "idempotency_mismatch");
    let given = json!({ "kind": "etl", "flow_id": made["flow_id"] });
    let known = site.post("/v1/flows", given).await;
    assert_eq!(known.header("idempotency-replayed"), "");
    known.expect(200);
}

async fn a_bad_graph_is_refused_with_its_place(site: &Site) {
    let member = |name: &str| json!({ "name": name, "lane": "l", "kind": "k" });
    let post = |fields: Value| site.post("/v1/flows", merged(chain(), fields));
    site.post("/v1/flows", json!({})).await.invalid("/kind");
    post(json!({ "colour": 1 })).await.invalid("/colour");
    post(json!({ "members": [{ "lane": "l", "kind": "k" }] })).await.invalid("/members/0/name");
    let unknown = json!({ "members": [member("a"), merged(member("b"), json!({ "x": 1 }))] });
    post(unknown).await.invalid("/members/1/x");
    let policy = json!({ "members": [merged(member("a"), json!({ "policy": { "x": 1 } }))] });
    let problem = post(policy).await.problem(400, "invalid_policy_json");
    assert_eq!(problem["errors"][0]["pointer"], "/members/0/policy");
    let inner =
        json!({ "members": [merged(member("a"), json!({ "flow_id": uuid::Uuid::now_v7() }))] });
    post(inner).await.invalid("/members/0/flow_id");
    post(json!({ "edges": [{ "from": "a" }] })).await.invalid("/edges/0/to");
    let kind = json!({ "edges": [{ "from": "a", "to": "b", "kind": "sometimes" }] });
    post(kind).await.invalid("/edges/0/kind");
    let twice = json!({ "edges": [{ "from": "a", "to": "b", "kind": "always", "dependency_kind": "always" }] });
    assert_eq!(post(twice).await.status, 400);
    for (group, pointer) in [
        (json!({ "member": "b", "policy": "quorum" }), "/groups/0/k"),
        (json!({ "member": "b", "policy": "any_of", "k": 1 }), "/groups/0/k"),
        (
            json!({ "member": "b", "policy": "all_of", "on_satisfied": "let_run" }),
            "/groups/0/on_satisfied",
        ),
        (json!({ "member": "b", "policy": "most" }), "/groups/0/policy"),
    ] {
        post(json!({ "groups": [group] })).await.invalid(pointer);
    }
    for (fields, status, code) in [
        (json!({ "members": [member("a"), member("a")] }), 400, "invalid_input"),
        (json!({ "edges": [{ "from": "a", "to": "a" }] }), 409, "self_referencing_edge"),
        (json!({ "edges": [{ "from": "a", "to": "c" }] }), 409, "execution_not_in_flow"),
        (
            json!({ "edges": [{ "from": "a", "to": "b" }, { "from": "b", "to": "a" }] }),
            409,
            "cycle_detected",
        ),
        (
            json!({ "edges": [{ "from": "a", "to": "b" }, { "from": "a", "to": "b" }] }),
            409,
            "dependency_already_exists",
        ),
        (json!({ "budget_ids": [uuid::Uuid::now_v7()] }), 404, "budget_not_found"),
        (json!({ "members": [], "edges": [{ "from": "a", "to": "b" }] }), 400, "invalid_input"),
    ] {
        post(fields).await.problem(status, code);
    }
    let many: Vec<Value> = (0..2001).map(|n| member(&format!("m{n}"))).collect();
    post(json!({ "members": many, "edges": [] })).await.invalid("/members");
    assert_eq!(site.get("/v1/flows").await.expect(200)["items"], json!([]));
    assert_eq!(site.get("/v1/executions").await.expect(200)["items"], json!([]));
}

async fn a_flow_grows_member_by_member(site: &Site) {
    let path = empty(site).await;
    let flow = site.get(&path).await.expect(200);
    assert_eq!((&flow["state"], &flow["node_count"]), (&json!("open"), &json!(0)));
    let members = format!("{path}/members");
    let new = json!({ "name": "a", "lane": "l", "kind": "k", "idempotency_key": "first" });
    let added = site.post(&members, new.clone()).await.expect(201);
    assert_eq!((&added["node_count"], &added["status"]), (&json!(1), &json!("added")));
    let again = site.post(&members, new).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.expect(200)["execution_id"], added["execution_id"]);
    let record = site.read(added["execution_id"].as_str().unwrap(), "").await.expect(200);
    assert_eq!((&record["flow_id"], &record["member_name"]), (&flow["flow_id"], &json!("a")));

    let known = json!({ "execution_id": added["execution_id"] });
    let known = site.post(&members, known).await.expect(200);
    assert_eq!((&known["status"], &known["node_count"]), (&json!("already_member"), &json!(1)));
    // One that stands in the flow's partition, and one that does not.
    let id = text(&added["execution_id"]);
    let (partition, _) = id.split_once("}:").unwrap();
    let beside = format!("{partition}}}:{}", uuid::Uuid::now_v7());
    site.submit(json!({ "execution_id": beside })).await;
    let add = json!({ "execution_id": beside, "name": "b" });
    assert_eq!(site.post(&members, add).await.expect(201)["node_count"], 2);
    let number: u16 = partition.strip_prefix("{fp:").unwrap().parse().unwrap();
    let elsewhere = format!("{{fp:{}}}:{}", (number + 1) % 64, uuid::Uuid::now_v7());
    site.submit(json!({ "execution_id": elsewhere })).await;
    let far = json!({ "execution_id": elsewhere });
    site.post(&members, far).await.invalid("/execution_id");
    let nobody = format!("{{fp:{}}}:{}", (number + 1) % 64, uuid::Uuid::now_v7());
    site.post(&members, json!({ "execution_id": nobody })).await.invalid("/execution_id");
    let nobody = json!({ "execution_id": format!("{partition}}}:{}", uuid::Uuid::now_v7()) });
    site.post(&members, nobody).await.problem(404, "execution_not_found");
    site.post(&members, json!({ "execution_id": beside, "x": 1 })).await.invalid("/x");
    site.post(&members, json!({ "lane": "l", "kind": "k", "x": 1 })).await.invalid("/x");
    let other = empty(site).await;
    let stolen = site.post(&format!("{other}/members"), json!({ "execution_id": beside })).await;
    assert!(matches!(stolen.status, 400 | 409), "{:?}", stolen.json());
}

async fn edges_are_staged_and_applied(site: &Site) {
    let graph = merged(chain(), json!({ "edges": [] }));
    let (path, reply) = submitted(site, graph).await;
    let (a, b) = (&reply["members"]["a"], &reply["members"]["b"]);
    let edges = format!("{path}/edges");
    let edge = |fields: Value| merged(json!({ "upstream": a, "downstream": b }), fields);
    let stale = edge(json!({ "expected_graph_revision": 99 }));
    site.post(&edges, stale).await.problem(409, "stale_graph_revision");
    let staged = edge(json!({ "apply": false, "name": "in", "dependency_kind": "always" }));
    let staged = site.post(&edges, staged).await.expect(201);
    assert_eq!(staged["unresolved"], Value::Null);
    let listed = site.get(&edges).await.expect(200)["items"][0].clone();
    assert_eq!((&listed["applied"], &listed["kind"]), (&json!(false), &json!("always")));
    let apply = json!({ "edge_id": staged["edge_id"] });
    let applied = site.post(&format!("{edges}/apply"), apply.clone()).await.expect(200);
    assert_eq!(applied, json!({ "status": "applied", "unresolved": 1 }));
    let again = site.post(&format!("{edges}/apply"), apply).await.expect(200);
    assert_eq!(again, json!({ "status": "already_applied", "unresolved": 1, "replayed": true }));
    let unknown = json!({ "edge_id": uuid::Uuid::now_v7() });
    site.post(&format!("{edges}/apply"), unknown).await.problem(409, "invalid_dependency");
    site.post(&edges, edge(json!({}))).await.problem(409, "dependency_already_exists");
    let back = json!({ "upstream": b, "downstream": a });
    site.post(&edges, back).await.problem(409, "cycle_detected");
    let itself = json!({ "upstream": a, "downstream": a });
    site.post(&edges, itself.clone()).await.problem(409, "self_referencing_edge");
    let nowhere = format!("/v1/flows/{}/edges", uuid::Uuid::now_v7());
    site.post(&nowhere, itself).await.problem(409, "self_referencing_edge");
    site.post(&edges, edge(json!({ "x": 1 }))).await.invalid("/x");
    let (members, lone) = (format!("{path}/members"), json!({ "lane": "l", "kind": "k" }));
    let mut made = Vec::new();
    for _ in 0..2 {
        made.push(site.post(&members, lone.clone()).await.expect(201)["execution_id"].clone());
    }
    // One that is added counts at once, and of one that can count no more nothing is left.
    let onwards = json!({ "upstream": b, "downstream": made[0] });
    assert_eq!(site.post(&edges, onwards).await.expect(201)["unresolved"], 1);
    let ended = format!("/v1/executions/{}/cancel", made[1].as_str().unwrap());
    site.post(&ended, json!({ "reason": "r" })).await.expect(200);
    let before = site.get(&edges).await.expect(200);
    let late = json!({ "upstream": b, "downstream": made[1] });
    site.post(&edges, late).await.problem(409, "terminal");
    assert_eq!(site.get(&edges).await.expect(200), before);
    assert_eq!(
        site.read(b.as_str().unwrap(), "/state").await.expect(200)["public_state"],
        "waiting_children"
    );
}

async fn groups_join_as_they_are_told(site: &Site) {
    let member = |name: &str| json!({ "name": name, "lane": "l", "kind": "k" });
    let graph = json!({
        "kind": "race",
        "members": [member("a"), member("b"), member("c"), member("join")],
        "edges": [
            { "from": "a", "to": "join" },
            { "from": "b", "to": "join" },
            { "from": "c", "to": "join" },
        ],
        "groups": [{ "member": "join", "policy": "quorum", "k": 2, "on_satisfied": "let_run" }],
    });
    let (path, reply) = submitted(site, graph).await;
    let join = text(&reply["members"]["join"]);
    let members = site.get(&format!("{path}/members")).await.expect(200);
    let group = &members["items"][3]["group"];
    assert_eq!((&group["policy"], &group["k"]), (&json!("quorum"), &json!(2)));
    assert_eq!((&group["on_satisfied"], &group["state"]), (&json!("let_run"), &json!("pending")));
    let put = |body: Value| {
        let path = format!("{path}/groups/{join}");
        async move { site.with_body("PUT", &path, body).await }
    };
    let same = json!({ "policy": "quorum", "k": 2, "on_satisfied": "let_run" });
    let told = put(same).await.expect(200);
    assert_eq!(told, json!({ "status": "already_set", "replayed": true }));
    assert_eq!(put(json!({ "policy": "any_of" })).await.expect(200), json!({ "status": "set" }));
    put(json!({ "policy": "quorum" })).await.invalid("/k");
    put(json!({ "policy": "quorum", "k": 0 })).await.invalid("/k");
    let stranger = site.submit(json!({})).await;
    let path = format!("{path}/groups/{stranger}");
    let refused = site.with_body("PUT", &path, json!({ "policy": "any_of" })).await;
    assert!(matches!(refused.status, 400 | 409), "{:?}", refused.json());

    site.with_body("DELETE", "/v1/lanes", json!({})).await.problem(405, "method_not_allowed");
    site.register().await;
    site.act(&stranger, "cancel", json!({})).await.expect(200);
    complete(site, &site.claim().await).await;
    site.pass(0).await;
    let states = site.read(&join, "/state").await.expect(200);
    assert_eq!(states["public_state"], "waiting");
    let cancelled = reply["members"].as_object().unwrap().values();
    let mut ended = 0;
    for id in cancelled {
        let record = site.read(id.as_str().unwrap(), "").await.expect(200);
        ended += u32::from(record["public_state"] == "cancelled");
    }
    assert_eq!(ended, 2, "the other two are no longer needed");
}

async fn flows_are_listed_in_pages_and_by_filter(site: &Site) {
    for n in 0..5 {
        let graph = json!({ "kind": format!("k{}", n % 2), "tags": { "n": n.to_string() } });
        submitted(site, graph).await;
        site.pass(1).await;
    }
    let all = walk(site, "/v1/flows?limit=2").await;
    let tags: Vec<&Value> = all.iter().map(|flow| &flow["tags"]["n"]).collect();
    assert_eq!(tags, ["4", "3", "2", "1", "0"], "newest first");
    let found = |query: &str| {
        let path = format!("/v1/flows?{query}");
        async move { site.get(&path).await.expect(200)["items"].as_array().unwrap().len() }
    };
    assert_eq!(found("kind=k0").await, 3);
    assert_eq!(found("kind=k0&kind=k1").await, 5);
    assert_eq!(found("tag=n:3").await, 1);
    assert_eq!(found("state=open").await, 5);
    assert_eq!(found("state=completed&state=failed").await, 0);
    let counted = site.get("/v1/flows?limit=1&count=estimate").await.expect(200);
    assert_eq!((&counted["count"], counted["items"].as_array().unwrap().len()), (&json!(5), 1));
    site.get("/v1/flows?count=exact").await.invalid("count");
    site.get("/v1/flows?state=odd").await.invalid("state");
    site.get("/v1/flows?limit=501").await.invalid("limit");
    site.get("/v1/flows?x=1").await.invalid("x");
    let cursor = site.get("/v1/flows?limit=2").await.expect(200)["next_cursor"].clone();
    let cursor = cursor.as_str().unwrap();
    site.get(&format!("/v1/flows?kind=k1&cursor={cursor}")).await.problem(400, "invalid_cursor");
}

async fn a_read_waits_for_the_end(site: &Site) {
    let graph = json!({ "kind": "one", "members": [{ "name": "a", "lane": "l", "kind": "k" }] });
    let (path, _) = submitted(site, graph).await;
    site.register().await;
    let task = site.claim().await;
    let still = site.get(&format!("{path}?wait_ms=20")).await.expect(200);
    assert_eq!(still["state"], "running");
    let (waited, ()) = tokio::join!(wait(site, &path), async {
        complete(site, &task).await;
    });
    assert_eq!(waited.expect(200)["state"], "completed");
    site.get(&format!("{path}?wait_ms=60001")).await.invalid("wait_ms");
}

async fn wait(site: &Site, path: &str) -> Answer {
    site.get(&format!("{path}?wait_ms=20000")).await
}

/// So many members, and no edges.
fn wide(count: usize) -> Value {
    let member = |n: usize| json!({ "name": format!("m{n}"), "lane": "l", "kind": "k" });
    let members: Vec<Value> = (0..count).map(member).collect();
    json!({ "kind": "fan", "members": members })
}

async fn cancels_are_told_and_waited_for(site: &Site) {
    let graph = wide(100);
    let (path, _) = submitted(site, graph.clone()).await;
    let cancel = format!("{path}/cancel");
    let scheduled = site.post(&cancel, json!({ "reason": "enough" })).await.expect(200);
    assert_eq!(scheduled["status"], "cancellation_scheduled");
    assert!(scheduled["member_count"].as_u64().unwrap() > 0, "{scheduled}");
    let done = site.post(&format!("{cancel}?wait=true"), json!({ "reason": "again" })).await;
    let done = done.expect(200);
    assert_eq!((&done["status"], &done["reason"]), (&json!("cancelled"), &json!("enough")));
    assert_eq!((&done["replayed"], &done["member_count"]), (&json!(true), &json!(0)));
    let flow = site.get(&path).await.expect(200);
    assert_eq!(flow["counts"], json!({ "cancelled": 100 }));
    assert_eq!(flow["state"], "cancelled");
    assert_eq!(flow["cancellation"]["reason"], "enough");

    let (path, _) = submitted(site, graph).await;
    let cancel = format!("{path}/cancel");
    let body = json!({ "cancellation_policy": "cancel_pending", "wait_ms": 20_000 });
    assert_eq!(site.post(&cancel, body).await.expect(200)["status"], "cancelled");
    let both = site.post(&format!("{cancel}?wait=true&wait_ms=5"), json!({})).await;
    both.problem(400, "invalid_input");
    site.post(&format!("{cancel}?wait=perhaps"), json!({})).await.invalid("wait");
    site.post(&cancel, json!({ "wait_ms": 60_001 })).await.invalid("/wait_ms");
    let odd = json!({ "cancellation_policy": "some" });
    site.post(&cancel, odd).await.invalid("/cancellation_policy");
    let (late, _) = submitted(site, wide(600)).await;
    let out = site.post(&format!("{late}/cancel?wait_ms=1"), json!({})).await;
    out.problem(504, "timeout");
    assert_eq!(site.get(&late).await.expect(200)["state"], "cancelled", "the cancel stands");
    let add = json!({ "lane": "l", "kind": "k" });
    site.post(&format!("{path}/members"), add).await.problem(409, "flow_already_terminal");
}

async fn a_cancel_whose_wait_running_members_outlast_is_a_timeout(site: &Site) {
    let (path, reply) = submitted(site, chain()).await;
    site.register().await;
    let task = site.claim().await;
    assert_eq!(json!(task.id), reply["members"]["a"]);
    let cancel = format!("{path}/cancel");
    let pending = json!({ "cancellation_policy": "cancel_pending" });
    let out = site.post(&format!("{cancel}?wait_ms=50"), pending.clone()).await;
    out.problem(504, "timeout");
    assert_eq!(site.get(&path).await.expect(200)["state"], "cancelled", "the cancel stands");
    let all = json!({ "cancellation_policy": "cancel_all" });
    let again = site.post(&format!("{cancel}?wait_ms=50"), all).await;
    again.problem(504, "timeout");
    complete(site, &task).await;
    let done = site.post(&format!("{cancel}?wait=true"), pending).await.expect(200);
    assert_eq!((&done["status"], &done["failed"]), (&json!("cancelled"), &Value::Null));
}

async fn what_failed_is_replayed(site: &Site) {
    let (path, reply) = submitted(site, chain()).await;
    let replay = format!("{path}/replay");
    site.post(&replay, json!({})).await.problem(409, "flow_not_terminal");
    site.register().await;
    fail(site, &site.claim().await).await;
    let flow = site.get(&path).await.expect(200);
    assert_eq!(
        (&flow["state"], &flow["counts"]),
        (&json!("failed"), &json!({ "failed": 1, "skipped": 1 }))
    );
    let replayed = site.post(&replay, json!({})).await.expect(200);
    let ids = replayed["replayed"].as_array().unwrap();
    assert!(ids.contains(&reply["members"]["a"]), "{replayed}");
    assert_eq!(
        site.get(&path).await.expect(200)["counts"],
        json!({ "waiting": 1, "waiting_children": 1 })
    );
    complete(site, &site.claim().await).await;
    complete(site, &site.claim().await).await;
    assert_eq!(tasks(site).await, 0);
    let nothing = site.post(&replay, json!({})).await.expect(200);
    assert_eq!(nothing, json!({ "status": "already_satisfied", "replayed": [] }));
    let listed = json!({ "members": [reply["members"]["b"]] });
    let again = site.post(&replay, listed).await.expect(200);
    assert_eq!(again["replayed"], json!([reply["members"]["b"]]));
}

async fn tags_are_changed_on_condition(site: &Site) {
    let path = empty(site).await;
    let patch = |tags: Value, expected: Option<String>| {
        let mut request = site.request("PATCH", &format!("{path}/tags"));
        if let Some(expected) = expected {
            request = request.header("if-match", expected);
        }
        site.send(request.body(json!({ "tags": tags }).to_string()))
    };
    let seen = site.get(&path).await.header("etag").to_owned();
    let set = patch(json!({ "a.b": "1" }), Some(seen.clone())).await;
    assert_eq!(set.header("etag"), format!("\"{}\"", set.json()["revision"]));
    assert_eq!(set.expect(200)["count"], 1);
    patch(json!({ "a.b": "2" }), Some(seen.clone())).await.problem(412, "precondition_failed");
    patch(json!({ "a.b": "2" }), Some("odd".to_owned())).await.problem(412, "precondition_failed");
    let bare = site.get(&path).await.header("etag").trim_matches('"').to_owned();
    patch(json!({ "a.b": "3" }), Some(bare)).await.expect(200);
    patch(json!({ "a.c": "4" }), Some("*".to_owned())).await.expect(200);
    patch(json!({ "plain": "5" }), None).await.problem(400, "invalid_tag_key");
    let flow = site.get(&path).await.expect(200);
    assert_eq!(flow["tags"], json!({ "a.b": "3", "a.c": "4" }));
}

fn types(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect()
}

async fn events_are_listed_and_followed(site: &Site) {
    let (path, reply) = submitted(site, chain()).await;
    let events = format!("{path}/events");
    site.register().await;
    complete(site, &site.claim().await).await;
    complete(site, &site.claim().await).await;
    let page = site.get(&events).await.expect(200);
    let kinds = types(&page);
    assert_eq!((kinds[0], *kinds.last().unwrap()), ("flow.created", "flow.completed"));
    for (seq, event) in (1..).zip(page["items"].as_array().unwrap()) {
        assert_eq!((&event["seq"], &event["subject"]), (&json!(seq), &reply["flow_id"]));
    }
    let seen = walk(site, &format!("{events}?limit=1")).await;
    assert_eq!(json!(seen), page["items"]);
    let wanted = kinds.len();
    let followed = site.follow(site.request("GET", &events), |seen| seen.len() == wanted).await;
    assert_eq!(followed[0].event, "flow.created");
    let last = followed[wanted - 2].id.clone().unwrap();
    let request = site.request("GET", &events).header("last-event-id", last);
    let rest = site.follow(request, |seen| !seen.is_empty()).await;
    assert_eq!(rest[0].event, "flow.completed");
    // What happens while somebody follows comes at once.
    let more = wanted + 1;
    let (followed, ()) =
        tokio::join!(site.follow(site.request("GET", &events), |seen| seen.len() == more), async {
            let tags = json!({ "tags": { "a.b": "c" } });
            site.with_body("PATCH", &format!("{path}/tags"), tags).await.expect(200);
        });
    assert_eq!(followed[wanted].event, "flow.changed");
    let other = empty(site).await;
    let cursor = site.get(&format!("{events}?limit=1")).await.expect(200)["next_cursor"].clone();
    let stolen = format!("{other}/events?cursor={}", cursor.as_str().unwrap());
    site.get(&stolen).await.problem(400, "invalid_cursor");
}

async fn an_ended_flow_is_removed(site: &Site) {
    let (path, reply) = submitted(site, chain()).await;
    site.with_body("DELETE", &path, json!({})).await.problem(409, "flow_not_terminal");
    site.post(&format!("{path}/cancel?wait=true"), json!({})).await.expect(200);
    assert_eq!(site.with_body("DELETE", &path, json!({})).await.status, 204);
    site.pass(0).await;
    site.get(&path).await.problem(404, "flow_not_found");
    site.read(reply["members"]["a"].as_str().unwrap(), "")
        .await
        .problem(404, "execution_not_found");
    site.with_body("DELETE", &path, json!({})).await.problem(404, "flow_not_found");
}

async fn a_flow_of_another_namespace_is_not_there(site: &Site) {
    let (path, reply) = submitted(site, chain()).await;
    let rest = path.strip_prefix("/v1").unwrap();
    let a = text(&reply["members"]["a"]);
    let edge = json!({ "upstream": a, "downstream": reply["members"]["b"] });
    let foreign = |method: &str, part: &str, body: Value| {
        let path = format!("/v1/namespaces/other{rest}{part}");
        let request = site.request(method, &path);
        let request = if method == "GET" { request } else { request.body(body.to_string()) };
        site.send(request)
    };
    let check = |answer: Answer, part: &str| {
        assert_eq!(answer.status, 404, "{part}: {:?}", answer.json());
        answer.problem(404, "flow_not_found");
    };
    for part in ["", "/graph", "/members", "/edges", "/events"] {
        check(foreign("GET", part, Value::Null).await, part);
    }
    for (method, part, body) in [
        ("POST", "/members", json!({ "execution_id": a })),
        ("POST", "/members", json!({ "lane": "l", "kind": "k" })),
        ("POST", "/edges", edge),
        ("POST", "/edges/apply", json!({ "edge_id": reply["edges"][0]["edge_id"] })),
        ("PUT", &format!("/groups/{a}"), json!({ "policy": "any_of" })),
        ("POST", "/cancel", json!({})),
        ("POST", "/replay", json!({})),
        ("PATCH", "/tags", json!({ "tags": { "a.b": "c" } })),
        ("DELETE", "", json!({})),
    ] {
        check(foreign(method, part, body).await, part);
    }
    let intruder = json!({ "lane": "l", "kind": "k", "flow_id": reply["flow_id"] });
    let intruder = site.post("/v1/namespaces/other/executions", intruder).await;
    intruder.problem(404, "flow_not_found");
    let listed = site.get("/v1/namespaces/other/flows").await.expect(200);
    assert_eq!(listed["items"], json!([]));
    let theirs = json!({ "kind": "etl", "flow_id": reply["flow_id"], "namespace": "other" });
    site.post("/v1/flows", theirs).await.problem(422, "idempotency_mismatch");
    assert_eq!(site.get(&path).await.expect(200)["state"], "open");
}
