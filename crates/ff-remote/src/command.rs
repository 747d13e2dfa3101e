//! Which operation is which request.

use ff_core::error::EngineError;
use ff_core::operation::{Command, Reply};

use crate::exchange::Exchange;
use crate::link::Link;
use crate::no_route;
use crate::operations::{execution, flow, grant, limit, manage, output, system, wait, worker};

macro_rules! served {
    (
        by_reference { $($asked:ident => $asks:path;)* }
        by_value { $($operation:ident => $exchange:path;)* }
    ) => {
        /// The names of the operations that have a route.
        #[cfg(test)]
        pub(crate) const SERVED: &[&str] = &[
            $(<ff_core::operation::$asked as ff_core::operation::Operation>::NAME,)*
            $(<ff_core::operation::$operation as ff_core::operation::Operation>::NAME,)*
        ];

        /// The request that an operation is.
        pub(crate) fn exchange(
            link: &Link,
            command: Command,
        ) -> Result<Exchange<Reply>, EngineError> {
            match command {
                $(Command::$asked(op) => Ok($asks(link, &op)?.map(Reply::$asked)),)*
                $(Command::$operation(op) => Ok($exchange(link, op)?.map(Reply::$operation)),)*
                other => Err(no_route::listed(other.name())),
            }
        }
    };
}

served! {
    by_reference {
        Renew => execution::renew;
        Release => manage::release;
        ChangePriority => manage::change_priority;
        SetTags => manage::set_tags;
        Replay => manage::replay;
        Delete => manage::delete;
        SetBulk => manage::set_bulk;
        IssueToken => wait::issue_token;
        ApplyEdge => flow::apply_edge;
        DeleteFlow => flow::delete;
        SetFlowTags => flow::set_tags;
        ReleaseBudget => limit::release_budget;
        ResetBudget => limit::reset_budget;
        DeleteBudget => limit::delete_budget;
        DeleteQuotaPolicy => limit::delete_quota;
        DeleteKey => system::delete_key;
    }
    by_value {
        Submit => execution::submit;
        UpdateProgress => execution::progress;
        Complete => execution::complete;
        Fail => execution::fail;
        Delay => execution::delay;
        WaitChildren => execution::wait_children;
        AppendFrames => output::append;
        ClaimExecution => grant::claim;
        ClaimResumedExecution => grant::claim_resumed;
        IssueGrantAndClaim => grant::grant_and_claim;
        IssueReclaimGrant => grant::reclaim;
        Cancel => manage::cancel;
        Revoke => manage::revoke;
        Hold => manage::hold;
        Resume => manage::resume;
        CreateBulk => manage::create_bulk_alone;
        CreatePendingWaitpoint => wait::create;
        CloseWaitpoint => wait::close;
        Suspend => wait::suspend;
        DeliverSignal => wait::signal;
        DeliverApproval => wait::approve;
        SubmitFlow => flow::submit;
        CreateFlow => flow::create;
        AddToFlow => flow::add_member;
        StageEdge => flow::stage_edge;
        SetGroupPolicy => flow::set_group;
        CancelFlow => flow::cancel;
        ReplayFlow => flow::replay;
        CreateBudget => limit::create_budget;
        UpdateBudget => limit::update_budget;
        ReportUsage => limit::report;
        ReportUsageAdmin => limit::report_admin;
        CreateQuotaPolicy => limit::create_quota;
        UpdateQuotaPolicy => limit::update_quota;
        RegisterWorker => worker::register;
        DeregisterWorker => worker::leave;
        DrainWorker => worker::drain;
        MarkWorkerDead => worker::mark_dead;
        SetLane => system::set_lane;
        SetNamespace => system::set_namespace;
    }
}
