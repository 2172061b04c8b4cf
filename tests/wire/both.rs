//! A measured session and mysql_async side by side: each has a database of its own, gets the same
//! commands, and is listened to on its way.

use loadgen::mysql::session::Failure;
use loadgen::mysql::wire::{self, LeanSession, Params};
use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, QueryResult, Row, Statement, Value};
use mysql_common::io::ParseBuf;
use mysql_common::proto::MySerialize;
use mysql_common::value::{BinValue, ValueDeserializer};

use crate::common;
use crate::common::databases::{Db, everywhere, run};
use crate::common::proxy::Proxy;
use crate::common::sessions::{link, measured, target, tcp};

pub(crate) const QUIT: [u8; 1] = [0x01];
const EXECUTE: u8 = 0x17;
/// Bytes of a first cell that are kept.
const CELL_MAX: usize = 4 << 10;

/// A command that a client sends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    Prepare(String),
    /// The statement by its place among those prepared.
    Execute(usize, Vec<Value>),
    Text(Vec<u8>),
}

/// What a client sees of an answer: rows, rows affected, the first cell as sent and as a number.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) rows: u64,
    pub(crate) affected: u64,
    pub(crate) first: Option<Vec<u8>>,
    pub(crate) number: Option<u64>,
}

pub(crate) struct Both {
    databases: [String; 2],
    ways: [Proxy; 2],
    ours: LeanSession,
    theirs: Conn,
    /// The statements of each.
    ids: Vec<u32>,
    statements: Vec<Statement>,
}

