//! The table of stable codes. Codes that no operation raises are reserved: they parse and are
//! documented, and are never sent.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a caller may do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Trying the same again gives the same answer.
    Terminal,
    /// Trying again later may succeed.
    Retryable,
    /// The system asks the caller to hold back.
    Cooperative,
    /// Nothing is wrong: the state is already, or not any more, what was asked for.
    Informational,
    /// The thing changed since the caller looked.
    Precondition,
    /// A defect of FlowFabric.
    Bug,
}

macro_rules! codes {
    ($($group:literal $class:ident $http:literal $exit:literal { $($variant:ident $text:literal)* })*) => {
        /// A stable code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $($($variant,)*)* }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &[Self] = &[$($(Self::$variant,)*)*];

            pub const fn as_str(self) -> &'static str {
                match self { $($(Self::$variant => $text,)*)* }
            }

            pub const fn class(self) -> Class {
                match self { $($(Self::$variant)|* => Class::$class,)* }
            }

            /// Status of an HTTP answer with this code.
            pub const fn http_status(self) -> u16 {
                match self { $($(Self::$variant)|* => $http,)* }
            }

            /// Exit code of a command that ended with this code.
            pub const fn exit_code(self) -> u8 {
                match self { $($(Self::$variant)|* => $exit,)* }
            }

            /// The group of codes it belongs to, in words.
            pub const fn group(self) -> &'static str {
                match self { $($(Self::$variant)|* => $group,)* }
            }
        }

        impl FromStr for Code {
            type Err = ();

            fn from_str(text: &str) -> Result<Self, ()> {
                match text { $($($text => Ok(Self::$variant),)*)* _ => Err(()) }
            }
        }
    };
}

