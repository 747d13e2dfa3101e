//! Budgets: how much may be used.

use std::collections::BTreeMap;
use std::time::Duration;

use ff_core::error::{Code, Refusal};
use ff_core::id::{BudgetId, ExecutionId, IdempotencyKey, LaneId, Namespace};
use ff_core::limits;
use ff_core::operation::{
    BudgetReset, CreateBudget, DeleteBudget, ReleaseBudget, ReportUsageAdmin, ResetBudget,
    UpdateBudget, UsageReported,
};
use ff_core::read::{
    BudgetFilter, BudgetStatus, GetBudgetStatus, LedgerRead, ListBudgets, Page, ReadLedger,
};
use ff_core::state::{BudgetScope, EnforcementMode, HardAction, Limits, SoftAction};
use uuid::Uuid;

use super::Client;
use crate::config::parse;
use crate::error::SdkError;
use crate::presence::millis;
use crate::task::Usage;

/// A budget to be made.
///
/// ```
/// use std::time::Duration;
/// use ff_sdk::{Client, NewBudget, Submission, Usage};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ff_sdk::SdkError> {
/// # let client = Client::connect("sqlite::memory:").await?;
/// let daily = NewBudget::new("tokens")
///     .limit("output_tokens", 10_000)
///     .soft_limit("output_tokens", 8_000)
///     .reset_every(Duration::from_secs(86_400));
/// let budget = client.create_budget(daily).await?;
/// client.submit(Submission::new("ask").budget(budget)).await?;
/// client.report_usage(budget, &Usage::new().output_tokens(64), Some("call-1")).await?;
/// let status = client.budget_status(budget).await?;
/// assert!(status.dimensions.values().any(|counter| counter.used == 64));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct NewBudget {
    scope: Scope,
    budget_id: Option<BudgetId>,
    dimensions: BTreeMap<String, Limits>,
    mode: EnforcementMode,
    on_hard_limit: HardAction,
    on_soft_limit: SoftAction,
    reset_every: Option<Duration>,
}

/// What it is for, as it was said.
#[derive(Debug, Clone, PartialEq)]
enum Scope {
    Named(String),
    Known(BudgetScope),
    /// The namespace of the client.
    Namespace,
}

impl NewBudget {
    /// A budget of this name, for whatever is submitted with its id.
    ///
    /// ```
    /// use ff_sdk::NewBudget;
    ///
    /// let tokens = NewBudget::new("tokens").limit("output_tokens", 10_000);
    /// ```
    pub fn new(name: impl Into<String>) -> Self {
        Self::of(Scope::Named(name.into()))
    }

