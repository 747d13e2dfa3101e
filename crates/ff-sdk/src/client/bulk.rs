//! Acting on many executions at once.

use ff_core::error::{Code, Refusal};
use ff_core::id::{BulkId, ExecutionId};
use ff_core::limits;
use ff_core::operation::{BulkWish, CreateBulk, Operation as _, SetBulk};
use ff_core::read::{Filter, GetBulk, ListBulks, Page};
use ff_core::state::{Bulk, BulkAction, BulkTargets};
use ff_engine::acts::{self, Preview};

use super::Client;
use crate::error::SdkError;

/// What is to be done with many.
///
/// ```
/// use ff_core::read::Filter;
/// use ff_core::state::BulkAction;
/// use ff_sdk::{Client, NewBulk, Submission};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ff_sdk::SdkError> {
/// # let client = Client::connect("sqlite::memory:").await?;
/// # for _ in 0..3 { client.submit(Submission::new("greet").lane("mail")).await?; }
/// let filter = Filter { lanes: vec!["mail".parse().expect("a lane")], ..Filter::default() };
/// let cancel = NewBulk::of_found(BulkAction::Cancel, filter).reason("wrong recipients");
/// assert_eq!(client.preview_bulk(&cancel).await?.matched, 3);
/// let bulk = client.create_bulk(cancel).await?;
/// # client.bulk(bulk).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct NewBulk {
    action: BulkAction,
    targets: BulkTargets,
    reason: String,
}

impl NewBulk {
    /// On all that a search finds. An empty filter is refused: it would be everything.
    ///
    /// ```
    /// use ff_core::read::Filter;
    /// use ff_core::state::BulkAction;
    /// use ff_sdk::NewBulk;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let of_mail = Filter { lanes: vec!["mail".parse()?], ..Filter::default() };
    /// let hold = NewBulk::of_found(BulkAction::Hold, of_mail);
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_found(action: BulkAction, filter: Filter) -> Self {
        Self { action, targets: BulkTargets::Filter(Box::new(filter)), reason: String::new() }
    }

    /// On these.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::state::BulkAction;
    /// use ff_sdk::NewBulk;
    ///
    /// let greeting = client.submit(Submission::new("greet")).await?;
    /// let cancel = NewBulk::of_these(BulkAction::Cancel, vec![greeting.id()]);
    /// assert_eq!(client.preview_bulk(&cancel).await?.matched, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn of_these(action: BulkAction, ids: Vec<ExecutionId>) -> Self {
        Self { action, targets: BulkTargets::Ids(ids), reason: String::new() }
    }

    /// Why, as the executions will tell.
    ///
    /// ```
    /// use ff_core::state::BulkAction;
    /// use ff_sdk::NewBulk;
    ///
    /// let cancel = NewBulk::of_these(BulkAction::Cancel, vec![]).reason("wrong recipients");
    /// ```
    #[must_use]
    pub fn reason(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }
}

impl Client {
    /// Looks whom a bulk operation would act on, and changes nothing.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::read::Filter;
    /// use ff_core::state::BulkAction;
    /// use ff_sdk::NewBulk;
    ///
    /// let greeting = client.submit(Submission::new("greet").lane("mail")).await?;
    /// let of_mail = Filter { lanes: vec!["mail".parse()?], ..Filter::default() };
    /// let seen = client.preview_bulk(&NewBulk::of_found(BulkAction::Cancel, of_mail)).await?;
    /// assert_eq!((seen.matched, seen.sample), (1, vec![greeting.id()]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Config`] for a filter without a condition, or for too many ids.
    pub async fn preview_bulk(&self, bulk: &NewBulk) -> Result<Preview, SdkError> {
        let create = self.bulk_operation(bulk.clone())?;
        Ok(acts::preview(&**self.backend(), &create.namespace, &create.targets).await?)
    }

