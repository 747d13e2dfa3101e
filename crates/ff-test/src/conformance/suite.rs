//! Turns the list of cases into tests.

use std::pin::Pin;

use crate::world::World;

/// A case under way on its world.
pub type Case<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A case with its name.
pub type Named = (&'static str, for<'a> fn(&'a World) -> Case<'a>);

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
        world.clear().await;
    });
}

/// Runs the cases of a module one after the other, each on a world of its own, and tells which failed.
pub fn run_all(
    module: &str,
    make: fn() -> Making,
    cases: &[Named],
    is_left_out: fn(&str, &str) -> bool,
) {
    let mut failed = Vec::new();
    for (name, case) in cases.iter().filter(|(name, _)| !is_left_out(module, name)) {
        if std::panic::catch_unwind(|| run(make, *case)).is_err() {
            failed.push(*name);
        }
    }
    assert_eq!(failed, [""; 0], "cases of {module} that failed, for the reasons above");
}

/// A world in the making.
pub type Making = Pin<Box<dyn Future<Output = World>>>;

/// Defines `conformance!`, which makes a test of every listed case for one backend. The `$` is
/// handed in because a macro that defines a macro cannot write it.
macro_rules! suite {
    (($d:tt) $($module:ident { $($case:ident)* })*) => {
        /// Makes a test of every conformance case on the worlds that `$make` makes. With
        /// `$is_left_out`, which is told module and case, it makes a test of every module, of those cases
        /// that are not left out.
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
            ($d make:path, $d is_left_out:path) => {
                $(
                    #[test]
                    fn $module() {
                        $d crate::conformance::run_all(
                            stringify!($module),
                            || Box::pin($d make()),
                            &[$((stringify!($case), $d crate::conformance::boxed::$module::$case),)*],
                            $d is_left_out,
                        );
                    }
                )*
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