codes! {
    "invalid input" Terminal 400 5 {
        InvalidInput "invalid_input"
        InvalidPolicyJson "invalid_policy_json"
        InvalidCapabilities "invalid_capabilities"
        InvalidTagKey "invalid_tag_key"
        InvalidKid "invalid_kid"
        InvalidSecretHex "invalid_secret_hex"
        InvalidGraceMs "invalid_grace_ms"
        InvalidWaitpointKey "invalid_waitpoint_key"
        InvalidBlockingReason "invalid_blocking_reason"
        InvalidBudgetScope "invalid_budget_scope"
        InvalidQuotaSpec "invalid_quota_spec"
        InvalidOffset "invalid_offset"
        InvalidCursor "invalid_cursor"
        InvalidFrameType "invalid_frame_type"
        CountLimitExceedsHardCap "count_limit_exceeds_hard_cap"
        FenceRequired "fence_required"
        PartialFenceTriple "partial_fence_triple"
        HandleFromOtherBackend "handle_from_other_backend"
    }
    "too large" Terminal 413 5 {
        PayloadTooLarge "payload_too_large"
        RetentionLimitExceeded "retention_limit_exceeded"
    }
    "idempotency" Terminal 422 4 {
        IdempotencyMismatch "idempotency_mismatch"
    }
    "not authenticated" Terminal 401 6 {
        Unauthenticated "unauthenticated"
        MissingToken "missing_token"
        InvalidToken "invalid_token"
        TokenExpired "token_expired"
        WaitpointNotTokenBound "waitpoint_not_token_bound"
    }
    "not allowed" Terminal 403 6 {
        Forbidden "forbidden"
        Unauthorized "unauthorized"
        BudgetOverrideNotAllowed "budget_override_not_allowed"
    }
    "not found" Terminal 404 3 {
        ExecutionNotFound "execution_not_found"
        FlowNotFound "flow_not_found"
        AttemptNotFound "attempt_not_found"
        WaitpointNotFound "waitpoint_not_found"
        BudgetNotFound "budget_not_found"
        QuotaPolicyNotFound "quota_policy_not_found"
        WorkerNotFound "worker_not_found"
        LaneNotFound "lane_not_found"
        StreamNotFound "stream_not_found"
        ResultNotFound "result_not_found"
        RouteNotFound "route_not_found"
        BulkNotFound "bulk_not_found"
        KeyNotFound "key_not_found"
        EdgeNotFound "edge_not_found"
    }
    "lease lost" Terminal 409 4 {
        StaleLease "stale_lease"
        LeaseExpired "lease_expired"
        LeaseRevoked "lease_revoked"
        ExecutionNotActive "execution_not_active"
        StaleOwnerCannotAppend "stale_owner_cannot_append"
        StreamClosed "stream_closed"
        InvalidLeaseForSuspend "invalid_lease_for_suspend"
    }
    "state or conflict" Terminal 409 4 {
        TargetNotSignalable "target_not_signalable"
        SignalLimitExceeded "signal_limit_exceeded"
        ExecutionNotTerminal "execution_not_terminal"
        MaxReplaysExhausted "max_replays_exhausted"
        MaxRetriesExhausted "max_retries_exhausted"
        MaxReclaimsExceeded "max_reclaims_exceeded"
        ReplayNotAllowed "replay_not_allowed"
        ResumeConditionNotMet "resume_condition_not_met"
        InvalidDependency "invalid_dependency"
        ExecutionAlreadyInFlow "execution_already_in_flow"
        AlreadyMemberOfDifferentFlow "already_member_of_different_flow"
        CycleDetected "cycle_detected"
        ExecutionNotInFlow "execution_not_in_flow"
        DependencyAlreadyExists "dependency_already_exists"
        SelfReferencingEdge "self_referencing_edge"
        FlowAlreadyTerminal "flow_already_terminal"
        FlowNotTerminal "flow_not_terminal"
        EdgeGroupFixed "edge_group_fixed"
        InvalidWaitpointForExecution "invalid_waitpoint_for_execution"
        NotRunnable "not_runnable"
        Terminal "terminal"
        AttemptNotStarted "attempt_not_started"
        ExecutionNotEligibleForAttempt "execution_not_eligible_for_attempt"
        BudgetAttachConflict "budget_attach_conflict"
        QuotaAttachConflict "quota_attach_conflict"
        RotationConflict "rotation_conflict"
        PartitionMismatch "partition_mismatch"
        LaneMismatch "lane_mismatch"
        LaneNotAccepting "lane_not_accepting"
        InstanceInUse "instance_in_use"
    }
    "try another way" Retryable 409 4 {
        UseClaimResumedExecution "use_claim_resumed_execution"
        NotAResumedExecution "not_a_resumed_execution"
        ExecutionNotLeaseable "execution_not_leaseable"
        LeaseConflict "lease_conflict"
        InvalidClaimGrant "invalid_claim_grant"
        ClaimGrantExpired "claim_grant_expired"
        NoEligibleExecution "no_eligible_execution"
        StaleGraphRevision "stale_graph_revision"
        CapabilityMismatch "capability_mismatch"
        WorkerNotRegistered "worker_not_registered"
    }
    "limit" Retryable 429 7 {
        RateLimitExceeded "rate_limit_exceeded"
        ConcurrencyLimitExceeded "concurrency_limit_exceeded"
        RateLimited "rate_limited"
        ResourceExhausted "resource_exhausted"
    }
    "fault" Retryable 503 8 {
        Unavailable "unavailable"
        StoreBusy "store_busy"
        OutcomeUnknown "outcome_unknown"
        HmacSecretNotInitialized "hmac_secret_not_initialized"
    }
    "time is over" Retryable 504 8 {
        Timeout "timeout"
    }
    "spending" Cooperative 409 7 {
        BudgetExceeded "budget_exceeded"
    }
    "already so" Informational 409 4 {
        ExecutionNotSuspended "execution_not_suspended"
        AlreadySuspended "already_suspended"
        WaitpointClosed "waitpoint_closed"
        DuplicateSignal "duplicate_signal"
        ExecutionNotEligible "execution_not_eligible"
        ExecutionNotInEligibleSet "execution_not_in_eligible_set"
        GrantAlreadyExists "grant_already_exists"
        ExecutionNotReclaimable "execution_not_reclaimable"
        NoActiveLease "no_active_lease"
        OkAlreadyApplied "ok_already_applied"
        AttemptAlreadyTerminal "attempt_already_terminal"
        StreamAlreadyClosed "stream_already_closed"
        BudgetSoftExceeded "budget_soft_exceeded"
        WaitpointAlreadyExists "waitpoint_already_exists"
        WaitpointNotOpen "waitpoint_not_open"
        WaitpointNotPending "waitpoint_not_pending"
        PendingWaitpointExpired "pending_waitpoint_expired"
        WaitpointPendingUseBufferScript "waitpoint_pending_use_buffer_script"
        NotBlockedByDeps "not_blocked_by_deps"
        DepsNotSatisfied "deps_not_satisfied"
    }
    "precondition" Precondition 412 4 {
        PreconditionFailed "precondition_failed"
    }
    "method" Terminal 405 5 {
        MethodNotAllowed "method_not_allowed"
    }
    "encoding" Terminal 415 5 {
        UnsupportedEncoding "unsupported_encoding"
    }
    "headers" Terminal 431 5 {
        HeadersTooLarge "headers_too_large"
    }
    "bug" Bug 500 1 {
        Internal "internal"
        InvariantViolation "invariant_violation"
        Corruption "corruption"
        ActiveAttemptExists "active_attempt_exists"
        AttemptNotInCreatedState "attempt_not_in_created_state"
    }
}

impl Code {
    pub const fn is_retryable(self) -> bool {
        matches!(self.class(), Class::Retryable)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_parses_back() {
        for &code in Code::ALL {
            assert_eq!(code.as_str().parse(), Ok(code));
        }
        assert!("no_such_code".parse::<Code>().is_err());
    }

    #[test]
    fn statuses_and_exit_codes_agree_with_the_class() {
        for &code in Code::ALL {
            match code.class() {
                Class::Bug => assert_eq!((code.http_status(), code.exit_code()), (500, 1)),
                Class::Precondition => assert_eq!(code.http_status(), 412),
                _ => assert!((400..=504).contains(&code.http_status()), "{code}"),
            }
        }
    }
}
