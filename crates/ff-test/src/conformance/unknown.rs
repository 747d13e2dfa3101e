//! Executions that do not exist.

use std::collections::BTreeSet;
use std::time::Duration;

use ff_core::backend::BackendExt;
use ff_core::error::Code;
use ff_core::id::{
    BudgetId, BulkId, ExecutionId, KeyId, Namespace, QuotaPolicyId, WorkerId, WorkerInstanceId,
};
use ff_core::operation::{
    AdmissionVoided, AdvanceBulk, AttachBudget, BudgetErrand, BulkWish, ChangePriority,
    ClaimAdmitted, Command, Delete, DeleteBudget, DeleteKey, DeleteQuotaPolicy, DisownUsage,
    EndForBudget, ExpireExecution, Fired, GrantAdmitted, MarkLeaseExpired, NotDue, PromoteDelayed,
    RecountBudget, Release, ReleaseAdmission, ReleaseBudget, Replay, Reply, ResetBudget, SetBulk,
    SettleBudget, SettleSlots, SettleWaking, Task, Tick, Unblock, UpdateBudget, UpdateQuotaPolicy,
    VoidAdmission,
};
use ff_core::read::{
    ListAttempts, ListEvents, ReadContext, ReadState, ReadStream, ReadSummary, Tail,
};
use ff_core::state::{BlockingReason, BudgetScope, FrameId, HardAction, LaneState};
use uuid::Uuid;

use crate::fleet::{
    beat, block, deregister, drain, lose, mark_dead, note_cancelled, register, set_lane,
    set_namespace, settle_loss,
};
use crate::grants::{
    claim_granted, claim_resumed, grant_and_claim, issue_grant, issue_reclaim, reclaim,
};
use crate::graphs::{create_flow, wait_children};
use crate::limits::{budget, cap, check, confirm, first_lease, quota, spend, usage, worked};
use crate::output::{append, frame};
use crate::signalling::{approval, close, issue, rotate};
use crate::waits::{pending, resume, seed, signal, suspend, wildcard};
use crate::world::{World, cancel, code, fenced, hold, revoke, set_tags};

const ROUTE: BlockingReason = BlockingReason::WaitingForCapableWorker;

fn nobody(world: &World) -> ExecutionId {
    ExecutionId::solo(Uuid::now_v7(), &world.backend.settings().partitions)
}

fn end_for_budget(task: &Task) -> EndForBudget {
    let (execution_id, lease_id) = (task.execution_id, task.lease_id);
    EndForBudget { execution_id, lease_id, budget_id: BudgetId::mint(), action: HardAction::Cancel }
}

fn attach_budget() -> AttachBudget {
    let (budget_id, namespace) = (BudgetId::mint(), Namespace::default());
    AttachBudget { budget_id, scope: BudgetScope::Namespace(namespace.clone()), namespace }
}

fn admitted(task: &Task) -> ClaimAdmitted {
    ClaimAdmitted {
        execution_id: task.execution_id,
        lease_epoch: 1,
        lease_id: task.lease_id,
        worker_id: WorkerId::new("pool").expect("a worker"),
        worker_instance_id: WorkerInstanceId::new("pool-1").expect("an instance"),
        lease_ttl_ms: 1_000,
        slots: Vec::new(),
        places: Vec::new(),
    }
}

fn granted(task: &Task) -> GrantAdmitted {
    let ClaimAdmitted {
        execution_id,
        lease_epoch,
        lease_id,
        worker_id,
        worker_instance_id,
        slots,
        ..
    } = admitted(task);
    GrantAdmitted {
        execution_id,
        lease_epoch,
        worker_id,
        worker_instance_id,
        grant_ttl_ms: 1_000,
        slots,
        places: Vec::new(),
        claimant: lease_id,
    }
}

