//! Events as they are delivered.

use std::collections::BTreeMap;

use ff_core::event::{Detail, Envelope, EventKind};
use ff_core::id::{FlowId, Kind, LaneId, Namespace, WorkerInstanceId};
use ff_core::read::EventFilter;
use ff_core::state::Outcome;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::execution::tags;
use crate::list::OneOrMany;
use crate::object::Invalid;
use crate::problem::FieldError;
use crate::search::tag;
use crate::time::Time;

/// One transition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    pub id: String,
    /// 1, 2, 3 … per subject, without holes.
    pub seq: u64,
    #[serde(rename = "type")]
    pub type_: EventKind,
    pub time: Time,
    pub namespace: Namespace,
    /// Execution, flow, budget, lane or worker.
    pub subject: String,
    pub lane: Option<LaneId>,
    pub kind: Option<Kind>,
    pub flow_id: Option<FlowId>,
    pub tags: Option<BTreeMap<String, String>>,
    pub attempt_index: Option<u32>,
    pub lease_epoch: Option<u64>,
    pub worker_instance_id: Option<WorkerInstanceId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[schema(value_type = Object)]
    pub data: serde_json::Map<String, serde_json::Value>,
}

/// Which events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Events {
    /// Names with commas between.
    pub types: Option<String>,
    #[schema(value_type = Vec<LaneId>)]
    pub lane: OneOrMany<LaneId>,
    #[schema(value_type = Vec<Kind>)]
    pub kind: OneOrMany<Kind>,
    /// `key:value`; all of them.
    #[schema(value_type = Vec<String>)]
    pub tag: OneOrMany<String>,
    pub flow: Option<FlowId>,
    /// `success`, `failed`, `cancelled`, `expired` or `skipped`.
    pub outcome: Option<String>,
    /// A cursor; `start` for the oldest kept event; from now on when absent.
    pub after: Option<String>,
    pub limit: Option<u32>,
}

/// A stretch of the log. There is always a cursor to go on with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventPage {
    pub items: Vec<Event>,
    pub next_cursor: String,
    /// Retention removed events between the cursor and the first item.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gap: bool,
}

fn detail(detail: Detail) -> serde_json::Value {
    match detail {
        Detail::Text(text) => text.into(),
        Detail::Number(number) => number.into(),
        Detail::Map(map) => map
            .into_iter()
            .map(|(key, text)| (key, text.into()))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

impl From<Envelope> for Event {
    fn from(envelope: Envelope) -> Self {
        let Envelope { event, about } = envelope;
        let data = event.data.clone().into_iter().map(|(name, value)| (name, detail(value)));
        Self {
            id: event.id().to_string(),
            seq: event.seq,
            type_: event.kind,
            time: event.time.into(),
            subject: event.subject.to_string(),
            lane: event.lane,
            kind: about.as_ref().and_then(|about| about.kind.clone()),
            flow_id: about.as_ref().and_then(|about| about.flow_id),
            tags: about.as_ref().map(|about| tags(&about.tags)),
            attempt_index: event.attempt_index,
            lease_epoch: event.lease_epoch,
            worker_instance_id: event.worker_instance_id,
            outcome: event.outcome.map(|outcome| outcome.as_str().to_owned()),
            namespace: event.namespace,
            data: data.collect(),
        }
    }
}

fn outcome(text: &str) -> Result<Outcome, Invalid> {
    let all =
        [Outcome::Success, Outcome::Failed, Outcome::Cancelled, Outcome::Expired, Outcome::Skipped];
    all.into_iter().find(|outcome| outcome.as_str() == text).ok_or_else(|| {
        Invalid(vec![FieldError::parameter("outcome", format!("{text:?} is no outcome"))])
    })
}

impl Events {
    pub fn filter(&self, namespace: Namespace) -> Result<EventFilter, Invalid> {
        let kinds = self.types.as_deref().map(|types| types.split(',').map(str::trim));
        let kinds = kinds.into_iter().flatten().map(|name| {
            EventKind::parse(name).ok_or_else(|| {
                Invalid(vec![FieldError::parameter("types", format!("{name:?} is no event"))])
            })
        });
        let texts: Vec<String> = self.tag.clone().into();
        let outcomes = self.outcome.as_deref().into_iter().flat_map(|text| text.split(','));
        Ok(EventFilter {
            kinds_of_event: kinds.collect::<Result<_, _>>()?,
            namespace: Some(namespace),
            lanes: self.lane.clone().into(),
            kinds: self.kind.clone().into(),
            tags: texts.iter().map(|text| tag(text)).collect::<Result<_, _>>()?,
            flow: self.flow,
            outcomes: outcomes.map(outcome).collect::<Result<_, _>>()?,
        })
    }
}
