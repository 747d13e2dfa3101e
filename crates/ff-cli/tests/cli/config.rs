//! Settings of a server: a file, the environment, flags.

use std::fs;
use std::process::Command;

use ff_test::servers::{Server, ServerOptions};
use serde_json::Value;

use crate::support::{Running, Site, Told, command};

const SECRET: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn print(environment: &[(&str, &str)], arguments: &[&str]) -> Told {
    let mut command: Command = command(&["server", "--print-config"]);
    command.args(arguments).envs(environment.iter().copied());
    Told::of(&command.output().unwrap())
}

/// The line of a field.
#[track_caller]
fn line(text: &str, field: &str) -> String {
    let found = text.lines().find(|line| line.starts_with(&format!("{field} =")));
    found.unwrap_or_else(|| panic!("no {field} in {text}")).to_owned()
}

#[test]
fn what_comes_later_wins() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ff.toml");
    fs::write(
        &file,
        "store = \"sqlite:a.db\"\n[server]\nmax_connections = 5\nmax_stream_tails = 6\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let plain = print(&[], &[]).ok();
    assert!(line(&plain, "store").contains("\"sqlite:flowfabric.db\"  # default"), "{plain}");
    let of_file = print(&[("FF_CONFIG", file)], &[]).ok();
    fs::write(folder.path().join("empty.toml"), "[server]\n").unwrap();
    print(&[], &["--config", folder.path().join("empty.toml").to_str().unwrap()]).ok();
    assert!(line(&of_file, "max_connections").contains(&format!("5  # file {file}")), "{of_file}");
    let environment = [("FF_SERVER_MAX_CONNECTIONS", "7"), ("FF_STORE", "sqlite:b.db")];
    let over = print(&environment, &["--config", file]).ok();
    let told = line(&over, "max_connections");
    assert!(told.contains("7  # environment FF_SERVER_MAX_CONNECTIONS"), "{told}");
    assert!(line(&over, "max_stream_tails").contains("6  # file"), "{over}");
    let flags = ["--store", "sqlite:c.db", "--set", "server.max_connections=9", "--no-engine"];
    let over = print(&environment, &flags).ok();
    assert!(line(&over, "store").contains("\"sqlite:c.db\"  # flag --store"), "{over}");
    assert!(line(&over, "max_connections").contains("9  # flag --set"), "{over}");
    assert!(line(&over, "enabled").contains("false  # flag --no-engine"), "{over}");
    // What is printed can be read again, and comes to the same.
    let again = folder.path().join("again.toml");
    fs::write(&again, &over).unwrap();
    let printed = print(&[], &["--config", again.to_str().unwrap()]).ok();
    assert!(line(&printed, "max_connections").starts_with("max_connections = 9"), "{printed}");
}

#[test]
fn every_scanner_has_its_names() {
    let long = [("FF_ENGINE_LEASE_EXPIRY_INTERVAL_MS", "250")];
    let short = [("FF_LEASE_EXPIRY_INTERVAL_MS", "250")];
    for names in [long, short] {
        let told = print(&names, &[]);
        assert_eq!(told.err, "", "it is no unknown name");
        assert!(line(&told.ok(), "lease_expiry_interval_ms").contains("= 250"));
    }
    let twice = print(&[long[0], short[0]], &[]);
    assert!(twice.code == 2 && twice.err.contains("twice"), "{twice:?}");
}

#[test]
fn wrong_settings_stop_the_start_with_their_name() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let files = [
        (written("a", "[server]\nport = 1\n"), "server.port"),
        (written("b", "[server]\nmax_connections = \"5\"\n"), "server.max_connections"),
        (written("c", "max_connections = 5\n"), "there is server.max_connections"),
        (written("d", "[[[\n"), "d"),
        (written("e", "[server.listen_addr]\nhost = 1\n"), "server.listen_addr.host"),
        (written("f", "[serve]\n"), "serve"),
        ("/no/such/file".to_owned(), "/no/such/file"),
    ];
    for (file, told) in &files {
        let said = print(&[], &["--config", file]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{file}: {said:?}");
        assert!(said.err.contains(told), "{file}: {said:?}");
    }
    let names = [
        ("FF_LISTEN_ADDR", "nowhere", "server.listen_addr"),
        ("FF_STORE", "odd:x", "store"),
        ("FF_FLOW_PARTITIONS", "5000", "partitions.flow"),
        ("FF_ENGINE_ENABLED", "perhaps", "engine.enabled"),
        ("FF_LEASE_EXPIRY_INTERVAL_MS", "99", "engine.lease_expiry_interval_ms"),
        ("FF_ENGINE_FILTER_NAMESPACE", "NO", "engine.filter_namespace"),
        ("FF_LOG_FORMAT", "xml", "log.format"),
        ("RUST_LOG", "a=b=c", "log.filter"),
        ("FF_RETENTION_SUCCESS_MS", "-1", "retention.success_ms"),
    ];
    for (name, value, told) in names {
        let said = print(&[(name, value)], &[]);
        assert_eq!(said.code, 2, "{name}: {said:?}");
        assert!(said.err.contains(told), "{name}: {said:?}");
    }
    let only = command(&["server", "--engine-only", "--set", "engine.enabled=false"]).output();
    assert_eq!(Told::of(&only.unwrap()).code, 2);
    assert_eq!(print(&[], &["--set", "x"]).code, 2);
}

