//! A remote backend and its server: connecting, keys, faults, TLS, batches, namespaces.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ff_core::act::Act;
use ff_core::backend::{Backend, BackendExt as _, Upkeep as _};
use ff_core::error::{Code, EngineError};
use ff_core::id::ExecutionId;
use ff_core::operation::{
    Claim, Command, HeartbeatWorker, RegisterWorker, Submit, Submitted, Task,
};
use ff_core::partition::PartitionConfig;
use ff_core::read::{Describe, Due, Topic};
use ff_engine::Shutdown;
use ff_remote::http::{BadEnd, Fault};
use ff_remote::{ConnectError, Options, Remote};
use ff_server::{ApiToken, Server, ServerOptions};
use ff_test::http::Site;
use ff_test::stages::{SqliteStage, ValkeyStage};
use ff_test::world::{PATIENCE, Stage as _, complete, lane, namespace, renew};
use rcgen::{CertificateParams, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

const KEY: &str = "0123456789abcdef0123456789abcdef-secret";

async fn site(options: ServerOptions) -> Site {
    Site::with(SqliteStage::in_memory(PartitionConfig::default()), options).await
}

async fn connect(addr: SocketAddr) -> Remote {
    Remote::connect(&format!("http://{addr}"), Options::default()).await.unwrap()
}

fn work(remote: &Remote) -> Submit {
    let id = ExecutionId::solo(Uuid::now_v7(), &remote.settings().partitions);
    Submit::new(id, lane("work"), ff_core::id::Kind::new("k").unwrap())
}

fn claim() -> Claim {
    Claim::new("pool".parse().unwrap(), "pool-1".parse().unwrap(), [lane("work")])
}

async fn register(remote: &Remote, claim: &Claim) {
    remote.call(RegisterWorker::for_claim(claim, "boot", 60_000)).await.unwrap();
}

async fn refused(url: &str, options: Options) -> ConnectError {
    Remote::connect(url, options).await.unwrap_err()
}

#[tokio::test]
async fn what_is_no_server_is_told() {
    for url in ["", "127.0.0.1:7171", "http://", "no url"] {
        let error = refused(url, Options::default()).await;
        let is_bad = matches!(&error, ConnectError::BadEnd(BadEnd::Url(_) | BadEnd::Scheme(_)));
        assert!(is_bad, "{url}: {error:?}");
    }
    for (url, scheme) in [("sqlite:///tmp/x.db", "sqlite"), ("valkey://h:6379", "valkey")] {
        let error = refused(url, Options::default()).await;
        assert_eq!(error, ConnectError::BadEnd(BadEnd::Scheme(scheme.to_owned())));
        assert!(error.to_string().contains("http://"), "{error}");
    }
    let bad_key = Options { key: Some("a\nb".to_owned()), ..Options::default() };
    let error = refused("http://127.0.0.1:1", bad_key).await;
    assert_eq!(error, ConnectError::BadEnd(BadEnd::Key));
    let bad_root = Options {
        roots: vec![b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n".to_vec()],
        ..Options::default()
    };
    let error = refused("https://127.0.0.1:1", bad_root).await;
    assert!(
        matches!(error, ConnectError::BadEnd(BadEnd::Certificate(_) | BadEnd::Client(_))),
        "{error:?}"
    );
}

/// Answers every request with these bytes, and ends the connection.
async fn stranger(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut seen = [0; 4096];
            let _ = stream.read(&mut seen).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    addr
}

#[tokio::test]
async fn somebody_else_under_the_url_is_told() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>",
        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
    ] {
        let addr = stranger(answer).await;
        let error = refused(&format!("http://{addr}"), Options::default()).await;
        assert!(matches!(error, ConnectError::NotFlowFabric { .. }), "{error:?}");
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn a_key_is_needed_and_never_told() {
    let token = Some(ApiToken::new(KEY).unwrap());
    let site = site(ServerOptions { api_token: token, ..ServerOptions::default() }).await;
    let url = format!("http://{}", site.addr);
    let with = |key: Option<&str>| Options { key: key.map(str::to_owned), ..Options::default() };
    for key in [None, Some("another-key-of-some-length")] {
        let error = refused(&url, with(key)).await;
        assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("another-key"), "{error}");
    }
    let remote = Remote::connect(&url, with(Some(KEY))).await.unwrap();
    assert!(!format!("{remote:?}").contains("secret"));
    remote.ping().await.unwrap();
    assert!(matches!(remote.call(work(&remote)).await, Ok(Submitted::Created { .. })));
    site.stop().await;
}

/// A server that can be stopped and started again under its address.
struct Again {
    stage: SqliteStage,
    addr: SocketAddr,
}

impl Again {
    async fn start(&self) -> (tokio::sync::watch::Sender<bool>, tokio::task::JoinHandle<()>) {
        let (stop, shutdown) = Shutdown::channel();
        let options = ServerOptions { listen_addr: self.addr, ..ServerOptions::default() };
        let server = Server::bind(self.stage.backend(), options, shutdown).await.unwrap();
        (stop, tokio::spawn(server.run()))
    }
}

#[tokio::test]
async fn a_server_may_go_away_and_come_back() {
    let free = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let addr = free.local_addr().unwrap();
    drop(free);
    let again = Again { stage: SqliteStage::in_memory(PartitionConfig::default()), addr };
    let (stop, served) = again.start().await;
    let remote = connect(addr).await;
    let submit = work(&remote);
    let id = submit.execution_id;
    remote.call(submit.clone()).await.unwrap();
    stop.send_replace(true);
    served.await.unwrap();
    let gone = remote.call(work(&remote)).await.unwrap_err();
    assert_eq!((gone.code(), gone.is_retryable()), (Code::Unavailable, true), "{gone:?}");
    assert!(remote.ask(Describe { execution_id: id }).await.unwrap_err().is_retryable());
    let late = refused(&format!("http://{addr}"), Options::default()).await;
    assert!(matches!(late, ConnectError::Unreachable(Fault::Unreachable { .. })), "{late:?}");
    assert!(late.is_retryable());
    let (stop, served) = again.start().await;
    // The same submit again is the same execution.
    let repeated = remote.call(submit).await.unwrap();
    assert!(matches!(repeated, Submitted::Duplicate { .. }), "{repeated:?}");
    assert!(remote.ask(Describe { execution_id: id }).await.unwrap().is_some());
    stop.send_replace(true);
    served.await.unwrap();
}

/// Says who it is as a server does, and answers nothing else.
async fn mute(capabilities: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut seen = vec![0; 4096];
            let read = stream.read(&mut seen).await.unwrap_or(0);
            if String::from_utf8_lossy(&seen[..read]).starts_with("GET /v1/capabilities") {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                let head = format!("{head}\r\ncontent-length: {}\r\n\r\n", capabilities.len());
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(&capabilities).await;
            }
        }
    });
    addr
}

