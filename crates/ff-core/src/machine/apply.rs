//! One command, one step.

use super::draft::Halt;
use super::step::Step;
use super::{
    Facts, Needs, Settings, admission, budget, bulk, cancel, complete, delay, delete, fail, flow,
    frame, grant, hold, key, lane, namespace, priority, progress, quota, renew, replay, revoke,
    secret, signal, submit, suspend, tags, tick, waitpoint, worker,
};
use crate::check::check_partition;
use crate::error::{Code, Refusal};
use crate::id::Home;
use crate::operation::{Command, Reply, Tick};
use crate::time::TimestampMs;

/// Runs one command over the facts at `now`.
pub fn apply(facts: &impl Facts, command: &Command, now: TimestampMs) -> Result<Step, Needs> {
    if let Err(refusal) = check(facts.settings(), command) {
        return Ok(Step::refused(refusal));
    }
    let step = match decide(facts, command, now) {
        Ok(step) => step,
        Err(Halt::Needs(needs)) => return Err(needs),
        Err(Halt::Refused(refused)) => {
            let (refusal, changes) = *refused;
            Step { reply: Err(refusal), changes }
        }
    };
    let mut step = flow::settle(facts, step, now)?;
    lane::note_ageing(facts, &mut step.changes.executions)?;
    Ok(step)
}

/// Refuses what no fact could make right: a malformed command, or a partition that does not exist.
pub fn check(settings: &Settings, command: &Command) -> Result<(), Refusal> {
    if let Some(id) = command.execution_id() {
        check_partition(id, &settings.partitions)?;
    }
    check_home(settings, command)?;
    check_tick(settings, command)?;
    command.check()
}

/// An execution and the flow that it is about stand in one partition, or have nothing in common.
fn check_home(settings: &Settings, command: &Command) -> Result<(), Refusal> {
    let document = command.document_id(&settings.partitions);
    let (Some(id), Some(document)) = (command.execution_id(), document) else { return Ok(()) };
    if document.home == Home::partition(id.partition()) {
        return Ok(());
    }
    match command {
        Command::SetGroupPolicy(_) => {
            let detail = format!("{id} is not a member of the flow");
            Err(Refusal::new(Code::ExecutionNotInFlow, detail))
        }
        _ => {
            let detail = format!("members of this flow stand in {}", document.home);
            Err(Refusal::invalid("execution_id", detail))
        }
    }
}

/// A tick names a home that exists.
fn check_tick(settings: &Settings, command: &Command) -> Result<(), Refusal> {
    match command {
        Command::Tick(Tick { home: Some(home), .. }) if !home.exists(&settings.partitions) => {
            Err(Refusal::invalid("home", format!("there is no partition {home}")))
        }
        _ => Ok(()),
    }
}

fn decide(facts: &impl Facts, command: &Command, now: TimestampMs) -> Result<Step, Halt> {
    Ok(match command {
        Command::Submit(op) => submit::submit(facts, op, now)?.map(Reply::Submit),
        Command::Renew(op) => renew::renew(facts, op, now)?.map(Reply::Renew),
        Command::AppendFrames(op) => frame::append(facts, op, now)?.map(Reply::AppendFrames),
        Command::UpdateProgress(op) => progress::update(facts, op, now)?.map(Reply::UpdateProgress),
        Command::Complete(op) => complete::complete(facts, op, now)?.map(Reply::Complete),
        Command::Fail(op) => fail::fail(facts, op, now)?.map(Reply::Fail),
        Command::Cancel(op) => cancel::cancel(facts, op, now)?.map(Reply::Cancel),
        Command::Delay(op) => delay::delay(facts, op, now)?.map(Reply::Delay),
        Command::Revoke(op) => revoke::revoke(facts, op, now)?.map(Reply::Revoke),
        Command::Hold(op) => hold::hold(facts, op, now)?.map(Reply::Hold),
        Command::Release(op) => hold::release(facts, op, now)?.map(Reply::Release),
        Command::ChangePriority(op) => priority::change(facts, op, now)?.map(Reply::ChangePriority),
        Command::SetTags(op) => tags::set(facts, op, now)?.map(Reply::SetTags),
        Command::Replay(op) => replay::replay(facts, op, now)?.map(Reply::Replay),
        Command::Delete(op) => delete::delete(facts, op, now)?.map(Reply::Delete),
        Command::ExpireExecution(op) => tick::expire(facts, op, now)?.map(Reply::ExpireExecution),
        Command::PromoteDelayed(op) => tick::promote(facts, op, now)?.map(Reply::PromoteDelayed),
        Command::MarkLeaseExpired(op) => {
            tick::mark_lease_expired(facts, op, now)?.map(Reply::MarkLeaseExpired)
        }
        Command::Tick(op) => tick::tick(facts, op, now)?.map(Reply::Tick),
        Command::IssueClaimGrant(op) => grant::issue(facts, op, now)?.map(Reply::IssueClaimGrant),
        Command::ClaimExecution(op) => grant::claim(facts, op, now)?.map(Reply::ClaimExecution),
        Command::ClaimResumedExecution(op) => {
            grant::claim_resumed(facts, op, now)?.map(Reply::ClaimResumedExecution)
        }
        Command::IssueGrantAndClaim(op) => {
            grant::grant_and_claim(facts, op, now)?.map(Reply::IssueGrantAndClaim)
        }
        Command::IssueReclaimGrant(op) => {
            grant::issue_reclaim(facts, op, now)?.map(Reply::IssueReclaimGrant)
        }
        Command::ReclaimExecution(op) => {
            grant::reclaim(facts, op, now)?.map(Reply::ReclaimExecution)
        }
        Command::SeedSecret(op) => secret::seed(facts, op)?.map(Reply::SeedSecret),
        Command::RotateSecret(op) => secret::rotate(facts, op, now)?.map(Reply::RotateSecret),
        Command::CreatePendingWaitpoint(op) => {
            waitpoint::create(facts, op, now)?.map(Reply::CreatePendingWaitpoint)
        }
        Command::CloseWaitpoint(op) => waitpoint::close(facts, op, now)?.map(Reply::CloseWaitpoint),
        Command::IssueToken(op) => waitpoint::issue(facts, op, now)?.map(Reply::IssueToken),
        Command::Suspend(op) => suspend::suspend(facts, op, now)?.map(Reply::Suspend),
        Command::Resume(op) => suspend::resume(facts, op, now)?.map(Reply::Resume),
        Command::DeliverSignal(op) => signal::deliver(facts, op, now)?.map(Reply::DeliverSignal),
        Command::DeliverApproval(op) => {
            signal::approve(facts, op, now)?.map(Reply::DeliverApproval)
        }
        other => return decide_others(facts, other, now),
    })
}

