//! The SQL of this store, one file a statement.

macro_rules! statements {
    ($($name:ident)*) => {
        $(pub(crate) const $name: &str = include_str!(concat!("../sql/", stringify!($name), ".sql"));)*
    };
}

#[expect(non_upper_case_globals, reason = "a statement has the name of its file")]
mod names {
    statements! {
        all_executions all_ready all_timers any_execution attempt_counts clear_beside
        delete_attempts delete_beside delete_execution delete_payload delete_ready delete_results
        delete_timer event_bounds event_size events_after get_keyring get_meta insert_attempt
        insert_dedup insert_event insert_execution insert_payload insert_queue insert_ready
        insert_result insert_timer load_attempts load_beside load_dedup load_due load_event
        load_execution load_payload load_queues load_ready load_results next_due oldest_events
        orphans put_beside put_keyring put_meta search store_size trim_dedup trim_events
        update_execution
    }
}

pub(crate) use names::*;
