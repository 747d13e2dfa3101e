//! Property tests: no text, however malformed, makes a parser panic, and what parses prints back.

use proptest::prelude::*;

use crate::capability::Capabilities;
use crate::cursor;
use crate::id::{
    ContentType, ExecutionId, Handle, IdempotencyKey, Kid, Kind, LaneId, LeaseId, Namespace,
    WorkerId,
};
use crate::policy::Policy;
use crate::read::StreamCursor;
use crate::state::{CancelSource, FrameMode};
use crate::summary::Summary;
use crate::tags::Tags;
use crate::token::{Secret, WaitpointToken};

/// Any text, often near to something valid.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "\\PC{0,300}",
        r"\{fp:[0-9]{0,6}\}:[0-9a-fA-F-]{30,40}",
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "ff[hc]1\\.[A-Za-z0-9_-]{0,200}",
        "[a-z0-9._-]{0,70}",
        "[A-Za-z0-9_-]{1,64}:[0-9]{1,20}:[0-9a-f]{64}",
        "[0-9]{1,20}(-[0-9]{0,20})?",
        "(durable|best|effort|summary|_){1,3}",
    ]
}

/// Text that is JSON, of the policy's shape or nearly.
fn policy_text() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_filter("json", |n| n.is_finite()).prop_map(|n| format!("{n:e}")),
        Just("1e999".to_owned()),
        Just("\"3\"".to_owned()),
        Just("null".to_owned()),
        Just("[[[[]]]]".to_owned()),
    ];
    let field = prop_oneof![
        number.clone().prop_map(|n| format!(r#""max_replay_count":{n}"#)),
        number.clone().prop_map(|n| format!(r#""dedup_window_ms":{n}"#)),
        number.clone().prop_map(|n| format!(r#""retry_policy":{{"max_retries":{n}}}"#)),
        (number.clone(), number.clone()).prop_map(|(a, b)| format!(
            r#""retry_policy":{{"backoff":{{"type":"exponential","multiplier":{a},"max_delay_ms":{b}}}}}"#
        )),
        number.clone().prop_map(|n| format!(r#""timeout_policy":{{"attempt_timeout_ms":{n}}}"#)),
        (number.clone(), number).prop_map(|(a, b)| format!(
            r#""stream_policy":{{"retention_maxlen":{a},"retention_ttl_ms":{b}}}"#
        )),
        any::<String>().prop_map(|key| format!("{}:1", serde_json::Value::from(key))),
    ];
    prop::collection::vec(field, 0..4).prop_map(|fields| format!("{{{}}}", fields.join(",")))
}

proptest! {
    #[test]
    fn what_parses_prints_back(text in text()) {
        if let Ok(id) = text.parse::<ExecutionId>() {
            prop_assert_eq!(id.to_string(), &*text);
        }
        if let Ok(id) = text.parse::<LeaseId>() {
            prop_assert_eq!(id.to_string(), &*text);
        }
        for printed in [
            Namespace::new(&text).map(|t| t.to_string()).ok(),
            LaneId::new(&text).map(|t| t.to_string()).ok(),
            Kid::new(&text).map(|t| t.to_string()).ok(),
            Kind::new(&text).map(|t| t.to_string()).ok(),
            WorkerId::new(&text).map(|t| t.to_string()).ok(),
            IdempotencyKey::new(&text).map(|t| t.to_string()).ok(),
            ContentType::new(&text).map(|t| t.to_string()).ok(),
            CancelSource::parse(&text).map(|t| t.as_str().to_owned()).ok(),
            WaitpointToken::parse(&text).map(|t| t.expose().to_owned()).ok(),
            text.parse::<FrameMode>().map(|t| t.as_str().to_owned()).ok(),
        ]
        .into_iter()
        .flatten()
        {
            prop_assert_eq!(printed, &*text);
        }
    }

    #[test]
    fn nothing_opaque_panics(text in text()) {
        let _ = Handle::decode(&text, "sqlite");
        let _ = cursor::decode::<(u64, String)>("scope", &text);
        let _ = Capabilities::from_csv(&text);
        let _ = Secret::from_hex(&text);
        let _ = text.parse::<StreamCursor>();
        let _ = Summary::default().apply(text.as_bytes());
        let _ = Capabilities::new([&text, &text]);
        let _ = Tags::new([(text.clone(), text)]);
    }

    #[test]
    fn a_policy_is_read_or_refused(text in prop_oneof![text(), policy_text()]) {
        if let Ok(policy) = Policy::from_json(&text) {
            prop_assert!(policy.check().is_ok());
            prop_assert_eq!(Policy::from_json(&policy.to_json().to_string()), Ok(policy));
        }
    }

    #[test]
    fn capabilities_cover_as_sets_do(a in prop::collection::btree_set("[a-d]{1,2}", 0..6),
                                     b in prop::collection::btree_set("[a-d]{1,2}", 0..6)) {
        let (offered, required) = (Capabilities::new(&a), Capabilities::new(&b));
        let (offered, required) = (offered.unwrap(), required.unwrap());
        prop_assert_eq!(offered.covers(&required), b.is_subset(&a));
        let missing: Vec<_> = offered.missing(&required).map(str::to_owned).collect();
        prop_assert_eq!(missing, b.difference(&a).cloned().collect::<Vec<_>>());
    }
}
