//! Payloads and results are opaque: what goes in comes out byte for byte.

use bytes::Bytes;
use ff_core::backend::BackendExt;
use ff_core::content::Content;
use ff_core::error::Code;
use ff_core::id::ContentType;
use ff_core::limits;
use ff_core::operation::{Complete, Submit};
use ff_core::read::ReadContext;

use crate::world::{World, complete};

fn every_byte() -> Bytes {
    (0..=u8::MAX).chain((0..=u8::MAX).rev()).collect()
}

fn largest() -> Content {
    Content::new(vec![0xa5; limits::PAYLOAD_BYTES])
}

fn too_large() -> Content {
    Content::new(vec![0; limits::PAYLOAD_BYTES + 1])
}

pub async fn bytes_come_back_as_they_went_in(world: &World) {
    let content_type = ContentType::new("text/x; charset=\"ü\"").unwrap();
    for bytes in [every_byte(), Bytes::new(), Bytes::from_static(b"\0"), largest().bytes] {
        let payload = Content { content_type: content_type.clone(), bytes: bytes.clone() };
        let task = world.start(Submit { payload: payload.clone(), ..world.work() }).await;
        assert!(task.payload == bytes, "the task's payload of {} bytes differs", bytes.len());
        assert_eq!(task.content_type, content_type);
        let question = ReadContext { execution_id: task.execution_id };
        let context = world.backend.ask(question).await.unwrap().unwrap();
        assert!(context.payload == bytes, "the stored payload of {} bytes differs", bytes.len());
        assert_eq!((context.content_type, context.kind), (content_type.clone(), task.kind.clone()));
        world.act(Complete { result: Some(payload.clone()), ..complete(&task) }).await;
        assert!(world.result(task.execution_id).await.unwrap() == payload, "the result differs");
    }
}

pub async fn a_payload_over_the_limit_is_refused(world: &World) {
    let submit = Submit { payload: too_large(), ..world.work() };
    world.refuses(submit, Code::PayloadTooLarge).await;
}

pub async fn a_result_over_the_limit_leaves_the_lease_as_it_is(world: &World) {
    let task = world.start(world.work()).await;
    let oversized = Complete { result: Some(too_large()), ..complete(&task) };
    world.refuses(oversized, Code::PayloadTooLarge).await;
    world.act(Complete { result: Some(largest()), ..complete(&task) }).await;
    assert!(world.result(task.execution_id).await.unwrap() == largest(), "the result differs");
}

pub async fn a_claim_stops_before_its_reply_grows_too_large(world: &World) {
    let fitting = limits::CLAIM_REPLY_BYTES / limits::PAYLOAD_BYTES;
    let submits = (0..=fitting).map(|_| Submit { payload: largest(), ..world.work() }).collect();
    for reply in world.backend.submit_batch(submits).await.unwrap() {
        reply.unwrap();
    }
    assert_eq!(world.claim(100).await.len(), fitting);
    assert_eq!(world.claim(100).await.len(), 1);
}
