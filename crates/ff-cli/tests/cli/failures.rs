//! What is told when it does not go well.

use crate::support::{Site, Told, command, ff};

#[test]
fn usage_values_and_absence_have_codes_of_their_own() {
    let nobody = ["--url", "http://127.0.0.1:1"];
    let cases: [(&[&str], i32, &str); 16] = [
        (&["submit", "--lane", "l", "--kind", "k", "--payload", "@/no/file"], 2, "/no/file"),
        (&["submit", "--batch", "/no/file"], 2, "/no/file"),
        (&["nonsense"], 2, "nonsense"),
        (&["ls", "--nonsense"], 2, "--nonsense"),
        (&["get"], 2, "<ID>"),
        (&["submit", "--lane", "l"], 2, "--kind"),
        (&["submit", "--batch", "f", "--lane", "l"], 2, "--batch"),
        (&["submit", "--lane", "l", "--kind", "k", "--delay", "soon"], 5, "no unit"),
        (&["ls", "--limit", "many"], 5, "--limit"),
        (&["tag", "x", "novalue"], 5, "name=value"),
        (&["get", ".."], 5, "no id"),
        (&["cancel", "x", "--lane", "l"], 2, "--filter"),
        (&["cancel", "--filter"], 5, "--filter needs a filter"),
        (&["cancel", "--lane", "l"], 2, "say --filter"),
        (&["replay"], 2, "<ID>"),
        (&["migrate"], 2, "--store"),
    ];
    for (arguments, code, told) in cases {
        let said = ff(&[&nobody, arguments].concat());
        assert_eq!(said.code, code, "{arguments:?}: {said:?}");
        assert!(said.err.contains(told), "{arguments:?}: {said:?}");
        assert_eq!(said.out, "", "{arguments:?}");
        let said = ff(&[&nobody, arguments, &["--json"]].concat());
        assert_eq!(said.problem(code), "invalid_input", "{arguments:?}");
    }
    let away = ff(&[&nobody[..], &["ls"]].concat());
    assert_eq!(away.code, 8);
    assert!(away.err.contains("no answer from http://127.0.0.1:1"), "{}", away.err);
    assert!(away.err.contains("ff dev"), "it says what to try: {}", away.err);
    assert_eq!(ff(&[&nobody[..], &["ls", "--json"]].concat()).problem(8), "unavailable");
    assert_eq!(ff(&["--url", "ftp://x", "ls"]).code, 2);
    assert_eq!(ff(&["--url", "x", "ls"]).code, 2);
    assert_eq!(ff(&["--store", "odd:x", "ls"]).code, 2);
}

#[test]
fn usage_is_told_the_same_whatever_the_environment_says() {
    let plain = ff(&["get"]);
    let mut command = command(&["get"]);
    command.env("FF_URL", "http://127.0.0.1:1").env("FF_CA", "/no/file");
    let told = Told::of(&command.output().unwrap());
    assert_eq!((told.code, told.err), (plain.code, plain.err));
}

#[test]
fn what_comes_to_nothing_or_otherwise_is_told() {
    let site = Site::start();
    let id = site.submit(&[]);
    let silent = site.ff(&["logs", &id]);
    assert!(silent.code == 0 && silent.err.contains("no output"), "{silent:?}");
    let high = ["submit", "--lane", "l", "--kind", "k", "--priority", "99999"];
    let told = site.ff(&high);
    assert!(told.code == 0 && told.err.contains("priority 9000"), "{told:?}");
    for _ in 0..30 {
        site.submit(&[]);
    }
    let many = site.ff(&["cancel", "--filter", "--lane", "l"]);
    let listed = many.err.lines().filter(|line| line.starts_with("  {")).count();
    assert!(many.err.contains(&format!("and {} more", 32 - listed)), "{many:?}");
}

#[test]
fn refusals_of_the_server_come_through() {
    let site = Site::start();
    let id = site.submit(&[]);
    let cases: [(&[&str], i32, &str); 8] = [
        (&["get", "no-id"], 5, "invalid_input"),
        (&["ls", "--limit", "501"], 5, "invalid_input"),
        (&["ls", "--state", "happy"], 5, "invalid_input"),
        (&["replay", &id], 4, "execution_not_terminal"),
        (&["resume", &id], 4, "execution_not_suspended"),
        (&["submit", "--lane", "", "--kind", "k"], 5, "invalid_input"),
        (&["tag", &id, "NO TAG=1"], 5, "invalid_tag_key"),
        (&["submit", "--lane", "l", "--kind", "k", "--policy", "{"], 5, "invalid_policy_json"),
    ];
    for (arguments, exit, code) in cases {
        let told = site.ff(&[arguments, &["--json"]].concat());
        assert_eq!(told.problem(exit), code, "{arguments:?}");
        let told = site.ff(arguments);
        assert_eq!(told.code, exit);
        assert!(told.err.starts_with("error: ") && told.err.contains(code), "{}", told.err);
    }
}

#[test]
fn keys_are_sent_and_never_shown() {
    let site = Site::start();
    let with = |name: &str, value: &str, more: &[(&str, &str)]| {
        let mut command = site.command(&["ls"]);
        command.env(name, value).envs(more.iter().copied());
        Told::of(&command.output().unwrap())
    };
    let file = site.folder.path().join("key");
    std::fs::write(&file, "ffk_abc_hunter2hunter2\n").unwrap();
    let file = file.to_str().unwrap();
    let both = with("FF_API_TOKEN", "hunter2", &[("FF_API_TOKEN_FILE", file)]);
    assert!(both.code == 2 && both.err.contains("FF_API_TOKEN_FILE"), "{both:?}");
    let bad = with("FF_API_TOKEN", "hunter2\u{1}", &[]);
    assert_eq!(bad.code, 2, "{bad:?}");
    let gone = with("FF_API_TOKEN_FILE", "/no/such/file", &[]);
    assert_eq!(gone.code, 2, "{gone:?}");
    for told in [both, bad, gone] {
        assert!(!told.err.contains("hunter2"), "{told:?}");
    }
}

#[test]
fn colours_are_for_terminals() {
    let site = Site::start();
    site.submit(&[]);
    let shown = site.ff(&["ls"]).ok();
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    let help = Told::of(&command(&["--help"]).output().unwrap()).ok();
    assert!(!help.contains('\u{1b}'));
}
