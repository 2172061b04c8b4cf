use super::*;
use std::time::Duration;

use proptest::prelude::*;

use crate::plan::{self, Plan, Spread, StopAt};
use crate::workload::distribution::Distribution;
use crate::workload::{Schema, Workload, builtin};

pub(crate) fn a_plan(workload: usize, clients: u32, stop: StopAt) -> Plan {
    Plan {
        workload: builtin().remove(workload),
        tables: None,
        rows: None,
        clients: vec![clients],
        spread: plan::SpreadChoice::Auto,
        warmup: Duration::ZERO,
        stop,
        rates: Vec::new(),
        arrival: plan::Arrival::Poisson,
        think: None,
        reconnect_every: None,
        repeats: 1,
        order: plan::Order::Ascending,
        distribution: Distribution::Uniform,
        statements: plan::StatementMode::Prepared,
        seed: 1,
        engine_threads: None,
        host_threads: Vec::new(),
        charset: None,
        interval: Duration::from_secs(1),
        before: crate::plan::Before::default(),
        interval_log: None,
        policy: plan::Policy::default(),
        rules: plan::Rules::loadgen(),
        script: None,
        groups: Vec::new(),
    }
}

pub(crate) const TABLES: Tables = Tables {
    schema: Schema::Sbtest,
    count: 8,
    rows: 1000,
    held: Some(1000),
    own: true,
    atomic: true,
};

pub(crate) fn job_of(plan: &Plan, spread: Spread, tables: Tables, rate: Option<f64>) -> Job {
    let step = Step::new(1, 1, (plan.clients[0], rate), 1);
    Job::new(plan, spread, tables, &step)
}

fn job(clients: u32, stop: StopAt, spread: Spread) -> Job {
    job_of(&a_plan(0, clients, stop), spread, TABLES, None)
}

#[test]
fn quotas_add_up_to_the_ops() {
    for (clients, ops) in [(3, 10), (7, 3), (1, 5), (256, 1_000_001)] {
        let job = job(clients, StopAt::Ops(ops), Spread::Random);
        let quotas: Vec<u64> = (0..clients).filter_map(|c| job.quota(c)).collect();
        assert_eq!(quotas.iter().sum::<u64>(), ops);
        let (min, max) = (quotas.iter().min(), quotas.iter().max());
        assert!(max.zip(min).is_some_and(|(max, min)| max - min <= 1), "{quotas:?}");
    }
}

#[test]
fn no_two_clients_or_phases_share_a_stream() {
    let job = job(64, StopAt::Ops(1), Spread::Pinned);
    let mut firsts: Vec<u64> =
        (0..64).flat_map(|c| [job.stream(c, false).bits(), job.stream(c, true).bits()]).collect();
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts.len(), 128);
}

#[test]
fn queues_are_the_different_pairs_of_thread_and_table() {
    for (threads, tables, clients) in
        [(1, 1, 8), (2, 8, 64), (3, 8, 64), (4, 6, 64), (2, 8, 4), (3, 8, 16), (16, 1, 5)]
    {
        let threads = threads.min(clients);
        let pairs: std::collections::BTreeSet<(u32, u32)> =
            (0..clients).map(|client| (client % threads, client % tables)).collect();
        let pinned = queues(threads as usize, Spread::Pinned, tables, clients);
        assert_eq!(pinned as usize, pairs.len(), "{threads} {tables} {clients}");
        assert_eq!(queues(threads as usize, Spread::Random, tables, clients), threads);
    }
}

#[test]
fn clients_are_dealt_over_tables() {
    let job = job(16, StopAt::Ops(1), Spread::Pinned);
    assert_eq!((job.pinned_table(0), job.pinned_table(9)), (Some(0), Some(1)));
    assert_eq!(job.sql(0, 2), "SELECT c FROM sbtest3 WHERE id=?");
    assert_eq!(job.prepared, ["SELECT c FROM {table} WHERE id=?"]);
    assert_eq!(job.text_pieces(0)[0], ["SELECT c FROM sbtest1 WHERE id=", ""]);
}

