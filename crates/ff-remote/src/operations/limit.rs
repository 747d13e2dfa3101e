//! Budgets and quota policies.

use ff_api::budget::{
    BudgetReply, ChangeBudget, NewBudget, Release, ReportUsage as ReportForm, Reset, UsageStatus,
};
use ff_api::quota::{ChangeQuota, NewQuota, QuotaReply};
use ff_api::reading::Unreadable;
use ff_api::usage::{Usage, UsageReply};
use ff_core::error::EngineError;
use ff_core::id::{BudgetId, ExecutionId, QuotaPolicyId};
use ff_core::operation::{
    BudgetCreated, BudgetReset, CreateBudget, CreateQuotaPolicy, DeleteBudget, DeleteQuotaPolicy,
    QuotaPolicyCreated, QuotaPolicyUpdated, ReleaseBudget, ReportToAll, ReportUsage,
    ReportUsageAdmin, ResetBudget, Settled, UpdateBudget, UpdateQuotaPolicy, UsageReported,
};

use super::Asked;
use super::execution::post;
use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, of, path};

/// A call about a budget, in the namespace that it is in.
fn of_budget(
    link: &Link,
    id: BudgetId,
    part: &str,
    request: impl FnOnce(String) -> Request,
) -> Result<Request, EngineError> {
    let namespace = link.known.of(id.uuid());
    Ok(request(of("budgets", id, part)?).namespace(namespace.as_ref()))
}

/// The same of a quota policy.
fn of_quota(
    link: &Link,
    id: QuotaPolicyId,
    request: impl FnOnce(String) -> Request,
) -> Result<Request, EngineError> {
    let namespace = link.known.of(id.uuid());
    Ok(request(of("quotas", id, "")?).namespace(namespace.as_ref()))
}

pub(crate) fn create_budget(_: &Link, op: CreateBudget) -> Asked<BudgetCreated> {
    let (namespace, id) = (op.namespace.clone(), op.budget_id.uuid());
    let request = Request::post(path(&["budgets"])?, &NewBudget::from(op));
    let request = request.namespace(Some(&namespace));
    let created = Exchange::form(request, |form: BudgetReply, _| match form.status.as_str() {
        "created" => Ok(BudgetCreated::Created),
        "duplicate" => Ok(BudgetCreated::AlreadySatisfied),
        other => Err(Unreadable::new("status", other)),
    });
    Ok(created.noting(vec![id], namespace))
}

pub(crate) fn update_budget(link: &Link, op: UpdateBudget) -> Asked<Settled> {
    let (id, revision) = (op.budget_id, op.expected_revision);
    let form = ChangeBudget::from(op);
    let request = of_budget(link, id, "", |path| Request::patch(path, &form).if_match(revision))?;
    Ok(Exchange::settled(request))
}

fn usage(link: &Link, id: ExecutionId, form: &Usage) -> Asked<Vec<(BudgetId, UsageReported)>> {
    let request = post(link, id, "usage", form)?;
    Ok(Exchange::form(request, |form: UsageReply, _| {
        form.results.into_iter().map(ff_api::usage::UsageResult::read).collect()
    }))
}

pub(crate) fn report(link: &Link, op: ReportUsage) -> Asked<UsageReported> {
    let id = op.spender.execution_id;
    let request = post(link, id, "usage", &Usage::from(op))?;
    Ok(Exchange::form(request, |form: UsageReply, _| {
        let result = form.results.into_iter().next();
        let result = result.ok_or_else(|| Unreadable::new("results", "there is none"))?;
        Ok(result.read()?.1)
    }))
}

pub(crate) fn report_to_all(
    link: &Link,
    act: ReportToAll,
) -> Asked<Vec<(BudgetId, UsageReported)>> {
    usage(link, act.spender.execution_id, &Usage::from(act))
}

pub(crate) fn report_admin(link: &Link, op: ReportUsageAdmin) -> Asked<UsageReported> {
    let id = op.budget_id;
    let form = ReportForm::from(op);
    let request = of_budget(link, id, "usage", |path| Request::post(path, &form))?;
    Ok(Exchange::plain::<UsageStatus>(request))
}

pub(crate) fn release_budget(link: &Link, op: &ReleaseBudget) -> Asked<Settled> {
    let form = Release { execution_id: op.execution_id };
    let post = |path| Request::post(path, &form);
    Ok(Exchange::settled(of_budget(link, op.budget_id, "release", post)?))
}

pub(crate) fn reset_budget(link: &Link, op: &ResetBudget) -> Asked<BudgetReset> {
    let nothing = serde_json::json!({});
    let post = |path| Request::post(path, &nothing);
    Ok(Exchange::plain::<Reset>(of_budget(link, op.budget_id, "reset", post)?))
}

pub(crate) fn delete_budget(link: &Link, op: &DeleteBudget) -> Asked<Settled> {
    Ok(Exchange::settled(of_budget(link, op.budget_id, "", Request::delete)?))
}

pub(crate) fn create_quota(_: &Link, op: CreateQuotaPolicy) -> Asked<QuotaPolicyCreated> {
    let (namespace, id) = (op.namespace.clone(), op.quota_policy_id.uuid());
    let request = Request::post(path(&["quotas"])?, &NewQuota::from(op));
    let request = request.namespace(Some(&namespace));
    let created = Exchange::form(request, |form: QuotaReply, _| match form.status.as_str() {
        "created" => Ok(QuotaPolicyCreated::Created),
        "duplicate" => Ok(QuotaPolicyCreated::AlreadySatisfied),
        other => Err(Unreadable::new("status", other)),
    });
    Ok(created.noting(vec![id], namespace))
}

/// Who is let go by it, the server lets go itself.
pub(crate) fn update_quota(link: &Link, op: UpdateQuotaPolicy) -> Asked<QuotaPolicyUpdated> {
    let (id, revision) = (op.quota_policy_id, op.expected_revision);
    let form = ChangeQuota::from(op);
    let request = of_quota(link, id, |path| Request::patch(path, &form).if_match(revision))?;
    Ok(Exchange::answer(request, |_| Ok(QuotaPolicyUpdated { wake: Vec::new() })))
}

pub(crate) fn delete_quota(link: &Link, op: &DeleteQuotaPolicy) -> Asked<Settled> {
    Ok(Exchange::settled(of_quota(link, op.quota_policy_id, Request::delete)?))
}
