//! Budgets and quota policies.

use ff_api::budget::{Budget, Ledger};
use ff_api::quota::{Holder as HolderForm, Quota};
use ff_core::error::{Code, EngineError};
use ff_core::id::QuotaPolicyId;
use ff_core::read::{
    BudgetStatus, DescribeQuotaPolicy, GetBudgetStatus, LedgerRead, ListBudgets, ListQuotaPolicies,
    Page, QuotaPolicyDescribed, QuotaPolicySnapshot, ReadLedger, ReadQuotaLimits,
};
use ff_core::state::{Holder, QuotaSpec};

use super::page::{Numbered, walked};
use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, of, path};
use crate::operations::Asked;

pub(crate) fn budget(link: &Link, question: &GetBudgetStatus) -> Asked<Option<Box<BudgetStatus>>> {
    let namespace = link.known.of(question.budget_id.uuid());
    let request = Request::get(of("budgets", question.budget_id, "")?);
    let request = request.namespace(namespace.as_ref());
    let found = Exchange::form(request, |form: Budget, _| form.try_into().map(Box::new));
    Ok(found.or_none(Code::BudgetNotFound))
}

pub(crate) fn ledger(link: &Link, question: &ReadLedger) -> Asked<Option<Box<LedgerRead>>> {
    let ReadLedger { budget_id, execution_id } = question;
    let namespace = link.known.of(budget_id.uuid());
    let path = path(&["budgets", &budget_id.to_string(), "ledgers", &execution_id.to_string()])?;
    let request = Request::get(path).namespace(namespace.as_ref());
    let found = Exchange::form(request, |form: Ledger, _| Ok(Box::new(form.into())));
    Ok(found.or_none(Code::BudgetNotFound))
}

pub(crate) fn budgets(_: &Link, question: ListBudgets) -> Asked<Page<BudgetStatus>> {
    let ListBudgets { filter, cursor, limit } = question;
    let mut request = Request::get(path(&["budgets"])?).namespace(Some(&filter.namespace));
    if let Some(scope) = &filter.scope {
        request = request.query("scope_type", scope.scope_type());
        request = request.query("scope_id", &scope.scope_id());
    }
    walked::<Budget, _>(request, cursor, limit)
}

fn get(link: &Link, id: QuotaPolicyId, part: &str) -> Result<Request, EngineError> {
    let namespace = link.known.of(id.uuid());
    Ok(Request::get(of("quotas", id, part)?).namespace(namespace.as_ref()))
}

fn quota(link: &Link, id: QuotaPolicyId) -> Asked<Option<QuotaPolicySnapshot>> {
    let found = Exchange::plain::<Quota>(get(link, id, "")?);
    Ok(found.or_none(Code::QuotaPolicyNotFound))
}

pub(crate) fn quota_limits(link: &Link, question: &ReadQuotaLimits) -> Asked<Option<QuotaSpec>> {
    Ok(quota(link, question.quota_policy_id)?.map(|found| found.map(|found| found.spec)))
}

pub(crate) fn quotas(_: &Link, question: ListQuotaPolicies) -> Asked<Page<QuotaPolicySnapshot>> {
    let ListQuotaPolicies { namespace, cursor, limit } = question;
    let request = Request::get(path(&["quotas"])?).namespace(Some(&namespace));
    walked::<Quota, _>(request, cursor, limit)
}

impl Link {
    /// A quota policy and a page of those who hold its slots: two requests.
    pub(crate) async fn quota(
        &self,
        question: DescribeQuotaPolicy,
    ) -> Result<Option<Box<QuotaPolicyDescribed>>, EngineError> {
        let DescribeQuotaPolicy { quota_policy_id: id, holders_from, limit } = question;
        let Some(policy) = self.send(quota(self, id)?).await? else { return Ok(None) };
        let list = Numbered::new("holders", &policy.namespace, id);
        let request = get(self, id, "holders")?;
        let page = list.page::<HolderForm, Holder, u32>(request, Some(holders_from), limit)?;
        let (holders, next) = self.send(page).await?;
        Ok(Some(Box::new(QuotaPolicyDescribed { policy, holders, next })))
    }
}
