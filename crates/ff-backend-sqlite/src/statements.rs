//! The SQL of this store, one file a statement.

macro_rules! statements {
    ($($name:ident)*) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../sql/", stringify!($name), ".sql"));)*
    };
}

#[expect(non_upper_case_globals, reason = "a statement has the name of its file")]
mod names {
    statements! {
        add_tally all_attempts all_document_listings all_document_timers all_documents
        all_executions all_listings all_ready all_timers any_execution attempt_counts
        clear_beside clear_document_rows clear_frame_expiries clear_frames clear_tally count_lane
        delete_attempts delete_beside delete_document delete_document_listing delete_document_row
        delete_document_timer delete_execution delete_frame_expiry delete_listing delete_payload
        delete_ready delete_results delete_timer document_orphans drop_frames eligible_of_lane
        empty_document_listings empty_document_timers empty_listings empty_ready empty_tallies
        empty_timers event_bounds event_size events_after expired_frames frame_counts front_of_queue get_keyring
        get_meta has_document_listing has_document_timer has_listing has_ready has_timer insert_attempt insert_dedup insert_document_listing insert_document_timer
        insert_event insert_execution insert_frame insert_listing insert_payload insert_queue
        insert_ready insert_result insert_timer is_foreign live_lanes load_attempts load_beside load_dedup load_document
        load_document_row load_due load_due_documents load_event load_execution load_frames
        load_payload load_queues load_ready load_results load_tally mend_execution next_due next_inhabited next_namespace next_queue
        oldest_events oldest_frame orphans page_of_document_listings page_of_document_timers
        page_of_documents page_of_executions page_of_listings page_of_ready page_of_timers put_beside put_document put_document_row put_frame_expiry
        put_keyring put_meta search store_size sweep_attempts sweep_beside sweep_document_rows
        sweep_frame_expiries sweep_frames sweep_payloads sweep_results trim_dedup trim_events
        update_execution walk_active walk_document_listing walk_listing
    }
}

pub(crate) use names::*;
