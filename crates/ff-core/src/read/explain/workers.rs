//! What the workers say to an execution that waits for one.

use serde_json::json;

use super::action::Action;
use super::explanation::{Cause, Explained, Explanation};
use crate::read::{Nearest, Offer, WorkerSnapshot};
use crate::state::Route;

impl Explained {
    /// The explanation, given the live workers of the namespace; `all` of them, or only some.
    pub fn among(self, workers: &[WorkerSnapshot], all: bool) -> Explanation {
        let Self { mut explanation, route } = self;
        let Some(route) = route else { return explanation };
        let offers: Vec<_> = workers.iter().map(Offer::from).collect();
        let both = workers.iter().zip(&offers);
        let able: Vec<_> =
            both.filter(|(_, offer)| offer.covers(&route)).map(|(worker, _)| worker).collect();
        let serving = offers.iter().filter(|offer| offer.serves(&route.lane)).count();
        explanation.add(json!({
            "live_workers": workers.len(),
            "workers_of_lane": serving,
            "capable_workers": able.len(),
        }));
        let blocked = explanation.cause == Cause::NoCapableWorker;
        if able.is_empty() {
            if !route.required.is_empty() && (blocked || all) {
                let nearest = Nearest::among(&offers, &route);
                no_capable_worker(&mut explanation, &route, nearest.as_ref());
            }
        } else if blocked {
            soon(&mut explanation, able[0]);
        } else if all && able.iter().all(|worker| worker.running >= worker.max_concurrent) {
            all_busy(&mut explanation, &able);
        }
        explanation
    }
}

fn no_capable_worker(explanation: &mut Explanation, route: &Route, nearest: Option<&Nearest>) {
    let missing = nearest.map_or(&route.required, |nearest| &nearest.missing);
    let (lane, lacking) = (&route.lane, missing.as_csv());
    let near = match nearest {
        Some(nearest) => {
            format!("the nearest, {:?}, lacks {lacking}", nearest.worker_instance_id)
        }
        None => "none serves the lane".to_owned(),
    };
    explanation.cause = Cause::NoCapableWorker;
    explanation.summary =
        format!("No live worker of lane {lane:?} has {}; {near}.", route.required.as_csv());
    explanation.earliest_start_at = None;
    explanation.add(json!({
        "missing_capabilities": missing,
        "nearest_worker": nearest.map(|nearest| {
            json!({
                "worker_instance_id": nearest.worker_instance_id.as_str(),
                "missing": nearest.missing,
            })
        }),
    }));
    let start = match nearest {
        Some(nearest) => {
            format!("register {:?} again with {lacking} as well", nearest.worker_instance_id)
        }
        None => format!("start a worker for lane {lane:?} with {lacking}"),
    };
    explanation.unblock.retain(|action| !action.is_about_priority());
    // Records begin with the advice to start any worker; this one is more precise.
    if let Some(first) = explanation.unblock.first_mut() {
        *first = Action::start_worker(&route.namespace, start);
    }
}

/// It was blocked, and now there is somebody: an engine is about to let it go.
fn soon(explanation: &mut Explanation, worker: &WorkerSnapshot) {
    let name = &worker.worker_instance_id;
    explanation.summary =
        format!("It waited for a worker that can run it; {name:?} can, and it is let go soon.");
}

fn all_busy(explanation: &mut Explanation, able: &[&WorkerSnapshot]) {
    let running: u64 = able.iter().map(|worker| u64::from(worker.running)).sum();
    let most: u64 = able.iter().map(|worker| u64::from(worker.max_concurrent)).sum();
    explanation.cause = Cause::AllWorkersBusy;
    explanation.summary = format!(
        "It is ready; all {} workers that can run it are busy with {running} of {most} tasks.",
        able.len()
    );
    explanation.earliest_start_at = None;
    explanation.add(json!({ "running": running, "max_concurrent": most }));
}
