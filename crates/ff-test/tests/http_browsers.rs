//! Pages of other sites, signals from outside, and who may listen where.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::net::SocketAddr;

use ff_core::backend::Backend;
use ff_engine::Shutdown;
use ff_server::{ApiToken, BindError, Server, ServerOptions};
use ff_test::http::{Answer, Site, Task, merged};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

ff_test::on_every_store! {
    listed_origins_may_call
    any_origin_may_call_without_credentials
    a_token_is_enough_for_a_signal_where_it_is_said
    without_a_key_nobody_listens_to_the_world
}

fn worker(fields: Value) -> Value {
    merged(json!({ "worker_id": "w", "worker_instance_id": "w-1" }), fields)
}

const PAGE: &str = "https://app.example";

fn with_origins(origins: &[&str]) -> ServerOptions {
    let cors_origins = origins.iter().map(|origin| (*origin).to_owned()).collect();
    ServerOptions { cors_origins, ..ServerOptions::default() }
}

async fn from(site: &Site, origin: &str, request: RequestBuilder) -> Answer {
    site.send(request.header("origin", origin)).await
}

fn preflight(site: &Site, path: &str) -> RequestBuilder {
    let request = site.request("OPTIONS", path);
    request.header("access-control-request-method", "POST")
}

async fn listed_origins_may_call(site: &Site) {
    let open = site.beside(with_origins(&[PAGE, "http://localhost:3000"])).await;
    let owner = open.owner().await;
    let list = || owner.request("GET", "/v1/executions");
    let answer = from(&open, PAGE, list()).await;
    answer.expect(200);
    assert_eq!(answer.header("access-control-allow-origin"), PAGE);
    assert_eq!(answer.header("access-control-allow-credentials"), "true");
    assert_eq!(answer.header("vary"), "origin");
    assert!(answer.header("access-control-expose-headers").contains("x-request-id"));
    // A page must be able to read why it was refused.
    let refused = from(&open, PAGE, open.request("GET", "/v1/executions")).await;
    refused.problem(401, "unauthenticated");
    assert_eq!(refused.header("access-control-allow-origin"), PAGE);
    let asked = from(&open, PAGE, preflight(&open, "/v1/executions")).await;
    assert_eq!((asked.status, asked.bytes.len()), (204, 0));
    assert_eq!(asked.header("access-control-allow-origin"), PAGE);
    assert!(asked.header("access-control-allow-methods").contains("DELETE"));
    assert!(asked.header("access-control-allow-headers").contains("authorization"));
    for other in ["https://app.example:8443", "http://app.example", "https://evil.example", "null"]
    {
        for request in [list(), preflight(&open, "/v1/executions"), open.request("GET", "/livez")] {
            let answer = from(&open, other, request).await;
            answer.problem(403, "forbidden");
            assert_eq!(answer.header("access-control-allow-origin"), "");
        }
    }
    let own = from(&open, &format!("http://{}", open.addr), list()).await;
    assert_eq!((own.status, own.header("access-control-allow-origin")), (200, ""));
    let plain = open.send(list()).await;
    assert_eq!((plain.status, plain.header("access-control-allow-origin")), (200, ""));
    open.send(open.request("OPTIONS", "/v1/executions")).await.problem(405, "method_not_allowed");
    open.stop().await;
}

async fn any_origin_may_call_without_credentials(site: &Site) {
    let open = site.beside(with_origins(&["*"])).await;
    let answer = from(&open, "https://any.example", open.request("GET", "/v1/executions")).await;
    answer.expect(200);
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    assert_eq!(answer.header("access-control-allow-credentials"), "");
    open.stop().await;
}

