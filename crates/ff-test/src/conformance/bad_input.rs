//! Input outside its limits is refused before anything is read or written.

use std::sync::Arc;
use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::limits;
use ff_core::operation::{Claim, LaneShare, Submit};
use ff_core::policy::{
    Backoff, BackoffCurve, Policy, Retention, RetryPolicy, StreamPolicy, TimeoutPolicy,
};
use ff_core::state::FrameMode;
use ff_core::time::TimestampMs;

use crate::world::{World, code, lane};

fn shares(count: usize) -> Vec<LaneShare> {
    (0..count).map(|n| LaneShare::new(lane(&format!("lane{n}")))).collect()
}

pub async fn a_malformed_claim_is_refused_and_takes_nothing(world: &World) {
    let id = world.submit(world.work()).await;
    let good = || world.claim_request(1);
    let share = LaneShare::new(lane("work"));
    let one = |share: LaneShare| vec![share];
    let bad = [
        Claim { max: 0, ..good() },
        Claim { max: limits::CLAIM_TASKS + 1, ..good() },
        Claim { lease_ttl_ms: 0, ..good() },
        Claim { lease_ttl_ms: limits::LEASE_TTL_MIN_MS - 1, ..good() },
        Claim { lease_ttl_ms: limits::LEASE_TTL_MAX_MS + 1, ..good() },
        Claim { lanes: Vec::new(), ..good() },
        Claim { lanes: shares(limits::CLAIM_LANES + 1), ..good() },
        Claim { lanes: vec![share.clone(), share.clone()], ..good() },
        Claim { lanes: one(LaneShare { weight: 0, ..share.clone() }), ..good() },
        Claim {
            lanes: one(LaneShare { weight: limits::LANE_WEIGHT + 1, ..share.clone() }),
            ..good()
        },
        Claim { lanes: one(LaneShare { credit: i64::MAX, ..share.clone() }), ..good() },
        Claim { lanes: one(LaneShare { credit: i64::MIN, ..share }), ..good() },
    ];
    for claim in bad {
        let shown = format!("{claim:?}");
        for wait in [Duration::ZERO, Duration::from_secs(1)] {
            let refused = code(world.backend.claim(claim.clone(), wait).await);
            assert_eq!(refused, Code::InvalidInput, "{shown:.300}");
        }
    }
    assert_eq!(world.claim_ids(1).await, [id]);
}

pub async fn a_claim_at_its_limits_is_served(world: &World) {
    let mut lanes = shares(limits::CLAIM_LANES - 1);
    lanes.push(LaneShare { weight: limits::LANE_WEIGHT, ..LaneShare::new(lane("work")) });
    for lease_ttl_ms in [limits::LEASE_TTL_MIN_MS, limits::LEASE_TTL_MAX_MS] {
        let id = world.submit(world.work()).await;
        let claim = Claim {
            lanes: lanes.clone(),
            lease_ttl_ms,
            ..world.claim_request(limits::CLAIM_TASKS)
        };
        let [task] = world.claim_as(claim).await.try_into().unwrap();
        assert_eq!((task.execution_id, task.ttl_ms), (id, lease_ttl_ms));
    }
}

pub async fn a_malformed_submit_is_refused(world: &World) {
    let late = TimestampMs(limits::TIME_MAX_MS + 1);
    let text = |bytes: usize| "x".repeat(bytes);
    let bad = [
        Submit { creator_identity: text(limits::CREATOR_BYTES + 1), ..world.work() },
        Submit { trace_context: Some(text(limits::TRACE_CONTEXT_BYTES + 1)), ..world.work() },
        Submit { delay_until: Some(TimestampMs(-1)), ..world.work() },
        Submit { delay_until: Some(late), ..world.work() },
        Submit { execution_deadline_at: Some(TimestampMs(-1)), ..world.work() },
        Submit { execution_deadline_at: Some(late), ..world.work() },
        Submit { execution_deadline_at: Some(TimestampMs(i64::MIN)), ..world.work() },
    ];
    for submit in bad {
        world.refuses(submit, Code::InvalidInput).await;
    }
}

pub async fn a_submit_at_its_limits_is_accepted(world: &World) {
    let last = Some(TimestampMs(limits::TIME_MAX_MS));
    let submit = Submit {
        creator_identity: "x".repeat(limits::CREATOR_BYTES),
        trace_context: Some("x".repeat(limits::TRACE_CONTEXT_BYTES)),
        delay_until: last,
        execution_deadline_at: last,
        ..world.work()
    };
    let id = world.submit(submit).await;
    let record = world.describe(id).await;
    assert_eq!((record.delay_until, record.deadline_at), (last, last));
}

