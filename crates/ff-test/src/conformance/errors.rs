//! How a refusal reaches its caller: the same kind, code and detail from every store.

use ff_core::backend::BackendExt;
use ff_core::error::{Code, EngineError, Refusal};
use ff_core::limits;
use ff_core::operation::{Cancel, Command, Delete, Submit, Task};

use crate::world::{World, cancel, complete, hold, set_tags};

async fn error(world: &World, command: impl Into<Command>) -> EngineError {
    world.command(command.into()).await.unwrap_err()
}

pub async fn a_refusal_comes_as_the_kind_of_error_that_its_code_belongs_to(world: &World) {
    let task = world.start(world.work()).await;
    let done = world.finish(world.work()).await;
    let stale = Task { lease_epoch: 9, ..task.clone() };
    let submit = world.work();
    world.submit(submit.clone()).await;
    let other = Submit { lane: "other".parse().unwrap(), ..submit };
    world.act(Delete { execution_id: done.execution_id }).await;
    let missing = error(world, hold(done.execution_id)).await;
    assert!(matches!(missing, EngineError::NotFound(_)), "{missing:?}");
    let invalid = error(world, set_tags(task.execution_id, &[])).await;
    assert!(matches!(invalid, EngineError::Validation(_)), "{invalid:?}");
    let conflict = error(world, other).await;
    assert!(matches!(conflict, EngineError::Conflict(_)), "{conflict:?}");
    for command in [Command::from(complete(&stale)), hold(task.execution_id).into()] {
        let state = error(world, command).await;
        assert!(matches!(state, EngineError::State(_)), "{state:?}");
        assert!(!state.is_retryable());
    }
}

pub async fn a_refusal_of_input_names_the_field_and_the_limit(world: &World) {
    let id = world.submit(world.work()).await;
    let long = Cancel { reason: "x".repeat(limits::REASON_BYTES + 1), ..cancel(id) };
    let Refusal { code, detail, field, .. } =
        world.backend.call(long).await.unwrap_err().refusal().cloned().unwrap();
    assert_eq!((code, field.as_deref()), (Code::InvalidInput, Some("reason")));
    assert!(detail.contains("4096"), "{detail}");
    let malformed = set_tags(id, &[("no-dot", "")]);
    let error = world.backend.call(malformed).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().field.as_deref(), Some("tags"));
    assert!(error.to_string().starts_with("invalid_tag_key: "), "{error}");
}
