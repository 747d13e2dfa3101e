//! Quota policies: made, changed, removed, listed; slots taken, confirmed, given back, waited for.

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::id::{ExecutionId, QuotaPolicyId};
use ff_core::limits;
use ff_core::operation::{
    Admission, AdmissionReleased, BlockForAdmission, CheckAdmission, Command, Confirmed,
    CreateQuotaPolicy, DeleteQuotaPolicy, Errand, QuotaPolicyCreated, QuotaPolicyUpdated,
    ReleaseAdmission, Settled, UpdateQuotaPolicy,
};
use ff_core::read::{DescribeQuotaPolicy, ListQuotaPolicies, ReadQuotaLimits};
use ff_core::state::{BlockingReason, DueKind, LimitId, QuotaSpec, SlotId};
use uuid::Uuid;

use crate::limits::{ADMITTED, cap, check, confirm, first_lease, quota, rate, tick};
use crate::world::{World, code, namespace};

const FULL: Admission = Admission::ConcurrencyExceeded { retry_after_ms: limits::SLOT_RETRY_MS };
const PENDING: i64 = limits::SLOT_PENDING_MS.cast_signed();

async fn refused(world: &World, operation: impl Into<Command>, expected: Code) {
    let error = world.command(operation.into()).await.expect_err("a refusal");
    assert_eq!(error.code(), expected, "{error}");
}

pub async fn a_policy_is_what_it_was_made_as(world: &World) {
    let spec = QuotaSpec { jitter_ms: 7, max_concurrent: 3, ..rate(100, 60) };
    let create = quota(spec);
    let id = create.quota_policy_id;
    assert_eq!(world.act(create.clone()).await, QuotaPolicyCreated::Created);
    let described = world.describe_quota(id).await;
    let policy = described.policy;
    assert_eq!((policy.quota_policy_id, policy.namespace), (id, create.namespace));
    assert_eq!((policy.spec, policy.created_at), (spec, world.now().await));
    assert_eq!((policy.slots, policy.waiting, policy.overdue), (0, 0, Vec::new()));
    assert_eq!((described.holders, described.next), (Vec::new(), None));
    let limits = world.backend.ask(ReadQuotaLimits { quota_policy_id: id }).await;
    assert_eq!(limits, Ok(Some(spec)));
}

pub async fn what_is_not_there_is_none(world: &World) {
    let quota_policy_id = QuotaPolicyId::mint();
    assert_eq!(world.backend.ask(ReadQuotaLimits { quota_policy_id }).await, Ok(None));
    let describe = DescribeQuotaPolicy { quota_policy_id, holders_from: 0, limit: 1 };
    assert_eq!(world.backend.ask(describe).await, Ok(None));
}

pub async fn a_spec_out_of_bounds_is_refused(world: &World) {
    let id = world.quota(cap(1)).await;
    let bad = [
        rate(1, 0),
        rate(1, limits::QUOTA_WINDOW_MAX_SECONDS + 1),
        rate(1, u64::MAX),
        rate(limits::QUOTA_REQUESTS_MAX + 1, 1),
        cap(limits::QUOTA_CONCURRENT_MAX + 1),
        QuotaSpec { jitter_ms: limits::QUOTA_JITTER_MAX_MS + 1, ..cap(1) },
    ];
    for spec in bad {
        refused(world, quota(spec), Code::InvalidQuotaSpec).await;
        let update = UpdateQuotaPolicy::new(id, spec);
        refused(world, update, Code::InvalidQuotaSpec).await;
    }
    assert_eq!(world.describe_quota(id).await.policy.spec, cap(1));
    let most = QuotaSpec {
        jitter_ms: limits::QUOTA_JITTER_MAX_MS,
        max_concurrent: limits::QUOTA_CONCURRENT_MAX,
        ..rate(limits::QUOTA_REQUESTS_MAX, limits::QUOTA_WINDOW_MAX_SECONDS)
    };
    world.quota(most).await;
}