fn policies_beyond_their_limits() -> Vec<Policy> {
    let over = limits::COUNT_MAX + 1;
    let long = limits::DURATION_MAX_MS + 1;
    let default = Policy::default;
    let retry = |retry: RetryPolicy| Policy { retry, ..default() };
    let timeout = |timeout: TimeoutPolicy| Policy { timeout, ..default() };
    let curve =
        |curve| retry(RetryPolicy { backoff: Backoff { curve, jitter: false }, ..default().retry });
    let exponential = |initial_delay_ms, max_delay_ms, multiplier_thousandths| {
        curve(BackoffCurve::Exponential { initial_delay_ms, max_delay_ms, multiplier_thousandths })
    };
    let category = "x".repeat(limits::CATEGORY_BYTES + 1);
    let retention = |retention| Policy { retention, ..default() };
    let stream = |stream| Policy { stream, ..default() };
    vec![
        retry(RetryPolicy { max_retries: over, ..default().retry }),
        retry(RetryPolicy { retryable_categories: vec![category], ..default().retry }),
        curve(BackoffCurve::Fixed { delay_ms: long }),
        exponential(long, 1, 1_000),
        exponential(1, long, 1_000),
        exponential(1, 1, 999),
        exponential(1, 1, 1_000_001),
        timeout(TimeoutPolicy { max_reclaim_count: over, ..default().timeout }),
        timeout(TimeoutPolicy { attempt_timeout_ms: Some(0), ..default().timeout }),
        timeout(TimeoutPolicy { attempt_timeout_ms: Some(long), ..default().timeout }),
        timeout(TimeoutPolicy { execution_deadline_ms: Some(long), ..default().timeout }),
        Policy { max_replay_count: over, ..default() },
        Policy { dedup_window_ms: limits::DEDUP_WINDOW_MIN_MS - 1, ..default() },
        Policy { dedup_window_ms: limits::DEDUP_WINDOW_MAX_MS + 1, ..default() },
        stream(StreamPolicy { retention_maxlen: 0, ..default().stream }),
        stream(StreamPolicy {
            retention_maxlen: limits::STREAM_FRAMES_MAX + 1,
            ..default().stream
        }),
        stream(StreamPolicy { retention_ttl_ms: Some(long), ..default().stream }),
        retention(Retention { success_ms: Some(long), ..Retention::default() }),
        retention(Retention { failed_ms: Some(long), ..Retention::default() }),
        retention(Retention { cancelled_ms: Some(long), ..Retention::default() }),
        retention(Retention { expired_ms: Some(u64::MAX), ..Retention::default() }),
    ]
}

pub async fn a_policy_beyond_its_limits_is_refused_at_submit(world: &World) {
    for policy in policies_beyond_their_limits() {
        let submit = Submit { policy: Arc::new(policy), ..world.work() };
        world.refuses(submit, Code::InvalidInput).await;
    }
}

pub async fn a_malformed_policy_is_refused_before_anything_else(_world: &World) {
    let code = |json: &str| Policy::from_json(json).unwrap_err().code;
    for json in [
        "",
        "null",
        "[]",
        "{",
        r#"{"unknown":1}"#,
        r#"{"retry_policy":{"max_retires":1}}"#,
        r#"{"retry_policy":{"max_retries":"3"}}"#,
        r#"{"retry_policy":{"backoff":{"type":"linear"}}}"#,
        r#"{"retry_policy":{"backoff":{"type":"fixed"}}}"#,
        r#"{"stream_policy":{"durability_mode":"eternal"}}"#,
        r#"{"stream_policy":{"maxlen":1}}"#,
        r#"{"max_replay_count":1} {}"#,
    ] {
        assert_eq!(code(json), Code::InvalidPolicyJson, "{json}");
    }
    for json in [
        r#"{"max_replay_count":-1}"#,
        r#"{"max_replay_count":1.5}"#,
        r#"{"max_replay_count":1000001}"#,
        r#"{"retry_policy":{"backoff":{"type":"exponential","multiplier":0.9}}}"#,
        r#"{"retry_policy":{"backoff":{"type":"exponential","multiplier":1001}}}"#,
        r#"{"dedup_window_ms":999}"#,
        r#"{"stream_policy":{"retention_maxlen":0}}"#,
    ] {
        assert_eq!(code(json), Code::InvalidInput, "{json}");
    }
}

pub async fn a_policy_at_its_limits_is_accepted(world: &World) {
    let most = limits::COUNT_MAX;
    let longest = Some(limits::DURATION_MAX_MS);
    let policy = Policy {
        retry: RetryPolicy {
            max_retries: most,
            backoff: Backoff {
                curve: BackoffCurve::Exponential {
                    initial_delay_ms: limits::DURATION_MAX_MS,
                    max_delay_ms: limits::DURATION_MAX_MS,
                    multiplier_thousandths: 1_000_000,
                },
                jitter: true,
            },
            retryable_categories: vec!["x".repeat(limits::CATEGORY_BYTES)],
        },
        timeout: TimeoutPolicy {
            attempt_timeout_ms: longest,
            execution_deadline_ms: longest,
            max_reclaim_count: most,
        },
        max_replay_count: most,
        dedup_window_ms: limits::DEDUP_WINDOW_MAX_MS,
        stream: StreamPolicy {
            durability_mode: FrameMode::BestEffort,
            retention_maxlen: limits::STREAM_FRAMES_MAX,
            retention_ttl_ms: longest,
        },
        ..Policy::default()
    };
    let submit = Submit { policy: Arc::new(policy), ..world.work() };
    let id = world.submit(submit.clone()).await;
    assert_eq!(world.describe(id).await.policy, submit.policy);
}
