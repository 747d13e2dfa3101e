//! A budget: counters with limits, by dimension.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::index::earliest;
use super::{Due, DueKind, List, Listing};
use crate::error::{Code, Refusal};
use crate::id::{BudgetId, Dimension, DocumentId, FlowId, LaneId, Namespace};
use crate::limits;
use crate::partition::PartitionConfig;
use crate::time::TimestampMs;

/// The record of a budget. What each execution used, and the keys of reports that were counted,
/// stand in rows beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub id: BudgetId,
    pub namespace: Namespace,
    pub scope: BudgetScope,
    pub mode: EnforcementMode,
    pub on_hard_limit: HardAction,
    pub on_soft_limit: SoftAction,
    /// 0: never.
    pub reset_interval_ms: u64,
    pub created_at: TimestampMs,
    /// What a create that is repeated is compared with.
    pub fingerprint: [u8; 32],
    /// Counts changes of its definition: what a change on condition compares.
    pub definition: u64,
    /// Every dimension that has a limit or was reported.
    pub dimensions: BTreeMap<Dimension, Counter>,
    pub hard_breaches: u64,
    pub soft_breaches: u64,
    pub last_breach: Option<LastBreach>,
    /// Also the number of the period: ledgers of an earlier one are void.
    pub resets: u64,
    pub next_reset_at: Option<TimestampMs>,
    pub ledgers: LedgerPages,
    pub keys: UsageKeyPages,
    /// A comparison of usage with ledgers that takes several steps.
    pub recount: Option<Recount>,
    /// What is still to be done elsewhere.
    pub pending: BudgetWork,
}

/// What a budget means for others and that has not been settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BudgetWork {
    /// It is to be attached where its scope says.
    pub attach: bool,
    /// Since when there is room again for executions that it keeps back.
    pub admit: Option<TimestampMs>,
    /// Since when what runs under it is to end.
    pub enforce: Option<TimestampMs>,
    /// When that is told again.
    pub tell_at: Option<TimestampMs>,
}

/// What a budget is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BudgetScope {
    Flow(FlowId),
    Lane(LaneId),
    Namespace(Namespace),
    /// Whatever attaches it by its id.
    Custom(String),
}

/// Limits and usage of one dimension in this period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counter {
    pub limits: Limits,
    pub used: u64,
    /// The part of it that ledgers of executions hold.
    pub attributed: u64,
    /// The part of it that no execution was named for.
    pub unattributed: u64,
}

/// 0: no limit. A soft limit may lie above the hard one: each is looked at by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    pub hard: u64,
    pub soft: u64,
}

/// What a report does that would pass a hard limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnforcementMode {
    /// It is counted, and told.
    #[default]
    Record,
    /// It is not counted.
    Refuse,
}

/// What a hard limit does besides keeping new claims away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HardAction {
    #[default]
    Block,
    /// Running executions are cancelled.
    Cancel,
    /// Running executions fail without a retry.
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SoftAction {
    /// An event tells it.
    #[default]
    Warn,
    Ignore,
}

/// A total and the limit that it passed or reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breach {
    pub dimension: Dimension,
    pub current: u64,
    pub limit: u64,
}

/// Hard ones come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreachKind {
    Hard,
    Soft,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastBreach {
    pub at: TimestampMs,
    pub kind: BreachKind,
    pub dimension: Dimension,
}

/// Pages that name the executions with a ledger: `first..next`, those before `current` of periods
/// that are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LedgerPages {
    pub first: u64,
    pub current: u64,
    pub next: u64,
    /// When the period began.
    pub since: TimestampMs,
}

/// How far ledgers have been summed up, from the last page to the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recount {
    /// The pages before this one are left.
    pub before: u64,
    /// What the ledgers of the others hold.
    pub sums: BTreeMap<Dimension, u64>,
}

/// Pages that name the keys of reports, one or more for an hour: `first..next`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UsageKeyPages {
    pub first: u64,
    pub next: u64,
    /// When all keys of the first page are over.
    pub until: Option<TimestampMs>,
}

