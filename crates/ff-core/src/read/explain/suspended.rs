//! What a suspended execution listens to, and who may speak.

use serde_json::{Value, json};

use super::action::{Action, Line};
use super::explanation::{Cause, Explanation};
use crate::id::SignalName;
use crate::limits;
use crate::state::{
    Execution, Matcher, Suspension, SuspensionTimeout, TimeoutBehavior, Waitpoint, WaitpointState,
};
use crate::time::TimestampMs;

/// The names of an operator's decisions, unless they are given others.
const APPROVED: &str = "approved";
const DENIED: &str = "denied";

pub(super) fn suspended(execution: &Execution, suspension: &Suspension) -> Explanation {
    let open = |waitpoint: &&Waitpoint| waitpoint.state == WaitpointState::Open;
    let ears: Vec<_> =
        execution.waits.open.iter().filter(open).map(|at| Ear::of(suspension, at)).collect();
    let timeout = suspension.timeout.as_ref();
    Explanation {
        cause: Cause::Suspended,
        summary: summary(suspension, &ears),
        evidence: json!({
            "suspension_id": suspension.id.to_string(),
            "reason": suspension.reason.0,
            "requester": suspension.requester,
            "suspended_since": suspension.since.rfc3339(),
            "escalated": suspension.escalated,
            "waitpoints": ears.iter().map(Ear::evidence).collect::<Vec<_>>(),
            "accepted_signals": suspension.heard.iter().map(SignalName::as_str).collect::<Vec<_>>(),
            "timeout_at": timeout.map(|timeout| timeout.at.rfc3339()),
            "timeout_behavior": timeout.map(|timeout| timeout.behavior.as_str()),
        }),
        unblock: actions(execution, suspension, &ears),
        earliest_start_at: timeout.and_then(|timeout| goes_on_at(suspension, timeout)),
    }
}

/// When time alone lets it go on, if it does not end it.
fn goes_on_at(suspension: &Suspension, timeout: &SuspensionTimeout) -> Option<TimestampMs> {
    let goes_on = timeout.behavior == TimeoutBehavior::AutoResume;
    goes_on.then(|| timeout.at.after(suspension.resume.resume_delay_ms))
}

fn summary(suspension: &Suspension, ears: &[Ear<'_>]) -> String {
    let reason = &suspension.reason.0;
    let places: Vec<_> = ears.iter().filter_map(Ear::words).collect();
    if places.is_empty() {
        return format!("It is suspended ({reason}) until somebody resumes it.");
    }
    format!("It is suspended ({reason}) and listens on {}.", places.join(" and on "))
}

fn actions(execution: &Execution, suspension: &Suspension, ears: &[Ear<'_>]) -> Vec<Action> {
    let ways = ears.iter().flat_map(|ear| {
        let names = ear.takes.iter().map(|name| match name {
            Matcher::Wildcard => APPROVED,
            Matcher::ByName(name) => name,
        });
        names.map(|name| match name {
            APPROVED | DENIED => decide(execution, suspension, ear.waitpoint, name),
            name => signal(execution, ear.waitpoint, name),
        })
    });
    let mut actions: Vec<_> = ways.take(limits::EXPLAIN_ITEMS as usize).collect();
    actions.push(Action::on(execution, "resume it by hand", "resume"));
    actions.push(Action::cancel(execution));
    actions
}

/// An operator decides. The waitpoint is named: there may be others, also such as no suspend uses.
fn decide(
    execution: &Execution,
    suspension: &Suspension,
    waitpoint: &Waitpoint,
    name: &str,
) -> Action {
    let verb = if name == DENIED { "deny" } else { "approve" };
    let mut line = Line::new("approve").option("--waitpoint", &waitpoint.id);
    if name == DENIED {
        line = line.flag("--deny");
    }
    // A decision that was heard before counts again only as another one.
    if suspension.heard.iter().any(|heard| heard.as_str() == name) {
        line = line.option("--suffix", &execution.waits.signals);
    }
    let id = waitpoint.id.to_string();
    let summary = format!("{verb} {:?}", waitpoint.key);
    Action::at(execution, &summary, &line, &["waitpoints", &id, verb])
}

/// Whoever has the token sends it.
fn signal(execution: &Execution, waitpoint: &Waitpoint, name: &str) -> Action {
    let namespace = &execution.about.namespace;
    let token = Line::new("waitpoint token").arg(&execution.id).arg(&waitpoint.id).of(namespace);
    let line = Line::new("signal")
        .option("--waitpoint", &waitpoint.id)
        .option("--token-file", "-")
        .option("--name", name);
    let summary = format!("signal {name:?} on {:?}", waitpoint.key);
    let action = Action::at(execution, &summary, &line, &["signal"]);
    Action { cli: format!("{token} | {}", action.cli), ..action }
}

/// A waitpoint, and what it still listens to.
struct Ear<'a> {
    waitpoint: &'a Waitpoint,
    takes: Vec<Matcher>,
}

impl<'a> Ear<'a> {
    fn of(suspension: &Suspension, waitpoint: &'a Waitpoint) -> Self {
        let takes = suspension.condition.lacks(&suspension.tally, &waitpoint.key);
        Self { waitpoint, takes }
    }

    fn takes_any(&self) -> bool {
        self.takes.contains(&Matcher::Wildcard)
    }

    fn names(&self) -> impl Iterator<Item = &SignalName> {
        self.takes.iter().filter_map(|name| match name {
            Matcher::Wildcard => None,
            Matcher::ByName(name) => Some(name),
        })
    }

    /// None: nothing that is said there changes anything.
    fn words(&self) -> Option<String> {
        let key = &self.waitpoint.key;
        if self.takes_any() {
            return Some(format!("{key:?}"));
        }
        let names: Vec<_> = self.names().map(|name| format!("{name:?}")).collect();
        (!names.is_empty()).then(|| format!("{key:?} for {}", names.join(", ")))
    }

    fn evidence(&self) -> Value {
        json!({
            "waitpoint_id": self.waitpoint.id.to_string(),
            "key": self.waitpoint.key.as_str(),
            "takes_any": self.takes_any(),
            "takes": self.names().map(SignalName::as_str).collect::<Vec<_>>(),
        })
    }
}