/// Every operation on one execution, by name; what it is given names an execution that is not.
async fn operations(world: &World) -> Vec<(&'static str, Command)> {
    let mut task = world.start(world.work()).await;
    let issued = world.act(pending(&task, "w")).await;
    task.execution_id = nobody(world);
    let [renew, progress, complete, fail, delay, cancel_held] = fenced(&task);
    let id = task.execution_id;
    vec![
        ("renew_lease", renew),
        ("update_progress", progress),
        ("complete_execution", complete),
        ("fail_execution", fail),
        ("delay_execution", delay),
        ("cancel_execution", cancel_held),
        ("move_to_waiting_children", wait_children(&task, None).into()),
        ("cancel_execution", cancel(id).into()),
        ("revoke_lease", revoke(id).into()),
        ("hold_execution", hold(id).into()),
        ("claim_admitted", admitted(&task).into()),
        ("grant_admitted", granted(&task).into()),
        ("end_for_budget", end_for_budget(&task).into()),
        ("settle_slots", SettleSlots { execution_id: id, slots: Vec::new() }.into()),
        ("release_execution", Release { execution_id: id }.into()),
        ("change_priority", ChangePriority { execution_id: id, priority: 1 }.into()),
        ("set_execution_tags", set_tags(id, &[("a.b", "c")]).into()),
        ("replay_execution", Replay { execution_id: id, descendants: false }.into()),
        ("delete_execution", Delete { execution_id: id }.into()),
        ("append_frames", append(&task, vec![frame("x")]).into()),
        ("create_pending_waitpoint", pending(&task, "w").into()),
        ("suspend_execution", suspend(&task, wildcard("go")).into()),
        ("close_waitpoint", close(id, "w").into()),
        ("issue_waitpoint_token", issue(id, "w").into()),
        ("resume_execution", resume(id).into()),
        ("deliver_signal", signal(id, &issued, "s").into()),
        ("deliver_approval_signal", approval(id, "w").into()),
        ("issue_claim_grant", issue_grant(id).into()),
        ("claim_execution", claim_granted(id).into()),
        ("claim_resumed_execution", claim_resumed(id).into()),
        ("issue_grant_and_claim", grant_and_claim(id).into()),
        ("issue_reclaim_grant", issue_reclaim(id).into()),
        ("reclaim_execution", reclaim(id).into()),
        ("lose_lease", lose(&task).into()),
        ("block_execution_for_admission", block(id, ROUTE).into()),
        ("unblock_execution", Unblock { execution_id: id, expected: ROUTE }.into()),
    ]
}

pub async fn every_operation_says_that_there_is_no_such_execution(world: &World) {
    for (name, command) in operations(world).await {
        assert_eq!(command.name(), name);
        world.refuses(command, Code::ExecutionNotFound).await;
    }
}

/// Every operation on a budget, a quota policy, a key or a bulk operation, by name; what it is given names one that is not.
fn limits(world: &World) -> Vec<(&'static str, Command, Code)> {
    let (budget_id, id) = (BudgetId::mint(), nobody(world));
    let (quota_policy_id, slot) = (QuotaPolicyId::mint(), first_lease(id));
    let amount = [("tokens", 1)];
    let done = BudgetErrand::Attach;
    let execution_ids = vec![id];
    let budgets: [(_, Command); 10] = [
        ("settle_budget", SettleBudget { budget_id, done }.into()),
        ("update_budget", UpdateBudget::new(budget_id).into()),
        ("report_usage", worked(budget_id, id, &amount).into()),
        ("report_usage_admin", usage(budget_id, &amount).into()),
        ("record_spend", spend(budget_id, id, &amount).into()),
        ("release_budget", ReleaseBudget { budget_id, execution_id: id }.into()),
        ("recount_budget", RecountBudget { budget_id, repair: true }.into()),
        ("disown_usage", DisownUsage { budget_id, execution_ids: execution_ids.clone() }.into()),
        ("reset_budget", ResetBudget { budget_id }.into()),
        ("delete_budget", DeleteBudget { budget_id }.into()),
    ];
    let quotas: [(_, Command); 6] = [
        (
            "settle_waking",
            SettleWaking { quota_policy_id, execution_ids, let_go: Vec::new() }.into(),
        ),
        ("update_quota_policy", UpdateQuotaPolicy::new(quota_policy_id, cap(1)).into()),
        ("delete_quota_policy", DeleteQuotaPolicy { quota_policy_id }.into()),
        ("check_admission", check(quota_policy_id, slot).into()),
        ("confirm_admission", confirm(quota_policy_id, slot).into()),
        ("release_admission", ReleaseAdmission::of_lease(quota_policy_id, slot).into()),
    ];
    let bulk_id = BulkId::mint();
    let (cursor, is_last) = (None, true);
    let advance = AdvanceBulk { bulk_id, steps: 0, done: 0, failed: 0, cursor, is_last };
    let bulks: [(_, Command); 2] = [
        ("set_bulk", SetBulk { bulk_id, to: BulkWish::Pause }.into()),
        ("advance_bulk", advance.into()),
    ];
    let key_id = KeyId::new("nosuchkey").expect("a key id");
    let keys: [(_, Command); 1] = [("delete_key", DeleteKey { key_id }.into())];
    let missing = |code| move |(name, command)| (name, command, code);
    let bulks = bulks.into_iter().map(missing(Code::BulkNotFound));
    let others = bulks.chain(keys.into_iter().map(missing(Code::KeyNotFound)));
    let budgets = budgets.into_iter().map(missing(Code::BudgetNotFound));
    let quotas = quotas.into_iter().map(missing(Code::QuotaPolicyNotFound));
    budgets.chain(quotas).chain(others).collect()
}

pub async fn every_operation_says_that_there_is_no_such_budget_or_quota_policy(world: &World) {
    for (name, command, expected) in limits(world) {
        assert_eq!(command.name(), name);
        assert_eq!(code(world.command(command).await), expected, "{name}");
    }
}

