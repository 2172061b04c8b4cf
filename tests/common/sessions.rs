//! Sessions as loadgen opens them, and tables as `prepare` makes them.
#![allow(dead_code, reason = "every test program uses its own part of this")]

use std::path::Path;
use std::time::Duration;

use loadgen::mysql::options::{Address, ConnectOptions, Secret, Ssl};
use loadgen::mysql::session::{Failure, ServerLink, Session};
use loadgen::mysql::wire::{Answer, Inbox, LeanSession, Params, Value, Want};
use loadgen::stop::Stop;
use loadgen::workload::Schema;
use loadgen::workload::table::{Mark, State};

/// Says which server is next: a failure shows the last one.
#[expect(clippy::print_stderr, reason = "the harness shows it with a failure only")]
pub(crate) fn on(name: &str, version: &str) {
    eprintln!("on {name} ({version})");
}

pub(crate) fn tcp(port: u16) -> Address {
    Address::Tcp { host: "127.0.0.1".into(), port }
}

pub(crate) fn socket(path: &Path) -> Address {
    Address::Socket(path.to_owned())
}

/// An account without a password, in a database (none if empty).
pub(crate) fn target(address: Address, user: &str, database: &str) -> ConnectOptions {
    ConnectOptions {
        address,
        others: Vec::new(),
        user: user.into(),
        password: Secret::default(),
        database: database.into(),
        ssl: Ssl::default(),
        connect_timeout: Duration::from_secs(10),
    }
}

pub(crate) fn link(target: &ConnectOptions) -> ServerLink {
    ServerLink::to(target.clone(), &Stop::default()).unwrap()
}

pub(crate) async fn open(target: &ConnectOptions) -> Session {
    Session::open(&link(target), None).await.unwrap_or_else(|error| panic!("{}", error.render()))
}

/// A session as measured clients have it.
pub(crate) async fn measured(target: &ConnectOptions) -> LeanSession {
    let opened = LeanSession::open(&link(target), &Inbox::default(), None).await;
    opened.unwrap_or_else(|error| panic!("{}", error.render()))
}

pub(crate) async fn run_prepared(
    session: &mut LeanSession,
    id: u32,
    values: &[Value],
) -> Result<Answer, Failure> {
    let mut params = Params::default();
    params.clear(values.len());
    values.iter().enumerate().for_each(|(at, value)| params.set(at, *value));
    session.execute(id, &params, Want::First).await
}

/// Root's session over a socket.
pub(crate) async fn root(path: &Path, database: &str) -> Session {
    open(&target(socket(path), "root", database)).await
}

pub(crate) async fn execute(session: &mut Session, statements: &[&str]) {
    for sql in statements {
        session.execute(sql).await.unwrap_or_else(|failure| panic!("{sql}: {failure}"));
    }
}

/// A table as `prepare` makes it, but for the contents of its columns; half of the rows only
/// while it is filling.
pub(crate) async fn own_table(session: &mut Session, number: u32, rows: u64, state: State) {
    let mark = Mark { seed: 1, rows, state, id: None, loaded: false };
    let filled = if state == State::Ready { rows } else { rows / 2 };
    execute(session, &[&Schema::Sbtest.create(number, rows, &mark, None)]).await;
    fill(session, number, 1..=filled).await;
    let index = Schema::Sbtest.index(number).expect("an index on k");
    execute(session, &[&index]).await;
}

pub(crate) async fn fill(session: &mut Session, number: u32, ids: impl Iterator<Item = u64>) {
    let rows: Vec<String> = ids.map(|id| format!("({id},{id},'c','p')")).collect();
    if !rows.is_empty() {
        let sql = format!("INSERT INTO {} VALUES {}", Schema::Sbtest.name(number), rows.join(","));
        execute(session, &[&sql]).await;
    }
}
