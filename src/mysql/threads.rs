//! Threads that work side by side, each over a connection of its own: started, watched, joined.

use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::mpsc;

use super::liveness::Liveness;
use crate::error::{Error, Result};
use crate::stop::Stop;

/// How often whoever waits looks at what the threads count.
const LOOK: Duration = Duration::from_millis(100);

/// What the threads have in common.
pub(crate) struct Threads<'a> {
    /// Their name, before a number.
    pub(crate) name: &'a str,
    /// How many.
    pub(crate) count: usize,
    /// Asked when one of them fails, the server is silent, or the user interrupts: all of them
    /// then drop what they do.
    pub(crate) halt: &'a Stop,
    /// The user's.
    pub(crate) stop: &'a Stop,
    /// Whether the server answers.
    pub(crate) liveness: &'a Liveness,
    /// The hint where a thread could not do its work at all.
    pub(crate) again: &'a str,
}

impl Threads<'_> {
    /// Runs `work` in each thread and `look` now and then in this one, until all have ended.
    pub(crate) async fn run<F>(
        &self,
        work: impl Fn() -> F + Clone + Send + 'static,
        mut look: impl FnMut(),
    ) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        let (alive, mut ended) = mpsc::unbounded_channel::<()>();
        let start = |number| start(&format!("{}-{number}", self.name), &work, self.halt, &alive);
        let (threads, mut done) = self.start_all(start);
        drop(alive);
        let mut silent = std::pin::pin!(self.liveness.ends());
        loop {
            let halted = self.halt.asked().is_some();
            tokio::select! {
                biased;
                kind = self.stop.wait(), if !halted => self.halt.ask(kind),
                // Nothing is ever sent: this is the last sender going away.
                _ = ended.recv() => break,
                error = &mut silent, if !halted => {
                    self.halt.ask(error.kind());
                    done = Err(error);
                }
                () = tokio::time::sleep(LOOK) => {}
            }
            look();
        }
        threads.into_iter().map(|thread| self.join(thread)).fold(done, Result::and)
    }

    /// One thread after the other, up to the first that cannot be started: the work is then not
    /// done at all, instead of by the others, before anybody is told.
    fn start_all(&self, start: impl Fn(usize) -> Thread) -> (Vec<Running>, Result<()>) {
        let mut threads = Vec::with_capacity(self.count);
        for number in 0..self.count {
            match start(number) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    let error = Error::failed(format!("cannot start a thread: {error}"))
                        .hint("raise the limit on processes (ulimit -u)")
                        .hint(self.again);
                    self.halt.ask(error.kind());
                    return (threads, Err(error));
                }
            }
        }
        (threads, Ok(()))
    }

    fn join(&self, thread: Running) -> Result<()> {
        thread.join().unwrap_or_else(|_| {
            Err(Error::failed("the driver panicked on an answer of the server").hint(self.again))
        })
    }
}

type Running = JoinHandle<Result<()>>;
type Thread = std::io::Result<Running>;

/// `alive` is dropped when the thread ends, however it does.
fn start<F>(
    name: &str,
    work: &(impl Fn() -> F + Clone + Send + 'static),
    halt: &Stop,
    alive: &mpsc::UnboundedSender<()>,
) -> Thread
where
    F: Future<Output = Result<()>>,
{
    let (work, halt, alive) = (work.clone(), halt.clone(), alive.clone());
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _alive = alive;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| Error::failed(format!("cannot make a runtime: {e}")))?;
        let done = runtime.block_on(async {
            tokio::select! {
                biased;
                _ = halt.wait() => Ok(()),
                done = work() => done,
            }
        });
        if let Err(error) = &done {
            halt.ask(error.kind());
        }
        // What hangs in a goodbye or a name server is left behind.
        runtime.shutdown_background();
        done
    })
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::canned::{Action, At, Fault};
    use crate::error::Kind;
    use crate::mysql::liveness::tests::liveness;

    /// Three threads, of which the first does this, and the others wait for ever.
    fn three<F>(
        stop: &Stop,
        faults: Vec<Fault>,
        first: impl Fn() -> F + Clone + Send + 'static,
    ) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        let (_server, liveness) = liveness(faults);
        let halt = Stop::default();
        let again = "do it again";
        let threads =
            Threads { name: "test", count: 3, halt: &halt, stop, liveness: &liveness, again };
        let number = Arc::new(AtomicU32::new(0));
        let work = move || {
            let (first, number) = (first.clone(), number.fetch_add(1, Ordering::Relaxed));
            async move { if number == 0 { first().await } else { pending().await } }
        };
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(threads.run(work, || {}))
    }

    #[test]
    fn what_ends_one_of_them_ends_all() {
        let go_on = Stop::default();
        let failed = || async { Err(Error::data("no")) };
        let error = three(&go_on, vec![], failed).expect_err("it failed");
        assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Data, "no"));
        let hang = Fault::new(At::Connect(1), Action::StallAll(Duration::from_mins(10)));
        let error = three(&go_on, vec![hang], pending).expect_err("silence");
        assert!(error.to_string().contains("has not answered"), "{error}");
        let stop = Stop::default();
        stop.ask(Kind::Interrupted);
        assert!(three(&stop, vec![], pending).is_ok(), "whoever asked knows");
    }

    #[test]
    fn a_thread_that_cannot_be_started_ends_the_others() {
        let (_server, liveness) = liveness(vec![]);
        let (halt, stop) = (Stop::default(), Stop::default());
        let again = "do it again";
        let threads = Threads {
            name: "test",
            count: 3,
            halt: &halt,
            stop: &stop,
            liveness: &liveness,
            again,
        };
        let (alive, _ended) = mpsc::unbounded_channel::<()>();
        let none_after_the_first = |number| match number {
            0 => start("test-0", &pending::<Result<()>>, &halt, &alive),
            _ => Err(std::io::Error::from(std::io::ErrorKind::WouldBlock)),
        };
        let (started, done) = threads.start_all(none_after_the_first);
        assert!(done.expect_err("no thread").to_string().contains("cannot start a thread"));
        assert_eq!(started.len(), 1, "and no third one");
        // It would wait for ever.
        for thread in started {
            threads.join(thread).expect("halted");
        }
    }
}
