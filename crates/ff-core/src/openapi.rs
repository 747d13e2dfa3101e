//! Schemas of identifiers and states, for descriptions of the wire. They stand here because only the
//! crate of a type can describe it to another's trait.

use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

use crate::error::{Class, Code};
use crate::event::EventKind;
use crate::id::{
    AttemptId, BudgetId, ContentType, Dimension, EdgeId, ExecutionId, FlowId, IdempotencyKey,
    KeyId, Kid, Kind, LaneId, LeaseId, MemberName, Namespace, PartitionKey, QuotaPolicyId,
    SignalId, SignalName, SuspensionId, WaitpointId, WaitpointKey, WorkerId, WorkerInstanceId,
};
use crate::state::{
    AttemptProgress, AttemptType, BlockingReason, EligibilityState, FailureClass, LifecyclePhase,
    OwnershipState, PublicState,
};

fn text(description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).description(Some(description))
}

fn one_of(description: &str, values: Vec<&'static str>) -> RefOr<Schema> {
    RefOr::T(text(description).enum_values(Some(values)).build().into())
}

macro_rules! texts {
    ($($name:ident, $pattern:expr, $description:literal;)*) => {$(
        impl ToSchema for $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let pattern: Option<&str> = $pattern;
                RefOr::T(text($description).pattern(pattern).build().into())
            }
        }
    )*};
}

macro_rules! uuids {
    ($($name:ident, $description:literal;)*) => {$(
        impl ToSchema for $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let format = SchemaFormat::Custom("uuid".to_owned());
                RefOr::T(text($description).format(Some(format)).build().into())
            }
        }
    )*};
}

macro_rules! names {
    ($($name:ident, $description:literal;)*) => {$(
        impl ToSchema for $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                one_of($description, $name::ALL.iter().map(|value| value.as_str()).collect())
            }
        }
    )*};
}

texts! {
    ExecutionId, Some(r"^\{fp:\d+\}:[0-9a-f-]{36}$"), "`{fp:N}:<uuid>`, N being the partition";
    Namespace, Some("^[a-z0-9][a-z0-9._-]{0,62}$"), "Tenant boundary";
    LaneId, Some("^[ -~]{1,64}$"), "A named queue inside a namespace";
    Kind, None, "What a worker chooses its handler by; 1 to 128 bytes";
    MemberName, None, "Names a member inside its flow";
    WorkerId, None, "A pool of worker processes; 1 to 256 bytes without whitespace";
    WorkerInstanceId, None, "One worker process; 1 to 256 bytes without whitespace";
    IdempotencyKey, None, "Names a request so that repeating it makes nothing new";
    ContentType, None, "Media type of a body";
    WaitpointKey, None, "Name of a waitpoint inside its execution";
    SignalName, None, "What a signal is about";
    Dimension, Some("^[a-z][a-z0-9_.]{0,63}$"), "What a budget counts";
    KeyId, Some("^[a-z0-9]{8,32}$"), "The public part of an API key";
    Kid, Some("^[A-Za-z0-9_-]{1,64}$"), "Names a key that signs waitpoint tokens";
    PartitionKey, Some(r"^\{(fp|b|q):\d+\}$"), "A partition";
}

uuids! {
    FlowId, "A flow";
    EdgeId, "A dependency of one member of a flow on another";
    BudgetId, "Counters with limits, by dimension";
    QuotaPolicyId, "A rate window and a concurrency cap";
    LeaseId, "One lease";
    AttemptId, "One attempt at an execution";
    WaitpointId, "An address that signals are sent to";
    SuspensionId, "One stop of an execution";
    SignalId, "One signal";
}

names! {
    LifecyclePhase, "Where in its life an execution is";
    OwnershipState, "Whether somebody holds its lease";
    EligibilityState, "Whether it can be claimed";
    BlockingReason, "What it waits for";
    AttemptProgress, "How far the current attempt is";
    PublicState, "The one word that most users look at";
    AttemptType, "Why an attempt was opened";
    FailureClass, "What a failure means for a retry";
    EventKind, "What happened";
    Code, "A stable code; new ones may come";
}

impl ToSchema for Class {}

impl PartialSchema for Class {
    fn schema() -> RefOr<Schema> {
        let classes =
            ["terminal", "retryable", "cooperative", "informational", "precondition", "bug"];
        one_of("What a caller may do about a failure", classes.to_vec())
    }
}
