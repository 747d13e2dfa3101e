//! A batch: many commands, one transaction.
//!
//! Commands run in order over one overlay, so each sees the ones before it. When facts are missing
//! the whole batch is run again after they were loaded; nothing was written, so that costs nothing
//! but a little time, and order on one execution is kept.

use std::sync::Arc;

use ff_core::error::{EngineError, Refusal};
use ff_core::id::{DocumentId, Subject};
use ff_core::machine::{self, Changes, Facts as _, Need, Needs, Overlay, QueueView, Settings};
use ff_core::operation::{Claim, Claimed, Command, Errand, Reply, Tick, Ticked};
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
    Reply(Result<Reply, EngineError>),
    Claimed(Result<Claimed, EngineError>),
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
    /// What is due and was not carried out, because it cannot be read or is not sound.
    pub passed: Vec<(Subject, EngineError)>,
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
            passed: Vec::new(),
        };
        for job in &self.jobs {
            match outcome.step(&mut self.overlay, job, now, &mut number) {
                Ok(answer) => outcome.answers.push(answer),
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

impl Outcome {
    /// Runs a job and takes on what it changes. What needs a record that cannot be read is answered so:
    /// whoever shares the batch with it is not held up.
    fn step(
        &mut self,
        overlay: &mut Overlay,
        job: &Job,
        now: TimestampMs,
        number: &mut impl FnMut() -> u64,
    ) -> Result<Answer, Needs> {
        match job {
            Job::Command(Command::Tick(tick)) => self.tick(overlay, tick, now, number),
            Job::Command(command) => match machine::apply(overlay, command, now) {
                Ok(mut step) => {
                    step.number(|_| number());
                    self.take(overlay, step.changes);
                    Ok(Answer::Reply(step.reply.map_err(EngineError::from)))
                }
                Err(lacking) => Ok(Answer::Reply(Err(lost(overlay, lacking)?))),
            },
            Job::Claim(claim) => match machine::claim(overlay, claim, now) {
                Ok(mut step) => {
                    step.changes.number(|_| number());
                    self.take(overlay, step.changes);
                    Ok(Answer::Claimed(step.reply.map_err(EngineError::from)))
                }
                Err(lacking) => Ok(Answer::Claimed(Err(lost(overlay, lacking)?))),
            },
        }
    }

    /// All that is due in one step, unless something of it is broken.
    fn tick(
        &mut self,
        overlay: &mut Overlay,
        tick: &Tick,
        now: TimestampMs,
        number: &mut impl FnMut() -> u64,
    ) -> Result<Answer, Needs> {
        let mut step = match machine::apply(overlay, &tick.clone().into(), now) {
            Ok(step) if !finds_broken(&step.reply) => step,
            Err(lacking) if overlay.why_lost(&lacking).is_none() => return Err(lacking),
            _ => {
                let ticked = self.tick_one_by_one(overlay, tick, now, number)?;
                return Ok(Answer::Reply(Ok(Reply::Tick(ticked))));
            }
        };
        step.number(|_| number());
        self.take(overlay, step.changes);
        Ok(Answer::Reply(step.reply.map_err(EngineError::from)))
    }

    /// What is due, each in a step of its own, so that it is known which of them is broken and the
    /// others are carried out.
    fn tick_one_by_one(
        &mut self,
        overlay: &mut Overlay,
        tick: &Tick,
        now: TimestampMs,
        number: &mut impl FnMut() -> u64,
    ) -> Result<Ticked, Needs> {
        let due = overlay.due(tick.home.as_ref(), now, tick.most as usize)?;
        let mut ticked = Ticked { more: !due.complete, ..Ticked::default() };
        let mut needs = Needs::default();
        let one: Command = Tick { home: tick.home.clone(), most: 1 }.into();
        for subject in &due.ids {
            overlay.supply_due(tick.home.clone(), vec![subject.clone()], true);
            let why = match machine::apply(overlay, &one, now) {
                Ok(step) if finds_broken(&step.reply) => {
                    EngineError::corruption("what is known of it is not sound")
                }
                Ok(mut step) => {
                    step.number(|_| number());
                    self.take(overlay, step.changes);
                    if let Ok(Reply::Tick(part)) = &step.reply {
                        ticked.merge(part);
                    }
                    continue;
                }
                Err(lacking) => match lost(overlay, lacking) {
                    Ok(why) => why,
                    Err(lacking) => {
                        needs.merge(lacking);
                        continue;
                    }
                },
            };
            ticked.broken += 1;
            self.passed.push((subject.clone(), why));
        }
        overlay.supply_due(tick.home.clone(), due.ids, due.complete);
        if needs.is_empty() { Ok(ticked) } else { Err(needs) }
    }

    fn take(&mut self, overlay: &mut Overlay, changes: Changes) {
        overlay.absorb(&changes);
        self.errands.append(&mut changes.prompt_errands());
        self.counts.add(&changes);
        self.writes.take(changes);
    }
}

/// Why what is lacking will never come; or that it is only to be loaded.
fn lost(overlay: &Overlay, lacking: Needs) -> Result<EngineError, Needs> {
    overlay.why_lost(&lacking).cloned().ok_or(lacking)
}

fn finds_broken(reply: &Result<Reply, Refusal>) -> bool {
    matches!(reply, Ok(Reply::Tick(ticked)) if ticked.broken > 0)
}
