//! The conformance suite: one body of tests for every backend.
//!
//! `ff_test::conformance!(path::to::make_world)` makes one test of every case below. A case takes
//! a fresh [`crate::world::World`] and tells, by its name, the rule that it checks.

#[macro_use]
mod suite;

pub mod admission;
pub mod admission_by_name;
pub mod admission_slots;
pub mod append;
pub mod append_fence;
pub mod approvals;
pub mod attempt_timeout;
pub mod attempts;
pub mod bad_input;
pub mod batch;
pub mod best_effort;
pub mod bindings;
pub mod blocked;
pub mod budgets;
pub mod buffered;
pub mod bulks;
pub mod cancel;
pub mod capabilities;
pub mod claim;
pub mod claim_order;
pub mod claim_waiting;
pub mod complete;
pub mod conditions;
pub mod deadline;
pub mod delay;
pub mod delete;
pub mod errors;
pub mod events;
pub mod explain;
pub mod explain_limits;
pub mod fail_retry;
pub mod fencing;
pub mod flow_basics;
pub mod flow_cancel;
pub mod flow_cancelled;
pub mod flow_children;
pub mod flow_data;
pub mod flow_joins;
pub mod flow_limits;
pub mod flow_removed;
pub mod flow_replay;
pub mod flow_state;
pub mod flow_steps;
pub mod flow_submit;
pub mod frame_retention;
pub mod grant_and_claim;
pub mod grant_claim;
pub mod grant_lapse;
pub mod granted_slots;
pub mod grants;
pub mod heartbeat;
pub mod hold;
pub mod idempotency;
pub mod inbox;
pub mod inbox_changes;
pub mod keys;
pub mod lane_states;
pub mod lanes;
pub mod lease_expiry;
pub mod lease_renewal;
pub mod ledgers;
pub mod many_tails;
pub mod pages;
pub mod payload;
pub mod priority;
pub mod progress;
pub mod quota_window;
pub mod quotas;
pub mod reclaim_grants;
pub mod repetition;
pub mod replay;
pub mod results;
pub mod resume;
pub mod resume_policy;
pub mod resume_signals;
pub mod retention;
pub mod revisions;
pub mod revoke;
pub mod routes;
pub mod search;
pub mod secrets;
pub mod signal_dedup;
pub mod signal_refusals;
pub mod signals;
pub mod stream_ends;
pub mod stream_reads;
pub mod stream_retention;
pub mod submit;
pub mod subscriptions;
pub mod summaries;
pub mod superseded;
pub mod suspend;
pub mod suspend_repetition;
pub mod suspend_shape;
pub mod suspended;
pub mod suspension_timeout;
pub mod tags;
pub mod tails;
pub mod timers;
pub mod tokens;
pub mod trim;
pub mod unblock;
pub mod unknown;
pub mod upkeep;
pub mod usage;
pub mod waitpoint_end;
pub mod waitpoints;
pub mod ways_out;
pub mod worker_loss;
pub mod workers;

pub use suite::{Case, Making, Named, run, run_all};

