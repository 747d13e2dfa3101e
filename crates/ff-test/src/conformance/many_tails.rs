//! Many tails at once: each gets what it waits for, and none is in the way of anybody.

use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::read::{StreamPage, Tail};
use ff_core::state::{FrameId, StreamEnd};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::output::bodies;
use crate::waits::{resume, suspend, wildcard};
use crate::world::{PATIENCE, World, delay};

const LONG: Duration = Duration::from_secs(25);

/// Tails under way, each in a task of its own.
struct Tails(JoinSet<StreamPage>);

impl Tails {
    /// Begins with all of them. Some may look only after what they wait for has come.
    fn begin(world: &World, tails: impl IntoIterator<Item = Tail>) -> Self {
        let mut set = JoinSet::new();
        for tail in tails {
            let backend = std::sync::Arc::clone(&world.backend);
            set.spawn(async move { backend.tail(tail, LONG).await.expect("a page") });
        }
        Self(set)
    }

    /// What each brought, in no order.
    async fn end(self) -> Vec<StreamPage> {
        timeout(PATIENCE, self.0.join_all()).await.expect("every tail is answered")
    }
}

pub async fn a_hundred_tails_of_one_execution_all_wake(world: &World) {
    let task = world.start(world.work()).await;
    let tail = Tail::after(task.execution_id, 0, FrameId::FIRST);
    let tails = Tails::begin(world, vec![tail; 100]);
    let said = world.print(&task, "to all").await;
    for page in tails.end().await {
        assert_eq!(bodies(&page.frames), ["to all"]);
    }
    let tails = Tails::begin(world, vec![Tail::after(task.execution_id, 0, said); 100]);
    world.complete(&task).await.unwrap();
    for page in tails.end().await {
        assert_eq!(page.closed.map(|closed| closed.reason), Some(StreamEnd::AttemptSuccess));
    }
}

pub async fn a_hundred_tails_of_as_many_executions_get_each_its_own(world: &World) {
    for _ in 0..100 {
        world.submit(world.work()).await;
    }
    let tasks = world.claim(100).await;
    assert_eq!(tasks.len(), 100);
    let tail = |n: usize| Tail::after(tasks[n].execution_id, 0, FrameId::FIRST);
    let tails = Tails::begin(world, (0..100).map(tail));
    for task in &tasks {
        world.print(task, &task.execution_id.to_string()).await;
    }
    let mut said: Vec<_> = tails.end().await.iter().flat_map(|page| bodies(&page.frames)).collect();
    let mut expected: Vec<_> = tasks.iter().map(|task| task.execution_id.to_string()).collect();
    said.sort();
    expected.sort();
    assert_eq!(said, expected);
}

pub async fn tails_hold_up_no_claim_and_no_write(world: &World) {
    let quiet = world.start(world.work()).await;
    let tail = Tail::after(quiet.execution_id, 0, FrameId::FIRST);
    let tails = Tails::begin(world, vec![tail; 100]);
    let work = async {
        for n in 0..10 {
            let task = world.start(world.work()).await;
            world.print(&task, "x").await;
            world.output(task.execution_id, 0).await;
            world.complete(&task).await.unwrap();
            assert_eq!(world.claim_ids(1).await, [], "round {n}");
        }
    };
    timeout(PATIENCE, work).await.expect("nobody waits for a tail");
    world.complete(&quiet).await.unwrap();
    assert_eq!(tails.end().await.len(), 100);
}

pub async fn tails_with_different_places_get_what_is_behind_theirs(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let a = world.print(&task, "a").await;
    let b = world.print(&task, "b").await;
    let waiting = Tails::begin(world, [Tail::after(id, 0, b)]);
    let early = Tails::begin(world, [Tail::after(id, 0, a), Tail::after(id, 0, FrameId::FIRST)]);
    let mut early: Vec<_> =
        early.end().await.iter().map(|page| bodies(&page.frames).concat()).collect();
    early.sort();
    assert!(early[0].starts_with("ab") && early[1].starts_with('b'), "{early:?}");
    world.print(&task, "c").await;
    assert_eq!(bodies(&waiting.end().await[0].frames), ["c"]);
}

pub async fn tails_of_two_attempts_are_apart(world: &World) {
    let first = world.start(world.work()).await;
    let id = first.execution_id;
    let of_first = Tails::begin(world, [Tail::after(id, 0, FrameId::FIRST)]);
    world.act(crate::world::revoke(id)).await;
    let closed = of_first.end().await.remove(0);
    assert_eq!(closed.closed.map(|closed| closed.reason), Some(StreamEnd::Reclaimed));
    let second = world.claim_one().await;
    let of_second = Tails::begin(world, [Tail::after(id, 1, FrameId::FIRST)]);
    world.print(&second, "a").await;
    assert_eq!(bodies(&of_second.end().await[0].frames), ["a"]);
}

pub async fn a_tail_sees_an_attempt_go_on(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let after = world.print(&task, "before").await;
    world.act(suspend(&task, wildcard("go"))).await;
    let tails = Tails::begin(world, vec![Tail::after(id, 0, after); 3]);
    world.act(resume(id)).await;
    let task = world.claim_one().await;
    let after = world.print(&task, "afterwards").await;
    for page in tails.end().await {
        assert_eq!((bodies(&page.frames), page.closed), (vec!["afterwards".to_owned()], None));
    }
    world.act(delay(&task, 1_000)).await;
    let tails = Tails::begin(world, [Tail::after(id, 0, after)]);
    world.pass(1_000).await;
    let task = world.claim_one().await;
    world.print(&task, "at last").await;
    assert_eq!(bodies(&tails.end().await[0].frames), ["at last"]);
}