impl BudgetScope {
    /// The document that it is attached to; none: whatever names it.
    pub fn document(
        &self,
        namespace: &Namespace,
        partitions: &PartitionConfig,
    ) -> Option<DocumentId> {
        match self {
            Self::Flow(flow) => Some(DocumentId::flow(*flow, partitions)),
            Self::Lane(lane) => Some(DocumentId::lane(namespace, lane)),
            Self::Namespace(namespace) => Some(DocumentId::namespace(namespace)),
            Self::Custom(_) => None,
        }
    }

    /// Reads scope type and scope id, or `invalid_budget_scope`.
    pub fn parse(scope_type: &str, scope_id: &str) -> Result<Self, Refusal> {
        let scope = match scope_type {
            "flow" => scope_id.parse().ok().map(Self::Flow),
            "lane" => LaneId::new(scope_id).ok().map(Self::Lane),
            "namespace" => Namespace::new(scope_id).ok().map(Self::Namespace),
            "custom" => Some(Self::Custom(scope_id.to_owned())),
            _ => return Err(bad_scope(format!("{scope_type:?} is no scope type"))),
        };
        scope.ok_or_else(|| bad_scope(format!("{scope_id:?} names no {scope_type}")))
    }

    /// Refuses another namespace than the budget's own, and a name out of bounds.
    pub(crate) fn check(&self, namespace: &Namespace) -> Result<(), Refusal> {
        match self {
            Self::Namespace(other) if other != namespace => {
                Err(bad_scope(format!("a budget of {namespace} is not for namespace {other}")))
            }
            Self::Custom(name) if !(1..=limits::SCOPE_ID_BYTES).contains(&name.len()) => {
                let limit = limits::SCOPE_ID_BYTES;
                Err(bad_scope(format!(
                    "scope_id has {} bytes, allowed is 1 to {limit}",
                    name.len()
                )))
            }
            Self::Custom(name) if name.contains(char::is_control) => {
                Err(bad_scope("scope_id holds a control character".to_owned()))
            }
            _ => Ok(()),
        }
    }

    pub const fn scope_type(&self) -> &'static str {
        match self {
            Self::Flow(_) => "flow",
            Self::Lane(_) => "lane",
            Self::Namespace(_) => "namespace",
            Self::Custom(_) => "custom",
        }
    }

    pub fn scope_id(&self) -> String {
        match self {
            Self::Flow(flow) => flow.to_string(),
            Self::Lane(lane) => lane.to_string(),
            Self::Namespace(namespace) => namespace.to_string(),
            Self::Custom(name) => name.clone(),
        }
    }
}

fn bad_scope(detail: String) -> Refusal {
    Refusal::at(Code::InvalidBudgetScope, "scope_type", detail)
}

impl Counter {
    /// Whether `total` is above a limit: the hard one before the soft one.
    pub fn breach(&self, total: u64) -> Option<(BreachKind, u64)> {
        let Limits { hard, soft } = self.limits;
        let above = |limit: u64| limit > 0 && total > limit;
        if above(hard) {
            Some((BreachKind::Hard, hard))
        } else if above(soft) {
            Some((BreachKind::Soft, soft))
        } else {
            None
        }
    }
}

impl LedgerPages {
    /// Whether ledgers of earlier periods are left.
    pub const fn has_void(&self) -> bool {
        self.first < self.current
    }
}

/// Dimensions at or above their hard limit.
pub(crate) fn used_up(
    dimensions: &BTreeMap<Dimension, Counter>,
) -> impl Iterator<Item = Breach> + '_ {
    dimensions.iter().filter_map(|(dimension, counter)| {
        let (current, limit) = (counter.used, counter.limits.hard);
        let reached = limit > 0 && current >= limit;
        reached.then(|| Breach { dimension: dimension.clone(), current, limit })
    })
}

