//! Notices a server that stops answering during long work, and runs threads side by side.
//!
//! An index over sixteen million rows takes minutes without a byte on its connection. So another connection
//! reads the process list every few seconds. The work ends if that list does not come, or if it shows for as
//! long that the server has nothing to answer on a connection that waits, or has forgotten it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::control::{Asked, Process, optional, processes};
use super::session::Session;
use super::target::ServerLink;
use crate::error::{Error, Result};
use crate::stop::{SILENCE, Stop};
use crate::terms::units;

const EVERY: Duration = Duration::from_secs(5);

const COLUMNS: usize = 6;

const LOOK: Duration = Duration::from_millis(100);

pub(crate) struct Liveness {
    pub(crate) link: ServerLink,
    every: Duration,
    silence: Duration,
    ids: Mutex<Ids>,
}

#[derive(Debug, Default)]
struct Ids {
    all: BTreeSet<u32>,
    waiting: BTreeSet<u32>,
}

/// A connection that waits for answers, until this is dropped.
pub(crate) struct Waits<'a> {
    liveness: &'a Liveness,
    id: u32,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.liveness.ids().waiting.remove(&self.id);
    }
}

impl Liveness {
    pub(crate) fn new(link: &ServerLink) -> Liveness {
        let link = link.clone();
        Liveness { link, every: EVERY, silence: SILENCE, ids: Mutex::default() }
    }

    fn ids(&self) -> MutexGuard<'_, Ids> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn waits(&self, session: &Session) -> Waits<'_> {
        let id = session.id();
        let mut ids = self.ids();
        ids.all.insert(id);
        ids.waiting.insert(id);
        Waits { liveness: self, id }
    }

    /// Runs work until it is done, the user interrupts or the server stops answering.
    pub(crate) async fn during<T>(&self, doing: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            kind = self.link.stop.wait() => Err(Error::new(kind, "interrupted")),
            done = doing => done,
            silent = self.wait_for_silence() => Err(silent),
        }
    }

    /// Returns only when the server, or a connection that waits, is silent.
    pub(crate) async fn wait_for_silence(&self) -> Error {
        let (mut session, mut looks) = (None, Looks::default());
        let (address, silence) = (&self.link.target.address, units::duration(self.silence));
        loop {
            sleep(self.every).await;
            let list = tokio::select! {
                biased;
                list = self.ask(&mut session) => list,
                () = sleep(self.silence) => {
                    return Error::server(format!("{address} has not answered for {silence}"))
                        .hint("it is stopped or out of reach; give the same command again when it \
                               answers");
                }
            };
            let own = session.as_ref().map(Session::id);
            let (Some(own), Some(list)) = (own, list) else { continue };
            let enough = self.silence.as_millis() / self.every.as_millis().max(1);
            let most = looks.add_list(&list, own, &self.ids().waiting, self.every);
            if let Some((id, looks)) = most
                && u128::from(looks) >= enough
            {
                let message = format!(
                    "connection {id} to {address} is lost: the server has been idle on it for \
                     {silence}, but its last answer did not arrive"
                );
                return Error::server(message).hint(
                    "something on the way drops idle connections; give the same command again",
                );
            }
        }
    }

    /// Asks until any answer comes, a refusal (None) too; keeps the session while it is usable.
    async fn ask(&self, session: &mut Option<Session>) -> Option<Vec<Process>> {
        loop {
            let asked = async {
                if session.is_none() {
                    *session = Some(Session::open_again(&self.link, None).await?);
                }
                let session = session.as_mut().expect("it was opened");
                self.ids().all.insert(session.id());
                processes(session, COLUMNS).await
            };
            let asked = asked.await;
            session.take_if(|session| !session.is_usable());
            // A log-in may be refused, as with too many connections, or the list.
            if let Ok(list) = optional(asked) {
                return list;
            }
            sleep(self.every).await;
        }
    }

    /// Names others that work in this database, or did just now.
    pub(crate) async fn list_others(&self, session: &mut Session) -> Asked<Vec<String>> {
        let mut list = optional(processes(session, COLUMNS).await)?.unwrap_or_default();
        let (ids, own) = (self.ids(), session.id());
        list.retain(|one| {
            one.database == self.link.target.database && (one.command != "Sleep" || one.time_s <= 1)
        });
        let others = list.iter().filter(|one| {
            u32::try_from(one.id).is_ok_and(|id| !ids.all.contains(&id) && id != own)
        });
        Ok(others
            .map(|one| format!("connection {} of {}@{}", one.id, one.user, one.from))
            .collect())
    }
}

#[derive(Debug, Default)]
struct Looks {
    /// Looks in a row at which the server had nothing to answer, by waiting connection.
    in_a_row: BTreeMap<u32, u32>,
    own: u32,
    /// Waiting connections that were on a list of this server.
    seen: BTreeSet<u32>,
}

