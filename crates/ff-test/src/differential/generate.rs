//! Makes random sequences from a seed.

use ff_core::operation::LaneOrder;
use ff_core::state::{EnforcementMode, FailureClass, FrameMode, SoftAction, TimeoutBehavior};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::admissions::{AdmitOp, Admitted};
use super::fleet::FleetOp;
use super::flows::{FlowOp, GraphOp};
use super::grants::{GrantAct, GrantOp};
use super::limits::{LimitOp, ReportForm, ReportOp, SlotOf};
use super::op::{ClaimOp, FenceOf, Op, SubmitOp, Target};
use super::output::{FrameOp, Look, OutputOp, PlaceOp, Question};
use super::waits::{Place, SignalOp, SuspendOp, WaitOp};

/// A sequence of `length` operations; the same seed gives the same sequence.
pub fn generate(seed: u64, length: usize) -> Vec<Op> {
    let mut dice = Dice(StdRng::seed_from_u64(seed), StdRng::seed_from_u64(!seed));
    (0..length).map(|_| dice.op()).collect()
}

/// Conditions have dice of their own: with or without them a seed stands for the same acts.
struct Dice(StdRng, StdRng);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    fn chance(&mut self, percent: u8) -> bool {
        self.0.random_range(0..100) < percent
    }

    fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())].clone()
    }

    fn maybe<T>(&mut self, percent: u8, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.chance(percent) { Some(value(self)) } else { None }
    }

    /// Recent ones more often than old ones.
    fn target(&mut self) -> Target {
        let reach = if self.chance(80) { 5 } else { 60 };
        let place = self.below(reach);
        match self.below(20) {
            0..3 => Target::Submitted(place),
            3..7 => Target::Claimed(place),
            7..9 => Target::Granted(place),
            _ => Target::Standing(self.below(120)),
        }
    }

    fn fence(&mut self) -> FenceOf {
        let reach = if self.chance(85) { 4 } else { 40 };
        let task = self.below(reach);
        match self.below(40) {
            0 => FenceOf::WrongEpoch(task),
            1 => FenceOf::WrongAttempt(task),
            2..10 => FenceOf::WrongExecution(task, self.target()),
            _ => FenceOf::Task(task),
        }
    }

    fn op(&mut self) -> Op {
        match self.below(254) {
            0..18 => Op::Submit(self.submit()),
            18..34 => Op::Claim(self.claim()),
            34..43 => self.worker_end(),
            43..51 | 216..220 => Op::Wait(self.wait()),
            51..54 | 171..174 => Op::Renew(self.fence(), self.maybe_ttl()),
            54..57 | 174..177 => Op::Progress(self.fence(), self.pick(&[0, 50, 100, 101])),
            57..66 | 111..113 | 180..184 => Op::Wait(self.signal()),
            66..80 | 113..121 | 184..189 => self.operator(),
            80..90 => self.time(),
            90..99 => Op::Tick(self.pick(&[1, 2, 1000])),
            99..111 | 189..192 => Op::Grant(self.grant()),
            121..129 => Op::Output(self.append()),
            129..131 => Op::Output(OutputOp::Look(self.look())),
            131..171 => Op::Flow(self.flow()),
            192..204 => Op::Limit(self.budget()),
            204..216 => Op::Limit(self.quota()),
            220..230 => Op::Fleet(self.fleet()),
            230..246 => Op::Admit(self.admission()),
            246..249 => Op::Grant(self.grant()),
            249..251 => self.operator(),
            _ => self.pick(&[Op::Compare, Op::Trim(0), Op::Trim(5_000), Op::Trim(60_000)]),
        }
    }

    /// A revision that nothing has: those of flows and their members are each store's own.
    fn no_revision(&mut self) -> Option<u64> {
        (self.1.random_range(0..100) < 20).then_some(0)
    }

    /// A revision that a thing may have, for a change on condition.
    fn revision(&mut self) -> Option<u64> {
        (self.1.random_range(0..100) < 25).then(|| self.1.random_range(0..6))
    }

    fn maybe_ttl(&mut self) -> Option<u64> {
        self.maybe(30, |dice| dice.pick(&[99, 100, 1_000, 30_000, 3_600_001]))
    }

    fn submit(&mut self) -> SubmitOp {
        SubmitOp {
            uuid: self.0.random(),
            again: self.maybe(12, Self::target),
            namespace: self.pick(&[0, 0, 0, 1]),
            lane: self.pick(&[0, 0, 0, 1, 2]),
            capabilities: self.pick(&[0, 0, 0, 1, 2, 3]),
            priority: self.pick(&[0, 0, 0, 1, 5, 5, 9_000, 10_000, -3]),
            policy: self.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
            key: self.maybe(20, |dice| dice.pick(&[0, 1, 2])),
            payload: self.pick(&[0, 0, 1, 2]),
            delay_ms: self.maybe(15, |dice| dice.pick(&[-5, 0, 1, 500, 5_000])),
            deadline_ms: self.maybe(10, |dice| dice.pick(&[-1, 0, 400, 3_000, 40_000])),
            held: self.chance(5),
            tagged: self.chance(20),
            limits: self.limits(),
        }
    }

    fn claim(&mut self) -> ClaimOp {
        ClaimOp {
            seed: self.0.random(),
            namespace: self.pick(&[0, 0, 0, 1]),
            lanes: self.pick(&[1, 1, 3, 7, 2]),
            order: self.pick(&[LaneOrder::Weighted, LaneOrder::Ordered]),
            capabilities: self.pick(&[0, 1, 3, 3, 3]),
            max: self.pick(&[0, 1, 1, 1, 1, 1, 2, 5, 1000, 1001]),
            ttl_ms: self.pick(&[100, 1_000, 5_000, 30_000]),
            instance: self.pick(&[0, 1]),
            sets_aside: self.chance(10),
        }
    }

    fn worker_end(&mut self) -> Op {
        let fence = self.fence();
        match self.below(10) {
            0..3 => Op::Complete {
                fence,
                result: self.maybe(70, |dice| dice.pick(&[0, 1, 2])),
                next: self.maybe(30, Self::claim),
            },
            3..7 => Op::Fail {
                fence,
                class: self.maybe(20, |dice| dice.pick(&FailureClass::ALL)),
                category: self.pick(&[0, 0, 0, 1, 2, 3]),
                retry_after_ms: self.maybe(20, |dice| dice.pick(&[0, 50, 20_000])),
            },
            7..9 => Op::Delay { fence, ms: self.pick(&[-10, 0, 1, 300, 4_000]) },
            _ => Op::CancelByHolder(fence),
        }
    }

    fn operator(&mut self) -> Op {
        let target = self.target();
        match self.below(41) {
            0..2 => Op::Cancel(target),
            2..5 => Op::Revoke(target, self.maybe(40, Self::fence)),
            5..8 => Op::Hold(target),
            8..11 => Op::Release(target),
            11..13 | 37..39 => Op::ChangePriority(target, self.pick(&[0, 1, 5, 9_000])),
            13..15 => Op::SetTags(target, self.pick(&[0, 1, 2, 3]), self.no_revision()),
            15..18 | 30..34 => Op::Replay(target),
            18..20 | 36 => Op::Delete(target),
            20 => Op::CompleteByOperator(target),
            21 => Op::FailByOperator(target),
            22 => Op::DelayByOperator(target, self.pick(&[0, 100, 5_000])),
            23 | 28 | 29 | 39 | 40 => Op::Expire(target),
            24..26 | 34 => Op::Promote(target),
            _ => Op::MarkLeaseExpired(target),
        }
    }

    fn grant(&mut self) -> GrantOp {
        let act = match self.below(24) {
            0..7 => GrantAct::Issue,
            7..11 => GrantAct::Claim,
            11..14 => GrantAct::ClaimResumed,
            14..16 => GrantAct::GrantAndClaim,
            16..19 => GrantAct::IssueReclaim,
            _ => GrantAct::Reclaim,
        };
        let issues = matches!(act, GrantAct::Issue | GrantAct::IssueReclaim);
        let recent = Target::Granted(self.below(3));
        GrantOp {
            act,
            target: if issues || self.chance(60) { self.target() } else { recent },
            worker: self.pick(&[0, 0, 0, 1]),
            instance: self.pick(&[0, 0, 1]),
            other_lane: self.chance(5),
            capabilities: self.pick(&[3, 3, 3, 1, 0]),
            grant_ttl_ms: self.pick(&[1, 50, 1_000, 5_000, 60_000, 60_001]),
            lease_ttl_ms: self.pick(&[100, 1_000, 5_000, 30_000, 99]),
            lease: self.0.random(),
            cap: self.maybe(20, |dice| dice.pick(&[0, 1, 5])),
            slot: self.maybe(25, |dice| dice.pick(&[1, 1, 2])),
        }
    }

    fn fleet(&mut self) -> FleetOp {
        let (target, place) = (self.target(), (self.pick(&[0, 0, 0, 1]), self.pick(&[0, 1])));
        match self.below(21) {
            0..4 => FleetOp::Register {
                place,
                boot: self.pick(&[0, 0, 0, 1]),
                ttl_ms: self.pick(&[999, 1_000, 20_000, 600_000, 600_000]),
            },
            4..6 => FleetOp::Beat { place, boot: self.pick(&[0, 0, 0, 1]) },
            6 => FleetOp::Leave { place, how: self.pick(&[0, 1, 2]) },
            7 => FleetOp::Lose(self.fence(), self.chance(50)),
            8..10 => FleetOp::Lose(FenceOf::WrongExecution(0, target), false),
            10..12 => FleetOp::SetLane {
                namespace: place.0,
                lane: self.pick(&[1, 2, 2]),
                state: self.maybe(80, |dice| dice.pick(&[0, 0, 0, 1, 2, 3])),
                ageing_ms: self.maybe(50, |dice| dice.pick(&[0, 1, 1_000])),
                attach: self.maybe(50, |dice| dice.pick(&[0, 0, 1, 2, 3])),
                reason: place.1,
                expected_revision: self.revision(),
            },
            19 => FleetOp::SetNamespace {
                namespace: place.0,
                attach: Some(self.pick(&[0, 0, 0, 1, 2])),
                retention_ms: self.maybe(30, |dice| dice.pick(&[0, 1_000, 40_000])),
                expected_revision: self.revision(),
            },
            12..16 => FleetOp::Block(target, self.pick(&[0, 1, 2])),
            16..19 => FleetOp::Unblock(target, self.pick(&[0, 1, 2])),
            _ => FleetOp::Look(place.0),
        }
    }

    /// Few stand under limits of their own.
    fn limits(&mut self) -> u8 {
        if self.chance(15) { self.pick(&[1, 2, 3]) } else { 0 }
    }

    fn admitted(&mut self) -> Admitted {
        if self.chance(50) {
            Admitted::Applicant(self.below(4))
        } else {
            Admitted::Target(self.target())
        }
    }

    fn admission(&mut self) -> AdmitOp {
        let (budget, quota) = (self.below(3), self.below(3));
        match self.below(23) {
            5..7 | 20..23 => AdmitOp::Grant {
                of: self.admitted(),
                quota: self.maybe(60, |_| quota),
                ttl_ms: self.pick(&[0, 1, 1_000, 20_000]),
            },
            0..5 => AdmitOp::Lease {
                of: self.admitted(),
                quota: self.maybe(60, |_| quota),
                instance: self.pick(&[0, 2, 2, 2, 2]),
            },
            7..10 => AdmitOp::Void(self.admitted()),
            10..12 => AdmitOp::Block { of: self.admitted(), budget: self.maybe(50, |_| budget) },
            12..15 => AdmitOp::SettleSlots {
                target: self.target(),
                quota: self.pick(&[0, quota]),
                epoch: self.pick(&[1, 1, 2]),
            },
            15..17 => AdmitOp::End {
                of: match self.below(2) {
                    0 => self.fence(),
                    _ => FenceOf::WrongExecution(0, self.target()),
                },
                budget,
                action: self.pick(&[0, 1, 2]),
            },
            17 => AdmitOp::SettleWaking { quota, targets: vec![self.target(), self.target()] },
            18 => AdmitOp::Attach {
                budget,
                scope: self.pick(&[0, 0, 0, 1]),
                namespace: self.pick(&[0, 0, 1]),
            },
            _ => AdmitOp::SettleBudget {
                budget,
                done: self.pick(&[0, 1, 2]),
                since_ms: self.pick(&[0, 0, 1, 500]),
            },
        }
    }

    fn wait(&mut self) -> WaitOp {
        let fence = self.fence();
        match self.below(10) {
            0..3 => WaitOp::Pending {
                fence,
                uuid: self.0.random(),
                key: self.pick(&[0, 0, 1, 2]),
                expires_ms: self.maybe(30, |dice| dice.pick(&[-1, 200, 5_000])),
                ttl_ms: self.maybe(20, |dice| dice.pick(&[1, 500, 60_000])),
            },
            _ => WaitOp::Suspend(Box::new(SuspendOp {
                fence,
                uuid: self.0.random(),
                fresh: self.pick(&[0, 1, 1, 1, 3, 7]),
                pending: if self.chance(35) { vec![self.below(4)] } else { Vec::new() },
                condition: self.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
                names: self.pick(&[0, 1, 2, 3, 7]),
                policy: self.pick(&[3, 3, 0, 1, 2, 4, 5, 6, 7, 11]),
                timeout_ms: self.maybe(50, |dice| dice.pick(&[-1, 400, 3_000, -700_000])),
                behavior: self.maybe(70, |dice| dice.pick(&TimeoutBehavior::ALL)),
                metadata: self.chance(30),
                key: self.maybe(30, |dice| dice.pick(&[0, 1])),
                ttl_ms: self.maybe(20, |dice| dice.pick(&[1, 500, 60_000])),
            })),
        }
    }

    fn signal(&mut self) -> WaitOp {
        let place = match self.below(20) {
            0..10 => Place::Made(self.below(4)),
            10..12 => Place::Made(self.below(40)),
            _ => Place::Named(self.target(), self.pick(&[0, 0, 1, 2])),
        };
        match self.below(33) {
            0..13 => WaitOp::Signal(SignalOp {
                place,
                token: self.maybe(8, |dice| dice.below(6)),
                has_token: !self.chance(4),
                uuid: self.0.random(),
                name: self.pick(&[0, 0, 0, 1, 2, 3]),
                source: self.pick(&[0, 1]),
                bytes: self.pick(&[0, 10, 300]),
                key: self.maybe(30, |dice| dice.pick(&[0, 1, 2])),
            }),
            13..17 => WaitOp::Resume(self.target(), self.pick(&[None, Some(0), Some(200)])),
            17..20 => WaitOp::Approve {
                target: self.target(),
                key: self.pick(&[0, 1, 2]),
                uuid: self.0.random(),
                deny: self.chance(50),
            },
            20..25 => WaitOp::Close(place),
            25..31 => WaitOp::Token {
                place,
                remint: self.maybe(50, |dice| dice.maybe(50, |dice| dice.pick(&[1, 5_000]))),
            },
            _ => WaitOp::Rotate {
                kid: self.pick(&[1, 2, 3, 4]),
                grace_ms: self.pick(&[0, 1_000, 100_000]),
            },
        }
    }

    fn flow(&mut self) -> FlowOp {
        let reach = if self.chance(80) { 2 } else { 12 };
        let flow = self.below(reach);
        let (member, edge) = (self.below(8), self.below(12));
        match self.below(46) {
            0..10 => FlowOp::Submit(self.graph()),
            10 => FlowOp::Create { uuid: self.0.random() },
            11..14 => FlowOp::Member {
                flow,
                uuid: self.0.random(),
                name: self.maybe(50, |dice| dice.pick(&[0, 1, 7, 8])),
                policy: self.pick(&[0, 1, 6]),
            },
            14 | 42 => FlowOp::Add { flow, target: self.target() },
            15..19 => FlowOp::Stage {
                flow,
                uuid: self.0.random(),
                from: member,
                to: self.below(8),
                kind: self.pick(&[0, 0, 1, 2]),
                passes: self.chance(20),
                stale: self.chance(10),
            },
            19..22 => FlowOp::Apply { edge: self.below(3) },
            22 | 40..42 => {
                FlowOp::Join { flow, target: self.target(), join: self.pick(&[0, 2, 3, 4, 5, 8]) }
            }
            23 => FlowOp::Resolve { edge, outcome: self.pick(&[0, 1, 2]) },
            24..26 => FlowOp::Cancel { flow, policy: self.pick(&[0, 1, 2]) },
            26..28 => FlowOp::ReplayFailed { flow },
            28 => FlowOp::ReplayMembers { flow, members: vec![member, edge] },
            29..32 => FlowOp::ReplayMember { flow, member, descendants: self.chance(50) },
            32 => FlowOp::Tags {
                flow,
                n: self.pick(&[0, 1, 2, 3]),
                expected_revision: self.no_revision(),
            },
            33..35 => FlowOp::Cascade { flow },
            35 => FlowOp::Delete { flow: self.below(12) },
            _ => FlowOp::Wait {
                fence: match self.below(10) {
                    0..7 => FenceOf::Member(self.below(4)),
                    7..9 => self.fence(),
                    _ => FenceOf::WrongExecution(0, self.target()),
                },
                children: self.maybe(70, |dice| {
                    (0..dice.pick(&[0, 1, 2, 3])).map(|_| dice.below(8)).collect()
                }),
            },
        }
    }

    fn budget(&mut self) -> LimitOp {
        let reach = if self.chance(80) { 2 } else { 12 };
        let budget = self.below(reach);
        let reset_ms = self.pick(&[0, 0, 500, 3_000, 40_000]);
        match self.below(24) {
            0..4 => LimitOp::CreateBudget {
                uuid: self.0.random(),
                again: self.maybe(25, |dice| dice.below(3)),
                shape: self.pick(&[0, 1, 2, 3, 4, 5, 6, 7]),
                reset_ms,
                namespace: self.pick(&[0, 0, 1]),
            },
            4..6 => LimitOp::UpdateBudget {
                budget,
                shape: self.pick(&[0, 1, 2, 3, 4]),
                reset_ms: self.maybe(40, |_| reset_ms),
                soft: self.maybe(30, |dice| dice.pick(SoftAction::ALL)),
                expected_revision: self.revision(),
            },
            which @ 6..18 => {
                let report = ReportOp {
                    budget,
                    form: self.pick(&[
                        ReportForm::Worker,
                        ReportForm::Operator,
                        ReportForm::OperatorFor,
                        ReportForm::Spend,
                    ]),
                    target: self.target(),
                    amounts: self.pick(&[0, 1, 2, 3, 4, 5, 0, 1, 2, 6]),
                    key: self.maybe(40, |dice| dice.pick(&[0, 1, 2, 3])),
                    mode: self.maybe(20, |dice| dice.pick(EnforcementMode::ALL)),
                };
                match (which, report.key) {
                    (17, key) => LimitOp::RecountBudget { budget, repair: key.is_some() },
                    _ => LimitOp::Report(report),
                }
            }
            18..20 => LimitOp::ReleaseBudget { budget, target: self.target() },
            20 => {
                let targets = (0..=self.below(3)).map(|_| self.target()).collect();
                LimitOp::Disown { budget, targets }
            }
            21..23 => LimitOp::ResetBudget { budget },
            _ => LimitOp::DeleteBudget { budget: self.below(12) },
        }
    }

    fn quota(&mut self) -> LimitOp {
        let reach = if self.chance(80) { 2 } else { 12 };
        let quota = self.below(reach);
        let slot = if self.chance(60) {
            SlotOf::Taken(self.below(6))
        } else {
            SlotOf::Lease(self.target(), self.pick(&[1, 1, 2]))
        };
        match self.below(24) {
            0..4 => LimitOp::CreateQuota {
                uuid: self.0.random(),
                again: self.maybe(25, |dice| dice.below(3)),
                spec: self.pick(&[0, 1, 2, 3, 4, 5, 6, 7]),
                namespace: self.pick(&[0, 0, 1]),
            },
            4..6 => LimitOp::UpdateQuota {
                quota,
                spec: self.pick(&[0, 1, 2, 3, 4, 5, 6, 7]),
                expected_revision: self.revision(),
            },
            6..16 => LimitOp::Check {
                quota,
                slot: SlotOf::Lease(self.target(), self.pick(&[1, 1, 2])),
                claimant: self.pick(&[2, 2, 3]),
                opens_attempt: self.chance(80),
                score: self.pick(&[0, 5, -3, 1 << 50]),
            },
            16..19 => LimitOp::Confirm { quota, slot },
            19..23 => LimitOp::ReleaseSlot { quota, slot, why: self.pick(&[0, 4, 1, 2, 2, 3]) },
            _ => LimitOp::DeleteQuota { quota: self.below(12) },
        }
    }

    fn graph(&mut self) -> GraphOp {
        let sparse: u64 = self.0.random::<u64>() & self.0.random::<u64>();
        GraphOp {
            uuid: self.0.random(),
            members: self.pick(&[1, 2, 3, 3, 4, 5, 6, 8, 8, 90]),
            edges: if self.chance(40) { self.0.random() } else { sparse },
            kinds: self.0.random(),
            joins: self.0.random(),
            passes: self.pick(&[0, 1, 9]),
            policy: self.pick(&[0, 1, 1, 5, 6, 7]),
            retention_ms: self.maybe(40, |dice| dice.pick(&[0, 1_000, 20_000])),
            backwards: self.chance(4),
            limits: self.limits(),
        }
    }

    fn append(&mut self) -> OutputOp {
        let count = self.pick(&[1, 1, 1, 2, 5, 70]);
        let mode = self.maybe(70, |dice| dice.pick(&FrameMode::ALL));
        // A long append is of one mode: it is there to reach that mode's limit.
        let frames = (0..count).map(|_| FrameOp {
            mode: if count < 70 && self.chance(30) { None } else { mode },
            kind: if count < 70 { self.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]) } else { 1 },
        });
        let frames = frames.collect();
        OutputOp::Append { fence: self.fence(), frames }
    }

    fn look(&mut self) -> Look {
        Look {
            target: self.target(),
            attempt: self.pick(&[0, 0, 0, 1, 2, u32::MAX]),
            question: self.pick(&[Question::Read, Question::Tail, Question::Summary]),
            from: self.place(),
            to: self.place(),
            limit: self.pick(&[0, 1, 2, 7, 100, 10_000, 10_001]),
            durable_only: self.chance(30),
        }
    }

    fn place(&mut self) -> PlaceOp {
        let n = self.below(200);
        self.pick(&[
            PlaceOp::Start,
            PlaceOp::End,
            PlaceOp::Frame(n),
            PlaceOp::Behind(n),
            PlaceOp::Millisecond(n),
        ])
    }

    fn time(&mut self) -> Op {
        Op::Advance(match self.below(20) {
            0..10 => self.pick(&[0, 1, 7, 50]),
            10..16 => self.pick(&[100, 500, 1_000]),
            16..19 => self.pick(&[3_000, 10_000]),
            // A day and more: what is remembered so long goes.
            _ => self.pick(&[30_000, 90_000, 30_000, 90_000, 90_000_000]),
        })
    }
}
