//! `prepare`, `prewarm` and `cleanup`: sysbench's tables, statements and lines.
//!
//! Each thread has a connection; thread t has the tables t, t + threads, … The caller writes the header.

use std::ops::RangeInclusive;
use std::sync::Mutex;

use futures_util::future::join_all;

use super::failure;
use super::output::{INITIALIZING, Log};
use super::settings::{Command, Ended, OutputVersion, Settings, Test};
use crate::engine::ClientAction;
use crate::error::Result;
use crate::mysql::wire::{Inbox, LeanSession};
use crate::mysql::{Failure, ServerLink};
use crate::stop::{COURTESY, locked, or_stop};
use crate::workload::{Rows, Sampler, Stream, name_part, seed_of};

/// Largest INSERT, bytes, as in sysbench.
const INSERT_MAX: usize = 512 * 1024 - 1;

/// A line, unless empty, and the statements after it, each with the name of its failure.
type TableWork = (String, Box<dyn Iterator<Item = (fn(String) -> ClientAction, String)>>);
type Done = std::result::Result<(), (ClientAction, Failure)>;

/// `Err` only if asked to stop. If a thread fails, the others go on, and the status is 1; sysbench's may be 0.
pub(crate) async fn run(settings: &Settings, link: &ServerLink, log: &Mutex<Log>) -> Result<Ended> {
    let Settings { command, test, tables, threads, .. } = *settings;
    let of_one = matches!(test, Test::RandomPoints | Test::RandomRanges);
    if of_one && command == Command::Cleanup && tables != 1 {
        locked(log).fatal(&[failure::one_table_line(settings)]);
        return Ok(1);
    }
    let tables = if test == Test::BulkInsert { threads } else { tables };
    let threads = count_workers(settings);
    if threads > 1 {
        locked(log).notice(INITIALIZING);
    }
    let inbox = Inbox::default();
    let workers = (1..=threads).map(async |first| {
        // A dry run needs none.
        let mut session = None;
        let work = run_tables(settings, link, log, &inbox, &mut session, first..=tables, threads);
        let done = work.await;
        if let Err((during, failure)) = &done {
            locked(log).fatal(&failure::lines(settings, during, failure));
        }
        if let Some(session) = session {
            session.close(COURTESY).await;
        }
        done
    });
    let all = or_stop(&link.stop, async { Ok(join_all(workers).await) }).await?;
    Ok(Ended::from(all.iter().any(Done::is_err)))
}

/// Counts the connections of a command that is no run.
pub(super) fn count_workers(settings: &Settings) -> u32 {
    let is_single = settings.test == Test::BulkInsert || settings.command == Command::Cleanup;
    if is_single { 1 } else { settings.threads }
}

/// Runs the work of one thread on every `threads`th of these tables, over a session that it opens.
async fn run_tables(
    settings: &Settings,
    link: &ServerLink,
    log: &Mutex<Log>,
    inbox: &Inbox,
    session: &mut Option<LeanSession>,
    tables: RangeInclusive<u32>,
    threads: u32,
) -> Done {
    if !settings.values.on("mysql-dry-run") {
        let opened = LeanSession::open_again(link, inbox, None).await;
        *session = Some(opened.map_err(|failure| (ClientAction::Connect, failure))?);
    }
    let set = |name: &str| format!("SET {name}=2*1024*1024*1024");
    let sets = vec![set("tmp_table_size"), set("max_heap_table_size")];
    let ahead = (settings.command == Command::Prewarm).then(|| part(String::new(), sets));
    let tables = tables.step_by(threads as usize);
    for (line, statements) in ahead.into_iter().chain(tables.flat_map(|n| table_work(settings, n)))
    {
        if !line.is_empty() {
            locked(log).script_line(&line);
        }
        let Some(session) = session else { continue };
        for (action, sql) in statements {
            let answer = session.run_text(&sql).await;
            answer.map_err(|failure| (action(sql), failure))?;
        }
    }
    Ok(())
}