impl Both {
    pub(crate) async fn new(dbs: [&Db<'_>; 2]) -> Both {
        let ways = dbs.map(|db| Proxy::to(db.sandbox.port));
        let to = |at: usize| target(tcp(ways[at].port), "root", &dbs[at].name);
        let opts = OptsBuilder::from_opts(link(&to(1)).opts);
        let opts = opts.max_allowed_packet(Some(1 << 30));
        let (ours, theirs) = (measured(&to(0)).await, Conn::new(opts).await.expect("it is let in"));
        let databases = dbs.map(|db| db.name.clone());
        Both { databases, ways, ours, theirs, ids: Vec::new(), statements: Vec::new() }
    }

    /// Asks both; they see the same.
    pub(crate) async fn ask(&mut self, command: &Command) -> Result<Seen, Failure> {
        let (ours, theirs) = match command {
            Command::Prepare(sql) => {
                let ours = self.ours.prepare(sql).await.map(|id| self.ids.push(id));
                let theirs = self.theirs.prep(sql).await.map(|it| self.statements.push(it));
                let nothing = |()| Seen { rows: 0, affected: 0, first: None, number: None };
                (ours.map(nothing), theirs.map(nothing))
            }
            Command::Execute(at, values) => {
                let params = params(values);
                let ours = self.ours.execute(self.ids[*at], &params, wire::Want::First).await;
                let ours = ours.map(|answer| seen(&self.ours, answer));
                let values = values.clone();
                let theirs = match self.theirs.exec_iter(&self.statements[*at], values).await {
                    Ok(result) => read(result).await,
                    Err(error) => Err(error),
                };
                (ours, theirs.map(|rows| self.driver_saw(&rows, true)))
            }
            Command::Text(sql) => {
                self.ours.text().extend_from_slice(sql);
                let ours = self.ours.query(wire::Want::First).await;
                let ours = ours.map(|answer| seen(&self.ours, answer));
                let theirs = match self.theirs.query_iter(sql.as_slice()).await {
                    Ok(result) => read(result).await,
                    Err(error) => Err(error),
                };
                (ours, theirs.map(|rows| self.driver_saw(&rows, false)))
            }
        };
        let [own, other] = &self.databases;
        let theirs = theirs.map_err(|error| match Failure::from(error) {
            Failure::Server { code, sqlstate, message } => {
                Failure::Server { code, sqlstate, message: message.replace(other, own) }
            }
            lost @ Failure::Lost(_) => lost,
        });
        // The statements can be too long to show.
        assert!(ours == theirs, "{:.300}: {ours:?}, not {theirs:?}", format!("{command:?}"));
        assert!(self.ours.is_usable(), "{:.300}", format!("{command:?}"));
        ours
    }

    pub(crate) async fn run(&mut self, sql: &str) {
        self.ask(&Command::Text(sql.into())).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    }

    /// The same as text and prepared.
    pub(crate) async fn ask_both_ways(&mut self, sql: &str) -> [Result<Seen, Failure>; 2] {
        let text = self.ask(&Command::Text(sql.into())).await;
        let prepared = match self.ask(&Command::Prepare(sql.to_owned())).await {
            Ok(_) => self.ask(&Command::Execute(self.ids.len() - 1, Vec::new())).await,
            refused => refused,
        };
        [text, prepared]
    }

    /// Reads a command as [`commands`] gives it.
    pub(crate) fn decoded(&self, command: &[u8]) -> Command {
        match command {
            [0x03, sql @ ..] => Command::Text(sql.to_vec()),
            [0x16, sql @ ..] => Command::Prepare(String::from_utf8(sql.to_vec()).expect("SQL")),
            [EXECUTE, a, b, c, d, 0, 1, 0, 0, 0, rest @ ..] => {
                let place = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
                let count = self.statements[place].num_params();
                Command::Execute(place, values(rest, count.into()))
            }
            other => panic!("no client sends {other:02x?}"),
        }
    }

    fn driver_saw(&self, rows: &[Row], binary: bool) -> Seen {
        let affected = self.theirs.affected_rows();
        let row = rows.first();
        let value = row.and_then(|row| row.as_ref(0)).filter(|value| **value != Value::NULL);
        let kind = row.map(|row| row.columns_ref()[0].column_type());
        let (first, number) = match (value, kind) {
            (Some(value), Some(kind)) => (Some(sent(value, kind)), number(value, kind, binary)),
            _ => (None, None),
        };
        Seen { rows: rows.len() as u64, affected, first, number }
    }

    /// The commands that each sent are the same bytes, but for the server's numbers of statements.
    pub(crate) fn sent_the_same(&self) -> Vec<Vec<u8>> {
        let [ours, theirs] = self.ways.each_ref().map(|way| commands(&way.said()[0]));
        assert_same(&ours, &theirs, "mysql_async");
        ours
    }
}

fn seen(ours: &LeanSession, answer: wire::Answer) -> Seen {
    let first = ours.first().map(<[u8]>::to_vec);
    Seen { rows: answer.rows, affected: answer.affected, first, number: ours.number() }
}

/// The first result's rows; the others are read, too.
async fn read<P: mysql_async::prelude::Protocol>(
    mut result: QueryResult<'_, '_, P>,
) -> mysql_async::Result<Vec<Row>> {
    let rows = result.collect().await?;
    result.drop_result().await?;
    Ok(rows)
}

pub(crate) fn params(values: &[Value]) -> Params {
    let mut params = Params::default();
    params.clear(values.len());
    for (at, value) in values.iter().enumerate() {
        match value {
            Value::NULL => {}
            Value::Int(number) => params.set(at, wire::Value::Int(*number)),
            Value::UInt(number) => params.set(at, wire::Value::UInt(*number)),
            Value::Bytes(bytes) => params.set_bytes(at, |out| out.extend_from_slice(bytes)),
            other => panic!("no client sends {other:?}"),
        }
    }
    params
}

/// The bytes of a value as the server sent it, without a length.
fn sent(value: &Value, kind: ColumnType) -> Vec<u8> {
    let mut bytes = Vec::new();
    match value {
        Value::Bytes(text) => bytes.extend_from_slice(&text[..text.len().min(CELL_MAX)]),
        Value::Date(..) | Value::Time(..) => {
            value.serialize(&mut bytes);
            bytes.remove(0);
        }
        number => number.serialize(&mut bytes),
    }
    match (value, kind) {
        (Value::Int(_) | Value::UInt(_), ColumnType::MYSQL_TYPE_TINY) => bytes.truncate(1),
        (
            Value::Int(_) | Value::UInt(_),
            ColumnType::MYSQL_TYPE_SHORT | ColumnType::MYSQL_TYPE_YEAR,
        ) => bytes.truncate(2),
        (
            Value::Int(_) | Value::UInt(_),
            ColumnType::MYSQL_TYPE_LONG | ColumnType::MYSQL_TYPE_INT24,
        ) => bytes.truncate(4),
        _ => {}
    }
    bytes
}

fn number(value: &Value, kind: ColumnType, binary: bool) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::UInt(number) => Some(*number),
        Value::Bytes(_) if binary && kind == ColumnType::MYSQL_TYPE_BIT => None,
        Value::Bytes(text) => std::str::from_utf8(text.trim_ascii_end()).ok()?.parse().ok(),
        _ => None,
    }
}

