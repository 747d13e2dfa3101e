//! Subscribing to events.

use std::collections::VecDeque;
use std::time::Duration;

use ff_core::backend::{BackendExt as _, EventsAfter};
use ff_core::error::EngineError;
use ff_core::event::Envelope;
use ff_core::id::{ExecutionId, Subject};
use ff_core::limits;
use ff_core::read::{EventFilter, Follow, From};

use super::Client;
use crate::connection::CALL;
use crate::error::{SdkError, is_fault};
use crate::outage::Pauses;
use crate::patience::within_time;

/// How long one look waits for events.
const LOOK: Duration = Duration::from_secs(20);

/// What a subscription brings.
///
/// ```
/// use ff_sdk::Happened;
///
/// fn line(happened: &Happened) -> String {
///     match happened {
///         Happened::Event(it) => it.event.kind.as_str().to_owned(),
///         Happened::Gap => "some events are gone: read everything anew".to_owned(),
///     }
/// }
/// # assert!(line(&Happened::Gap).starts_with("some"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// Something happened.
    Event(Box<Envelope>),
    /// Retention has removed events between the last one and the next: look again at what the
    /// events are kept for.
    Gap,
}

/// Events of a namespace as they happen. Holds at most a page of them, and asks for more when they
/// have been taken: who is slow holds up nobody.
///
/// ```
/// use ff_core::read::{EventFilter, Subscription};
/// use ff_sdk::{Client, Happened, Submission};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ff_sdk::SdkError> {
/// # let client = Client::connect("sqlite::memory:").await?;
/// # client.submit(Submission::new("greet")).await?.cancel("enough").await?;
/// let kinds_of_event = Subscription::Completions.kinds_of_event();
/// let filter = EventFilter { kinds_of_event, ..EventFilter::default() };
/// let mut ends = client.subscribe(filter).from_start();
/// if let Happened::Event(envelope) = ends.next().await? {
///     assert_eq!(envelope.event.kind.as_str(), "execution.cancelled");
/// }
/// let resume_here = ends.cursor();
/// # assert!(resume_here.is_some());
/// # Ok(())
/// # }
/// ```
pub struct EventSubscription {
    client: Client,
    filter: EventFilter,
    from: From,
    waiting: VecDeque<Happened>,
    /// Where to go on once all of `waiting` has been taken.
    behind: Option<String>,
}