#[test]
fn every_table_has_all_addresses_when_clients_keep_to_one() {
    let job = job(24, StopAt::Ops(1), Spread::Pinned);
    let tables = job.places();
    for addresses in 2..5 {
        let clients = 2 * tables * addresses;
        let mut of_table = vec![std::collections::BTreeSet::new(); tables as usize];
        let mut dealt = vec![0; addresses as usize];
        for client in 0..clients {
            let address = job.deal(client, addresses as usize);
            of_table[(client % tables) as usize].insert(address);
            dealt[address] += 1;
        }
        assert!(
            of_table.iter().all(|of| of.len() == addresses as usize),
            "{addresses}: {of_table:?}"
        );
        assert!(dealt.iter().all(|clients| *clients == 2 * tables), "{addresses}: {dealt:?}");
    }
    let unpinned = self::job(24, StopAt::Ops(1), Spread::Random);
    assert_eq!([0, 1, 2, 3].map(|client| unpinned.deal(client, 2)), [0, 1, 0, 1]);
}

#[test]
fn groups_of_a_step_have_keys_ids_and_threads_of_their_own() {
    let own = job(4, StopAt::Ops(1), Spread::Pinned);
    let step = own.step;
    let changes = RowChanges { fewer: true, ..RowChanges::default() };
    let others = OtherGroups { first_client: 0, clients_in_all: 7, threads: 3, changes };
    let first = own.among(others, None, &step);
    let others = OtherGroups { first_client: 4, changes: RowChanges::default(), ..others };
    let named =
        |of, step: &Step| job(3, StopAt::Ops(1), Spread::Random).among(others, Some(of), step);
    let second = named(["a", "b"], &step);
    let keys = |job: &Job| job.stream(0, true).bits();
    assert_eq!(keys(&first), keys(&job(4, StopAt::Ops(1), Spread::Pinned)), "as if it were alone");
    let other_step = Step { clients: 8, ..step };
    let third = [(["a", "c"], step), (["c", "b"], step), (["a", "b"], other_step)];
    let [name, workload, clients] = third.map(|(of, step)| keys(&named(of, &step)));
    let all = [keys(&first), keys(&second), name, workload, clients];
    assert!((1..5).all(|at| !all[..at].contains(&all[at])), "{all:?}");
    let clients = (0..4).map(|_| &first).enumerate();
    let clients = clients.chain((0..3).map(|_| &second).enumerate());
    let ids: std::collections::BTreeSet<u64> =
        clients.flat_map(|(client, job)| job.serial(client as u32, 10).take(5)).collect();
    assert_eq!(ids, (11..46).collect(), "no two clients number one row");
    assert_eq!([0, 1, 2].map(|thread| first.clients_of(thread)), [vec![0, 3], vec![1], vec![2]]);
    assert_eq!([0, 1, 2].map(|thread| second.clients_of(thread)), [vec![2], vec![0], vec![1]]);
    let rows = |job: &Job| (job.statements[0].check.rows, job.statements[0].check.content);
    assert_eq!(rows(&first), ((0, 1), false), "a row may be away");
    assert_eq!(rows(&second), ((1, 1), true));
    let changes = RowChanges { any: true, ..changes };
    let unknown = job(4, StopAt::Ops(1), Spread::Pinned);
    let unknown = unknown.among(OtherGroups { changes, ..others }, None, &step);
    assert_eq!(rows(&unknown), ((0, u64::MAX), false));
}

