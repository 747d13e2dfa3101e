//! Turns the list of cases into tests.

use std::pin::Pin;

use crate::world::World;

/// A case under way on its world.
pub type Case<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Runs one case on a fresh world, and checks afterwards that the store is sound. Not generic: one
/// runtime's code serves hundreds of tests.
pub fn run(make: fn() -> Making, case: for<'a> fn(&'a World) -> Case<'a>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let world = make().await;
        case(&world).await;
        world.audit().await;
    });
}

/// A world in the making.
pub type Making = Pin<Box<dyn Future<Output = World>>>;

/// Defines `conformance!`, which makes a test of every listed case for one backend. The `$` is
/// handed in because a macro that defines a macro cannot write it.
macro_rules! suite {
    (($d:tt) $($module:ident { $($case:ident)* })*) => {
        /// Makes a test of every conformance case on the worlds that `$make` makes.
        #[macro_export]
        macro_rules! conformance {
            ($d make:path) => {
                $(mod $module {
                    $(
                        #[test]
                        fn $case() {
                            $d crate::conformance::run(
                                || Box::pin($d make()),
                                $d crate::conformance::boxed::$module::$case,
                            );
                        }
                    )*
                })*
            };
        }

        /// Every case behind one type, so that it is compiled here and not in every test.
        pub mod boxed {
            $(pub mod $module {
                $(
                    pub fn $case(world: &$crate::world::World) -> $crate::conformance::Case<'_> {
                        Box::pin($crate::conformance::$module::$case(world))
                    }
                )*
            })*
        }

        /// Every case by name, for the check that none is left out.
        pub const CASES: &[(&str, &[&str])] =
            &[$((stringify!($module), &[$(stringify!($case),)*]),)*];
    };
}
