//! Submit: the beginning of an execution.

use std::collections::BTreeMap;
use std::sync::Arc;

use ff_core::content::Content;
use ff_core::error::{EngineError, Refusal};
use ff_core::id::{
    BudgetId, ContentType, ExecutionId, FlowId, IdempotencyKey, Kind, LaneId, MemberName,
    Namespace, QuotaPolicyId,
};
use ff_core::operation::{InFlow, Submit as SubmitOperation, Submitted};
use ff_core::partition::PartitionConfig;
use ff_core::policy::Policy;
use ff_core::state::PublicState;
use ff_core::tags::Tags;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::bytes::{Base64, content};
use crate::execution::tags;
use crate::json::Json;
use crate::nullable::given;
use crate::object::{Invalid, Object};
use crate::problem::Failure;
use crate::reading::{Unreadable, parsed, present};
use crate::time::Time;

/// A new execution.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Submit {
    pub lane: LaneId,
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_b64: Option<Base64>,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub payload_json: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<ContentType>,
    /// Full, or the bare uuid; minted when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<String>,
    /// 0 to 9000, clamped; higher first.
    #[serde(default)]
    pub priority: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creator_identity: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_until: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_deadline_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budget_ids: Vec<BudgetId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_policy_id: Option<QuotaPolicyId>,
    /// Becomes a member of this flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_id: Option<FlowId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_name: Option<MemberName>,
    /// Starts as held by an operator.
    #[serde(default)]
    pub held: bool,
    /// W3C trace context, handed to the worker with the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_context: Option<String>,
}

/// What became of a submit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SubmitReply {
    /// `created` or `duplicate`.
    pub status: String,
    pub execution_id: ExecutionId,
    /// Null when the execution of a repeated submit has been removed.
    pub public_state: Option<PublicState>,
    /// After clamping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
}

/// Many submits, each on its own.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    #[schema(value_type = Vec<Submit>)]
    pub items: Vec<Json>,
}

/// What became of each, in the same order.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct BatchReply {
    pub items: Vec<BatchItem>,
}

/// What became of one: `created`, `duplicate`, or `refused` with a problem.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum BatchItem {
    Submitted(SubmitReply),
    Refused { status: String, problem: Failure },
}

impl Submit {
    /// Reads a submit; two names of one field are one field.
    pub fn read(mut object: Object) -> Result<Self, Invalid> {
        object.rename("lane_id", "lane")?;
        object.rename("execution_kind", "kind")?;
        object.read()
    }

    /// The operation. `raw` is the payload when it came as the body itself.
    pub fn operation(
        self,
        namespace: Namespace,
        raw: Option<Content>,
        partitions: &PartitionConfig,
    ) -> Result<SubmitOperation, Failure> {
        let policy = self.policy()?;
        let execution_id = self.id(&namespace, partitions)?;
        let within = self.within()?;
        let content_type = self.content_type.clone().unwrap_or_default();
        let empty = Content { content_type, ..Content::default() };
        let payload = content("payload", self.payload_b64, self.payload_json, self.content_type)?;
        Ok(SubmitOperation {
            namespace,
            payload: raw.or(payload).unwrap_or(empty),
            priority: self.priority,
            creator_identity: self.creator_identity.unwrap_or_default(),
            idempotency_key: self.idempotency_key,
            tags: Tags::new(self.tags)?,
            policy,
            delay_until: self.delay_until.map(Into::into),
            execution_deadline_at: self.execution_deadline_at.map(Into::into),
            held: self.held,
            within,
            trace_context: self.trace_context,
            ..SubmitOperation::new(execution_id, self.lane, self.kind)
        })
    }

    /// The policy with what stands beside it.
    fn policy(&self) -> Result<Arc<Policy>, Failure> {
        let mut policy = match &self.policy {
            Some(json) => {
                Policy::from_json(json.text()).map_err(|refusal| refusal.under("policy"))?
            }
            None if self.budget_ids.is_empty() && self.quota_policy_id.is_none() => {
                return Ok(Policy::shared_default());
            }
            None => Policy::default(),
        };
        policy.attached.add(self.budget_ids.iter().copied());
        if let Some(id) = self.quota_policy_id {
            if policy.attached.quota_policy_id.is_some_and(|other| other != id) {
                let message = "the policy names another quota policy";
                return Err(Invalid::at("quota_policy_id", message).into());
            }
            policy.attached.quota_policy_id = Some(id);
        }
        Ok(Arc::new(policy))
    }