    /// For everything on a lane of the client's namespace.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::NewBudget;
    ///
    /// let of_mail = NewBudget::of_lane("mail".parse()?).limit("mails", 500);
    /// let budget = client.create_budget(of_mail).await?;
    /// let lane = client.describe_lane("mail").await?;
    /// assert_eq!(lane.attached.budget_ids, [budget]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_lane(lane: LaneId) -> Self {
        Self::of(Scope::Known(BudgetScope::Lane(lane)))
    }

    /// For all members of a flow.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::{Flow, NewBudget};
    ///
    /// let flow = Flow::new("report").step("ask", Submission::new("ask"));
    /// let flow = client.submit_flow(flow).await?;
    /// client.create_budget(NewBudget::of_flow(flow.id()).limit("output_tokens", 5_000)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_flow(flow_id: ff_core::id::FlowId) -> Self {
        Self::of(Scope::Known(BudgetScope::Flow(flow_id)))
    }

    /// For everything in the client's namespace.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::NewBudget;
    ///
    /// let all = NewBudget::of_namespace().limit("output_tokens", 1_000_000);
    /// let budget = client.create_budget(all).await?;
    /// let namespace = client.describe_namespace().await?;
    /// assert_eq!(namespace.record.attached.budget_ids, [budget]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_namespace() -> Self {
        Self::of(Scope::Namespace)
    }

    fn of(scope: Scope) -> Self {
        Self {
            scope,
            budget_id: None,
            dimensions: BTreeMap::new(),
            mode: EnforcementMode::default(),
            on_hard_limit: HardAction::default(),
            on_soft_limit: SoftAction::default(),
            reset_every: None,
        }
    }

    /// An id of its own choosing: making the same one twice makes one.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::id::BudgetId;
    /// use ff_sdk::NewBudget;
    ///
    /// let id = BudgetId::mint();
    /// let tokens = NewBudget::new("tokens").limit("output_tokens", 10).id(id);
    /// assert_eq!(client.create_budget(tokens.clone()).await?, id);
    /// assert_eq!(client.create_budget(tokens).await?, id);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn id(self, budget_id: BudgetId) -> Self {
        Self { budget_id: Some(budget_id), ..self }
    }

    /// Nothing new is claimed once so much of a dimension has been used.
    ///
    /// Those that run go on; what waits is kept back until there is room again. See
    /// [`Self::on_hard_limit`] for more.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_sdk::{NewBudget, Usage};
    ///
    /// let client = engine.client();
    /// let budget = client.create_budget(NewBudget::new("calls").limit("calls", 1)).await?;
    /// client.report_usage(budget, &Usage::new().custom("calls", 1), None).await?;
    /// let late = client.submit(Submission::new("call").budget(budget)).await?;
    /// assert!(worker.claim_next().await?.is_none());
    /// assert_eq!(late.explain().await?.cause.as_str(), "budget");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn limit(mut self, dimension: impl Into<String>, hard: u64) -> Self {
        self.dimensions.entry(dimension.into()).or_default().hard = hard;
        self
    }

    /// An event tells when more than this has been used.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::operation::UsageReported;
    /// use ff_sdk::{NewBudget, Usage};
    ///
    /// let budget = NewBudget::new("tokens").limit("tokens", 100).soft_limit("tokens", 80);
    /// let budget = client.create_budget(budget).await?;
    /// let said = client.report_usage(budget, &Usage::new().custom("tokens", 90), None).await?;
    /// assert!(matches!(said, UsageReported::SoftBreach(_)));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn soft_limit(mut self, dimension: impl Into<String>, soft: u64) -> Self {
        self.dimensions.entry(dimension.into()).or_default().soft = soft;
        self
    }

    /// What becomes of those that run when a hard limit is passed; unless said, they run on.
    ///
    /// ```
    /// use ff_core::state::HardAction;
    /// use ff_sdk::NewBudget;
    ///
    /// let tokens = NewBudget::new("tokens").limit("tokens", 100);
    /// let strict = tokens.on_hard_limit(HardAction::Cancel);
    /// ```
    #[must_use]
    pub fn on_hard_limit(self, action: HardAction) -> Self {
        Self { on_hard_limit: action, ..self }
    }

    /// Whether a report that would pass a hard limit is counted; unless said, it is.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::operation::UsageReported;
    /// use ff_core::state::EnforcementMode;
    /// use ff_sdk::{NewBudget, Usage};
    ///
    /// let strict = NewBudget::new("tokens").limit("tokens", 10).mode(EnforcementMode::Refuse);
    /// let budget = client.create_budget(strict).await?;
    /// let said = client.report_usage(budget, &Usage::new().custom("tokens", 11), None).await?;
    /// assert!(matches!(said, UsageReported::HardBreach(_)));
    /// let status = client.budget_status(budget).await?;
    /// assert!(status.dimensions.values().all(|it| it.used == 0));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn mode(self, mode: EnforcementMode) -> Self {
        Self { mode, ..self }
    }

    /// Begins anew after so much time, again and again.
    ///
    /// ```
    /// use ff_sdk::NewBudget;
    /// use std::time::Duration;
    ///
    /// let tokens = NewBudget::new("tokens").limit("tokens", 100);
    /// let daily = tokens.reset_every(Duration::from_secs(86_400));
    /// ```
    #[must_use]
    pub fn reset_every(self, interval: Duration) -> Self {
        Self { reset_every: Some(interval), ..self }
    }

    fn operation(self, namespace: &Namespace) -> Result<CreateBudget, SdkError> {
        Ok(CreateBudget {
            budget_id: self.budget_id.unwrap_or_else(BudgetId::mint),
            namespace: namespace.clone(),
            scope: match self.scope {
                Scope::Named(name) => BudgetScope::Custom(name),
                Scope::Known(scope) => scope,
                Scope::Namespace => BudgetScope::Namespace(namespace.clone()),
            },
            enforcement_mode: self.mode,
            on_hard_limit: self.on_hard_limit,
            on_soft_limit: self.on_soft_limit,
            reset_interval_ms: self.reset_every.map_or(0, millis),
            dimensions: read_limits(self.dimensions)?,
        })
    }
}

