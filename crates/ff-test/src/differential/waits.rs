//! The part of random sequences that suspends, signals and rotates keys.

use bytes::Bytes;
use ff_core::content::Content;
use ff_core::id::{
    ExecutionId, IdempotencyKey, Kid, LeaseFence, SignalId, SignalName, SuspensionId, WaitpointId,
    WaitpointKey,
};
use ff_core::operation::{
    Binding, CloseWaitpoint, Command, CreatePendingWaitpoint, Decision, DeliverApproval,
    DeliverSignal, IssueToken, IssuedWaitpoint, Message, Remint, Reply, Resume, RotateSecret,
    Suffix, Suspend, SuspendTimeout, WaitpointRef,
};
use ff_core::state::{
    Condition, Count, CountKind, Matcher, ResumePolicy, SetMode, SuspensionReason, TimeoutBehavior,
};
use ff_core::time::TimestampMs;
use ff_core::token::Secret;
use uuid::Uuid;

use super::op::{FenceOf, Target};

/// One such operation. Waitpoints are named by their place among those made so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitOp {
    Pending { fence: FenceOf, uuid: u128, key: u8, expires_ms: Option<i64>, ttl_ms: Option<u64> },
    Suspend(Box<SuspendOp>),
    Resume(Target, Option<u64>),
    Signal(SignalOp),
    Approve { target: Target, key: u8, uuid: u128, deny: bool },
    Close(Place),
    Token { place: Place, remint: Option<Option<u64>> },
    Rotate { kid: u8, grace_ms: u64 },
}

