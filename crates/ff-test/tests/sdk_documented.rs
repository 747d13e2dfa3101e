//! Every public function and type of the SDK shows how it is used, and says how it may fail.
//!
//! Source text is looked at: that examples compile and run is what the documentation's own tests
//! are for. The lint `unreachable_pub` sees to it that what is `pub` here is public.
//!
//! Only the standard library is used, so that the tree is judged without depending on it. A check
//! that looks at nothing would pass for ever; therefore it asserts that it found items, and the
//! reader has tests of its own at the end of this file.

use std::fs;
use std::path::{Path, PathBuf};

/// Crates whose documentation users read.
const SOURCES: &[&str] = &["crates/ff-sdk/src", "crates/flowfabric/src"];

/// Pages that lead a newcomer on: each has an example.
const PAGES: &[&str] = &[
    "crates/ff-sdk/src/bridge.rs",
    "crates/ff-sdk/src/client/mod.rs",
    "crates/ff-sdk/src/layers/mod.rs",
    "crates/ff-sdk/src/lib.rs",
    "crates/ff-sdk/src/runtime/mod.rs",
    "crates/ff-sdk/src/stream.rs",
    "crates/ff-sdk/src/task/mod.rs",
    "crates/ff-sdk/src/testing/mod.rs",
    "crates/flowfabric/src/lib.rs",
];

/// What needs no example: getters, whose name and type say all there is to say, the names of
/// categories, and services that only layers name.
const PLAIN: &[&str] = &[
    "BreakerService",
    "ClaimedTask::attempt_id",
    "ClaimedTask::attempt_index",
    "ClaimedTask::consecutive_renewal_failures",
    "ClaimedTask::content_type",
    "ClaimedTask::execution_id",
    "ClaimedTask::execution_kind",
    "ClaimedTask::lane_id",
    "ClaimedTask::lease_epoch",
    "ClaimedTask::lease_id",
    "ClaimedTask::task",
    "Client::backend",
    "Client::namespace",
    "EXTRACTOR_MISSING_STATE",
    "EXTRACTOR_PAYLOAD_DECODE",
    "Execution::client",
    "Execution::id",
    "Failure::category_name",
    "Failure::class",
    "Failure::delay",
    "Failure::reason",
    "Finished::execution_id",
    "Finished::is_success",
    "FinishedFlow::is_success",
    "FlowFabricAdminClient::backend",
    "FlowFabricAdminClient::namespace",
    "FlowFabricWorker::backend",
    "FlowFabricWorker::claim_wait",
    "FlowFabricWorker::completion_backend",
    "FlowFabricWorker::config",
    "FlowFabricWorker::is_draining",
    "FlowFabricWorker::max_concurrent_tasks",
    "FlowFabricWorker::partition_config",
    "FlowFabricWorker::worker_instance_id",
    "FlowHandle::id",
    "HANDLER_ERROR",
    "HANDLER_PANIC",
    "HANDLER_TIMEOUT",
    "LimitedService",
    "MeasuredService",
    "RUNTIME_NO_HANDLER",
    "Task::info",
    "TaskCall::info",
    "TaskCall::task",
    "TaskInfo::attempt_deadline_at",
    "TaskInfo::attempt_id",
    "TaskInfo::content_type",
    "TaskInfo::created_at",
    "TaskInfo::deadline_at",
    "TaskInfo::execution_id",
    "TaskInfo::flow_id",
    "TaskInfo::kind",
    "TaskInfo::lane",
    "TaskInfo::lease_epoch",
    "TaskInfo::member_name",
    "TaskInfo::namespace",
    "TaskInfo::priority",
    "TaskInfo::reclaim_count",
    "TaskInfo::retry_count",
    "TaskInfo::trace_context",
    "TracedService",
];

/// Fences that make an example which is at least compiled.
const EXAMPLES: &[&str] = &["", "no_run", "should_panic"];

