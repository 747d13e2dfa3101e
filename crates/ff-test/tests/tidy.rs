//! The house rules that a machine can check, run as tests over the tree.
//!
//! A rule that only stands in a document wears off with every hurried change. Here each rule is
//! one test: it names every place that breaks it as `file:line: what`, and says what to do.
//!
//! Owned here: layers, reasons for dependencies, function length, what comments talk about,
//! what may be switched off, sleeps, headers, executable bits. Not owned: whatever the formatter,
//! the compiler and the lints already check.
//!
//! Only the standard library is used, and no crate of the workspace, so that these tests judge
//! the tree without depending on what they judge. A check that looks at nothing would pass for
//! ever; therefore each asserts that it found files, and the helpers have tests of their own at
//! the end of this file.

use std::fs;
use std::path::{Path, PathBuf};

/// Which crate may name which others of the workspace outside its tests. Rows go from the bottom
/// layer to the top, and a row may name only rows above it: so no table written here can hold a
/// cycle. `STORES` stands for every backend: only the top crates, and the one that tests every
/// store, name one.
const ARROWS: &[(&str, &[&str])] = &[
    ("ff-core", &[]),
    ("ff-relational", &["ff-core"]),
    ("ff-backend-sqlite", &["ff-core", "ff-relational"]),
    ("ff-backend-postgres", &["ff-core", "ff-relational"]),
    ("ff-backend-valkey", &["ff-core"]),
    ("ff-scheduler", &["ff-core"]),
    ("ff-engine", &["ff-core"]),
    ("ff-api", &["ff-core"]),
    ("ff-observe", &["ff-core", "ff-engine"]),
    ("ff-remote", &["ff-core", "ff-api"]),
    ("ff-server", &["ff-core", "ff-api", "ff-scheduler", "ff-engine", "ff-observe", STORES]),
    (
        "ff-sdk",
        &["ff-core", "ff-api", "ff-scheduler", "ff-engine", "ff-observe", "ff-remote", STORES],
    ),
    ("flowfabric", &["ff-core", "ff-sdk"]),
    (
        "ff-cli",
        &[
            "ff-core",
            "ff-api",
            "ff-scheduler",
            "ff-engine",
            "ff-observe",
            "ff-remote",
            "ff-server",
            "ff-sdk",
            STORES,
        ],
    ),
    (
        "ff-test",
        &[
            "ff-core",
            "ff-relational",
            "ff-api",
            "ff-scheduler",
            "ff-engine",
            "ff-observe",
            "ff-remote",
            "ff-server",
            "ff-sdk",
            STORES,
        ],
    ),
];

const STORES: &str = "ff-backend-";

const FUNCTION_LINES_MAX: usize = 70;

/// Words that mark work left undone.
const MARKERS: &[&str] = &["TODO", "FIXME", "XXX", "HACK"];

/// Phrases that tell history or announce a plan, in lower case, one word a piece.
const PHRASES: &[&[&str]] =
    &[&["previously"], &["formerly"], &["used", "to", "be"], &["for", "now"]];

/// Words that make a plan or a ticket when a number or a single letter follows them.
const LABELS: &[&str] = &["issue", "milestone", "phase", "sprint", "stage", "ticket", "wave"];

/// What must not stand in code, and what to do instead.
const SWITCHES: &[(&str, &str)] = &[
    ("#[ignore", "a test runs or does not exist: make it run, or delete it"),
    ("todo!(", "write it, or leave the whole path out"),
    ("unimplemented!(", "write it, or leave the whole path out"),
    ("[allow(", "use `#[expect(…, reason = \"…\")]`, which complains once it is not needed"),
];

/// Test files that may sleep: the file, and why no condition or settable clock can do.
const SLEEPS_ALLOWED: &[(&str, &str)] = &[(
    "crates/ff-test/src/workload.rs",
    "a caller whose call failed rests before it sends it again, in real time, as users' callers do",
)];

// --- The rules -------------------------------------------------------------------------------