#[tokio::test]
async fn what_may_have_been_carried_out_is_told_apart() {
    let site = site(ServerOptions::default()).await;
    let remote = connect(mute(site.get("/v1/capabilities").await.bytes).await).await;
    let lost = remote.call(work(&remote)).await.unwrap_err();
    assert!(matches!(lost, EngineError::Transport { outcome_unknown: true, .. }), "{lost:?}");
    assert_eq!((lost.code(), lost.is_retryable()), (Code::OutcomeUnknown, true));
    let id = work(&remote).execution_id;
    let unread = remote.ask(Describe { execution_id: id }).await.unwrap_err();
    assert!(matches!(unread, EngineError::Transport { outcome_unknown: false, .. }), "{unread:?}");
    site.stop().await;
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_replaced() {
    // Longer than a busy machine keeps a request from being sent, or that would be cut off itself.
    let header_timeout = Duration::from_millis(300);
    let site = site(ServerOptions { header_timeout, ..ServerOptions::default() }).await;
    let remote = connect(site.addr).await;
    for _ in 0..3 {
        assert!(matches!(remote.call(work(&remote)).await, Ok(Submitted::Created { .. })));
        // The server lets go of a connection that is quiet as long as the one before.
        let mut witness = TcpStream::connect(site.addr).await.unwrap();
        let mut rest = Vec::new();
        tokio::time::timeout(PATIENCE, witness.read_to_end(&mut rest)).await.unwrap().unwrap();
    }
    site.stop().await;
}

#[tokio::test]
async fn over_tls_the_certificate_is_checked() {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let cert = params.self_signed(&key).unwrap();
    let files = tempfile::tempdir().unwrap();
    let path = |name: &str| files.path().join(name);
    std::fs::write(path("cert.pem"), cert.pem()).unwrap();
    std::fs::write(path("key.pem"), key.serialize_pem()).unwrap();
    let options = ServerOptions {
        tls_cert: Some(path("cert.pem")),
        tls_key: Some(path("key.pem")),
        ..ServerOptions::default()
    };
    let site = site(options).await;
    let url = format!("https://{}", site.addr);
    let error = refused(&url, Options::default()).await;
    assert!(matches!(error, ConnectError::Unreachable(_)), "{error:?}");
    let trusting = Options { roots: vec![cert.pem().into_bytes()], ..Options::default() };
    let remote = Remote::connect(&url, trusting).await.unwrap();
    assert!(matches!(remote.call(work(&remote)).await, Ok(Submitted::Created { .. })));
    site.stop().await;
}

/// How many requests a server has answered well on a route.
async fn answered(site: &Site, path: &str) -> u64 {
    let text = String::from_utf8(site.get("/metrics").await.bytes).unwrap();
    let name = format!(r#"ff_http_requests_total{{method="POST",path="{path}",status="200"}} "#);
    let line = text.lines().find_map(|line| line.strip_prefix(&name));
    line.map_or(0, |count| count.parse().unwrap())
}

#[tokio::test]
async fn many_at_once_are_few_requests() {
    let site = site(ServerOptions::default()).await;
    let remote = connect(site.addr).await;
    let submits: Vec<Command> = (0..50).map(|_| work(&remote).into()).collect();
    let replies = remote.apply(submits).await;
    assert!(replies.iter().all(Result::is_ok), "{replies:?}");
    assert_eq!(answered(&site, "/v1/executions/batch").await, 1);
    let claim = Claim { max: 50, ..claim() };
    register(&remote, &claim).await;
    let tasks = remote.claim(claim, Duration::ZERO).await.unwrap();
    let mut commands: Vec<Command> = tasks.iter().map(|task| renew(task).into()).collect();
    // One whose lease is lost is refused on its own.
    let mut stale = renew(&tasks[7]);
    stale.fence.lease_epoch += 1;
    commands[7] = stale.into();
    let replies = remote.apply(commands).await;
    let refused: Vec<_> = replies.iter().filter_map(|reply| reply.as_ref().err()).collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(replies[7].as_ref().unwrap_err().code(), Code::StaleLease);
    assert!(refused[0].refusal().unwrap().current.is_some(), "what is true now is told");
    assert_eq!(answered(&site, "/v1/leases/renew").await, 1);
    site.stop().await;
}

#[tokio::test]
async fn who_waits_for_work_holds_nobody_up() {
    let site = site(ServerOptions::default()).await;
    let remote = Arc::new(connect(site.addr).await);
    register(&remote, &claim()).await;
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let remote = Arc::clone(&remote);
            tokio::spawn(async move { remote.claim(claim(), PATIENCE).await.unwrap() })
        })
        .collect();
    for _ in 0..20 {
        assert!(matches!(remote.call(work(&remote)).await, Ok(Submitted::Created { .. })));
    }
    for claimed in waiting {
        let tasks: Vec<Task> = claimed.await.unwrap();
        for task in tasks {
            remote.call(complete(&task)).await.unwrap();
        }
    }
    site.stop().await;
}

