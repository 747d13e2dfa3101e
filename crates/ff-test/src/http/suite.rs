//! Turns cases into tests on every store.

use std::pin::Pin;

use ff_core::partition::PartitionConfig;

use super::Site;
use crate::stages::{SqliteStage, ValkeyStage};

/// A case under way on its server.
pub type Case<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

fn run(case: for<'a> fn(&'a Site) -> Case<'a>, make: fn() -> Pin<Box<dyn Future<Output = Site>>>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let site = make().await;
        case(&site).await;
        site.stop().await;
    });
}

pub fn on_sqlite(case: for<'a> fn(&'a Site) -> Case<'a>) {
    run(case, || Box::pin(Site::on(SqliteStage::on_file(PartitionConfig::default()))));
}

pub fn on_valkey(case: for<'a> fn(&'a Site) -> Case<'a>) {
    run(case, || {
        Box::pin(async {
            Site::on(ValkeyStage::standalone(PartitionConfig::default()).await).await
        })
    });
}

/// Makes a test of every case for every store.
#[macro_export]
macro_rules! on_every_store {
    ($($case:ident)*) => {
        mod sqlite {
            $(
                #[test]
                fn $case() {
                    $crate::http::on_sqlite(|site| Box::pin(super::$case(site)));
                }
            )*
        }

        mod valkey {
            $(
                #[test]
                fn $case() {
                    $crate::http::on_valkey(|site| Box::pin(super::$case(site)));
                }
            )*
        }
    };
}
