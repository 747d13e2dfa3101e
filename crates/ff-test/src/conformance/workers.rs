//! Worker instances: registered, alive, draining, gone.

use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::event::{Detail, EventKind};
use ff_core::id::{Namespace, WorkerInstanceId};
use ff_core::limits;
use ff_core::operation::{
    Claim, ClaimNext, Command, Complete, DrainWorker, HeartbeatWorker, MarkWorkerDead,
    RegisterWorker, Settled, WorkerBeat, WorkerGone, WorkerRegistered,
};
use ff_core::read::ListWorkers;
use ff_core::state::{LaneState, PublicState};
use tokio::time::timeout;

use crate::fleet::{TTL, beat, deregister, drain, mark_dead, register, set_lane, worker_subject};
use crate::grants::{instance, worker};
use crate::world::{PATIENCE, World, capabilities, code, complete, lane, namespace};

const SILENCE: i64 = TTL.cast_signed();

fn claim_by(world: &World, name: &str) -> Claim {
    Claim { worker_instance_id: instance(name), ..world.claim_request(1) }
}

/// Names on a page.
async fn names(world: &World, namespace: Namespace) -> Vec<String> {
    let question = ListWorkers { namespace, within: None, cursor: None, limit: 500 };
    let page = world.backend.ask(question).await.unwrap();
    page.items.iter().map(|item| item.worker_instance_id.to_string()).collect()
}

pub async fn a_worker_that_registers_is_described_and_listed(world: &World) {
    let asked = RegisterWorker {
        lanes: vec![lane("work"), lane("mail")],
        capabilities: capabilities(&["gpu"]),
        ..register("w-1")
    };
    let now = world.now().await;
    let next_expiry = now.after(TTL);
    let reply = world.act(asked.clone()).await;
    assert_eq!(reply, WorkerRegistered::Registered { next_expiry });
    let found = world.worker("w-1").await.expect("a worker");
    assert_eq!((&found.worker_id, &found.boot_id), (&asked.worker_id, &asked.boot_id));
    assert_eq!((&found.lanes, &found.capabilities), (&asked.lanes, &asked.capabilities));
    assert_eq!((found.ttl_ms, found.max_concurrent), (TTL, 10));
    assert_eq!((found.registered_at, found.last_heartbeat_at), (now, now));
    assert_eq!((found.expires_at, found.running, found.draining), (next_expiry, 0, false));
    assert_eq!(names(world, Namespace::default()).await, ["w-1"]);
    assert_eq!(world.worker("w-2").await, None);
    for (lanes, found) in [(&["mail", "work", "x"][..], 1), (&["mail"], 0)] {
        let within = Some(lanes.iter().copied().map(lane).collect());
        let namespace = Namespace::default();
        let question = ListWorkers { namespace, within, cursor: None, limit: 500 };
        assert_eq!(world.backend.ask(question).await.unwrap().items.len(), found, "{lanes:?}");
    }
}

pub async fn the_same_boot_refreshes(world: &World) {
    let begin = world.now().await;
    world.act(register("w-1")).await;
    world.advance(10).await;
    let again = RegisterWorker { capabilities: capabilities(&["gpu"]), ..register("w-1") };
    let next_expiry = begin.after(10 + TTL);
    assert_eq!(world.act(again).await, WorkerRegistered::Refreshed { next_expiry });
    let found = world.worker("w-1").await.expect("a worker");
    assert_eq!((found.registered_at, found.expires_at), (begin, next_expiry));
    assert_eq!(found.capabilities, capabilities(&["gpu"]));
    assert_eq!(world.worker_history("w-1").await, [EventKind::WorkerJoined]);
}

pub async fn a_live_name_belongs_to_one_worker_and_one_boot(world: &World) {
    world.act(register("w-1")).await;
    let other = RegisterWorker { worker_id: worker("other"), ..register("w-1") };
    let refused = world.backend.call(other).await.expect_err("a refusal");
    assert_eq!(refused.code(), Code::InvalidInput);
    assert!(refused.to_string().contains("instance_id reassigned"), "{refused}");
    let other = RegisterWorker { boot_id: "boot-2".to_owned(), ..register("w-1") };
    assert_eq!(code(world.backend.call(other).await), Code::InstanceInUse);
    let elsewhere = RegisterWorker { namespace: namespace("other"), ..register("w-1") };
    let elsewhere = RegisterWorker { boot_id: "boot-2".to_owned(), ..elsewhere };
    assert!(matches!(world.act(elsewhere).await, WorkerRegistered::Registered { .. }));
}

