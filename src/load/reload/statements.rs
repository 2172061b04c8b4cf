//! Statements on their way from the thread that makes or reads them to the connection.
//!
//! They travel in batches: one row a statement would otherwise cost a wake-up of a thread for
//! each. A few batches are ahead at most, so memory is bounded and the server never waits.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use tokio::sync::mpsc;

use crate::error::{Error, Result};
use crate::load::dump::{Seen, Splitter, classify};
use crate::load::text;
use crate::plan::timed::{InsertMode, LoadSource, LoadSpec};
use crate::workload::rows::{Filler, Rows};
use crate::workload::table::{self, Mark, name, quoted};

/// Bytes of a batch, unless one statement is longer.
const BATCH: usize = 64 << 10;
/// Batches that are ready at most.
const AHEAD: usize = 2;

pub(super) struct Dump {
    file: Box<dyn Read + Send>,
    pub(super) name: String,
    /// Its length, bytes, where that is known.
    pub(super) length: Option<u64>,
}

impl Dump {
    /// Opens it; `-` is standard input.
    pub(super) fn open(path: &Path) -> Result<Dump> {
        if path == Path::new("-") {
            let name = "standard input".to_owned();
            return Ok(Dump { file: Box::new(std::io::stdin()), name, length: None });
        }
        let name = path.display().to_string();
        let failed =
            |what: &dyn std::fmt::Display| Error::usage(format!("--from-dump {name}: {what}"));
        let file = File::open(path).map_err(|e| failed(&e))?;
        let facts = file.metadata().map_err(|e| failed(&e))?;
        if facts.is_dir() {
            return Err(failed(&"it is a directory"));
        }
        let length = facts.is_file().then_some(facts.len());
        Ok(Dump { file: Box::new(file), name, length })
    }
}

#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    items: Vec<Item>,
    /// Bytes of the dump up to the end of the last one.
    pub(super) taken: u64,
}

#[derive(Debug)]
pub(super) struct Item {
    at: Range<usize>,
    /// The line of the dump that it begins on; 0 for a generated one.
    pub(super) line: u64,
    pub(super) seen: Seen,
}

impl Batch {
    pub(super) fn statements(&self) -> impl Iterator<Item = (&[u8], &Item)> {
        self.items.iter().map(|item| (&self.bytes[item.at.clone()], item))
    }
}

#[derive(Debug)]
pub(super) enum Part {
    Batch(Batch),
    /// The rows of this table by LOAD DATA LOCAL.
    LoadData(u32),
    End,
}

struct Feed {
    parts: mpsc::Sender<Result<Part>>,
    batch: Batch,
}

