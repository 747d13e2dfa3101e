//! Nothing panics on input, a refusal changes nothing, and every refusal has a code of the table.

use std::time::Duration;

use ff_core::backend::{Backend, BackendExt};
use ff_core::content::Content;
use ff_core::error::{Class, Code};
use ff_core::id::{
    AttemptId, Authority, BudgetId, ExecutionId, Kind, LaneId, LeaseFence, LeaseId, QuotaPolicyId,
    WorkerId, WorkerInstanceId,
};
use ff_core::limits;
use ff_core::machine::Settings;
use ff_core::operation::{
    AppendFrames, Cancel, ChangePriority, CheckAdmission, Claim, ClaimExecution, Command, Complete,
    CreateBudget, CreateQuotaPolicy, Delay, DelayUntil, Fail, Hold, IssueClaimGrant,
    IssueGrantAndClaim, LaneOrder, LaneShare, NewFrame, ReclaimExecution, ReleaseAdmission,
    ReleaseBudget, Renew, Revoke, Submit, Task, Tick, UpdateBudget, UpdateProgress,
    UpdateQuotaPolicy,
};
use ff_core::partition::PartitionConfig;
use ff_core::policy::{Backoff, BackoffCurve, Policy};
use ff_core::read::{
    Filter, ListPendingWaitpoints, ListSuspended, Query, ReadStream, ReadSummary, Search,
    StreamCursor, Tail, Visibility, WaitingFilter,
};
use ff_core::state::{BudgetScope, CancelSource, FrameMode, QuotaSpec, SlotId};
use ff_core::time::TimestampMs;
use ff_test::grants::{claim_granted, grant_and_claim, issue_grant, reclaim};
use ff_test::limits::{budget, check, limits_of, quota, spend, usage};
use ff_test::oracle::Oracle;
use ff_test::registered::registration_of;
use ff_test::stages::BEGINNING;
use proptest::prelude::*;
use uuid::Uuid;

/// Numbers at the edges of every range.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..5_000_000_u64, any::<u64>()]
}

fn instant() -> impl Strategy<Value = TimestampMs> {
    let near = BEGINNING.0;
    prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(-1), near - 10..near + 10, any::<i64>()]
        .prop_map(TimestampMs)
}

fn long_text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "\\PC{0,20}", Just("x".repeat(5000))]
}

fn policy() -> impl Strategy<Value = Policy> {
    (number(), number(), number(), any::<u32>(), any::<bool>()).prop_map(
        |(first, second, third, count, jitter)| {
            let mut policy = Policy::default();
            policy.retry.max_retries = count;
            policy.retry.backoff = Backoff {
                curve: BackoffCurve::Exponential {
                    initial_delay_ms: first,
                    max_delay_ms: second,
                    multiplier_thousandths: count,
                },
                jitter,
            };
            policy.timeout.attempt_timeout_ms = Some(third);
            policy.timeout.execution_deadline_ms = Some(second);
            policy.retention.success_ms = Some(first);
            policy.stream.retention_maxlen = count;
            policy.stream.retention_ttl_ms = Some(second);
            policy
        },
    )
}

/// The first execution, which exists, or another.
fn target() -> impl Strategy<Value = ExecutionId> {
    prop_oneof![Just(1_u128), any::<u128>()]
        .prop_flat_map(|n| (0..4096_u16).prop_map(move |p| (n, p)))
        .prop_map(|(n, partition)| {
            ExecutionId::new(if n == 1 { 0 } else { partition }, Uuid::from_u128(n))
        })
}

fn fence() -> impl Strategy<Value = LeaseFence> {
    (any::<u128>(), any::<u64>()).prop_map(|(n, lease_epoch)| LeaseFence {
        lease_id: LeaseId::new(Uuid::from_u128(n)),
        lease_epoch,
        attempt_id: AttemptId::new(Uuid::from_u128(n)),
    })
}

fn authority() -> impl Strategy<Value = Authority> {
    prop_oneof![fence().prop_map(Authority::Fence), Just(Authority::Override)]
}

