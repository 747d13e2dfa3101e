//! The private servers of the test kit do what tests of a store rely on: they start, break and
//! come back as they are told, and never outlive the process that started them.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::env;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use ff_test::servers::{
    Cluster, ClusterOptions, Persistence, Replicated, Server, ServerOptions, cluster, standalone,
    wait_until,
};

const WITHIN: Duration = Duration::from_secs(20);

/// Set in the process that is started to be killed.
const VICTIM: &str = "FF_TEST_SERVERS_VICTIM";

fn ok() -> Result<String, String> {
    Ok("OK".to_owned())
}

fn text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

fn is_alive(pid: u32) -> bool {
    let script = r#"kill -0 "$0" 2>/dev/null"#;
    Command::new("sh").args(["-c", script, &pid.to_string()]).status().unwrap().success()
}

#[test]
fn the_shared_server_answers_and_is_one() {
    let server = standalone();
    assert_eq!(server.command(&["PING"]), text("PONG"));
    assert_eq!(server.url(), format!("valkey://127.0.0.1:{}", server.port()));
    assert_eq!(server.pid(), standalone().pid());
    assert!(is_alive(server.pid()) && server.is_up());
}

#[test]
fn replies_of_every_kind_become_text() {
    let server = standalone();
    assert_eq!(server.command(&["SET", "kinds:a", "two\r\nlines"]), ok());
    assert_eq!(server.command(&["GET", "kinds:a"]), text("two\r\nlines"));
    assert_eq!(server.command(&["GET", "kinds:none"]), text(""));
    assert_eq!(server.command(&["RPUSH", "kinds:b", "1", "2"]), text("2"));
    assert_eq!(server.command(&["LRANGE", "kinds:b", "0", "-1"]), text("1\n2"));
    let refused = server.command(&["INCR", "kinds:b"]).unwrap_err();
    assert!(refused.starts_with("WRONGTYPE"), "{refused}");
    assert_eq!(server.command(&["DEBUG", "SET-ACTIVE-EXPIRE", "1"]), ok(), "DEBUG is open");
}

#[test]
fn what_was_acknowledged_survives_a_kill_with_persistence_alone() {
    for (persistence, kept) in [(Persistence::AppendAlways, "1"), (Persistence::None, "")] {
        let server = Server::start(ServerOptions { persistence, ..ServerOptions::default() });
        let (port, pid) = (server.port(), server.pid());
        assert_eq!(server.command(&["SET", "a", "1"]), ok());
        server.kill();
        assert!(!is_alive(pid) && !server.is_up());
        server.command(&["PING"]).unwrap_err();
        server.restart();
        assert_eq!(server.command(&["GET", "a"]), text(kept), "{persistence:?}");
        assert_eq!(server.port(), port);
        assert_ne!(server.pid(), pid);
    }
}

#[test]
fn an_orderly_stop_loses_nothing() {
    let persistence = Persistence::AppendEverySecond;
    let server = Server::start(ServerOptions { persistence, ..ServerOptions::default() });
    let pid = server.pid();
    assert_eq!(server.command(&["SET", "a", "1"]), ok());
    server.pause();
    server.stop();
    assert!(!is_alive(pid));
    server.restart();
    assert_eq!(server.command(&["GET", "a"]), text("1"));
}

#[test]
fn a_paused_server_answers_when_it_resumes() {
    let server = Server::start(ServerOptions::default());
    server.pause();
    assert!(is_alive(server.pid()) && !server.is_up());
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| server.command(&["PING"]));
        assert!(!answer.is_finished());
        server.resume();
        assert_eq!(answer.join().unwrap(), text("PONG"));
    });
}

#[test]
fn passwords_and_extra_lines_hold() {
    let server = Server::start(ServerOptions {
        password: Some("secret".to_owned()),
        extra: vec!["maxmemory 12345678".to_owned()],
        ..ServerOptions::default()
    });
    assert_eq!(server.url(), format!("valkey://:secret@127.0.0.1:{}", server.port()));
    assert_eq!(server.command(&["CONFIG", "GET", "maxmemory"]), text("maxmemory\n12345678"));
    let config = server.command(&["CONFIG", "GET", "requirepass"]);
    assert_eq!(config, text("requirepass\nsecret"));
}

#[test]
fn a_server_that_does_not_start_says_why() {
    let extra = vec!["no-such-option 1".to_owned()];
    let start = || Server::start(ServerOptions { extra, ..ServerOptions::default() });
    let panic = std::panic::catch_unwind(start).err().expect("a panic");
    let message = panic.downcast::<String>().unwrap();
    assert!(message.contains("no-such-option"), "{message}");
}

#[test]
fn a_dropped_server_is_gone_with_its_directory() {
    let server = Server::start(ServerOptions::default());
    let (pid, port) = (server.pid(), server.port());
    let directory = server.command(&["CONFIG", "GET", "dir"]).unwrap();
    let directory = directory.lines().last().unwrap();
    assert!(std::fs::exists(directory).unwrap());
    drop(server);
    assert!(!is_alive(pid) && !std::fs::exists(directory).unwrap());
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();
}

