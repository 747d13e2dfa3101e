//! The JSON form of a policy.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Number, Value, json};

use super::{
    Backoff, BackoffCurve, Policy, Retention, RetryPolicy, StreamPolicy, SuspensionPolicy,
    TimeoutPolicy,
};
use crate::capability::Capabilities;
use crate::error::{Code, Refusal};
use crate::id::BudgetId;
use crate::state::{
    Attached, FrameMode, TimeoutBehavior, UnknownFrameMode, UnknownTimeoutBehavior,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyJson {
    retry_policy: Option<RetryJson>,
    timeout_policy: Option<TimeoutJson>,
    max_replay_count: Option<Number>,
    routing_requirements: Option<RoutingJson>,
    dedup_window_ms: Option<Number>,
    retention: Option<RetentionJson>,
    suspension_policy: Option<SuspensionJson>,
    max_signals_per_execution: Option<Number>,
    stream_policy: Option<StreamJson>,
    budget_ids: Option<Vec<String>>,
    quota_policy_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamJson {
    durability_mode: Option<String>,
    retention_maxlen: Option<Number>,
    retention_ttl_ms: Option<Number>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuspensionJson {
    default_timeout_ms: Option<Number>,
    timeout_behavior: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetryJson {
    max_retries: Option<Number>,
    backoff: Option<BackoffJson>,
    retryable_categories: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum BackoffJson {
    Fixed {
        delay_ms: Number,
        jitter: Option<bool>,
    },
    Exponential {
        initial_delay_ms: Option<Number>,
        max_delay_ms: Option<Number>,
        multiplier: Option<Number>,
        jitter: Option<bool>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimeoutJson {
    attempt_timeout_ms: Option<Number>,
    execution_deadline_ms: Option<Number>,
    max_reclaim_count: Option<Number>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RoutingJson {
    required_capabilities: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetentionJson {
    success_ms: Option<Number>,
    failed_ms: Option<Number>,
    cancelled_ms: Option<Number>,
    expired_ms: Option<Number>,
    skipped_ms: Option<Number>,
}

impl Policy {
    /// Reads the JSON form. A refusal says where in this document the fault is.
    pub fn from_json(text: &str) -> Result<Self, Refusal> {
        let json: PolicyJson = serde_json::from_str(text).map_err(|error| {
            Refusal::new(Code::InvalidPolicyJson, format!("policy does not parse: {error}"))
        })?;
        let default = Self::default();
        let policy = Self {
            retry: match json.retry_policy {
                Some(retry) => under("retry_policy", retry.read(&default.retry))?,
                None => default.retry,
            },
            timeout: match json.timeout_policy {
                Some(timeout) => under("timeout_policy", timeout.read(default.timeout))?,
                None => default.timeout,
            },
            max_replay_count: count(
                "max_replay_count",
                json.max_replay_count,
                default.max_replay_count,
            )?,
            required_capabilities: under(
                "routing_requirements",
                capabilities(json.routing_requirements),
            )?,
            dedup_window_ms: whole("dedup_window_ms", json.dedup_window_ms)?
                .unwrap_or(default.dedup_window_ms),
            retention: match json.retention {
                Some(retention) => under("retention", retention.read())?,
                None => default.retention,
            },
            suspension: match json.suspension_policy {
                Some(suspension) => under("suspension_policy", suspension.read())?,
                None => default.suspension,
            },
            max_signals_per_execution: count(
                "max_signals_per_execution",
                json.max_signals_per_execution,
                default.max_signals_per_execution,
            )?,
            stream: match json.stream_policy {
                Some(stream) => under("stream_policy", stream.read())?,
                None => default.stream,
            },
            attached: attached(json.budget_ids, json.quota_policy_id)?,
        };
        policy.check()?;
        policy.attached.check()?;
        Ok(policy)
    }

    /// The whole policy, defaults included.
    pub fn to_json(&self) -> Value {
        json!({
            "retry_policy": {
                "max_retries": self.retry.max_retries,
                "backoff": self.retry.backoff.to_json(),
                "retryable_categories": self.retry.retryable_categories,
            },
            "timeout_policy": {
                "attempt_timeout_ms": self.timeout.attempt_timeout_ms,
                "execution_deadline_ms": self.timeout.execution_deadline_ms,
                "max_reclaim_count": self.timeout.max_reclaim_count,
            },
            "max_replay_count": self.max_replay_count,
            "routing_requirements": { "required_capabilities": self.required_capabilities },
            "dedup_window_ms": self.dedup_window_ms,
            "retention": {
                "success_ms": self.retention.success_ms,
                "failed_ms": self.retention.failed_ms,
                "cancelled_ms": self.retention.cancelled_ms,
                "expired_ms": self.retention.expired_ms,
                "skipped_ms": self.retention.skipped_ms,
            },
            "suspension_policy": {
                "default_timeout_ms": self.suspension.default_timeout_ms,
                "timeout_behavior": self.suspension.timeout_behavior.as_str(),
            },
            "max_signals_per_execution": self.max_signals_per_execution,
            "stream_policy": {
                "durability_mode": self.stream.durability_mode.as_str(),
                "retention_maxlen": self.stream.retention_maxlen,
                "retention_ttl_ms": self.stream.retention_ttl_ms,
            },
            "budget_ids": texts(&self.attached.budget_ids),
            "quota_policy_id": self.attached.quota_policy_id.map(|id| id.to_string()),
        })
    }

    /// What the policy says beyond the defaults, keys sorted: two policies that mean the same have
    /// the same normal form, also when a later version knows more fields.
    pub fn normal_form(&self) -> String {
        static DEFAULT: LazyLock<(Policy, Value)> = LazyLock::new(|| {
            let policy = Policy::default();
            let json = policy.to_json();
            (policy, json)
        });
        let (policy, json) = &*DEFAULT;
        // Every submit asks, and most say nothing.
        if self == policy {
            return String::new();
        }
        match difference(self.to_json(), json) {
            Some(value) => value.to_string(),
            None => String::new(),
        }
    }
}

impl Backoff {
    fn to_json(self) -> Value {
        let mut json = match self.curve {
            BackoffCurve::Fixed { delay_ms } => json!({ "type": "fixed", "delay_ms": delay_ms }),
            BackoffCurve::Exponential {
                initial_delay_ms,
                max_delay_ms,
                multiplier_thousandths,
            } => json!({
                "type": "exponential",
                "initial_delay_ms": initial_delay_ms,
                "max_delay_ms": max_delay_ms,
                "multiplier": f64::from(multiplier_thousandths) / 1000.0,
            }),
        };
        json["jitter"] = self.jitter.into();
        json
    }
}

fn texts(ids: &[BudgetId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

/// The members of `value` that differ from `default`; none when all are equal.
fn difference(value: Value, default: &Value) -> Option<Value> {
    match (value, default) {
        (value, default) if value == *default => None,
        (Value::Object(members), Value::Object(defaults)) => {
            let differing: Map<String, Value> = members
                .into_iter()
                .filter_map(|(key, member)| {
                    let default = defaults.get(&key).unwrap_or(&Value::Null);
                    difference(member, default).map(|member| (key, member))
                })
                .collect();
            Some(Value::Object(differing))
        }
        (value, _) => Some(value),
    }
}

impl RetryJson {
    fn read(self, default: &RetryPolicy) -> Result<RetryPolicy, Refusal> {
        Ok(RetryPolicy {
            max_retries: count("max_retries", self.max_retries, default.max_retries)?,
            backoff: match self.backoff {
                Some(backoff) => under("backoff", backoff.read())?,
                None => default.backoff,
            },
            retryable_categories: self.retryable_categories.unwrap_or_default(),
        })
    }
}

impl BackoffJson {
    fn read(self) -> Result<Backoff, Refusal> {
        let (curve, jitter) = match self {
            Self::Fixed { delay_ms, jitter } => {
                let delay_ms = whole("delay_ms", Some(delay_ms))?.unwrap_or(0);
                (BackoffCurve::Fixed { delay_ms }, jitter)
            }
            Self::Exponential { initial_delay_ms, max_delay_ms, multiplier, jitter } => {
                let curve = BackoffCurve::Exponential {
                    initial_delay_ms: whole("initial_delay_ms", initial_delay_ms)?.unwrap_or(1_000),
                    max_delay_ms: whole("max_delay_ms", max_delay_ms)?.unwrap_or(60_000),
                    multiplier_thousandths: multiplier.map_or(Ok(2_000), |m| thousandths(&m))?,
                };
                (curve, jitter)
            }
        };
        Ok(Backoff { curve, jitter: jitter.unwrap_or(false) })
    }
}

impl TimeoutJson {
    fn read(self, default: TimeoutPolicy) -> Result<TimeoutPolicy, Refusal> {
        Ok(TimeoutPolicy {
            attempt_timeout_ms: whole("attempt_timeout_ms", self.attempt_timeout_ms)?,
            execution_deadline_ms: whole("execution_deadline_ms", self.execution_deadline_ms)?,
            max_reclaim_count: count(
                "max_reclaim_count",
                self.max_reclaim_count,
                default.max_reclaim_count,
            )?,
        })
    }
}

impl RetentionJson {
    fn read(self) -> Result<Retention, Refusal> {
        Ok(Retention {
            success_ms: whole("success_ms", self.success_ms)?,
            failed_ms: whole("failed_ms", self.failed_ms)?,
            cancelled_ms: whole("cancelled_ms", self.cancelled_ms)?,
            expired_ms: whole("expired_ms", self.expired_ms)?,
            skipped_ms: whole("skipped_ms", self.skipped_ms)?,
        })
    }
}

impl SuspensionJson {
    fn read(self) -> Result<SuspensionPolicy, Refusal> {
        let behavior =
            self.timeout_behavior.as_deref().map_or(Ok(TimeoutBehavior::default()), str::parse);
        Ok(SuspensionPolicy {
            default_timeout_ms: whole("default_timeout_ms", self.default_timeout_ms)?,
            timeout_behavior: behavior.map_err(|unknown: UnknownTimeoutBehavior| {
                Refusal::at(Code::InvalidPolicyJson, "timeout_behavior", unknown.to_string())
            })?,
        })
    }
}

impl StreamJson {
    fn read(self) -> Result<StreamPolicy, Refusal> {
        let mode = self.durability_mode.as_deref().map_or(Ok(FrameMode::default()), str::parse);
        Ok(StreamPolicy {
            durability_mode: mode.map_err(|unknown: UnknownFrameMode| {
                Refusal::at(Code::InvalidPolicyJson, "durability_mode", unknown.to_string())
            })?,
            retention_maxlen: count(
                "retention_maxlen",
                self.retention_maxlen,
                StreamPolicy::default().retention_maxlen,
            )?,
            retention_ttl_ms: whole("retention_ttl_ms", self.retention_ttl_ms)?,
        })
    }
}

fn attached(budgets: Option<Vec<String>>, quota: Option<String>) -> Result<Attached, Refusal> {
    let malformed = |field, text: &str| Refusal::invalid(field, format!("{text:?} is no id"));
    let budgets = budgets.unwrap_or_default();
    let budgets = budgets
        .iter()
        .map(|text| text.parse().map_err(|_| malformed("budget_ids", text)))
        .collect::<Result<Vec<BudgetId>, Refusal>>()?;
    let quota = match quota {
        Some(text) => Some(text.parse().map_err(|_| malformed("quota_policy_id", &text))?),
        None => None,
    };
    Ok(Attached::new(budgets, quota))
}

fn capabilities(json: Option<RoutingJson>) -> Result<Capabilities, Refusal> {
    let field = "required_capabilities";
    match json.and_then(|routing| routing.required_capabilities) {
        None => Ok(Capabilities::default()),
        Some(value) => Capabilities::from_json(&value)
            .map_err(|refusal| Refusal { field: Some(field.into()), ..refusal }),
    }
}

fn thousandths(multiplier: &Number) -> Result<u32, Refusal> {
    let value = multiplier.as_f64().unwrap_or(f64::NAN);
    if (1.0..=1000.0).contains(&value) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the range was checked"
        )]
        Ok((value * 1000.0).round() as u32)
    } else {
        Err(Refusal::invalid("multiplier", "multiplier must be from 1 to 1000"))
    }
}

/// The same, of a part of the document by this name.
fn under<T>(name: &str, read: Result<T, Refusal>) -> Result<T, Refusal> {
    read.map_err(|refusal| refusal.under(name))
}

fn count(field: &'static str, number: Option<Number>, default: u32) -> Result<u32, Refusal> {
    // What does not fit is beyond every limit and is refused by the check that follows.
    Ok(whole(field, number)?.map_or(default, |value| u32::try_from(value).unwrap_or(u32::MAX)))
}

/// A whole number, however the JSON writes it; its range is checked with the whole policy.
fn whole(field: &'static str, number: Option<Number>) -> Result<Option<u64>, Refusal> {
    let Some(number) = number else { return Ok(None) };
    match number.as_u64() {
        Some(value) => Ok(Some(value)),
        None => Err(Refusal::invalid(field, format!("{number} is not a whole number from 0"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_fields_take_the_default() {
        assert_eq!(Policy::from_json("{}"), Ok(Policy::default()));
        let policy = Policy::from_json(r#"{"retry_policy":{"max_retries":7}}"#).unwrap();
        assert_eq!(policy.retry.max_retries, 7);
        assert_eq!(policy.retry.backoff, Backoff::default());
    }

    #[test]
    fn the_json_form_reads_back() {
        let text = r#"{"retry_policy":{"max_retries":1,"backoff":{"type":"fixed","delay_ms":5,
            "jitter":true},"retryable_categories":["a"]},"timeout_policy":{"attempt_timeout_ms":9,
            "execution_deadline_ms":10,"max_reclaim_count":0},"max_replay_count":2,
            "routing_requirements":{"required_capabilities":["b","a"]},"dedup_window_ms":1000,
            "retention":{"success_ms":0,"failed_ms":1},"max_signals_per_execution":5,
            "suspension_policy":{"default_timeout_ms":7,"timeout_behavior":"escalate"},
            "stream_policy":{"durability_mode":"best_effort","retention_maxlen":7,
            "retention_ttl_ms":8}}"#;
        let policy = Policy::from_json(text).unwrap();
        assert_eq!(Policy::from_json(&policy.to_json().to_string()), Ok(policy));
    }

    #[test]
    fn normal_form_knows_only_what_differs() {
        let form = |text: &str| Policy::from_json(text).unwrap().normal_form();
        assert_eq!(form("{}"), "");
        assert_eq!(form(r#"{"max_replay_count":10,"retry_policy":{"max_retries":3}}"#), "");
        assert_eq!(
            form(r#"{"retry_policy":{"max_retries":4}}"#),
            r#"{"retry_policy":{"max_retries":4}}"#
        );
    }

    #[test]
    fn malformed_documents_are_refused() {
        let code = |text: &str| Policy::from_json(text).unwrap_err().code;
        for text in [
            "",
            "[]",
            "{",
            r#"{"unknown":1}"#,
            r#"{"retry_policy":{"max_retires":1}}"#,
            r#"{"retry_policy":{"max_retries":"3"}}"#,
            r#"{"retry_policy":{"backoff":{"type":"linear"}}}"#,
            r#"{"retry_policy":{"backoff":{"type":"fixed"}}}"#,
            r#"{"stream_policy":{"durability_mode":"for_ever"}}"#,
        ] {
            assert_eq!(code(text), Code::InvalidPolicyJson, "{text}");
        }
        for text in [
            r#"{"max_replay_count":-1}"#,
            r#"{"max_replay_count":1000001}"#,
            r#"{"max_replay_count":1.5}"#,
            r#"{"max_replay_count":1e300}"#,
            r#"{"dedup_window_ms":999}"#,
            r#"{"stream_policy":{"retention_maxlen":0}}"#,
            r#"{"stream_policy":{"retention_maxlen":1000001}}"#,
            r#"{"timeout_policy":{"attempt_timeout_ms":0}}"#,
            r#"{"timeout_policy":{"execution_deadline_ms":315360000001}}"#,
            r#"{"retry_policy":{"backoff":{"type":"exponential","multiplier":0.5}}}"#,
        ] {
            assert_eq!(code(text), Code::InvalidInput, "{text}");
        }
        for text in [
            r#"{"routing_requirements":{"required_capabilities":"gpu"}}"#,
            r#"{"routing_requirements":{"required_capabilities":[1]}}"#,
            r#"{"routing_requirements":{"required_capabilities":[""]}}"#,
        ] {
            assert_eq!(code(text), Code::InvalidCapabilities, "{text}");
        }
    }
}
