//! Limits and defaults. What exceeds a limit is refused with the limit in the answer, or carried on
//! in the next step; nothing is cut silently.

/// Largest payload and largest result, decoded.
pub const PAYLOAD_BYTES: usize = 1 << 20;
/// Most submits in one batch.
pub const BATCH_ITEMS: usize = 1000;
/// Most tasks of one claim.
pub const CLAIM_TASKS: u32 = 1000;
/// Most bytes of payload that one claim's reply carries; a claim stops early rather than exceed it.
pub const CLAIM_REPLY_BYTES: usize = 16 << 20;
/// Most lanes of one claim.
pub const CLAIM_LANES: usize = 64;
/// Largest weight of a lane in a claim.
pub const LANE_WEIGHT: u32 = 1000;
/// Longest time that a claim waits.
pub const CLAIM_WAIT_MS: u64 = 60_000;

pub const NAMESPACE_BYTES: usize = 63;
pub const LANE_BYTES: usize = 64;
pub const KIND_BYTES: usize = 128;
/// Members and edges of one submitted graph, and of a flow in all.
pub const FLOW_SUBMIT_MEMBERS: usize = 2000;
pub const FLOW_SUBMIT_EDGES: usize = 10_000;
/// Payloads of one submitted graph.
pub const FLOW_SUBMIT_BYTES: usize = 16 << 20;
pub const FLOW_MEMBERS: u32 = 100_000;
pub const FLOW_EDGES: u32 = 500_000;
/// Edges that one step resolves, or members that it cancels, adds or removes; the rest is carried on.
pub const FLOW_STEP: u32 = 64;
/// Failures of a flow that the reply to a replay is read from; with more, the rest follows unnamed.
pub const FLOW_REPLAY_NAMED: u32 = 1000;
/// Bytes of results that a task's inputs carry.
pub const INPUT_BYTES: usize = 4 << 20;
pub const EDGE_NAME_BYTES: usize = 256;
pub const MEMBER_NAME_BYTES: usize = 256;
pub const WORKER_BYTES: usize = 256;
pub const IDEMPOTENCY_KEY_BYTES: usize = 256;
pub const CONTENT_TYPE_BYTES: usize = 256;
pub const CREATOR_BYTES: usize = 256;
pub const TRACE_CONTEXT_BYTES: usize = 1024;
/// Reasons, details, comments.
pub const REASON_BYTES: usize = 4096;
/// Failure categories, sources.
pub const CATEGORY_BYTES: usize = 256;
pub const PROGRESS_MESSAGE_BYTES: usize = 1024;

pub const WAITPOINT_KEY_BYTES: usize = 256;
/// Waitpoints of one execution that are not closed, and most of one suspension.
pub const WAITPOINTS: usize = 64;
/// Closed waitpoints that an execution remembers: later signals learn that theirs is closed.
pub const WAITPOINTS_CLOSED: usize = 128;
/// Suspends whose repetition gets the first reply.
pub const SUSPENDS_REMEMBERED: usize = 16;
pub const SUSPEND_DEDUP_EXTRA_MS: u64 = 60_000;
pub const SUSPEND_DEDUP_MAX_MS: u64 = 7 * 86_400_000;
/// How far in the past a timeout may lie when it is set.
pub const SUSPEND_TIMEOUT_PAST_MS: u64 = 600_000;
/// Nesting of a condition, names or waitpoints in one node, and nodes in all.
pub const CONDITION_DEPTH: usize = 4;
pub const CONDITION_WIDTH: usize = 64;
pub const CONDITION_NODES: usize = 256;
/// What a suspend leaves for whoever goes on.
pub const METADATA_BYTES: usize = 64 << 10;
pub const SIGNAL_NAME_BYTES: usize = 256;
pub const SIGNAL_PAYLOAD_BYTES: usize = 256 << 10;
/// Signals that one execution accepts, unless its policy says less or more.
pub const SIGNALS: u32 = 10_000;
pub const SIGNAL_DEDUP_MS: u64 = 86_400_000;
/// Depth of a summary document, and its size.
pub const SUMMARY_DEPTH: usize = 16;
pub const SUMMARY_BYTES: usize = 256 << 10;
/// Patches of a summary that stay readable.
pub const SUMMARY_PATCHES: u32 = 64;

