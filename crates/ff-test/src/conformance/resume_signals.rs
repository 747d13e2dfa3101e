//! What a resumed task is told of the signals that resumed it.

use bytes::Bytes;
use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::id::{AttemptId, ExecutionId};
use ff_core::limits;
use ff_core::operation::{
    DeliverSignal, IssuedWaitpoint, Message, Replay, Resume, ResumeSignal, Suspend, Task,
};
use ff_core::read::{ListSignals, ObserveSignals};
use ff_core::state::{Condition, Count, CountKind, Matcher, SignalEffect};
use uuid::Uuid;

use crate::signalling::{fresh, signal, suspend, suspend_on, waitpoint_key};
use crate::world::{World, code, complete, fail};

/// So many different signals on waitpoint `k`.
fn count(n: u32) -> Condition {
    let waitpoints = vec![waitpoint_key("k")];
    Condition::Count(Count {
        n,
        kind: CountKind::DistinctSignals,
        name: Matcher::Wildcard,
        waitpoints,
    })
}

async fn waiting_for(world: &World, n: u32) -> (Task, IssuedWaitpoint) {
    let task = world.start(world.work()).await;
    let suspended = world.act(suspend_on(&task, vec![fresh("k")], count(n))).await;
    let [waitpoint] = suspended.waitpoints.try_into().unwrap();
    (task, waitpoint)
}

/// A signal with as many bytes of one value as a signal may have.
fn large(id: ExecutionId, to: &IssuedWaitpoint, byte: u8) -> DeliverSignal {
    let small = signal(id, to, &format!("n{byte}"));
    let content = Content::new(vec![byte; limits::SIGNAL_PAYLOAD_BYTES]);
    DeliverSignal { signal: Message { content, ..small.signal }, ..small }
}

async fn observed(world: &World, task: &Task) -> Vec<ResumeSignal> {
    let observe = ObserveSignals { execution_id: task.execution_id, fence: task.fence() };
    world.backend.ask(observe).await.unwrap()
}

/// Names of the signals that a task was resumed by; its holder observes the same.
async fn names(world: &World, task: &Task) -> Vec<String> {
    assert_eq!(observed(world, task).await, task.extras.resume_signals);
    task.extras.resume_signals.iter().map(|signal| signal.name.to_string()).collect()
}

pub async fn the_signals_that_resumed_it_come_with_the_next_claim(world: &World) {
    let (task, waitpoint) = waiting_for(world, 2).await;
    let id = task.execution_id;
    let first = signal(id, &waitpoint, "first");
    assert_eq!(world.deliver(first.clone()).await, SignalEffect::AppendedToWaitpoint);
    assert_eq!(world.deliver(first.clone()).await, SignalEffect::AppendedToWaitpointDuplicate);
    world.advance(3).await;
    let second = signal(id, &waitpoint, "second");
    assert_eq!(world.deliver(second).await, SignalEffect::ResumeConditionSatisfied);
    let resumed = world.claim_one().await;
    assert_eq!(resumed.attempt_id, task.attempt_id);
    assert_eq!(names(world, &resumed).await, ["first", "second"]);
    let listed: Vec<_> = world.signals(id).await.into_iter().map(|listed| listed.signal).collect();
    let [one, two] = resumed.extras.resume_signals.as_slice() else { panic!("{resumed:?}") };
    assert_eq!((one, two), (&listed[0], &listed[2]));
    assert_eq!(
        (one.signal_id, one.payload.as_deref()),
        (first.signal.signal_id, Some(&b"hello"[..]))
    );
    assert_eq!(two.accepted_at.since(one.accepted_at), 3);
}

pub async fn large_bodies_come_along(world: &World) {
    let (task, waitpoint) = waiting_for(world, 3).await;
    for byte in 1..=3 {
        world.deliver(large(task.execution_id, &waitpoint, byte)).await;
    }
    let resumed = world.claim_one().await;
    let bodies = resumed.extras.resume_signals.iter().map(|signal| signal.payload.clone());
    let sent = |byte| Some(Bytes::from(vec![byte; limits::SIGNAL_PAYLOAD_BYTES]));
    assert!(bodies.eq([1, 2, 3].map(sent)), "bodies differ");
    assert!(observed(world, &resumed).await == resumed.extras.resume_signals);
}