pub async fn made_again_it_is_the_same_or_a_conflict(world: &World) {
    let create = quota(rate(5, 1));
    world.act(create.clone()).await;
    assert_eq!(world.act(create.clone()).await, QuotaPolicyCreated::AlreadySatisfied);
    let others = [
        CreateQuotaPolicy { spec: rate(6, 1), ..create.clone() },
        CreateQuotaPolicy { namespace: namespace("other"), ..create.clone() },
    ];
    for other in others {
        refused(world, other, Code::QuotaAttachConflict).await;
    }
    // A create that is sent again is the same whatever happened to the policy since.
    let quota_policy_id = create.quota_policy_id;
    world.act(UpdateQuotaPolicy::new(quota_policy_id, rate(6, 1))).await;
    assert_eq!(world.act(create).await, QuotaPolicyCreated::AlreadySatisfied);
    assert_eq!(world.describe_quota(quota_policy_id).await.policy.spec, rate(6, 1));
}

pub async fn zero_switches_a_part_off(world: &World) {
    let id = world.quota(QuotaSpec { window_seconds: 60, ..QuotaSpec::default() }).await;
    for n in 1..=20 {
        assert_eq!(world.admit(id).await.1, ADMITTED);
        assert_eq!(world.describe_quota(id).await.policy.slots, n, "slots are kept all the same");
    }
    let update = UpdateQuotaPolicy::new(id, cap(20));
    world.act(update).await;
    assert_eq!(world.admit(id).await.1, FULL);
}

pub async fn so_many_at_a_time(world: &World) {
    let id = world.quota(cap(2)).await;
    let (first, admitted) = world.admit(id).await;
    assert_eq!((admitted, world.admit(id).await.1), (ADMITTED, ADMITTED));
    assert_eq!(world.admit(id).await.1, FULL);
    world.give_back(id, first).await;
    assert_eq!(world.admit(id).await.1, ADMITTED);
    assert_eq!(world.admit(id).await.1, FULL);
    assert_eq!(world.describe_quota(id).await.policy.slots, 2);
}

pub async fn asked_again_a_slot_is_already_admitted(world: &World) {
    let id = world.quota(QuotaSpec { max_concurrent: 1, ..rate(1, 60) }).await;
    let (slot, _) = world.admit(id).await;
    for _ in 0..3 {
        assert_eq!(
            world.act(check(id, slot)).await,
            Admission::AlreadyAdmitted { keeps_place: true }
        );
    }
    world.act(confirm(id, slot)).await;
    assert_eq!(world.act(check(id, slot)).await, Admission::AlreadyAdmitted { keeps_place: false });
    assert_eq!(world.describe_quota(id).await.policy.slots, 1);
    let next = SlotId { lease_epoch: 2, ..slot };
    let resumed = CheckAdmission { opens_attempt: false, ..check(id, next) };
    assert_eq!(world.act(resumed).await, FULL, "the next lease is another slot");
}

pub async fn an_epoch_begins_with_1(world: &World) {
    let id = world.quota(cap(1)).await;
    let slot = SlotId { execution_id: world.somebody(), lease_epoch: 0 };
    refused(world, check(id, slot), Code::InvalidInput).await;
}

pub async fn an_execution_of_no_partition_is_refused(world: &World) {
    let id = world.quota(cap(1)).await;
    let partition = world.backend.settings().partitions.flow;
    let slot = first_lease(ExecutionId::new(partition, Uuid::now_v7()));
    refused(world, check(id, slot), Code::InvalidInput).await;
    refused(world, confirm(id, slot), Code::InvalidInput).await;
    let release = ReleaseAdmission::of_lease(id, slot);
    refused(world, release, Code::InvalidInput).await;
}