#[test]
fn crate_arrows_point_down() {
    let advice = "Move the code to the layer that may do it. If the layers themselves changed, \
                  change ARROWS in this file and ARCHITECTURE.md together.";
    check(&crate_manifests(), forbidden_arrows, advice);
}

#[test]
fn every_dependency_has_a_reason() {
    let advice = "An external crate has a row with its reason in CONTRIBUTING.md, Dependencies, \
                  and a version in the root Cargo.toml; crates say `workspace = true`.";
    let (root_manifest, guide) = (read("Cargo.toml"), read("CONTRIBUTING.md"));
    let external = external_crates(&root_manifest.text);
    let reasons = reasons(&guide.text);
    assert!(!external.is_empty(), "no external crate in Cargo.toml: the reader is broken");
    let find = |file: &File| match file.path.as_str() {
        "Cargo.toml" => missing_from(&external, &reasons, "has no reason"),
        "CONTRIBUTING.md" => missing_from(&reasons, &external, "is no dependency"),
        _ => not_inherited(&file.text),
    };
    let mut files = crate_manifests();
    files.extend([root_manifest, guide]);
    check(&files, find, advice);
}

#[test]
fn functions_are_short() {
    let too_long = |file: &File| {
        let mut found = functions(&split_rust(&file.text));
        found.retain(|function| function.length > FUNCTION_LINES_MAX);
        found.iter().map(|f| (f.line, format!("`{}` has {} lines", f.name, f.length))).collect()
    };
    check(&sources(is_rust), too_long, "Split it where the idea changes: aim under 40 lines.");
}

#[test]
fn comments_tell_no_plans() {
    let plans = |file: &File| {
        let found = |(line, comment): Finding| {
            Some((line, format!("comment says \"{}\"", plan_in(&comment)?)))
        };
        comments(file).into_iter().filter_map(found).collect()
    };
    check(
        &sources(|path| is_rust(path) || is_store_code(path)),
        plans,
        "Say why the code is as it is and what must hold. History is in git, plans are elsewhere; \
         a regression test may carry a link.",
    );
}

#[test]
fn lib_and_mod_files_hold_no_logic() {
    let logic = |file: &File| {
        let found = functions_outside_macros(&split_rust(&file.text));
        found.iter().map(|f| (f.line, format!("function `{}`", f.name))).collect()
    };
    check(
        &sources(|path| path.ends_with("/lib.rs") || path.ends_with("/mod.rs")),
        logic,
        "lib.rs and mod.rs hold docs, `mod` and `pub use`: move the code to a file named after it.",
    );
}

#[test]
fn nothing_is_switched_off() {
    let switched_off = |file: &File| switched_off(&split_rust(&file.text));
    check(&sources(is_rust), switched_off, "What is switched off in silence stays off.");
}

#[test]
fn sql_and_lua_files_have_headers() {
    let short_header = |file: &File| {
        let lines = file.text.lines().take_while(|line| line.starts_with("--")).count();
        if lines < 2 {
            vec![(1, format!("a header of {lines} lines, 2 are needed"))]
        } else {
            vec![]
        }
    };
    let advice = "Start with `--` lines that say what it is for and what its callers rely on.";
    check(&sources(is_store_code), short_header, advice);
}

#[test]
fn no_test_sleeps() {
    let is_test = |path: &str| path.contains("/tests/") || path.starts_with("crates/ff-test/src/");
    let unexpected = |file: &File| {
        let allowed = SLEEPS_ALLOWED.iter().any(|(path, _)| *path == file.path);
        let found = lines_where(&split_rust(&file.text), sleeps);
        match (allowed, found.is_empty()) {
            (true, true) => vec![(1, "in SLEEPS_ALLOWED but does not sleep".to_owned())],
            (true, false) => vec![],
            (false, _) => found.into_iter().map(|line| (line, "sleeps".to_owned())).collect(),
        }
    };
    check(
        &sources(|path| is_rust(path) && is_test(path)),
        unexpected,
        "Set the clock, or wait for the condition with a deadline. A sleep is too long on a fast \
         machine and too short on a busy one.",
    );
}