/// What a timer does, for one execution.
fn timed(execution_id: ExecutionId) -> [(&'static str, Command); 4] {
    [
        (
            "void_admission",
            VoidAdmission { execution_id, lease_epoch: 1, quota_policy_id: None }.into(),
        ),
        ("expire_execution", ExpireExecution { execution_id }.into()),
        ("promote_delayed", PromoteDelayed { execution_id }.into()),
        ("mark_lease_expired_if_due", MarkLeaseExpired { execution_id }.into()),
    ]
}

pub async fn what_a_timer_does_finds_nothing_to_do(world: &World) {
    let nothing = Fired::AlreadySatisfied(NotDue::ExecutionNotFound);
    for (name, command) in timed(nobody(world)) {
        assert_eq!(command.name(), name);
        let reply = world.command(command).await.unwrap();
        let fired = match reply {
            Reply::ExpireExecution(fired)
            | Reply::PromoteDelayed(fired)
            | Reply::MarkLeaseExpired(fired) => fired,
            Reply::VoidAdmission(voided) => {
                assert_eq!(voided, AdmissionVoided::Void);
                continue;
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(fired, nothing, "{name}");
    }
}

pub async fn no_operation_was_forgotten_above(world: &World) {
    let mut known = operations(world).await;
    known.extend(timed(nobody(world)));
    known.extend(limits(world).into_iter().map(|(name, command, _)| (name, command)));
    // These act on nothing that must exist.
    known.push(("create_budget", budget(&[]).into()));
    known.push(("create_quota_policy", quota(cap(1)).into()));
    known.push(("create_key", super::keys::key("abcdefgh").into()));
    known.push(("bulk_create", super::bulks::on_lane("work").into()));
    known.push(("seed_waitpoint_hmac_secret", seed().into()));
    known.push(("rotate_waitpoint_hmac_secret", rotate("k9", 9, 60_000).into()));
    known.push(("submit_execution", world.work().into()));
    known.push(("create_flow", create_flow().into()));
    known.push(("submit_flow", world.draw(&["a"], &[]).submit.into()));
    known.extend(super::flow_steps::on_no_flow(world));
    known.push(("register_worker", register("w-1").into()));
    known.push(("heartbeat_worker", beat("w-1").into()));
    known.push(("drain_worker", drain("w-1").into()));
    known.push(("deregister_worker", deregister("w-1").into()));
    known.push(("mark_worker_dead", mark_dead("w-1").into()));
    known.push(("settle_worker_loss", settle_loss("w-1").into()));
    known.push(("note_cancellations", note_cancelled("w-1", world.somebody()).into()));
    known.push(("set_lane", set_lane("work", LaneState::Active).into()));
    known.push(("set_namespace", set_namespace().into()));
    known.push(("attach_budget", attach_budget().into()));
    known.push(("tick", Tick { home: None, most: 1 }.into()));
    let names: BTreeSet<_> = known.iter().map(|(_, command)| command.name()).collect();
    assert_eq!(names, known.iter().map(|(name, _)| *name).collect());
    assert_eq!(names, Command::NAMES.iter().copied().collect());
}

pub async fn reading_what_is_not_there_is_none(world: &World) {
    let id = nobody(world);
    assert_eq!(world.find(id).await, None);
    assert_eq!(world.backend.ask(ReadState { execution_id: id }).await, Ok(None));
    assert_eq!(world.backend.ask(ReadContext { execution_id: id }).await, Ok(None));
    assert_eq!(world.backend.explain(id).await, Ok(None));
}

pub async fn lists_and_results_of_what_is_not_there_are_refused(world: &World) {
    let id = nobody(world);
    assert_eq!(code(world.result(id).await), Code::ExecutionNotFound);
    let attempts = ListAttempts { execution_id: id, after: None, limit: 1 };
    assert_eq!(code(world.backend.ask(attempts).await), Code::ExecutionNotFound);
    let events = ListEvents { execution_id: id, after_seq: 0, limit: 1 };
    assert_eq!(code(world.backend.ask(events).await), Code::ExecutionNotFound);
    assert_eq!(code(world.backend.ask(ReadStream::all(id, 0)).await), Code::ExecutionNotFound);
    let summary = ReadSummary { execution_id: id, attempt_index: 0 };
    assert_eq!(code(world.backend.ask(summary).await), Code::ExecutionNotFound);
    for wait in [Duration::ZERO, Duration::from_secs(1)] {
        let tail = world.backend.tail(Tail::after(id, 0, FrameId::FIRST), wait);
        assert_eq!(code(tail.await), Code::ExecutionNotFound);
    }
}

pub async fn an_id_is_uuid_and_partition(world: &World) {
    let id = world.submit(world.work()).await;
    let count = world.backend.settings().partitions.flow;
    let beside = ExecutionId::new((id.partition() + 1) % count, id.uuid());
    assert_eq!(world.find(beside).await, None);
    world.refuses(cancel(beside), Code::ExecutionNotFound).await;
    assert_eq!(world.claim_ids(1).await, [id]);
}
