//! A client's work, which somebody else may end: an op that takes too long must be given up from
//! outside, because its client waits for the answer. No timer an op: the engine thread looks at
//! the instants of all ops in flight every tick.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use super::desk::Seat;

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended<T> {
    /// By itself.
    Done(T),
    /// Given up, as [`Seat::give_up`] asked.
    GivenUp,
    /// With a panic.
    Panicked(String),
}

/// Works until one of the above. What is given up is dropped where it waits: what it borrowed, such
/// as a session, must not be used again.
pub(crate) async fn watched<T>(seat: &Seat, work: impl Future<Output = T>) -> Ended<T> {
    // A task has one waker for life.
    seat.sits(poll_fn(|context| Poll::Ready(context.waker().clone())).await);
    let mut work = pin!(work);
    poll_fn(|context| {
        if seat.is_given_up() {
            return Poll::Ready(Ended::GivenUp);
        }
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(Poll::Ready(done)) => Poll::Ready(Ended::Done(done)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(payload) => Poll::Ready(Ended::Panicked(panic_text(payload.as_ref()))),
        }
    })
    .await
}

/// What a panic said.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    fn run<T: 'static>(seat: &Rc<Seat>, work: impl Future<Output = T> + 'static) -> Ended<T> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build_local(tokio::runtime::LocalOptions::default());
        let (watching, asking) = (Rc::clone(seat), Rc::clone(seat));
        runtime.expect("a runtime").block_on(async move {
            let ended = tokio::task::spawn_local(async move { watched(&watching, work).await });
            tokio::task::yield_now().await;
            asking.give_up();
            ended.await.expect("it ends")
        })
    }

    #[test]
    fn what_waits_is_given_up_and_what_is_done_is_done() {
        let seat = Rc::new(Seat::new(0, 0));
        assert_eq!(run(&seat, std::future::pending::<()>()), Ended::GivenUp);
        let seat = Rc::new(Seat::new(0, 0));
        assert_eq!(run(&seat, async { 7 }), Ended::Done(7));
    }

    #[test]
    fn a_panic_is_an_end_with_its_text() {
        let seat = Rc::new(Seat::new(0, 0));
        let ended = run(&seat, async { panic!("no {}", "good") });
        assert_eq!(ended, Ended::<()>::Panicked("no good".to_owned()));
    }
}