fn part(line: String, all: Vec<String>) -> TableWork {
    let query = ClientAction::Query as fn(String) -> ClientAction;
    (line, Box::new(all.into_iter().map(move |sql| (query, sql))))
}

fn table_work(settings: &Settings, n: u32) -> Vec<TableWork> {
    let Settings { command, test, table_size: rows, ref values, output, .. } = *settings;
    let filled = test != Test::BulkInsert;
    match command {
        Command::Prepare => {
            let create = vec![create_table(settings, n)];
            let mut all = vec![part(format!("Creating table 'sbtest{n}'..."), create)];
            // Ids that `oltp_insert` draws could collide with prepare's.
            if filled && rows > 0 && (test != Test::Insert || values.on("auto-inc")) {
                all.push(inserts(settings, n));
            }
            if filled && values.on("create-secondary") {
                let line = format!("Creating a secondary index on 'sbtest{n}'...");
                all.push(part(line, vec![format!("CREATE INDEX k_{n} ON sbtest{n}(k)")]));
            }
            all
        }
        Command::Prewarm => {
            let verb = if output == OutputVersion::V1_1 { "Preloading" } else { "Prewarming" };
            let by_id = format!("SELECT * FROM sbtest{n} FORCE KEY (PRIMARY) LIMIT {rows}");
            let by_k = format!("SELECT * FROM sbtest{n} WHERE k LIKE '%0%' LIMIT {rows}");
            let read = vec![
                format!("ANALYZE TABLE sbtest{n}"),
                format!("SELECT AVG(id) FROM ({by_id}) t"),
                format!("SELECT COUNT(*) FROM ({by_k}) t"),
            ];
            vec![part(format!("{verb} table sbtest{n}"), read)]
        }
        Command::Cleanup => {
            let drop = vec![format!("DROP TABLE IF EXISTS sbtest{n}")];
            vec![part(format!("Dropping table 'sbtest{n}'..."), drop)]
        }
        Command::Run => Vec::new(),
    }
}

fn create_table(settings: &Settings, table: u32) -> String {
    if settings.test == Test::BulkInsert {
        return format!(
            "        CREATE TABLE IF NOT EXISTS sbtest{table} (\n          id INTEGER NOT NULL,\n          \
             k INTEGER DEFAULT '0' NOT NULL,\n          PRIMARY KEY (id))"
        );
    }
    let values = &settings.values;
    let id = if values.on("auto-inc") { " AUTO_INCREMENT" } else { "" };
    let key = if values.on("secondary") { "KEY xid" } else { "PRIMARY KEY" };
    let (engine, more) = (values.text("mysql-storage-engine"), values.text("create-table-options"));
    format!(
        "CREATE TABLE sbtest{table}(\n  id INTEGER NOT NULL{id},\n  k INTEGER DEFAULT '0' NOT NULL,\n  c CHAR(120) \
         DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  {key} (id)\n) /*! ENGINE = \
         {engine} */ {more}"
    )
}

