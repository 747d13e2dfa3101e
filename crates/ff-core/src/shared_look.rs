//! Looks at a store that many want at once.

use std::time::Instant;

use futures_util::lock::Mutex;

use crate::error::{Code, EngineError};

/// One at a time looks, and whoever waited meanwhile shares what came of it. That the store did not
/// answer is shared too: asking it one after another, each would wait longer than the one before.
#[derive(Debug, Default)]
pub struct SharedLook {
    /// Held by whoever looks: when the store did not answer last, and what was said of it.
    failed: Mutex<Option<(Instant, EngineError)>>,
}

impl SharedLook {
    /// What is `known`, which is asked again after a wait, or else what `look` finds. It keeps what
    /// it has found itself, where `known` finds it.
    pub async fn ask<T>(
        &self,
        known: impl Fn() -> Option<T>,
        look: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        if let Some(known) = known() {
            return Ok(known);
        }
        let came = Instant::now();
        let mut failed = self.failed.lock().await;
        if let Some(known) = known() {
            return Ok(known);
        }
        if let Some((at, error)) = &*failed
            && *at >= came
        {
            return Err(error.clone());
        }
        let found = look.await;
        if let Err(error) = &found
            && matches!(error.code(), Code::Unavailable | Code::OutcomeUnknown | Code::Timeout)
        {
            *failed = Some((Instant::now(), error.clone()));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use futures_util::future::{join, join3, poll_fn};

    use super::*;

    fn away() -> EngineError {
        EngineError::unavailable("it is away")
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        let (mut work, mut context) = (pin!(work), Context::from_waker(Waker::noop()));
        for _ in 0..100 {
            if let Poll::Ready(done) = work.as_mut().poll(&mut context) {
                return done;
            }
        }
        panic!("it never ends");
    }

    /// Whoever is polled meanwhile comes before the look ends.
    async fn a_moment() {
        let mut over = false;
        poll_fn(
            |_| if std::mem::replace(&mut over, true) { Poll::Ready(()) } else { Poll::Pending },
        )
        .await;
    }

    #[test]
    fn who_waited_shares_a_failure_and_who_comes_later_looks() {
        let (shared, looks) = (SharedLook::default(), Cell::new(0));
        let ask = || {
            shared.ask(|| None::<()>, async {
                looks.set(looks.get() + 1);
                a_moment().await;
                Err(away())
            })
        };
        assert_eq!(run(join3(ask(), ask(), ask())), (Err(away()), Err(away()), Err(away())));
        assert_eq!(looks.get(), 1);
        assert_eq!(run(ask()), Err(away()));
        assert_eq!(looks.get(), 2);
    }

    #[test]
    fn who_waited_takes_what_was_found() {
        let (shared, found) = (SharedLook::default(), Cell::new(None));
        let ask = |number: u32| {
            let found = &found;
            shared.ask(|| found.get(), async move {
                a_moment().await;
                found.set(Some(number));
                Ok(number)
            })
        };
        assert_eq!(run(join(ask(1), ask(2))), (Ok(1), Ok(1)));
    }

    #[test]
    fn what_a_store_answers_to_one_is_not_told_to_others() {
        let (shared, looks) = (SharedLook::default(), Cell::new(0));
        let ask = || {
            shared.ask(|| None::<()>, async {
                looks.set(looks.get() + 1);
                a_moment().await;
                Err(EngineError::bug("only of this look"))
            })
        };
        let (first, second) = run(join(ask(), ask()));
        assert!(first.is_err() && second.is_err());
        assert_eq!(looks.get(), 2);
    }
}
