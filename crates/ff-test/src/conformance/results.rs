//! Results: kept with the attempt that succeeded.

use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::operation::{Complete, Delete, Replay, Task};
use ff_core::read::ReadResult;

use crate::world::{World, code, complete};

fn with_result(task: &Task, bytes: &'static [u8]) -> Complete {
    Complete { result: Some(Content::json(bytes)), ..complete(task) }
}

async fn of_attempt(world: &World, task: &Task, index: u32) -> Result<Content, Code> {
    let question = ReadResult { execution_id: task.execution_id, attempt_index: Some(index) };
    world.backend.ask(question).await.map_err(|error| error.code())
}

pub async fn a_result_is_read_with_its_content_type(world: &World) {
    let task = world.start(world.work()).await;
    assert_eq!(code(world.result(task.execution_id).await), Code::ResultNotFound);
    world.act(with_result(&task, b"[1]")).await;
    assert_eq!(world.result(task.execution_id).await, Ok(Content::json(b"[1]".as_slice())));
}

pub async fn no_result_is_none_and_an_empty_result_is_one(world: &World) {
    let task = world.finish(world.work()).await;
    assert_eq!(code(world.result(task.execution_id).await), Code::ResultNotFound);
    let task = world.start(world.work()).await;
    world.act(with_result(&task, b"")).await;
    assert_eq!(world.result(task.execution_id).await, Ok(Content::json(b"".as_slice())));
}

pub async fn a_failed_attempt_has_no_result(world: &World) {
    let task = world.start(world.work()).await;
    world.fail(&task, "transient").await.unwrap();
    world.pass(1_000).await;
    let retry = world.claim_one().await;
    world.act(with_result(&retry, b"1")).await;
    assert_eq!(of_attempt(world, &task, 0).await, Err(Code::ResultNotFound));
    assert_eq!(of_attempt(world, &task, 1).await, Ok(Content::json(b"1".as_slice())));
    assert_eq!(of_attempt(world, &task, 2).await, Err(Code::ResultNotFound));
}

pub async fn every_generation_keeps_its_result(world: &World) {
    let first = world.start(world.work()).await;
    world.act(with_result(&first, b"1")).await;
    world.act(Replay { execution_id: first.execution_id, descendants: false }).await;
    let before = Ok(Content::json(b"1".as_slice()));
    assert_eq!(world.result(first.execution_id).await, before, "until there is a newer one");
    let second = world.claim_one().await;
    world.fail(&second, "permanent").await.unwrap();
    assert_eq!(world.result(first.execution_id).await, before, "a failure has none");
    world.act(Replay { execution_id: first.execution_id, descendants: false }).await;
    let third = world.claim_one().await;
    world.act(with_result(&third, b"3")).await;
    assert_eq!(world.result(first.execution_id).await, Ok(Content::json(b"3".as_slice())));
    assert_eq!(of_attempt(world, &first, 0).await, before.map_err(|error| error.code()));
    assert_eq!(of_attempt(world, &first, 1).await, Err(Code::ResultNotFound));
}

pub async fn a_removed_execution_has_no_result(world: &World) {
    let task = world.start(world.work()).await;
    world.act(with_result(&task, b"1")).await;
    world.act(Delete { execution_id: task.execution_id }).await;
    assert_eq!(code(world.result(task.execution_id).await), Code::ExecutionNotFound);
}

pub async fn a_success_without_a_result_hides_those_before_it(world: &World) {
    let first = world.start(world.work()).await;
    world.act(with_result(&first, b"1")).await;
    world.act(Replay { execution_id: first.execution_id, descendants: false }).await;
    let second = world.claim_one().await;
    world.complete(&second).await.unwrap();
    assert_eq!(code(world.result(first.execution_id).await), Code::ResultNotFound);
    assert_eq!(of_attempt(world, &first, 0).await, Ok(Content::json(b"1".as_slice())));
}
