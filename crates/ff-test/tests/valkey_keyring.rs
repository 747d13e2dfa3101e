//! Several processes on one Valkey server: one keyring, of which each holds a copy.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::sync::Arc;

use ff_backend_valkey::{ValkeyOptions, ValkeyStore};
use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::id::Kid;
use ff_core::operation::DeliverSignal;
use ff_core::read::ListKids;
use ff_core::token::WaitpointToken;
use ff_test::servers::{Server, ServerOptions};
use ff_test::signalling::{issue, pending, rotate, signal};
use ff_test::stages::InItsTime;
use ff_test::world::World;

async fn process(server: &Server) -> World {
    let options: ValkeyOptions = server.url().parse().unwrap();
    World::new(InItsTime(Arc::new(ValkeyStore::open(options).await.unwrap())))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_is_known_to_another_process_at_once() {
    let server = Server::start(ServerOptions::default());
    let (one, other) = (process(&server).await, process(&server).await);
    let (task, before) = one.start_with("before").await;
    let id = task.execution_id;
    other.deliver(signal(id, &before, "of the first key")).await;
    one.act(rotate("k2", 2, 600_000)).await;
    let after = one.act(pending(&task, "after")).await;
    assert_eq!(after.token.kid(), &Kid::new("k2").unwrap());
    other.deliver(signal(id, &after, "of a key that it has not seen")).await;
    other.deliver(signal(id, &before, "of the key in its grace")).await;
    // Having looked, it signs with the new key itself.
    let own = other.act(pending(&task, "own")).await;
    assert_eq!(own.token.kid(), after.token.kid());
    one.deliver(signal(id, &own, "of the other process")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kid_that_nobody_has_is_looked_up_and_refused() {
    let server = Server::start(ServerOptions::default());
    let world = process(&server).await;
    let (task, issued) = world.start_with("k").await;
    let forged = issued.token.expose().replacen("k1", "k9", 1);
    let forged = Some(WaitpointToken::parse(&forged).unwrap());
    let deliver = DeliverSignal { token: forged, ..signal(task.execution_id, &issued, "x") };
    world.turns_away(deliver, Code::InvalidToken).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kid_that_another_process_rotated_away_is_listed_with_its_end() {
    let server = Server::start(ServerOptions::default());
    let (one, other) = (process(&server).await, process(&server).await);
    one.act(rotate("k2", 2, 1_000)).await;
    let kids = other.backend.ask(ListKids).await.unwrap();
    assert_eq!(kids, one.backend.ask(ListKids).await.unwrap());
    assert_eq!((kids.current_kid.as_str(), kids.kids.len()), ("k2", 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_boot_at_once_agree_on_one_secret() {
    let server = Server::start(ServerOptions::default());
    let (one, other) = tokio::join!(process(&server), process(&server));
    let (task, issued) = one.start_with("k").await;
    assert_eq!(other.act(issue(task.execution_id, "k")).await, issued);
    other.deliver(signal(task.execution_id, &issued, "x")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rotations_of_two_processes_follow_one_another() {
    let server = Server::start(ServerOptions::default());
    let (one, other) = (process(&server).await, process(&server).await);
    let (a, b) = tokio::join!(one.act(rotate("a", 2, 60_000)), other.act(rotate("b", 3, 60_000)));
    assert!(a.rotated && b.rotated);
    let kids = one.backend.ask(ListKids).await.unwrap();
    assert_eq!(kids, other.backend.ask(ListKids).await.unwrap());
    assert_eq!(kids.kids.len(), 3);
}