pub async fn a_name_is_free_again_when_its_worker_is_gone(world: &World) {
    let next = |boot: &str| RegisterWorker {
        boot_id: boot.to_owned(),
        worker_id: worker(boot),
        ..register("w-1")
    };
    world.act(register("w-1")).await;
    world.act(deregister("w-1")).await;
    assert!(matches!(world.act(next("b")).await, WorkerRegistered::Registered { .. }));
    world.act(mark_dead("w-1")).await;
    assert!(matches!(world.act(next("c")).await, WorkerRegistered::Registered { .. }));
    // The clock decides, whether or not a timer has come by.
    world.advance(SILENCE).await;
    assert!(matches!(world.act(next("d")).await, WorkerRegistered::Registered { .. }));
    let found = world.worker("w-1").await.expect("a worker");
    assert_eq!((found.boot_id.as_str(), found.worker_id), ("d", worker("d")));
}

pub async fn a_heartbeat_keeps_a_worker_alive(world: &World) {
    world.act(register("w-1")).await;
    for _ in 0..3 {
        world.pass(SILENCE - 1).await;
        let next_expiry = world.now().await.after(TTL);
        let reply = world.act(beat("w-1")).await;
        let expected = WorkerBeat::Refreshed {
            next_expiry,
            drain: false,
            paused_lanes: Vec::new(),
            ttl_ms: TTL,
            news: false,
            cancelled: Vec::new(),
        };
        assert_eq!(reply, expected);
    }
    world.advance(SILENCE).await;
    assert_eq!(world.act(beat("w-1")).await, WorkerBeat::NotRegistered, "dead by the clock");
    assert_eq!(world.worker("w-1").await, None);
}

pub async fn a_heartbeat_of_nobody_or_of_another_boot_is_not_registered(world: &World) {
    assert_eq!(world.act(beat("w-1")).await, WorkerBeat::NotRegistered);
    world.act(register("w-1")).await;
    let other = HeartbeatWorker { boot_id: "boot-2".to_owned(), ..beat("w-1") };
    assert_eq!(world.act(other).await, WorkerBeat::NotRegistered);
    world.act(deregister("w-1")).await;
    assert_eq!(world.act(beat("w-1")).await, WorkerBeat::NotRegistered);
}

pub async fn a_silent_worker_is_dead(world: &World) {
    world.act(register("w-1")).await;
    world.pass(SILENCE).await;
    assert_eq!(names(world, Namespace::default()).await, [""; 0]);
    let lost = world.worker_events("w-1").await.pop().expect("an event");
    assert_eq!((lost.kind, lost.time), (EventKind::WorkerLost, world.now().await));
    assert_eq!(lost.data.get("by"), Some(&Detail::Text("ttl".to_owned())));
    // Nothing is left of it once its leases have been looked for.
    world.pass(2_000).await;
    let dues = world.backend.ask(ff_core::read::Due).await.unwrap();
    assert_eq!(dues.items, []);
}

pub async fn a_draining_worker_gets_nothing(world: &World) {
    world.act(register("w-1")).await;
    world.act(register("w-2")).await;
    let id = world.submit(world.work()).await;
    assert_eq!(world.act(drain("w-1")).await, Settled::Done);
    assert_eq!(world.act(drain("w-1")).await, Settled::AlreadySatisfied);
    assert_eq!(world.claim_as(claim_by(world, "w-1")).await, []);
    let wait = world.backend.claim(claim_by(world, "w-1"), PATIENCE);
    assert_eq!(timeout(PATIENCE, wait).await.expect("at once").unwrap(), []);
    assert!(world.worker("w-1").await.expect("a worker").draining);
    let WorkerBeat::Refreshed { drain: true, news: true, .. } = world.act(beat("w-1")).await else {
        panic!("a heartbeat tells of it")
    };
    let tasks = world.claim_as(claim_by(world, "w-2")).await;
    assert_eq!(tasks[0].execution_id, id);
}

pub async fn a_worker_that_is_gone_claims_nothing(world: &World) {
    let claim = || world.backend.claim(claim_by(world, "w-1"), Duration::ZERO);
    world.act(register("w-1")).await;
    let id = world.submit(world.work()).await;
    world.act(deregister("w-1")).await;
    assert_eq!(code(claim().await), Code::WorkerNotRegistered);
    world.act(register("w-1")).await;
    world.advance(SILENCE).await;
    assert_eq!(code(claim().await), Code::WorkerNotRegistered, "before any timer");
    world.act(register("w-1")).await;
    assert_eq!(claim().await.unwrap()[0].execution_id, id);
}

