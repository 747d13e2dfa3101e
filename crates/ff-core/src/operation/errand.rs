//! What a step means for other homes.
//!
//! A step is atomic in one home. What it means elsewhere stands in its own record until it has been
//! settled, and is told twice: to whoever made the step, who carries it out at once, and by every
//! tick that comes by later. Whoever receives it may receive it again.

use std::collections::BTreeMap;

use super::LostWorker;
use crate::capability::Capabilities;
use crate::id::{
    BudgetId, BulkId, ExecutionId, LaneId, Namespace, QuotaPolicyId, WorkerInstanceId,
};
use crate::state::{BudgetScope, CancelNotice, HardAction, LimitId, OwedSlot, SlotId};
use crate::time::TimestampMs;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Errand {
    /// Slots of leases that have ended, or of grants that nobody used, are to be given back.
    GiveBack { execution_id: ExecutionId, slots: Vec<OwedSlot> },
    /// A lease has begun for which these policies keep a place in their windows. There is no note of it:
    /// who is not told asks.
    Enter { execution_id: ExecutionId, lease_epoch: u64, quota_policy_ids: Vec<QuotaPolicyId> },
    /// It is the turn of these, who waited for a slot or a place in the window.
    LetGo { quota_policy_id: QuotaPolicyId, execution_ids: Vec<ExecutionId> },
    /// These are to be asked whether their leases live.
    Ask { quota_policy_id: QuotaPolicyId, slots: Vec<SlotId> },
    /// A budget is to be attached where its scope says.
    Attach { budget_id: BudgetId, namespace: Namespace, scope: BudgetScope },
    /// A budget has room again for those that it keeps back.
    Admit { budget_id: BudgetId, namespace: Namespace, since: TimestampMs },
    /// What runs under a budget is to end.
    Enforce { budget_id: BudgetId, namespace: Namespace, action: HardAction, since: TimestampMs },
    /// A worker is to be told that tasks of it were cancelled. There is no note of it: a worker that
    /// is not told finds out when it renews.
    Tell { namespace: Namespace, worker_instance_id: WorkerInstanceId, notices: Vec<CancelNotice> },
    /// The leases of a worker that is gone are to be taken away.
    TakeLeases(LostWorker),
    /// A worker has come: what waited for one that can do as much is to be let go. The note of it is
    /// the registration itself, which the engine looks at every few seconds.
    Welcome { namespace: Namespace, lanes: Vec<LaneId>, capabilities: Capabilities },
    /// These limits are gone, or apply to fewer: whom they keep back is to be let go. There is no
    /// note of it: the engine finds limits that are gone or do not apply.
    Lift { namespace: Namespace, limits: Vec<LimitId> },
    /// What these used of budgets is to be attributed to nobody: they were removed. `budget_ids` are
    /// their own and those of their flow. There is no note of it: whoever counts ledgers again finds
    /// those of executions that are gone.
    Disown {
        namespace: Namespace,
        lane: LaneId,
        budget_ids: Vec<BudgetId>,
        execution_ids: Vec<ExecutionId>,
    },
    /// A bulk operation is to be carried on.
    CarryOn { bulk_id: BulkId },
}

impl Errand {
    /// In place of all that are to be disowned of the same budgets, one errand.
    pub(crate) fn together(errands: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut gone: BTreeMap<(Namespace, LaneId, Vec<BudgetId>), Vec<ExecutionId>> =
            BTreeMap::new();
        let mut all = Vec::new();
        for errand in errands {
            match errand {
                Self::Disown { namespace, lane, budget_ids, execution_ids } => {
                    gone.entry((namespace, lane, budget_ids)).or_default().extend(execution_ids);
                }
                other => all.push(other),
            }
        }
        let gone = gone.into_iter().map(|((namespace, lane, budget_ids), execution_ids)| {
            Self::Disown { namespace, lane, budget_ids, execution_ids }
        });
        all.extend(gone);
        all
    }

    /// Whether the caller of a step carries it out itself: it is short, and somebody waits for it.
    pub const fn is_prompt(&self) -> bool {
        matches!(
            self,
            Self::GiveBack { .. }
                | Self::Enter { .. }
                | Self::LetGo { .. }
                | Self::Tell { .. }
                | Self::Attach { .. }
                | Self::Welcome { .. }
                | Self::Lift { .. }
                | Self::Disown { .. }
        )
    }
}