#[test]
fn secrets_come_from_files_and_are_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    fs::write(&file, format!("{SECRET}\n")).unwrap();
    let file = file.to_str().unwrap();
    for environment in
        [[("FF_WAITPOINT_HMAC_SECRET", SECRET)], [("FF_WAITPOINT_HMAC_SECRET_FILE", file)]]
    {
        let told = print(&environment, &[]);
        assert!(told.out.contains("hmac_secret is set and not shown"), "{told:?}");
        assert!(!told.out.contains(SECRET) && told.err.is_empty(), "{told:?}");
    }
    let both = [("FF_WAITPOINT_HMAC_SECRET", SECRET), ("FF_WAITPOINT_HMAC_SECRET_FILE", file)];
    assert_eq!(print(&both, &[]).code, 2);
    let bad = print(&[("FF_WAITPOINT_HMAC_SECRET", "hunter2")], &[]);
    assert!(bad.code == 2 && bad.err.contains("waitpoint.hmac_secret"), "{bad:?}");
    assert!(!bad.err.contains("hunter2"), "{bad:?}");
    let config = folder.path().join("ff.toml");
    fs::write(&config, format!("[waitpoint]\nhmac_secret_file = \"{file}\"\n")).unwrap();
    let told = print(&[], &["--config", config.to_str().unwrap()]).ok();
    assert!(told.contains("hmac_secret is set"), "{told}");
    let password = [("FF_STORE", "valkey://me:hunter2@h:1")];
    let told = print(&password, &[]).ok();
    assert!(told.contains("valkey://me:***@h:1") && !told.contains("hunter2"), "{told}");
}

#[test]
fn unknown_names_of_the_environment_give_one_warning() {
    let told = print(&[("FF_NONSENSE", "1"), ("FF_MORE_NONSENSE", "2")], &[]);
    assert_eq!(told.code, 0);
    assert_eq!(told.err.lines().count(), 1, "{}", told.err);
    assert!(told.err.contains("FF_NONSENSE") && told.err.contains("FF_MORE_NONSENSE"));
}

#[test]
fn settings_are_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("ff.db").display());
    let secret = format!("waitpoint.hmac_secret={SECRET}");
    let settings =
        ["--set", "partitions.flow=8", "--set", "retention.cancelled_ms=0", "--set", &secret];
    let mut site = Site::with(store.clone(), folder, &settings);
    let gone = Running::start(site.command(&["events", "--types", "execution.deleted", "--json"]));
    let id = site.submit(&[]);
    site.ff(&["cancel", &id]).ok();
    gone.line_with(&id);
    assert_eq!(site.running.terminate(), 0);
    let other = format!("waitpoint.hmac_secret={}", SECRET.replace('0', "f"));
    let elsewhere = tempfile::tempdir().unwrap();
    let mut again = Site::with(store.clone(), elsewhere, &["--set", "partitions.quota=16"]);
    again.submit(&[]);
    assert_eq!(again.running.terminate(), 0, "the counts that are not given are as stored");
    for (setting, told) in [("partitions.flow=9", "num_flow_partitions"), (&other, "secret")] {
        let serve = ["server", "--store", &store, "--listen-addr", "127.0.0.1:0", "--set", setting];
        let said = Told::of(&command(&serve).output().unwrap());
        assert_eq!(said.code, 2, "{setting}: {said:?}");
        assert!(said.err.contains(told) && !said.err.contains(&other), "{said:?}");
    }
}

#[test]
fn logs_are_text_or_json() {
    for (format, is_json) in [("json", true), ("text", false)] {
        // A new server has no functions yet: that they are loaded is logged.
        let server = Server::start(ServerOptions::default());
        let store = server.url();
        let format = format!("log.format={format}");
        let mut serve = command(&["server", "--store", &store, "--set", &format]);
        serve.args(["--listen-addr", "127.0.0.1:0", "--set", "log.filter=info"]);
        let line = Running::start_logging(serve).line_with("loaded the function library");
        let read = serde_json::from_str::<Value>(&line);
        assert_eq!(read.is_ok(), is_json, "{line}");
    }
}