async fn a_token_is_enough_for_a_signal_where_it_is_said(site: &Site) {
    let options = ServerOptions { public_signals: true, ..ServerOptions::default() };
    let open = site.beside(options.clone()).await;
    let task = site.start(json!({})).await;
    let made = site.act(&task.id, "waitpoints", task.with(json!({ "key": "k" }))).await.expect(201);
    let other = site.submit(json!({ "namespace": "b" })).await;
    let token = made["token"].as_str().unwrap();
    let elsewhere =
        site.post("/v1/namespaces/b/workers", worker(json!({ "boot_id": "b", "lanes": ["l"] })));
    elsewhere.await.expect(201);
    let claimed = site.post("/v1/namespaces/b/leases", worker(json!({}))).await.expect(200);
    let there = Task::from(claimed["tasks"][0].clone());
    let path = format!("/v1/namespaces/b/executions/{}/waitpoints", there.id);
    let made = site.post(&path, there.with(json!({ "key": "k" }))).await.expect(201);
    let sent = json!({ "waitpoint_key": "k", "token": made["token"], "name": "n" });
    open.act(&there.id, "signal", sent.clone()).await.expect(200);
    open.stop().await;
    site.act(&there.id, "signal", sent).await.problem(404, "execution_not_found");
    let owner = site.owner().await;
    let public = site.beside(options).await;
    let signal =
        |key: &str, token: &str| json!({ "waitpoint_key": key, "token": token, "name": "n" });
    let send = async |site: &Site, id: &str, body: Value| site.act(id, "signal", body).await;
    send(site, &task.id, signal("k", token)).await.problem(401, "unauthenticated");
    let forged = token.replace(|c: char| c.is_ascii_digit(), "0");
    let unknown = task.id.replace(|c: char| c.is_ascii_hexdigit() && !c.is_ascii_digit(), "0");
    let unknown = unknown.replace("0p:", "fp:");
    for (id, body) in [
        (&task.id, signal("k", &forged)),
        (&task.id, signal("other", token)),
        (&unknown, signal("k", token)),
        (&other, signal("k", token)),
        (&task.id, signal("k", "no token")),
        (&task.id, json!({ "waitpoint_key": "k", "name": "n" })),
        (&unknown, json!({ "waitpoint_key": "k", "name": "n" })),
    ] {
        let told = send(&public, id, body.clone()).await.problem(401, "invalid_token");
        assert_eq!(told["detail"], "the token is not valid here");
        let path = format!("/v1/executions/{id}/signal");
        owner.at(&public).post(&path, body).await.problem(401, "invalid_token");
    }
    let path = format!("/v1/namespaces/b/executions/{}/signal", task.id);
    public.post(&path, signal("k", token)).await.problem(401, "invalid_token");
    public.get("/v1/executions").await.problem(401, "unauthenticated");
    let bad_key = public.request("POST", &format!("/v1/executions/{}/signal", task.id));
    let bad_key = bad_key.bearer_auth("x").body(signal("k", token).to_string());
    public.send(bad_key).await.problem(401, "unauthenticated");
    let sent = send(&public, &task.id, signal("k", token)).await.expect(200);
    assert_eq!(sent["status"], "accepted");
    public.stop().await;
}

async fn without_a_key_nobody_listens_to_the_world(site: &Site) {
    // An address of nobody's: with a key the start comes as far as the system's refusal.
    let listen_addr: SocketAddr = "192.0.2.1:0".parse().unwrap();
    let bind = async |options: ServerOptions| {
        let (_stop, shutdown) = Shutdown::channel();
        let backend: std::sync::Arc<dyn Backend> = site.backend.clone();
        Server::bind(backend, ServerOptions { listen_addr, ..options }, shutdown)
            .await
            .err()
            .unwrap()
    };
    let plain = ServerOptions::default;
    assert!(matches!(bind(plain()).await, BindError::NotLoopback { .. }));
    let api_token = Some(ApiToken::new("0123456789abcdef").unwrap());
    let with_token = ServerOptions { api_token, ..plain() };
    assert!(matches!(bind(with_token).await, BindError::Listen { .. }));
    let wrong = with_origins(&["https://a.example/path"]);
    assert!(matches!(bind(wrong).await, BindError::Origin { .. }));
    site.owner().await;
    assert!(matches!(bind(plain()).await, BindError::Listen { .. }));
}
