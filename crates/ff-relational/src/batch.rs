//! A batch: many commands, one transaction.
//!
//! Commands run in order over one overlay, so each sees the ones before it. When facts are missing
//! the whole batch is run again after they were loaded; nothing was written, so that costs nothing
//! but a little time, and order on one execution is kept.

use std::sync::Arc;

use ff_core::error::Refusal;
use ff_core::id::DocumentId;
use ff_core::machine::{self, Changes, Facts as _, Need, Needs, Overlay, QueueView, Settings};
use ff_core::operation::{Claim, Claimed, Command, Errand, Reply};
use ff_core::tally::Counts;
use ff_core::time::TimestampMs;

use crate::writes::Writes;

/// One thing to do.
#[derive(Debug, Clone)]
pub enum Job {
    Command(Command),
    Claim(Claim),
}

/// What became of it.
#[derive(Debug)]
pub enum Answer {
    Reply(Result<Reply, Refusal>),
    Claimed(Result<Claimed, Refusal>),
}

/// A batch between loading and running.
pub struct Batch {
    jobs: Vec<Job>,
    overlay: Overlay,
}

/// A batch that has run: answers in the order of the jobs, and what to write.
pub struct Outcome {
    pub answers: Vec<Answer>,
    pub writes: Writes,
    /// What it means for other homes.
    pub errands: Vec<Errand>,
    /// What its steps do, counted.
    pub counts: Counts,
}

impl Batch {
    pub fn new(settings: Arc<Settings>, jobs: Vec<Job>) -> Self {
        Self { jobs, overlay: Overlay::new(settings) }
    }

    /// Where loaded facts go.
    pub fn overlay(&mut self) -> &mut Overlay {
        &mut self.overlay
    }

    /// What the jobs will certainly ask for first. Loading it ahead saves a run.
    pub fn first_needs(&self) -> Needs {
        let mut needs = Needs::default();
        for job in &self.jobs {
            match job {
                Job::Command(command) => {
                    needs.0.extend(command.execution_id().map(Need::Execution));
                    let partitions = &self.overlay.settings().partitions;
                    needs.0.extend(command.document_id(partitions).map(Need::Document));
                    if let Command::Submit(op) = command {
                        let lane = DocumentId::lane(&op.namespace, &op.lane);
                        needs.0.push(Need::Document(lane));
                        needs.0.push(Need::Document(DocumentId::namespace(&op.namespace)));
                    }
                }
                Job::Claim(claim) => {
                    let (namespace, instance) = (&claim.namespace, &claim.worker_instance_id);
                    needs.0.push(Need::Document(DocumentId::worker(namespace, instance)));
                    needs.0.push(Need::Document(DocumentId::namespace(namespace)));
                    let lanes = claim.lanes.iter().map(|share| &share.lane);
                    let lanes = lanes.map(|lane| DocumentId::lane(namespace, lane));
                    needs.0.extend(lanes.map(Need::Document));
                    // One lane is the common case; with several, which are asked and how far
                    // depends on what the first ones hold.
                    if let [share] = claim.lanes.as_slice() {
                        let view = QueueView {
                            namespace: claim.namespace.clone(),
                            lane: share.lane.clone(),
                            capabilities: claim.capabilities.clone(),
                        };
                        needs.0.push(Need::Queue(view, claim.max as usize));
                    }
                }
            }
        }
        needs
    }

    /// Runs all jobs at `now`, or says what must be loaded first. `number` gives each event its
    /// number; numbers given in a run that lacked facts are not used.
    pub fn run(
        &mut self,
        now: TimestampMs,
        mut number: impl FnMut() -> u64,
    ) -> Result<Outcome, Needs> {
        self.overlay.rewind();
        let mut needs = Needs::default();
        let mut outcome = Outcome {
            answers: Vec::with_capacity(self.jobs.len()),
            writes: Writes::default(),
            errands: Vec::new(),
            counts: Counts::default(),
        };
        for job in &self.jobs {
            match step(&self.overlay, job, now, &mut number) {
                Ok((answer, changes)) => {
                    self.overlay.absorb(&changes);
                    outcome.answers.push(answer);
                    outcome.errands.append(&mut changes.prompt_errands());
                    outcome.counts.add(&changes);
                    outcome.writes.take(changes);
                }
                Err(lacking) => needs.merge(lacking),
            }
        }
        if needs.is_empty() {
            outcome.writes.settle();
            Ok(outcome)
        } else {
            Err(needs)
        }
    }
}

fn step(
    overlay: &Overlay,
    job: &Job,
    now: TimestampMs,
    number: &mut impl FnMut() -> u64,
) -> Result<(Answer, Changes), Needs> {
    match job {
        Job::Command(command) => {
            let mut step = machine::apply(overlay, command, now)?;
            step.number(|_| number());
            Ok((Answer::Reply(step.reply), step.changes))
        }
        Job::Claim(claim) => {
            let mut step = machine::claim(overlay, claim, now)?;
            step.changes.number(|_| number());
            Ok((Answer::Claimed(step.reply), step.changes))
        }
    }
}