fn read_limits<T: Ord + std::str::FromStr<Err: std::fmt::Display>>(
    limits: BTreeMap<String, Limits>,
) -> Result<BTreeMap<T, Limits>, SdkError> {
    limits.into_iter().map(|(name, limits)| Ok((parse("dimensions", &name)?, limits))).collect()
}

impl Client {
    /// Makes a budget, and attaches it where its scope says.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::NewBudget;
    ///
    /// let tokens = NewBudget::new("tokens").limit("output_tokens", 10_000);
    /// let budget = client.create_budget(tokens).await?;
    /// client.submit(Submission::new("ask").budget(budget)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a dimension that is none; `invalid_budget_scope`;
    /// `budget_attach_conflict` for an id that another budget has; `flow_not_found` for the flow
    /// that it is for.
    pub async fn create_budget(&self, budget: NewBudget) -> Result<BudgetId, SdkError> {
        let create = budget.operation(&self.namespace)?;
        let budget_id = create.budget_id;
        self.insist(create).await?;
        Ok(budget_id)
    }

    /// Limits, usage of this period, and breaches.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::NewBudget;
    ///
    /// let budget = client.create_budget(NewBudget::new("tokens").limit("tokens", 100)).await?;
    /// let status = client.budget_status(budget).await?;
    /// assert_eq!((status.dimensions.len(), status.breach_count), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `budget_not_found`.
    pub async fn budget_status(&self, budget_id: BudgetId) -> Result<BudgetStatus, SdkError> {
        let found = self.ask(GetBudgetStatus { budget_id }).await?;
        let missing = || {
            let detail = format!("no budget {budget_id}");
            Refusal::at(Code::BudgetNotFound, "budget_id", detail)
        };
        Ok(*found.ok_or_else(missing)?)
    }

    /// What an execution used in this period, by attempt: also what attempts used that lost their
    /// lease.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::{NewBudget, Usage};
    ///
    /// let client = engine.client();
    /// let budget = client.create_budget(NewBudget::new("tokens").limit("tokens", 100)).await?;
    /// let task = engine.claimed(Submission::new("ask").budget(budget)).await;
    /// task.report_usage(budget, &Usage::new().custom("tokens", 60), None).await?;
    /// let ledger = client.budget_ledger(budget, task.execution_id()).await?;
    /// assert_eq!(ledger.attempts[&0], ledger.usage);
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `budget_not_found`.
    pub async fn budget_ledger(
        &self,
        budget_id: BudgetId,
        execution_id: ExecutionId,
    ) -> Result<LedgerRead, SdkError> {
        let found = self.ask(ReadLedger { budget_id, execution_id }).await?;
        let missing = || {
            let detail = format!("no budget {budget_id}");
            Refusal::at(Code::BudgetNotFound, "budget_id", detail)
        };
        Ok(*found.ok_or_else(missing)?)
    }

    /// Budgets of the client's namespace, newest first.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::NewBudget;
    ///
    /// let budget = client.create_budget(NewBudget::new("tokens").limit("tokens", 100)).await?;
    /// assert_eq!(client.list_budgets(None).await?.items[0].budget_id, budget);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid_cursor` for a cursor of another list.
    pub async fn list_budgets(
        &self,
        cursor: Option<String>,
    ) -> Result<Page<BudgetStatus>, SdkError> {
        let filter = BudgetFilter { namespace: self.namespace.clone(), scope: None };
        self.ask(ListBudgets { filter, cursor, limit: limits::PAGE }).await
    }