pub async fn only_the_worker_of_an_instance_claims_for_it(world: &World) {
    world.act(register("w-1")).await;
    let id = world.submit(world.work()).await;
    let other = Claim { worker_id: worker("other"), ..claim_by(world, "w-1") };
    let refused = world.backend.claim(other, Duration::ZERO).await.unwrap_err();
    assert_eq!(refused.code(), Code::WorkerNotRegistered);
    assert!(refused.to_string().contains("pool"), "it names the worker: {refused}");
    assert_eq!(world.claim_as(claim_by(world, "w-1")).await[0].execution_id, id);
}

pub async fn a_waiting_claim_ends_when_its_worker_is_gone(world: &World) {
    for command in [Command::from(deregister("w-1")), mark_dead("w-1").into()] {
        world.act(register("w-1")).await;
        let waiting = world.backend.claim(claim_by(world, "w-1"), PATIENCE);
        let (tasks, gone) = tokio::join!(timeout(PATIENCE / 2, waiting), world.command(command));
        gone.unwrap();
        let tasks = tasks.expect("in time");
        assert!(tasks.is_err_and(|error| error.code() == Code::WorkerNotRegistered));
    }
}

pub async fn the_end_of_a_task_stands_whoever_may_go_on(world: &World) {
    world.act(register("w-1")).await;
    world.submit(world.work()).await;
    let task = world.claim_as(claim_by(world, "w-1")).await.remove(0);
    world.submit(world.work()).await;
    world.act(deregister("w-1")).await;
    let Claim { max, lanes, order, capabilities, lease_ttl_ms, seed, .. } = world.claim_request(1);
    let next = Some(ClaimNext { max, lanes, order, capabilities, lease_ttl_ms, seed });
    let completed = world.act(Complete { next, ..complete(&task) }).await;
    assert_eq!(completed.tasks, []);
    assert_eq!(world.public_state(task.execution_id).await, PublicState::Completed);
}

pub async fn only_a_registered_worker_drains(world: &World) {
    assert_eq!(code(world.backend.call(drain("w-1")).await), Code::WorkerNotFound);
    world.act(register("w-1")).await;
    let elsewhere = DrainWorker { namespace: namespace("other"), ..drain("w-1") };
    assert_eq!(code(world.backend.call(elsewhere).await), Code::WorkerNotFound);
    world.advance(SILENCE).await;
    assert_eq!(code(world.backend.call(drain("w-1")).await), Code::WorkerNotFound);
}

pub async fn a_waiting_claim_ends_when_its_worker_drains(world: &World) {
    world.act(register("w-1")).await;
    let waiting = world.backend.claim(claim_by(world, "w-1"), PATIENCE);
    let (tasks, _) = tokio::join!(timeout(PATIENCE / 2, waiting), world.act(drain("w-1")));
    assert_eq!(tasks.expect("in time").unwrap(), []);
}

pub async fn a_refresh_keeps_the_wish_to_drain(world: &World) {
    world.act(register("w-1")).await;
    world.act(drain("w-1")).await;
    world.act(register("w-1")).await;
    assert!(world.worker("w-1").await.expect("a worker").draining);
    world.act(deregister("w-1")).await;
    world.act(register("w-1")).await;
    assert!(!world.worker("w-1").await.expect("a worker").draining);
}

pub async fn leaving_and_being_called_dead_are_told(world: &World) {
    for (name, command) in [
        ("deregister_worker", Command::from(deregister("w-1"))),
        ("mark_worker_dead", mark_dead("w-1").into()),
    ] {
        assert_eq!(command.name(), name);
        world.act(register("w-1")).await;
        world.command(command).await.unwrap();
        assert_eq!(world.worker("w-1").await, None);
    }
    assert_eq!(world.act(deregister("w-1")).await, WorkerGone::NotRegistered);
    assert_eq!(world.act(mark_dead("w-1")).await, WorkerGone::NotRegistered);
    let lost = world.worker_events("w-1").await.into_iter();
    let lost = lost.filter(|event| event.kind == EventKind::WorkerLost);
    let text = |event: &ff_core::event::Event, name: &str| match event.data.get(name) {
        Some(Detail::Text(text)) => text.clone(),
        _ => String::new(),
    };
    let told: Vec<_> = lost.map(|event| (text(&event, "by"), text(&event, "reason"))).collect();
    let pair = |by: &str, reason: &str| (by.to_owned(), reason.to_owned());
    assert_eq!(told, [pair("deregistered", ""), pair("marked_dead", "it burns")]);
}