impl Looks {
    /// A proxy may list other connections or change servers: an id that was never listed is not forgotten.
    fn add_list(
        &mut self,
        list: &[Process],
        own: u32,
        waiting: &BTreeSet<u32>,
        every: Duration,
    ) -> Option<(u32, u32)> {
        let entry = |id: u32| list.iter().find(|one| one.id == u64::from(id));
        entry(own)?;
        // A connection also sleeps between two statements, but not for a whole interval.
        let idle = |one: &Process| one.command == "Sleep" && one.time_s >= every.as_secs().max(1);
        if std::mem::replace(&mut self.own, own) != own {
            self.seen.clear();
        }
        self.seen.extend(waiting.iter().filter(|id| entry(**id).is_some()));
        let forgotten = |id: &&u32| entry(**id).map_or(self.seen.contains(id), idle);
        let looks = |id: &u32| (*id, self.in_a_row.get(id).map_or(1, |looks| looks + 1));
        self.in_a_row = waiting.iter().filter(forgotten).map(looks).collect();
        self.in_a_row.iter().max_by_key(|(_, looks)| **looks).map(|(id, looks)| (*id, *looks))
    }
}

pub(crate) struct Threads<'a> {
    pub(crate) name: &'a str,
    pub(crate) count: usize,
    /// Asked when a thread fails, the server is silent or the user interrupts: then all threads stop.
    pub(crate) halt: &'a Stop,
    pub(crate) liveness: &'a Liveness,
    /// The hint for a thread that could not work at all.
    pub(crate) again: &'a str,
}

impl Threads<'_> {
    /// Runs `work` in each thread, and `look` now and then in this one, until all have ended.
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
        let mut silent = std::pin::pin!(self.liveness.wait_for_silence());
        loop {
            let halted = self.halt.asked().is_some();
            tokio::select! {
                biased;
                kind = self.liveness.link.stop.wait(), if !halted => self.halt.ask(kind),
                // Nothing is ever sent: the last sender is gone.
                _ = ended.recv() => break,
                error = &mut silent, if !halted => {
                    self.halt.ask(error.kind());
                    done = Err(error);
                }
                () = sleep(LOOK) => {}
            }
            look();
        }
        threads.into_iter().map(|thread| self.join(thread)).fold(done, Result::and)
    }

    /// Starts one thread after the other. If one cannot start, all stop: no work is done in part.
    fn start_all(&self, start: impl Fn(usize) -> Thread) -> (Vec<Running>, Result<()>) {
        let mut threads = Vec::with_capacity(self.count);
        let started = (0..self.count).try_for_each(|number| {
            threads.push(start(number)?);
            Ok(())
        });
        let done = started.map_err(|error: std::io::Error| {
            let error = Error::failed(format!("cannot start a thread: {error}"))
                .hint("raise the limit on processes (ulimit -u)")
                .hint(self.again);
            self.halt.ask(error.kind());
            error
        });
        (threads, done)
    }

    fn join(&self, thread: Running) -> Result<()> {
        thread.join().unwrap_or_else(|_| {
            Err(Error::failed("the driver panicked on an answer of the server").hint(self.again))
        })
    }
}