    fn id(
        &self,
        namespace: &Namespace,
        partitions: &PartitionConfig,
    ) -> Result<ExecutionId, Failure> {
        let uuid = match &self.execution_id {
            None if self.flow_id.is_none() && self.idempotency_key.is_none() => {
                return Ok(ExecutionId::mint(partitions));
            }
            None => Uuid::now_v7(),
            Some(text) if text.starts_with('{') => {
                let id = text.parse().map_err(|error| Invalid::at("execution_id", error))?;
                return Ok(id);
            }
            Some(text) => {
                // The one text form of a uuid, as all ids have it.
                let id: FlowId =
                    text.parse().map_err(|error| Invalid::at("execution_id", error))?;
                id.uuid()
            }
        };
        Ok(match (self.flow_id, &self.idempotency_key) {
            (Some(flow), _) => ExecutionId::for_flow(uuid, flow, partitions),
            (None, Some(key)) => ExecutionId::for_key(uuid, namespace, key, partitions),
            (None, None) => ExecutionId::solo(uuid, partitions),
        })
    }

    fn within(&self) -> Result<Option<InFlow>, Failure> {
        match (self.flow_id, &self.member_name) {
            (Some(flow_id), name) => Ok(Some(InFlow { flow_id, name: name.clone() })),
            (None, None) => Ok(None),
            (None, Some(_)) => {
                Err(Invalid::at("member_name", "only a member of a flow has a name").into())
            }
        }
    }
}

impl From<Submitted> for SubmitReply {
    fn from(submitted: Submitted) -> Self {
        match submitted {
            Submitted::Created { execution_id, public_state, priority, event_id } => Self {
                status: "created".to_owned(),
                execution_id,
                public_state: Some(public_state),
                priority: Some(priority),
                event_id: Some(event_id.to_string()),
            },
            Submitted::Duplicate { execution_id, public_state } => Self {
                status: "duplicate".to_owned(),
                execution_id,
                public_state,
                priority: None,
                event_id: None,
            },
        }
    }
}

impl SubmitReply {
    pub fn is_new(&self) -> bool {
        self.status == "created"
    }
}

impl BatchItem {
    pub fn refused(failure: Failure) -> Self {
        Self::Refused { status: "refused".to_owned(), problem: failure }
    }

    /// The same, of the item with this number in a list: what is wrong stands in it.
    #[must_use]
    pub fn placed(self, number: usize) -> Self {
        match self {
            Self::Refused { status, problem } => {
                let problem = Failure::new(problem.placed(&format!("/items/{number}")));
                Self::Refused { status, problem }
            }
            submitted @ Self::Submitted(_) => submitted,
        }
    }
}

/// A body that came by itself, with its media type.
pub fn raw_content(bytes: bytes::Bytes, content_type: Option<&str>) -> Result<Content, Refusal> {
    let mut content = Content::new(bytes);
    if let Some(text) = content_type {
        content.content_type =
            ContentType::new(text).map_err(|error| Refusal::invalid("content_type", error))?;
    }
    Ok(content)
}

impl From<SubmitOperation> for Submit {
    /// Everything but the namespace, which stands beside the body.
    fn from(submit: SubmitOperation) -> Self {
        let Content { bytes, content_type } = submit.payload;
        let (flow_id, member_name) = match submit.within {
            Some(InFlow { flow_id, name }) => (Some(flow_id), name),
            None => (None, None),
        };
        let is_default = Arc::ptr_eq(&submit.policy, &Policy::shared_default());
        let policy =
            if is_default { None } else { Json::from_value(&submit.policy.to_json()).ok() };
        Self {
            lane: submit.lane,
            kind: submit.kind,
            payload_b64: Some(Base64(bytes)),
            payload_json: None,
            content_type: Some(content_type),
            execution_id: Some(submit.execution_id.to_string()),
            priority: submit.priority,
            creator_identity: Some(submit.creator_identity),
            idempotency_key: submit.idempotency_key,
            tags: tags(&submit.tags),
            policy,
            delay_until: submit.delay_until.map(Into::into),
            execution_deadline_at: submit.execution_deadline_at.map(Into::into),
            budget_ids: Vec::new(),
            quota_policy_id: None,
            flow_id,
            member_name,
            held: submit.held,
            trace_context: submit.trace_context,
        }
    }
}

impl TryFrom<SubmitReply> for Submitted {
    type Error = Unreadable;

    fn try_from(reply: SubmitReply) -> Result<Self, Unreadable> {
        let (execution_id, public_state) = (reply.execution_id, reply.public_state);
        match reply.status.as_str() {
            "created" => Ok(Self::Created {
                execution_id,
                public_state: present("public_state", public_state)?,
                priority: present("priority", reply.priority)?,
                event_id: parsed("event_id", &present("event_id", reply.event_id)?)?,
            }),
            "duplicate" => Ok(Self::Duplicate { execution_id, public_state }),
            other => Err(Unreadable::new("status", other)),
        }
    }
}

impl BatchItem {
    /// What became of it.
    pub fn outcome(self) -> Result<Submitted, EngineError> {
        match self {
            Self::Submitted(reply) => {
                Submitted::try_from(reply).map_err(|error| EngineError::bug(error.to_string()))
            }
            Self::Refused { problem, .. } => Err((*problem).into()),
        }
    }
}