fn inserts(settings: &Settings, table: u32) -> TableWork {
    let Settings { distribution, table_size: rows, seed, ref values, .. } = *settings;
    let line = format!("Inserting {rows} records into 'sbtest{table}'");
    let with_ids = !values.on("auto-inc");
    let columns = if with_ids { "(id, k, c, pad)" } else { "(k, c, pad)" };
    let sampler = Sampler::new(distribution, rows, seed.into());
    let stream = seed_of(&[seed.into(), name_part("sysbench prepare"), table.into()]);
    let (mut stream, texts) = (Stream::new(stream), Rows::new(seed, table, rows));
    let row = move |id: u64| {
        let (text, k) = (texts.row(id), sampler.draw(&mut stream));
        let [c, pad] = [&text.c[..], &text.pad].map(String::from_utf8_lossy);
        let id = if with_ids { format!("{id}, ") } else { String::new() };
        format!("({id}{k}, '{c}', '{pad}')")
    };
    let mut rows = (1..=rows).map(row).peekable();
    let statements = std::iter::from_fn(move || {
        let mut sql = format!("INSERT INTO sbtest{table}{columns} VALUES{}", rows.next()?);
        while let Some(row) = rows.next_if(|row| sql.len() + 1 + row.len() <= INSERT_MAX) {
            sql.push(',');
            sql += &row;
        }
        // Sends a statement when the next row does not fit, and at the end.
        Some((if rows.peek().is_some() { ClientAction::Rows } else { ClientAction::Rest }, sql))
    });
    (line, Box::new(statements))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Kept, usual, usual_with};
    use super::*;
    use crate::error::Kind;
    use crate::mysql::ConnectOptions;
    use crate::stop::Stop;
    use crate::workload::{Distribution, PAD_LEN, proves};

    const DDL: &str = "CREATE TABLE sbtest3(
  id INTEGER NOT NULL AUTO_INCREMENT,
  k INTEGER DEFAULT '0' NOT NULL,
  c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL,
  PRIMARY KEY (id)
) /*! ENGINE = innodb */ ";

    #[test]
    fn table_is_sysbenchs_when_options_change_it() {
        assert_eq!(create_table(&usual(), 3), DDL);
        let other = usual_with(
            "--auto-inc=off --secondary --mysql-storage-engine=myisam \
             --create-table-options=MAX_ROWS=7",
        );
        let expected = DDL
            .replace(" AUTO_INCREMENT", "")
            .replace("PRIMARY KEY", "KEY xid")
            .replace("innodb */ ", "myisam */ MAX_ROWS=7");
        assert_eq!(create_table(&other, 3), expected);
    }

    fn statements(settings: &Settings) -> Vec<String> {
        inserts(settings, 1).1.map(|(_, sql)| sql).collect()
    }

    #[test]
    fn inserts_are_as_many_as_sysbenchs_when_rows_fill_them() {
        for (rows, expected) in [(0, 0), (1, 1), (1000, 1), (10_000, 4), (100_000, 38)] {
            let distribution = "special".parse().expect("a distribution");
            let settings = Settings { table_size: rows, distribution, ..usual() };
            let all = statements(&settings);
            assert_eq!(all.len(), expected, "{rows} rows");
            let counted: u64 = all.iter().map(|sql| sql.matches("')").count() as u64).sum();
            assert_eq!(counted, rows);
            for (at, sql) in all.iter().enumerate() {
                assert!(
                    sql.starts_with("INSERT INTO sbtest1(k, c, pad) VALUES(")
                        && sql.ends_with("')")
                );
                // A row takes 200 bytes at most.
                assert!(
                    sql.len() <= INSERT_MAX && (at + 1 == expected || sql.len() + 200 > INSERT_MAX)
                );
            }
        }
    }

    #[test]
    fn rows_hold_ids_when_the_server_makes_none() {
        let settings = usual_with("--auto-inc=off --table-size=3");
        let all = statements(&settings);
        let (head, values) = all[0].split_once(" VALUES").expect("an INSERT");
        assert_eq!(head, "INSERT INTO sbtest1(id, k, c, pad)");
        for (row, id) in values.split("),").zip(1_u64..) {
            let cells: Vec<&str> = row.trim_matches(['(', ')']).split(", ").collect();
            assert_eq!(cells.len(), 4, "{row}");
            assert_eq!(cells[0], id.to_string());
            assert!((1..=3).contains(&cells[1].parse::<u64>().expect("k")));
            assert!(proves(1, id, cells[2].trim_matches('\'').as_bytes()));
            assert_eq!(cells[3].trim_matches('\'').len(), PAD_LEN);
        }
    }

    #[test]
    fn k_falls_by_the_distribution_when_tables_are_filled() {
        let k = |distribution| {
            let settings = Settings { distribution, ..usual() };
            let all = statements(&settings).concat();
            let first = |row: &str| row.split(',').next().and_then(|k| k.parse::<u32>().ok());
            let keys: std::collections::BTreeSet<u32> = all.split('(').filter_map(first).collect();
            keys.len()
        };
        let special = "special".parse().expect("a distribution");
        // 6,300 and 1,660 in sysbench's tables.
        assert!((6_100..6_500).contains(&k(Distribution::Uniform)), "{}", k(Distribution::Uniform));
        assert!((1_500..1_800).contains(&k(special)), "{}", k(special));
    }

    async fn dry(settings: &Settings, command: Command) -> (Ended, String) {
        let settings = Settings { command, ..settings.clone() };
        let link = ServerLink::to(ConnectOptions::canned(1), &Stop::default()).expect("a target");
        let kept = Kept::default();
        let log = Mutex::new(kept.log(3));
        let ended = run(&settings, &link, &log).await;
        (ended.expect("nobody stops it"), kept.text())
    }

    #[tokio::test]
    async fn lines_are_sysbenchs_when_no_server_is_asked() {
        let two = usual_with("--tables=2 --mysql-dry-run");
        let created = |n| {
            format!(
                "Creating table 'sbtest{n}'...\nInserting 10000 records into 'sbtest{n}'\nCreating \
                 a secondary index on 'sbtest{n}'...\n"
            )
        };
        let expected = format!("{INITIALIZING}\n{}{}", created(1), created(2));
        assert_eq!(dry(&two, Command::Prepare).await, (0, expected));
        let bare = Settings {
            test: Test::Insert,
            threads: 1,
            ..usual_with("--tables=2 --mysql-dry-run --create-secondary=off --auto-inc=off")
        };
        let expected = "Creating table 'sbtest1'...\nCreating table 'sbtest2'...\n";
        assert_eq!(dry(&bare, Command::Prepare).await, (0, expected.to_owned()));
        let bulk = Settings { test: Test::BulkInsert, tables: 7, ..two.clone() };
        assert_eq!(dry(&bulk, Command::Prepare).await, (0, expected.to_owned()));
        let dropped = "Dropping table 'sbtest1'...\nDropping table 'sbtest2'...\n";
        assert_eq!(dry(&two, Command::Cleanup).await, (0, dropped.to_owned()));
        let master = Settings { output: OutputVersion::V1_1, threads: 1, ..two.clone() };
        let read = "Preloading table sbtest1\nPreloading table sbtest2\n";
        assert_eq!(dry(&master, Command::Prewarm).await, (0, read.to_owned()));
    }

    #[test]
    fn command_has_one_connection_when_sysbench_does_it_in_one_thread() {
        let many =
            |test, command| count_workers(&Settings { test, command, threads: 3, ..usual() });
        assert_eq!(many(Test::ReadOnly, Command::Cleanup), 1);
        assert_eq!(many(Test::BulkInsert, Command::Prepare), 1);
        assert_eq!(many(Test::ReadOnly, Command::Prepare), 3);
        assert_eq!(many(Test::ReadOnly, Command::Prewarm), 3);
    }

    #[tokio::test]
    async fn cleanup_fails_when_a_test_of_one_table_has_several() {
        let two = Settings { test: Test::RandomRanges, ..usual_with("--tables=2 --mysql-dry-run") };
        let (ended, text) = dry(&two, Command::Cleanup).await;
        assert_eq!(ended, 1);
        assert!(text.starts_with("FATAL: `cleanup' function failed: "), "{text}");
    }

    #[tokio::test]
    async fn every_thread_tells_its_failure_when_no_server_is_there() {
        let of_port = usual_with("--mysql-port=1");
        let three = Settings { threads: 3, command: Command::Prepare, ..of_port };
        let stop = Stop::default();
        let link = ServerLink::to(ConnectOptions::canned(1), &stop).expect("a target");
        let kept = Kept::default();
        let log = Mutex::new(kept.log(3));
        assert_eq!(run(&three, &link, &log).await.expect("nobody stops it"), 1);
        let line =
            "FATAL: unable to connect to MySQL server on host '127.0.0.1', port 1, aborting...\n";
        assert_eq!(kept.text().matches(line).count(), 3, "{}", kept.text());
        stop.ask(Kind::Interrupted);
        assert_eq!(run(&three, &link, &log).await.map_err(|e| e.kind()), Err(Kind::Interrupted));
    }
}
