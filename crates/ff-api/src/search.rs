//! Search over executions, and what comes with each.

use ff_core::id::{FlowId, Kind, LaneId, Namespace};
use ff_core::read;
use ff_core::state::PublicState;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::list::{OneOrMany, counts};
use crate::object::Invalid;
use crate::problem::FieldError;
use crate::time::Time;

/// Which executions, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Search {
    #[schema(value_type = Vec<LaneId>)]
    pub lane: OneOrMany<LaneId>,
    #[schema(value_type = Vec<PublicState>)]
    pub state: OneOrMany<PublicState>,
    #[schema(value_type = Vec<Kind>)]
    pub kind: OneOrMany<Kind>,
    /// `key:value`; all of them.
    #[schema(value_type = Vec<String>)]
    pub tag: OneOrMany<String>,
    pub flow: Option<FlowId>,
    pub created_after: Option<Time>,
    pub created_before: Option<Time>,
    pub completed_after: Option<Time>,
    pub completed_before: Option<Time>,
    /// `payload`, `result`, `attempts`, with commas between.
    pub include: Option<String>,
    /// `estimate`: how many there are in all, counted up to a bound.
    pub count: Option<String>,
    pub cursor: Option<String>,
    /// 1 to 500; 50 when absent.
    pub limit: Option<u32>,
}

/// What comes with a record on demand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Include {
    pub payload: bool,
    pub result: bool,
    pub attempts: bool,
}

/// How one execution is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReadRecord {
    /// `payload`, `result`, `attempts`, with commas between.
    pub include: Option<String>,
}

impl Include {
    pub fn parse(text: Option<&str>) -> Result<Self, Invalid> {
        let mut include = Self::default();
        for part in text.into_iter().flat_map(|text| text.split(',')).map(str::trim) {
            match part {
                "payload" => include.payload = true,
                "result" => include.result = true,
                "attempts" => include.attempts = true,
                _ => {
                    let message = format!("{part:?} is none of payload, result and attempts");
                    return Err(Invalid(vec![FieldError::parameter("include", message)]));
                }
            }
        }
        Ok(include)
    }
}

/// Reads `key:value`.
pub fn tag(text: &str) -> Result<(String, String), Invalid> {
    match text.split_once(':') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Invalid::at("tag", format!("{text:?} is not of the form key:value"))),
    }
}

impl Search {
    /// Whether the number of all of them is asked for.
    pub fn counts(&self) -> Result<bool, Invalid> {
        counts(self.count.as_deref())
    }

    /// The question, with what is to come along.
    pub fn question(self, namespace: Namespace) -> Result<(read::Search, Include), Invalid> {
        let include = Include::parse(self.include.as_deref())?;
        let tags: Vec<String> = self.tag.into();
        let filter = read::Filter {
            namespace: Some(namespace),
            lanes: self.lane.into(),
            states: self.state.into(),
            kinds: self.kind.into(),
            tags: tags.iter().map(|text| tag(text)).collect::<Result<_, _>>()?,
            flow: self.flow,
            created_after: self.created_after.map(Into::into),
            created_before: self.created_before.map(Into::into),
            completed_after: self.completed_after.map(Into::into),
            completed_before: self.completed_before.map(Into::into),
        };
        let limit = self.limit.unwrap_or(ff_core::limits::PAGE);
        Ok((read::Search { filter, cursor: self.cursor, limit }, include))
    }
}

impl From<read::Search> for Search {
    /// Everything but the namespace, which stands beside the body.
    fn from(search: read::Search) -> Self {
        Self { cursor: search.cursor, limit: Some(search.limit), ..search.filter.into() }
    }
}

impl From<read::Filter> for Search {
    fn from(filter: read::Filter) -> Self {
        let tags = filter.tags.into_iter().map(|(key, value)| format!("{key}:{value}"));
        Self {
            lane: OneOrMany::Many(filter.lanes),
            state: OneOrMany::Many(filter.states),
            kind: OneOrMany::Many(filter.kinds),
            tag: OneOrMany::Many(tags.collect()),
            flow: filter.flow,
            created_after: filter.created_after.map(Into::into),
            created_before: filter.created_before.map(Into::into),
            completed_after: filter.completed_after.map(Into::into),
            completed_before: filter.completed_before.map(Into::into),
            ..Self::default()
        }
    }
}