pub async fn bodies_beyond_a_reply_are_read_one_by_one(world: &World) {
    let n = u8::try_from(limits::CLAIM_REPLY_BYTES / limits::SIGNAL_PAYLOAD_BYTES).unwrap() + 1;
    let (task, waitpoint) = waiting_for(world, n.into()).await;
    let id = task.execution_id;
    for byte in 1..=n {
        world.deliver(large(id, &waitpoint, byte)).await;
    }
    let resumed = world.claim_one().await;
    let signals = &resumed.extras.resume_signals;
    assert_eq!(signals.len(), usize::from(n), "none is left out");
    let bodies: usize = signals.iter().filter_map(|s| s.payload.as_ref()).map(Bytes::len).sum();
    assert!(bodies <= limits::CLAIM_REPLY_BYTES, "{bodies} bytes");
    assert!(signals[0].payload.is_some() && signals[usize::from(n) - 1].payload.is_none());
    for (number, signal) in (0..).zip(signals) {
        assert_eq!(signal.bytes as usize, limits::SIGNAL_PAYLOAD_BYTES);
        if signal.payload.is_none() {
            let one = ListSignals { execution_id: id, from: number, limit: 1 };
            let [listed] = world.backend.ask(one).await.unwrap().items.try_into().unwrap();
            let body = listed.signal.payload.unwrap();
            assert_eq!((body[0], body.len()), (number as u8 + 1, limits::SIGNAL_PAYLOAD_BYTES));
        }
    }
}

/// Bytes that the signals and the metadata of a task have, and those of them that came along.
fn carried(task: &Task) -> (usize, usize) {
    let signals = &task.extras.resume_signals;
    let of_metadata = task.extras.metadata.as_ref().map_or(0, Bytes::len);
    let all = signals.iter().map(|signal| signal.bytes as usize).sum::<usize>() + of_metadata;
    (all, task.extras.bytes())
}

/// Resumed executions with so many large signals each.
async fn resumed_with(world: &World, signals: &[u8]) -> Vec<ExecutionId> {
    let mut waiting = Vec::new();
    for &n in signals {
        let (task, waitpoint) = waiting_for(world, n.into()).await;
        waiting.push((task.execution_id, waitpoint, n));
        world.advance(1).await;
    }
    for (id, waitpoint, n) in &waiting {
        for byte in 1..=*n {
            world.deliver(large(*id, waitpoint, byte)).await;
        }
    }
    waiting.into_iter().map(|(id, ..)| id).collect()
}

pub async fn a_claim_stops_before_signals_make_its_reply_too_large(world: &World) {
    // Two of them fill most of a reply; the third does not fit beside them.
    let mut left = resumed_with(world, &[28, 28, 28]).await;
    for expected in [2, 1, 0] {
        let tasks = world.claim(10).await;
        assert_eq!(tasks.len(), expected);
        for task in &tasks {
            let (all, along) = carried(task);
            assert_eq!((all, along), (28 * limits::SIGNAL_PAYLOAD_BYTES, all), "none is left out");
            left.retain(|id| *id != task.execution_id);
        }
    }
    assert_eq!(left, []);
}

pub async fn a_task_larger_than_a_reply_holds_nobody_up(world: &World) {
    let most = u8::try_from(limits::CLAIM_REPLY_BYTES / limits::SIGNAL_PAYLOAD_BYTES).unwrap();
    let mut left = resumed_with(world, &[most + 1, 1, 1]).await;
    // How many go along with it depends on who stands beside whom in a partition.
    while !left.is_empty() {
        let tasks = world.claim(10).await;
        assert!(!tasks.is_empty(), "each claim takes some: {left:?} are left");
        let along: usize = tasks.iter().map(|task| carried(task).1).sum();
        assert!(along <= limits::CLAIM_REPLY_BYTES, "{along} bytes in {} tasks", tasks.len());
        left.retain(|id| tasks.iter().all(|task| task.execution_id != *id));
    }
}

