//! What a step means for other homes, derived from the records that it has changed.

use std::collections::BTreeMap;

use super::step::{Changed, ChangedDocument, Changes};
use crate::id::{BudgetId, Namespace, WorkerInstanceId};
use crate::operation::Errand;
use crate::state::{
    Attached, Body, Budget, Bulk, BulkState, CancelNotice, CancelSource, Document, Execution,
    LimitId, Part, PublicState, QuotaPolicy, Standing, Worker,
};

impl Changes {
    /// What is to be done elsewhere. A record tells whenever that part of it is written.
    pub fn errands(&self) -> Vec<Errand> {
        let executions = self.executions.iter();
        let executions = executions.flat_map(|it| it.gives_back().into_iter().chain(it.enters()));
        let documents = self.documents.iter().flat_map(ChangedDocument::errands);
        let all = executions.chain(self.notices()).chain(self.disowned()).chain(documents);
        Errand::together(all)
    }

    /// Executions that are removed.
    fn disowned(&self) -> impl Iterator<Item = Errand> {
        let gone = self.executions.iter().filter(|changed| changed.after.is_none());
        gone.filter_map(|changed| changed.before.as_ref()).map(|before| Errand::Disown {
            namespace: before.about.namespace.clone(),
            lane: before.about.lane.clone(),
            budget_ids: self.budgets_of(before),
            execution_ids: vec![before.id],
        })
    }

    /// An execution's own budgets, and those of its flow if this step has changed that.
    fn budgets_of(&self, execution: &Execution) -> Vec<BudgetId> {
        let mut standing = Standing::default();
        if let Some(member) = &execution.member {
            let flows = self.documents.iter().filter_map(|it| it.before.as_ref()?.flow());
            let flow = flows.into_iter().find(|flow| flow.id == member.flow_id);
            standing.add(flow.map(|flow| &flow.attached));
        }
        standing.add(Some(&execution.policy().attached));
        standing.budget_ids
    }

    /// Who is to be told that tasks were cancelled, one errand for each worker.
    fn notices(&self) -> impl Iterator<Item = Errand> {
        let mut told: BTreeMap<(Namespace, WorkerInstanceId), Vec<CancelNotice>> = BTreeMap::new();
        for (worker, notice) in self.executions.iter().filter_map(Changed::notice) {
            told.entry(worker).or_default().push(notice);
        }
        told.into_iter().map(|((namespace, worker_instance_id), notices)| Errand::Tell {
            namespace,
            worker_instance_id,
            notices,
        })
    }
}

impl Changes {
    /// Those that whoever made the step carries out at once.
    pub fn prompt_errands(&self) -> Vec<Errand> {
        if self.told {
            return Vec::new();
        }
        let mut errands = self.errands();
        errands.retain(Errand::is_prompt);
        errands
    }
}

impl Changed {
    fn gives_back(&self) -> Option<Errand> {
        let after = self.after.as_ref()?;
        let owed = after.owed.as_ref()?;
        let before = self.before.as_ref().and_then(|before| before.owed.as_ref());
        (before != Some(owed))
            .then(|| Errand::GiveBack { execution_id: self.id, slots: owed.slots.clone() })
    }

    /// Its lease has begun, and windows wait to hear of it.
    fn enters(&self) -> Option<Errand> {
        let after = self.after.as_ref()?;
        let lease = after.phase.lease().filter(|lease| !lease.places.is_empty())?;
        let before = self.before.as_ref().map(|before| before.lease_epoch);
        (before != Some(after.lease_epoch)).then(|| Errand::Enter {
            execution_id: self.id,
            lease_epoch: after.lease_epoch,
            quota_policy_ids: lease.places.clone(),
        })
    }
}

impl Changed {
    /// What the worker hears whose task this change has cancelled; who does it itself need not. A tick may end
    /// a lease first and cancel after that: then there was nobody to be told, as if it had been two.
    fn notice(&self) -> Option<((Namespace, WorkerInstanceId), CancelNotice)> {
        let (before, after) = (self.before.as_ref()?, self.after.as_ref()?);
        let (lease, end) = (before.phase.lease()?, after.phase.terminal()?);
        let cancellation = end.cancellation.as_ref()?;
        let is_running = cancellation.from == PublicState::Active;
        if !is_running || cancellation.source == CancelSource::LeaseHolder {
            return None;
        }
        let worker = (after.about.namespace.clone(), lease.worker_instance_id.clone());
        let (reason, at) = (cancellation.reason.clone(), end.at);
        Some((worker, CancelNotice { execution_id: self.id, lease_id: lease.id, reason, at }))
    }
}

