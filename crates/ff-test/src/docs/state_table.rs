//! The state table of the documentation, made by the machine itself: every operation is tried in
//! every state.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ff_core::capability::Capabilities;
use ff_core::error::Refusal;
use ff_core::id::{
    Authority, BudgetId, ExecutionId, FlowId, Kind, LaneId, LeaseFence, Namespace, WorkerId,
};
use ff_core::id::{LeaseId, WaitpointId, WorkerInstanceId};
use ff_core::machine::Settings;
use ff_core::operation::{
    AddToFlow, AppendFrames, ApplyEdge, Binding, Cancel, ChangePriority, Claim, ClaimAdmitted,
    Command, Complete, CreateBudget, CreateFlow, CreatePendingWaitpoint, Delay, DelayUntil, Delete,
    EndForBudget, ExpireExecution, Fail, GrantAdmitted, Hold, InFlow, IssueClaimGrant,
    IssueReclaimGrant, LaneOrder, LaneShare, LoseLease, MarkLeaseExpired, PromoteDelayed, Release,
    Renew, Replay, Revoke, SetGroupPolicy, SetTags, SettleSlots, Submit, Suspend, Unblock,
    UpdateProgress, VoidAdmission, WaitChildren,
};
use ff_core::partition::PartitionConfig;
use ff_core::policy::Policy;
use ff_core::state::{Attached, BlockingReason, BudgetScope, CancelSource, HardAction, LostBy};
use ff_core::tags::Tags;
use uuid::Uuid;

use crate::differential::{OPERATIONS, STATES, state_of};
use crate::fleet::block;
use crate::grants::{
    claim_granted, claim_resumed, grant_and_claim, issue_grant, issue_reclaim, reclaim,
};
use crate::graphs::{any_of, create_flow, stage_between};
use crate::oracle::Oracle;
use crate::output::frame;
use crate::registered::registration_of;
use crate::signalling::{approval, close, issue};
use crate::stages::BEGINNING;
use crate::waits::{issued, key, resume, signal, wildcard};

const LEASE_MS: u64 = 1_000;
const ROUTE: BlockingReason = BlockingReason::WaitingForCapableWorker;

/// One execution on an oracle of its own.
struct Specimen {
    oracle: Oracle,
    fence: LeaseFence,
}

fn id() -> ExecutionId {
    ExecutionId::new(0, Uuid::from_u128(1))
}

/// Another member of its flow.
fn other() -> ExecutionId {
    ExecutionId::new(0, Uuid::from_u128(3))
}

fn flow() -> FlowId {
    FlowId::new(Uuid::from_u128(4))
}

fn waitpoint() -> WaitpointId {
    WaitpointId::new(Uuid::from_u128(2))
}

fn budget() -> BudgetId {
    BudgetId::new(Uuid::from_u128(3))
}

fn create_budget() -> CreateBudget {
    let scope = BudgetScope::Custom("table".to_owned());
    CreateBudget::new(budget(), Namespace::default(), scope)
}

fn lane() -> LaneId {
    LaneId::new("lane").expect("a lane")
}

impl Specimen {
    /// An execution in the state of this name.
    fn in_state(name: &str) -> Self {
        let partitions = PartitionConfig { flow: 1, budget: 1, quota: 1 };
        let lease = LeaseId::new(Uuid::nil());
        let fence = LeaseFence { lease_id: lease, lease_epoch: 0, attempt_id: lease.into() };
        let oracle = Oracle::new(Settings::new("oracle", partitions), BEGINNING);
        let mut specimen = Self { oracle, fence };
        match name {
            "absent" => {}
            "blocked by edges" | "waiting for children" | "skipped" => specimen.lead_in_flow(name),
            "set aside" => {
                specimen.must(create_budget().into());
                let attached = Attached::new([budget()], None);
                let policy = Policy { attached, ..Policy::default() };
                specimen.must(Submit { policy: policy.into(), ..submit() }.into());
                specimen.claim().expect("an applicant");
            }
            _ => {
                specimen.must(submit().into());
                specimen.lead_to(name);
            }
        }
        let found = specimen.state();
        assert_eq!(found, name, "the specimen did not get there");
        specimen
    }