#[cfg(unix)]
#[test]
fn scripts_are_executable() {
    use std::os::unix::fs::PermissionsExt;

    let not_executable = |file: &File| {
        let metadata = fs::metadata(root().join(&file.path));
        let is_executable = metadata.is_ok_and(|m| m.permissions().mode() & 0o111 == 0o111);
        if is_executable { vec![] } else { vec![(1, "not executable".to_owned())] }
    };
    let mut scripts = files(&["scripts"], |_| true);
    scripts.push(read(".ci/run"));
    check(&scripts, not_executable, "Run `chmod +x` on it and commit the mode.");
}

// --- The tree --------------------------------------------------------------------------------

/// A text file; its path is relative to the root and written with `/`.
struct File {
    path: String,
    text: String,
}

/// A line of a file, counted from 1, and what is there: mostly what is wrong.
type Finding = (usize, String);

#[track_caller]
fn check(files: &[File], find: impl Fn(&File) -> Vec<Finding>, advice: &str) {
    assert!(!files.is_empty(), "no file to look at: the check would pass without looking");
    let place = |file: &File| {
        let path = file.path.clone();
        find(file).into_iter().map(move |(line, what)| format!("{path}:{line}: {what}"))
    };
    let places: Vec<String> = files.iter().flat_map(place).collect();
    assert!(places.is_empty(), "{} found:\n{}\n{advice}", places.len(), places.join("\n"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> File {
    let text = fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("cannot read {path}: {error}"));
    File { path: path.to_owned(), text }
}

/// All paths under `folder`, without build output and hidden folders. A missing folder is empty.
fn walk(folder: &str, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(root().join(folder)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder {
            found.push(path);
        } else if name != "target" && !name.starts_with('.') {
            walk(&path, found);
        }
    }
}

/// The files under `folders` whose paths are wanted, in the order of their paths.
fn files(folders: &[&str], wanted: impl Fn(&str) -> bool) -> Vec<File> {
    let mut paths = Vec::new();
    for folder in folders {
        walk(folder, &mut paths);
    }
    paths.retain(|path| wanted(path));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn sources(wanted: impl Fn(&str) -> bool) -> Vec<File> {
    files(&["crates", "examples"], wanted)
}

fn crate_manifests() -> Vec<File> {
    files(&["crates"], |path| path.ends_with("/Cargo.toml") && path.split('/').count() == 3)
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

fn is_store_code(path: &str) -> bool {
    path.ends_with(".sql") || path.ends_with(".lua")
}

// --- Manifests -------------------------------------------------------------------------------

/// One entry of a dependency table. `inherited` means `workspace = true`, `local` means a path.
struct Dependency {
    table: String,
    name: String,
    line: usize,
    inherited: bool,
    local: bool,
}

/// Reads the tables `dependencies`, `dev-dependencies` and so on, one entry a line. A table of its
/// own for one dependency counts as an entry that is not inherited: the house form is one line.
fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut table = String::new();
    for (index, line) in manifest.lines().enumerate() {
        let text: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        let header = text.strip_prefix('[').and_then(|text| text.split_once(']'));
        if let Some((header, _)) = header {
            header.clone_into(&mut table);
        }
        let name = match table.rsplit_once("dependencies.") {
            Some((_, name)) => header.map(|_| name),
            None => key(&text).filter(|_| table.ends_with("dependencies")),
        };
        found.extend(name.map(|name| Dependency {
            table: table.clone(),
            name: name.to_owned(),
            line: index + 1,
            inherited: text.contains("workspace=true"),
            local: text.contains("path="),
        }));
    }
    found
}

/// The first part of a key: `serde` in `serde = …` and in `serde.workspace = …`. Lines that
/// continue a list, and comments, have none.
fn key(text: &str) -> Option<&str> {
    let (key, _) = text.split_once('=')?;
    let is_key = key.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    is_key.then(|| key.split('.').next().unwrap_or(key))
}

fn forbidden_arrows(manifest: &File) -> Vec<Finding> {
    let krate = manifest.path.split('/').nth(1).unwrap_or_default();
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == krate) else {
        return vec![(1, format!("unknown crate {krate}: add it to the table ARROWS"))];
    };
    let mut found = dependencies(&manifest.text);
    found.retain(|d| {
        let own = d.name.starts_with("ff-") || d.name == "flowfabric";
        let in_tests = d.table.contains("dev-dependencies");
        own && !in_tests && !allowed.iter().any(|arrow| arrow_covers(arrow, &d.name))
    });
    found.iter().map(|d| (d.line, format!("{krate} must not depend on {}", d.name))).collect()
}

fn arrow_covers(arrow: &str, name: &str) -> bool {
    arrow == name || (arrow == STORES && name.starts_with(STORES))
}

fn not_inherited(manifest: &str) -> Vec<Finding> {
    let mut found = dependencies(manifest);
    found.retain(|d| !d.inherited);
    found
        .iter()
        .map(|d| (d.line, format!("`{}` is not taken from the workspace", d.name)))
        .collect()
}

/// The crates of the workspace's table that are not its own, with their lines.
fn external_crates(root_manifest: &str) -> Vec<Finding> {
    let mut found = dependencies(root_manifest);
    found.retain(|d| d.table.starts_with("workspace.dependencies") && !d.local);
    found.into_iter().map(|d| (d.line, d.name)).collect()
}

/// The crates that have a row in the section Dependencies, with their lines: the row's first cell
/// is the crate in backticks.
fn reasons(guide: &str) -> Vec<Finding> {
    let mut inside = false;
    let mut rows = Vec::new();
    for (index, line) in guide.lines().enumerate() {
        if line.starts_with("## ") {
            inside = line.trim() == "## Dependencies";
        }
        let name = line.strip_prefix("| `").and_then(|row| row.split('`').next());
        rows.extend(name.filter(|_| inside).map(|name| (index + 1, name.to_owned())));
    }
    rows
}

/// Every name of `these` that `those` lack, as a finding in the file of `these`.
fn missing_from(these: &[Finding], those: &[Finding], complaint: &str) -> Vec<Finding> {
    let is_missing = |name: &String| !those.iter().any(|(_, other)| other == name);
    let missing = these.iter().filter(|(_, name)| is_missing(name));
    missing.map(|(line, name)| (*line, format!("`{name}` {complaint}"))).collect()
}

// --- Rust source -----------------------------------------------------------------------------

/// One line of Rust: its code without the contents of literals, and its comment. Rules look at
/// one of the two, so text in a string is never taken for code or for a comment.
#[derive(Debug, Default)]
struct Line {
    code: String,
    comment: String,
}

/// What the scanner is in the middle of. Block comments nest; a raw string ends at a quote with
/// as many `#` as it began with.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Code,
    Character,
    LineComment,
    BlockComment(usize),
    Text,
    RawText(usize),
}

fn split_rust(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = Line::default();
    let mut mode = Mode::Code;
    let mut rest = text;
    while !rest.is_empty() {
        let (next, length) = step(mode, rest);
        let (piece, after) = rest.split_at(length);
        for c in piece.chars() {
            let comment = |mode| matches!(mode, Mode::LineComment | Mode::BlockComment(_));
            if c == '\n' {
                lines.push(std::mem::take(&mut line));
            } else if comment(mode) || comment(next) {
                line.comment.push(c);
            } else if mode == Mode::Code && next == Mode::Code {
                line.code.push(c);
            }
        }
        (mode, rest) = (next, after);
    }
    lines.push(line);
    lines
}

/// Takes one piece from the front of `rest`: the mode after it, and its length in bytes.
fn step(mode: Mode, rest: &str) -> (Mode, usize) {
    let one = width(rest);
    let escape = one + width(&rest[one..]);
    match mode {
        Mode::Code => step_code(rest),
        Mode::LineComment if rest.starts_with('\n') => (Mode::Code, one),
        Mode::BlockComment(depth) if rest.starts_with("/*") => (Mode::BlockComment(depth + 1), 2),
        Mode::BlockComment(1) if rest.starts_with("*/") => (Mode::Code, 2),
        Mode::BlockComment(depth) if rest.starts_with("*/") => (Mode::BlockComment(depth - 1), 2),
        Mode::Text | Mode::Character if rest.starts_with('\\') => (mode, escape),
        Mode::Text if rest.starts_with('"') => (Mode::Code, one),
        Mode::Character if rest.starts_with('\'') => (Mode::Code, one),
        Mode::RawText(hashes) if rest.starts_with(&format!("\"{}", "#".repeat(hashes))) => {
            (Mode::Code, 1 + hashes)
        }
        _ => (mode, one),
    }
}

/// In code, finds what begins here. A quote begins a character only if it also ends one;
/// otherwise it is a lifetime.
fn step_code(rest: &str) -> (Mode, usize) {
    let raw = rest.strip_prefix('r').map(|after| after.trim_start_matches('#'));
    if rest.starts_with("//") {
        (Mode::LineComment, 2)
    } else if rest.starts_with("/*") {
        (Mode::BlockComment(1), 2)
    } else if rest.starts_with('"') {
        (Mode::Text, 1)
    } else if let Some(quoted) = raw.filter(|quoted| quoted.starts_with('"')) {
        let opening = rest.len() - quoted.len() + 1;
        (Mode::RawText(opening - 2), opening)
    } else if let Some(inner) = rest.strip_prefix('\'') {
        let is_character = inner.starts_with('\\') || inner[width(inner)..].starts_with('\'');
        (if is_character { Mode::Character } else { Mode::Code }, 1)
    } else {
        (Mode::Code, width(rest))
    }
}

/// The numbers, from 1, of the lines whose code satisfies `condition`.
fn lines_where(lines: &[Line], condition: impl Fn(&str) -> bool) -> Vec<usize> {
    let numbered = lines.iter().enumerate();
    numbered.filter(|(_, line)| condition(&line.code)).map(|(index, _)| index + 1).collect()
}

/// The length in bytes of the first character.
fn width(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// A function or the declaration of one: its first line, counted from 1, and how many it has.
struct Function {
    name: String,
    line: usize,
    length: usize,
}

fn functions(lines: &[Line]) -> Vec<Function> {
    let function = |(index, line): (usize, &Line)| {
        let name = function_name(&line.code)?.to_owned();
        Some(Function { name, line: index + 1, length: item_length(lines, index) })
    };
    lines.iter().enumerate().filter_map(function).collect()
}

/// A macro may write functions for others and still be no logic of the file that holds it.
fn functions_outside_macros(lines: &[Line]) -> Vec<Function> {
    let mut found = functions(lines);
    for start in lines_where(lines, |code| code.trim_start().starts_with("macro_rules!")) {
        let inside = start..start + item_length(lines, start - 1);
        found.retain(|function| !inside.contains(&function.line));
    }
    found
}

/// The name, if a function begins on this line. Only qualifiers, or the variables of a macro, may
/// stand before `fn`: this tells an item from a function type.
fn function_name(code: &str) -> Option<&str> {
    let (before, after) = code.split_once("fn ")?;
    let qualifies = |word: &str| {
        matches!(word, "pub" | "const" | "async" | "unsafe" | "safe" | "extern" | "default")
            || word.starts_with("pub(")
            || word.starts_with('$')
            || word.ends_with(')')
    };
    let separate = before.is_empty() || before.ends_with(' ');
    let is_item = separate && before.split_whitespace().all(qualifies);
    is_item.then(|| after.split(['(', '<']).next().unwrap_or(after).trim())
}

/// How many lines the item that begins at the index `first` has. It ends where the braces opened
/// since then close, or at a `;` outside all brackets, as in a trait's declarations.
fn item_length(lines: &[Line], first: usize) -> usize {
    let mut depth = 0_isize;
    for (index, line) in lines.iter().enumerate().skip(first) {
        for c in line.code.chars() {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 && (c == '}' || c == ';') {
                return index - first + 1;
            }
        }
    }
    lines.len() - first
}

/// The places where a check, a test or a piece of code is switched off, with what to do.
fn switched_off(lines: &[Line]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        for (pattern, instead) in SWITCHES.iter().filter(|(p, _)| line.code.contains(p)) {
            found.push((index + 1, format!("`{pattern}`: {instead}")));
        }
        if line.code.contains("[expect(") && !attribute_has_reason(&lines[index..]) {
            found.push((index + 1, "`#[expect(` without `reason = …`: say why".to_owned()));
        }
    }
    found
}

/// Looks through the attribute that begins on the first of `lines`.
fn attribute_has_reason(lines: &[Line]) -> bool {
    let end = lines.iter().position(|line| line.code.contains(")]")).unwrap_or(0);
    lines[..=end].iter().any(|line| line.code.contains("reason ="))
}

fn sleeps(code: &str) -> bool {
    let is_import = code.trim_start().trim_start_matches("pub ").starts_with("use ");
    let mut words = code.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    code.contains("thread::sleep(")
        || code.contains("time::sleep(")
        || (is_import && words.any(|word| word == "sleep"))
}

// --- Comments --------------------------------------------------------------------------------

/// The comments of a file with their line numbers from 1.
fn comments(file: &File) -> Vec<Finding> {
    let of_lines: Vec<String> = if file.path.ends_with(".rs") {
        split_rust(&file.text).into_iter().map(|line| line.comment).collect()
    } else {
        let comment = |line: &str| line.split_once("--").map_or("", |(_, after)| after).to_owned();
        file.text.lines().map(comment).collect()
    };
    let numbered = of_lines.into_iter().enumerate().map(|(index, comment)| (index + 1, comment));
    numbered.filter(|(_, comment)| !comment.is_empty()).collect()
}

/// The first piece of plan or history vocabulary in a comment.
///
/// A published standard such as RFC 3339 is written with a space and is no plan.
fn plan_in(comment: &str) -> Option<String> {
    let words = prose(comment);
    (0..words.len()).find_map(|index| {
        let here = &words[index..];
        let phrase = PHRASES.iter().find(|phrase| begins_with(here, phrase));
        let phrase = phrase.map(|phrase| phrase.join(" "));
        phrase.or_else(|| marker(here[0])).or_else(|| numbered_label(here))
    })
}

/// The words of a comment. Code in backticks and links are left out: they name things, they do
/// not tell plans. Code leaves a mark, so that the words around it do not become neighbours.
fn prose(comment: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || "#-_".contains(c);
    let spans: Vec<&str> = comment.split('`').collect();
    let mut words = Vec::new();
    for (index, span) in spans.iter().enumerate() {
        let is_closed_code = index % 2 == 1 && index + 1 < spans.len();
        if is_closed_code {
            words.push("`");
            continue;
        }
        for word in span.split_whitespace().filter(|word| !word.contains("://")) {
            words.extend(word.split(|c| !is_part(c)).filter(|part| !part.is_empty()));
        }
    }
    words
}

fn begins_with(words: &[&str], phrase: &[&str]) -> bool {
    words.len() >= phrase.len()
        && words.iter().zip(phrase).all(|(word, part)| word.eq_ignore_ascii_case(part))
}

/// An unfinished-work marker, a ticket number, or the number of a design document.
fn marker(word: &str) -> Option<String> {
    let is_numbered = |prefix: &str| {
        let number = word.strip_prefix(prefix);
        number.is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
    };
    let found = MARKERS.contains(&word) || is_numbered("#") || is_numbered("RFC-");
    found.then(|| word.to_owned())
}

/// A label followed by a number or a single capital letter, apart or joined by a hyphen.
fn numbered_label(words: &[&str]) -> Option<String> {
    let (label, number) = match words[0].split_once('-') {
        Some(joined) => joined,
        None => (words[0], *words.get(1)?),
    };
    let is_label = LABELS.iter().any(|known| label.eq_ignore_ascii_case(known));
    let is_letter = number.len() == 1 && number.starts_with(|c: char| c.is_ascii_uppercase());
    let is_number = number.starts_with(|c: char| c.is_ascii_digit());
    (is_label && (is_letter || is_number)).then(|| format!("{label} {number}"))
}

// --- The helpers find what they should -------------------------------------------------------

mod helpers {
    use super::*;

    fn lengths(text: &str) -> Vec<(String, usize)> {
        let found = functions(&split_rust(text));
        found.iter().map(|f| (f.name.clone(), f.length)).collect()
    }

    #[test]
    fn code_and_comments_are_told_apart() {
        let cases = [
            ("let a = 1; // why", "let a = 1; ", "// why"),
            ("/// docs", "", "/// docs"),
            ("a(\"// no\"); // yes", "a(); ", "// yes"),
            (r#"a("\" // no"); b"#, "a(); b", ""),
            (r##"a(r#"" // no"#); // yes"##, "a(); ", "// yes"),
            ("a(br\"\\\"); // yes", "a(b); ", "// yes"),
            ("a('\"', '{', '\\'', 'é'); // yes", "a(, , , ); ", "// yes"),
            ("fn a<'a>(b: &'a str) {} // yes", "fn a<'a>(b: &'a str) {} ", "// yes"),
            ("a /* b /* c */ d */ e", "a  e", "/* b /* c */ d */"),
        ];
        for (text, code, comment) in cases {
            let lines = split_rust(text);
            assert_eq!((lines[0].code.as_str(), lines[0].comment.as_str()), (code, comment));
        }
    }

    #[test]
    fn literals_and_block_comments_keep_the_line_count() {
        let text = "a(\"one\n} // no\\\n\");\n/* fn no()\n*/ b\nr\"\n\" c";
        let code: Vec<String> = split_rust(text).into_iter().map(|line| line.code).collect();
        assert_eq!(code, ["a(", "", ");", "", " b", "", " c"]);
    }

    #[test]
    fn function_length_counts_from_fn_to_closing_brace() {
        let body = "    let x = [1, 2];\n".repeat(68);
        assert_eq!(lengths(&format!("fn long() {{\n{body}}}\n")), [("long".to_owned(), 70)]);
        let cases = [
            ("fn one() {}", 1),
            ("fn one() { if a { b } else { c } }", 1),
            ("    fn one(&self, a: [u8; 4]) -> u8;\n    x", 1),
            ("fn one(\n    a: u8,\n) -> u8 {\n    a\n}\nx", 5),
            ("fn one(\n    a: u8,\n) -> u8;\nx", 3),
            ("fn one<T>(a: T)\nwhere\n    T: B,\n{\n    c(\"}\");\n}\nx", 6),
            ("fn one<T>(a: T)\nwhere\n    T: B;\nx {}", 3),
            ("pub(in a::b) const unsafe extern \"C\" fn one() {\n    // }\n    '}'\n}\nx", 4),
        ];
        for (text, length) in cases {
            assert_eq!(lengths(text), [("one".to_owned(), length)], "{text}");
        }
    }

    #[test]
    fn functions_are_items_and_nothing_else() {
        let text =
            "// fn no() {\n\"fn no() {\"\ntype A = fn (u8);\nlet often = 1;\n|f: fn (u8)| f(1)";
        assert_eq!(lengths(text), []);
        let nested = "fn outer() {\n    async fn inner() {\n    }\n}";
        assert_eq!(lengths(nested), [("outer".to_owned(), 4), ("inner".to_owned(), 2)]);
    }

    #[test]
    fn functions_in_macros_are_not_the_files_own() {
        let text = "macro_rules! suite {\n    () => {\n        fn a() {}\n    };\n}\nfn b() {}";
        let lines = split_rust(text);
        let outside = functions_outside_macros(&lines);
        assert_eq!((functions(&lines).len(), outside.len(), outside[0].line), (2, 1, 6));
    }

    #[test]
    fn plans_and_history_are_found() {
        let cases = [
            ("// TODO(someone): finish", "TODO"),
            ("/// a HACK.", "HACK"),
            ("// see RFC-012, section 3", "RFC-012"),
            ("// lands with Stage A", "Stage A"),
            ("// (wave 2)", "wave 2"),
            ("// phase-1 only", "phase 1"),
            ("// see issue 12", "issue 12"),
            ("// broke in #12.", "#12"),
            ("// Previously a list", "previously"),
            ("// this used to be a map", "used to be"),
            ("// For now, one is enough", "for now"),
        ];
        for (comment, plan) in cases {
            assert_eq!(plan_in(comment).as_deref(), Some(plan), "{comment}");
        }
    }

    #[test]
    fn ordinary_words_are_no_plans() {
        let cases = [
            "// the key used to sign tokens",
            "// times are RFC 3339 text",
            "// the clock's value for `now`, and for `then` now and again",
            "// moves to `Phase::Active`; the phase a lease is in",
            "// stage a change, issue a lease",
            "// https://example.org/issues/12#12 and `#12`",
            "// #[must_use] is not #, nor is page#12",
            "// a hack day, hackers, todos",
        ];
        for comment in cases {
            assert_eq!(plan_in(comment), None, "{comment}");
        }
    }

    #[test]
    fn comments_are_found_in_every_language() {
        let lines = |path: &str, text: &str| {
            let file = File { path: path.to_owned(), text: text.to_owned() };
            comments(&file).into_iter().map(|(line, _)| line).collect::<Vec<_>>()
        };
        assert_eq!(lines("a.rs", "//! docs\nlet a = \"// no\";\nb // yes"), [1, 3]);
        assert_eq!(lines("a.sql", "-- header\nSELECT 1;\nSELECT 2; -- yes"), [1, 3]);
        assert_eq!(lines("a.lua", "local a = 1\n-- yes"), [2]);
    }

    #[test]
    fn switches_are_found_in_code_only() {
        let text = "#[ignore = \"slow\"]\n#![allow(dead_code)]\ntodo!()\nunimplemented!()\n\
                    #[expect(dead_code)]\n#[expect(\n    dead_code,\n    reason = \"why\"\n)]\n\
                    a.expect(\"todo!()\"); // #[ignore]\n";
        let lines: Vec<usize> =
            switched_off(&split_rust(text)).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn sleeps_are_found_however_they_are_named() {
        assert!(sleeps("std::thread::sleep(a);"));
        assert!(sleeps("    tokio::time::sleep(a).await;"));
        assert!(sleeps("use tokio::time::{sleep, timeout};"));
        assert!(!sleeps("clock.sleep(a); sleep_until(b);"));
    }

    #[test]
    fn the_table_of_arrows_names_only_rows_above() {
        for (row, (krate, allowed)) in ARROWS.iter().enumerate() {
            for arrow in *allowed {
                let above = ARROWS[..row].iter().any(|(name, _)| arrow_covers(arrow, name));
                assert!(above, "{krate} names {arrow}, which is not above it");
            }
        }
        assert!(!arrow_covers("ff-core", STORES) && !arrow_covers("ff-core", "ff-core-extra"));
    }

    #[test]
    fn manifests_are_read_with_their_tables() {
        let text = "[package]\nname = \"a\"\n[dependencies]\nserde.workspace = true\n\
                    # rand = \"1\"\ntokio = { workspace = true, features = [\n    \"fs\",\n] }\n\
                    ff-core = { path = \"../ff-core\" }\n[dev-dependencies]\nrand = \"1\"\n\
                    [target.'cfg(unix)'.dependencies.libc]\nversion = \"1\"\n[lints]\na = 1\n";
        let shown = |d: &Dependency| {
            format!("{} {}:{} {} {}", d.table, d.name, d.line, d.inherited, d.local)
        };
        let found: Vec<String> = dependencies(text).iter().map(shown).collect();
        let expected = [
            "dependencies serde:4 true false",
            "dependencies tokio:6 true false",
            "dependencies ff-core:9 false true",
            "dev-dependencies rand:11 false false",
            "target.'cfg(unix)'.dependencies.libc libc:12 false false",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn reasons_are_read_from_their_section_only() {
        let guide = "## Rules\n| `a` | b |\n## Dependencies\n| crate | reason |\n| `c` | d `e` |\n\
                     ## More\n| `f` | g |\n";
        let rows = reasons(guide);
        assert_eq!(rows, [(5, "c".to_owned())]);
        assert_eq!(missing_from(&rows, &[], "is new"), [(5, "`c` is new".to_owned())]);
        assert_eq!(missing_from(&rows, &rows, "is new"), []);
    }
}