impl ChangedDocument {
    fn errands(&self) -> Vec<Errand> {
        let before = self.before.as_deref();
        let lift = before.and_then(|before| lifted(before, self.after.as_deref()));
        let Some(after) = &self.after else { return lift.into_iter().collect() };
        match &after.body {
            Body::QuotaPolicy(policy) => {
                of_policy(policy, before.and_then(Document::quota_policy)).collect()
            }
            Body::Worker(worker) => of_worker(worker, before.and_then(Document::worker)),
            Body::Budget(budget) => of_budget(budget, before.and_then(Document::budget)),
            Body::Bulk(bulk) => of_bulk(bulk, before.and_then(|before| Bulk::of(&before.body))),
            Body::Flow(_) | Body::ApiKey(_) => Vec::new(),
            Body::Lane(_) | Body::NamespaceRecord(_) => lift.into_iter().collect(),
        }
    }
}

/// Limits that are gone, or that are attached here no more.
fn lifted(before: &Document, after: Option<&Document>) -> Option<Errand> {
    let (namespace, limits): (_, Vec<_>) = match (&before.body, after.map(|after| &after.body)) {
        (Body::Budget(budget), None) => (&budget.namespace, vec![LimitId::Budget(budget.id)]),
        (Body::QuotaPolicy(policy), None) => (&policy.namespace, vec![LimitId::Quota(policy.id)]),
        (Body::Lane(was), Some(Body::Lane(is))) => {
            (&was.namespace, detached(&was.attached, &is.attached))
        }
        (Body::NamespaceRecord(was), Some(Body::NamespaceRecord(is))) => {
            (&was.namespace, detached(&was.attached, &is.attached))
        }
        _ => return None,
    };
    (!limits.is_empty()).then(|| Errand::Lift { namespace: namespace.clone(), limits })
}

fn detached(before: &Attached, after: &Attached) -> Vec<LimitId> {
    before.limits().filter(|limit| !after.limits().any(|kept| kept == *limit)).collect()
}

fn of_policy(
    after: &QuotaPolicy,
    before: Option<&QuotaPolicy>,
) -> impl Iterator<Item = Errand> + use<> {
    let quota_policy_id = after.id;
    let told = before.map(|before| (before.tell_at, &before.waking));
    let turn = !after.waking.is_empty() && told != Some((after.tell_at, &after.waking));
    let let_go =
        turn.then(|| Errand::LetGo { quota_policy_id, execution_ids: after.waking.clone() });
    let asked = before.map(|before| (before.ask_at, &before.overdue));
    let overdue = !after.overdue.is_empty() && asked != Some((after.ask_at, &after.overdue));
    let ask = overdue.then(|| Errand::Ask { quota_policy_id, slots: after.overdue.clone() });
    let_go.into_iter().chain(ask)
}

fn of_budget(after: &Budget, before: Option<&Budget>) -> Vec<Errand> {
    let pending = after.pending;
    if before.is_some_and(|before| before.pending == pending) {
        return Vec::new();
    }
    let (budget_id, namespace) = (after.id, &after.namespace);
    let attach = pending.attach.then(|| Errand::Attach {
        budget_id,
        namespace: namespace.clone(),
        scope: after.scope.clone(),
    });
    let admit =
        pending.admit.map(|since| Errand::Admit { budget_id, namespace: namespace.clone(), since });
    let enforce = pending.enforce.map(|since| Errand::Enforce {
        budget_id,
        namespace: namespace.clone(),
        action: after.on_hard_limit,
        since,
    });
    attach.into_iter().chain(admit).chain(enforce).collect()
}

fn of_bulk(after: &Bulk, before: Option<&Bulk>) -> Vec<Errand> {
    let told = before.map(|before| (before.state, before.due_at));
    let is_due = after.state == BulkState::Running && told != Some((after.state, after.due_at));
    if is_due { vec![Errand::CarryOn { bulk_id: after.id }] } else { Vec::new() }
}

fn of_worker(after: &Worker, before: Option<&Worker>) -> Vec<Errand> {
    let known = before.map(|before| &before.losses);
    let lost = !after.losses.is_empty() && known != Some(&after.losses);
    let take = lost.then(|| Errand::TakeLeases(after.lost()));
    let said = |worker: &Worker| worker.registration.as_ref().map(|it| (it.registered_at, it.said));
    let fresh = after.registration.as_ref().filter(|_| before.and_then(said) != said(after));
    // One that drains takes nothing.
    let welcome = fresh.filter(|fresh| !fresh.drains()).map(|fresh| Errand::Welcome {
        namespace: after.namespace.clone(),
        lanes: fresh.lanes.clone(),
        capabilities: fresh.capabilities.clone(),
    });
    take.into_iter().chain(welcome).collect()
}