pub async fn a_slot_is_given_back_once(world: &World) {
    let id = world.quota(cap(5)).await;
    let (one, _) = world.admit(id).await;
    let (two, _) = world.admit(id).await;
    let freed = |freed| AdmissionReleased { freed, wake: Vec::new() };
    assert_eq!(world.give_back(id, one).await, freed(1));
    for _ in 0..3 {
        assert_eq!(world.give_back(id, one).await, freed(0));
    }
    assert_eq!(world.describe_quota(id).await.policy.slots, 1);
    let never = first_lease(world.somebody());
    assert_eq!(world.give_back(id, never).await, freed(0));
    let older = SlotId { lease_epoch: 7, ..two };
    assert_eq!(world.give_back(id, older).await, freed(0), "a slot is of one lease");
    assert_eq!(world.give_back(id, two).await, freed(1));
    assert_eq!(world.describe_quota(id).await.policy.slots, 0, "and never fewer");
}

pub async fn a_pending_slot_is_confirmed(world: &World) {
    let id = world.quota(cap(5)).await;
    let (slot, _) = world.admit(id).await;
    let since = world.now().await;
    let holder = world.describe_quota(id).await.holders.remove(0);
    assert_eq!((holder.slot, holder.since), (slot, since));
    assert_eq!(holder.pending_until, Some(since.after(limits::SLOT_PENDING_MS)));
    assert_eq!(world.act(confirm(id, slot)).await, Confirmed::Held);
    assert_eq!(world.act(confirm(id, slot)).await, Confirmed::AlreadyHeld);
    assert_eq!(world.describe_quota(id).await.holders.remove(0).pending_until, None);
    assert_eq!(world.act(confirm(id, first_lease(world.somebody()))).await, Confirmed::NoSlot);
    world.give_back(id, slot).await;
    assert_eq!(world.act(confirm(id, slot)).await, Confirmed::NoSlot);
}

pub async fn a_pending_slot_past_its_time_is_noted_and_kept(world: &World) {
    let id = world.quota(cap(5)).await;
    let (kept, _) = world.admit(id).await;
    let (lost, _) = world.admit(id).await;
    let (held, _) = world.admit(id).await;
    let (gone, _) = world.admit(id).await;
    world.act(confirm(id, held)).await;
    world.give_back(id, gone).await;
    world.pass(PENDING - 1).await;
    assert_eq!(world.describe_quota(id).await.policy.overdue, []);
    let (later, _) = world.admit(id).await;
    world.advance(1).await;
    let ticked = world.act(tick()).await;
    assert_eq!((ticked.fired, ticked.more), (vec![(DueKind::QuotaReconciler, 1)], false));
    assert_eq!(DueKind::QuotaReconciler.scanner(), "quota_reconciler");
    let policy = world.describe_quota(id).await.policy;
    assert_eq!((policy.overdue, policy.slots), (vec![kept, lost], 4), "no slot ends by time alone");
    world.act(confirm(id, kept)).await;
    world.give_back(id, lost).await;
    assert_eq!(world.describe_quota(id).await.policy.overdue, []);
    world.advance(PENDING).await;
    world.act(tick()).await;
    assert_eq!(world.describe_quota(id).await.policy.overdue, [later]);
    for _ in 0..10 {
        world.advance(PENDING).await;
        world.act(tick()).await;
    }
    let policy = world.describe_quota(id).await.policy;
    assert_eq!((policy.slots, policy.overdue.len()), (3, 3), "those that are held are asked too");
    world.pass(limits::ERRAND_RETRY_MS.cast_signed()).await;
    assert_eq!(world.describe_quota(id).await.policy.slots, 0, "none of them has a lease");
}

