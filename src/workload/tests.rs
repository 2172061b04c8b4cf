use super::distribution::Distribution;
use super::statement::StatementKind;
use super::*;

fn named(name: &str) -> Workload {
    builtin().into_iter().find(|w| w.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn with(name: &str, options: &[(&str, u64)]) -> Workload {
    let options = options.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    named(name).with_options(&options).unwrap_or_else(|e| panic!("{}", e.render()))
}

/// The statements of one op, by kind.
fn mix(workload: &Workload) -> [usize; 4] {
    let transaction = &workload.transactions[0];
    let running = workload.running(transaction);
    let passes = workload.passes(transaction);
    [StatementKind::Select, StatementKind::Update, StatementKind::Delete, StatementKind::Insert]
        .map(|kind| passes.iter().filter(|at| running[**at].0.kind() == kind).count())
}

#[test]
fn kind_of_a_statement_is_that_behind_with_and_its_tables() {
    for (sql, kind) in [
        ("WITH t AS (SELECT 1) SELECT * FROM t", StatementKind::Select),
        ("with t(a) as (select 1), u as (select 2) update sbtest1 set k=1", StatementKind::Update),
        (
            "WITH `delete` AS (SELECT ')' /* ( */), t1select AS (SELECT 1) DELETE FROM sbtest1",
            StatementKind::Delete,
        ),
        ("WITH t AS (SELECT 1", StatementKind::Other),
    ] {
        let workload = script("x", sql.as_bytes(), "x").expect(sql);
        let statement = &workload.transactions[0].statements[0];
        assert_eq!(statement.kind(), kind, "{sql}");
    }
}

#[test]
fn the_largest_table_is_found_where_statements_name_tables() {
    for (sql, largest) in [
        ("SELECT c FROM sbtest12 JOIN sbtest3", Some(12)),
        ("SELECT c FROM {table}", None),
        ("SELECT c FROM sbtest.t, sbtest0, sbtest99999999999", None),
    ] {
        let workload = script("x", sql.as_bytes(), "x").expect(sql);
        assert_eq!(workload.largest_table(), largest, "{sql}");
    }
}

#[test]
fn the_built_in_ones_have_their_names() {
    let names: Vec<String> = builtin().into_iter().map(|w| w.name).collect();
    assert_eq!(names[..3], ["point-select", "update-index", "update-non-index"]);
    assert_eq!(names.len(), 11 + 15);
    assert!(builtin().iter().all(|w| w.built_in));
    let own = Workload::parse(FILES[0], "own.toml").expect("one of them");
    assert!(!own.built_in, "a file of somebody's own");
    for sysbench in [
        "oltp_point_select",
        "oltp_update_index",
        "oltp_update_non_index",
        "oltp_read_only",
        "oltp_write_only",
        "oltp_read_write",
        "oltp_insert",
        "oltp_delete",
        "select_random_points",
        "select_random_ranges",
        "bulk_insert",
        "READ_PK_POINT",
        "READ_KEY_RANGE_NO_DATA_LIMIT",
    ] {
        let of = |w: &Workload| w.aliases.iter().any(|alias| alias == sysbench);
        assert_eq!(builtin().iter().filter(|w| of(w)).count(), 1, "{sysbench}");
    }
}

#[test]
fn the_mix_of_an_op_is_sysbenchs() {
    assert_eq!(mix(&named("read-only")), [14, 0, 0, 0]);
    assert_eq!(mix(&named("write-only")), [0, 2, 1, 1]);
    assert_eq!(mix(&named("read-write")), [14, 2, 1, 1]);
    let other =
        [("point_selects", 3), ("sum_ranges", 0), ("index_updates", 5), ("delete_inserts", 4)];
    assert_eq!(mix(&with("read-write", &other)), [6, 6, 4, 4]);
    // Pairs stay pairs: the row of one id is deleted and put back before the next one is.
    let pairs = with(
        "write-only",
        &[("index_updates", 0), ("non_index_updates", 0), ("delete_inserts", 3)],
    );
    assert_eq!(pairs.passes(&pairs.transactions[0]), [0, 1, 0, 1, 0, 1]);
}

#[test]
fn prepared_statements_are_counted_once_each() {
    // sysbench: nine a table, and BEGIN and COMMIT, which are text here.
    assert_eq!(named("read-write").prepared(), 9);
    assert_eq!(named("write-only").prepared(), 4);
    assert_eq!(named("read-only").prepared(), 5);
    assert_eq!(with("read-only", &[("sum_ranges", 0), ("point_selects", 99)]).prepared(), 4);
    assert_eq!(named("bulk-insert").prepared(), 0, "text");
    assert_eq!(named("random-points").prepared(), 1);
}

#[test]
fn transactions_are_a_matter_of_the_option() {
    for (skip, begins) in [(0, true), (1, false)] {
        let workload = with("read-write", &[("skip_trx", skip)]);
        assert_eq!(workload.begins(&workload.transactions[0]), begins);
    }
}

#[test]
fn lists_are_written_out_with_their_parameters() {
    let workload = with("random-ranges", &[("random_ranges", 2)]);
    let (sql, params) = workload.statements().next().expect("one").expanded(&workload.options);
    assert_eq!(sql, "SELECT count(k) FROM {table} WHERE k BETWEEN ? AND ? OR k BETWEEN ? AND ?");
    let ends: Vec<Option<usize>> = params.iter().map(Param::refers_to).collect();
    assert_eq!(ends, [None, Some(1), None, Some(3)]);
    // Parameters before and after a list refer to each other across it.
    let text = "name = 'x'\nabout = 'y'\n[[transaction]]\n[[transaction.statement]]\nkind = 'select'\n\
                sql = 'SELECT ? IN ({list}) AND ?'\nparams = [{ key = 'default' }, { same_as = 1 }]\n\
                list = { each = '?, ?', times = 2, params = ['k', { same_as = 1 }] }\nexpect = 'any'\n";
    let workload = Workload::parse(text, "w").unwrap_or_else(|e| panic!("{}", e.render()));
    let (sql, params) = workload.statements().next().expect("one").expanded(&workload.options);
    assert_eq!(sql, "SELECT ? IN (?, ?, ?, ?) AND ?");
    let ends: Vec<Option<usize>> = params.iter().map(Param::refers_to).collect();
    assert_eq!(ends, [None, None, Some(2), None, Some(4), Some(1)]);
}

#[test]
fn expected_rows_follow_from_the_tables_rows() {
    let bounds = |name: &str, held| {
        let workload = named(name);
        let rows = workload.statements().next().and_then(|s| s.expect.rows.clone());
        rows.expect("rows").bounds(&workload.options, held)
    };
    assert_eq!(bounds("read-key-point", Some(1_000_000)), (5000, 5000));
    assert_eq!(bounds("read-key-range", Some(1_000_000)), (1100, 1100));
    assert_eq!(bounds("read-key-range-limit", Some(1_000_000)), (50, 50));
    assert_eq!(bounds("read-key-point-limit", Some(999)), (4, 5));
    assert_eq!(bounds("read-key-range", Some(12_345)), (11, 22));
    assert_eq!(bounds("read-key-point", None), (0, u64::MAX), "foreign tables");
    assert_eq!(bounds("read-only", Some(7)), (1, 1));
}

#[test]
fn errors_point_at_the_line() {
    let text = "name = \"x\"\nabout = \"y\"\ntransacton = 1\n";
    let error = Workload::parse(text, "my.toml").expect_err("a misspelt key");
    let shown = error.to_string();
    assert!(shown.contains("my.toml") && shown.contains("line 3"), "{shown}");
}

/// A workload of one statement.
fn one(lines: &str) -> Result<Workload, String> {
    let text = format!(
        "name = 'x'\nabout = 'y'\n[options]\nn = 3\noff = false\n[[transaction]]\n\
         [[transaction.statement]]\nkind = 'select'\n{lines}\n"
    );
    Workload::parse(&text, "w").map_err(|e| e.to_string())
}

const KEY: &str = "[{ key = 'default' }]";

struct Fault {
    sql: &'static str,
    params: &'static str,
    expect: &'static str,
    why: &'static str,
}

const FAULTS: [Fault; 22] = [
    Fault { sql: "SELECT ?, ?", params: KEY, expect: "{ rows = 1 }", why: "2 `?` but 1 params" },
    Fault { sql: "SELECT ?", params: "[{ c_of = 1 }]", expect: "{ rows = 1 }", why: "holds no id" },
    Fault {
        sql: "SELECT ?, ?",
        params: "[{ c_of = 0 }, { key = 'default' }]",
        expect: "{ rows = 1 }",
        why: "no parameter",
    },
    Fault { sql: "SELECT ?", params: "[{ same_as = 2 }]", expect: "'any'", why: "no parameter" },
    Fault {
        sql: "SELECT ?, ?",
        params: "[{ same_as = 2 }, { same_as = 1 }]",
        expect: "'any'",
        why: "made from another",
    },
    Fault { sql: "SELECT ?", params: "[{ key = 'gauss' }]", expect: "{ rows = 1 }", why: "gauss" },
    Fault {
        sql: "SELECT ?",
        params: "[{ between = { min = 2, max = 1 } }]",
        expect: "'any'",
        why: "nothing between",
    },
    Fault { sql: "SELECT ?", params: "[{ digits = 0 }]", expect: "'any'", why: "digits" },
    Fault { sql: "SELECT ?", params: "[{ row = { per = 0 } }]", expect: "'any'", why: "per = 0" },
    Fault {
        sql: "SELECT ?",
        params: "[{ between = { min = 1, max = 2, x = 1 } }]",
        expect: "'any'",
        why: "keys in table: x",
    },
    Fault {
        sql: "SELECT ?",
        params: "[{ range_start = { len = 1, x = 1 } }]",
        expect: "'any'",
        why: "keys in table: x",
    },
    Fault {
        sql: "SELECT 1",
        params: "[]",
        expect: "{ rows = { min = 1, x = 2 } }",
        why: "affected",
    },
    Fault {
        sql: "SELECT ?",
        params: "[{ range_start = { len = 'm' } }]",
        expect: "'any'",
        why: "'m' is no option",
    },
    Fault {
        sql: "SELECT ?, ?",
        params: "['k', { range_end = { of = 1 } }]",
        expect: "'any'",
        why: "len or a delta",
    },
    Fault { sql: "SELECT ?", params: "[{ previous = 1 }]", expect: "'any'", why: "with_previous" },
    Fault {
        sql: "SELECT 1",
        params: "[]",
        expect: "{ rows = 1, content = 'c' }",
        why: "needs a key",
    },
    Fault { sql: "SELECT 1", params: "[]", expect: "{ cows = 1 }", why: "rows" },
    Fault { sql: "SELECT 1", params: "[]", expect: "{ rows = -1 }", why: "" },
    Fault { sql: "SELECT 1", params: "[]", expect: "{ rows = 1, affected = 1 }", why: "not both" },
    Fault {
        sql: "SELECT 1",
        params: "[]",
        expect: "{ rows = { min = 2, max = 1 } }",
        why: "2 to 1",
    },
    Fault { sql: "SELECT 1", params: "[]", expect: "'some'", why: "any" },
    Fault { sql: "SELECT {list}", params: "[]", expect: "'any'", why: "there is none" },
];

#[test]
fn contradictions_are_refused() {
    let with = |sql: &str, params: &str, expect: &str| {
        one(&format!("sql = '{sql}'\nparams = {params}\nexpect = {expect}")).map(|_| ())
    };
    assert_eq!(with("SELECT ?", KEY, "{ rows = 1 }"), Ok(()));
    assert_eq!(with("SELECT ?", "[{ key = 'pareto:0.2' }]", "'any'"), Ok(()));
    assert_eq!(with("SELECT \"?\" < ? -- ?", KEY, "{ rows = 1 }"), Ok(()));
    for Fault { sql, params, expect, why } in FAULTS {
        let error = with(sql, params, expect).expect_err(sql);
        assert!(error.contains(why), "{sql} {params} {expect}: {error}");
    }
}

#[test]
fn option_of_a_file_is_refused_when_it_is_in_the_written_form() {
    let read = |option: &str| {
        let statement = "sql = 'DO 1'\nexpect = 'any'";
        let text = format!(
            "name = 'a'\n[options]\nn = {option}\n[[transaction]]\n[[transaction.statement]]\n{statement}"
        );
        Workload::parse(&text, "a file").map(|workload| workload.options["n"].value)
    };
    assert_eq!(read("{ default = 1, about = 'it' }"), Ok(1));
    let written = serde_json::to_string(&with("read-write", &[("range_size", 5)]));
    let written = written.expect("plain data");
    let again = Workload::read_written(&mut serde_json::Deserializer::from_str(&written));
    assert_eq!(again.expect(&written).options["range_size"].value, 5);
    for option in ["{ default = 1, value = 5 }", "{ default = 1, switch = true }"] {
        assert!(read(option).is_err(), "{option}");
    }
}

#[test]
fn a_statement_is_refused_when_a_semicolon_separates_it_from_another() {
    let check = |sql: &str, list: &str| one(&format!("sql = {sql:?}\nexpect = 'any'\n{list}"));
    for sql in [
        "SELECT 1; ",
        "SELECT 1; -- done; indeed\n;",
        "SELECT 'a;b', \"c;'\", `d;` FROM t /* e; f */",
        "SELECT 'it''s; 1'",
    ] {
        assert_eq!(check(sql, "").map(|_| ()), Ok(()), "{sql}");
    }
    let list = "list = { each = 'DO 1', join = '; ', times = 2 }";
    for (sql, list) in [
        ("DO 1; DO 2", ""),
        ("DO 1;\n/* and */ DO 2;", ""),
        ("DO 1;DO '", ""),
        ("DO ';'; DO 2", ""),
        ("{list}", list),
    ] {
        check(sql, list).expect_err(sql);
    }
}

#[test]
fn repeats_and_lists_are_bounded_and_known() {
    let base = "sql = 'SELECT 1'\nexpect = 'any'\n";
    assert!(one(&format!("{base}repeat = 'n'")).is_ok());
    let list = |list: &str| one(&format!("sql = 'SELECT {{list}}'\nexpect = 'any'\nlist = {list}"));
    assert!(list("{ each = '1', times = 'n' }").is_ok());
    for (wrong, why) in [
        (one(&format!("{base}repeat = 'm'")), "'m' is no option; there are n, off"),
        (one(&format!("{base}repeat = 0")), "no statement left"),
        (one(&format!("{base}repeat = 1000000")), "more than"),
        (one(&format!("{base}with_previous = true")), "no statement before"),
        (one(&format!("{base}effect = 'delete'")), "changes nothing"),
        (one(&format!("{base}missing_if = 'm'")), "no option"),
        (list("{ each = '1' }"), "either times or bytes"),
        (list("{ each = '1', times = 0 }"), "nothing"),
        (list("{ each = '?', times = 70000, params = ['k'] }"), "more than 65535"),
        (list("{ each = '1', times = 1000000000 }"), "longer than 16777216"),
    ] {
        let error = wrong.expect_err(why);
        assert!(error.contains(why), "{why}: {error}");
    }
}

#[test]
fn the_k_of_inserted_rows_is_a_number() {
    let of = |param: &str, at: usize| {
        let text = format!(
            "name = 'x'\nabout = 'y'\n[[transaction]]\n[[transaction.statement]]\n\
             kind = 'insert'\nsql = 'INSERT INTO {{table}} (k) VALUES (?)'\nparams = [{param}]\n\
             expect = {{ affected = 1 }}\neffect = {{ insert_k = {at} }}\n"
        );
        Workload::parse(&text, "w").map_err(|e| e.to_string())
    };
    for number in ["'k'", "'serial'", "{ const = -3 }", "{ between = { min = 1, max = 2 } }"] {
        assert!(of(number, 1).is_ok(), "{number}");
    }
    for text in ["'pad'", "{ digits = 3 }", "{ const = '3' }"] {
        assert!(of(text, 1).is_err(), "{text}");
    }
    for at in [0, 2] {
        assert!(of("'k'", at).is_err_and(|e| e.contains(&at.to_string())), "{at}");
    }
}

#[test]
fn options_are_set_within_what_they_are() {
    let workload = with("read-only", &[("range_size", 7)]);
    let expanded = workload.statements().nth(1).map(|s| s.expect.rows.clone());
    let bounds = expanded.flatten().map(|rows| rows.bounds(&workload.options, None));
    assert_eq!(bounds, Some((1, 7)));
    let set =
        |name: &str, value| named("read-only").with_options(&[(name.to_owned(), value)].into());
    assert!(set("point_select", 1).is_err_and(|e| e.to_string().contains("there are")));
    assert!(set("skip_trx", 2).is_err_and(|e| e.to_string().contains("switch")));
    assert!(set("range_size", u64::MAX).is_err());
    let nothing =
        ["point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges"];
    let mut nothing: BTreeMap<String, u64> = nothing.iter().map(|n| ((*n).to_owned(), 0)).collect();
    assert!(named("read-only").with_options(&nothing).is_ok(), "BEGIN and COMMIT are left");
    nothing.insert("skip_trx".to_owned(), 1);
    assert!(named("read-only").with_options(&nothing).is_err());
}

#[test]
fn ranges_must_fit_into_the_tables() {
    assert!(named("read-pk-range").fits(101).is_ok());
    let error = named("read-pk-range").fits(100).expect_err("too small").to_string();
    assert!(error.contains("ranges of 101 rows") && error.contains("100"), "{error}");
    assert!(named("read-only").fits(1).is_ok(), "its ranges may reach beyond the end");
}

#[test]
fn rows_of_a_list_stand_behind_each_other_and_must_be_there() {
    let text = "name = 'hot'\n[[transaction]]\n[[transaction.statement]]\n\
                sql = 'SELECT c FROM {table} WHERE id IN ({list})'\n\
                list = { each = '?', times = 3, params = [{ row = { per = 2, plus = 1 } }] }";
    let hot = Workload::parse(text, "hot").expect("sound");
    let (_, params) = hot.transactions[0].statements[0].expanded(&hot.options);
    let row = |plus| Param::Row { per: 2, plus };
    assert_eq!(params, [row(1), row(2), row(3)]);
    assert!(hot.fits(6).is_ok() && hot.fits(4).is_err());

    // Without `plus`, a table of one row has half a row.
    let first = Workload::parse(&text.replace(", plus = 1", ""), "hot").expect("sound");
    assert!(first.fits(6).is_ok() && first.fits(1).is_err());
    let refused = Workload::parse(&text.replace("times = 3", "bytes = 100"), "hot");
    assert!(refused.expect_err("always the same row").to_string().contains("times"));
}

#[test]
fn only_some_write() {
    let writing: Vec<String> =
        builtin().into_iter().filter(Workload::writes).map(|w| w.name).collect();
    assert_eq!(
        writing,
        [
            "update-index",
            "update-non-index",
            "write-only",
            "read-write",
            "insert",
            "delete",
            "bulk-insert",
            "update-point-pk",
            "update-range-pk",
        ]
    );
}

#[test]
fn a_key_may_have_its_own_distribution() {
    let workload = one("sql = 'SELECT ?'\nparams = [{ key = 'zipf:0.9' }]\nexpect = 'any'");
    let workload = workload.expect("fine");
    let params = &workload.statements().next().expect("one").params;
    assert_eq!(params[..], [Param::Key(KeySource(Some(Distribution::Zipf(0.9))))]);
}

fn effect_of(kind: &str, sql: &str, effect: &str) -> Workload {
    let text = format!(
        "name = 'x'\nabout = 'y'\n[[transaction]]\n[[transaction.statement]]\nkind = '{kind}'\n\
         sql = '{sql}'\nexpect = 'any'\n{effect}"
    );
    Workload::parse(&text, "w").unwrap_or_else(|e| panic!("{}", e.render()))
}

#[test]
fn what_is_built_in_is_followed() {
    for workload in builtin() {
        assert_eq!(workload.unfollowed(), None, "{}", workload.name);
    }
}

struct Untold {
    kind: &'static str,
    sql: &'static str,
    effect: &'static str,
    says: Option<&'static str>,
}

#[test]
fn what_an_effect_does_not_tell_is_said() {
    let add = "effect = { add_k = 1 }";
    for Untold { kind, sql, effect, says } in [
        Untold { kind: "update", sql: "UPDATE {table} SET k = k + 1", effect: add, says: None },
        Untold { kind: "update", sql: "UPDATE {table} SET k = k + 1;", effect: add, says: None },
        Untold {
            kind: "update",
            sql: "UPDATE {table} SET pad = 1",
            effect: "",
            says: Some("gives no effect"),
        },
        Untold {
            kind: "other",
            sql: " replace into sbtest1 (id) VALUES (1)",
            effect: "",
            says: Some("gives no effect"),
        },
        Untold {
            kind: "delete",
            sql: "DELETE FROM SBTEST1",
            effect: "",
            says: Some("gives no effect"),
        },
        Untold { kind: "insert", sql: "INSERT INTO visits VALUES (1)", effect: "", says: None },
        Untold {
            kind: "update",
            sql: "UPDATE sbtest1 SET k = k + 1",
            effect: add,
            says: Some("does not say {table}"),
        },
        Untold { kind: "other", sql: "START TRANSACTION READ ONLY", effect: "", says: None },
        Untold { kind: "other", sql: "OPTIMIZE TABLE {table}", effect: "", says: None },
        Untold {
            kind: "other",
            sql: "call p()",
            effect: "",
            says: Some("runs SQL that loadgen does not see"),
        },
        Untold { kind: "other", sql: "CALL p({table})", effect: add, says: None },
        Untold {
            kind: "other",
            sql: "TRUNCATE {table}",
            effect: "effect = 'delete'",
            says: Some("does not show how many rows it removed"),
        },
        Untold {
            kind: "select",
            sql: "/* update */ SELECT c FROM {table}",
            effect: "",
            says: None,
        },
    ] {
        let why = effect_of(kind, sql, effect).unfollowed();
        assert_eq!(why.is_some(), says.is_some(), "{sql}: {why:?}");
        assert!(why.unwrap_or_default().ends_with(says.unwrap_or_default()), "{sql}");
    }
    assert!(effect_of("other", "TRUNCATE {table}", "").writes());
    let calls = effect_of("other", "CALL p()", "");
    assert_eq!((calls.writes(), calls.may_write()), (false, true));
}

#[test]
fn statement_within_another_one_is_seen_when_it_writes() {
    for (sql, writes) in [
        ("SET STATEMENT max_statement_time = 1 FOR DELETE FROM {table}", true),
        ("ANALYZE FORMAT=JSON UPDATE {table} SET k = 1", true),
        ("SET STATEMENT max_statement_time = 1 FOR SELECT c FROM {table}", false),
        ("SET @statement = 1, @delete = 2", false),
        ("SET STATEMENT sql_mode = REPLACE(@@sql_mode, 1, 2) FOR SELECT c FROM {table}", false),
        ("ANALYZE TABLE {table}", false),
        ("ANALYZE TABLE {table} UPDATE HISTOGRAM ON k", false),
    ] {
        let workload = effect_of("other", sql, "");
        assert_eq!((workload.writes(), workload.unfollowed().is_some()), (writes, writes), "{sql}");
    }
    assert!(
        effect_of("other", "SET STATEMENT max_statement_time = 1 FOR CALL p()", "").may_write()
    );
}
