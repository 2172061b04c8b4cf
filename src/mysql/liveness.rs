//! Whether the server still answers, while something is done that may take any time.
//!
//! An index over sixteen million rows takes minutes, and nothing comes over its connection
//! meanwhile: no time limit there tells work from silence. So another connection asks for the
//! list of connections every few seconds, from the first such interval on. A server that does not
//! answer that is given up; and so is a connection that waits for an answer while the server, by
//! its own list, waits for a statement or, having listed it before, has forgotten it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mysql_async::Opts;
use tokio::time::sleep;

use super::options::{Address, ConnectOptions};
use super::session::{Failure, Session};
use crate::error::{Error, Result};
use crate::stop::{SILENCE, Stop};
use crate::terms::units;

/// How often the server is asked.
const EVERY: Duration = Duration::from_secs(5);

/// Rows of SHOW PROCESSLIST.
type List = Vec<Vec<Option<String>>>;

/// See the module.
pub(crate) struct Liveness {
    target: ConnectOptions,
    opts: Opts,
    every: Duration,
    silence: Duration,
    ids: Mutex<Ids>,
}

/// The server's numbers of our connections.
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
    /// Of the server behind `target`, whose [`ConnectOptions::opts`] are `opts`.
    pub(crate) fn new(target: &ConnectOptions, opts: &Opts) -> Liveness {
        Liveness {
            target: target.clone(),
            opts: opts.clone(),
            every: EVERY,
            silence: SILENCE,
            ids: Mutex::default(),
        }
    }

    fn ids(&self) -> MutexGuard<'_, Ids> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this connection has nothing to do but to wait for answers.
    pub(crate) fn waits(&self, session: &Session) -> Waits<'_> {
        let id = session.id();
        let mut ids = self.ids();
        ids.all.insert(id);
        ids.waiting.insert(id);
        Waits { liveness: self, id }
    }

    /// Does something, unless the user interrupts or the server stops answering.
    pub(crate) async fn during<T>(
        &self,
        stop: &Stop,
        doing: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            biased;
            kind = stop.wait() => Err(Error::new(kind, "interrupted")),
            done = doing => done,
            silent = self.ends() => Err(silent),
        }
    }

    /// Comes back only when the server, or a connection that waits, is silent.
    pub(crate) async fn ends(&self) -> Error {
        let (mut session, mut looks) = (None, Looks::default());
        loop {
            sleep(self.every).await;
            let answer = tokio::select! {
                biased;
                answer = self.ask(session.take()) => Some(answer),
                () = sleep(self.silence) => None,
            };
            let Some((asked, list)) = answer else { return self.silent() };
            let own = asked.as_ref().map(Session::id);
            session = asked;
            let (Some(own), Some(list)) = (own, list) else { continue };
            let forgotten = looks.take(&list, own, &self.ids().waiting, self.every);
            let enough = self.silence.as_millis() / self.every.as_millis().max(1);
            if let Some(id) = forgotten.filter(|(_, looks)| u128::from(*looks) >= enough) {
                return self.forgotten(id.0);
            }
        }
    }

    /// Any answer, a refusal too. Comes back with one, or never.
    async fn ask(&self, mut session: Option<Session>) -> (Option<Session>, Option<List>) {
        loop {
            let opened = match session.take() {
                Some(session) => Ok(session),
                None => Session::open_again(&self.target, &self.opts, None).await,
            };
            match opened {
                Ok(mut opened) => {
                    self.ids().all.insert(opened.id());
                    match opened.query("SHOW PROCESSLIST").await {
                        Ok(list) => return (Some(opened), Some(list)),
                        Err(Failure::Server { .. }) => return (Some(opened), None),
                        Err(Failure::Lost(_)) => {}
                    }
                }
                // Too many connections, for one.
                Err(Failure::Server { .. }) => return (None, None),
                Err(Failure::Lost(_)) => {}
            }
            sleep(self.every).await;
        }
    }

    /// Others that are doing something in this database, or did just now, in words.
    pub(crate) async fn others(
        &self,
        session: &mut Session,
    ) -> std::result::Result<Vec<String>, Failure> {
        let list = super::control::optional(session.query("SHOW PROCESSLIST").await)?;
        let ids = self.ids();
        let other = |row: Vec<Option<String>>| {
            let entry = Entry::of(&row)?;
            let active = entry.command != "Sleep" || entry.time <= 1;
            let here = entry.database == Some(self.target.database.as_str());
            let other = !ids.all.contains(&entry.id) && entry.id != session.id();
            (here && active && other).then(|| format!("connection {} of {}", entry.id, entry.user))
        };
        Ok(list.unwrap_or_default().into_iter().filter_map(other).collect())
    }

    fn address(&self) -> &Address {
        &self.target.address
    }

    fn silent(&self) -> Error {
        let silence = units::duration(self.silence);
        Error::server(format!("{} has not answered for {silence}", self.address()))
            .hint("it is stopped or out of reach; give the same command again when it answers")
    }

    fn forgotten(&self, id: u32) -> Error {
        let silence = units::duration(self.silence);
        Error::server(format!(
            "connection {id} to {} is silent: the server has had nothing to answer there for \
             {silence}, and its last answer never came",
            self.address()
        ))
        .hint("something on the way drops idle connections; give the same command again")
    }
}

