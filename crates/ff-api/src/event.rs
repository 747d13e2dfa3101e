//! Events as they are delivered.

use std::collections::BTreeMap;

use ff_core::event::{Detail, Envelope, EventAbout, EventId, EventKind};
use ff_core::id::{
    DocumentId, DocumentKind, FlowId, Home, Kind, LaneId, Namespace, Subject, WorkerInstanceId,
};
use ff_core::read::EventFilter;
use ff_core::state::Outcome;
use ff_core::time::TimestampMs;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::execution::{read_tags, tags};
use crate::list::OneOrMany;
use crate::object::Invalid;
use crate::problem::FieldError;
use crate::reading::{Unreadable, parsed, word};
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
    /// What else there is to tell, by name; names that end in `_at` or `_until` are times.
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

/// Whether a detail is a point in time: its name says so, as everywhere on the wire.
fn is_time(name: &str) -> bool {
    name.ends_with("_at") || name.ends_with("_until")
}

fn detail(name: &str, detail: Detail) -> serde_json::Value {
    match detail {
        Detail::Text(text) => text.into(),
        Detail::Number(ms) if is_time(name) => Time(TimestampMs(ms)).to_string().into(),
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
        let data = event.data.clone().into_iter().map(|(name, value)| {
            let value = detail(&name, value);
            (name, value)
        });
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

fn told(name: &str, value: serde_json::Value) -> Option<Detail> {
    match value {
        serde_json::Value::String(text) if is_time(name) => {
            let time = Time::deserialize(serde_json::Value::String(text)).ok()?;
            Some(Detail::Number(time.0.0))
        }
        serde_json::Value::String(text) => Some(Detail::Text(text)),
        serde_json::Value::Number(number) => number.as_i64().map(Detail::Number),
        serde_json::Value::Object(map) => {
            let text = |(key, value): (String, serde_json::Value)| match value {
                serde_json::Value::String(text) => Some((key, text)),
                _ => None,
            };
            map.into_iter().map(text).collect::<Option<_>>().map(Detail::Map)
        }
        _ => None,
    }
}

/// Whose event it is: events tell only the name, and their kind tells of what.
fn subject(kind: EventKind, name: &str, home: &Home) -> Result<Subject, Unreadable> {
    let (family, _) = kind.as_str().split_once('.').unwrap_or((kind.as_str(), ""));
    let kind = match family {
        "flow" | "edge" => DocumentKind::Flow,
        "budget" => DocumentKind::Budget,
        "worker" => DocumentKind::Worker,
        "lane" => DocumentKind::Lane,
        "namespace" => DocumentKind::Namespace,
        "bulk" => DocumentKind::Bulk,
        _ => return Ok(Subject::Execution(parsed("subject", name)?)),
    };
    Ok(Subject::Document(DocumentId { kind, home: home.clone(), name: name.into() }))
}

impl TryFrom<Event> for Envelope {
    type Error = Unreadable;

    /// The number of the event before it about the same subject is the log's own affair: it is 0 here.
    fn try_from(told_of: Event) -> Result<Self, Unreadable> {
        let id: EventId = parsed("id", &told_of.id)?;
        let data = told_of.data.into_iter().map(|(name, value)| {
            let value = told(&name, value).ok_or_else(|| Unreadable::new("data", &name))?;
            Ok((name, value))
        });
        let outcome = told_of.outcome.as_deref().map(|text| word("outcome", text)).transpose()?;
        let event = ff_core::event::Event {
            number: id.number,
            previous: 0,
            subject: subject(told_of.type_, &told_of.subject, &id.home)?,
            namespace: told_of.namespace,
            lane: told_of.lane,
            seq: told_of.seq,
            kind: told_of.type_,
            time: told_of.time.into(),
            attempt_index: told_of.attempt_index,
            lease_epoch: told_of.lease_epoch,
            worker_instance_id: told_of.worker_instance_id,
            outcome,
            data: data.collect::<Result<_, Unreadable>>()?,
        };
        let about = match told_of.tags {
            Some(tags) => Some(EventAbout {
                kind: told_of.kind,
                flow_id: told_of.flow_id,
                tags: read_tags(tags)?,
            }),
            None => None,
        };
        Ok(Self { event, about })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_among_the_details_are_told_as_times_and_read_back() {
        let cases = [
            ("delay_until", Detail::Number(1_800_000_000_500), json!("2027-01-15T08:00:00.500Z")),
            ("next_reset_at", Detail::Number(0), json!("1970-01-01T00:00:00.000Z")),
            ("retry_count", Detail::Number(3), json!(3)),
            ("reason", Detail::Text("1".to_owned()), json!("1")),
        ];
        for (name, value, wire) in cases {
            assert_eq!(detail(name, value.clone()), wire, "{name}");
            assert_eq!(told(name, wire), Some(value), "{name}");
        }
        assert_eq!(told("delay_until", json!(5)), Some(Detail::Number(5)));
        assert_eq!(told("delay_until", json!("soon")), None);
    }
}