/// What is not about one execution alone.
fn decide_others(facts: &impl Facts, command: &Command, now: TimestampMs) -> Result<Step, Halt> {
    if let Some(step) = decide_flow(facts, command, now)? {
        return Ok(step);
    }
    match decide_limits(facts, command, now)? {
        Some(step) => Ok(step),
        None => decide_fleet(facts, command, now),
    }
}

/// Flows; none if it is about something else.
fn decide_flow(
    facts: &impl Facts,
    command: &Command,
    now: TimestampMs,
) -> Result<Option<Step>, Halt> {
    Ok(Some(match command {
        Command::WaitChildren(op) => flow::wait(facts, op, now)?.map(Reply::WaitChildren),
        Command::SubmitFlow(op) => flow::submit(facts, op, now)?.map(Reply::SubmitFlow),
        Command::CreateFlow(op) => flow::create(facts, op, now)?.map(Reply::CreateFlow),
        Command::AddToFlow(op) => flow::add(facts, op, now)?.map(Reply::AddToFlow),
        Command::StageEdge(op) => flow::stage(facts, op, now)?.map(Reply::StageEdge),
        Command::ApplyEdge(op) => flow::apply(facts, op, now)?.map(Reply::ApplyEdge),
        Command::SetGroupPolicy(op) => flow::set_policy(facts, op, now)?.map(Reply::SetGroupPolicy),
        Command::ResolveEdge(op) => flow::resolve(facts, op, now)?.map(Reply::ResolveEdge),
        Command::CancelFlow(op) => flow::cancel(facts, op, now)?.map(Reply::CancelFlow),
        Command::ReplayFlow(op) => flow::replay_flow(facts, op, now)?.map(Reply::ReplayFlow),
        Command::DeleteFlow(op) => flow::delete(facts, op, now)?.map(Reply::DeleteFlow),
        Command::CascadeCompletion(op) => {
            flow::cascade(facts, op, now)?.map(Reply::CascadeCompletion)
        }
        Command::SetFlowTags(op) => flow::set_tags(facts, op, now)?.map(Reply::SetFlowTags),
        _ => return Ok(None),
    }))
}