impl Feed {
    /// Adds the statement that begins on this line and whose text `write` appends; refuses what a dump
    /// does not have, with the reason.
    fn statement(
        &mut self,
        line: u64,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> std::result::Result<(), String> {
        let from = self.batch.bytes.len();
        write(&mut self.batch.bytes);
        let at = from..self.batch.bytes.len();
        match classify(&self.batch.bytes[at.clone()]) {
            Ok(seen) => self.batch.items.push(Item { at, line, seen }),
            Err(why) => {
                self.batch.bytes.truncate(from);
                return Err(why);
            }
        }
        Ok(())
    }

    /// Adds a statement of our own, which a dump has.
    fn own(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.statement(0, write).expect("it is one of a dump's");
        self.full()
    }

    fn say(&mut self, sql: &str) -> Result<()> {
        self.own(|out| out.extend_from_slice(sql.as_bytes()))
    }

    fn full(&mut self) -> Result<()> {
        if self.batch.bytes.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let bytes = Vec::with_capacity(self.batch.bytes.len());
        let next = Batch { bytes, items: Vec::new(), taken: self.batch.taken };
        let batch = std::mem::replace(&mut self.batch, next);
        self.hand_over(Ok(Part::Batch(batch)))
    }

    fn hand_over(&mut self, part: Result<Part>) -> Result<()> {
        self.parts.blocking_send(part).map_err(|_| Error::failed("nobody wants the statements"))
    }
}

/// Starts the thread that makes the statements, or reads those of a dump, none longer than `limit`
/// bytes. It ends when nobody listens any more; one that waits for standard input ends with the process.
pub(super) fn start(
    spec: &LoadSpec,
    dump: Option<Dump>,
    limit: usize,
) -> Result<mpsc::Receiver<Result<Part>>> {
    let (parts, receiver) = mpsc::channel(AHEAD);
    let mut feed = Feed { parts, batch: Batch::default() };
    let spec = spec.clone();
    let work = move || {
        let done = match dump {
            Some(dump) => read(&mut feed, dump, limit),
            None => generate(&mut feed, &spec),
        };
        // What stands before a fault is sent: the server sees what any client would show it. It fails
        // only where nobody listens any more.
        let _ = feed.flush().and_then(|()| feed.hand_over(done.map(|()| Part::End)));
    };
    std::thread::Builder::new()
        .name("statements".to_owned())
        .spawn(work)
        .map_err(|e| Error::failed(format!("cannot start a thread: {e}")))?;
    Ok(receiver)
}

fn read(feed: &mut Feed, dump: Dump, limit: usize) -> Result<()> {
    let mut dump = Splitter::new(dump.file, &dump.name, limit);
    while let Some(statement) = dump.next_statement()? {
        let (line, sql) = (statement.line, statement.sql);
        feed.statement(line, |out| out.extend_from_slice(sql)).map_err(|why| {
            dump.error(line, &format!("not in a dump of tables: {why}"))
                .hint("load takes what mysqldump writes of the tables of one database")
        })?;
        feed.batch.taken = dump.taken();
        feed.full()?;
    }
    feed.batch.taken = dump.taken();
    Ok(())
}

/// What mysqldump's file begins with, as far as it says how rows are taken. Without
/// NO_ENGINE_SUBSTITUTION an old server without InnoDB would quietly make MyISAM tables.
const HEAD: [&str; 4] = [
    "SET UNIQUE_CHECKS=0",
    "SET FOREIGN_KEY_CHECKS=0",
    "SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'",
    "SET SQL_NOTES=0",
];

/// Makes the statements of a dump that nobody wrote: sysbench's tables as `mysqldump --opt` would have
/// them in its file.
fn generate(feed: &mut Feed, spec: &LoadSpec) -> Result<()> {
    let LoadSource::Generated { rows, data_seed } = spec.source else {
        unreachable!("a dump is read")
    };
    for sql in HEAD {
        feed.say(sql)?;
    }
    for number in 1..=spec.tables {
        let named = quoted(&name(number));
        let mark = Mark::filling(data_seed, rows).by_load();
        feed.say(&format!("DROP TABLE IF EXISTS {named}"))?;
        feed.say(&table::create_indexed(number, rows, &mark))?;
        let bytes = match spec.insert {
            InsertMode::LoadData => {
                feed.flush()?;
                feed.hand_over(Ok(Part::LoadData(number)))?;
                continue;
            }
            InsertMode::Extended { bytes } => usize::try_from(bytes).unwrap_or(usize::MAX),
            InsertMode::Single => 0,
        };
        feed.say(&format!("LOCK TABLES {named} WRITE"))?;
        feed.say(&format!("/*!40000 ALTER TABLE {named} DISABLE KEYS */"))?;
        let filler = Filler::Sbtest(Rows::new(data_seed, number, rows));
        let head = format!("INSERT INTO {named} VALUES ");
        let mut next = 1;
        while next <= rows {
            feed.own(|out| next = text::extended(out, &head, filler, next, rows, bytes))?;
        }
        feed.say(&format!("/*!40000 ALTER TABLE {named} ENABLE KEYS */"))?;
        feed.say("UNLOCK TABLES")?;
    }
    Ok(())
}