#[test]
fn answers_may_differ_when_another_group_deletes_rows_or_writes_by_sql_of_its_own() {
    let workload = |name: &str| crate::workload::named(name).expect(name);
    let own = Workload { built_in: false, ..workload("update-index") };
    let skipping = workload("read-write").with_options(&[("skip_trx".to_owned(), 1)].into());
    let dirty = Tables { atomic: false, ..TABLES };
    let none = RowChanges::default();
    let (more, fewer) = (RowChanges { more: true, ..none }, RowChanges { fewer: true, ..none });
    for (other, tables, changed) in [
        (workload("read-only"), TABLES, none),
        (workload("update-index"), TABLES, none),
        (workload("insert"), TABLES, more),
        (workload("read-write"), TABLES, none),
        (workload("read-write"), dirty, fewer),
        (skipping.expect("an option"), TABLES, fewer),
        (workload("delete"), TABLES, fewer),
        (own, TABLES, RowChanges { any: true, ..none }),
    ] {
        let name = other.name.clone();
        assert_eq!(row_changes(std::iter::once(&other), &tables), changed, "{name}");
    }
}

fn generator(seed: u64) -> Generator {
    Generator {
        stream: Stream::new(seed),
        slices: Vec::new(),
        serials: vec![(1..).step_by(1)],
        previous: Params::default(),
    }
}

fn compiled(workload: Workload) -> Job {
    let plan = Plan { workload, ..a_plan(0, 1, StopAt::Ops(1)) };
    job_of(&plan, Spread::Random, TABLES, None)
}

fn of(params: &str) -> Job {
    let table: toml::Table = toml::from_str(&format!("p = {params}")).expect("TOML");
    let count = table["p"].as_array().map(Vec::len).expect("a list");
    let text = format!(
        "name = 'x'\nabout = 'y'\n[options]\nlen = 7\n[[transaction]]\n\
         [[transaction.statement]]\nkind = 'select'\nsql = 'SELECT {}'\nparams = {params}\n\
         expect = 'any'\n",
        vec!["?"; count].join(", ")
    );
    let workload = Workload::parse(&text, "w").unwrap_or_else(|e| panic!("{}", e.render()));
    compiled(workload)
}

fn drawn(params: &str, seed: u64) -> Params {
    let job = of(params);
    let from = TableDraws { table: 0, slot: 0, picks: &job.picks(0) };
    let mut drawn = Params::default();
    generator(seed).draw(&mut drawn, &job.statements[0].sources, from);
    drawn
}

fn built_in(name: &str, options: &[(&str, u64)]) -> Workload {
    let workload = builtin().into_iter().find(|w| w.name == name).expect("built in");
    let options = options.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    workload.with_options(&options).expect("options of it")
}

#[test]
fn nulls_are_wrong_where_a_column_is_one_of_the_tables() {
    for (sql, nulls) in [
        ("SELECT c FROM {table} WHERE id = 1", true),
        ("SELECT k, COUNT(*) FROM {table} GROUP BY k WITH rollup", false),
        ("SELECT c FROM other", false),
    ] {
        let text = format!(
            "name = 'x'\nabout = 'y'\n[[transaction]]\n[[transaction.statement]]\nsql = '{sql}'\n"
        );
        let workload = Workload::parse(&text, "w").unwrap_or_else(|e| panic!("{}", e.render()));
        assert_eq!(compiled(workload).statements[0].check.nulls, nulls, "{sql}");
    }
}

