//! What an execution, a flow, a lane or a namespace stands under.

use serde::{Deserialize, Serialize};

use super::LimitId;
use crate::error::Refusal;
use crate::id::{BudgetId, QuotaPolicyId};
use crate::limits;

/// Budgets and a quota policy, attached by their ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Attached {
    /// In order, each once.
    pub budget_ids: Vec<BudgetId>,
    pub quota_policy_id: Option<QuotaPolicyId>,
}

impl Attached {
    pub fn new(
        budget_ids: impl IntoIterator<Item = BudgetId>,
        quota_policy_id: Option<QuotaPolicyId>,
    ) -> Self {
        let mut attached = Self { budget_ids: Vec::new(), quota_policy_id };
        attached.add(budget_ids);
        attached
    }

    pub fn is_empty(&self) -> bool {
        self.budget_ids.is_empty() && self.quota_policy_id.is_none()
    }

    /// What an execution that stands under all this may be kept back by.
    pub fn limits(&self) -> impl Iterator<Item = LimitId> {
        let budgets = self.budget_ids.iter().copied().map(LimitId::Budget);
        budgets.chain(self.quota_policy_id.map(LimitId::Quota))
    }

    /// Attaches more budgets.
    pub fn add(&mut self, budget_ids: impl IntoIterator<Item = BudgetId>) {
        self.budget_ids.extend(budget_ids);
        self.budget_ids.sort_unstable();
        self.budget_ids.dedup();
    }

    pub fn check(&self) -> Result<(), Refusal> {
        let most = limits::BUDGETS_ATTACHED;
        if self.budget_ids.len() > most {
            return Err(Refusal::invalid("budget_ids", format!("{most} budgets at the most")));
        }
        if !self.budget_ids.is_sorted_by(|a, b| a < b) {
            return Err(Refusal::invalid("budget_ids", "in order, and each once"));
        }
        Ok(())
    }
}

/// All that an execution stands under, in the order in which it is asked: what its namespace, its
/// lane and its flow are under, then its own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    pub budget_ids: Vec<BudgetId>,
    pub quota_policy_ids: Vec<QuotaPolicyId>,
}

impl Standing {
    pub fn is_empty(&self) -> bool {
        self.budget_ids.is_empty() && self.quota_policy_ids.is_empty()
    }

    pub fn contains(&self, limit: LimitId) -> bool {
        match limit {
            LimitId::Budget(id) => self.budget_ids.contains(&id),
            LimitId::Quota(id) => self.quota_policy_ids.contains(&id),
        }
    }

    /// What comes again is asked once, where it came first.
    pub fn add(&mut self, attached: Option<&Attached>) {
        let Some(attached) = attached else { return };
        for id in &attached.budget_ids {
            if !self.budget_ids.contains(id) {
                self.budget_ids.push(*id);
            }
        }
        if let Some(id) = attached.quota_policy_id
            && !self.quota_policy_ids.contains(&id)
        {
            self.quota_policy_ids.push(id);
        }
    }
}