pub async fn a_worker_has_a_history_without_holes(world: &World) {
    world.act(register("w-1")).await;
    world.act(DrainWorker { reason: "new version".to_owned(), ..drain("w-1") }).await;
    world.act(deregister("w-1")).await;
    world.act(register("w-1")).await;
    let events = world.worker_events("w-1").await;
    use EventKind::{WorkerDraining, WorkerJoined, WorkerLost};
    let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [WorkerJoined, WorkerDraining, WorkerLost, WorkerJoined]);
    assert_eq!(events[1].data["reason"], Detail::Text("new version".to_owned()));
    let seqs: Vec<_> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
    assert!(events.iter().all(|event| event.subject == worker_subject("w-1")));
    assert!(events[0].id().to_string().starts_with("w.default-"), "{}", events[0].id());
}

pub async fn what_a_worker_says_has_limits(world: &World) {
    let good = || register("w-1");
    let long = |bytes: usize| "x".repeat(bytes);
    let many = (0..65).map(|n| lane(&format!("lane {n}"))).collect();
    for bad in [
        RegisterWorker { ttl_ms: limits::WORKER_TTL_MIN_MS - 1, ..good() },
        RegisterWorker { ttl_ms: limits::DURATION_MAX_MS + 1, ..good() },
        RegisterWorker { max_concurrent: 0, ..good() },
        RegisterWorker { lanes: Vec::new(), ..good() },
        RegisterWorker { lanes: many, ..good() },
        RegisterWorker { lanes: vec![lane("a"), lane("a")], ..good() },
        RegisterWorker { boot_id: String::new(), ..good() },
        RegisterWorker { boot_id: "a b".to_owned(), ..good() },
        RegisterWorker { boot_id: long(257), ..good() },
    ] {
        let shown = format!("{bad:?}");
        assert_eq!(code(world.backend.call(bad).await), Code::InvalidInput, "{shown:.200}");
    }
    for reason in [long(257), "a\nb".to_owned()] {
        let bad = MarkWorkerDead { reason, ..mark_dead("w-1") };
        assert_eq!(code(world.backend.call(bad).await), Code::InvalidInput);
    }
    world.act(RegisterWorker { ttl_ms: limits::DURATION_MAX_MS, ..good() }).await;
    world.act(MarkWorkerDead { reason: long(256), ..mark_dead("w-1") }).await;
}

pub async fn workers_are_listed_by_namespace_in_pages(world: &World) {
    for name in ["w-c", "w-a", "w-b"] {
        world.act(register(name)).await;
        world.advance(1).await;
    }
    world.act(RegisterWorker { namespace: namespace("other"), ..register("w-x") }).await;
    assert_eq!(names(world, Namespace::default()).await, ["w-c", "w-a", "w-b"]);
    assert_eq!(names(world, namespace("other")).await, ["w-x"]);
    for limit in 1..=4 {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let question =
                ListWorkers { namespace: Namespace::default(), within: None, cursor, limit };
            let page = world.backend.ask(question).await.unwrap();
            seen.extend(page.items.into_iter().map(|item| item.worker_instance_id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, ["w-c", "w-a", "w-b"].map(|n| WorkerInstanceId::new(n).unwrap()));
    }
}

pub async fn a_list_counts_what_a_worker_runs(world: &World) {
    world.act(register("w-1")).await;
    world.act(register("w-2")).await;
    for _ in 0..3 {
        world.submit(world.work()).await;
    }
    for name in ["w-1", "w-1", "w-2"] {
        world.claim_as(claim_by(world, name)).await;
    }
    let question =
        ListWorkers { namespace: Namespace::default(), within: None, cursor: None, limit: 50 };
    let page = world.backend.ask(question).await.unwrap();
    let running: Vec<_> =
        page.items.iter().map(|w| (w.worker_instance_id.to_string(), w.running)).collect();
    let mut running = running;
    running.sort_unstable();
    assert_eq!(running, [("w-1".to_owned(), 2), ("w-2".to_owned(), 1)]);
}

pub async fn the_registrys_part_of_a_heartbeat_names_paused_lanes(world: &World) {
    let lanes = vec![lane("work"), lane("mail")];
    world.act(RegisterWorker { lanes, ..register("w-1") }).await;
    world.act(set_lane("mail", LaneState::Paused)).await;
    world.act(set_lane("else", LaneState::Paused)).await;
    world.advance(1).await;
    for expected in [true, false] {
        let reply = world.act(beat("w-1")).await;
        let WorkerBeat::Refreshed { paused_lanes, news, .. } = reply else { panic!("{reply:?}") };
        assert_eq!((paused_lanes, news), (vec![lane("mail")], expected), "new once");
        world.advance(1).await;
    }
}
