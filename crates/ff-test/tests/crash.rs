//! A process under load is killed again and again. After each restart every acknowledged
//! operation is there and all invariants hold.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ff_backend_sqlite::{SqliteOptions, SqliteStore};
use ff_core::backend::{BackendExt, Upkeep};
use ff_core::id::ExecutionId;
use ff_core::read::{Audit, Describe, ReadResult, Record};
use ff_core::state::PublicState;
use ff_test::history;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const KILLS: u64 = 50;

/// What the child said of one execution.
#[derive(Debug, Default)]
struct Acknowledged {
    submitted: bool,
    epoch: u64,
    completed: bool,
    failed: bool,
    cancelled: bool,
}

/// Runs the child until it has told `lines` acknowledgements, and kills it.
fn run_and_kill(path: &Path, lines: usize) -> Vec<String> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_crash_child"))
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen: Vec<String> = told.by_ref().take(lines).map(Result::unwrap).collect();
    assert_eq!(seen.len(), lines, "the child ended by itself: {:?}", child.try_wait());
    child.kill().unwrap();
    child.wait().unwrap();
    // What it told before it died was acknowledged, whenever we read it.
    seen.extend(told.map_while(Result::ok));
    seen
}

fn understand(lines: &[String]) -> BTreeMap<ExecutionId, Acknowledged> {
    let mut known: BTreeMap<ExecutionId, Acknowledged> = BTreeMap::new();
    for line in lines {
        let mut words = line.split(' ');
        let (what, id) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
        let of = known.entry(id).or_default();
        match what {
            "S" => of.submitted = true,
            "C" => of.epoch = of.epoch.max(words.next().unwrap().parse().unwrap()),
            "D" => of.completed = true,
            "F" => of.failed = true,
            "X" => of.cancelled = true,
            other => panic!("{other}"),
        }
    }
    known
}

async fn check(store: &SqliteStore, id: ExecutionId, said: &Acknowledged) {
    let record: Option<Box<Record>> = store.ask(Describe { execution_id: id }).await.unwrap();
    let record = record.unwrap_or_else(|| panic!("{id} was acknowledged and is gone: {said:?}"));
    assert!(record.lease_epoch >= said.epoch, "{id}: {said:?} {record:?}");
    if said.completed {
        assert_eq!(record.state.public_state, PublicState::Completed, "{id}");
        let query = ReadResult { execution_id: id, attempt_index: None };
        let result = store.ask(query).await.unwrap();
        assert_eq!(result.bytes, id.to_string().as_bytes(), "the result is the payload");
    }
    if said.cancelled {
        assert_eq!(record.state.public_state, PublicState::Cancelled, "{id}");
    }
    if said.failed {
        assert!(record.retry_count > 0 || record.completed_at.is_some(), "{id}: {record:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("crash.db");
    let mut dice = StdRng::seed_from_u64(7);
    for kill in 0..KILLS {
        let lines = run_and_kill(&path, dice.random_range(1..400));
        let store = SqliteStore::open(SqliteOptions::file(&path)).unwrap();
        for (id, said) in understand(&lines) {
            check(&store, id, &said).await;
        }
        let audited = store.ask(Audit).await.unwrap();
        assert!(audited.violations.is_empty(), "kill {kill}: {:#?}", audited.violations);
        store.shutdown_prepare(Duration::from_secs(10)).await.unwrap();
    }
    let store = SqliteStore::open(SqliteOptions::file(&path)).unwrap();
    let violations = history::violations(&history::read_all(&store).await);
    assert!(violations.is_empty(), "{violations:#?}");
}
