use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::error::Code;

/// The document that `patch` makes of `document`, as text.
#[track_caller]
fn patched(document: &str, patch: &str) -> String {
    Summary::parse(document).unwrap().apply(patch.as_bytes()).unwrap().as_str().to_owned()
}

#[track_caller]
fn check(cases: &[(&str, &str, &str)]) {
    for (document, patch, after) in cases {
        assert_eq!(patched(document, patch), *after, "{document} patched with {patch}");
    }
}

/// The detail of a refusal, whose code and field are the same for all.
#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: Result<T, Refusal>) -> String {
    let refusal = outcome.unwrap_err();
    assert_eq!((refusal.code, refusal.field.as_deref()), (Code::InvalidInput, Some("payload")));
    refusal.detail.into_owned()
}

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    open.repeat(depth) + inner + &close.repeat(depth)
}

#[test]
fn examples_of_the_rfc() {
    check(&[
        (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
        (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
        (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
        (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
        (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
        (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
        (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
        (r#"{"a":"foo"}"#, "null", "null"),
        (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
        (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
        ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
        ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
    ]);
}

#[test]
fn empty_values_and_arrays_stay_what_they_are() {
    check(&[
        (r#"{"a":{"b":1}}"#, r#"{"a":{}}"#, r#"{"a":{"b":1}}"#),
        (r#"{"a":1}"#, r#"{"a":{}}"#, r#"{"a":{}}"#),
        (r#"{"a":{"b":1}}"#, r#"{"a":[]}"#, r#"{"a":[]}"#),
        (r#"{"a":1}"#, "{}", r#"{"a":1}"#),
        (r#"{"a":1}"#, "[]", "[]"),
        ("7", "{}", "{}"),
        ("{}", r#"{"a":[null,{"b":null},[null]]}"#, r#"{"a":[null,{"b":null},[null]]}"#),
    ]);
    assert_eq!(Summary::default().as_str(), "{}");
    assert_eq!(Summary::parse("{}"), Ok(Summary::default()));
}

#[test]
fn numbers_keep_their_text() {
    for number in
        ["1.0", "1e400", "1E+2", "12345678901234567890123", "-0", "-0.0", "0.10", "5e-324"]
    {
        for document in [format!(r#"{{"a":{number},"b":[{number}]}}"#), number.to_owned()] {
            assert_eq!(patched("{}", &document), document);
            assert_eq!(Summary::parse(&document).unwrap().as_str(), document);
        }
        let document = format!(r#"{{"a":{number}}}"#);
        assert_eq!(patched(&document, r#"{"b":2}"#), format!(r#"{{"a":{number},"b":2}}"#));
    }
}

#[test]
fn members_keep_their_order() {
    check(&[
        (r#"{"z":1,"a":2,"m":3}"#, r#"{"b":4,"a":5,"0":6}"#, r#"{"z":1,"a":5,"m":3,"b":4,"0":6}"#),
        (r#"{"z":1,"a":2}"#, r#"{"z":null,"b":3}"#, r#"{"a":2,"b":3}"#),
        (
            r#"{"z":{"y":1,"b":2},"a":3}"#,
            r#"{"z":{"a":4,"y":5}}"#,
            r#"{"z":{"y":5,"b":2,"a":4},"a":3}"#,
        ),
        (r#"{"z":1,"a":2}"#, r#"{"z":{"b":1,"a":2}}"#, r#"{"z":{"b":1,"a":2},"a":2}"#),
    ]);
    assert_eq!(
        patched(&patched(r#"{"z":1,"a":2}"#, r#"{"z":null}"#), r#"{"z":3}"#),
        r#"{"a":2,"z":3}"#
    );
}

#[test]
fn of_equal_names_the_last_wins() {
    check(&[
        (r#"{"a":0}"#, r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
        ("{}", r#"{"a":{"x":1},"a":{"y":2}}"#, r#"{"a":{"y":2}}"#),
        (r#"{"a":0}"#, r#"{"a":1,"a":null}"#, "{}"),
        (r#"{"a":0}"#, r#"{"a":null,"\u0061":1}"#, r#"{"a":1}"#),
        ("{}", r#"{"a":[{"b":1,"b":2}]}"#, r#"{"a":[{"b":2}]}"#),
    ]);
}

#[test]
fn strings_are_kept_as_values() {
    let patch = r#" { "\u0061\/\n" : [ "\u00e9\ud83d\ude00\"\\\b\f\r\t\u0000\u007f" , "é😀" ] } "#;
    let after = patched("{}", patch);
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(read(&after), read(patch));
    assert_eq!(after, r#"{"a/\n":["é😀\"\\\b\f\r\t\u0000DEL","é😀"]}"#.replace("DEL", "\u{7f}"));
    assert_eq!(patched(r#"{"é":1}"#, r#"{"\u00e9":2}"#), r#"{"é":2}"#);
    assert_eq!(patched(r#"{"":1}"#, r#"{"":{"":2}}"#), r#"{"":{"":2}}"#);
}

#[test]
fn the_marker_stores_a_null() {
    check(&[
        (r#"{"a":1}"#, r#"{"a":"__ff_null__"}"#, r#"{"a":null}"#),
        ("{}", r#"{"a":"__ff_null__"}"#, r#"{"a":null}"#),
        ("{}", r#"{"a":"\u005f_ff_null__"}"#, r#"{"a":null}"#),
        ("{}", r#"{"a":{"b":{"c":"__ff_null__"}}}"#, r#"{"a":{"b":{"c":null}}}"#),
        (r#"{"a":{"b":1,"c":2}}"#, r#"{"a":{"b":"__ff_null__"}}"#, r#"{"a":{"b":null,"c":2}}"#),
        (r#"{"a":null}"#, r#"{"a":null}"#, "{}"),
        (r#"{"a":null}"#, r#"{"a":{"b":1}}"#, r#"{"a":{"b":1}}"#),
    ]);
}

#[test]
fn the_marker_is_a_string_elsewhere() {
    for unchanged in [
        r#""__ff_null__""#,
        r#"["__ff_null__"]"#,
        r#"{"a":["__ff_null__",["__ff_null__"],{"b":"__ff_null__","c":{"d":"__ff_null__"}}]}"#,
        r#"{"__ff_null__":1}"#,
        r#"{"a":"__ff_null__ "}"#,
        r#"{"a":"__FF_NULL__"}"#,
    ] {
        assert_eq!(patched("{}", unchanged), unchanged);
    }
    check(&[(r#"{"a":"__ff_null__"}"#, r#"{"b":1}"#, r#"{"a":"__ff_null__","b":1}"#)]);
}

#[test]
fn depth_is_bounded() {
    let depth = limits::SUMMARY_DEPTH;
    for at_limit in [
        nested("[", "", "]", depth),
        nested("[", "1", "]", depth),
        nested(r#"{"a":"#, "1", "}", depth),
        nested(r#"{"a":["#, "[{}]", "]}", depth / 2 - 1),
    ] {
        assert_eq!(patched("{}", &at_limit), at_limit);
        for over in [format!("[{at_limit}]"), format!(r#"{{"a":{at_limit}}}"#)] {
            assert!(refused(Summary::default().apply(over.as_bytes())).ends_with("limit of 16"));
            assert!(refused(Summary::parse(&over)).ends_with("limit of 16"));
        }
    }
    // A patch too deep is refused also where it would delete, or where a later member hides it.
    let deleting = nested(r#"{"a":"#, "null", "}", depth + 1);
    let hidden = format!(r#"{{"a":{},"a":1}}"#, nested("[", "", "]", depth));
    for patch in [deleting, hidden] {
        refused(Summary::default().apply(patch.as_bytes()));
    }
    let deep = nested(r#"{"a":"#, r#"{"b":1}"#, "}", depth - 1);
    let merged = nested(r#"{"a":"#, r#"{"b":1,"c":2}"#, "}", depth - 1);
    assert_eq!(patched(&deep, &nested(r#"{"a":"#, r#"{"c":2}"#, "}", depth - 1)), merged);
}

#[test]
fn absurd_depth_is_refused_without_harm() {
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}"), (r#"[{"a":"#, "}]")] {
        let whole = nested(open, "1", close, 100_000);
        let inside = format!(r#"{{"b":{whole}}}"#);
        for patch in [whole, inside, open.repeat(100_000)] {
            refused(Summary::default().apply(patch.as_bytes()));
            refused(Summary::parse(&patch));
        }
    }
}

#[test]
fn size_is_bounded_after_the_patch() {
    let limit = limits::SUMMARY_BYTES;
    let text = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - r#"{"a":""}"#.len()));
    let full = Summary::default().apply(text(limit).as_bytes()).unwrap();
    assert_eq!(full.as_str().len(), limit);
    assert_eq!(Summary::parse(full.as_str()), Ok(full.clone()));
    for outcome in [
        Summary::parse(&text(limit + 1)),
        Summary::default().apply(text(limit + 1).as_bytes()),
        full.apply(br#"{"b":1}"#),
    ] {
        assert!(refused(outcome).contains("the limit is 262144"));
    }
    // Spaces do not count, nor does what the patch takes away.
    let spaced = text(limit).replace(':', ": ");
    assert_eq!(Summary::default().apply(spaced.as_bytes()), Ok(full.clone()));
    assert_eq!(full.apply(br#"{"a":null,"b":1}"#).unwrap().as_str(), r#"{"b":1}"#);
}

#[test]
fn many_members_are_merged_in_order() {
    let object = |first: u32, value: u32| {
        let members: Vec<_> =
            (first..first + 15_000).map(|n| format!(r#""{n}":{value}"#)).collect();
        format!("{{{}}}", members.join(","))
    };
    let after = patched(&object(100_000, 1), &object(105_000, 2));
    assert!(after.starts_with(r#"{"100000":1,"#) && after.ends_with(r#","119999":2}"#));
}

#[test]
fn what_is_not_json_is_refused() {
    for patch in [
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "nul",
        "NaN",
        "-",
        "01",
        "+1",
        "1.",
        ".5",
        "1e",
        "{} {}",
        "\"\u{1}\"",
        r#""\x""#,
        r#""\u12""#,
        "\u{feff}{}",
        "[1 2]",
    ] {
        let detail = refused(Summary::default().apply(patch.as_bytes()));
        assert!(detail.starts_with("not JSON: "), "{patch:?}: {detail}");
        refused(Summary::parse(patch));
    }
    let not_utf8: [&[u8]; 3] = [b"\xff", b"{\"a\":\"\xc3\"}", b"\"\xed\xa0\x80\""];
    for patch in not_utf8 {
        assert!(refused(Summary::default().apply(patch)).starts_with("not UTF-8: "));
    }
    let surrogates =
        [r#""\ud800""#, r#"{"a":["\udc00"]}"#, r#"{"\ud800x":1}"#, r#"["\ud800\ud800"]"#];
    for patch in surrogates {
        assert!(refused(Summary::default().apply(patch.as_bytes())).contains("surrogate"));
    }
}

#[test]
fn names_that_the_json_library_uses_inside_are_plain_names() {
    for name in ["$serde_json::private::RawValue", "$serde_json::private::Number"] {
        let patch = format!(r#"{{"{name}":"[1"}}"#);
        assert_eq!(patched("{}", &patch), patch);
    }
}

/// The merge as the RFC's pseudocode has it, and the marker.
fn reference(target: Value, patch: Value) -> Value {
    let Value::Object(patch) = patch else { return patch };
    let mut members = match target {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    for (name, value) in patch {
        if value.is_null() {
            members.remove(&name);
        } else if value == json!("__ff_null__") {
            members.insert(name, Value::Null);
        } else {
            let old = members.remove(&name).unwrap_or(Value::Null);
            members.insert(name, reference(old, value));
        }
    }
    Value::Object(members)
}

/// Small documents with few names, so that patches meet what is there.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9..10_i32).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!("__ff_null__")),
        Just(json!({})),
        Just(json!([])),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let name = prop_oneof![8 => "[abc\"]", 1 => any::<String>()];
        prop_oneof![
            4 => prop::collection::btree_map(name, inner.clone(), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
        ]
    })
}

proptest! {
    #[test]
    fn patches_do_what_the_reference_does(
        start in document(),
        patches in prop::collection::vec(document(), 1..5),
    ) {
        let mut summary = Summary::parse(&start.to_string()).unwrap();
        let mut expected = start;
        for patch in patches {
            summary = summary.apply(patch.to_string().as_bytes()).unwrap();
            expected = reference(expected, patch);
            prop_assert_eq!(&serde_json::from_str::<Value>(summary.as_str()).unwrap(), &expected);
            prop_assert_eq!(&Summary::parse(summary.as_str()).unwrap(), &summary);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>(), text in "[\\[\\]{}:,\"\\\\ua0-9e.n-]{0,40}") {
        for patch in [&bytes[..], text.as_bytes()] {
            let is_json = serde_json::from_slice::<&serde_json::value::RawValue>(patch).is_ok();
            let outcome = Summary::default().apply(patch);
            prop_assert!(is_json || outcome.is_err());
        }
    }
}
