//! Failures and cancels: whose fault, and what follows.

use serde::{Deserialize, Serialize};

use crate::error::Refusal;
use crate::limits;

/// What a worker, or the engine, said of a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub reason: String,
    /// Kept as it was given.
    pub category: String,
    pub class: FailureClass,
}

/// What a failure means for a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    Transient,
    Permanent,
    InfraCrash,
    Timeout,
    Cancelled,
}

impl FailureClass {
    pub const ALL: [Self; 5] =
        [Self::Transient, Self::Permanent, Self::InfraCrash, Self::Timeout, Self::Cancelled];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Permanent => "permanent",
            Self::InfraCrash => "infra_crash",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }

    /// The class that a category text stands for; an unknown one is transient.
    pub fn of_category(category: &str) -> Self {
        Self::ALL.into_iter().find(|class| class.as_str() == category).unwrap_or(Self::Transient)
    }

    pub const fn may_retry(self) -> bool {
        !matches!(self, Self::Permanent | Self::Cancelled)
    }
}

/// Who cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CancelSource {
    #[default]
    OperatorOverride,
    LeaseHolder,
    FlowCascade,
    SystemTimeout,
    Custom(String),
}

impl CancelSource {
    /// Reads the text form; every other text is a source of its own.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        crate::check::check_bytes("source", text, limits::CATEGORY_BYTES)?;
        match text {
            "" => Err(Refusal::invalid("source", "source is empty")),
            "operator_override" => Ok(Self::OperatorOverride),
            "lease_holder" => Ok(Self::LeaseHolder),
            "flow_cascade" => Ok(Self::FlowCascade),
            "system_timeout" => Ok(Self::SystemTimeout),
            custom => Ok(Self::Custom(custom.to_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::OperatorOverride => "operator_override",
            Self::LeaseHolder => "lease_holder",
            Self::FlowCascade => "flow_cascade",
            Self::SystemTimeout => "system_timeout",
            Self::Custom(text) => text,
        }
    }
}
