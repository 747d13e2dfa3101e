//! Turns the list of cases into tests.

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
                        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                        async fn $case() {
                            let world = $d make().await;
                            $d crate::conformance::$module::$case(&world).await;
                            world.audit().await;
                        }
                    )*
                })*
            };
        }

        /// Every case by name, for the check that none is left out.
        pub const CASES: &[(&str, &[&str])] =
            &[$((stringify!($module), &[$(stringify!($case),)*]),)*];
    };
}