/// Does nothing unless it is the process that the next test starts and kills. That one keeps a
/// server in a static, and another that is paused, and is killed while it does.
#[test]
fn a_victim_holds_servers() {
    if env::var_os(VICTIM).is_none() {
        return;
    }
    let paused = Server::start(ServerOptions::default());
    for server in [standalone(), &paused] {
        let directory = server.command(&["CONFIG", "GET", "dir"]).unwrap();
        println!("\nserver {} {}", server.pid(), directory.lines().last().unwrap());
    }
    paused.pause();
    println!("\nholding");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn servers_die_with_a_process_that_is_killed() {
    let mut victim = Command::new(env::current_exe().unwrap())
        .args(["--exact", "a_victim_holds_servers", "--nocapture"])
        .env(VICTIM, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said: Vec<String> = lines.take_while(|line| line != "holding").collect();
    let told = said.iter().filter_map(|line| line.strip_prefix("server ")?.split_once(' '));
    let held: Vec<(u32, &str)> = told.map(|(pid, path)| (pid.parse().unwrap(), path)).collect();
    assert_eq!(held.len(), 2, "{said:?}");
    assert!(held.iter().all(|(pid, _)| is_alive(*pid)));
    victim.kill().unwrap();
    victim.wait().unwrap();
    for (pid, directory) in held {
        wait_until("the server is gone", WITHIN, || !is_alive(pid));
        wait_until("its directory is gone", WITHIN, || !std::fs::exists(directory).unwrap());
    }
}

#[test]
fn every_node_of_a_cluster_says_it_is_whole() {
    let cluster = cluster();
    assert_eq!(cluster.nodes().len(), 3);
    for node in cluster.nodes() {
        let info = node.command(&["CLUSTER", "INFO"]).unwrap();
        for line in ["cluster_state:ok", "cluster_slots_ok:16384", "cluster_known_nodes:3"] {
            assert!(info.contains(line), "{info}");
        }
    }
    assert_eq!(cluster.url(), format!("{}?cluster=1", cluster.nodes()[0].url()));
    let owners = [0, 5_460, 5_461, 10_921, 10_922, 16_383].map(|slot| cluster.owner_of(slot));
    assert_eq!(owners, [0, 0, 1, 1, 2, 2]);
}

#[test]
fn a_slot_moves_with_its_keys() {
    let cluster = Cluster::start(&ClusterOptions::default());
    let slot = cluster.slot_of("{a}");
    let from = cluster.owner_of(slot);
    let to = (from + 1) % 3;
    let (source, target) = (&cluster.nodes()[from], &cluster.nodes()[to]);
    let keys: Vec<String> = (0..250).map(|number| format!("{{a}}\n{number}")).collect();
    for key in &keys {
        assert_eq!(source.command(&["SET", key, key]), ok());
    }

    cluster.begin_move(slot, from, to);
    assert_eq!(cluster.move_keys(slot, from, to, 120), 120);
    let missing: &[&str] = &["GET", "{a} no such key"];
    let asked = source.command(missing).unwrap_err();
    assert_eq!(asked, format!("ASK {slot} 127.0.0.1:{}", target.port()));
    assert_eq!(target.commands(&[&["ASKING"], missing]).unwrap(), ["OK", ""]);
    assert_eq!(cluster.owner_of(slot), from, "in the middle of the move");
    assert_eq!(cluster.move_keys(slot, from, to, usize::MAX), 130);
    assert_eq!(cluster.move_keys(slot, from, to, usize::MAX), 0);
    cluster.end_move(slot, from, to);

    assert_eq!(cluster.owner_of(slot), to);
    for key in &keys {
        assert_eq!(target.command(&["GET", key]), text(key));
        let moved = source.command(&["GET", key]).unwrap_err();
        assert_eq!(moved, format!("MOVED {slot} 127.0.0.1:{}", target.port()));
    }
    cluster.move_slot(slot, to, from);
    assert_eq!(source.command(&["GET", &keys[0]]), text(&keys[0]));
}

#[test]
fn a_replica_in_a_cluster_takes_over() {
    let options = ClusterOptions { replicas_each: 1, ..ClusterOptions::default() };
    let cluster = Cluster::start(&options);
    let slot = cluster.slot_of("a");
    let primary = cluster.owner_of(slot);
    let replica = primary + 3;
    // What the replica has not received when it takes over is lost.
    let replies = cluster.nodes()[primary].commands(&[&["SET", "a", "1"], &["WAIT", "1", "20000"]]);
    assert_eq!(replies.unwrap(), ["OK", "1"]);
    cluster.nodes()[primary].kill();
    wait_until("the replica serves the slot", WITHIN, || {
        cluster.nodes()[replica].command(&["GET", "a"]) == text("1")
    });
    assert_eq!(cluster.owner_of(slot), replica);
}

#[test]
fn a_replica_has_the_write_and_takes_over() {
    let pair = Replicated::start(&ServerOptions::default());
    assert_eq!(pair.primary().command(&["SET", "a", "1"]), ok());
    pair.catch_up();
    assert_eq!(pair.replica().command(&["GET", "a"]), text("1"));
    let refused = pair.replica().command(&["SET", "a", "2"]).unwrap_err();
    assert!(refused.starts_with("READONLY"), "{refused}");

    let primary = pair.fail_over();
    assert_eq!(primary.port(), pair.replica().port());
    assert!(!pair.primary().is_up());
    assert_eq!(primary.command(&["GET", "a"]), text("1"));
    assert_eq!(primary.command(&["SET", "a", "2"]), ok());
}