pub async fn holders_come_in_pages(world: &World) {
    let id = world.quota(cap(0)).await;
    let mut slots = Vec::new();
    for _ in 0..7 {
        slots.push(world.admit(id).await.0);
    }
    for limit in [1, 3, 7, 500] {
        let (mut seen, mut from) = (Vec::new(), Some(0));
        while let Some(holders_from) = from {
            let query = DescribeQuotaPolicy { quota_policy_id: id, holders_from, limit };
            let page = world.backend.ask(query).await.unwrap().unwrap();
            seen.extend(page.holders.iter().map(|holder| holder.slot));
            from = page.next;
        }
        assert_eq!(seen, slots, "{limit} a page");
    }
    let query =
        |holders_from, limit| DescribeQuotaPolicy { quota_policy_id: id, holders_from, limit };
    let behind = world.backend.ask(query(u32::MAX, 500)).await.unwrap().unwrap();
    assert_eq!((behind.holders, behind.next), (Vec::new(), None));
    for limit in [0, 501] {
        assert_eq!(code(world.backend.ask(query(0, limit)).await), Code::InvalidInput);
    }
    // The last one moves into the place that is free.
    world.give_back(id, slots[2]).await;
    let holders = world.describe_quota(id).await.holders;
    let left = [slots[0], slots[1], slots[6], slots[3], slots[4], slots[5]];
    assert_eq!(holders.iter().map(|holder| holder.slot).collect::<Vec<_>>(), left);
}

/// An execution that a policy keeps back.
async fn kept_back(world: &World, id: QuotaPolicyId) -> SlotId {
    let execution_id = world.submit(world.work()).await;
    let reason = BlockingReason::WaitingForQuota;
    let (detail, by) = (String::new(), Some(LimitId::Quota(id)));
    world.act(BlockForAdmission { execution_id, reason, detail, by }).await;
    first_lease(execution_id)
}

pub async fn who_waits_is_woken_best_first(world: &World) {
    let id = world.quota(cap(1)).await;
    let (held, _) = world.admit(id).await;
    let mut waiting = Vec::new();
    for score in [30, 10, 20, 10] {
        let slot = kept_back(world, id).await;
        assert_eq!(world.act(CheckAdmission { score, ..check(id, slot) }).await, FULL);
        assert_eq!(world.act(CheckAdmission { score, ..check(id, slot) }).await, FULL);
        waiting.push((score, slot.execution_id));
    }
    waiting.sort_unstable();
    assert_eq!(world.describe_quota(id).await.policy.waiting, 4, "each stands in line once");
    let mut free = held;
    for (_, next) in waiting {
        let released = world.give_back(id, free).await;
        assert_eq!((released.freed, released.wake), (1, vec![next]));
        free = first_lease(next);
        assert_eq!(world.act(check(id, free)).await, ADMITTED);
    }
    assert_eq!(world.give_back(id, free).await.wake, []);
}

pub async fn who_was_too_fast_waits_for_the_window(world: &World) {
    let id = world.quota(QuotaSpec { max_concurrent: 1, ..rate(1, 60) }).await;
    let (held, _) = world.admit(id).await;
    let (_, refused) = world.admit(id).await;
    assert!(matches!(refused, Admission::RateExceeded { .. }), "{refused:?}");
    assert_eq!(world.describe_quota(id).await.policy.waiting, 1);
    assert_eq!(world.give_back(id, held).await.wake, [], "a slot is not enough");
    world.advance(60_000).await;
    let errands = world.act(tick()).await.errands;
    assert!(matches!(errands.as_slice(), [Errand::LetGo { .. }]), "{errands:?}");
    assert_eq!(world.describe_quota(id).await.policy.waiting, 0);
}

pub async fn a_higher_cap_wakes_as_many_as_it_admits(world: &World) {
    let id = world.quota(cap(1)).await;
    world.admit(id).await;
    let mut waiting = Vec::new();
    for score in 0..5 {
        let slot = kept_back(world, id).await;
        world.act(CheckAdmission { score, ..check(id, slot) }).await;
        waiting.push(slot.execution_id);
    }
    let update = |spec| UpdateQuotaPolicy::new(id, spec);
    let woken = |ids: &[ExecutionId]| QuotaPolicyUpdated { wake: ids.to_vec() };
    assert_eq!(world.act(update(cap(3))).await, woken(&waiting[..2]));
    assert_eq!(world.act(update(cap(3))).await, woken(&[]));
    assert_eq!(world.act(update(cap(1))).await, woken(&[]));
    assert_eq!(world.act(update(cap(0))).await, woken(&waiting[2..]), "switched off");
}