#[test]
fn the_rows_of_a_range_are_known_when_prepare_made_them_and_nobody_takes_them_away() {
    struct Case {
        workload: Workload,
        tables: Tables,
        ranges: usize,
    }
    let read_only = || built_in("read-only", &[]);
    let read_write = || built_in("read-write", &[]);
    let skips = |name| built_in(name, &[("skip_trx", 1)]);
    for (name, case) in [
        ("read-only", Case { workload: read_only(), tables: TABLES, ranges: 3 }),
        ("autocommit", Case { workload: skips("read-only"), tables: TABLES, ranges: 3 }),
        (
            "foreign",
            Case { workload: read_only(), tables: Tables { own: false, ..TABLES }, ranges: 0 },
        ),
        (
            "of different sizes",
            Case { workload: read_only(), tables: Tables { held: None, ..TABLES }, ranges: 0 },
        ),
        ("read-write", Case { workload: read_write(), tables: TABLES, ranges: 3 }),
        ("pairs apart", Case { workload: skips("read-write"), tables: TABLES, ranges: 0 }),
        (
            "pairs seen apart",
            Case { workload: read_write(), tables: Tables { atomic: false, ..TABLES }, ranges: 0 },
        ),
    ] {
        let plan = Plan { workload: case.workload, ..a_plan(0, 1, StopAt::Ops(1)) };
        let job = job_of(&plan, Spread::Random, case.tables, None);
        let known = job.statements.iter().filter(|one| one.range.is_some()).count();
        assert_eq!(known, case.ranges, "{name}");
    }
}

#[test]
fn a_range_has_fewer_rows_when_it_reaches_beyond_the_last_id() {
    let job = compiled(built_in("read-only", &[("range_size", 100)]));
    let range = job.statements.iter().find_map(|one| one.range).expect("a range");
    let mut values = Params::default();
    values.clear(2);
    for (first, rows) in [(1, 100), (901, 100), (902, 99), (1000, 1), (1001, 0), (5000, 0)] {
        values.set(0, Value::Int(first));
        assert_eq!(range.rows(&values), rows, "from {first}");
    }
}

proptest! {
    #[test]
    fn ranges_stay_where_they_are_said_to(seed: u64) {
        let values = drawn(
            "[{ range_start = { len = 101 } }, { range_end = { of = 1, len = 101 } }, \
             { between = { min = 3, max = 9 } }, { range_end = { of = 3, delta = 'len' } }, \
             { same_as = 4 }, 'k', { row = { per = 4, plus = 1 } }, \
             { range_end = { of = 7, len = 3 } }]",
            seed,
        );
        let n: Vec<u64> = (0..values.len()).map(|at| number(values.get(at))).collect();
        prop_assert!((1..=900).contains(&n[0]));
        prop_assert_eq!(n[1], n[0] + 100);
        prop_assert!((3..=9).contains(&n[2]));
        prop_assert_eq!(n[3], n[2] + 7);
        prop_assert_eq!(n[4], n[3]);
        prop_assert!((1..=1000).contains(&n[5]));
        prop_assert_eq!([n[6], n[7]], [251, 253]);
    }

    #[test]
    fn contents_prove_themselves(seed: u64) {
        let values = drawn("[{ c_of = 2 }, { key = 'default' }, 'c', 'pad', { digits = 9 }]", seed);
        let bytes = |at: usize| match values.get(at) {
            Value::Bytes { start, end } => values.bytes(start, end),
            other => panic!("{other:?}"),
        };
        prop_assert!(rows::proves(1, number(values.get(1)), bytes(0)));
        prop_assert!(rows::proves(1, 0, bytes(2)));
        prop_assert_eq!(bytes(3).len(), rows::PAD_LEN);
        prop_assert_eq!(bytes(4).len(), 9);
    }
}

#[test]
fn a_number_is_unsigned_when_no_signed_one_holds_its_range() {
    struct Case {
        random: &'static str,
        is_unsigned: bool,
    }
    for Case { random, is_unsigned } in [
        Case { random: "{random 1..9}", is_unsigned: false },
        Case { random: "{random 9223372036854775000..9223372036854775807}", is_unsigned: false },
        Case { random: "{random 9223372036854775000..9223372036854775808}", is_unsigned: true },
        Case { random: "{random 18446744073709551000..18446744073709551615}", is_unsigned: true },
        Case { random: "{random 0..18446744073709551615}", is_unsigned: true },
    ] {
        let sql = format!("SELECT {random}");
        let workload = crate::workload::script("x", sql.as_bytes(), "x").expect(random);
        let job = compiled(workload);
        let (min, max) = random[8..random.len() - 1].split_once("..").expect("a range");
        let [min, max] = [min, max].map(|bound| bound.parse::<u64>().expect("a number"));
        let from = TableDraws { table: 0, slot: 0, picks: &job.picks(0) };
        let (mut generator, mut drawn) = (generator(5), Params::default());
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            generator.draw(&mut drawn, &job.statements[0].sources, from);
            let value = drawn.get(0);
            assert_eq!(matches!(value, Value::UInt(_)), is_unsigned, "{random}: {value:?}");
            seen.insert(number(value));
        }
        assert!(seen.iter().all(|n| (min..=max).contains(n)), "{random}: {seen:?}");
        assert!(seen.len() > 5, "{random}: {seen:?}");
    }
}