/// A row of SHOW PROCESSLIST.
struct Entry<'a> {
    id: u32,
    user: String,
    database: Option<&'a str>,
    command: &'a str,
    /// In this state for so many seconds.
    time: u64,
}

impl Entry<'_> {
    fn of(row: &[Option<String>]) -> Option<Entry<'_>> {
        let field = |at: usize| row.get(at).and_then(Option::as_deref);
        let host = field(2).unwrap_or_default();
        Some(Entry {
            id: field(0)?.parse().ok()?,
            user: format!("{}@{host}", field(1).unwrap_or_default()),
            database: field(3),
            command: field(4).unwrap_or_default(),
            time: field(5).and_then(|time| time.parse().ok()).unwrap_or(0),
        })
    }
}

/// What the lists so far told.
#[derive(Debug, Default)]
struct Looks {
    /// How often in a row the server had nothing to answer on a connection that waits.
    in_a_row: BTreeMap<u32, u32>,
    /// The connection that asks.
    own: u32,
    /// Connections that wait and were on one of its lists.
    seen: BTreeSet<u32>,
}

impl Looks {
    /// The connection with the most such looks, this one included. A list without the connection
    /// that asked for it is not of our connections: a proxy has others. And a proxy may lead one
    /// connection to another server than the next: what was never on a list of the connection that
    /// asks is no more forgotten than on the list of a stranger.
    fn take(
        &mut self,
        list: &List,
        own: u32,
        waiting: &BTreeSet<u32>,
        every: Duration,
    ) -> Option<(u32, u32)> {
        let entries: BTreeMap<u32, Entry> =
            list.iter().filter_map(|row| Entry::of(row)).map(|entry| (entry.id, entry)).collect();
        if !entries.contains_key(&own) {
            return None;
        }
        // Between two statements it sleeps, too, but not since the look before.
        let idle = |entry: &Entry| entry.command == "Sleep" && entry.time >= every.as_secs().max(1);
        if std::mem::replace(&mut self.own, own) != own {
            self.seen.clear();
        }
        self.seen.extend(waiting.iter().filter(|id| entries.contains_key(id)));
        let seen = &self.seen;
        let forgotten = |id: &&u32| entries.get(id).map_or(seen.contains(id), idle);
        let before = std::mem::take(&mut self.in_a_row);
        let looks = |id: &u32| (*id, before.get(id).copied().unwrap_or(0).saturating_add(1));
        self.in_a_row = waiting.iter().filter(forgotten).map(looks).collect();
        self.in_a_row.iter().max_by_key(|(_, looks)| **looks).map(|(id, looks)| (*id, *looks))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::canned::{Action, At, Canned, Fault, Listen, Script};
    use crate::error::Kind;

    const EVERY: Duration = Duration::from_secs(5);

    fn row(id: &str, command: &str, time: &str) -> Vec<Option<String>> {
        [id, "u", "h:1", "sbtest", command, time].map(|text| Some(text.to_owned())).to_vec()
    }

    #[test]
    fn a_connection_is_forgotten_when_the_server_waits_for_it_look_after_look() {
        let waiting: BTreeSet<u32> = [7, 8].into();
        let mut looks = Looks::default();
        let mut look = |rows: &[Vec<Option<String>>]| {
            let list: List = rows.iter().cloned().chain([row("1", "Query", "0")]).collect();
            looks.take(&list, 1, &waiting, EVERY)
        };
        let busy = row("8", "Query", "600");
        assert_eq!(look(&[row("7", "Sleep", "6"), busy.clone()]), Some((7, 1)));
        assert_eq!(look(std::slice::from_ref(&busy)), Some((7, 2)), "it is not known any more");
        assert_eq!(look(&[row("7", "Sleep", "0"), busy.clone()]), None, "it has just worked");
        assert_eq!(look(&[row("7", "Sleep", "9"), busy]), Some((7, 1)), "from the start");
        // Those of a proxy.
        assert_eq!(looks.take(&vec![row("3", "Sleep", "9")], 1, &waiting, EVERY), None);
    }

    #[test]
    fn a_connection_that_another_server_has_is_not_forgotten() {
        let waiting: BTreeSet<u32> = [7].into();
        let mut looks = Looks::default();
        let mut look = |own: &str, rows: &[Vec<Option<String>>]| {
            let list: List = rows.iter().cloned().chain([row(own, "Query", "0")]).collect();
            looks.take(&list, own.parse().expect("an id"), &waiting, EVERY)
        };
        assert_eq!((look("1", &[]), look("1", &[])), (None, None), "it was never there");
        assert_eq!(look("1", &[row("7", "Query", "5")]), None);
        assert_eq!(look("1", &[]), Some((7, 1)), "it was");
        // The next one that asks may be led elsewhere.
        assert_eq!((look("2", &[]), look("2", &[])), (None, None));
        assert_eq!(look("2", &[row("7", "Sleep", "9")]), Some((7, 1)));
        assert_eq!(look("2", &[]), Some((7, 2)));
    }

    /// Of a canned server, and in a hurry, though not more than a busy machine allows.
    pub(in crate::mysql) fn liveness(faults: Vec<Fault>) -> (Canned, Liveness) {
        let server = Canned::start(Script { faults, ..Script::default() }, Listen::Port(0));
        let server = server.expect("a free port");
        let target = ConnectOptions::canned(server.port());
        let opts = target.opts().expect("options");
        let (every, silence) = (Duration::from_millis(20), Duration::from_secs(2));
        (server, Liveness { every, silence, ..Liveness::new(&target, &opts) })
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(future)
    }

    #[test]
    fn a_silent_server_ends_what_would_never_end() {
        for at in [At::Connect(1), At::Statement(3)] {
            let hang = Fault::new(at, Action::StallAll(Duration::from_mins(10)));
            let (_server, liveness) = liveness(vec![hang]);
            let never = std::future::pending::<Result<()>>();
            let error = run(liveness.during(&Stop::default(), never)).expect_err("silence");
            assert_eq!(error.kind(), Kind::Server);
            assert!(error.to_string().contains("has not answered for 2s"), "{error}");
            assert!(!error.hints().is_empty());
        }
    }

    #[test]
    fn work_may_take_any_time_while_the_server_answers() {
        // Refusals are answers, too.
        for faults in
            [vec![], vec![Fault::new(At::EachConnect(1), Action::error(1040, "08004", "full"))]]
        {
            let (server, liveness) = liveness(faults);
            let long = async {
                sleep(2 * liveness.silence).await;
                Ok(5)
            };
            assert_eq!(run(liveness.during(&Stop::default(), long)).expect("an answer"), 5);
            assert!(server.counts().connections > 0, "it was asked");
        }
    }

    #[test]
    fn an_interruption_comes_first() {
        let (_server, liveness) = liveness(vec![]);
        let stop = Stop::default();
        stop.ask(Kind::Interrupted);
        let error = run(liveness.during(&stop, async { Ok(()) })).expect_err("interrupted");
        assert_eq!(error.kind(), Kind::Interrupted);
    }
}