    fn lead_to(&mut self, name: &str) {
        let far = DelayUntil::For(60_000);
        match name {
            "eligible" => {}
            "held" => self.must(Hold { execution_id: id(), detail: String::new() }.into()),
            "cancelled" => self.must(cancel().into()),
            "granted" => self.must(command("issue_claim_grant")),
            "blocked" => self.must(command("block_execution_for_admission")),
            _ => self.claim().expect("a task"),
        }
        match name {
            "eligible, retry" => {
                self.must(fail(None).into());
                self.oracle.advance(1_000);
                self.must(PromoteDelayed { execution_id: id() }.into());
            }
            "retry backoff" => self.must(fail(None).into()),
            "resumable" => self.must(delay(self.fence, DelayUntil::For(0)).into()),
            "delayed" => self.must(delay(self.fence, far).into()),
            "reclaimable" => self.must(revoke().into()),
            "active, lease over" => self.oracle.advance(LEASE_MS as i64),
            "suspended" => self.must(suspend(self.fence).into()),
            "success" => self.must(complete(self.fence).into()),
            "eligible, replay" => {
                self.must(complete(self.fence).into());
                self.must(Replay { execution_id: id(), descendants: false }.into());
            }
            "failed or expired" => self.must(fail(Some("permanent")).into()),
            _ => {}
        }
    }

    /// An execution that has to do with another member of its flow.
    fn lead_in_flow(&mut self, name: &str) {
        self.must(CreateFlow { flow_id: flow(), ..create_flow() }.into());
        let within = Some(InFlow { flow_id: flow(), name: None });
        self.must(Submit { within: within.clone(), ..submit() }.into());
        if name == "waiting for children" {
            self.claim().expect("a task");
        }
        self.must(Submit { execution_id: other(), within, ..submit() }.into());
        if name == "waiting for children" {
            self.must(command("move_to_waiting_children"));
            return;
        }
        let stage = stage_between(flow(), other(), id());
        self.must(stage.clone().into());
        self.must(ApplyEdge { flow_id: flow(), edge_id: stage.edge_id }.into());
        if name == "skipped" {
            self.must(Cancel { execution_id: other(), ..cancel() }.into());
        }
    }

    fn must(&mut self, command: Command) {
        let command = with_fence(command, self.fence);
        self.oracle.apply_now(&command).expect("a step on the way");
    }

    fn claim(&mut self) -> Result<(), Refusal> {
        let claim = Claim {
            namespace: Namespace::default(),
            worker_id: WorkerId::new("w").expect("a worker"),
            worker_instance_id: WorkerInstanceId::new("w-1").expect("an instance"),
            lanes: vec![LaneShare::new(lane())],
            order: LaneOrder::Weighted,
            capabilities: Capabilities::default(),
            max: 1,
            lease_ttl_ms: LEASE_MS,
            seed: Uuid::from_u128(7),
            sets_aside: false,
        };
        self.oracle.apply_now(&registration_of(&claim).into())?;
        if let Some(task) = self.oracle.claim_now(&claim)?.tasks.pop() {
            self.fence = task.fence();
        }
        Ok(())
    }

    fn state(&self) -> &'static str {
        self.oracle.look(|state, now| state_of(state.executions.get(&id()).map(AsRef::as_ref), now))
    }

    fn revision(&self) -> Option<u64> {
        self.oracle.look(|state, _| state.executions.get(&id()).map(|e| e.revision))
    }

    /// What the operation does here, in words.
    fn try_out(mut self, operation: &str) -> String {
        let (before, from) = (self.revision(), self.state());
        let outcome = match operation {
            Claim::NAME => self.claim(),
            name => {
                let command = with_fence(command(name), self.fence);
                self.oracle.apply_now(&command).map(|_| ())
            }
        };
        let changed = self.revision() != before;
        match (outcome, changed) {
            (Ok(()), true) if self.state() == from => "is changed, its state stays".to_owned(),
            (Ok(()), true) => format!("becomes *{}*", self.state()),
            (Ok(()), false) => "changes nothing".to_owned(),
            (Err(refusal), false) => format!("refused, `{}`", refusal.code),
            (Err(refusal), true) => {
                format!("refused, `{}`, and becomes *{}*", refusal.code, self.state())
            }
        }
    }
}

