//! What a suspend must look like.

use ff_core::error::Code;
use ff_core::id::{SignalName, WaitpointId};
use ff_core::limits;
use ff_core::operation::{Binding, Suspend, SuspendTimeout, Task};
use ff_core::state::{
    Condition, Count, CountKind, Matcher, ResumePolicy, SetMode, SuspensionReason,
};
use ff_core::time::TimestampMs;

use crate::waits::{count, fresh, key, set, suspend, suspend_on, use_pending, wildcard, within};
use crate::world::World;

/// A suspend that is refused as malformed, with this word.
async fn malformed(world: &World, suspend: Suspend, word: &str) {
    world.refuses_saying(suspend, Code::InvalidInput, word).await;
}

/// The suspend is accepted; a fresh task each time.
async fn accepted(world: &World, make: impl FnOnce(&Task) -> Suspend) {
    let task = world.start(world.work()).await;
    world.suspend(make(&task)).await;
}

/// The condition inside so many `AllOf`.
fn nested(depth: usize) -> Condition {
    (0..depth).fold(wildcard("a"), |inner, _| Condition::AllOf(vec![inner]))
}

fn many(n: usize) -> Vec<String> {
    (0..n).map(|n| format!("n{n}")).collect()
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

pub async fn what_is_bound_and_what_is_named_are_the_same(world: &World) {
    let task = world.start(world.work()).await;
    let on = |bindings, condition| suspend_on(&task, bindings, condition);
    malformed(world, on(vec![], wildcard("a")), "waitpoints_empty").await;
    malformed(world, on(vec![fresh("b")], wildcard("a")), "waitpoint_key_mismatch").await;
    let both = Condition::AllOf(vec![wildcard("a"), wildcard("b")]);
    malformed(world, on(vec![fresh("a")], both), "waitpoint_key_mismatch").await;
    let twice = vec![fresh("a"), fresh("a")];
    malformed(world, on(twice, wildcard("a")), "waitpoint_key_mismatch").await;
    let unheard = vec![fresh("a"), fresh("b")];
    malformed(world, on(unheard, wildcard("a")), "binding_not_in_condition").await;
    let counted = count(1, CountKind::DistinctSignals, &["a", "c"]);
    malformed(world, on(vec![fresh("a")], counted), "waitpoint_key_mismatch").await;
}

pub async fn a_pending_binding_is_held_against_the_condition_too(world: &World) {
    let task = world.start(world.work()).await;
    let old = world.pending(&task, "old").await;
    let on = |bindings, condition| suspend_on(&task, bindings, condition);
    let elsewhere = on(vec![use_pending(&old)], wildcard("a"));
    malformed(world, elsewhere, "waitpoint_key_mismatch").await;
    let unheard = on(vec![use_pending(&old), fresh("a")], wildcard("a"));
    malformed(world, unheard, "binding_not_in_condition").await;
    let twice = on(vec![use_pending(&old), use_pending(&old)], wildcard("old"));
    malformed(world, twice, "waitpoint_key_mismatch").await;
}

pub async fn conditions_that_could_never_be_are_refused(world: &World) {
    let task = world.start(world.work()).await;
    let on_a = |condition| suspend_on(&task, vec![fresh("a")], condition);
    let no_names = set("a", &[], SetMode::Any);
    malformed(world, on_a(no_names), "signal_set_empty").await;
    assert!(SignalName::new("").is_err(), "there is no empty name to match");
    malformed(world, on_a(Condition::AllOf(vec![])), "allof_empty_members").await;
    let inside = Condition::AllOf(vec![wildcard("a"), Condition::AllOf(vec![])]);
    malformed(world, on_a(inside), "allof_empty_members").await;
    malformed(world, on_a(set("a", &["x"], SetMode::Count(0))), "count_n_zero").await;
    let kinds =
        [CountKind::DistinctWaitpoints, CountKind::DistinctSignals, CountKind::DistinctSources];
    for kind in kinds {
        malformed(world, on_a(count(0, kind, &["a"])), "count_n_zero").await;
        malformed(world, on_a(count(1, kind, &[])), "count_waitpoints_empty").await;
    }
    let beyond = count(2, CountKind::DistinctWaitpoints, &["a"]);
    malformed(world, on_a(beyond), "count_exceeds_waitpoint_set").await;
    let repeated = count(2, CountKind::DistinctWaitpoints, &["a", "a"]);
    malformed(world, on_a(repeated), "count_exceeds_waitpoint_set").await;
    for kind in [CountKind::DistinctSignals, CountKind::DistinctSources] {
        accepted(world, |task| suspend(task, count(2, kind, &["a"]))).await;
    }
}

pub async fn conditions_nest_four_deep(world: &World) {
    accepted(world, |task| suspend(task, nested(4))).await;
    let task = world.start(world.work()).await;
    malformed(world, suspend(&task, nested(5)), "depth_exceeded").await;
    malformed(world, suspend(&task, nested(100)), "depth_exceeded").await;
}

pub async fn a_node_names_64_signals_or_waitpoints(world: &World) {
    let (most, over) = (many(limits::CONDITION_WIDTH), many(limits::CONDITION_WIDTH + 1));
    let task = world.start(world.work()).await;
    for mode in [SetMode::Any, SetMode::All, SetMode::Count(2)] {
        accepted(world, |task| suspend(task, set("a", &texts(&most), mode))).await;
        malformed(world, suspend(&task, set("a", &texts(&over), mode)), "64").await;
    }
    let members = |n| Condition::AllOf(vec![wildcard("a"); n]);
    accepted(world, |task| suspend(task, members(limits::CONDITION_WIDTH))).await;
    malformed(world, suspend(&task, members(limits::CONDITION_WIDTH + 1)), "64").await;
}

pub async fn a_suspension_has_64_waitpoints(world: &World) {
    let (most, over) = (many(limits::WAITPOINTS), many(limits::WAITPOINTS + 1));
    let kind = CountKind::DistinctWaitpoints;
    let task = world.start(world.work()).await;
    malformed(world, suspend(&task, count(65, kind, &texts(&over))), "64").await;
    let waitpoints = world.suspend(suspend(&task, count(64, kind, &texts(&most)))).await;
    let keys: Vec<_> = waitpoints.iter().map(|waitpoint| waitpoint.key.to_string()).collect();
    assert_eq!(keys, most, "in the order of the bindings");
    for waitpoint in &waitpoints {
        world.signal(&task, waitpoint, "go").await;
    }
    assert_eq!(world.claim_one().await.extras.resume_signals.len(), 64);
}

pub async fn metadata_has_64_kib(world: &World) {
    let task = world.start(world.work()).await;
    let with = |task: &Task, bytes: usize| Suspend {
        metadata: Some(vec![1; bytes].into()),
        ..suspend(task, wildcard("a"))
    };
    let over = with(&task, limits::METADATA_BYTES + 1);
    world.refuses(over, Code::PayloadTooLarge).await;
    let [door] = world.suspend(with(&task, limits::METADATA_BYTES)).await.try_into().unwrap();
    world.signal(&task, &door, "go").await;
    let metadata = world.claim_one().await.extras.metadata.unwrap();
    assert_eq!(metadata, vec![1; limits::METADATA_BYTES]);
}

pub async fn texts_and_numbers_have_their_ranges(world: &World) {
    let task = world.start(world.work()).await;
    let asked = || suspend(&task, wildcard("a"));
    let long = "x".repeat(limits::CATEGORY_BYTES + 1);
    let delay = |resume_delay_ms| ResumePolicy { resume_delay_ms, ..ResumePolicy::default() };
    let count = |n| {
        let (kind, name) = (CountKind::DistinctSignals, Matcher::Wildcard);
        Condition::Count(Count { n, kind, name, waitpoints: vec![key("a")] })
    };
    let token_ttl_ms = |ttl| Binding::Fresh {
        waitpoint_id: WaitpointId::mint(),
        key: key("a"),
        token_ttl_ms: Some(ttl),
    };
    for (bad, word) in [
        (Suspend { reason: SuspensionReason(long.clone()), ..asked() }, "reason_code"),
        (Suspend { requester: Some(long.clone()), ..asked() }, "requester"),
        (
            Suspend { resume_policy: delay(limits::DURATION_MAX_MS + 1), ..asked() },
            "resume_delay_ms",
        ),
        (Suspend { timeout: Some(SuspendTimeout::For(u64::MAX)), ..asked() }, "timeout_ms"),
        (Suspend { timeout: Some(SuspendTimeout::At(TimestampMs(-1))), ..asked() }, "timeout_at"),
        (Suspend { bindings: vec![token_ttl_ms(0)], ..asked() }, "token_ttl_ms"),
        (Suspend { bindings: vec![token_ttl_ms(u64::MAX)], ..asked() }, "token_ttl_ms"),
        (Suspend { condition: count(limits::SIGNALS + 1), ..asked() }, "n is "),
    ] {
        malformed(world, bad, word).await;
    }
    let edge = "x".repeat(limits::CATEGORY_BYTES);
    let reason = SuspensionReason(edge.clone());
    let resume_policy = delay(limits::DURATION_MAX_MS);
    world.suspend(Suspend { reason, requester: Some(edge), resume_policy, ..asked() }).await;
}

pub async fn a_timeout_lies_no_more_than_600_s_in_the_past(world: &World) {
    let now = world.now().await;
    let at = |task: &Task, ago: i64| Suspend {
        timeout: Some(SuspendTimeout::At(TimestampMs(now.0 - ago))),
        ..suspend(task, wildcard("a"))
    };
    let task = world.start(world.work()).await;
    malformed(world, at(&task, 600_001), "timeout_in_past").await;
    malformed(world, at(&task, now.0), "timeout_in_past").await;
    accepted(world, |task| at(task, 600_000)).await;
}

pub async fn what_only_time_ends_needs_a_time(world: &World) {
    let task = world.start(world.work()).await;
    let only = suspend(&task, Condition::TimeoutOnly);
    malformed(world, only, "timeout_only_without_deadline").await;
    let inside = Condition::AllOf(vec![wildcard("a"), Condition::TimeoutOnly]);
    malformed(world, suspend(&task, inside), "timeout_only_without_deadline").await;
    accepted(world, |task| within(5, Default::default(), suspend(task, Condition::TimeoutOnly)))
        .await;
    let policy = r#"{"suspension_policy":{"default_timeout_ms":5}}"#;
    let task = world.start(world.work_with(policy)).await;
    world.suspend(suspend(&task, Condition::TimeoutOnly)).await;
}

pub async fn conditions_without_signals_take_any_bindings(world: &World) {
    for deaf in [Condition::OperatorOnly, Condition::TimeoutOnly] {
        for bindings in [vec![], vec![fresh("a")], vec![fresh("a"), fresh("b")]] {
            let count = bindings.len();
            let task = world.start(world.work()).await;
            let asked = suspend_on(&task, bindings, deaf.clone());
            let waitpoints = world.suspend(within(5, Default::default(), asked)).await;
            assert_eq!(waitpoints.len(), count);
        }
    }
}
