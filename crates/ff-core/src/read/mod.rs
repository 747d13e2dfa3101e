//! Questions and answers. Reading changes nothing and needs no lease.

mod audit;
mod backlog;
mod blocked;
mod budget;
mod bulk;
mod explain;
mod flow;
mod key;
mod lane;
mod namespace;
mod page;
mod query;
mod quota;
mod record;
mod route;
mod search;
mod standing;
mod stream;
mod subscription;
mod waiting;
mod walk;
mod worker;

pub use audit::{Audited, ListEntry, LogCheck, Repaired, Violation};
pub use backlog::{CancelBacklog, ListCancelBacklog};
pub use blocked::{Limited, ListBlocked, ListLimited, ListedBlock};
pub use budget::{
    BudgetFilter, BudgetStatus, GetBudgetStatus, LedgerRead, ListBudgets, ReadLedger,
};
pub use bulk::{GetBulk, ListBulks};
pub use explain::{Action, Around, Cause, Explained, Explanation, LimitFound, Upstream, explain};
pub use flow::{
    DescribeEdge, DescribeFlow, EdgeSnapshot, Eligibility, EvaluateEligibility, FlowCancellation,
    FlowEdges, FlowFilter, FlowMembers, FlowSnapshot, ListFlowEdges, ListFlowEvents,
    ListFlowMembers, ListFlows, MemberSnapshot,
};
pub use key::{GetKey, ListKeys};
pub use lane::{DescribeLane, LaneFound, LaneSnapshot, ListLanes};
pub use namespace::{DescribeNamespace, ListNamespaces, NamespaceSnapshot};
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
pub use route::{
    ListFleets, ListOffers, ListQueued, ListRoutes, ListUnrouted, Nearest, Offer, Unrouted,
};
pub use search::{Filter, Search, SearchPosition};
pub use standing::{ReadLaneStanding, ReadStanding, StandingFound};
pub use stream::{
    ReadStream, ReadSummary, SUPERSEDED, ShelfFound, StreamClosed, StreamCursor, StreamFound,
    StreamPage, StreamRange, SummaryRead, Tail, Visibility, attempt_not_found,
};
pub use subscription::{EventFilter, Follow, Followed, From, Subscription, Topic};
pub use waiting::{ListPendingWaitpoints, ListSuspended, ListedSuspension, WaitingFilter};
pub use walk::{Listed, Walk};
pub use worker::{
    DescribeWorker, LeasePosition, LeaseWalk, LeasesOf, ListExpiredLeases, ListWorkers,
    ListedLease, WorkerSnapshot,
};
