//! Turns cases into tests on every way to the engine.

use std::pin::Pin;

use ff_core::partition::PartitionConfig;

use super::Workshop;
use crate::stages::{SqliteStage, ValkeyStage};

/// A case under way.
pub type Case<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

fn run(
    case: for<'a> fn(&'a Workshop) -> Case<'a>,
    make: fn() -> Pin<Box<dyn Future<Output = Workshop>>>,
) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let workshop = make().await;
        case(&workshop).await;
    });
}

pub fn on_sqlite(case: for<'a> fn(&'a Workshop) -> Case<'a>) {
    run(case, || {
        Box::pin(async { Workshop::on(SqliteStage::on_file(PartitionConfig::default())) })
    });
}

pub fn on_valkey(case: for<'a> fn(&'a Workshop) -> Case<'a>) {
    run(case, || {
        Box::pin(async { Workshop::on(ValkeyStage::standalone(PartitionConfig::default()).await) })
    });
}

/// Over a server that stands before a SQLite store.
pub fn on_http(case: for<'a> fn(&'a Workshop) -> Case<'a>) {
    run(case, || {
        Box::pin(Workshop::behind_a_server(SqliteStage::on_file(PartitionConfig::default())))
    });
}

/// Makes a test of every case for every way to the engine.
#[macro_export]
macro_rules! on_every_way {
    ($($case:ident)*) => {
        mod http {
            $(
                #[test]
                fn $case() {
                    $crate::sdk::on_http(|workshop| Box::pin(super::$case(workshop)));
                }
            )*
        }

        $crate::on_both_stores!($($case)*);
    };
}

/// The same for what no route serves.
#[macro_export]
macro_rules! on_both_stores {
    ($($case:ident)*) => {
        mod sqlite {
            $(
                #[test]
                fn $case() {
                    $crate::sdk::on_sqlite(|workshop| Box::pin(super::$case(workshop)));
                }
            )*
        }

        mod valkey {
            $(
                #[test]
                fn $case() {
                    $crate::sdk::on_valkey(|workshop| Box::pin(super::$case(workshop)));
                }
            )*
        }
    };
}