#[test]
fn every_public_item_has_an_example() {
    let items = all_items();
    let mut found = Vec::new();
    for item in &items {
        match (item.has_example(), PLAIN.contains(&item.name.as_str())) {
            (false, false) => found.push(format!("{}: no example", item.place)),
            (true, true) => found.push(format!("{}: has one, and is in PLAIN", item.place)),
            _ => {}
        }
    }
    let is_known = |name: &&&str| items.iter().any(|item| item.name == **name);
    found.extend(PLAIN.iter().filter(|name| !is_known(name)).map(|name| format!("{name}: gone")));
    let advice = "Show one call on a `TestEngine` or on `sqlite::memory:`. PLAIN lists what needs \
                  no example, and nothing else.";
    assert!(found.is_empty(), "{} found:\n{}\n{advice}", found.len(), found.join("\n"));
}

#[test]
fn every_function_that_may_fail_says_how() {
    let items = all_items();
    let silent = items.iter().filter(|item| item.may_fail && !item.says_how_it_fails());
    let found: Vec<&str> = silent.map(|item| item.place.as_str()).collect();
    let advice = "Name the errors and the codes that a caller may want to handle, in a section \
                  `# Errors`.";
    assert!(found.is_empty(), "{} found:\n{}\n{advice}", found.len(), found.join("\n"));
}

#[test]
fn the_pages_of_modules_have_examples() {
    for page in PAGES {
        let text = read(&root().join(page));
        let docs: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        assert!(has_example(&docs), "{page}: the page has no example");
    }
}

// --- The sources -----------------------------------------------------------------------------

/// A public function, method, type or constant.
#[derive(Debug)]
struct Item {
    /// `Client::cancel`, or `SdkError`.
    name: String,
    /// File, line and name, for whoever has to go there.
    place: String,
    docs: Vec<String>,
    /// It is a function that returns a `Result`.
    may_fail: bool,
}

impl Item {
    fn has_example(&self) -> bool {
        let docs: Vec<&str> = self.docs.iter().map(String::as_str).collect();
        has_example(&docs)
    }