/// Budgets and quota policies; none if it is about something else.
fn decide_limits(
    facts: &impl Facts,
    command: &Command,
    now: TimestampMs,
) -> Result<Option<Step>, Halt> {
    Ok(Some(match command {
        Command::CreateBudget(op) => budget::create(facts, op, now)?.map(Reply::CreateBudget),
        Command::UpdateBudget(op) => budget::update(facts, op, now)?.map(Reply::UpdateBudget),
        Command::ReportUsage(op) => {
            budget::report(facts, &op.report(), now)?.map(Reply::ReportUsage)
        }
        Command::ReportUsageAdmin(op) => {
            budget::report(facts, &op.report(), now)?.map(Reply::ReportUsageAdmin)
        }
        Command::RecordSpend(op) => {
            budget::report(facts, &op.report(), now)?.map(Reply::RecordSpend)
        }
        Command::ReleaseBudget(op) => budget::release(facts, op, now)?.map(Reply::ReleaseBudget),
        Command::RecountBudget(op) => budget::recount(facts, op, now)?.map(Reply::RecountBudget),
        Command::DisownUsage(op) => budget::disown(facts, op, now)?.map(Reply::DisownUsage),
        Command::ResetBudget(op) => budget::reset(facts, op, now)?.map(Reply::ResetBudget),
        Command::DeleteBudget(op) => budget::delete(facts, op, now)?.map(Reply::DeleteBudget),
        Command::AttachBudget(op) => budget::attach(facts, op, now)?.map(Reply::AttachBudget),
        Command::SettleBudget(op) => budget::settle(facts, op, now)?.map(Reply::SettleBudget),
        Command::EndForBudget(op) => {
            admission::end_for_budget(facts, op, now)?.map(Reply::EndForBudget)
        }
        Command::CreateQuotaPolicy(op) => {
            quota::create(facts, op, now)?.map(Reply::CreateQuotaPolicy)
        }
        Command::UpdateQuotaPolicy(op) => {
            quota::update(facts, op, now)?.map(Reply::UpdateQuotaPolicy)
        }
        Command::DeleteQuotaPolicy(op) => {
            quota::delete(facts, op, now)?.map(Reply::DeleteQuotaPolicy)
        }
        Command::CheckAdmission(op) => quota::check(facts, op, now)?.map(Reply::CheckAdmission),
        Command::ConfirmAdmission(op) => {
            quota::confirm(facts, op, now)?.map(Reply::ConfirmAdmission)
        }
        Command::ReleaseAdmission(op) => {
            quota::release(facts, op, now)?.map(Reply::ReleaseAdmission)
        }
        Command::SettleWaking(op) => quota::settle_waking(facts, op, now)?.map(Reply::SettleWaking),
        _ => return Ok(None),
    }))
}

/// Workers, lanes, and who may run what.
fn decide_fleet(facts: &impl Facts, command: &Command, now: TimestampMs) -> Result<Step, Halt> {
    Ok(match command {
        Command::RegisterWorker(op) => worker::register(facts, op, now)?.map(Reply::RegisterWorker),
        Command::HeartbeatWorker(op) => {
            worker::heartbeat(facts, op, now)?.map(Reply::HeartbeatWorker)
        }
        Command::NoteCancellations(op) => {
            worker::note_cancellations(facts, op, now)?.map(Reply::NoteCancellations)
        }
        Command::DrainWorker(op) => worker::drain(facts, op, now)?.map(Reply::DrainWorker),
        Command::DeregisterWorker(op) => {
            worker::deregister(facts, op, now)?.map(Reply::DeregisterWorker)
        }
        Command::MarkWorkerDead(op) => {
            worker::mark_dead(facts, op, now)?.map(Reply::MarkWorkerDead)
        }
        Command::SettleWorkerLoss(op) => {
            worker::settle_loss(facts, op, now)?.map(Reply::SettleWorkerLoss)
        }
        Command::LoseLease(op) => worker::lose_lease(facts, op, now)?.map(Reply::LoseLease),
        Command::CreateKey(op) => key::create(facts, op, now)?.map(Reply::CreateKey),
        Command::DeleteKey(op) => key::delete(facts, op, now)?.map(Reply::DeleteKey),
        Command::CreateBulk(op) => bulk::create(facts, op, now)?.map(Reply::CreateBulk),
        Command::SetBulk(op) => bulk::set(facts, op, now)?.map(Reply::SetBulk),
        Command::AdvanceBulk(op) => bulk::advance(facts, op, now)?.map(Reply::AdvanceBulk),
        Command::SetNamespace(op) => namespace::set(facts, op, now)?.map(Reply::SetNamespace),
        Command::SetLane(op) => lane::set(facts, op, now)?.map(Reply::SetLane),
        Command::BlockForAdmission(op) => {
            admission::block(facts, op, now)?.map(Reply::BlockForAdmission)
        }
        Command::Unblock(op) => admission::unblock(facts, op, now)?.map(Reply::Unblock),
        Command::GrantAdmitted(op) => {
            grant::grant_admitted(facts, op, now)?.map(Reply::GrantAdmitted)
        }
        Command::ClaimAdmitted(op) => {
            grant::claim_admitted(facts, op, now)?.map(Reply::ClaimAdmitted)
        }
        Command::VoidAdmission(op) => admission::void(facts, op, now)?.map(Reply::VoidAdmission),
        Command::SettleSlots(op) => {
            admission::settle_slots(facts, op, now)?.map(Reply::SettleSlots)
        }
        other => {
            let detail = format!("{} has no rule", other.name());
            return Err(Refusal::new(Code::Internal, detail).into());
        }
    })
}
