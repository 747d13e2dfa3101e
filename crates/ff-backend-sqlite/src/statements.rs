//! The SQL of this store, one file a statement.

macro_rules! statements {
    ($($name:ident)*) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../sql/", stringify!($name), ".sql"));)*
    };
}

#[expect(non_upper_case_globals, reason = "a statement has the name of its file")]
mod names {
    statements! {
        all_attempts all_executions all_listings all_ready all_timers any_execution attempt_counts
        clear_beside clear_frame_expiries clear_frames delete_attempts delete_beside
        delete_execution delete_frame_expiry delete_listing delete_payload delete_ready
        delete_results delete_timer drop_frames empty_listings empty_ready empty_timers event_bounds
        event_size events_after expired_frames frame_counts get_keyring get_meta insert_attempt
        insert_dedup insert_event insert_execution insert_frame insert_listing insert_payload
        insert_queue insert_ready insert_result insert_timer load_attempts load_beside load_dedup
        load_due load_event load_execution load_frames load_payload load_queues load_ready
        load_results mend_execution next_due oldest_events oldest_frame orphans put_beside
        put_frame_expiry put_keyring put_meta search store_size sweep_attempts sweep_beside
        sweep_frame_expiries sweep_frames sweep_payloads sweep_results trim_dedup trim_events
        update_execution walk_listing
    }
}

pub(crate) use names::*;