/// Which waitpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// By its place among those made so far, counted from the newest.
    Made(usize),
    /// By a name, of any execution.
    Named(Target, u8),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuspendOp {
    pub fence: FenceOf,
    pub uuid: u128,
    /// Names of fresh waitpoints, one bit each.
    pub fresh: u8,
    /// Waitpoints that should be pending.
    pub pending: Vec<usize>,
    pub condition: u8,
    pub names: u8,
    pub policy: u8,
    pub timeout_ms: Option<i64>,
    pub behavior: Option<TimeoutBehavior>,
    pub metadata: bool,
    pub key: Option<u8>,
    pub ttl_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalOp {
    pub place: Place,
    /// Whose token it shows; none: its own.
    pub token: Option<usize>,
    pub has_token: bool,
    pub uuid: u128,
    pub name: u8,
    pub source: u8,
    pub bytes: u16,
    pub key: Option<u8>,
}

/// Every waitpoint that was made so far, with its newest token.
#[derive(Debug, Default)]
pub(super) struct Made(Vec<(ExecutionId, IssuedWaitpoint)>);

const NAMES: [&str; 4] = ["yes", "no", "maybe", "__timeout__"];

impl Made {
    /// Notes what a reply brought.
    pub(super) fn note(&mut self, id: Option<ExecutionId>, reply: &Reply) {
        let Some(id) = id else { return };
        let issued = match reply {
            Reply::CreatePendingWaitpoint(issued) | Reply::IssueToken(issued) => {
                std::slice::from_ref(issued)
            }
            Reply::Suspend(suspended) => &suspended.waitpoints,
            _ => return,
        };
        self.0.extend(issued.iter().map(|issued| (id, issued.clone())));
    }

    fn get(&self, n: usize) -> Option<&(ExecutionId, IssuedWaitpoint)> {
        self.0.get(self.0.len().checked_sub(1 + n)?)
    }

    fn find(
        &self,
        place: Place,
        id: &impl Fn(Target) -> ExecutionId,
    ) -> Option<(ExecutionId, WaitpointRef)> {
        Some(match place {
            Place::Named(target, name) => (id(target), WaitpointRef::Key(key(name))),
            Place::Made(n) => {
                let (execution_id, issued) = self.get(n)?;
                (*execution_id, WaitpointRef::Id(issued.waitpoint_id))
            }
        })
    }

    pub(super) fn command(
        &self,
        op: &WaitOp,
        now: TimestampMs,
        shown: impl Fn(FenceOf) -> Option<(ExecutionId, LeaseFence)>,
        id: impl Fn(Target) -> ExecutionId,
    ) -> Option<Command> {
        let later = |ms: i64| TimestampMs(now.0 + ms);
        Some(match op {
            WaitOp::Pending { fence, uuid, key: name, expires_ms, ttl_ms } => {
                let (execution_id, fence) = shown(*fence)?;
                CreatePendingWaitpoint {
                    execution_id,
                    fence,
                    waitpoint_id: WaitpointId::new(Uuid::from_u128(*uuid)),
                    key: key(*name),
                    expires_at: expires_ms.map(later),
                    token_ttl_ms: *ttl_ms,
                }
                .into()
            }
            WaitOp::Suspend(op) => {
                let (execution_id, fence) = shown(op.fence)?;
                self.suspend(op, execution_id, fence, now).into()
            }
            WaitOp::Resume(target, delay_ms) => {
                Resume { execution_id: id(*target), trigger: String::new(), delay_ms: *delay_ms }
                    .into()
            }
            WaitOp::Signal(op) => {
                let (execution_id, waitpoint) = self.find(op.place, &id)?;
                self.signal(op, execution_id, waitpoint).into()
            }
            WaitOp::Approve { target, key: name, uuid, deny } => DeliverApproval {
                execution_id: id(*target),
                waitpoint: WaitpointRef::Key(key(*name)),
                lane: None,
                signal_id: SignalId::new(Uuid::from_u128(*uuid)),
                decision: if *deny { Decision::Deny } else { Decision::Approve },
                name: None,
                suffix: Suffix::default(),
                comment: None,
                operator: "op".to_owned(),
            }
            .into(),
            WaitOp::Close(place) => {
                let (execution_id, waitpoint) = self.find(*place, &id)?;
                CloseWaitpoint { execution_id, waitpoint, reason: "done".to_owned() }.into()
            }
            WaitOp::Token { place, remint } => {
                let (execution_id, waitpoint) = self.find(*place, &id)?;
                let remint = remint.map(|token_ttl_ms| Remint { token_ttl_ms });
                IssueToken { execution_id, waitpoint, remint }.into()
            }
            WaitOp::Rotate { kid, grace_ms } => RotateSecret {
                kid: Kid::new(format!("k{kid}")).expect("a kid"),
                secret: Secret::from_bytes(vec![*kid; 32]).expect("a secret"),
                grace_ms: *grace_ms,
            }
            .into(),
        })
    }

    fn suspend(
        &self,
        op: &SuspendOp,
        execution_id: ExecutionId,
        fence: LeaseFence,
        now: TimestampMs,
    ) -> Suspend {
        let fresh = (0..3).filter(|n| op.fresh & (1 << n) != 0).map(|n| Binding::Fresh {
            waitpoint_id: WaitpointId::new(Uuid::from_u128(op.uuid.wrapping_add(n.into()))),
            key: key(n),
            token_ttl_ms: op.ttl_ms,
        });
        let mut bindings: Vec<_> = fresh.collect();
        let mut keys: Vec<_> = (0..3).filter(|n| op.fresh & (1 << n) != 0).map(key).collect();
        for (_, issued) in op.pending.iter().filter_map(|n| self.get(*n)) {
            bindings.push(Binding::UsePending { waitpoint_id: issued.waitpoint_id });
            keys.push(issued.key.clone());
        }
        let bit = |n: u8| op.policy & (1 << n) != 0;
        Suspend {
            execution_id,
            fence,
            suspension_id: SuspensionId::new(Uuid::from_u128(op.uuid)),
            condition: condition(op.condition, op.names, &keys),
            bindings,
            resume_policy: ResumePolicy {
                consume_matched_signals: bit(0),
                close_waitpoint_on_resume: bit(1),
                retain_signal_buffer_until_closed: bit(2),
                resume_delay_ms: if bit(3) { 300 } else { 0 },
            },
            reason: SuspensionReason("waiting_for_approval".to_owned()),
            requester: None,
            timeout: op.timeout_ms.map(|ms| SuspendTimeout::At(TimestampMs(now.0 + ms))),
            timeout_behavior: op.behavior,
            metadata: op.metadata.then(|| Bytes::from_static(b"go on here")),
            idempotency_key: op.key.map(idempotency_key),
        }
    }

    fn signal(
        &self,
        op: &SignalOp,
        execution_id: ExecutionId,
        waitpoint: WaitpointRef,
    ) -> DeliverSignal {
        let own = match op.place {
            Place::Made(n) => n,
            Place::Named(..) => 0,
        };
        let token = self.get(op.token.unwrap_or(own)).map(|(_, other)| &other.token);
        DeliverSignal {
            execution_id,
            waitpoint,
            token: token.filter(|_| op.has_token).cloned(),
            signal: Message {
                signal_id: SignalId::new(Uuid::from_u128(op.uuid)),
                name: name(op.name),
                category: "test".to_owned(),
                source_type: "bot".to_owned(),
                source_identity: format!("bot-{}", op.source),
                content: Content::new(vec![op.name; op.bytes.into()]),
                correlation_id: None,
                idempotency_key: op.key.map(idempotency_key),
            },
        }
    }
}

fn key(n: u8) -> WaitpointKey {
    WaitpointKey::new(format!("point-{n}")).expect("a key")
}

fn name(n: u8) -> SignalName {
    SignalName::new(NAMES[usize::from(n) % NAMES.len()]).expect("a name")
}

fn idempotency_key(n: u8) -> IdempotencyKey {
    IdempotencyKey::new(format!("once-{n}")).expect("a key")
}

/// A condition over these waitpoints; some are refused.
fn condition(kind: u8, names: u8, keys: &[WaitpointKey]) -> Condition {
    let first = keys.first().cloned().unwrap_or_else(|| key(0));
    let any = Matcher::Wildcard;
    let chosen = || (0..3).filter(|n| names & (1 << n) != 0).map(name).collect::<Vec<_>>();
    let single = |waitpoint: WaitpointKey| Condition::Single {
        waitpoint,
        name: if names & 1 == 0 { any.clone() } else { Matcher::ByName(name(0)) },
    };
    let counted =
        |n, kind| Condition::Count(Count { n, kind, name: any.clone(), waitpoints: keys.to_vec() });
    match kind % 12 {
        0 | 1 => single(first),
        2 => Condition::SignalSet { waitpoint: first, names: chosen(), mode: SetMode::Any },
        3 => Condition::SignalSet { waitpoint: first, names: chosen(), mode: SetMode::All },
        4 => Condition::SignalSet { waitpoint: first, names: chosen(), mode: SetMode::Count(2) },
        5 => Condition::OperatorOnly,
        6 => Condition::TimeoutOnly,
        7 | 8 => Condition::AllOf(keys.iter().cloned().map(single).collect()),
        9 => counted(2, CountKind::DistinctWaitpoints),
        10 => counted(3, CountKind::DistinctSignals),
        _ => counted(2, CountKind::DistinctSources),
    }
}