    fn says_how_it_fails(&self) -> bool {
        self.docs.iter().any(|line| line.trim() == "# Errors")
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Rust files under a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn all_items() -> Vec<Item> {
    let mut paths = Vec::new();
    for folder in SOURCES {
        files(&root().join(folder), &mut paths);
    }
    paths.sort();
    let from_root = |path: &Path| path.strip_prefix(root()).unwrap_or(path).to_owned();
    let of_file = |path: &PathBuf| items(&from_root(path), &read(path));
    let items: Vec<Item> = paths.iter().flat_map(of_file).collect();
    assert!(items.len() > 400, "only {} items: the reader is broken", items.len());
    items
}

/// The public items of one file, up to its tests. The formatter puts each on a line of its own.
fn items(path: &Path, text: &str) -> Vec<Item> {
    let lines: Vec<&str> = text.lines().take_while(|line| *line != "#[cfg(test)]").collect();
    let mut found = Vec::new();
    let mut owner: Option<(usize, &str)> = None;
    for (index, line) in lines.iter().enumerate() {
        let depth = line.len() - line.trim_start().len();
        if let Some(of) = implemented(line) {
            owner = Some((depth, of));
        } else if line.trim() == "}" && owner.is_some_and(|(began, _)| began == depth) {
            owner = None;
        }
        let Some((is_function, own)) = public(line) else { continue };
        let name = match owner {
            Some((_, of)) => format!("{of}::{own}"),
            None => own.to_owned(),
        };
        let place = format!("{}:{}: {name}", path.display(), index + 1);
        let may_fail = is_function && signature(&lines[index..]).contains("Result<");
        found.push(Item { name, place, docs: docs_above(&lines[..index]), may_fail });
    }
    found
}

/// The type that an `impl` block is for, without its parameters.
fn implemented(line: &str) -> Option<&str> {
    let after = line.trim_start().strip_prefix("impl")?;
    let after =
        if after.starts_with('<') { after.split_once("> ")?.1 } else { after.strip_prefix(' ')? };
    let of = after.split_once(" for ").map_or(after, |(_, of)| of);
    of.split(['<', ' ']).next()
}

/// Whether it is a function, and its name, if a public item begins here.
fn public(line: &str) -> Option<(bool, &str)> {
    let item = line.trim_start().strip_prefix("pub ")?;
    let words = ["fn ", "async fn ", "const fn ", "struct ", "enum ", "trait ", "type ", "const "];
    let word = words.iter().find(|word| item.starts_with(**word))?;
    let name = item[word.len()..].split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
    Some((word.ends_with("fn "), name))
}

/// What stands before the body.
fn signature(lines: &[&str]) -> String {
    let is_head = |line: &&&str| !line.contains('{') && !line.ends_with(';');
    let head = lines.iter().take_while(is_head).count();
    lines.iter().take(head + 1).copied().collect()
}

/// The documentation above an item, between and above its attributes.
fn docs_above(above: &[&str]) -> Vec<String> {
    let mut docs = Vec::new();
    let mut in_attribute = false;
    for line in above.iter().rev().map(|line| line.trim()) {
        if let Some(text) = line.strip_prefix("///") {
            docs.push(text.strip_prefix(' ').unwrap_or(text).to_owned());
        } else if line.starts_with("#[doc = ") {
            docs.push("made by a macro".to_owned());
        } else if line.starts_with("#[") {
            in_attribute = false;
        } else if line == ")]" || in_attribute {
            in_attribute = true;
        } else {
            break;
        }
    }
    docs.reverse();
    docs
}

/// Whether there is code in it that is compiled and that readers see.
fn has_example(docs: &[&str]) -> bool {
    let mut fence: Option<&str> = None;
    for line in docs.iter().map(|line| line.trim()) {
        match (line.strip_prefix("```"), fence) {
            (Some(kind), None) => fence = Some(kind),
            (Some(_), Some(_)) => fence = None,
            (None, Some(kind)) => {
                let is_seen = !line.is_empty() && line != "#" && !line.starts_with("# ");
                if is_seen && EXAMPLES.contains(&kind) {
                    return true;
                }
            }
            (None, None) => {}
        }
    }
    false
}

// --- The reader finds what it should ---------------------------------------------------------

mod reader {
    use super::*;

    #[test]
    fn items_have_owners_and_docs() {
        let text = r"/// A type.
pub struct One<T>(T);

impl<T: Send> One<T> {
    /// Shown.
    ///
    /// ```
    /// one();
    /// ```
    #[must_use]
    pub fn shown(self) -> Self {}

    pub(crate) fn hidden() {}
}

pub async fn free(
    a: u8,
) -> Result<u8, E> {
}
#[cfg(test)]
pub fn test() {}
";
        let found = items(Path::new("a.rs"), text);
        let names: Vec<&str> = found.iter().map(|item| item.name.as_str()).collect();
        assert_eq!(names, ["One", "One::shown", "free"]);
        let shown: Vec<bool> = found.iter().map(Item::has_example).collect();
        assert_eq!(shown, [false, true, false]);
        let fail: Vec<bool> = found.iter().map(|item| item.may_fail).collect();
        assert_eq!(fail, [false, false, true]);
    }

    #[test]
    fn attributes_of_many_lines_are_passed() {
        let docs = "/// Docs.\n///\n/// # Errors\n";
        let text = format!("{docs}#[one(\n    two = \"three\",\n)]\n#[four]\npub fn a() {{}}");
        let found = items(Path::new("a.rs"), &text);
        assert_eq!(found[0].docs, ["Docs.", "", "# Errors"]);
        assert!(found[0].says_how_it_fails());
    }

    #[test]
    fn blocks_are_for_their_type() {
        let cases = [
            ("impl Client {", Some("Client")),
            ("impl<T> Data<T> {", Some("Data")),
            ("impl<T: A<B>> fmt::Debug for Data<T> {", Some("Data")),
            ("        impl $config {", Some("$config")),
            ("implicit", None),
        ];
        for (line, of) in cases {
            assert_eq!(implemented(line), of, "{line}");
        }
    }

    #[test]
    fn examples_are_code_that_is_seen() {
        let cases: [(&[&str], bool); 6] = [
            (&["Text."], false),
            (&["```", "call();", "```"], true),
            (&["```no_run", "call();", "```"], true),
            (&["```text", "call();", "```"], false),
            (&["```", "# hidden();", "", "```"], false),
            (&["```ignore", "call();", "```"], false),
        ];
        for (docs, expected) in cases {
            assert_eq!(has_example(docs), expected, "{docs:?}");
        }
    }
}
