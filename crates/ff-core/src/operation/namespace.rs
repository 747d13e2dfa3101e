//! Namespaces: what an operator says of all that stands in one.

use super::command::Shape;
use crate::error::Refusal;
use crate::id::{BudgetId, DocumentId, ExecutionId, Namespace, QuotaPolicyId};
use crate::partition::PartitionConfig;
use crate::policy::Retention;
use crate::state::{Attached, NamespaceRecord};

/// Changes a namespace; what is not given stays as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct SetNamespace {
    pub namespace: Namespace,
    pub attach: Attach,
    pub retention: Option<Retention>,
    /// Refuses if it has changed since.
    pub expected_revision: Option<u64>,
}

/// What is attached from now on; none: what was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attach {
    pub budget_ids: Option<Vec<BudgetId>>,
    /// None inside: no policy any more.
    pub quota_policy_id: Option<Option<QuotaPolicyId>>,
}

/// The namespace as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceSet {
    pub record: NamespaceRecord,
    pub revision: u64,
}

impl Attach {
    pub fn over(&self, before: &Attached) -> Attached {
        let budget_ids = self.budget_ids.as_ref().unwrap_or(&before.budget_ids);
        let quota_policy_id = self.quota_policy_id.unwrap_or(before.quota_policy_id);
        Attached::new(budget_ids.iter().copied(), quota_policy_id)
    }

    /// What stays since nothing is said of it.
    pub(crate) fn kept(&self, before: &Attached) -> Attached {
        let budget_ids = match self.budget_ids {
            None => before.budget_ids.as_slice(),
            Some(_) => &[],
        };
        let quota_policy_id = before.quota_policy_id.filter(|_| self.quota_policy_id.is_none());
        Attached::new(budget_ids.iter().copied(), quota_policy_id)
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
        self.over(&Attached::default()).check()
    }
}

impl Shape for SetNamespace {
    fn check_shape(&self) -> Result<(), Refusal> {
        self.attach.check()?;
        let checked = self.retention.map_or(Ok(()), |retention| retention.check());
        checked.map_err(|refusal| refusal.under("retention"))
    }

    fn target(&self) -> Option<ExecutionId> {
        None
    }

    fn document(&self, _: &PartitionConfig) -> Option<DocumentId> {
        Some(DocumentId::namespace(&self.namespace))
    }
}