type Running = JoinHandle<Result<()>>;
type Thread = std::io::Result<Running>;

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
        // Does not wait for a goodbye or a name server that hangs.
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
    use crate::canned::{Action, At, Canned, Fault, Listen, Script};
    use crate::error::Kind;
    use crate::mysql::ConnectOptions;

    fn row(id: u32, command: &str, time_s: u64) -> Process {
        let [user, from, database, command] = ["u", "h:1", "sbtest", command].map(str::to_owned);
        Process { id: id.into(), user, from, database, command, time_s }
    }

    #[test]
    fn a_connection_is_forgotten_when_the_server_waits_for_it_look_after_look() {
        let waiting: BTreeSet<u32> = [7, 8].into();
        let mut looks = Looks::default();
        let mut look = |rows: &[Process]| {
            let list: Vec<_> = rows.iter().cloned().chain([row(1, "Query", 0)]).collect();
            looks.add_list(&list, 1, &waiting, EVERY)
        };
        let busy = row(8, "Query", 600);
        assert_eq!(look(&[row(7, "Sleep", 6), busy.clone()]), Some((7, 1)));
        assert_eq!(look(std::slice::from_ref(&busy)), Some((7, 2)), "it is not known any more");
        assert_eq!(look(&[row(7, "Sleep", 0), busy.clone()]), None, "it has just worked");
        assert_eq!(look(&[row(7, "Sleep", 9), busy]), Some((7, 1)), "from the start");
        // Those of a proxy.
        assert_eq!(looks.add_list(&[row(3, "Sleep", 9)], 1, &waiting, EVERY), None);
    }

    #[test]
    fn a_connection_that_another_server_has_is_not_forgotten() {
        let waiting: BTreeSet<u32> = [7].into();
        let mut looks = Looks::default();
        let mut look = |own: u32, rows: &[Process]| {
            let list: Vec<_> = rows.iter().cloned().chain([row(own, "Query", 0)]).collect();
            looks.add_list(&list, own, &waiting, EVERY)
        };
        assert_eq!((look(1, &[]), look(1, &[])), (None, None), "it was never there");
        assert_eq!(look(1, &[row(7, "Query", 5)]), None);
        assert_eq!(look(1, &[]), Some((7, 1)), "it was");
        // The next one that asks may be led elsewhere.
        assert_eq!((look(2, &[]), look(2, &[])), (None, None));
        assert_eq!(look(2, &[row(7, "Sleep", 9)]), Some((7, 1)));
        assert_eq!(look(2, &[]), Some((7, 2)));
    }

    /// Watches a canned server, in a hurry, though not more than a busy machine allows.
    fn liveness(faults: Vec<Fault>, stop: &Stop) -> (Canned, Liveness) {
        let server = Canned::start(Script { faults, ..Script::default() }, Listen::Port(0));
        let server = server.expect("a free port");
        let target = ConnectOptions::canned(server.port());
        let link = ServerLink::to(target, stop).expect("options");
        let (every, silence) = (Duration::from_millis(20), Duration::from_secs(2));
        (server, Liveness { every, silence, ..Liveness::new(&link) })
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn a_silent_server_ends_what_would_never_end() {
        for at in [At::Connect(1), At::Statement(3)] {
            let hang = Fault::new(at, Action::StallAll(Duration::from_mins(10)));
            let (_server, liveness) = liveness(vec![hang], &Stop::default());
            let error = run(liveness.during(pending::<Result<()>>())).expect_err("silence");
            assert_eq!(error.kind(), Kind::Server);
            assert!(error.to_string().contains(" 2s"), "{error}");
            assert!(!error.hints().is_empty());
        }
    }

    #[test]
    fn work_may_take_any_time_while_the_server_answers() {
        // Refusals are answers, too.
        for faults in
            [vec![], vec![Fault::new(At::EachConnect(1), Action::error(1040, "08004", "full"))]]
        {
            let (server, liveness) = liveness(faults, &Stop::default());
            let long = async {
                sleep(2 * liveness.silence).await;
                Ok(5)
            };
            assert_eq!(run(liveness.during(long)).expect("an answer"), 5);
            assert!(server.counts().connections > 0, "it was asked");
        }
    }

    #[test]
    fn an_interruption_comes_first() {
        let stop = Stop::default();
        stop.ask(Kind::Interrupted);
        let (_server, liveness) = liveness(vec![], &stop);
        let error = run(liveness.during(async { Ok(()) })).expect_err("interrupted");
        assert_eq!(error.kind(), Kind::Interrupted);
    }

    /// Three threads, of which the first does this, and the others wait for ever.
    fn three<F>(
        stop: &Stop,
        faults: Vec<Fault>,
        first: impl Fn() -> F + Clone + Send + 'static,
    ) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        let (_server, liveness) = liveness(faults, stop);
        let halt = Stop::default();
        let again = "do it again";
        let threads = Threads { name: "test", count: 3, halt: &halt, liveness: &liveness, again };
        let number = Arc::new(AtomicU32::new(0));
        let work = move || {
            let (first, number) = (first.clone(), number.fetch_add(1, Ordering::Relaxed));
            async move { if number == 0 { first().await } else { pending().await } }
        };
        run(threads.run(work, || {}))
    }

    #[test]
    fn what_ends_one_of_them_ends_all() {
        let go_on = Stop::default();
        let failed = || async { Err(Error::data("no")) };
        let error = three(&go_on, vec![], failed).expect_err("it failed");
        assert_eq!((error.kind(), error.to_string().as_str()), (Kind::Data, "no"));
        let hang = Fault::new(At::Connect(1), Action::StallAll(Duration::from_mins(10)));
        let error = three(&go_on, vec![hang], pending).expect_err("silence");
        assert_eq!(error.kind(), Kind::Server, "{error}");
        let stop = Stop::default();
        stop.ask(Kind::Interrupted);
        assert!(three(&stop, vec![], pending).is_ok(), "whoever asked knows");
    }

    #[test]
    fn a_thread_that_cannot_be_started_ends_the_others() {
        let halt = Stop::default();
        let (_server, liveness) = liveness(vec![], &Stop::default());
        let again = "do it again";
        let threads = Threads { name: "test", count: 3, halt: &halt, liveness: &liveness, again };
        let (alive, _ended) = mpsc::unbounded_channel::<()>();
        let none_after_the_first = |number| match number {
            0 => start("test-0", &pending::<Result<()>>, &halt, &alive),
            _ => Err(std::io::Error::from(std::io::ErrorKind::WouldBlock)),
        };
        let (started, done) = threads.start_all(none_after_the_first);
        assert_eq!(done.expect_err("no thread").kind(), Kind::Failed);
        assert_eq!(started.len(), 1, "and no third one");
        // It would wait for ever.
        for thread in started {
            threads.join(thread).expect("halted");
        }
    }
}