/// Frames of any form, mostly with the fence of the one execution that runs.
fn frames() -> impl Strategy<Value = AppendFrames> {
    let (id, live) = running();
    let shown = prop_oneof![
        4 => Just((id, live)),
        1 => (target(), fence()),
    ];
    let body = prop_oneof![
        any::<Vec<u8>>(),
        "[\\[\\]{}:,\"a0-9.n]{0,20}".prop_map(String::into_bytes),
        (65_535_usize..65_538).prop_map(|size| vec![b'1'; size]),
    ];
    let mode = prop::option::of(prop::sample::select(FrameMode::ALL.to_vec()));
    let frame_type = prop_oneof![long_text(), Just("stdout".to_owned())];
    let frame = (frame_type, body, prop::option::of(long_text()), mode).prop_map(
        |(frame_type, body, correlation_id, mode)| NewFrame {
            correlation_id,
            mode,
            ..NewFrame::new(frame_type, Content::new(body))
        },
    );
    (shown, prop::collection::vec(frame, 0..4))
        .prop_map(|((execution_id, fence), frames)| AppendFrames { execution_id, fence, frames })
}

/// Places that a caller may make, with or without a text form.
fn place() -> impl Strategy<Value = StreamCursor> {
    let ms = || prop_oneof![instant().prop_map(|at| at.0), Just(253_402_300_799_999)];
    prop_oneof![
        Just(StreamCursor::Start),
        Just(StreamCursor::End),
        ms().prop_map(StreamCursor::At),
        (ms(), number()).prop_map(|(ms, seq)| StreamCursor::Id { ms, seq }),
    ]
}

fn submit() -> impl Strategy<Value = Submit> {
    let times = (prop::option::of(instant()), prop::option::of(instant()));
    let size = prop_oneof![Just(0_usize), Just(1 << 20), Just((1 << 20) + 1)];
    (target(), any::<i64>(), policy(), times, size, long_text()).prop_map(
        |(id, priority, policy, (delay_until, execution_deadline_at), size, creator_identity)| {
            Submit {
                priority,
                policy: policy.into(),
                delay_until,
                execution_deadline_at,
                payload: Content::new(vec![0; size]),
                creator_identity,
                ..Submit::new(id, lane(), Kind::new("kind").expect("a kind"))
            }
        },
    )
}

fn lane() -> LaneId {
    LaneId::new("lane").expect("a lane")
}

fn command() -> impl Strategy<Value = Command> {
    let text = long_text;
    let until = prop_oneof![instant().prop_map(DelayUntil::At), number().prop_map(DelayUntil::For)];
    prop_oneof![
        submit().prop_map(Command::from),
        (target(), fence(), prop::option::of(number()))
            .prop_map(|(execution_id, fence, ttl_ms)| Renew { execution_id, fence, ttl_ms }.into()),
        (target(), fence(), any::<u8>(), text()).prop_map(|(execution_id, fence, pct, message)| {
            UpdateProgress { execution_id, fence, pct, message }.into()
        }),
        (target(), authority()).prop_map(|(execution_id, authority)| {
            Complete { execution_id, authority, result: None, next: None }.into()
        }),
        (target(), authority(), text(), text(), prop::option::of(number())).prop_map(
            |(execution_id, authority, reason, category, retry_after_ms)| {
                let class = None;
                Fail { execution_id, authority, reason, category, class, retry_after_ms }.into()
            }
        ),
        (target(), authority(), until).prop_map(|(execution_id, authority, until)| {
            Delay { execution_id, authority, until }.into()
        }),
        (target(), text(), text(), prop::option::of(fence())).prop_map(
            |(execution_id, reason, source, fence)| {
                let source = CancelSource::Custom(source);
                Cancel { execution_id, reason, source, fence }.into()
            }
        ),
        (target(), text()).prop_map(|(execution_id, reason)| {
            Revoke { execution_id, reason, expected_lease_id: None }.into()
        }),
        (target(), text()).prop_map(|(execution_id, detail)| Hold { execution_id, detail }.into()),
        (target(), any::<i64>()).prop_map(|(execution_id, priority)| ChangePriority {
            execution_id,
            priority
        }
        .into()),
        (target(), number()).prop_map(|(id, grant_ttl_ms)| IssueClaimGrant {
            grant_ttl_ms,
            ..issue_grant(id)
        }
        .into()),
        (target(), number()).prop_map(|(id, lease_ttl_ms)| ClaimExecution {
            lease_ttl_ms,
            ..claim_granted(id)
        }
        .into()),
        (target(), number()).prop_map(|(id, lease_ttl_ms)| IssueGrantAndClaim {
            lease_ttl_ms,
            ..grant_and_claim(id)
        }
        .into()),
        (target(), number(), prop::option::of(any::<u32>())).prop_map(
            |(id, lease_ttl_ms, max_reclaim_count)| {
                ReclaimExecution { lease_ttl_ms, max_reclaim_count, ..reclaim(id) }.into()
            }
        ),
        frames().prop_map(Command::from),
        any::<u32>().prop_map(|most| Tick { home: None, most }.into()),
    ]
}

