//! Sources of a dump: a file, which is judged before it is sent, or a pipe.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::dump::{Judge, StatementInfo};
use super::fill::Throughput;
use crate::engine::run_on_thread;
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::stop::{Stop, or_stop};
use crate::workload::sql::Splitter;

pub(super) const LOOK: Duration = Duration::from_millis(100);

pub(super) struct Item {
    pub(super) sql: Vec<u8>,
    /// Its first line in the dump; 0 for a generated one.
    pub(super) line: u64,
    pub(super) taken: u64,
    pub(super) seen: StatementInfo,
    pub(super) rows_of: Option<u32>,
}

pub(super) struct Dump {
    pub(super) file: Box<dyn Read + Send>,
    /// The same file, if it can be read twice.
    pub(super) again: Option<File>,
    pub(super) name: String,
    pub(super) length: Option<u64>,
    pub(super) charset: String,
}

impl Dump {
    pub(super) fn open(path: &Path) -> Result<Dump> {
        let charset = String::new();
        if path == Path::new("-") {
            let (name, file) = ("standard input".to_owned(), Box::new(std::io::stdin()));
            return Ok(Dump { file, again: None, name, length: None, charset });
        }
        let name = path.display().to_string();
        let failed = |e: io::Error| Error::usage(format!("--from-dump {name}: {e}"));
        let file = File::open(path).map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        if facts.is_dir() {
            return Err(failed(io::Error::other("it is a directory")));
        }
        let again = facts.is_file().then(|| file.try_clone()).transpose().map_err(failed)?;
        let length = again.as_ref().map(|_| facts.len());
        Ok(Dump { file: Box::new(file), again, name, length, charset })
    }

    /// Judges a whole file before anything of it is sent. A pipe is read once, and judged on the way.
    pub(super) async fn check(
        &self,
        limit: usize,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<()> {
        let Some(file) = &self.again else { return Ok(()) };
        let failed = |e: io::Error| Error::failed(format!("{}: {e}", self.name));
        let mut file = file.try_clone().map_err(failed)?;
        let read = Arc::new(AtomicU64::new(0));
        let (counter, name, charset) = (Arc::clone(&read), self.name.clone(), self.charset.clone());
        let work = move || {
            let mut statements = Statements::new(&mut file, &name, limit, &charset);
            while let Some(item) = statements.next(false)? {
                counter.store(item.taken, Ordering::Relaxed);
            }
            file.rewind().map_err(|e| Error::failed(format!("{name}: {e}")))
        };
        let mut throughput = Throughput::new(self.length.unwrap_or(0), Instant::now());
        let mut show_progress = async || {
            loop {
                tokio::time::sleep(LOOK).await;
                throughput.at(Instant::now(), read.load(Ordering::Relaxed));
                progress.update(|| {
                    format!("checking {}: {}", self.name, throughput.text("bytes", false))
                });
            }
        };
        let checked = tokio::select! {
            biased;
            checked = beside(stop, work) => checked,
            () = show_progress() => Ok(()),
        };
        progress.clear();
        checked
    }
}

/// Works on a thread of its own, which ends with the process when it is stopped.
pub(super) async fn beside<T: Send + 'static>(
    stop: &Stop,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = run_on_thread(work);
    let done = async { done.await.unwrap_or_else(|_| Err(Error::failed("a thread did not run"))) };
    or_stop(stop, done).await
}

pub(super) struct Statements<R> {
    splitter: Splitter<R>,
    judge: Judge,
}

impl<R: Read> Statements<R> {
    pub(super) fn new(file: R, name: &str, limit: usize, charset: &str) -> Self {
        let judge = Judge::new(Some(charset).filter(|set| !set.is_empty()));
        Statements { splitter: Splitter::new(file, name, limit), judge }
    }

    /// Takes the next statement, with its text if wanted; None at the end of the file.
    pub(super) fn next(&mut self, with_text: bool) -> Result<Option<Item>> {
        let Some(statement) = self.splitter.next_statement()? else { return Ok(None) };
        let (line, judged) = (statement.line, self.judge.judge(statement.sql));
        let sql = if with_text { statement.sql.to_vec() } else { Vec::new() };
        let seen = judged.map_err(|why| {
            self.splitter.error(line, &format!("not in a dump of tables: {why}")).hint(
                "load takes what mysqldump writes of the tables of one database, without --databases, \
                 --routines and --events: --skip-triggers and --ignore-table=DB.NAME (of each view and \
                 sequence) leave the rest out",
            )
        })?;
        let taken = self.splitter.bytes_read();
        Ok(Some(Item { sql, line, taken, seen, rows_of: None }))
    }
}