pub async fn a_lowered_cap_takes_nothing_away_and_admits_nobody(world: &World) {
    let id = world.quota(cap(3)).await;
    let mut slots = Vec::new();
    for _ in 0..3 {
        slots.push(world.admit(id).await.0);
    }
    world.act(UpdateQuotaPolicy::new(id, cap(1))).await;
    let (waits, refused) = world.admit(id).await;
    assert_eq!((refused, world.describe_quota(id).await.policy.slots), (FULL, 3));
    assert_eq!(world.give_back(id, slots[0]).await.wake, []);
    assert_eq!(world.give_back(id, slots[1]).await.wake, [], "still at the cap");
    assert_eq!(world.give_back(id, slots[2]).await.wake, [waits.execution_id]);
}

pub async fn many_wait_in_order(world: &World) {
    let id = world.quota(cap(1)).await;
    let (mut free, _) = world.admit(id).await;
    let mut slots = Vec::new();
    for _ in 0..100 {
        slots.push(kept_back(world, id).await);
    }
    let score = |n: usize| (n as i64 * 37) % 100;
    let checks = (0..)
        .zip(&slots)
        .map(|(n, slot)| CheckAdmission { score: score(n), ..check(id, *slot) }.into());
    assert!(world.backend.apply(checks.collect()).await.iter().all(Result::is_ok));
    let mut line: Vec<_> = (0..).zip(&slots).map(|(n, slot)| (score(n), *slot)).collect();
    line.sort_unstable();
    for (_, slot) in line {
        assert_eq!(world.give_back(id, free).await.wake, [slot.execution_id]);
        world.act(check(id, slot)).await;
        free = slot;
    }
}

pub async fn a_deleted_policy_is_gone_and_its_id_is_free(world: &World) {
    let create = quota(QuotaSpec { max_concurrent: 1, ..rate(5, 1) });
    let quota_policy_id = create.quota_policy_id;
    world.act(create.clone()).await;
    world.admit(quota_policy_id).await;
    world.admit(quota_policy_id).await;
    let delete = DeleteQuotaPolicy { quota_policy_id };
    assert_eq!(world.act(delete.clone()).await, Settled::Done);
    refused(world, delete, Code::QuotaPolicyNotFound).await;
    assert_eq!(world.backend.ask(ReadQuotaLimits { quota_policy_id }).await, Ok(None));
    world.pass(PENDING).await;
    assert_eq!(world.act(create).await, QuotaPolicyCreated::Created);
    let described = world.describe_quota(quota_policy_id).await;
    assert_eq!((described.holders, described.policy.waiting), (Vec::new(), 0));
}

pub async fn policies_are_listed_newest_first_in_pages(world: &World) {
    let mut made = Vec::new();
    for n in 1..=5 {
        world.advance(1).await;
        made.insert(0, world.quota(cap(n)).await);
    }
    world.act(CreateQuotaPolicy { namespace: namespace("other"), ..quota(cap(1)) }).await;
    for limit in [1, 2, 5, 50] {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let list = ListQuotaPolicies { namespace: namespace("default"), cursor, limit };
            let page = world.backend.ask(list).await.unwrap();
            seen.extend(page.items.iter().map(|policy| policy.quota_policy_id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, made, "{limit} a page");
    }
    let cursor = Some("no".to_owned());
    let list = ListQuotaPolicies { namespace: namespace("default"), cursor, limit: 1 };
    assert_eq!(code(world.backend.ask(list).await), Code::InvalidCursor);
}