pub const FRAME_TYPE_BYTES: usize = 64;
pub const FRAME_BYTES: usize = 65_536;
/// Frames of one append.
pub const FRAMES_APPENDED: usize = 100;
/// Durable frames that an attempt keeps: unless its policy says less or more, and at most.
pub const STREAM_FRAMES: u32 = 10_000;
pub const STREAM_FRAMES_MAX: u32 = 1_000_000;
/// How long a best-effort frame lasts: twice its time to live.
pub const BEST_EFFORT_MS: u64 = 2 * 30_000;
/// Best-effort frames that an attempt keeps, by its rate.
pub const BEST_EFFORT_FRAMES_MIN: u32 = 64;
pub const BEST_EFFORT_FRAMES_MAX: u32 = 16_384;
/// Frames, and about how many bytes of them, that one read answers.
pub const STREAM_READ_FRAMES: u32 = 10_000;
pub const STREAM_READ_BYTES: usize = 16 << 20;
/// Longest time that a tail waits.
pub const TAIL_BLOCK_MS: u64 = 30_000;

pub const TAGS: usize = 64;
pub const TAG_KEY_BYTES: usize = 128;
pub const TAG_VALUE_BYTES: usize = 1024;

/// Highest priority; higher input is clamped.
pub const PRIORITY_MAX: u16 = 9000;
/// What one level of priority is worth in a queue's score.
pub const PRIORITY_WEIGHT: i64 = 1_000_000_000_000;

pub const LEASE_TTL_MS: u64 = 30_000;
pub const LEASE_TTL_MIN_MS: u64 = 100;
pub const LEASE_TTL_MAX_MS: u64 = 3_600_000;
/// Shortest time after which a silent worker is dead.
pub const WORKER_TTL_MIN_MS: u64 = 1_000;
/// Why an operator calls a worker dead.
pub const WORKER_DEATH_BYTES: usize = 256;
/// How soon somebody else goes on when whoever took the leases of a lost worker away has stopped.
pub const WORKER_LOSS_RETRY_MS: u64 = 1_000;
/// Longest time that a heartbeat waits for news, and how long a cancellation is news.
pub const HEARTBEAT_WAIT_MS: u64 = 30_000;
pub const CANCELLATION_NEWS_MS: u64 = 60_000;
/// Cancellations that are kept for a worker instance, and bytes of their reasons; the newest stay.
pub const CANCELLATIONS_KEPT: usize = 1000;
pub const CANCELLATIONS_BYTES: usize = 64 << 10;
/// Longest time that a grant sets an execution aside.
pub const GRANT_TTL_MAX_MS: u64 = 60_000;

/// The last millisecond of the year 9999.
pub const TIME_MAX_MS: i64 = 253_402_300_799_999;
/// Ten years.
pub const DURATION_MAX_MS: u64 = 315_360_000_000;
/// Retries, reclaims and replays that a policy may allow.
pub const COUNT_MAX: u32 = 1_000_000;

pub const DEDUP_WINDOW_MS: u64 = 86_400_000;
pub const DEDUP_WINDOW_MIN_MS: u64 = 1_000;
pub const DEDUP_WINDOW_MAX_MS: u64 = 90 * 86_400_000;

/// How long a terminal execution is kept when neither policy nor configuration says so.
pub const RETENTION_MS: u64 = 86_400_000;
/// How long events are kept.
pub const EVENT_RETENTION_MS: u64 = 86_400_000;
/// How many bytes of events are kept for each partition.
pub const EVENT_RETENTION_BYTES: u64 = 4 << 20;

pub const CAPS_MAX_TOKENS: usize = 256;
pub const CAPS_MAX_BYTES: usize = 4096;

/// Items on a page of a list: default and most.
pub const PAGE: u32 = 50;
pub const PAGE_MAX: u32 = 500;
/// Records that one page of a search looks at before it stops short.
pub const SEARCH_LOOK_AHEAD: u32 = 10_000;
pub const CURSOR_BYTES: usize = 4096;

/// Entries that one tick handles on an SQL store before the next step continues.
pub const TICK_ENTRIES: u32 = 1000;
/// Leases of one partition that time takes away in a second, should the store's clock jump.
pub const LEASE_EXPIRIES_A_SECOND: u32 = 1000;
/// Progress events of one execution are at least this far apart.
pub const PROGRESS_EVENT_MS: u64 = 1_000;

/// Budgets that one execution, flow, lane or namespace stands under by itself.
pub const BUDGETS_ATTACHED: usize = 16;