fn submit() -> Submit {
    Submit::new(id(), lane(), Kind::new("kind").expect("a kind"))
}

fn cancel() -> Cancel {
    let source = CancelSource::default();
    Cancel { execution_id: id(), reason: String::new(), source, fence: None }
}

fn revoke() -> Revoke {
    Revoke { execution_id: id(), reason: String::new(), expected_lease_id: None }
}

fn complete(fence: LeaseFence) -> Complete {
    let authority = Authority::Fence(fence);
    Complete { execution_id: id(), authority, result: None, next: None }
}

fn fail(category: Option<&str>) -> Fail {
    Fail {
        execution_id: id(),
        authority: Authority::Override,
        reason: String::new(),
        category: category.unwrap_or("transient").to_owned(),
        class: None,
        retry_after_ms: None,
    }
}

fn delay(fence: LeaseFence, until: DelayUntil) -> Delay {
    Delay { execution_id: id(), authority: Authority::Fence(fence), until }
}

fn suspend(fence: LeaseFence) -> Suspend {
    let waitpoint_id = waitpoint();
    let bindings = vec![Binding::Fresh { waitpoint_id, key: key("go"), token_ttl_ms: None }];
    Suspend::new(id(), fence, bindings, wildcard("go"))
}

/// Puts the fence of the newest task into an operation of a worker.
fn with_fence(command: Command, fence: LeaseFence) -> Command {
    let authority = Authority::Fence(fence);
    match command {
        Command::Complete(op) => Complete { authority, ..op }.into(),
        Command::Fail(op) => Fail { authority, ..op }.into(),
        Command::Delay(op) => Delay { authority, ..op }.into(),
        Command::WaitChildren(op) => WaitChildren { authority, ..op }.into(),
        Command::Renew(op) => Renew { fence, ..op }.into(),
        Command::UpdateProgress(op) => UpdateProgress { fence, ..op }.into(),
        Command::AppendFrames(op) => AppendFrames { fence, ..op }.into(),
        Command::CreatePendingWaitpoint(op) => CreatePendingWaitpoint { fence, ..op }.into(),
        Command::Suspend(op) => Suspend { fence, ..op }.into(),
        Command::LoseLease(op) => LoseLease { lease_id: fence.lease_id, ..op }.into(),
        other => other,
    }
}

fn command(name: &str) -> Command {
    let lease = LeaseId::new(Uuid::nil());
    let fence = LeaseFence { lease_id: lease, lease_epoch: 0, attempt_id: lease.into() };
    let execution_id = id();
    match name {
        "submit_execution" => submit().into(),
        "issue_claim_grant" => IssueClaimGrant { lane: lane(), ..issue_grant(execution_id) }.into(),
        "claim_execution" => claim_granted(execution_id).into(),
        "claim_resumed_execution" => claim_resumed(execution_id).into(),
        "issue_grant_and_claim" => grant_and_claim(execution_id).into(),
        "issue_reclaim_grant" => {
            IssueReclaimGrant { lane: lane(), ..issue_reclaim(execution_id) }.into()
        }
        "reclaim_execution" => reclaim(execution_id).into(),
        "renew_lease" => Renew { execution_id, fence, ttl_ms: None }.into(),
        "update_progress" => {
            UpdateProgress { execution_id, fence, pct: 1, message: String::new() }.into()
        }
        "append_frames" => AppendFrames { execution_id, fence, frames: vec![frame("x")] }.into(),
        "complete_execution" => complete(fence).into(),
        "fail_execution" => fail(None).into(),
        "cancel_execution" => cancel().into(),
        "delay_execution" => delay(fence, DelayUntil::For(60_000)).into(),
        "move_to_waiting_children" => {
            let (authority, children) = (Authority::Override, Some(vec![other()]));
            WaitChildren { execution_id, authority, children }.into()
        }
        "add_execution_to_flow" => AddToFlow { flow_id: flow(), execution_id, name: None }.into(),
        "set_edge_group_policy" => {
            SetGroupPolicy { flow_id: flow(), downstream: execution_id, join: any_of() }.into()
        }
        "revoke_lease" => revoke().into(),
        "hold_execution" => Hold { execution_id, detail: String::new() }.into(),
        "release_execution" => Release { execution_id }.into(),
        "change_priority" => ChangePriority { execution_id, priority: 9 }.into(),
        "set_execution_tags" => {
            let tags = Tags::new([("a.b".to_owned(), String::new())]).expect("tags");
            SetTags { execution_id, tags, expected_revision: None }.into()
        }
        "replay_execution" => Replay { execution_id, descendants: false }.into(),
        "delete_execution" => Delete { execution_id }.into(),
        "expire_execution" => ExpireExecution { execution_id }.into(),
        "promote_delayed" => PromoteDelayed { execution_id }.into(),
        "mark_lease_expired_if_due" => MarkLeaseExpired { execution_id }.into(),
        "create_pending_waitpoint" => CreatePendingWaitpoint {
            execution_id,
            fence,
            waitpoint_id: waitpoint(),
            key: key("go"),
            expires_at: None,
            token_ttl_ms: None,
        }
        .into(),
        "suspend_execution" => suspend(fence).into(),
        "close_waitpoint" => close(execution_id, "go").into(),
        "issue_waitpoint_token" => issue(execution_id, "go").into(),
        "resume_execution" => resume(execution_id).into(),
        "deliver_signal" => {
            signal(execution_id, &issued(execution_id, waitpoint(), "go"), "go").into()
        }
        "deliver_approval_signal" => approval(execution_id, "go").into(),
        "lose_lease" => LoseLease { execution_id, lease_id: lease, by: LostBy::Revocation }.into(),
        "block_execution_for_admission" => block(execution_id, ROUTE).into(),
        "unblock_execution" => Unblock { execution_id, expected: ROUTE }.into(),
        other => admission(other),
    }
}