/// Two databases on the server of another one, which takes long packets.
pub(crate) fn databases<'a>(of: &Db<'a>) -> [Db<'a>; 2] {
    common::query(of.sandbox, "SET GLOBAL max_allowed_packet = 67108864");
    [Db::new(of.sandbox), Db::new(of.sandbox)]
}

/// Runs the test with two sessions on every server, and compares what they sent.
#[expect(clippy::needless_pass_by_value, reason = "callers write a closure")]
pub(crate) fn beside(test: impl AsyncFn(&mut Both)) {
    everywhere(|db| {
        let databases = databases(db);
        run(async {
            let mut both = Both::new(databases.each_ref()).await;
            test(&mut both).await;
            both.sent_the_same();
        });
    });
}

/// They can be too long to show.
pub(crate) fn assert_same(ours: &[Vec<u8>], theirs: &[Vec<u8>], whose: &str) {
    let differs = ours.iter().zip(theirs).find(|(ours, theirs)| ours != theirs);
    assert!(differs.is_none(), "{whose}: {:.400}", format!("{differs:02x?}"));
    assert_eq!(ours.len(), theirs.len(), "{whose}");
}

/// What a client sent after its log-in, each command whole. The number of a statement is its place among
/// those that it ran.
pub(crate) fn commands(said: &[u8]) -> Vec<Vec<u8>> {
    let (mut commands, mut rest, mut goes_on) = (Vec::<Vec<u8>>::new(), said, false);
    while let Some((&[a, b, c, sequence], more)) = rest.split_first_chunk() {
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        let (payload, more) = more.split_at(length);
        rest = more;
        match commands.last_mut() {
            Some(command) if goes_on => command.extend_from_slice(payload),
            // The packets of a log-in have other numbers.
            None if sequence != 0 => {}
            _ => commands.push(payload.to_vec()),
        }
        goes_on = !commands.is_empty() && length == (1 << 24) - 1;
    }
    let id = |command: &[u8]| u32::from_le_bytes(*command[1..].first_chunk().expect("an id"));
    let mut ids: Vec<u32> = commands.iter().filter(|c| c[0] == EXECUTE).map(|c| id(c)).collect();
    ids.sort_unstable();
    ids.dedup();
    for command in commands.iter_mut().filter(|command| command[0] == EXECUTE) {
        let place = ids.binary_search(&id(command)).expect("one of them") as u32;
        command[1..5].copy_from_slice(&place.to_le_bytes());
    }
    commands
}

/// The values behind the head of an EXECUTE with so many parameters.
fn values(rest: &[u8], count: usize) -> Vec<Value> {
    if count == 0 {
        assert!(rest.is_empty());
        return Vec::new();
    }
    let (nulls, rest) = rest.split_at(count.div_ceil(8));
    let (types, rest) = rest.split_at(1 + 2 * count);
    assert_eq!(types[0], 1, "types are sent every time");
    let mut rest = ParseBuf(rest);
    let mut read = |at: usize| {
        let [kind, flags] = [types[1 + 2 * at], types[2 + 2 * at]];
        if nulls[at / 8] >> (at % 8) & 1 == 1 {
            return Value::NULL;
        }
        let kind = ColumnType::try_from(kind).expect("a type");
        let read = rest.parse((kind, ColumnFlags::empty()));
        let read: ValueDeserializer<BinValue> = read.expect("a value");
        match read.0 {
            Value::Int(number) if flags == 0x80 => Value::UInt(number.cast_unsigned()),
            other => other,
        }
    };
    let values = (0..count).map(&mut read).collect();
    assert!(rest.is_empty());
    values
}