    /// Other limits for these dimensions; the rest stays as it is. A raise lets those go that it
    /// kept back.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::state::Limits;
    /// use ff_sdk::NewBudget;
    ///
    /// let budget = client.create_budget(NewBudget::new("tokens").limit("tokens", 100)).await?;
    /// let more = Limits { hard: 200, soft: 150 };
    /// client.set_budget_limits(budget, [("tokens".to_owned(), more)].into()).await?;
    /// let status = client.budget_status(budget).await?;
    /// assert!(status.dimensions.values().all(|it| it.limits == more));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `budget_not_found`; [`SdkError::Config`] for a dimension that is none.
    pub async fn set_budget_limits(
        &self,
        budget_id: BudgetId,
        limits: BTreeMap<String, Limits>,
    ) -> Result<(), SdkError> {
        let update = UpdateBudget {
            budget_id,
            dimensions: read_limits(limits)?,
            on_hard_limit: None,
            on_soft_limit: None,
            reset_interval_ms: None,
            expected_revision: None,
        };
        self.insist(update).await?;
        Ok(())
    }

    /// Tells what was used, without an execution. Counted once for each key; without a key one is
    /// made for this call. Sent again when the reply is lost.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::operation::UsageReported;
    /// use ff_sdk::{NewBudget, Usage};
    ///
    /// let budget = client.create_budget(NewBudget::new("tokens").limit("tokens", 100)).await?;
    /// let usage = Usage::new().custom("tokens", 60);
    /// assert_eq!(client.report_usage(budget, &usage, Some("call-1")).await?, UsageReported::Ok);
    /// let again = client.report_usage(budget, &usage, Some("call-1")).await?;
    /// assert_eq!(again, UsageReported::AlreadyApplied);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `budget_not_found`. A breach is an answer and no error.
    pub async fn report_usage(
        &self,
        budget_id: BudgetId,
        usage: &Usage,
        dedup_key: Option<&str>,
    ) -> Result<UsageReported, SdkError> {
        let own = Uuid::now_v7().to_string();
        let dedup_key: IdempotencyKey = parse("dedup_key", dedup_key.unwrap_or(&own))?;
        let report = ReportUsageAdmin {
            budget_id,
            execution_id: None,
            dimensions: usage.dimensions()?,
            dedup_key: Some(dedup_key),
            mode: None,
        };
        self.insist(report).await
    }

    /// Begins the next period now; those that the budget kept back may run.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::{NewBudget, Usage};
    ///
    /// let budget = client.create_budget(NewBudget::new("tokens").limit("tokens", 100)).await?;
    /// client.report_usage(budget, &Usage::new().custom("tokens", 60), None).await?;
    /// client.reset_budget(budget).await?;
    /// let status = client.budget_status(budget).await?;
    /// assert!(status.dimensions.values().all(|it| it.used == 0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `budget_not_found`.
    pub async fn reset_budget(&self, budget_id: BudgetId) -> Result<BudgetReset, SdkError> {
        self.call(ResetBudget { budget_id }).await
    }

    /// Gives back what an execution used in this period.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// use ff_sdk::{NewBudget, Usage};
    ///
    /// let client = engine.client();
    /// let budget = client.create_budget(NewBudget::new("tokens").limit("tokens", 100)).await?;
    /// let task = engine.claimed(Submission::new("ask").budget(budget)).await;
    /// task.report_usage(budget, &Usage::new().custom("tokens", 60), None).await?;
    /// client.release_budget(budget, task.execution_id()).await?;
    /// let status = client.budget_status(budget).await?;
    /// assert!(status.dimensions.values().all(|it| it.used == 0));
    /// # task.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `budget_not_found`.
    pub async fn release_budget(
        &self,
        budget_id: BudgetId,
        execution_id: ExecutionId,
    ) -> Result<(), SdkError> {
        self.insist(ReleaseBudget { budget_id, execution_id }).await?;
        Ok(())
    }

    /// Removes a budget with all that it counted.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::NewBudget;
    ///
    /// let budget = client.create_budget(NewBudget::new("tokens").limit("tokens", 100)).await?;
    /// client.delete_budget(budget).await?;
    /// assert!(client.budget_status(budget).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `budget_not_found`.
    pub async fn delete_budget(&self, budget_id: BudgetId) -> Result<(), SdkError> {
        self.call(DeleteBudget { budget_id }).await?;
        Ok(())
    }
}
