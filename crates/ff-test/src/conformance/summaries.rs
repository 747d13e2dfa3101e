//! Summaries: one document for each attempt, made by merge patches.

use ff_core::error::Code;
use ff_core::limits;
use ff_core::state::FrameMode;

use crate::output::{append, bodies, fleeting, frame, patch};
use crate::world::{World, delay, fail};

/// The document after these patches, on an attempt of its own.
async fn document(world: &World, patches: &[&str]) -> String {
    let task = world.start(world.work()).await;
    world.append(&task, patches.iter().map(|body| patch(body)).collect()).await;
    world.summary(task.execution_id, 0).await.document
}

pub async fn a_summary_is_patched_and_its_patches_are_frames(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    assert_eq!(world.summary(id, 0).await.document, "{}");
    let patches = vec![patch(r#"{"a":1.0,"b":{"c":[]}}"#), frame("x"), patch(r#"{"b":null}"#)];
    let versions: Vec<_> =
        world.append(&task, patches).await.iter().map(|frame| frame.summary_version).collect();
    assert_eq!(versions, [Some(1), None, Some(2)]);
    let summary = world.summary(id, 0).await;
    assert_eq!((summary.document.as_str(), summary.version), (r#"{"a":1.0}"#, 2));
    let page = world.output(id, 0).await;
    assert_eq!(bodies(&page.frames), [r#"{"a":1.0,"b":{"c":[]}}"#, "x", r#"{"b":null}"#]);
    assert_eq!(page.frames[0].mode, FrameMode::DurableSummary);
}

/// Document, patch and outcome, as the appendix of RFC 7396 has them. A null in a document is
/// written with the marker, because a patch makes it.
const EXAMPLES: [[&str; 3]; 15] = [
    [r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#],
    [r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#],
    [r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"],
    [r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#],
    [r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#],
    [r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#],
    [r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#],
    [r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#],
    [r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#],
    [r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#],
    [r#"{"a":"foo"}"#, "null", "null"],
    [r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#],
    [r#"{"e":"__ff_null__"}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#],
    ["[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#],
    ["{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#],
];

pub async fn patches_do_what_the_rfc_says(world: &World) {
    let task = world.start(world.work()).await;
    for (n, [document, change, after]) in EXAMPLES.into_iter().enumerate() {
        // Whatever was there, a patch that is no object takes its place.
        world.append(&task, vec![patch("null"), patch(document), patch(change)]).await;
        let summary = world.summary(task.execution_id, 0).await;
        assert_eq!(summary.document, after, "{document} patched with {change}");
        assert_eq!(summary.version, 3 * (n as u64 + 1));
    }
}

pub async fn empty_values_stay_what_they_are(world: &World) {
    let made = document(world, &[r#"{"a":{},"b":[],"c":[{}],"d":"","e":{"f":{}}}"#, "{}"]).await;
    assert_eq!(made, r#"{"a":{},"b":[],"c":[{}],"d":"","e":{"f":{}}}"#);
    assert_eq!(document(world, &[r#"{"a":1}"#, r#"{"a":{}}"#]).await, r#"{"a":{}}"#);
    assert_eq!(document(world, &[r#"{"a":{"b":1}}"#, r#"{"a":[]}"#]).await, r#"{"a":[]}"#);
    assert_eq!(document(world, &["[]"]).await, "[]");
}

pub async fn a_marker_stores_a_null(world: &World) {
    let made = document(world, &[r#"{"a":1,"b":{"c":2}}"#, r#"{"a":"__ff_null__"}"#]).await;
    assert_eq!(made, r#"{"a":null,"b":{"c":2}}"#);
    let made = document(world, &[r#"{"b":{"c":"__ff_null__","d":"__ff_null__"}}"#]).await;
    assert_eq!(made, r#"{"b":{"c":null,"d":null}}"#);
    // In an array, as a name and as the whole document it is text like any other.
    for plain in [
        r#"{"a":["__ff_null__",{"b":"__ff_null__"}]}"#,
        r#"{"__ff_null__":1}"#,
        r#"{"a":"__ff_null__!"}"#,
        r#""__ff_null__""#,
    ] {
        assert_eq!(document(world, &[plain]).await, plain);
    }
    assert_eq!(document(world, &[r#"{"a":"__ff_null__"}"#, r#"{"a":null}"#]).await, "{}");
}

pub async fn numbers_keep_their_text(world: &World) {
    let said = r#"{"a":1.0,"b":1e400,"c":-0,"d":0.10,"e":[1E+2,12345678901234567890123]}"#;
    assert_eq!(document(world, &[said]).await, said);
    let more = document(world, &[said, r#"{"f":5e-324}"#]).await;
    assert_eq!(more, said.replace("]}", r#"],"f":5e-324}"#));
}

pub async fn names_and_text_are_of_any_kind(world: &World) {
    let said = r#"{"é":"日本","a.b":{"":"\u0000\n"},"$":"{}"}"#;
    assert_eq!(document(world, &[said]).await, said);
}

pub async fn a_document_is_16_deep_at_most(world: &World) {
    let nested = |depth: usize| r#"{"a":"#.repeat(depth) + "1" + &"}".repeat(depth);
    let arrays = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    for at_limit in [nested(16), arrays(16)] {
        assert_eq!(document(world, &[&at_limit]).await, at_limit);
    }
    let task = world.start(world.work()).await;
    for over in [nested(17), arrays(17), nested(10_000)] {
        world.refuses(append(&task, vec![patch(&over)]), Code::InvalidInput).await;
    }
    assert_eq!(world.summary(task.execution_id, 0).await.version, 0);
}

pub async fn a_document_has_256_kib_at_most(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    let member = |name: &str, bytes: usize| format!(r#"{{"{name}":"{}"}}"#, "x".repeat(bytes));
    for name in ["a", "b", "c"] {
        world.append(&task, vec![patch(&member(name, 65_000))]).await;
    }
    // Of each further member the name, two colons and quotes, and a comma count too.
    let left = limits::SUMMARY_BYTES - world.summary(id, 0).await.document.len();
    world.append(&task, vec![patch(&member("d", 60_000))]).await;
    let left = left - 60_000 - r#","d":"""#.len();
    let over = patch(&member("e", left - r#","e":"""#.len() + 1));
    world.refuses_saying(append(&task, vec![over]), Code::InvalidInput, "262144").await;
    assert_eq!(world.summary(id, 0).await.version, 4);
    world.append(&task, vec![patch(&member("e", left - r#","e":"""#.len()))]).await;
    let summary = world.summary(id, 0).await;
    assert_eq!((summary.document.len(), summary.version), (262_144, 5));
    world.refuses(append(&task, vec![patch(r#"{"f":1}"#)]), Code::InvalidInput).await;
    world.append(&task, vec![patch(r#"{"a":null,"f":1}"#)]).await;
    assert_eq!(world.summary(id, 0).await.version, 6);
}

pub async fn what_is_not_json_is_refused(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    world.append(&task, vec![patch(r#"{"a":1}"#)]).await;
    for bad in ["", " ", "{", "{}}", "nul", "{'a':1}", "[1,]", "01", "\"\u{1}\"", "{} {}"] {
        world.refuses(append(&task, vec![patch(bad)]), Code::InvalidInput).await;
        let good = vec![patch(r#"{"b":1}"#), patch(bad)];
        world.refuses(append(&task, good), Code::InvalidInput).await;
    }
    let mut not_text = patch("");
    not_text.content = ff_core::content::Content::new(b"\"\xff\"".as_slice());
    world.refuses(append(&task, vec![not_text]), Code::InvalidInput).await;
    let summary = world.summary(id, 0).await;
    assert_eq!((summary.document.as_str(), summary.version), (r#"{"a":1}"#, 1));
    assert_eq!(world.output(id, 0).await.count, 1);
    // In another mode it is a body like any other.
    world.append(&task, vec![frame("{"), fleeting("{")]).await;
}

pub async fn each_patch_raises_the_version_by_one(world: &World) {
    let task = world.start(world.work()).await;
    let mut expected = 0;
    for count in [1, 3, 2] {
        let appended = world.append(&task, vec![patch("{}"); count]).await;
        for frame in appended {
            expected += 1;
            assert_eq!(frame.summary_version, Some(expected), "also when nothing changes");
        }
        assert_eq!(world.summary(task.execution_id, 0).await.version, expected);
    }
}

pub async fn the_patches_of_one_append_follow_each_other(world: &World) {
    let made = document(world, &[r#"{"a":{"b":1}}"#, r#"{"a":{"c":2}}"#, r#"{"a":{"b":null}}"#]);
    assert_eq!(made.await, r#"{"a":{"c":2}}"#);
}

pub async fn a_summary_goes_on_with_its_attempt(world: &World) {
    let first = world.start(world.work()).await;
    world.append(&first, vec![patch(r#"{"a":1}"#)]).await;
    world.act(delay(&first, 0)).await;
    let second = world.claim_one().await;
    assert_eq!(world.append(&second, vec![patch(r#"{"b":2}"#)]).await[0].summary_version, Some(2));
    assert_eq!(world.summary(first.execution_id, 0).await.document, r#"{"a":1,"b":2}"#);
}

pub async fn every_attempt_has_its_own_summary(world: &World) {
    let task = world.start(world.work()).await;
    let id = task.execution_id;
    world.append(&task, vec![patch(r#"{"a":1}"#)]).await;
    world.act(fail(&task, "transient")).await;
    world.pass(60_000).await;
    let next = world.claim_one().await;
    let empty = world.summary(id, 1).await;
    assert_eq!((empty.document.as_str(), empty.version), ("{}", 0));
    assert_eq!(world.append(&next, vec![patch(r#"{"b":2}"#)]).await[0].summary_version, Some(1));
    world.complete(&next).await.unwrap();
    assert_eq!(world.summary(id, 0).await.document, r#"{"a":1}"#);
    assert_eq!(world.summary(id, 1).await.document, r#"{"b":2}"#);
}