impl Budget {
    /// What keeps new claims away: usage at or above a hard limit. A period that is over has no
    /// usage, whether the timer has come by or not.
    pub fn breached(&self, now: TimestampMs) -> Option<Breach> {
        if self.is_over(now) {
            return None;
        }
        used_up(&self.dimensions).next()
    }

    /// What is at or above a hard limit in this period, whether it is over or not.
    pub fn is_used_up(&self) -> bool {
        used_up(&self.dimensions).next().is_some()
    }

    /// Whether the next period has begun.
    pub fn is_over(&self, now: TimestampMs) -> bool {
        self.next_reset_at.is_some_and(|at| at <= now)
    }

    /// Begins the next period.
    pub fn reset(&mut self, now: TimestampMs) {
        for counter in self.dimensions.values_mut() {
            *counter = Counter { limits: counter.limits, ..Counter::default() };
        }
        self.resets += 1;
        self.last_breach = None;
        self.next_reset_at = self.reset_after(now);
        self.ledgers.current = self.ledgers.next;
        self.ledgers.since = now;
        self.recount = None;
    }

    pub fn reset_after(&self, now: TimestampMs) -> Option<TimestampMs> {
        (self.reset_interval_ms > 0).then(|| now.after(self.reset_interval_ms))
    }

    pub(super) fn due(&self) -> Option<Due> {
        let at = |kind| move |at| Due { at, kind };
        let void = self.ledgers.has_void().then_some(self.ledgers.since);
        earliest([
            self.next_reset_at.map(at(DueKind::BudgetReset)),
            void.map(at(DueKind::RetentionTrimmer)),
            self.keys.until.map(at(DueKind::RetentionTrimmer)),
            self.pending.tell_at.map(at(DueKind::Outbox)),
        ])
    }

    /// Newest first: the order of the list is that of negated time.
    pub(super) fn listing(&self) -> Listing<'_> {
        Listing {
            namespace: &self.namespace,
            list: List::Budget,
            at: TimestampMs(-self.created_at.0),
            name: self.id.uuid(),
        }
    }
}

macro_rules! words {
    ($name:ident { $($variant:ident = $text:literal),* }) => {
        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == text)
            }
        }
    };
}

words! { EnforcementMode { Record = "record", Refuse = "refuse" } }
words! { HardAction { Block = "block", Cancel = "cancel", Fail = "fail" } }
words! { SoftAction { Warn = "warn", Ignore = "ignore" } }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_passed_above_it_and_the_hard_one_first() {
        let counter = |hard, soft| Counter { limits: Limits { hard, soft }, ..Counter::default() };
        for (hard, soft, total, expected) in [
            (0, 0, u64::MAX, None),
            (10, 5, 5, None),
            (10, 5, 6, Some((BreachKind::Soft, 5))),
            (10, 5, 10, Some((BreachKind::Soft, 5))),
            (10, 5, 11, Some((BreachKind::Hard, 10))),
            (0, 5, 11, Some((BreachKind::Soft, 5))),
            (10, 0, 10, None),
            (10, 20, 15, Some((BreachKind::Hard, 10))),
        ] {
            assert_eq!(counter(hard, soft).breach(total), expected, "{hard} {soft} {total}");
        }
    }

    #[test]
    fn scopes_are_read_as_they_are_written() {
        let flow = FlowId::mint().to_string();
        for (scope_type, scope_id) in
            [("flow", flow.as_str()), ("lane", "mail"), ("namespace", "a"), ("custom", "any thing")]
        {
            let scope = BudgetScope::parse(scope_type, scope_id).unwrap();
            assert_eq!((scope.scope_type(), &*scope.scope_id()), (scope_type, scope_id));
        }
        for (scope_type, scope_id) in
            [("", "a"), ("Lane", "a"), ("execution", "a"), ("flow", "a"), ("lane", "")]
        {
            let refusal = BudgetScope::parse(scope_type, scope_id).unwrap_err();
            assert_eq!(refusal.code, Code::InvalidBudgetScope, "{scope_type} {scope_id}");
        }
    }
}