pub async fn what_a_suspend_left_counts_in_a_reply(world: &World) {
    const TASKS: usize = 300;
    let metadata = Some(Bytes::from(vec![7; limits::METADATA_BYTES]));
    for _ in 0..TASKS {
        let task = world.start(world.work()).await;
        world.act(Suspend { metadata: metadata.clone(), ..suspend(&task, "k") }).await;
        let (execution_id, trigger) = (task.execution_id, "test".to_owned());
        world.act(Resume { execution_id, trigger, delay_ms: Some(3_600_000) }).await;
    }
    world.pass(3_600_000).await;
    let mut taken = 0;
    while taken < TASKS {
        let tasks = world.claim(limits::CLAIM_TASKS).await;
        let along: usize = tasks.iter().map(|task| carried(task).1).sum();
        assert!(along <= limits::CLAIM_REPLY_BYTES, "{along} bytes in {} tasks", tasks.len());
        assert!(tasks.iter().all(|task| task.extras.metadata == metadata) && !tasks.is_empty());
        taken += tasks.len();
    }
}

pub async fn a_task_that_was_not_resumed_has_none(world: &World) {
    let (task, waitpoint) = world.start_with("k").await;
    world.deliver(signal(task.execution_id, &waitpoint, "x")).await;
    assert_eq!((names(world, &task).await, task.extras.metadata), (vec![], None));
}

pub async fn a_task_that_an_operator_resumed_has_none(world: &World) {
    let (task, waitpoint) = waiting_for(world, 2).await;
    let id = task.execution_id;
    world.deliver(signal(id, &waitpoint, "one of two")).await;
    world.act(Resume { execution_id: id, trigger: "test".to_owned(), delay_ms: None }).await;
    let resumed = world.claim_one().await;
    assert_eq!(names(world, &resumed).await, [""; 0]);
}

pub async fn another_fence_observes_nothing(world: &World) {
    let (task, waitpoint) = world.listening("k").await;
    world.deliver(signal(task.execution_id, &waitpoint, "x")).await;
    let resumed = world.claim_one().await;
    assert_eq!(observed(world, &resumed).await.len(), 1);
    let mut other = resumed.clone();
    other.attempt_id = AttemptId::mint();
    assert_eq!(observed(world, &other).await, []);
    other.execution_id = ExecutionId::solo(Uuid::now_v7(), &world.backend.settings().partitions);
    let nobody = ObserveSignals { execution_id: other.execution_id, fence: other.fence() };
    assert_eq!(code(world.backend.ask(nobody).await), Code::ExecutionNotFound);
}

pub async fn the_next_suspension_brings_its_own(world: &World) {
    let (task, waitpoint) = world.listening("k").await;
    let id = task.execution_id;
    world.deliver(signal(id, &waitpoint, "first")).await;
    let resumed = world.claim_one().await;
    let suspended = world.act(suspend(&resumed, "k")).await;
    world.deliver(signal(id, &suspended.waitpoints[0], "second")).await;
    let resumed = world.claim_one().await;
    assert_eq!(names(world, &resumed).await, ["second"]);
}

pub async fn the_next_attempt_does_not_see_them(world: &World) {
    for how in ["retry", "lost lease", "replay"] {
        let (task, waitpoint) = world.listening("k").await;
        let id = task.execution_id;
        world.deliver(signal(id, &waitpoint, "x")).await;
        let resumed = world.claim_one().await;
        assert_eq!(names(world, &resumed).await, ["x"]);
        match how {
            "retry" => drop(world.act(fail(&resumed, "transient")).await),
            "lost lease" => {}
            _ => {
                world.act(complete(&resumed)).await;
                world.act(Replay { execution_id: id, descendants: false }).await;
            }
        }
        world.pass(limits::LEASE_TTL_MS.cast_signed()).await;
        let next = world.claim_one().await;
        assert_eq!((next.execution_id, next.attempt_index), (id, 1), "{how}");
        assert_eq!(names(world, &next).await, [""; 0], "{how}");
        assert_eq!(observed(world, &resumed).await, [], "{how}: the attempt before");
        world.complete(&next).await.unwrap();
    }
}
