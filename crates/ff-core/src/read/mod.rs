//! Questions and answers. Reading changes nothing and needs no lease.

mod audit;
mod budget;
mod explain;
mod flow;
mod page;
mod query;
mod quota;
mod record;
mod search;
mod stream;
mod subscription;
mod waiting;
mod walk;

pub use audit::{Audited, ListEntry, LogCheck, Repaired, Violation};
pub use budget::{BudgetFilter, BudgetStatus, GetBudgetStatus, ListBudgets};
pub use explain::{Action, Cause, Explanation, explain};
pub use flow::{
    DescribeEdge, DescribeFlow, EdgeSnapshot, Eligibility, EvaluateEligibility, FlowCancellation,
    FlowEdges, FlowFilter, FlowMembers, FlowSnapshot, ListFlowEdges, ListFlowMembers, ListFlows,
    MemberSnapshot,
};
pub use page::{Leaf, Page, Seen};
pub use query::{
    Answer, Attempts, Audit, Context, Describe, Due, Dues, Events, Explain, Kids, ListAttempts,
    ListEvents, ListKids, ListSignals, ListWaitpoints, ListedSignal, ListedWaitpoint,
    ObserveSignals, Query, Question, ReadContext, ReadResult, ReadState, Signals,
};
pub use quota::{
    DescribeQuotaPolicy, ListQuotaPolicies, QuotaPolicyDescribed, QuotaPolicySnapshot,
    ReadQuotaLimits,
};
pub use record::Record;
pub use search::{Filter, Search, SearchPosition};
pub use stream::{
    ReadStream, ReadSummary, SUPERSEDED, ShelfFound, StreamClosed, StreamCursor, StreamFound,
    StreamPage, StreamRange, SummaryRead, Tail, Visibility, attempt_not_found,
};
pub use subscription::{EventFilter, Follow, Followed, From, Subscription, Topic};
pub use waiting::{ListPendingWaitpoints, ListSuspended, ListedSuspension, WaitingFilter};
pub use walk::{Listed, Walk};