#[tokio::test]
async fn a_thing_is_found_in_the_namespace_that_it_was_made_in() {
    let site = site(ServerOptions::default()).await;
    let remote = connect(site.addr).await;
    let elsewhere = namespace("elsewhere");
    let submit = Submit { namespace: elsewhere.clone(), ..work(&remote) };
    let id = submit.execution_id;
    remote.call(submit).await.unwrap();
    let claim = Claim { namespace: elsewhere.clone(), ..claim() };
    register(&remote, &claim).await;
    let task = remote.claim(claim, Duration::ZERO).await.unwrap().remove(0);
    assert_eq!((task.execution_id, &task.namespace), (id, &elsewhere));
    remote.call(complete(&task)).await.unwrap();
    // Another connection has to be told.
    let stranger = connect(site.addr).await;
    assert!(stranger.ask(Describe { execution_id: id }).await.unwrap().is_none());
    let options = Options { namespace: Some(elsewhere), ..Options::default() };
    let told = Remote::connect(&format!("http://{}", site.addr), options).await.unwrap();
    assert!(told.ask(Describe { execution_id: id }).await.unwrap().is_some());
    site.stop().await;
}

#[tokio::test]
async fn what_a_server_does_by_itself_is_refused_with_a_reason() {
    let site = site(ServerOptions::default()).await;
    let remote = connect(site.addr).await;
    let beat = HeartbeatWorker {
        namespace: namespace("default"),
        worker_instance_id: "pool-1".parse().unwrap(),
        boot_id: "boot".to_owned(),
    };
    let timers = Topic::Timers { known: None };
    let errors = [
        remote.apply(vec![beat.into()]).await.remove(0).map(|_| ()).unwrap_err(),
        remote.ask(Due).await.map(|_| ()).unwrap_err(),
        remote.follow(timers, Duration::ZERO).await.map(|_| ()).unwrap_err(),
        remote.repair().await.map(|_| ()).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.code(), Code::RouteNotFound);
        assert!(error.to_string().contains("server"), "{error}");
    }
    site.stop().await;
}

#[tokio::test]
async fn a_store_in_the_process_has_no_acts_of_its_own() {
    let stage = SqliteStage::in_memory(PartitionConfig::default());
    assert!(stage.backend().acts().is_none());
    let site = Site::on(stage).await;
    assert!(site.backend.acts().is_none(), "nor have the layers around it");
    let remote = connect(site.addr).await;
    let acts = remote.acts().unwrap();
    let execution_id = work(&remote).execution_id;
    let act = Act::from(ff_core::act::ExplainWhole { execution_id });
    assert_eq!(acts.act(act).await, Ok(ff_core::act::Acted::ExplainWhole(None)));
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_on_valkey_looks_the_same() {
    let stage = ValkeyStage::standalone(PartitionConfig::default()).await;
    let identity = stage.store.identity();
    let site = Site::on(stage).await;
    let remote = connect(site.addr).await;
    assert_eq!(remote.identity(), identity);
    let submit = work(&remote);
    let id = submit.execution_id;
    remote.call(submit).await.unwrap();
    register(&remote, &claim()).await;
    let task = remote.claim(claim(), PATIENCE).await.unwrap().remove(0);
    assert_eq!((task.execution_id, task.handle.store.as_str()), (id, "valkey"));
    remote.call(complete(&task)).await.unwrap();
    let late = remote.call(complete(&Task { lease_epoch: 9, ..task })).await.unwrap_err();
    assert!(late.refusal().unwrap().current.is_some(), "{late:?}");
    site.stop().await;
}
