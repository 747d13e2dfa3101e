//! Invariants that only a history shows, checked on the whole event log.

use std::collections::BTreeMap;
use std::time::Duration;

use ff_core::backend::{Backend, BackendExt};
use ff_core::event::{Event, EventKind};
use ff_core::id::{Home, Subject};
use ff_core::limits;
use ff_core::read::{EventFilter, Follow, From};

/// Reads the whole log from its beginning.
pub async fn read_all(backend: &dyn Backend) -> Vec<Event> {
    let mut events = Vec::new();
    let mut from = From::Start;
    loop {
        let follow =
            Follow { filter: EventFilter::default(), from, limit: limits::PAGE_MAX, each: false };
        let page = backend.events(follow, Duration::ZERO).await.expect("the log");
        if page.items.is_empty() {
            return events;
        }
        events.extend(page.items.into_iter().map(|envelope| envelope.event));
        from = From::Cursor(page.cursor);
    }
}

/// What is wrong with a log that must be whole; empty when nothing is.
pub fn violations(events: &[Event]) -> Vec<String> {
    let mut found = Vec::new();
    let mut lives: BTreeMap<Subject, Life> = BTreeMap::new();
    let mut last_numbers: BTreeMap<Home, u64> = BTreeMap::new();
    for event in events {
        let last_number = last_numbers.entry(event.subject.home()).or_default();
        if event.number <= *last_number {
            found.push(format!("event numbers do not rise at {event:?}"));
        }
        *last_number = event.number;
        let born = match event.kind {
            EventKind::Submitted | EventKind::FlowCreated => true,
            // A name that is free again begins anew once nothing is left of the last worker.
            EventKind::WorkerJoined | EventKind::LaneChanged => event.seq == 1,
            _ => false,
        };
        if born {
            lives.insert(event.subject.clone(), Life::default());
        }
        match lives.get_mut(&event.subject) {
            Some(life) => found.extend(life.take(event)),
            None => found.push(format!("I31: an event before its submit: {event:?}")),
        }
    }
    found
}

/// What is known of one execution so far.
#[derive(Debug, Default)]
struct Life {
    seq: u64,
    epoch: u64,
    attempts: u32,
    running: bool,
    ended: bool,
}

impl Life {
    fn take(&mut self, event: &Event) -> Option<String> {
        let wrong = |rule: &str| Some(format!("{rule}: {event:?}"));
        if event.seq != self.seq + 1 {
            return wrong("I31: a hole in the events of one subject");
        }
        self.seq = event.seq;
        match event.kind {
            EventKind::Claimed => {
                if self.running || self.ended {
                    return wrong("I2: claimed while leased or ended");
                }
                if event.lease_epoch != Some(self.epoch + 1) {
                    return wrong("I3: the epoch does not rise by one");
                }
                let index = event.attempt_index.unwrap_or(u32::MAX);
                if index > self.attempts {
                    return wrong("I12: a hole in the attempts");
                }
                self.attempts = self.attempts.max(index + 1);
                self.epoch += 1;
                self.running = true;
            }
            EventKind::RetryScheduled
            | EventKind::LeaseExpired
            | EventKind::LeaseRevoked
            | EventKind::Suspended
            | EventKind::Delayed => {
                if !self.running {
                    return wrong("I8: a lease ends that was not live");
                }
                self.running = false;
            }
            EventKind::Completed
            | EventKind::Failed
            | EventKind::Cancelled
            | EventKind::Expired
            | EventKind::Skipped => {
                if self.ended {
                    return wrong("I5: a second outcome in one generation");
                }
                self.ended = true;
                self.running = false;
            }
            EventKind::Replayed => {
                if !self.ended {
                    return wrong("I8: replayed before it ended");
                }
                self.ended = false;
            }
            EventKind::Deleted if !self.ended => return wrong("I33: removed before it ended"),
            _ => {}
        }
        None
    }
}
