//! There and back: what a client makes of an operation the server reads as that operation, and what the
//! server makes of a reply the client reads as that reply.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

mod failures;
mod records;
mod replies;
mod requests;

use ff_core::id::{ExecutionId, LaneId, LeaseFence, LeaseId, Namespace};
use ff_core::tags::Tags;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

/// The same form after it went over the wire.
fn over<F: Serialize + DeserializeOwned>(form: &F) -> F {
    serde_json::from_str(&serde_json::to_string(form).unwrap()).unwrap()
}

/// A reply becomes a form, goes over the wire, and is the same reply again.
#[track_caller]
fn comes_back<F, T>(reply: T)
where
    F: From<T> + Serialize + DeserializeOwned,
    T: TryFrom<F, Error: std::fmt::Debug> + PartialEq + std::fmt::Debug + Clone,
{
    let sent = reply.clone();
    let back = T::try_from(over(&F::from(reply))).unwrap();
    assert_eq!(back, sent);
}

fn id() -> ExecutionId {
    ExecutionId::new(7, Uuid::now_v7())
}

fn lane() -> LaneId {
    LaneId::new("emails").unwrap()
}

fn namespace() -> Namespace {
    Namespace::new("tenant").unwrap()
}

fn tags() -> Tags {
    Tags::new([("team.name".to_owned(), "a b".to_owned())]).unwrap()
}

fn fence() -> LeaseFence {
    let lease_id = LeaseId::mint();
    LeaseFence { lease_id, lease_epoch: 3, attempt_id: lease_id.into() }
}