/// Dimensions of one budget, and most of one report.
pub const BUDGET_DIMENSIONS: usize = 32;
pub const DIMENSION_BYTES: usize = 64;
pub const SCOPE_ID_BYTES: usize = 256;
/// Limits, deltas and totals of budgets: what every language counts exactly.
pub const AMOUNT_MAX: u64 = (1 << 53) - 1;
pub const USAGE_DEDUP_MS: u64 = 86_400_000;

pub const QUOTA_WINDOW_MAX_SECONDS: u64 = DURATION_MAX_MS / 1000;
pub const QUOTA_REQUESTS_MAX: u32 = 1_000_000;
pub const QUOTA_CONCURRENT_MAX: u32 = 1_000_000;
pub const QUOTA_JITTER_MAX_MS: u64 = 86_400_000;
/// How long a slot waits to be confirmed before its execution is asked.
pub const SLOT_PENDING_MS: u64 = 5_000;
/// When to try again for a slot, should no freed one wake the execution before.
pub const SLOT_RETRY_MS: u64 = 5_000;
/// Errands that wait for a caller in one process; what is beyond is told by ticks.
pub const ERRANDS_NOTED: usize = 10_000;
/// How soon what a step means for another home is told again.
pub const ERRAND_RETRY_MS: u64 = 1_000;
/// How soon the work that a budget leaves for others, which may take a while, is told again.
pub const BUDGET_ERRAND_RETRY_MS: u64 = 3_000;
/// Letters and digits of a key's id.
pub const KEY_ID_BYTES_LEAST: usize = 8;
pub const KEY_ID_BYTES: usize = 32;
/// Namespaces, or lanes, that a key is restricted to.
pub const KEY_NAMES: usize = 64;
/// Names of one kind that the filter of a bulk operation holds.
pub const FILTER_NAMES: usize = 64;
/// Executions that one step of a bulk operation acts on.
pub const BULK_STEP: u32 = 500;
/// How long a limit that is used up keeps an execution back before it is looked whether it still
/// applies, or lets this one in.
pub const LIMIT_PATIENCE_MS: u64 = 300_000;
/// Executions that are let go in one batch when a limit lets them in.
pub const UNBLOCK_BATCH: u32 = 100;
/// How long no worker can run what waits on a route before it is blocked.
pub const ROUTE_PATIENCE_MS: u64 = 5_000;
/// How often an engine looks meanwhile whether somebody can.
pub const ROUTE_LOOK_MS: u64 = 500;
/// Executions that are blocked for want of a worker, or let go, in one batch.
pub const ROUTE_BATCH: u32 = 100;
/// Records or entries of one page of a check.
pub const RECONCILE_BATCH: u32 = 100;
/// Members that are counted for a check of their flow; larger flows are counted by an audit only.
pub const RECONCILE_MEMBERS: u32 = 1000;
/// Attempts of an execution whose usage a ledger tells apart, the newest.
pub const LEDGER_ATTEMPTS: usize = 32;
/// Pages of ledgers, 64 executions each, that one step compares with the usage of their budget.
pub const RECOUNT_PAGES: u64 = 8;
/// Executions whose usage one step attributes to nobody.
pub const DISOWN_BATCH: usize = 64;
/// Upstreams or holders that an explanation names.
pub const EXPLAIN_ITEMS: u32 = 16;
/// Workers that are looked at to explain where an execution stands.
pub const EXPLAIN_WORKERS: usize = 1_000;
/// How often slots that are held are looked at.
pub const QUOTA_PATROL_MS: u64 = 30_000;
/// Executions that wait in line for a slot; those beyond try again by time alone.
pub const QUOTA_WAITING: u32 = 100_000;
/// Executions that one change of a quota policy wakes.
pub const QUOTA_WAKES: u32 = 64;
/// After what time others are let in, should those who were let in not take what is free: no worker may
/// be able to run them, or another limit keeps them back.
pub const QUOTA_WAKE_MS: u64 = 100;
/// Executions that wait for their part of a quota policy's jitter, at the most.
pub const QUOTA_RESTING: u32 = 256;
/// Rows beside a document that one step of its timer looks at.
pub const TIMER_ROWS: usize = 64;

pub const KID_BYTES: usize = 64;
/// A secret that signs waitpoint tokens, in bytes.
pub const SECRET_BYTES_MIN: usize = 32;
pub const SECRET_BYTES_MAX: usize = 128;
/// Longest time that a rotation leaves the secret before it accepted.
pub const GRACE_MAX_MS: u64 = 1 << 53;