#[test]
fn literals_stand_where_the_parameters_were() {
    let mut sql = Vec::new();
    let pieces = ["UPDATE t SET c=", ", k=", " WHERE id=", " LIMIT ", ""];
    let mut values = Params::default();
    values.clear(4);
    values.set_bytes(0, |bytes| bytes.extend_from_slice(b"o'clock"));
    values.set(1, Value::Int(-1));
    values.set(2, Value::UInt(7));
    values.set(3, Value::Double(2.5_f64.to_bits()));
    literals_into(&mut sql, &pieces, &values);
    assert_eq!(sql, b"UPDATE t SET c='o\'\'clock', k=-1 WHERE id=7 LIMIT 2.500000");
}

#[test]
fn backslashes_of_a_constant_are_doubled_when_it_becomes_a_literal() {
    let text = "name = 'x'\n[[transaction]]\n[[transaction.statement]]\nsql = 'SELECT ?'\n\
                params = [{ const = 'a\\b' }]\n";
    let workload = Workload::parse(text, "w").unwrap_or_else(|e| panic!("{}", e.render()));
    for (statements, sent) in [(StatementMode::Prepared, r"a\b"), (StatementMode::Text, r"a\\b")] {
        let workload = workload.clone();
        let plan = Plan { workload, statements, ..a_plan(0, 1, StopAt::Ops(1)) };
        let job = job_of(&plan, Spread::Random, TABLES, None);
        let from = TableDraws { table: 0, slot: 0, picks: &[] };
        let mut drawn = Params::default();
        generator(1).draw(&mut drawn, &job.statements[0].sources, from);
        let Value::Bytes { start, end } = drawn.get(0) else { panic!("a text") };
        assert_eq!(drawn.bytes(start, end), sent.as_bytes(), "{statements}");
    }
}

#[test]
fn bulk_statements_hold_what_fits_and_leave_no_gap() {
    let workload = builtin().into_iter().find(|w| w.name == "bulk-insert").expect("built in");
    let small = [("bulk_bytes".to_owned(), 60)].into();
    let workload = workload.with_options(&small).expect("an option of it");
    let mut job = compiled(workload);
    assert!(job.serial && job.prepared.is_empty());
    let mut statement = job.statements.remove(0);
    let mut generator = generator(1);
    let from = TableDraws { table: 0, slot: 0, picks: &[] };
    let mut next = |bytes_max: usize| {
        let mut sql = Vec::new();
        statement.bulk.as_mut().expect("a list of bytes").bytes_max = bytes_max;
        let written = generator.bulk_into(&mut sql, &statement, "INSERT INTO t VALUES", from);
        (String::from_utf8(sql).expect("text"), written)
    };
    let (sql, written) = next(36);
    assert_eq!(sql, "INSERT INTO t VALUES(1,1),(2,2),(3,3)".get(..31).unwrap_or_default());
    assert_eq!(written, 3);
    let (sql, written) = next(43);
    assert_eq!(sql, "INSERT INTO t VALUES(3,3),(4,4),(5,5),(6,6)");
    assert_eq!((sql.len(), written), (43, 18));
    assert_eq!(next(0).0, "INSERT INTO t VALUES(7,7)", "one row at least");
}