/// Steps of an admission.
fn admission(name: &str) -> Command {
    let (execution_id, lease_epoch) = (id(), 1);
    match name {
        "claim_admitted" => ClaimAdmitted {
            execution_id,
            lease_epoch,
            lease_id: LeaseId::from_seed(Uuid::from_u128(7), 0),
            worker_id: WorkerId::new("w").expect("a worker"),
            worker_instance_id: WorkerInstanceId::new("w-1").expect("an instance"),
            lease_ttl_ms: LEASE_MS,
            slots: Vec::new(),
            places: Vec::new(),
        }
        .into(),
        "grant_admitted" => GrantAdmitted {
            execution_id,
            lease_epoch,
            worker_id: WorkerId::new("w").expect("a worker"),
            worker_instance_id: WorkerInstanceId::new("w-1").expect("an instance"),
            grant_ttl_ms: LEASE_MS,
            slots: Vec::new(),
            places: Vec::new(),
            claimant: LeaseId::from_seed(Uuid::from_u128(7), 0),
        }
        .into(),
        "void_admission" => {
            VoidAdmission { execution_id, lease_epoch, quota_policy_id: None }.into()
        }
        "settle_slots" => SettleSlots { execution_id, slots: Vec::new() }.into(),
        "end_for_budget" => EndForBudget {
            execution_id,
            lease_id: LeaseId::from_seed(Uuid::from_u128(7), 0),
            budget_id: budget(),
            action: HardAction::Cancel,
        }
        .into(),
        other => panic!("no specimen of {other}"),
    }
}

/// The page `docs/reference/state-table.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# State table\n\n\
         What every operation does in every state. A worker's operation shows the fence of its\n\
         last lease, and the default policy holds. This page is made by the machine: a test\n\
         compares it, and `FF_UPDATE_DOCS=1 cargo test -p ff-test --test docs` writes it anew.\n",
    );
    for state in STATES {
        let mut outcomes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for operation in OPERATIONS.into_iter().chain([Claim::NAME]) {
            let outcome = Specimen::in_state(state).try_out(operation);
            outcomes.entry(outcome).or_default().push(operation);
        }
        let _ = write!(page, "\n## {state}\n\n| outcome | operations |\n| --- | --- |\n");
        for (outcome, operations) in outcomes {
            let names: Vec<_> = operations.iter().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(page, "| {outcome} | {} |", names.join(", "));
        }
    }
    page
}