suite! { ($)
    admission {
        what_stands_under_a_used_up_budget_is_kept_back
        a_claim_goes_on_behind_what_is_kept_back
        the_best_comes_first_whether_limits_let_it_in_or_not
        whoever_waits_no_longer_gives_its_turn_on
        a_cap_that_is_switched_off_lets_all_come_at_once
        a_window_that_has_passed_lets_in_as_many_again
        a_budget_with_room_lets_everybody_in
        a_limit_that_is_gone_holds_nobody_up
        all_that_an_execution_stands_under_applies
        what_is_attached_must_be_there
        a_slot_is_held_from_the_claim_to_the_end_of_the_lease
        the_best_in_line_comes_first
        who_waits_for_work_gets_what_was_let_go
        a_turn_that_nobody_takes_passes_on
        a_turn_that_no_worker_can_take_passes_on_soon
        a_window_lets_in_as_many_as_it_says
        a_resumed_attempt_takes_no_place_in_the_window
        a_raised_cap_lets_more_in_at_once
        a_refusal_gives_back_the_slots_that_were_taken
        what_is_set_aside_goes_back_to_its_place
        a_slot_without_a_lease_is_given_back
        a_voided_admission_cannot_begin_any_more
        a_slot_whose_lease_lives_is_held
        only_who_set_it_aside_may_lease_it
        what_is_owed_is_told_until_it_is_given_back
        a_free_lane_pays_nothing_for_limits_elsewhere
        room_lets_go_what_was_kept_back
        what_another_budget_keeps_back_stays
        a_hard_limit_may_end_what_runs
        a_budget_is_attached_where_its_scope_says
        what_is_gone_stays_attached_but_is_not_attached_again
    }
    admission_slots {
        a_slot_goes_to_somebody_who_can_come
        a_claim_that_comes_to_nothing_takes_no_slot_from_another
        of_claims_by_name_at_once_one_has_the_slot
        who_is_let_in_before_it_is_kept_back_is_not_forgotten
        a_place_that_another_limit_kept_from_use_is_free_again
        a_crowd_in_front_uses_up_no_window_behind_it
        who_goes_on_waits_for_no_window
        a_slot_that_time_frees_goes_to_the_next_at_once
    }
    granted_slots {
        a_lapsed_grant_takes_no_slot_from_the_lease_that_follows
        a_lapsed_grant_takes_no_slot_from_a_claim_under_way
        a_slot_that_a_lapsed_grant_shared_is_free_once_nobody_wants_it
        a_lease_whose_slot_is_gone_gets_it_back
        a_lapsed_grant_gives_its_place_back
        a_claim_that_is_not_heard_of_again_gives_its_place_back
    }
    admission_by_name {
        a_claim_by_name_takes_a_slot
        a_claim_by_name_without_its_slots_is_refused
        a_refusal_leaves_the_grant_valid
        an_operator_gives_out_work_whatever_budgets_say_and_asks_quotas
        an_operator_takes_what_a_claim_has_blocked
        an_operator_asks_the_quotas_of_what_they_have_blocked
        an_operator_passes_no_hold_of_what_limits_have_blocked
        an_attempt_that_goes_on_by_name_takes_a_slot
        a_policy_that_is_gone_holds_no_grant_up
        a_scheduler_gets_the_best_for_a_worker
        a_scheduler_gets_what_no_registered_worker_could_run
        a_full_quota_says_when_to_come_again
        a_grant_of_a_scheduler_holds_its_slots
        a_grant_of_a_scheduler_lapses_with_its_slots
        a_scheduler_passes_what_limits_keep_back
        usage_goes_to_every_budget_that_an_execution_stands_under
    }
    append {
        frames_come_out_as_they_went_in
        a_type_is_any_text_of_1_to_64_bytes
        reserved_and_malformed_types_are_refused
        a_frame_has_65536_bytes_at_most
        bodies_come_back_byte_for_byte
        content_type_and_correlation_id_are_kept
        an_append_has_1_to_100_frames
        an_append_is_all_or_nothing
        ids_rise_whatever_the_clock_does
        every_frame_of_the_attempt_counts
        a_frame_sent_again_is_appended_again
        the_policy_says_the_mode_of_a_frame_that_names_none
        an_append_is_no_transition
        the_output_of_one_is_not_that_of_another
    }
    append_fence {
        an_execution_that_does_not_exist_is_not_found
        an_ended_execution_takes_no_frame_whatever_the_fence
        an_execution_that_is_not_active_takes_no_frame
        a_lost_lease_appends_no_more
        every_part_of_the_fence_must_match
        a_late_append_leaves_the_expiry_to_others
        a_renewed_lease_goes_on_appending
        the_lease_that_goes_on_appends_and_the_one_before_does_not
        a_refusal_tells_what_is_true_now
    }
    approvals {
        a_decision_is_a_signal_of_the_operator
        a_waitpoint_is_named_by_its_id_or_by_its_key
        a_repeated_decision_is_a_duplicate
        the_lane_must_match_if_it_is_given
        an_unknown_waitpoint_is_not_found
        what_takes_no_signal_takes_no_decision
        what_a_decision_says_has_limits
    }
    attempt_timeout {
        an_attempt_that_used_up_its_time_is_tried_again
        without_a_retry_the_execution_expires
        a_listed_timeout_is_tried_again
        waiting_does_not_count
        an_attempt_without_time_left_is_over_as_soon_as_it_goes_on
        a_renewal_does_not_extend_it
        every_attempt_has_its_own_time
        a_lost_lease_comes_before_a_later_timeout
        at_the_same_instant_the_timeout_comes_before_the_lost_lease
    }
    attempts {
        every_attempt_is_listed_with_its_type_and_end
        attempts_come_in_pages
        an_execution_that_never_ran_has_no_attempts
        a_resumed_attempt_names_the_worker_that_runs_it_now
    }
    bad_input {
        a_malformed_claim_is_refused_and_takes_nothing
        a_claim_at_its_limits_is_served
        a_malformed_submit_is_refused
        a_submit_at_its_limits_is_accepted
        a_policy_beyond_its_limits_is_refused_at_submit
        a_malformed_policy_is_refused_before_anything_else
        a_policy_at_its_limits_is_accepted
    }
    batch {
        a_thousand_submits_are_answered_in_their_order
        a_batch_of_none_or_of_too_many_is_refused_as_a_whole
        each_item_of_a_batch_is_answered_on_its_own
        one_key_twice_in_a_batch_makes_one_execution
        commands_on_one_execution_run_in_their_order
        what_comes_and_goes_within_a_batch_leaves_nothing
        no_commands_have_no_replies
    }
    best_effort {
        each_goes_after_its_minute
        when_all_are_gone_that_is_told
        what_is_gone_cuts_nothing_behind_it
        the_next_one_comes_behind_those_that_are_gone
        a_later_one_does_not_keep_the_earlier_ones
        a_range_before_the_oldest_tells_what_is_gone
        at_least_64_are_kept_whatever_the_rate
        as_many_as_a_minute_brings_are_kept
        never_more_than_16384_are_kept
    }
    bindings {
        pending_and_fresh_ones_mix_in_any_order
        an_unknown_waitpoint_is_not_found
        a_closed_waitpoint_is_not_pending
        a_pending_waitpoint_past_its_time_is_expired
        a_waitpoint_that_was_bound_in_time_does_not_expire
        a_fresh_waitpoint_is_new
        one_bad_binding_leaves_the_others_as_they_are
        an_execution_has_64_waitpoints_that_are_not_closed
    }
    budgets {
        a_budget_is_what_it_was_made_as
        every_scope_is_kept
        an_unknown_scope_is_refused
        what_a_budget_is_told_has_limits
        made_again_it_is_the_same_or_a_conflict
        an_update_replaces_what_it_names
        a_raised_limit_blocks_no_more
        another_interval_counts_from_now
        a_reset_begins_a_new_period
        a_budget_resets_itself_at_its_time
        what_is_answered_does_not_depend_on_the_tick
        keys_are_remembered_over_a_reset
        a_deleted_budget_is_gone_and_its_id_is_free
        a_budget_has_a_log_of_its_own
        budgets_are_listed_newest_first_in_pages
        budgets_are_found_by_their_scope
    }
    blocked {
        each_reason_has_its_state
        only_what_is_eligible_is_blocked
        only_the_expected_reason_is_lifted
        other_reasons_are_none_of_admission
        what_is_let_go_wakes_who_waits
        a_block_and_a_hold_stand_side_by_side
        a_block_takes_a_grant_back
        a_grant_lets_go_what_its_worker_can_run
        a_worker_that_comes_lets_go_what_it_can_run
        explain_names_what_is_lacking
        blocked_ones_are_listed_longest_first
        a_block_and_its_end_are_told
        time_goes_on_for_what_is_blocked
    }
    buffered {
        every_form_is_met_by_signals_that_came_before
        every_form_is_completed_by_a_signal_that_comes_later
        what_was_counted_at_suspend_is_nothing_new_later
        an_already_satisfied_suspend_keeps_the_lease
        the_task_that_goes_on_gets_the_signals
        a_resume_delay_does_not_hold_up_what_never_stopped
        a_task_may_suspend_again_and_again_without_losing_its_lease
        signals_of_a_waitpoint_that_is_not_bound_are_not_weighed
    }
    bulks {
        a_preview_counts_and_changes_nothing
        all_that_a_filter_finds_is_cancelled
        every_action_is_carried_out
        many_take_several_steps
        strangers_are_not_touched
        it_is_paused_and_goes_on_and_ends
        a_step_counts_once
        it_is_told_until_it_has_ended
        made_again_it_is_the_same_or_another
        a_malformed_one_is_refused
        they_are_listed_newest_first_and_told
    }
    cancel {
        a_cancel_ends_the_execution_from_any_phase
        a_cancel_that_is_repeated_tells_the_first_state
        a_cancelled_execution_answers_any_fence
        an_execution_that_ended_otherwise_is_not_cancelled
        the_holder_cancels_with_its_fence
        an_attempt_that_had_ended_stays_as_it_ended
        the_source_is_recorded
        what_a_cancel_says_has_limits
    }
    capabilities {
        a_worker_needs_every_required_token
        tokens_are_case_sensitive
        a_token_is_not_covered_by_a_longer_one
        tokens_are_a_set
        a_claim_passes_over_what_it_cannot_run_and_leaves_it_alone
        order_holds_across_sets_of_capabilities
        malformed_sets_are_named
    }
    claim {
        a_claim_leases_the_execution_to_the_instance
        the_first_task_carries_its_lease_and_attempt
        every_task_of_a_claim_has_a_lease_id_counted_from_the_seed
        a_handle_names_the_lease_and_its_store
        what_the_next_claim_opens_depends_on_how_the_last_lease_ended
        started_is_set_by_the_first_claim_only
        a_claim_is_one_event_with_its_lease
        the_running_attempt_is_listed
        concurrent_claims_never_share_an_execution
    }
    claim_order {
        higher_priority_goes_first_then_the_older
        one_level_of_priority_outweighs_any_age
        ties_go_by_uuid_over_all_partitions
        priority_holds_across_partitions
        a_claim_takes_no_more_than_it_asks_for
        age_counts_from_the_submit_and_not_from_eligibility
        a_namespace_sees_only_its_own
    }
    claim_waiting {
        nothing_to_do_answers_at_once_without_a_wait
        a_wait_ends_empty_when_its_time_is_over
        work_that_is_there_needs_no_wait
        a_submit_wakes_a_claim
        a_release_wakes_a_claim
        the_end_of_a_delay_wakes_a_claim
        the_end_of_a_backoff_wakes_a_claim
        an_expired_lease_wakes_a_claim
        a_late_call_that_performs_the_expiry_wakes_a_claim
        a_revoked_lease_wakes_a_claim
        a_replay_wakes_a_claim
        each_new_execution_goes_to_one_of_many_waiting_claims
        a_batch_wakes_as_many_claims_as_it_needs
        only_a_claim_that_can_run_it_gets_the_work
        a_claim_waits_on_all_its_lanes
        a_claim_that_was_given_up_takes_no_work
        a_claim_that_was_given_up_keeps_no_work_from_the_next_in_line
    }
    complete {
        a_completed_execution_is_terminal
        a_completion_is_one_event_with_its_outcome
        success_clears_the_failure_before_it
        time_does_nothing_to_a_completed_execution_while_it_is_kept
        a_completion_may_bring_the_next_tasks_of_its_worker
        the_next_tasks_are_ones_that_the_worker_may_run
        a_malformed_next_claim_leaves_the_lease_as_it_is
    }
    conditions {
        single_waits_for_the_first_of_its_name
        a_wildcard_takes_any_name
        any_of_a_set_is_one_of_its_names
        all_of_a_set_are_all_its_names
        a_count_of_a_set_counts_different_names
        all_of_waits_for_every_member_in_any_order
        one_signal_counts_in_every_node_that_listens
        different_waitpoints_are_counted
        different_signals_are_counted_by_their_id
        different_sources_are_type_and_identity_together
        a_count_may_listen_to_one_name
        every_count_has_its_own_tally
        no_signal_satisfies_what_waits_for_an_operator_or_for_time
        no_signal_satisfies_a_member_that_hears_none
        a_pending_waitpoint_keeps_its_signals_while_another_is_waited_for
    }
    deadline {
        the_earlier_of_the_two_deadlines_counts
        an_execution_expires_at_its_deadline_from_any_phase
        a_deadline_in_the_past_is_accepted_and_expires_at_once
        no_claim_takes_what_is_past_its_deadline
        a_deadline_ends_with_the_outcome
        a_replay_counts_the_relative_deadline_anew
        a_replay_drops_an_absolute_deadline_that_has_passed
        a_hold_does_not_stop_the_deadline
    }
    delay {
        a_delay_releases_the_lease_and_keeps_the_attempt
        the_same_attempt_goes_on_when_the_time_has_come
        a_delay_that_is_not_in_the_future_is_resumable_at_once
        time_under_lease_adds_up_over_delays
        a_delay_is_one_event_that_says_until_when
        a_delay_has_limits
    }
    delete {
        every_trace_but_the_events_is_removed
        the_last_event_carries_what_can_no_longer_be_looked_up
        only_an_ended_execution_is_deleted
        a_deleted_execution_is_not_found
        deleting_one_leaves_the_others
        a_deleted_execution_leaves_no_timer_behind
    }
    errors {
        a_refusal_comes_as_the_kind_of_error_that_its_code_belongs_to
        a_refusal_of_input_names_the_field_and_the_limit
    }
    events {
        every_transition_is_one_event
        numbers_rise_and_every_subject_counts_without_holes
        what_is_no_transition_leaves_no_event
        replies_and_records_name_their_event
        an_event_tells_when_and_about_what
        events_carry_no_payloads_and_no_results
        events_of_an_execution_come_in_pages
    }
    explain {
        an_eligible_execution_waits_for_a_worker
        the_highest_priority_is_not_to_be_raised
        a_delayed_execution_says_until_when
        a_retry_says_what_failed_and_when_it_starts
        a_held_execution_says_why_and_how_to_release_it
        a_running_execution_says_who_runs_it
        a_lost_lease_is_told_before_and_after_it_was_handled
        a_finished_execution_says_how_it_ended
        a_delayed_resume_says_until_when
        what_nobody_can_run_names_the_nearest_worker
        busy_workers_are_told_from_missing_ones
        a_member_of_a_cancelled_flow_says_so
        a_member_names_those_that_it_waits_for
        records_alone_say_which_way_it_goes
        every_cause_has_a_name_of_its_own
    }
    explain_limits {
        a_used_up_budget_says_how_much_more_it_takes
        all_that_is_used_up_is_raised_at_once
        a_budget_is_told_as_it_is_now
        a_full_window_says_when_to_come_back
        a_window_that_was_larger_says_how_large_it_must_be
        taken_slots_say_who_holds_them
        a_limit_that_no_claim_has_asked_is_told
    }
    fail_retry {
        a_failure_waits_for_its_retry
        no_retry_starts_before_its_backoff_is_over
        the_default_backoff_doubles_and_gives_up_after_three
        backoff_follows_the_policy
        jitter_comes_from_the_id_and_the_retry
        a_retry_without_a_delay_is_eligible_at_once
        the_class_decides_whether_there_is_a_retry
        the_given_class_wins_over_the_category
        an_unknown_category_is_transient_and_kept_as_it_is
        only_listed_categories_are_tried_again
        without_retries_the_first_failure_is_the_end
        retry_after_replaces_a_shorter_backoff
        a_scheduled_retry_is_one_event_that_says_when
        what_a_failure_says_has_limits
        a_huge_number_of_retries_is_allowed
    }
    fencing {
        an_ended_execution_is_not_active_whatever_the_fence
        not_active_tells_what_is_true_now
        the_last_lease_tells_that_it_ran_out
        the_last_lease_tells_that_it_was_revoked
        a_fence_that_is_not_of_the_lost_lease_is_not_active
        a_released_lease_is_not_active
        a_lease_that_another_replaced_is_stale
        every_part_of_the_fence_must_match
        an_execution_that_nobody_claimed_is_not_active
        a_fence_comes_whole_or_not_at_all
        no_fence_needs_an_operator
        an_operator_acts_on_the_live_lease
        an_operator_without_a_live_lease_is_refused
        an_operator_on_an_expired_lease_is_refused
        a_fence_with_an_operators_cancel_is_checked_too
    }
    flow_basics {
        a_flow_is_made_once
        tags_of_a_flow_are_merged
        an_event_tells_what_its_flow_is
        flows_are_listed_newest_first
        flows_of_one_instant_are_each_listed_once
        a_flow_counts_its_members_by_state
        many_at_once_end_the_members_of_one_flow
        many_at_once_join_one_flow
        a_member_is_of_the_flows_namespace
        a_cancelled_flow_lets_no_member_be_claimed
        a_member_that_waited_for_children_goes_on
        a_graph_is_shown_in_pages
        a_flow_that_failed_is_replayed
        a_flow_goes_with_all_its_members
        a_cancelled_flow_without_members_goes
        a_graph_that_is_refused_leaves_nothing
    }
    flow_cancel {
        cancel_all_ends_every_member
        a_cancel_may_wait_until_all_have_ended
        cancel_pending_lets_running_members_end
        a_wait_that_running_members_outlast_is_a_timeout
        flows_whose_cancel_is_carried_on_are_listed
        a_lease_that_ends_without_an_outcome_is_cancelled_in_that_step
        flow_only_touches_no_member
        nothing_is_added_to_a_cancelled_flow
        a_cancel_again_answers_as_the_first
        an_ended_flow_is_not_cancelled
        no_member_is_claimed_after_the_accepting_step
        a_graph_that_is_still_unfolding_is_cancelled_whole
        a_member_that_awaits_its_cancel_says_so
        nothing_in_a_cancelled_flow_is_replayed
    }
    flow_cancelled {
        every_edge_is_told_when_it_resolves
        one_that_ends_by_itself_releases_nobody
        more_edges_than_one_step_takes_are_told_step_by_step
        members_are_cancelled_before_their_edges_resolve
        what_was_left_of_an_end_releases_nobody
        a_graph_that_was_unfolding_tells_of_its_edges
        a_replay_under_way_ends_with_its_flow
        edges_that_were_taken_back_resolve_anew
        a_failure_that_is_not_tried_again_is_told_so
        a_delay_in_a_cancelled_flow_is_told_as_cancelled
        a_wait_in_a_cancelled_flow_is_told_as_cancelled
        a_suspend_in_a_cancelled_flow_is_refused_and_ends_it
        a_suspend_that_is_satisfied_already_goes_on
        what_was_answered_before_the_cancel_is_answered_again
        a_group_that_was_cancelled_stays_so
    }
    flow_children {
        the_parent_goes_on_when_every_child_has_ended
        children_that_have_ended_already_are_not_waited_for
        a_child_that_was_replayed_meanwhile_is_not_told
        an_upstream_that_is_waited_for_is_told_once
        without_children_it_goes_on_at_once
        an_upstream_has_the_name_of_its_edge_however_it_ended
        by_default_it_waits_for_its_upstreams
        a_parent_may_make_its_children
        a_wait_that_is_repeated_answers_as_the_first
        who_cannot_be_waited_for_is_refused
        those_who_wait_for_each_other_are_refused
        those_who_wait_over_edges_and_children_are_refused
        a_cancelled_flow_ends_a_waiting_parent
        an_edge_to_the_parent_does_not_count_twice
    }
    flow_data {
        a_task_gets_the_results_of_satisfied_edges_by_name
        only_satisfied_edges_are_inputs
        a_claim_brings_the_same_inputs
        results_that_are_too_large_are_named_and_left_out
        a_result_becomes_the_payload
        without_a_result_the_payload_stays
        the_same_name_twice_loses_nothing
    }
    flow_joins {
        success_only_needs_success
        always_takes_any_outcome
        failure_only_needs_a_failure
        all_of_needs_every_edge
        all_of_is_impossible_with_the_first_that_is
        any_of_takes_the_first
        a_quorum_is_impossible_when_too_few_are_left
        a_quorum_above_the_edges_is_impossible_with_the_first
        running_siblings_are_cancelled_too
        let_run_touches_nobody
        a_group_decides_once
        more_siblings_than_one_step_takes_are_all_cancelled
        more_edges_than_one_step_takes_are_all_resolved
        a_skip_goes_to_any_depth
        a_delay_goes_on_under_the_edges
        a_result_is_not_lost_when_the_end_resolves_edges
        an_edge_that_is_not_satisfied_passes_no_payload
        inputs_of_many_that_are_claimed_at_once_are_all_told
    }
    flow_limits {
        more_members_than_a_submit_takes_are_refused
        more_edges_than_a_submit_takes_are_refused
        cycles_are_found_in_a_large_graph
    }
    flow_removed {
        readers_do_not_find_it_any_more
        its_removal_is_told_of_the_flow
        edges_of_it_are_no_edges_any_more
        its_name_is_free_again
        a_graph_that_is_submitted_again_does_not_name_it
        a_downstream_that_ran_is_replayed_without_it
        a_downstream_that_was_skipped_stays_so
        a_join_counts_what_it_had_come_to
        an_upstream_of_it_is_replayed_to_its_end
        a_flow_replays_the_failures_that_are_there
        what_was_handled_stays_handled
        what_its_group_had_decided_is_remembered
        another_execution_with_its_id_is_another
        a_failure_with_its_id_is_no_failure_of_the_flow
        a_flow_whose_members_are_all_removed_goes_in_its_time
        a_flow_is_deleted_with_those_that_are_left
        a_deleted_flow_is_gone_when_that_is_answered
        while_a_flow_is_removed_nothing_of_it_comes_back
        members_of_a_cancelled_flow_are_removed_too
        a_member_of_a_flow_that_goes_on_is_not_removed
    }
    flow_replay {
        what_was_skipped_waits_again
        downstreams_that_ran_keep_their_outcome
        descendants_are_replayed_if_asked_for
        a_released_downstream_that_has_not_started_waits_again
        a_replayed_skipped_member_looks_at_its_upstreams_again
        with_another_failed_upstream_it_stays_skipped
        replayed_descendants_are_skipped_if_it_fails_this_time
        replayed_descendants_wait_for_both_sides_of_a_diamond
        replayed_descendants_get_the_new_payload
        descendants_behind_a_skipped_member_are_replayed_too
        a_flow_replays_its_failed_part
        handled_failures_are_left_alone
        many_failures_are_all_named
        what_comes_back_keeps_its_delay
        what_was_cancelled_before_it_began_waits_again
        a_replayed_descendant_that_is_replayed_again_still_waits
        edges_into_what_never_began_are_taken_back
        a_parent_waits_for_a_child_that_is_replayed
        inputs_outlive_the_replay_of_an_upstream
        what_failed_behind_a_failure_waits_for_it
        a_skipped_member_that_had_run_before_is_replayed
        listed_members_are_replayed
        a_wide_replay_is_carried_on
        a_join_behind_a_wide_replay_runs_again
        a_replay_before_all_edges_have_resolved_takes_back_those_that_did
        edges_of_two_generations_resolve_once
        an_edge_that_is_applied_while_others_are_taken_back_counts_once
        what_comes_back_has_its_time_and_its_hold
        a_parent_waits_for_a_child_that_comes_back
        a_failed_quorum_is_replayed_with_its_siblings
        a_replay_ends_the_cancels_of_a_decision
        what_comes_back_gets_the_payload_that_came_meanwhile
        a_group_that_a_replay_finds_decided_cancels_the_rest
        inputs_tell_results_of_the_outcome_they_name
    }
    flow_state {
        a_flow_without_members_is_open
        open_running_blocked
        a_flow_whose_members_all_wait_for_others_is_blocked
        counts_follow_every_member
        a_handled_failure_does_not_fail_the_flow
        a_handler_that_fails_fails_the_flow
        a_failure_without_edges_fails_the_flow
        a_cancel_by_somebody_else_counts_as_a_failure
        a_cancel_in_the_words_of_a_group_counts_as_a_failure
        the_end_is_told_in_the_step_of_the_last_member
        a_member_that_is_added_reopens_an_ended_flow
        an_ended_execution_that_is_added_counts_as_it_ended
        flows_are_listed_newest_first_and_by_what_they_are
        tags_of_a_flow_are_merged
        every_event_of_flows_has_its_act
        a_blocked_member_says_what_it_waits_for
        members_and_events_are_found_by_their_flow
    }
    flow_steps {
        a_flow_is_made_once
        executions_become_members
        an_idempotency_key_of_a_member_is_one_within_its_flow
        a_flow_grows_one_by_one
        a_member_belongs_to_one_flow
        an_edge_counts_once_it_is_applied
        an_edge_from_what_has_ended_resolves_when_it_is_applied
        an_edge_is_staged_and_applied_in_one_step
        an_edge_that_cannot_be_applied_is_not_staged
        an_impossible_edge_skips_when_it_is_applied
        an_edge_that_cannot_be_is_refused
        one_edge_passes_a_payload
        a_group_policy_holds_until_an_edge_has_resolved
        an_edge_is_resolved_once
        an_edge_that_is_still_to_be_resolved_can_be
        members_and_edges_are_shown
        eligibility_says_how_far_a_member_is
        a_flow_goes_with_its_members
        what_keeps_a_flow_from_being_removed_is_told
        an_ended_flow_is_kept_for_its_time
        there_is_no_such_flow
        a_tick_counts_the_work_of_flows_by_kind
    }
    flow_submit {
        a_chain_runs_in_order
        a_diamond_waits_for_both_sides
        a_failure_skips_all_that_follows
        a_quorum_cancels_the_rest
        a_large_graph_unfolds
        what_is_wrong_with_a_graph_is_told_and_nothing_is_written
        the_same_graph_again_is_the_same_flow
    }
    frame_retention {
        durable_frames_are_kept_up_to_their_limit
        ten_thousand_durable_frames_are_kept_by_default
        a_limit_below_an_append_keeps_its_newest
        no_mode_removes_frames_of_another
        the_newest_64_patches_stay_readable
        who_begins_with_what_is_kept_is_told_of_nothing
        each_mode_tells_of_its_own
        what_is_not_asked_for_is_not_told_of
        every_attempt_has_its_own_limits
    }
    grant_and_claim {
        it_leases_without_a_grant_before_it
        it_does_not_ask_what_the_worker_can_do
        it_opens_or_continues_by_itself
        repeated_it_gives_the_same_task
        it_takes_only_what_is_eligible
        a_live_grant_of_another_worker_stands
        a_lease_that_ran_out_is_lost_and_taken_up_in_one_step
        a_deadline_that_passed_is_carried_out
        the_lease_has_its_range
    }
    grant_claim {
        a_claim_uses_the_grant_up_and_brings_the_task
        the_same_instance_gets_the_same_task_again
        a_lease_of_the_queue_is_no_lease_of_a_grant
        a_lease_that_ran_out_is_lost_by_the_claim_that_meets_it
        only_what_is_eligible_is_leased
        a_deadline_that_passed_is_carried_out_by_the_claim
        a_late_claim_is_told_that_the_grant_is_over
        a_grant_may_be_used_until_its_last_millisecond
        an_open_attempt_is_continued_by_the_resumed_claim
        without_an_open_attempt_there_is_nothing_to_resume
        after_a_lost_lease_a_claim_opens_a_reclaim
        a_lease_from_a_grant_has_the_range_of_every_lease
    }
    grant_lapse {
        a_grant_that_lapses_gives_the_old_place_back
        a_lapse_is_no_transition
        a_lapse_wakes_who_waits
        a_grant_past_its_time_makes_room_for_the_next
        a_change_of_priority_holds_for_the_place_that_comes_back
        a_deadline_comes_before_the_end_of_a_grant
        a_used_grant_leaves_no_timer
        completing_does_not_take_what_is_set_aside
    }
    grants {
        a_grant_names_execution_partition_and_end
        the_record_shows_the_grant_and_its_state_stays
        a_granted_execution_is_in_no_queue
        only_the_holder_of_the_grant_may_claim
        only_what_is_eligible_is_granted
        the_lane_must_be_that_of_the_execution
        there_is_one_grant_at_a_time
        a_worker_that_lacks_something_is_told_what
        a_grant_lives_for_1_to_60000_ms
        a_lease_that_ran_out_is_taken_away_first
        a_deadline_that_passed_ends_it_instead
        explain_says_for_whom_it_is_set_aside
        what_is_no_claim_keeps_the_grant
        a_hold_or_an_end_takes_the_grant_back
    }
    heartbeat {
        it_renews_and_reports_each_lease
        a_cancellation_is_told_for_a_minute
        another_boot_is_told_nothing_of_the_one_before
        cancellations_are_told_whether_listed_or_not
        who_cancels_its_own_task_is_not_told
        what_was_cancelled_under_another_lease_is_no_cancellation
        what_is_cancelled_after_its_lease_ran_out_is_no_cancellation
        it_tells_of_paused_lanes_and_of_draining
        waiting_ends_with_news
        waiting_without_news_ends_with_its_time
        tasks_that_were_stopped_are_told_unlisted
        a_cursor_that_is_none_is_refused
        news_of_others_is_none
        nobody_waits_for_a_worker_that_is_not_registered
        a_heartbeat_has_limits
    }
    hold {
        a_held_execution_is_not_claimed_until_it_is_released
        holding_and_releasing_twice_is_already_satisfied
        only_a_runnable_execution_is_held_or_released
        a_delay_goes_on_under_a_hold
        a_delay_that_ended_under_a_hold_is_gone_at_release
        a_backoff_goes_on_under_a_hold
        a_hold_keeps_what_the_next_claim_opens
        the_detail_has_a_limit
    }
    idempotency {
        the_same_key_and_content_is_a_duplicate_in_its_state_now
        the_same_key_and_other_content_is_a_mismatch
        what_is_not_content_may_differ
        a_policy_with_its_defaults_written_out_is_the_same_content
        a_key_is_free_again_when_its_window_is_over
        a_key_outlives_its_execution
        keys_of_different_namespaces_are_apart
        a_key_must_stand_on_its_own_partition
        the_same_id_and_content_is_a_duplicate_for_ever
        the_same_id_and_other_content_is_a_mismatch
        a_removed_id_is_free_again
    }
    inbox {
        waitpoints_come_oldest_first_bound_or_not
        suspensions_come_oldest_first_and_say_why
        of_the_same_instant_the_lower_id_comes_first
        every_page_size_finds_each_exactly_once
        many_waitpoints_of_one_execution_come_in_pages
        a_walk_is_not_disturbed_by_what_comes_and_goes
        each_filter_keeps_what_it_names
        a_namespace_sees_its_own_only
        no_list_shows_a_token
        the_limit_has_a_range
        a_cursor_is_bound_to_its_question_and_filter
    }
    inbox_changes {
        a_resume_takes_the_suspension_and_its_waitpoints
        a_signal_that_resumes_takes_them_too
        a_waitpoint_that_stays_pending_stays_listed
        a_close_takes_the_waitpoint_only
        every_end_takes_all_of_it
        a_timeout_that_ends_it_takes_all_of_it
        a_deadline_takes_all_of_it
        a_removed_execution_leaves_nothing
        a_later_suspension_has_a_later_place
        an_unused_waitpoint_leaves_at_its_time
    }
    keys {
        a_key_is_what_it_was_made_as
        made_again_it_is_the_same_or_another
        a_key_that_is_taken_away_is_gone
        keys_are_listed_newest_first_in_pages
        a_malformed_key_is_refused
    }
    lane_states {
        a_paused_lane_takes_submits_and_gives_nothing
        a_draining_lane_is_emptied
        a_disabled_lane_does_neither
        running_work_is_untouched
        a_repeated_submit_is_known_whatever_its_lane_takes
        other_lanes_and_namespaces_go_on
        a_lane_that_opens_wakes_those_who_wait
        a_complete_that_claims_on_passes_a_closed_lane_over
        what_waits_in_a_closed_lane_says_so
        a_change_leaves_what_is_not_named
        a_lane_tells_why_it_is_closed
        a_change_of_a_lane_is_one_event
        waiting_is_worth_priority_where_priorities_age
        a_change_of_ageing_holds_for_what_becomes_eligible_afterwards
        a_place_in_the_queue_is_kept_over_a_grant
        a_new_priority_is_weighed_as_the_lane_weighs
        a_lane_tells_what_it_holds
        a_lane_without_work_is_forgotten
        lanes_are_listed_by_name_in_pages
    }
    lanes {
        a_claim_sees_only_its_lanes
        weights_share_a_claim_smoothly
        lanes_of_equal_weight_take_turns
        credit_from_earlier_claims_counts
        an_empty_lane_gives_its_turns_to_the_others
        ordered_lanes_are_emptied_one_after_the_other
        priority_does_not_reach_over_lanes
    }
    lease_expiry {
        a_lease_past_its_expiry_reads_as_expired_before_anyone_acts
        an_expired_lease_makes_the_execution_eligible_again
        a_lease_lives_until_the_last_millisecond
        the_reclaim_is_a_new_attempt_and_the_lost_one_is_interrupted
        time_after_the_expiry_does_not_count_as_time_under_lease
        a_late_call_is_refused_and_performs_the_expiry
        late_progress_is_refused_and_leaves_the_expiry_to_others
        the_loss_after_the_last_allowed_reclaim_fails_the_execution
        with_no_reclaim_allowed_the_first_loss_is_the_end
        reclaims_do_not_use_up_retries
        every_lease_has_its_own_expiry
    }
    lease_renewal {
        a_renewal_moves_the_expiry_and_keeps_the_lease
        a_renewal_without_a_ttl_takes_the_last_one
        a_renewed_lease_outlives_its_first_expiry
        a_renewal_is_not_a_transition
        the_ttl_of_a_renewal_has_a_range
    }
    ledgers {
        usage_is_the_sum_of_ledgers
        what_is_counted_meanwhile_is_no_difference
        many_who_report_at_once_are_no_difference
        what_each_attempt_used_is_told
        the_newest_attempts_are_told_apart
        a_lane_stands_under_its_namespaces_limits_and_its_own
        what_a_removed_execution_used_is_nobodys
        what_was_used_is_told_whatever_has_become_of_it
        what_members_of_a_removed_flow_used_is_nobodys
        what_time_removes_is_nobodys
        a_step_disowns_so_many_and_no_more
        what_is_left_of_strangers_is_found
        a_page_ends_when_it_has_looked_at_many
    }
    many_tails {
        a_hundred_tails_of_one_execution_all_wake
        a_hundred_tails_of_as_many_executions_get_each_its_own
        tails_hold_up_no_claim_and_no_write
        tails_with_different_places_get_what_is_behind_theirs
        tails_of_two_attempts_are_apart
        a_tail_sees_an_attempt_go_on
    }
    pages {
        a_page_has_1_to_500_items
        an_absurd_wait_is_no_harm
        a_partition_that_does_not_exist_is_refused
        a_claim_waits_a_minute_at_the_most
        a_tick_of_one_partition_leaves_the_others
    }
    payload {
        bytes_come_back_as_they_went_in
        a_payload_over_the_limit_is_refused
        a_result_over_the_limit_leaves_the_lease_as_it_is
        a_claim_stops_before_its_reply_grows_too_large
    }
    priority {
        a_change_moves_a_queued_execution
        a_change_is_clamped
        a_change_holds_for_the_next_time_it_queues
        a_change_is_one_event_and_no_change_is_none
        an_ended_execution_has_no_order_to_change
    }
    progress {
        progress_is_shown_with_the_execution
        progress_makes_at_most_one_event_a_second
        progress_is_not_a_transition
        progress_does_not_keep_a_lease_alive
        progress_has_limits
    }
    quota_window {
        the_limit_is_admitted_and_no_more
        the_window_slides
        a_place_counts_from_when_the_attempt_begins
        a_place_is_kept_until_the_lease_is_heard_of
        a_claim_from_an_old_grant_counts_when_it_is_made
        a_crowd_begins_no_more_than_the_window_allows
        it_is_told_when_the_oldest_leaves
        what_is_refused_takes_no_place
        a_resumed_claim_takes_no_place
        a_slot_that_is_given_back_keeps_its_place
        jitter_comes_from_the_execution
        who_waits_comes_after_its_jitter
        another_limit_counts_what_was_admitted
        a_window_that_is_switched_on_begins_empty
        many_claims_are_counted_exactly
        what_has_left_is_forgotten
    }
    quotas {
        a_policy_is_what_it_was_made_as
        what_is_not_there_is_none
        a_spec_out_of_bounds_is_refused
        made_again_it_is_the_same_or_a_conflict
        zero_switches_a_part_off
        so_many_at_a_time
        asked_again_a_slot_is_already_admitted
        an_epoch_begins_with_1
        an_execution_of_no_partition_is_refused
        a_slot_is_given_back_once
        a_pending_slot_is_confirmed
        a_pending_slot_past_its_time_is_noted_and_kept
        holders_come_in_pages
        who_waits_is_woken_best_first
        who_was_too_fast_waits_for_the_window
        a_higher_cap_wakes_as_many_as_it_admits
        a_lowered_cap_takes_nothing_away_and_admits_nobody
        many_wait_in_order
        a_deleted_policy_is_gone_and_its_id_is_free
        policies_are_listed_newest_first_in_pages
    }
    reclaim_grants {
        it_is_held_for_the_worker
        only_what_waits_for_a_reclaim_is_granted
        a_lease_that_ran_out_waits_at_once
        what_the_cap_ended_says_so
        a_grant_of_either_kind_is_the_only_one
        the_worker_must_be_able
        its_time_has_the_range_of_every_grant
        a_reclaim_opens_a_new_attempt
        a_reclaim_needs_a_reclaim_grant
        time_is_looked_at_before_the_worker
        a_deadline_that_passed_leaves_nothing_to_reclaim
        a_lower_cap_ends_what_lost_too_many
        a_reclaim_has_the_ranges_of_lease_and_cap
    }
    repetition {
        a_repeated_complete_is_completed
        a_repeated_fail_answers_the_same_retry
        a_repeated_last_fail_is_terminal_again
        a_repeated_delay_answers_the_same_time
        a_repeated_cancel_of_the_holder_answers_the_same_state
        another_operation_with_that_fence_is_refused
        the_memory_outlives_claims_losses_operators_and_replays
        the_memory_of_a_holders_cancel_outlives_a_replay
        the_memory_outlives_a_timeout
        the_next_lease_ending_operation_of_a_worker_replaces_the_memory
        an_operators_ending_leaves_no_memory
        a_refused_operation_leaves_no_memory
        a_repeated_complete_claims_nothing
    }
    replay {
        every_outcome_can_be_replayed
        a_replayed_execution_begins_anew
        epochs_and_attempts_go_on_over_replays
        a_second_generation_has_its_own_retries
        only_an_ended_execution_is_replayed
        the_policy_limits_replays
        the_fence_of_an_earlier_generation_is_stale
        a_replayed_execution_is_not_removed_by_its_old_retention
    }
    results {
        a_result_is_read_with_its_content_type
        no_result_is_none_and_an_empty_result_is_one
        a_failed_attempt_has_no_result
        every_generation_keeps_its_result
        a_removed_execution_has_no_result
        a_success_without_a_result_hides_those_before_it
    }
    resume {
        an_operator_resumes_whatever_the_condition
        an_operators_resume_closes_the_waitpoints
        an_operators_resume_is_one_event_that_says_by_what
        an_operators_resume_hands_over_no_signals
        an_operators_resume_may_be_delayed
        an_operators_resume_waits_as_the_suspension_asked
        only_a_suspended_execution_is_resumed
        what_a_resume_says_has_limits
        a_resume_wakes_a_claim
        of_many_signals_in_a_batch_one_resumes
        of_many_signals_at_once_one_resumes
        an_operator_and_signals_at_once_resume_once
    }
    resume_policy {
        by_default_all_waitpoints_close
        a_waitpoint_that_is_not_closed_is_pending_again
        fresh_waitpoints_are_pending_again_too
        consumed_signals_are_not_weighed_again
        signals_that_are_not_consumed_are_weighed_again
        a_retained_buffer_keeps_what_was_not_consumed
        a_buffer_that_is_not_retained_is_dropped
        a_kept_waitpoint_works_as_a_mailbox
        waitpoints_of_no_suspension_are_left_alone
        a_used_waitpoint_that_is_pending_again_does_not_expire
        a_resume_delay_comes_before_the_next_claim
        a_resume_delay_follows_a_timeout_too
        an_execution_is_held_while_its_resume_is_delayed
    }
    resume_signals {
        the_signals_that_resumed_it_come_with_the_next_claim
        large_bodies_come_along
        bodies_beyond_a_reply_are_read_one_by_one
        a_claim_stops_before_signals_make_its_reply_too_large
        a_task_larger_than_a_reply_holds_nobody_up
        what_a_suspend_left_counts_in_a_reply
        a_task_that_was_not_resumed_has_none
        a_task_that_an_operator_resumed_has_none
        another_fence_observes_nothing
        the_next_suspension_brings_its_own
        the_next_attempt_does_not_see_them
    }
    retention {
        each_outcome_is_kept_as_its_policy_says
        a_day_is_the_default
        without_retention_it_goes_with_the_next_tick
        what_has_not_ended_is_never_removed
        removal_by_retention_is_an_event
    }
    revisions {
        tags_of_an_execution_on_condition
        tags_of_a_flow_on_condition
        a_budget_changes_on_condition
        a_quota_policy_changes_in_part_and_on_condition
        a_lane_changes_on_condition
        a_namespace_changes_on_condition
        events_of_a_flow_come_in_pages
    }
    revoke {
        a_revoked_lease_is_claimable_again_as_a_reclaim
        a_repeated_revocation_is_already_satisfied
        a_newer_lease_is_not_the_revoked_one
        without_a_live_lease_there_is_nothing_to_revoke
        a_revocation_at_the_cap_fails_the_execution
        the_reason_has_a_limit
    }
    routes {
        what_nobody_can_run_is_blocked_after_a_while
        what_requires_nothing_is_never_blocked
        only_live_workers_of_the_lane_count
        a_worker_in_between_begins_the_while_anew
        a_worker_that_came_and_went_begins_the_while_anew
        who_has_not_looked_for_long_begins_the_while_anew
        a_refresh_that_covers_lets_go_at_once
        what_is_let_go_is_claimed_by_who_came
        a_worker_lets_go_all_that_it_can_run
        a_worker_lets_go_as_much_as_it_can_claim
        many_are_blocked_and_let_go_in_batches
        a_block_that_comes_too_late_is_taken_back
        whoever_stops_leaves_the_rest_to_the_next
        what_was_claimed_meanwhile_is_not_blocked
        time_alone_lets_nothing_go
        a_reclaim_grant_lets_go_what_its_worker_can_run
        a_paused_lane_is_looked_at_all_the_same
        routes_are_listed_while_something_stands_in_their_queues
        those_who_wait_are_listed_route_by_route
        fleets_and_what_they_offer_are_listed
        namespaces_in_which_something_stands_are_listed
        a_detail_is_bounded
    }
    search {
        the_newest_comes_first
        of_the_same_instant_the_higher_id_comes_first
        every_page_size_finds_each_exactly_once
        members_that_are_made_later_stand_in_their_place
        a_walk_is_not_disturbed_by_what_comes_and_goes
        each_filter_keeps_what_it_names
        states_are_a_filter_and_follow_the_execution
        ranges_begin_with_their_first_and_end_before_their_last
        the_limit_has_a_range
        a_cursor_is_bound_to_its_filter
    }
    secrets {
        a_store_is_seeded_once
        new_tokens_carry_the_new_kid
        old_tokens_are_accepted_for_the_grace_and_no_longer
        without_a_grace_old_tokens_are_refused_at_once
        every_retired_kid_has_its_own_time
        a_repeated_rotation_changes_nothing
        a_kid_keeps_its_secret
        the_grace_has_a_range
        a_kid_and_a_secret_have_their_form
        kids_are_listed_without_secrets
        a_token_whose_key_is_gone_is_not_signed_again
        a_retired_kid_is_removed_by_a_rotation_after_its_time
        two_rotations_at_once_follow_one_another
        retention_removes_a_retired_kid_after_its_time
    }
    signal_dedup {
        a_repeated_key_answers_the_first_id_and_effect
        each_effect_is_remembered
        a_key_is_known_after_the_resume_and_after_the_end
        a_key_is_forgotten_after_a_day
        keys_of_different_executions_are_apart
        without_a_key_nothing_is_a_duplicate
        a_repetition_needs_the_token_too
        a_refused_signal_leaves_its_key_free
        of_many_at_once_with_one_key_one_is_accepted
    }
    signal_refusals {
        the_first_check_that_fails_is_the_answer
        an_ended_execution_is_not_signalable
        a_suspension_that_was_resumed_takes_no_more
        a_closed_waitpoint_beside_a_pending_one_is_told_as_closed
        a_held_or_delayed_execution_takes_signals
    }
    signals {
        a_signal_is_kept_as_it_was_sent
        bodies_come_back_byte_for_byte
        signals_are_numbered_in_their_order
        a_list_of_signals_has_its_limits
        a_waitpoint_is_named_by_its_id_or_by_its_key
        names_that_begin_with_two_underscores_are_reserved
        what_a_signal_says_has_limits
        an_accepted_signal_is_one_event_without_its_payload
        the_policy_limits_signals
        signals_are_kept_with_their_execution
        the_next_execution_of_a_removed_id_has_none_of_its_signals
    }
    stream_ends {
        the_outcome_of_an_attempt_ends_its_stream
        a_cancel_ends_it_from_any_state
        a_lost_lease_ends_it
        a_deadline_ends_it
        the_time_of_an_attempt_ends_it
        the_time_of_a_suspension_ends_it
        a_suspend_keeps_it_open
        a_delay_keeps_it_open
        an_ended_stream_stays_readable
        a_removed_execution_leaves_no_output
        output_goes_with_an_execution_whose_time_is_over
    }
    stream_reads {
        ranges_have_both_ends
        a_number_beyond_all_stands_behind_its_millisecond
        a_place_that_no_clock_shows_is_refused
        a_read_has_1_to_10_000_frames
        pages_follow_each_other_by_the_last_id
        a_reply_is_bounded_by_bytes
        a_read_may_leave_best_effort_out
        an_attempt_that_there_is_not_is_not_found
        an_execution_that_there_is_not_is_not_found
        a_stream_never_written_is_empty_and_open_until_its_attempt_ends
        reading_needs_no_lease_and_changes_nothing
    }
    stream_retention {
        a_closed_stream_is_kept_as_long_as_the_policy_says
        an_open_stream_is_kept
        without_a_time_it_is_kept_with_its_execution
        a_time_of_zero_keeps_nothing_that_has_ended
        the_time_of_an_attempt_begins_with_its_end
        best_effort_frames_do_not_last_longer_by_that
        a_trim_removes_what_is_past_its_time
        a_trim_removes_best_effort_frames_when_all_are_gone
        a_trim_that_was_not_finished_does_no_harm
    }
    submit {
        a_new_execution_waits_for_a_worker
        what_was_said_at_submit_is_in_the_record_and_in_the_task
        priority_is_clamped_and_the_reply_shows_it
        a_delay_in_the_future_makes_it_delayed
        a_delay_that_is_not_in_the_future_is_eligible_at_once
        a_held_submit_is_blocked_by_the_operator
        a_full_id_keeps_its_partition
        a_partition_that_does_not_exist_is_refused
        every_valid_lane_name_works
    }
    subscriptions {
        from_the_start_reads_all_that_is_kept
        from_now_brings_only_what_comes_later
        a_cursor_goes_on_where_the_last_page_ended
        a_cursor_behind_each_event_goes_on_there
        a_page_brings_all_there_is_up_to_its_limit
        a_cursor_can_be_used_again
        an_event_is_told_at_once
        a_cursor_goes_on_in_every_log
        an_event_of_a_budget_is_told
        a_wait_goes_on_over_events_that_do_not_match
        a_match_is_found_behind_any_number_that_do_not
        a_wait_without_events_ends_with_a_cursor
        each_filter_keeps_what_it_names
        outcomes_are_a_filter
        the_named_sets_hold_their_kinds
        a_cursor_is_bound_to_its_filter
    }
    summaries {
        a_summary_is_patched_and_its_patches_are_frames
        patches_do_what_the_rfc_says
        empty_values_stay_what_they_are
        a_marker_stores_a_null
        numbers_keep_their_text
        names_and_text_are_of_any_kind
        a_document_is_16_deep_at_most
        a_document_has_256_kib_at_most
        what_is_not_json_is_refused
        each_patch_raises_the_version_by_one
        the_patches_of_one_append_follow_each_other
        a_summary_goes_on_with_its_attempt
        every_attempt_has_its_own_summary
    }
    superseded {
        a_retry_a_reclaim_and_a_replay_are_told
        its_id_is_of_the_claim_and_behind_all_others
        an_attempt_that_goes_on_is_not_superseded
        an_end_without_a_follower_has_no_last_frame
        it_is_read_like_any_other
        it_is_kept_whatever_the_limit
    }
    suspend {
        a_suspend_releases_the_lease_and_keeps_the_attempt
        the_record_tells_what_it_waits_for
        the_reason_is_told_as_a_blocking_reason
        the_handle_names_the_lease_that_was_released
        a_suspension_outlives_its_lease
        every_change_is_one_event
        the_next_claim_continues_the_attempt
        time_while_suspended_is_not_time_of_the_attempt
        metadata_goes_to_the_next_task_until_another_suspend_replaces_it
        signals_that_resumed_an_attempt_are_not_those_of_the_next
        pending_waitpoints_that_were_not_bound_stay_pending
    }
    suspend_repetition {
        the_same_fence_gets_the_first_reply
        the_reply_is_the_same_for_any_mix_of_bindings
        the_memory_outlives_what_happens_next
        a_timeout_and_an_operator_leave_the_memory
        another_operation_with_that_fence_is_refused
        the_next_lease_ending_operation_replaces_the_memory
        a_suspend_with_the_fence_of_another_operation_is_refused
        the_same_key_gets_the_first_reply_from_any_lease
        a_key_is_known_a_minute_longer_than_the_timeout
        a_key_is_known_seven_days_at_the_most
        the_same_suspension_id_gets_the_first_reply
        an_already_satisfied_suspend_is_repeated_by_its_id_or_key
        a_refused_suspend_leaves_no_memory
    }
    suspend_shape {
        what_is_bound_and_what_is_named_are_the_same
        a_pending_binding_is_held_against_the_condition_too
        conditions_that_could_never_be_are_refused
        conditions_nest_four_deep
        a_node_names_64_signals_or_waitpoints
        a_suspension_has_64_waitpoints
        metadata_has_64_kib
        texts_and_numbers_have_their_ranges
        a_timeout_lies_no_more_than_600_s_in_the_past
        what_only_time_ends_needs_a_time
        conditions_without_signals_take_any_bindings
    }
    suspended {
        only_the_live_lease_suspends
        a_late_suspend_is_refused_and_performs_the_expiry
        a_suspended_execution_is_not_active
        only_runnable_and_ended_executions_are_held_replayed_and_deleted
        tags_and_priority_change_while_suspended
        a_cancel_ends_a_suspension
        a_deadline_ends_a_suspension
        a_replay_begins_without_what_the_last_generation_waited_for
    }
    suspension_timeout {
        fail_ends_it_as_failed
        cancel_ends_it_as_cancelled
        expire_ends_it_as_expired
        auto_resume_goes_on_with_a_signal_from_the_system
        auto_resume_hands_over_time_alone
        what_only_time_ends_is_resumed_by_time
        escalate_hands_it_to_an_operator
        the_next_suspension_is_not_escalated
        the_policy_speaks_for_a_suspend_that_does_not
        without_any_word_it_waits_for_ever_and_else_fails
        a_timeout_that_is_not_in_the_future_fires_with_the_next_tick
        a_signal_before_the_timeout_wins
        every_suspension_has_its_own_timeout
    }
    tags {
        tags_are_put_over_the_ones_that_are_there
        the_same_tags_again_change_nothing
        an_execution_in_any_phase_takes_tags
        a_key_must_have_the_form_caller_dot_field
        no_tags_are_no_write
        tags_are_limited_in_all
        malformed_tags_are_refused
    }
    tails {
        a_tail_brings_what_is_behind_its_place
        a_place_may_be_a_millisecond_or_one_that_never_was
        a_tail_wakes_with_the_next_frame
        a_tail_wakes_with_the_end
        a_tail_wakes_with_whatever_ends_the_attempt
        a_tail_wakes_when_its_execution_is_removed
        a_tail_of_an_ended_stream_does_not_wait
        a_tail_of_one_execution_sleeps_through_others
        a_tail_may_leave_best_effort_out
        a_tail_looks_at_a_page_at_a_time
        a_tail_is_told_what_is_gone
        tails_have_limits
    }
    timers {
        a_tick_counts_what_it_did_by_kind
        a_tick_goes_oldest_first_and_says_when_there_is_more
        one_tick_handles_many
        what_is_due_after_a_transition_is_more
        a_tick_has_a_range
        a_tick_of_one_home_leaves_the_others
        a_tick_of_a_home_that_does_not_exist_is_refused
        expire_does_it_for_one_execution
        promote_does_it_for_one_execution
        mark_lease_expired_does_it_for_one_execution
        due_tells_the_earliest_time
        a_sooner_timer_is_told_at_once
    }
    tokens {
        a_token_is_kid_expiry_and_signature
        a_token_with_any_character_changed_is_refused
        a_text_of_another_form_is_no_token
        parts_of_different_tokens_do_not_make_one
        a_token_opens_its_own_waitpoint_only
        without_a_token_no_signal_is_delivered
        an_unknown_waitpoint_or_kid_looks_like_a_wrong_token
        a_token_lives_for_its_time
        issuing_signs_the_same_token_again
        a_reminted_token_replaces_the_one_before
        a_closed_or_unknown_waitpoint_has_no_token
        the_time_of_a_new_token_has_a_range
    }
    trim {
        events_from_before_the_instant_are_removed
        numbers_go_on_when_every_event_is_past_its_time
        a_cursor_behind_retention_is_told_of_the_gap
        the_list_of_an_execution_tells_its_gap
        an_execution_whose_events_are_all_gone_tells_its_gap
        records_of_repetition_go_when_their_window_is_over
    }
    unblock {
        who_is_kept_back_is_listed_limit_by_limit
        a_limit_with_room_lets_go
        a_limit_that_is_used_up_is_passed_over
        a_policy_lets_go_as_many_as_it_has_room_for
        a_line_is_left_to_its_policy
        a_limit_that_is_gone_lets_go_at_once
        what_is_detached_lets_go_at_once
        a_limit_that_applies_no_more_lets_go
        who_was_kept_back_for_long_is_looked_at_again
        a_limit_that_nobody_named_keeps_nobody_back
        a_claim_passes_a_crowd_in_front_of_it
        a_claim_takes_no_more_than_it_asked_for
    }
    unknown {
        every_operation_says_that_there_is_no_such_execution
        every_operation_says_that_there_is_no_such_budget_or_quota_policy
        what_a_timer_does_finds_nothing_to_do
        no_operation_was_forgotten_above
        reading_what_is_not_there_is_none
        lists_and_results_of_what_is_not_there_are_refused
        an_id_is_uuid_and_partition
    }
    upkeep {
        a_store_answers_and_says_who_it_is
        the_stores_clock_decides
    }
    usage {
        a_report_adds_to_every_dimension_that_it_names
        a_dimension_without_a_limit_is_counted_too
        a_total_above_a_limit_is_told_and_counted
        hard_comes_before_soft_and_then_the_name
        a_soft_limit_above_the_hard_one_is_allowed
        the_last_breach_is_kept
        mode_refuse_adds_nothing_above_a_hard_limit
        the_reports_mode_wins_over_the_budgets
        spend_is_in_the_budgets_own_mode
        a_key_counts_once_whichever_form_brings_it
        without_a_key_every_report_counts
        a_key_is_remembered_for_a_day
        many_keys_are_remembered
        totals_stay_exact_numbers
        a_malformed_report_is_refused
        usage_is_of_an_execution_or_of_nobody
        a_release_gives_back_what_the_execution_used
        ledgers_of_many_add_up
        a_breach_is_an_event_that_tells_its_numbers
        an_ignored_soft_limit_is_no_event
    }
    waitpoint_end {
        an_unused_waitpoint_closes_at_its_time
        what_is_answered_does_not_depend_on_the_tick
        past_its_time_its_key_is_free_at_once
        past_its_time_it_takes_no_room
        past_its_time_it_is_closed_already
        past_its_time_it_is_listed_nowhere
        waitpoints_that_are_due_together_close_together
        a_time_in_the_past_closes_it_with_the_next_tick
        a_waitpoint_that_a_suspend_uses_does_not_close_by_time
        pending_waitpoints_close_when_their_attempt_ends
        a_lost_lease_closes_them_and_the_next_attempt_has_its_own
        pending_waitpoints_stay_over_a_delay
        pending_waitpoints_stay_over_a_suspension
        a_claim_takes_what_has_a_waitpoint_past_its_time
        an_attempt_that_goes_on_keeps_the_time_of_its_waitpoints
    }
    waitpoints {
        a_pending_waitpoint_keeps_the_lease
        only_the_holder_of_the_lease_makes_one
        a_late_create_is_refused_and_performs_the_expiry
        a_repeated_create_gives_the_token_again
        an_id_and_an_open_key_are_used_once
        an_execution_has_64_open_waitpoints_at_most
        what_a_waitpoint_is_told_has_limits
        a_list_shows_kid_and_fingerprint_and_no_token
        a_waitpoint_that_is_waited_for_is_listed_with_the_reason
        a_closed_waitpoint_takes_no_signal
        only_a_waitpoint_of_the_execution_is_closed
        closed_ones_are_remembered_up_to_a_limit
    }
    ways_out {
        commands_and_routes_are_of_its_namespace
        a_suspended_execution_says_what_it_waits_for
        what_only_an_operator_resumes_says_so
        what_is_offered_is_what_a_condition_takes
        what_was_heard_is_not_offered_again
        only_a_timeout_that_resumes_says_when_it_starts
    }
    worker_loss {
        the_leases_of_a_silent_worker_are_lost_by_time
        the_leases_of_a_worker_that_leaves_are_revoked_at_once
        the_leases_of_a_worker_called_dead_are_revoked_at_once
        who_stops_after_the_word_leaves_the_rest_to_the_timer
        who_stops_half_way_leaves_the_rest_to_the_timer
        a_loss_is_told_until_it_is_settled
        only_what_is_over_is_settled
        the_next_boot_keeps_its_leases
        a_loss_told_before_takes_none_of_the_next_boots_leases
        every_boot_is_lost_in_its_own_way
        a_lease_that_another_holds_is_not_taken
        a_namesake_in_another_namespace_keeps_its_leases
        at_the_cap_the_loss_is_the_end
        many_leases_are_taken_page_by_page
        leases_of_an_instance_come_in_pages
        a_renewal_on_the_way_changes_no_walk
        expired_leases_are_listed_until_they_are_handled
    }
    workers {
        a_worker_that_registers_is_described_and_listed
        the_same_boot_refreshes
        a_live_name_belongs_to_one_worker_and_one_boot
        a_name_is_free_again_when_its_worker_is_gone
        a_heartbeat_keeps_a_worker_alive
        a_heartbeat_of_nobody_or_of_another_boot_is_not_registered
        a_silent_worker_is_dead
        a_draining_worker_gets_nothing
        a_worker_that_is_gone_claims_nothing
        only_the_worker_of_an_instance_claims_for_it
        a_waiting_claim_ends_when_its_worker_is_gone
        the_end_of_a_task_stands_whoever_may_go_on
        only_a_registered_worker_drains
        a_waiting_claim_ends_when_its_worker_drains
        a_refresh_keeps_the_wish_to_drain
        leaving_and_being_called_dead_are_told
        a_worker_has_a_history_without_holes
        what_a_worker_says_has_limits
        workers_are_listed_by_namespace_in_pages
        a_list_counts_what_a_worker_runs
        the_registrys_part_of_a_heartbeat_names_paused_lanes
    }
}
