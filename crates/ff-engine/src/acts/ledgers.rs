//! Budgets, and the ledgers of executions that their usage is the sum of.
//!
//! The steps are the machine's own (`RecountBudget`): what others count meanwhile is no difference.

use std::collections::VecDeque;

use ff_core::backend::{Backend, BackendExt};
use ff_core::error::{Code, EngineError};
use ff_core::id::{BudgetId, Namespace};
use ff_core::operation::{BudgetRecounted, Miscounted, Operation, Reconciled, RecountBudget};
use ff_core::read::{BudgetFilter, ListBudgets};

use super::namespaces::following;

/// A walk over all budgets.
#[derive(Debug, Default)]
pub struct LedgerCheck {
    /// Only in this one.
    only: Option<Namespace>,
    /// The namespace that it is at, and where in it.
    at: Option<(Namespace, Option<String>)>,
    /// Budgets whose ledgers have not all been looked at.
    open: VecDeque<BudgetId>,
}

impl LedgerCheck {
    pub fn new(only: Option<Namespace>) -> Self {
        Self { only, ..Self::default() }
    }

    /// Makes up to so many steps; with `repair` usage that is wrong is made right. The cursor of the
    /// answer says where it goes on: without one it begins again.
    pub async fn page(
        &mut self,
        backend: &dyn Backend,
        limit: u32,
        repair: bool,
    ) -> Result<Reconciled, EngineError> {
        let mut done = Reconciled::default();
        if self.open.is_empty() {
            self.open = self.next(backend, limit).await?;
            done.found.checked = self.open.len() as u64;
        }
        let steps = self.open.len().min(limit as usize);
        let ids: Vec<_> = self.open.drain(..steps).collect();
        let recount = |id: &BudgetId| RecountBudget { budget_id: *id, repair }.into();
        let replies = match ids.is_empty() {
            true => Vec::new(),
            false => backend.apply(ids.iter().map(recount).collect()).await,
        };
        for (id, reply) in ids.into_iter().zip(replies) {
            match reply.and_then(RecountBudget::reply) {
                Ok(BudgetRecounted::Sound) => {}
                Ok(BudgetRecounted::More) => self.open.push_back(id),
                Ok(BudgetRecounted::Wrong(wrong)) => {
                    wrong.iter().for_each(|it| done.found.report("I21", Some(id), said(it)));
                    done.mended += u32::from(repair);
                }
                Err(error) if error.code() == Code::BudgetNotFound => {}
                Err(error) => return Err(error),
            }
        }
        let place = self.at.as_ref().map(|(namespace, _)| namespace.to_string());
        let open = self.open.front().map(BudgetId::to_string);
        done.next_cursor = open.or(place);
        Ok(done)
    }

    /// The next budgets.
    async fn next(
        &mut self,
        backend: &dyn Backend,
        limit: u32,
    ) -> Result<VecDeque<BudgetId>, EngineError> {
        let (namespace, cursor) = match self.at.take() {
            Some(at) => at,
            None => match following(backend, self.only.as_ref(), None).await? {
                Some(first) => (first, None),
                None => return Ok(VecDeque::new()),
            },
        };
        let filter = BudgetFilter { namespace: namespace.clone(), scope: None };
        let page = backend.ask(ListBudgets { filter, cursor, limit }).await?;
        self.at = match page.next_cursor {
            Some(cursor) => Some((namespace, Some(cursor))),
            None => following(backend, self.only.as_ref(), Some(namespace))
                .await?
                .map(|next| (next, None)),
        };
        Ok(page.items.into_iter().map(|budget| budget.budget_id).collect())
    }
}

fn said(Miscounted { dimension, used, counted }: &Miscounted) -> String {
    format!("{dimension} is {used}, its ledgers and what is attributed to nobody are {counted}")
}