    /// Makes a bulk operation. An engine carries it out, step by step; [`Self::bulk`] tells how far
    /// it is.
    ///
    /// ```
    /// # use ff_sdk::{Client, Submission};
    /// use ff_core::state::BulkAction;
    /// use ff_sdk::NewBulk;
    /// use std::time::Duration;
    ///
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::connect("sqlite::memory:").await?;
    /// let greeting = client.submit(Submission::new("greet")).await?;
    /// let cancel = NewBulk::of_these(BulkAction::Cancel, vec![greeting.id()]).reason("not today");
    /// client.create_bulk(cancel).await?;
    /// let finished = greeting.wait(Duration::from_secs(10)).await?;
    /// assert_eq!(finished.to_string(), "cancelled: not today");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::preview_bulk`].
    pub async fn create_bulk(&self, bulk: NewBulk) -> Result<BulkId, SdkError> {
        let create = self.bulk_operation(bulk)?;
        let bulk_id = create.bulk_id;
        acts::create_bulk(&**self.backend(), create).await?;
        Ok(bulk_id)
    }

    fn bulk_operation(
        &self,
        NewBulk { action, targets, reason }: NewBulk,
    ) -> Result<CreateBulk, SdkError> {
        let namespace = self.namespace.clone();
        let targets = match targets {
            BulkTargets::Filter(filter) => {
                let namespace = Some(namespace.clone());
                BulkTargets::Filter(Box::new(Filter { namespace, ..*filter }))
            }
            ids @ BulkTargets::Ids(_) => ids,
        };
        let bulk_id = BulkId::mint();
        let create = CreateBulk { bulk_id, namespace, action, targets, reason, matched: 0 };
        create.check().map_err(SdkError::unsent)?;
        Ok(create)
    }

    /// How far a bulk operation is. Over a store only: what a server shows of it does not name whom
    /// it acts on.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// # use ff_core::state::BulkAction;
    /// # use ff_sdk::NewBulk;
    /// # let greeting = client.submit(Submission::new("greet")).await?;
    /// # let hold = NewBulk::of_these(BulkAction::Hold, vec![greeting.id()]);
    /// let id = client.create_bulk(hold).await?;
    /// let bulk = client.bulk(id).await?;
    /// println!("{} of {}", bulk.done, bulk.matched);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `bulk_not_found`; `route_not_found` over a server.
    pub async fn bulk(&self, bulk_id: BulkId) -> Result<Bulk, SdkError> {
        let found = self.ask(GetBulk { bulk_id }).await?;
        let missing = || {
            let detail = format!("no bulk operation {bulk_id}");
            Refusal::at(Code::BulkNotFound, "bulk_id", detail)
        };
        Ok(*found.ok_or_else(missing)?)
    }

    /// Bulk operations of the client's namespace, newest first.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// # use ff_core::state::BulkAction;
    /// # use ff_sdk::NewBulk;
    /// # let greeting = client.submit(Submission::new("greet")).await?;
    /// # let hold = NewBulk::of_these(BulkAction::Hold, vec![greeting.id()]);
    /// let id = client.create_bulk(hold).await?;
    /// assert_eq!(client.list_bulks(None).await?.items[0].id, id);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid_cursor` for a cursor of another list; `route_not_found` over a server.
    pub async fn list_bulks(&self, cursor: Option<String>) -> Result<Page<Bulk>, SdkError> {
        let namespace = self.namespace.clone();
        self.ask(ListBulks { namespace, cursor, limit: limits::PAGE }).await
    }

    /// Pauses a bulk operation, lets it go on, or ends it where it stands.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// # use ff_core::state::BulkAction;
    /// # use ff_sdk::NewBulk;
    /// # let greeting = client.submit(Submission::new("greet")).await?;
    /// # let hold = NewBulk::of_these(BulkAction::Hold, vec![greeting.id()]);
    /// use ff_core::operation::BulkWish;
    /// use ff_core::state::BulkState;
    ///
    /// let id = client.create_bulk(hold).await?;
    /// client.set_bulk(id, BulkWish::Abort).await?;
    /// assert_eq!(client.bulk(id).await?.state, BulkState::Aborted);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `bulk_not_found`, and `terminal` for one that is over.
    pub async fn set_bulk(&self, bulk_id: BulkId, to: BulkWish) -> Result<(), SdkError> {
        self.call(SetBulk { bulk_id, to }).await?;
        Ok(())
    }
}