/// Budgets and quota policies with numbers of any size, on the same few ids.
fn limits_command() -> impl Strategy<Value = Command> {
    let budget_id = || (1..3_u128).prop_map(|n| BudgetId::new(Uuid::from_u128(n)));
    let policy_id = || (1..3_u128).prop_map(|n| QuotaPolicyId::new(Uuid::from_u128(n)));
    let number = || prop_oneof![number(), Just(limits::AMOUNT_MAX), Just(limits::AMOUNT_MAX - 1)];
    let count = || prop_oneof![Just(0), 1..5_u32, any::<u32>()];
    let spec = || {
        (number(), count(), count(), number()).prop_map(
            |(window_seconds, max_requests_per_window, max_concurrent, jitter_ms)| QuotaSpec {
                window_seconds,
                max_requests_per_window,
                max_concurrent,
                jitter_ms,
            },
        )
    };
    let slot = || {
        (target(), prop_oneof![Just(1), number()])
            .prop_map(|(execution_id, lease_epoch)| SlotId { execution_id, lease_epoch })
    };
    prop_oneof![
        (budget_id(), number(), number(), number(), long_text()).prop_map(
            |(budget_id, hard, soft, reset_interval_ms, scope)| CreateBudget {
                budget_id,
                scope: BudgetScope::Custom(scope),
                reset_interval_ms,
                ..budget(&[("tokens", hard, soft)])
            }
            .into()
        ),
        (budget_id(), number(), number()).prop_map(|(id, hard, ms)| UpdateBudget {
            dimensions: limits_of(&[("tokens", hard, 0)]),
            reset_interval_ms: Some(ms),
            ..UpdateBudget::new(id)
        }
        .into()),
        (budget_id(), number()).prop_map(|(id, delta)| usage(id, &[("tokens", delta)]).into()),
        (budget_id(), target(), number()).prop_map(|(id, of, delta)| spend(
            id,
            of,
            &[("tokens", delta)]
        )
        .into()),
        (budget_id(), target()).prop_map(|(budget_id, execution_id)| ReleaseBudget {
            budget_id,
            execution_id
        }
        .into()),
        (policy_id(), spec()).prop_map(|(quota_policy_id, spec)| CreateQuotaPolicy {
            quota_policy_id,
            ..quota(spec)
        }
        .into()),
        (policy_id(), spec()).prop_map(|(id, spec)| UpdateQuotaPolicy::new(id, spec).into()),
        (policy_id(), slot(), any::<i64>()).prop_map(|(id, slot, score)| CheckAdmission {
            score,
            ..check(id, slot)
        }
        .into()),
        (policy_id(), slot()).prop_map(|(id, slot)| ReleaseAdmission::of_lease(id, slot).into()),
        Just(Tick { home: None, most: 100 }.into()),
    ]
}

fn claim(max: u32, lease_ttl_ms: u64, weight: u32, credit: i64, lanes: usize) -> Claim {
    let share =
        |n| LaneShare { lane: LaneId::new(format!("lane{n}")).expect("a lane"), weight, credit };
    Claim {
        namespace: Default::default(),
        worker_id: WorkerId::new("w").expect("a worker"),
        worker_instance_id: WorkerInstanceId::new("w-1").expect("an instance"),
        lanes: (0..lanes).map(share).collect(),
        order: LaneOrder::Weighted,
        capabilities: Default::default(),
        max,
        lease_ttl_ms,
        seed: Uuid::from_u128(u128::MAX),
        sets_aside: false,
    }
}

/// The execution that runs on every oracle, and its fence.
fn running() -> (ExecutionId, LeaseFence) {
    let (_, task) = oracle_with_task();
    (task.execution_id, task.fence())
}

fn oracle() -> Oracle {
    oracle_with_task().0
}

/// An oracle with one running execution.
fn oracle_with_task() -> (Oracle, Task) {
    let oracle = Oracle::new(Settings::new("oracle", PartitionConfig::default()), BEGINNING);
    let id = ExecutionId::new(0, Uuid::from_u128(1));
    let submit =
        Submit::new(id, LaneId::new("lane0").expect("a lane"), Kind::new("kind").expect("a kind"));
    oracle.apply_now(&submit.into()).expect("a submit");
    let registration = registration_of(&claim(1, 30_000, 1, 0, 1));
    oracle.apply_now(&registration.into()).expect("a registration");
    let task = oracle.claim_now(&claim(1, 30_000, 1, 0, 1)).expect("a claim").tasks.remove(0);
    (oracle, task)
}

fn everything(oracle: &Oracle) -> String {
    oracle.look(|state, _| format!("{state:?}"))
}