impl EventSubscription {
    /// Begins with the oldest event that is kept, instead of now.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::read::EventFilter;
    /// use ff_sdk::Happened;
    ///
    /// client.submit(Submission::new("greet")).await?;
    /// let mut events = client.subscribe(EventFilter::default()).from_start();
    /// let Happened::Event(first) = events.next().await? else { panic!("nothing was removed") };
    /// assert_eq!(first.event.kind.as_str(), "execution.submitted");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn from_start(self) -> Self {
        Self { from: From::Start, ..self }
    }

    /// Goes on behind the place that [`Self::cursor`] told, with the same filter.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::read::EventFilter;
    ///
    /// client.submit(Submission::new("first")).await?;
    /// let mut events = client.subscribe(EventFilter::default()).from_start();
    /// events.next().await?;
    /// let place = events.cursor().expect("an event was taken");
    /// let mut again = client.subscribe(EventFilter::default()).from_cursor(place);
    /// client.submit(Submission::new("second")).await?;
    /// again.next().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn from_cursor(self, cursor: impl Into<String>) -> Self {
        Self { from: From::Cursor(cursor.into()), ..self }
    }

    /// Where to go on, also in another process; none before the first event or [`Self::begin`].
    /// Events that came together are behind the place only when all of them have been taken, so
    /// some may come twice, with the same id.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::read::EventFilter;
    ///
    /// let mut events = client.subscribe(EventFilter::default());
    /// assert!(events.cursor().is_none());
    /// events.begin().await?;
    /// assert!(events.cursor().is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn cursor(&self) -> Option<String> {
        match (&self.behind, &self.from) {
            (Some(behind), _) if self.waiting.is_empty() => Some(behind.clone()),
            (_, From::Cursor(cursor)) => Some(cursor.clone()),
            _ => None,
        }
    }

    /// Takes the place in the log now, and not with the first [`Self::next`]: of what happens from
    /// here on nothing is missed.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::read::EventFilter;
    ///
    /// let mut events = client.subscribe(EventFilter::default());
    /// events.begin().await?;
    /// client.submit(Submission::new("greet")).await?;
    /// events.next().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SdkError::Backend`] when the store does not answer: begin again.
    pub async fn begin(&mut self) -> Result<(), SdkError> {
        if matches!(self.from, From::Now) {
            self.look(Duration::ZERO).await?;
        }
        Ok(())
    }

    /// The next event; waits for it. Goes on over faults of the store, as long as it takes.
    /// Dropping the call loses nothing.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::read::EventFilter;
    /// use ff_sdk::Happened;
    ///
    /// # client.submit(Submission::new("greet")).await?.cancel("enough").await?;
    /// let mut events = client.subscribe(EventFilter::default()).from_start();
    /// while let Happened::Event(envelope) = events.next().await? {
    ///     if envelope.event.kind.as_str() == "execution.cancelled" {
    ///         break;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `invalid_cursor` for a place of another filter or store.
    pub async fn next(&mut self) -> Result<Happened, SdkError> {
        let mut pauses = Pauses::default();
        loop {
            if let Some(happened) = self.waiting.pop_front() {
                return Ok(happened);
            }
            match self.look(LOOK).await {
                Ok(()) => pauses.begin_anew(),
                Err(error) if is_fault(&error) => tokio::time::sleep(pauses.next()).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next event of one execution, or a gap; those of others are passed over.
    ///
    /// ```
    /// use ff_core::event::EventKind;
    /// use ff_core::read::EventFilter;
    /// use ff_sdk::{Client, Execution, SdkError};
    ///
    /// /// Returns when the execution waits for somebody.
    /// async fn until_suspended(client: &Client, execution: &Execution) -> Result<(), SdkError> {
    ///     let kinds_of_event = vec![EventKind::Suspended];
    ///     let filter = EventFilter { kinds_of_event, ..EventFilter::default() };
    ///     client.subscribe(filter).from_start().next_about(execution.id()).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::next`].
    pub async fn next_about(&mut self, execution_id: ExecutionId) -> Result<Happened, SdkError> {
        let subject = Subject::Execution(execution_id);
        loop {
            match self.next().await? {
                Happened::Event(it) if it.event.subject != subject => {}
                happened => return Ok(happened),
            }
        }
    }

    async fn look(&mut self, wait: Duration) -> Result<(), EngineError> {
        if let Some(behind) = self.behind.take() {
            self.from = From::Cursor(behind);
        }
        let follow = Follow {
            filter: self.filter.clone(),
            from: self.from.clone(),
            limit: limits::PAGE,
            each: false,
        };
        let asked = self.client.backend().events(follow, wait);
        let EventsAfter { items, cursor, gap, .. } =
            within_time(wait + CALL, "a subscription", asked).await?;
        self.waiting.extend(gap.then_some(Happened::Gap));
        self.waiting.extend(items.into_iter().map(|item| Happened::Event(Box::new(item))));
        self.behind = Some(cursor);
        Ok(())
    }
}

impl Client {
    /// Subscribes to events of the client's namespace, from now on. The named sets of events are
    /// [`ff_core::read::Subscription`].
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::read::EventFilter;
    ///
    /// let of_mail = EventFilter { lanes: vec!["mail".parse()?], ..EventFilter::default() };
    /// let mut events = client.subscribe(of_mail);
    /// events.begin().await?;
    /// client.submit(Submission::new("greet").lane("mail")).await?;
    /// events.next().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn subscribe(&self, filter: EventFilter) -> EventSubscription {
        let namespace = filter.namespace.or_else(|| Some(self.namespace.clone()));
        EventSubscription {
            client: self.clone(),
            filter: EventFilter { namespace, ..filter },
            from: From::Now,
            waiting: VecDeque::new(),
            behind: None,
        }
    }
}
