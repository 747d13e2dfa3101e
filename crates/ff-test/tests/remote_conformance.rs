//! The conformance suite over a remote backend: a server in this process over SQLite, and HTTP between.
//!
//! What has a route goes over HTTP; what only an engine does (ticks, errands, looks into queues) is done
//! on the store behind the server. Some cases are about steps that a server takes together, or about
//! what it does not show; they are listed here, each with its reason.

use std::collections::BTreeSet;

use ff_test::conformance::CASES;

ff_test::conformance!(ff_test::remote::remote, is_left_out);

/// How many cases run at the least.
const RUN: usize = 1_000;

const CLAIMS_WHOLE: &str = "a server's claim asks all limits, so nobody applies to a client";
const BY_NAME: &str =
    "a server's claim by name asks quota policies and goes on with an open attempt";
const LEASE_IDS: &str = "a server mints the ids of leases, and keeps the credits of lanes";
const WHOLE_ACT: &str = "a server carries out with the step what it means elsewhere";
const INSIDE: &str = "a server does not show it: it is of use to an engine only";
const ONE_NAMESPACE: &str = "a server looks at one namespace at a time";
const SPENDER: &str =
    "a server asks for the execution first, and the case names one that is not there";
const OPERATOR: &str = "a server says itself who decides: the caller, by its key";
const LOG: &str =
    "a server does not tell the number of the event before, nor a gap with nothing after it";
const STANDING_CLOCK: &str =
    "which of two requests comes first is open, and the clock of the case stands";

/// Cases that are left out.
const LEFT_OUT: &[(&str, &[&str], &str)] = &[
    (
        "admission",
        &[
            "what_is_set_aside_goes_back_to_its_place",
            "a_slot_without_a_lease_is_given_back",
            "a_voided_admission_cannot_begin_any_more",
            "a_slot_whose_lease_lives_is_held",
            "only_who_set_it_aside_may_lease_it",
            "a_free_lane_pays_nothing_for_limits_elsewhere",
        ],
        CLAIMS_WHOLE,
    ),
    ("admission", &["what_is_owed_is_told_until_it_is_given_back"], WHOLE_ACT),
    ("admission_slots", &["who_is_let_in_before_it_is_kept_back_is_not_forgotten"], CLAIMS_WHOLE),
    (
        "admission_by_name",
        &[
            "a_claim_by_name_without_its_slots_is_refused",
            "an_attempt_that_goes_on_by_name_takes_a_slot",
        ],
        BY_NAME,
    ),
    ("approvals", &["a_decision_is_a_signal_of_the_operator"], OPERATOR),
    (
        "claim",
        &[
            "the_first_task_carries_its_lease_and_attempt",
            "every_task_of_a_claim_has_a_lease_id_counted_from_the_seed",
        ],
        LEASE_IDS,
    ),
    ("explain", &["what_nobody_can_run_names_the_nearest_worker"], WHOLE_ACT),
    ("flow_removed", &["while_a_flow_is_removed_nothing_of_it_comes_back"], WHOLE_ACT),
    ("flow_steps", &["a_tick_counts_the_work_of_flows_by_kind"], WHOLE_ACT),
    ("granted_slots", &["a_lease_whose_slot_is_gone_gets_it_back"], INSIDE),
    ("granted_slots", &["a_claim_that_is_not_heard_of_again_gives_its_place_back"], CLAIMS_WHOLE),
    (
        "grant_claim",
        &[
            "an_open_attempt_is_continued_by_the_resumed_claim",
            "without_an_open_attempt_there_is_nothing_to_resume",
        ],
        BY_NAME,
    ),
    ("heartbeat", &["waiting_ends_with_news"], STANDING_CLOCK),
    ("lanes", &["credit_from_earlier_claims_counts"], LEASE_IDS),
    ("ledgers", &["what_was_used_is_told_whatever_has_become_of_it"], SPENDER),
    ("quotas", &["a_pending_slot_past_its_time_is_noted_and_kept"], INSIDE),
    ("quotas", &["a_higher_cap_wakes_as_many_as_it_admits"], WHOLE_ACT),
    (
        "routes",
        &["many_are_blocked_and_let_go_in_batches", "whoever_stops_leaves_the_rest_to_the_next"],
        WHOLE_ACT,
    ),
    ("search", &["each_filter_keeps_what_it_names"], ONE_NAMESPACE),
    ("subscriptions", &["each_filter_keeps_what_it_names"], ONE_NAMESPACE),
    ("timers", &["a_tick_counts_what_it_did_by_kind"], WHOLE_ACT),
    (
        "trim",
        &[
            "events_from_before_the_instant_are_removed",
            "an_execution_whose_events_are_all_gone_tells_its_gap",
        ],
        LOG,
    ),
    ("unknown", &["every_operation_says_that_there_is_no_such_budget_or_quota_policy"], SPENDER),
    (
        "usage",
        &[
            "the_reports_mode_wins_over_the_budgets",
            "a_key_counts_once_whichever_form_brings_it",
            "usage_is_of_an_execution_or_of_nobody",
            "a_release_gives_back_what_the_execution_used",
        ],
        SPENDER,
    ),
    ("usage", &["ledgers_of_many_add_up"], INSIDE),
    (
        "worker_loss",
        &[
            "who_stops_after_the_word_leaves_the_rest_to_the_timer",
            "who_stops_half_way_leaves_the_rest_to_the_timer",
            "only_what_is_over_is_settled",
            "the_next_boot_keeps_its_leases",
            "a_loss_told_before_takes_none_of_the_next_boots_leases",
            "many_leases_are_taken_page_by_page",
        ],
        WHOLE_ACT,
    ),
    ("workers", &["the_end_of_a_task_stands_whoever_may_go_on"], WHOLE_ACT),
];

fn is_left_out(module: &str, case: &str) -> bool {
    LEFT_OUT.iter().any(|(known, cases, _)| *known == module && cases.contains(&case))
}

#[test]
fn nothing_is_left_out_that_there_is_not() {
    let pairs = |(module, cases): &(&'static str, &'static [&'static str])| {
        let module = *module;
        cases.iter().map(move |case| (module, *case)).collect::<Vec<_>>()
    };
    let all: BTreeSet<_> = CASES.iter().flat_map(pairs).collect();
    let left_out = LEFT_OUT.iter().flat_map(|(module, cases, _)| pairs(&(*module, *cases)));
    let left_out: Vec<_> = left_out.collect();
    let unique: BTreeSet<_> = left_out.iter().copied().collect();
    assert_eq!(unique.len(), left_out.len(), "a case is listed twice");
    assert!(unique.is_subset(&all), "{:?}", unique.difference(&all).collect::<Vec<_>>());
    assert!(LEFT_OUT.iter().all(|(_, _, why)| !why.is_empty()));
    let run = all.len() - unique.len();
    assert!(run >= RUN, "{run} of {} cases run over HTTP", all.len());
}
