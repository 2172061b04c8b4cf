//! Statements on their way from the thread that makes or reads them to the connection.
//!
//! They travel in batches: one row a statement would otherwise cost a wake-up of a thread for
//! each. A few batches are ahead at most, so memory is bounded and the server never waits.

use std::io::Read;
use std::ops::Range;

use tokio::sync::mpsc;

use crate::error::{Error, Result};
use crate::load::dump::{Seen, Splitter, classify};

/// Bytes of a batch, unless one statement is longer.
const BATCH: usize = 64 << 10;
/// Batches that are ready at most.
const AHEAD: usize = 2;

/// Some statements in order.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    items: Vec<Item>,
    /// Bytes of the dump up to the end of the last one.
    taken: u64,
}

/// One statement of a batch.
#[derive(Debug)]
pub(super) struct Item {
    /// Where it stands in the batch.
    at: Range<usize>,
    /// The line of the dump that it begins on; 0 for a generated one.
    pub(super) line: u64,
    /// What it is.
    pub(super) seen: Seen,
}

/// What the thread hands over.
#[derive(Debug)]
pub(super) enum Part {
    /// Statements.
    Batch(Batch),
    /// The rows of this table by LOAD DATA LOCAL.
    LoadData(u32),
    /// That was all.
    End,
    /// It cannot go on.
    Failed(Error),
}

impl Batch {
    /// The statements with what they are.
    pub(super) fn statements(&self) -> impl Iterator<Item = (&[u8], &Item)> {
        self.items.iter().map(|item| (self.bytes.get(item.at.clone()).unwrap_or_default(), item))
    }

    /// Bytes of the dump up to the end of the last statement.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }
}

/// Why no more is wanted.
#[derive(Debug)]
pub(super) enum Halt {
    /// Nobody listens any more.
    Gone,
    /// It cannot go on.
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Halt::Failed(error)
    }
}

/// The end that fills batches.
pub(super) struct Feed {
    parts: mpsc::Sender<Part>,
    batch: Batch,
}

impl Feed {
    /// Adds the statement that begins on this line and whose text `write` appends.
    pub(super) fn statement(
        &mut self,
        line: u64,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> std::result::Result<(), String> {
        let from = self.batch.bytes.len();
        write(&mut self.batch.bytes);
        let at = from..self.batch.bytes.len();
        let seen = classify(self.batch.bytes.get(at.clone()).unwrap_or_default());
        match seen {
            Ok(seen) => self.batch.items.push(Item { at, line, seen }),
            Err(why) => {
                self.batch.bytes.truncate(from);
                return Err(why);
            }
        }
        Ok(())
    }

    /// Hands over what there is if it is enough; `taken` is how far in the dump that is.
    pub(super) fn full(&mut self, taken: u64) -> std::result::Result<(), Halt> {
        if self.batch.bytes.len() >= BATCH { self.flush(taken) } else { Ok(()) }
    }

    /// Hands over what there is.
    pub(super) fn flush(&mut self, taken: u64) -> std::result::Result<(), Halt> {
        let mut batch = std::mem::take(&mut self.batch);
        batch.taken = taken;
        self.batch.bytes.reserve(batch.bytes.len());
        self.hand_over(Part::Batch(batch))
    }

    /// Hands over something else, in its turn.
    pub(super) fn hand_over(&mut self, part: Part) -> std::result::Result<(), Halt> {
        self.parts.blocking_send(part).map_err(|_| Halt::Gone)
    }
}

/// Starts the thread that makes or reads the statements. It ends when nobody listens any more;
/// one that waits for standard input ends with the process.
pub(super) fn start(
    produce: impl FnOnce(&mut Feed) -> std::result::Result<(), Halt> + Send + 'static,
) -> Result<mpsc::Receiver<Part>> {
    let (parts, receiver) = mpsc::channel(AHEAD);
    let mut feed = Feed { parts, batch: Batch::default() };
    let work = move || {
        let done = produce(&mut feed);
        // What stands before a fault is sent: the server sees what any client would show it.
        let taken = feed.batch.taken;
        let last = match done {
            Ok(()) => Part::End,
            Err(Halt::Failed(error)) => Part::Failed(error),
            Err(Halt::Gone) => return,
        };
        // Nobody may listen any more.
        let _ = feed.flush(taken).and_then(|()| feed.hand_over(last));
    };
    std::thread::Builder::new()
        .name("statements".to_owned())
        .spawn(work)
        .map_err(|e| Error::failed(format!("cannot start a thread: {e}")))?;
    Ok(receiver)
}

/// The statements of a dump.
pub(super) fn read(
    feed: &mut Feed,
    mut dump: Splitter<Box<dyn Read + Send>>,
) -> std::result::Result<(), Halt> {
    while let Some(statement) = dump.next_statement()? {
        let (line, sql) = (statement.line, statement.sql);
        if let Err(why) = feed.statement(line, |out| out.extend_from_slice(sql)) {
            return Err(dump
                .error(line, &format!("not in a dump of tables: {why}"))
                .hint("load takes what mysqldump writes of the tables of one database")
                .into());
        }
        feed.full(dump.taken())?;
    }
    feed.flush(dump.taken())
}
