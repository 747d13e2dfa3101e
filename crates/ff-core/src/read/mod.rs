//! Questions and answers. Reading changes nothing and needs no lease.

mod audit;
mod explain;
mod query;
mod record;
mod search;
mod subscription;

pub use audit::{Audited, Violation};
pub use explain::{Action, Cause, Explanation, explain};
pub use query::{
    Answer, Attempts, Audit, Context, Describe, Due, Dues, Events, Explain, Kids, ListAttempts,
    ListEvents, ListKids, ListSignals, ListWaitpoints, ListedSignal, ListedWaitpoint,
    ObserveSignals, Query, Question, ReadContext, ReadResult, ReadState, Signals,
};
pub use record::Record;
pub use search::{Filter, Page, Search, SearchPosition};
pub use subscription::{EventFilter, Follow, Followed, From, Subscription, Topic};
