//! Budgets, and the ledgers of executions that their usage is the sum of.
//!
//! The steps are the machine's own (`RecountBudget`): what others count meanwhile is no difference. Who
//! removes an execution has its ledgers taken away at once; here is the net under that.

use std::collections::VecDeque;

use ff_core::backend::{Backend, BackendExt};
use ff_core::disown::disown_gone;
use ff_core::error::{Code, EngineError};
use ff_core::id::{BudgetId, Namespace};
use ff_core::operation::{
    BudgetRecounted, Miscounted, Operation, Reconciled, RecountBudget, Verdict,
};
use ff_core::read::{BudgetFilter, ListBudgets};

use super::namespaces::Pages;

/// Ledgers after which a page ends, since a store at rest is to be left alone. Those that are taken away
/// do not count.
const LEDGERS: usize = 1024;
/// Budgets that make a step together: each looks at up to 512 ledgers.
const BUDGETS: usize = 2;

/// A walk over all budgets.
#[derive(Debug, Default)]
pub struct LedgerCheck {
    pages: Pages,
    /// Budgets whose ledgers have not all been looked at.
    open: VecDeque<BudgetId>,
}

impl LedgerCheck {
    pub fn new(only: Option<Namespace>) -> Self {
        Self { pages: Pages::new(only), ..Self::default() }
    }

    /// Makes up to so many steps; with `repair` usage that is wrong is made right, and ledgers of
    /// executions that are gone are taken away. The cursor of the answer says where it goes on: without
    /// one it begins again.
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
        let (mut left, mut looked_at) = (limit as usize, 0);
        while left > 0 && looked_at < LEDGERS && !self.open.is_empty() {
            let ids: Vec<_> = self.open.drain(..self.open.len().min(left).min(BUDGETS)).collect();
            left -= ids.len();
            looked_at += self.step(backend, ids, repair, &mut done).await?;
        }
        let open = self.open.front().map(BudgetId::to_string);
        done.next_cursor = open.or_else(|| self.pages.place());
        Ok(done)
    }

    /// One step for each of these: how many ledgers stay that were looked at.
    async fn step(
        &mut self,
        backend: &dyn Backend,
        ids: Vec<BudgetId>,
        repair: bool,
        done: &mut Reconciled,
    ) -> Result<usize, EngineError> {
        let recount = |id: &BudgetId| RecountBudget { budget_id: *id, repair }.into();
        let replies = backend.apply(ids.iter().map(recount).collect()).await;
        let mut stay = 0;
        for (id, reply) in ids.into_iter().zip(replies) {
            let BudgetRecounted { verdict, spenders } = match reply.and_then(RecountBudget::reply) {
                Ok(recounted) => recounted,
                Err(error) if error.code() == Code::BudgetNotFound => continue,
                Err(error) => return Err(error),
            };
            stay += spenders.len();
            if repair {
                stay -= disown_gone(backend, id, spenders).await? as usize;
            }
            match verdict {
                Verdict::More => self.open.push_back(id),
                Verdict::Sound => {}
                Verdict::Wrong(wrong) => {
                    wrong.iter().for_each(|it| done.found.report("I21", Some(id), said(it)));
                    done.mended += u32::from(repair);
                }
            }
        }
        Ok(stay)
    }

    /// The next budgets.
    async fn next(
        &mut self,
        backend: &dyn Backend,
        limit: u32,
    ) -> Result<VecDeque<BudgetId>, EngineError> {
        let Some((namespace, cursor)) = self.pages.next(backend).await? else {
            return Ok(VecDeque::new());
        };
        let filter = BudgetFilter { namespace: namespace.clone(), scope: None };
        let page = backend.ask(ListBudgets { filter, cursor, limit }).await?;
        self.pages.passed(backend, namespace, page.next_cursor).await?;
        Ok(page.items.into_iter().map(|budget| budget.budget_id).collect())
    }
}

fn said(Miscounted { dimension, used, counted }: &Miscounted) -> String {
    format!("{dimension} is {used}, its ledgers and what is attributed to nobody are {counted}")
}