/// Refusals that follow from input alone must change nothing at all.
fn acceptable(code: Code) -> bool {
    code.class() != Class::Bug
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn commands_are_carried_out_or_refused(commands in prop::collection::vec(command(), 1..6)) {
        let oracle = oracle();
        for command in commands {
            let before = everything(&oracle);
            if let Err(refusal) = oracle.apply_now(&command) {
                prop_assert!(acceptable(refusal.code), "{refusal}");
                prop_assert_eq!(before, everything(&oracle), "{} changed something", refusal);
            }
        }
    }

    #[test]
    fn limits_are_kept_or_refused(
        commands in prop::collection::vec((limits_command(), 0..30_000_i64), 1..30),
    ) {
        let oracle = oracle();
        for (command, ms) in commands {
            let before = everything(&oracle);
            if let Err(refusal) = oracle.apply_now(&command) {
                prop_assert!(acceptable(refusal.code), "{refusal}");
                let is_input = matches!(
                    refusal.code, Code::InvalidBudgetScope | Code::InvalidQuotaSpec
                );
                prop_assert!(!is_input || before == everything(&oracle), "{} changed it", refusal);
            }
            oracle.advance(ms);
        }
    }

    #[test]
    fn claims_are_carried_out_or_refused(
        max in any::<u32>(), ttl in number(), weight in any::<u32>(), credit in any::<i64>(),
        lanes in 0_usize..70,
    ) {
        let oracle = oracle();
        let before = everything(&oracle);
        if let Err(refusal) = oracle.claim_now(&claim(max, ttl, weight, credit, lanes)) {
            prop_assert_eq!(refusal.code, Code::InvalidInput);
            prop_assert_eq!(before, everything(&oracle));
        }
    }

    #[test]
    fn searches_are_answered_or_refused(
        limit in any::<u32>(), cursor in prop::option::of("\\PC{0,50}"), after in instant(),
        older_than_ms in prop::option::of(number()),
    ) {
        let created = Filter { created_after: Some(after), ..Filter::default() };
        let filter = WaitingFilter { older_than_ms, ..WaitingFilter::default() };
        let search = Search { filter: created, cursor: cursor.clone(), limit };
        let inbox = ListPendingWaitpoints { filter: filter.clone(), cursor: cursor.clone(), limit };
        let suspended = ListSuspended { filter, cursor: cursor.clone(), limit };
        for query in [Query::Search(search), inbox.into(), suspended.into()] {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            let answer = runtime.expect("a runtime").block_on(async {
                let oracle = oracle();
                let answer = tokio::time::timeout(Duration::from_secs(20), oracle.query(query));
                answer.await.expect("in time")
            });
            match answer {
                Ok(_) => prop_assert!((1..=500).contains(&limit) && cursor.is_none()),
                Err(error) => prop_assert!(
                    matches!(error.code(), Code::InvalidInput | Code::InvalidCursor), "{error}"
                ),
            }
        }
    }

    #[test]
    fn frames_are_appended_or_refused(appends in prop::collection::vec(frames(), 1..4)) {
        let oracle = oracle();
        for append in appends {
            let before = everything(&oracle);
            if let Err(refusal) = oracle.apply_now(&append.into()) {
                prop_assert!(acceptable(refusal.code), "{refusal}");
                prop_assert_eq!(before, everything(&oracle), "{} changed something", refusal);
            }
        }
    }

    #[test]
    fn output_is_read_or_refused(
        id in prop_oneof![Just(running().0), target()], attempt_index in prop_oneof![Just(0), any::<u32>()],
        from in place(), to in place(), limit in prop_oneof![Just(10), any::<u32>()],
        append in frames(), ms in prop_oneof![Just(0), number()],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let (execution_id, visibility) = (id, Visibility::All);
        let read = ReadStream { execution_id, attempt_index, from, to, limit, visibility };
        let tail = Tail { execution_id, attempt_index, after: from, limit, visibility };
        let summary = ReadSummary { execution_id, attempt_index };
        let codes = runtime.expect("a runtime").block_on(async {
            let oracle = oracle();
            let _ = oracle.apply_now(&append.into());
            // Nothing comes: a tail that is not refused looks once.
            let wait = Duration::from_millis(if ms <= 30_000 { 0 } else { ms });
            [
                oracle.ask(read).await.err(),
                oracle.tail(tail, wait).await.err(),
                oracle.ask(summary).await.err(),
            ]
        });
        for error in codes.into_iter().flatten() {
            prop_assert!(acceptable(error.code()), "{error}");
        }
    }
}
