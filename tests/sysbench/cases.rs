//! Command lines, and what is known to differ.

/// Command lines that one program runs one after the other in an empty database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) lines: &'static [&'static str],
    /// Files of the working directory.
    pub(crate) files: &'static [(&'static str, &'static str)],
    pub(crate) order: Order,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Same,
    /// Several threads print, each when it is there.
    Any,
    /// DEBUG lines are no part of the contract.
    WithoutDebug,
    /// The names, types and defaults of options.
    Help,
}

const fn case(name: &'static str, lines: &'static [&'static str]) -> Case {
    Case { name, lines, files: &[], order: Order::Same }
}

impl Case {
    const fn ordered(self, order: Order) -> Case {
        Case { order, ..self }
    }

    const fn with(self, files: &'static [(&'static str, &'static str)]) -> Case {
        Case { files, ..self }
    }
}

/// What is documented to differ, in one line of one case.
pub(crate) struct Known {
    pub(crate) case: &'static str,
    /// Which line of the case, from 0.
    pub(crate) line: usize,
    pub(crate) why: &'static str,
    pub(crate) ours: Ours,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Ours {
    /// The text is sysbench's, the exit status another one.
    Status(i32),
    /// It does what sysbench does with this line instead.
    Like(&'static str),
    /// It ends with this status and a line on standard error.
    Refuses(i32),
    /// It prints a line less often, which docs/user/from-sysbench.md says.
    Fewer,
    /// It fails with this status and a FATAL line.
    Fatal(i32),
}

pub(crate) const KNOWN: &[Known] = &[
    Known {
        case: "every command of bulk_insert",
        line: 2,
        why: "a last INSERT that fails is a failure",
        ours: Ours::Status(1),
    },
    Known {
        case: "no tables",
        line: 8,
        why: "a last INSERT that fails is a failure",
        ours: Ours::Status(1),
    },
    Known {
        case: "traps of a file of options",
        line: 1,
        why: "a warning about an unknown name is for the whole command, not for each thread",
        ours: Ours::Fewer,
    },
    Known {
        case: "traps of a file of options",
        line: 3,
        why: "a warning about an unknown name is for the whole command, not for each thread",
        ours: Ours::Fewer,
    },
    Known { case: "no server is asked", line: 0, why: "--mysql-dry-run", ours: Ours::Refuses(1) },
    Known {
        case: "traps of a file of options",
        line: 0,
        why: "sysbench prints a text without an end before its header",
        ours: Ours::Like(
            "--config-file=unknown {at} --tables=2 --table-size=100 oltp_read_only prepare",
        ),
    },
    Known {
        case: "an INT that is none",
        line: 4,
        why: "sysbench takes any port and fails to connect",
        ours: Ours::Refuses(1),
    },
    Known {
        case: "a built-in test without a command",
        line: 1,
        why: "loadgen has no built-in test",
        ours: Ours::Refuses(1),
    },
    Known {
        case: "an unknown test",
        line: 2,
        why: "the test of 0.4, which 1.0.20 refuses",
        ours: Ours::Like("oltp_read_write run"),
    },
    Known {
        case: "an unknown test",
        line: 3,
        why: "a script is known by its base name, wherever it lies",
        ours: Ours::Like("oltp_read_only run"),
    },
    Known {
        case: "values out of range",
        line: 2,
        why: "a distribution of 1.1, which 1.0.20 refuses",
        ours: Ours::Like("--rand-type=uniform oltp_read_only run"),
    },
    Known {
        case: "level 5",
        line: 4,
        why: "there is no library whose calls could be told",
        ours: Ours::Like("oltp_point_select {at} {t} --events=20 run"),
    },
    Known {
        case: "--test=",
        line: 4,
        why: "the test of 0.4, which 1.0.20 refuses",
        ours: Ours::Like("--test=oltp_read_write {at} --table-size=100 --max-requests=20 run"),
    },
    Known {
        case: "mmtests",
        line: 0,
        why: "the test of 0.4, which 1.0.20 refuses",
        ours: Ours::Like("--test=oltp_read_write {at} --table-size=100 prepare"),
    },
    Known {
        case: "mmtests",
        line: 1,
        why: "the test of 0.4, which 1.0.20 refuses",
        ours: Ours::Like(
            "--test=oltp_read_write {at} --table-size=100 --num-threads=2 --max-requests=20 run",
        ),
    },
    Known {
        case: "lists of hosts and ports",
        line: 1,
        why: "a run of loadgen has one server",
        ours: Ours::Refuses(1),
    },
    Known {
        case: "lists of hosts and ports",
        line: 2,
        why: "a run of loadgen has one server",
        ours: Ours::Refuses(1),
    },
    Known {
        case: "prepare of several threads where the tables are there",
        line: 1,
        why: "sysbench ends with 0 whatever a parallel prepare did",
        ours: Ours::Status(1),
    },
    Known {
        case: "prewarm of several threads without tables",
        line: 0,
        why: "sysbench ends with 0 whatever a parallel prewarm did",
        ours: Ours::Status(1),
    },
    Known {
        case: "prepare of several threads without a server",
        line: 0,
        why: "sysbench ends with 0 whatever a parallel prepare did",
        ours: Ours::Status(1),
    },
    Known {
        case: "PerfKitBenchmarker with its timeout of threads",
        line: 1,
        why: "an option of 1.1, which 1.0.20 refuses",
        ours: Ours::Like("oltp_read_write --db-driver=mysql {t} {tcp} --time=1 run"),
    },
    Known {
        case: "mytools with its warm-up",
        line: 1,
        why: "an option of 1.1, which 1.0.20 refuses",
        ours: Ours::Like("--time=1 {t} {at} oltp_point_select run"),
    },
    Known {
        case: "warmup instead of prewarm",
        line: 1,
        why: "a command of 1.1, which 1.0.20 refuses",
        ours: Ours::Like("oltp_read_only {at} {t} prewarm"),
    },
    Known {
        case: "--mysql-ssl where the server has none",
        line: 1,
        why: "sysbench falls back to plain text without a word",
        ours: Ours::Fatal(1),
    },
    Known { case: "an empty --rand-type", line: 1, why: "sysbench crashes", ours: Ours::Fatal(1) },
    Known { case: "a built-in test", line: 0, why: "loadgen has none", ours: Ours::Refuses(1) },
    Known {
        case: "a compressed protocol",
        line: 1,
        why: "loadgen has none: other bytes, other CPU time",
        ours: Ours::Refuses(1),
    },
    Known {
        case: "a PostgreSQL server",
        line: 0,
        why: "loadgen speaks to MySQL only",
        ours: Ours::Refuses(1),
    },
];

pub(crate) const CASES: &[Case] = &[
    // Answered at once.
    case("no word", &[""]),
    case("--version", &["--version", "oltp_read_only --version run", "--version --foo"]),
    case("--version with a third word", &["a b c --version"]),
    case("-V is a test", &["-V", "-V run"]),
    case("a third word", &["oltp_read_only run more", "a b c"]),
    case("a value behind a blank", &["--threads 4 run"]),
    case("--threads=0", &["--threads=0 oltp_read_only run", "--threads oltp_read_only run"]),
    case(
        "an INT that is none",
        &[
            "--threads=abc oltp_read_only run",
            "--events=1m oltp_read_only run",
            "--percentile=99.9 oltp_read_only run",
            "oltp_read_only run --report_interval=2K",
            "--mysql-port=x oltp_read_only run",
        ],
    ),
    case(
        "an unknown option",
        &[
            "--foo=1 oltp_read_only run",
            "oltp_read_only --foo run",
            "oltp_read_only run --foo_bar=x --skip-trx",
            "-- oltp_read_only run",
            "--no-skip-trx oltp_read_only run",
            "--thread=4 oltp_read_only run",
        ],
    ),
    case(
        "a BOOL that is none",
        &[
            "--skip_trx=maybe oltp_read_only run",
            "--skip_trx=ON oltp_read_only run",
            "--histogram=2 oltp_read_only run",
        ],
    ),
    case("an unknown command", &["oltp_read_only frob", "bulk_insert prewarm", "bulk_insert help"]),
    case(
        "an unknown test",
        &["nosuch run", "run", "oltp run", "oltp_read_only.lua run", "./nosuch.lua run", "nosuch"],
    ),
    case("oltp_common cannot be run", &["oltp_common run"]),
    case("no command", &["oltp_common", "oltp_read_write", "bulk_insert", "bulk_insert --foo"]),
    case(
        "values out of range",
        &[
            "--percentile=101 oltp_read_only run",
            "--percentile=-1 oltp_read_only run",
            "--rand-type=zipfian oltp_read_only run",
            "--verbosity=6 oltp_read_only run",
            "--histogram --percentile=0 oltp_point_select run",
            "--forced-shutdown=abc --time=1 oltp_point_select run",
            "--report-checkpoints=x oltp_point_select run",
            "--db-driver=foo oltp_read_only run",
            "--db-driver=foo oltp_read_only prepare",
            "--db-driver=foo --threads=2 oltp_read_only cleanup",
            "--db-ps-mode=foo {at} oltp_read_only run",
        ],
    ),
    case("a built-in test", &["cpu --time=1 run"]),
    case("a built-in test without a command", &["cpu", "cpu frob"]),
    case("a PostgreSQL server", &["--db-driver=pgsql oltp_read_only run"]),
    case(
        "help of a test",
        &[
            "oltp_read_only help",
            "oltp_common help",
            "help oltp_read_write help",
            "select_random_points help",
            "select_random_ranges help",
            "--threads=4 oltp_insert help",
        ],
    )
    .ordered(Order::Help),
    case("--help", &["--help", "oltp_read_only --help run"]).ordered(Order::Help),
    // Tests and commands.
    case(
        "every command of oltp_read_write",
        &[
            "oltp_read_write {at} {t} prepare",
            "oltp_read_write {at} {t} prewarm",
            "oltp_read_write {at} {t} --events=20 run",
            "oltp_read_write {tcp} {t} --events=20 run",
            "oltp_read_write {at} {t} cleanup",
            "oltp_read_write {at} {t} cleanup",
        ],
    ),
    case(
        "every command of oltp_read_only",
        &[
            "oltp_read_only {at} {t} prepare",
            "oltp_read_only {at} {t} prewarm",
            "oltp_read_only {at} {t} --events=20 run",
            "oltp_read_only {at} {t} --events=20 --range_selects=off --skip-trx run",
            "oltp_read_only {at} {t} --events=20 --point-selects=1 --simple_ranges=0 --range-size=5 run",
            "oltp_read_only {at} {t} cleanup",
        ],
    ),
    case(
        "every command of oltp_write_only",
        &[
            "oltp_write_only {at} {t} prepare",
            "oltp_write_only {at} {t} --events=20 run",
            "oltp_write_only {at} {t} --events=20 --delete_inserts=0 --index_updates=2 run",
            "oltp_write_only {at} {t} --events=20 --skip_trx run",
            "oltp_write_only {at} {t} cleanup",
        ],
    ),
    case(
        "every command of oltp_point_select",
        &[
            "oltp_point_select {at} {t} prepare",
            "oltp_point_select {at} {t} --events=20 run",
            "oltp_point_select {at} {t} --events=20 --point_selects=5 run",
            "oltp_point_select {at} {t} --events=20 --threads=3 run",
            "oltp_point_select {at} {t} cleanup",
        ],
    ),
    case(
        "every command of oltp_update_index",
        &[
            "oltp_update_index {at} {t} prepare",
            "oltp_update_index {at} {t} --events=20 run",
            "oltp_update_index {at} {t} --events=20 --index_updates=3 run",
            "oltp_update_index {at} {t} cleanup",
        ],
    ),
    case(
        "every command of oltp_update_non_index",
        &[
            "oltp_update_non_index {at} {t} prepare",
            "oltp_update_non_index {at} {t} --events=20 run",
            "oltp_update_non_index {at} {t} --events=20 --non_index_updates=3 run",
            "oltp_update_non_index {at} {t} cleanup",
        ],
    ),
    case(
        "every command of oltp_insert",
        &[
            "oltp_insert {at} {t} prepare",
            "oltp_insert {at} {t} --events=20 run",
            "oltp_insert {at} {t} cleanup",
            "oltp_insert {at} {t} --auto_inc=off prepare",
            "oltp_insert {at} {t} --auto_inc=off --events=20 run",
            "oltp_insert {at} {t} --auto_inc=off cleanup",
        ],
    ),
    case(
        "every command of oltp_delete",
        &[
            "oltp_delete {at} {t} prepare",
            "oltp_delete {at} {t} --events=20 run",
            "oltp_delete {at} {t} cleanup",
        ],
    ),
    case(
        "every command of select_random_points",
        &[
            "select_random_points {at} --table-size=100 prepare",
            "select_random_points {at} --table-size=100 prewarm",
            "select_random_points {at} --table-size=100 --events=20 run",
            "select_random_points {at} --table-size=100 --random_points=3 --events=20 run",
            "select_random_points {at} --table-size=100 cleanup",
        ],
    ),
    case(
        "select_random_points of several tables",
        &[
            "select_random_points {at} {t} prepare",
            "select_random_points {at} {t} --events=20 run",
            "select_random_points {at} {t} cleanup",
        ],
    ),
    case(
        "every command of select_random_ranges",
        &[
            "select_random_ranges {at} --table-size=100 prepare",
            "select_random_ranges {at} --table-size=100 --events=20 run",
            "select_random_ranges {at} --table-size=100 --number_of_ranges=3 --delta=2 --events=20 run",
            "select_random_ranges {at} --table-size=100 cleanup",
        ],
    ),
    case(
        "every command of bulk_insert",
        &[
            "bulk_insert {at} prepare",
            "bulk_insert {at} --events=20 run",
            "bulk_insert {at} --events=20 run",
            "bulk_insert {at} cleanup",
            "bulk_insert {at} --threads=2 prepare",
            "bulk_insert {at} --threads=2 --events=20 run",
            "bulk_insert {at} --threads=2 cleanup",
        ],
    )
    .ordered(Order::Any),
    case(
        "bulk_insert takes any option",
        &[
            "bulk_insert {at} --foo=1 --tables=3 prepare",
            "bulk_insert {at} --foo=1 --events=20 run",
            "bulk_insert {at} cleanup",
        ],
    ),
    case(
        "every command of oltp_common",
        &[
            "oltp_common {at} {t} prepare",
            "oltp_common {at} {t} prewarm",
            "oltp_common {at} {t} cleanup",
        ],
    ),
    case(
        "scripts by their paths",
        &[
            "/usr/share/sysbench/oltp_read_write.lua {at} {t} prepare",
            "/usr/share/sysbench/oltp_read_only.lua {at} {t} --events=20 run",
            "/usr/share/sysbench/select_random_points.lua {at} --events=20 --table-size=100 run",
            "/usr/share/sysbench/oltp_common.lua {at} {t} cleanup",
        ],
    ),
    case(
        "warmup instead of prewarm",
        &["oltp_read_only {at} {t} prepare", "oltp_read_only {at} {t} warmup"],
    ),
    // Tables.
    case(
        "tables of several threads",
        &[
            "oltp_read_write {at} --tables=5 --table-size=100 --threads=3 prepare",
            "oltp_read_write {at} --tables=5 --table-size=100 --threads=3 prewarm",
            "oltp_read_write {at} --tables=5 --table-size=100 --threads=3 cleanup",
        ],
    )
    .ordered(Order::Any),
    case(
        "options of prepare",
        &[
            "oltp_read_write {at} {t} --create_secondary=off prepare",
            "oltp_read_write {at} {t} cleanup",
            "oltp_read_write {at} {t} --secondary prepare",
            "oltp_read_write {at} {t} cleanup",
            "oltp_read_write {at} {t} --mysql_storage_engine=myisam --auto-inc=off --verbosity=1 prepare",
            "oltp_read_write {at} {t} --verbosity=1 --events=20 run",
            "oltp_read_write {at} {t} --verbosity=0 cleanup",
            "oltp_read_write {at} --tables=2 --table-size=0 prepare",
            "oltp_read_write {at} --tables=2 cleanup",
        ],
    ),
    case(
        "sizes with suffixes",
        &[
            "oltp_read_write {at} --table-size=10K prepare",
            "oltp_read_write {at} --table-size=1M --events=5 run",
            "oltp_read_write {at} --table-size=1e2 --tables=abc cleanup",
            "oltp_read_write {at} --tables=1.9 cleanup",
        ],
    ),
    // Options of a run.
    case(
        "interval lines",
        &[
            "oltp_read_write {at} {t} prepare",
            "oltp_read_write {at} {t} --time=2 --report-interval=1 run",
        ],
    ),
    case(
        "interval lines of a percentile",
        &[
            "oltp_read_only {at} {t} prepare",
            "oltp_read_only {at} {t} --time=2 --report-interval=1 --percentile=99 --threads=2 run",
            "oltp_read_only {at} {t} --time=2 --report-interval=1 --percentile=0 run",
        ],
    ),
    case(
        "interval lines with a rate",
        &[
            "oltp_point_select {at} {t} prepare",
            "oltp_point_select {at} {t} --time=2 --report-interval=1 --rate=50 --threads=2 run",
        ],
    ),
    case(
        "checkpoints",
        &[
            "oltp_point_select {at} {t} prepare",
            "oltp_point_select {at} {t} --time=3 --report-checkpoints=1,2 run",
        ],
    ),
    case(
        "a checkpoint and a histogram",
        &[
            "oltp_point_select {at} {t} prepare",
            "oltp_point_select {at} {t} --time=2 --report-checkpoints=1 --histogram run",
        ],
    ),
    case(
        "histograms and percentiles",
        &[
            "oltp_point_select {at} {t} prepare",
            "oltp_point_select {at} {t} --events=50 --histogram run",
            "oltp_point_select {at} {t} --events=50 --histogram=on --percentile=99 --verbosity=0 run",
            "oltp_point_select {at} {t} --events=50 --percentile=0 run",
            "oltp_point_select {at} {t} --events=50 --percentile=1 run",
            "oltp_point_select {at} {t} --events=50 --percentile=50 run",
            "oltp_point_select {at} {t} --events=50 --percentile=100 run",
            "oltp_point_select {at} {t} --events=50 --percentile= run",
        ],
    ),
    case(
        "levels",
        &[
            "oltp_point_select {at} {t} prepare",
            "oltp_point_select {at} {t} --events=20 --verbosity=0 run",
            "oltp_point_select {at} {t} --events=20 --verbosity=1 run",
            "oltp_point_select {at} {t} --events=20 --verbosity=2 run",
            "oltp_point_select {at} {t} --events=20 --verbosity=3 run",
            "oltp_point_select {at} {t} --events=20 --verbosity=4 run",
            "oltp_point_select {at} {t} --events=20 --verbosity=4 --threads=3 run",
            "oltp_point_select {at} {t} --time=1 --verbosity=4 --threads=2 run",
        ],
    ),
    case(
        "level 5",
        &[
            "oltp_point_select {at} {t} prepare",
            "oltp_point_select {at} {t} --events=20 --verbosity=5 run",
            "oltp_point_select {at} {t} --events=20 --debug run",
            "oltp_point_select {at} {t} --events=20 --debug --verbosity=1 run",
            "oltp_point_select {at} {t} --events=20 --mysql-debug --db-driver=mysql run",
        ],
    )
    .ordered(Order::WithoutDebug),
    case(
        "options that do nothing",
        &[
            "oltp_point_select {at} {t} prepare",
            "oltp_point_select {at} {t} --events=20 --validate run",
            "oltp_point_select {at} {t} --events=20 --validate=off --thread-stack-size=256K run",
        ],
    ),
    case(
        "text mode",
        &[
            "oltp_read_write {at} {t} --db-ps-mode=disable prepare",
            "oltp_read_write {at} {t} --db-ps-mode=disable --events=20 run",
            "oltp_read_write {at} {t} --db-ps-mode=auto --events=20 run",
        ],
    ),
    case(
        "distributions",
        &[
            "oltp_read_only {at} {t} --rand-type=uniform prepare",
            "oltp_read_only {at} {t} --events=20 --rand-type=uniform run",
            "oltp_read_only {at} {t} --events=20 --rand-type=gaussian run",
            "oltp_read_only {at} {t} --events=20 --rand-type=special --rand-spec-pct=5 run",
            "oltp_read_only {at} {t} --events=20 --rand-type=pareto --rand-pareto-h=0.1 run",
            "oltp_read_only {at} {t} --events=20 --rand-spec-iter=3 --rand-spec-res=50 run",
            "oltp_read_only {at} {t} --events=20 --rand-seed=42 run",
        ],
    ),
    case(
        "an empty --rand-type",
        &[
            "oltp_point_select {at} {t} prepare",
            "oltp_point_select {at} {t} --events=20 --rand-type= run",
        ],
    ),
    case(
        "limits",
        &[
            "oltp_point_select {at} {t} prepare",
            "oltp_point_select {at} {t} --time=1 --events=0 run",
            "oltp_point_select {at} {t} --time=1 --events=1000000 run",
            "oltp_point_select {at} {t} --time=0 --events=20 run",
            "oltp_point_select {at} {t} --events=10 --time=20 --forced-shutdown run",
            "oltp_point_select {at} {t} --time=1 --forced-shutdown=9 run",
            "oltp_point_select {at} {t} --events=10 --time=20 --forced-shutdown=50% run",
        ],
    ),
    case(
        "a rate",
        &[
            "oltp_point_select {at} {t} prepare",
            "oltp_point_select {at} {t} --time=1 --rate=50 run",
            "oltp_point_select {at} {t} --events=20 --rate=500 --threads=2 run",
        ],
    ),
    case(
        "options anywhere, with _ and -, the last of equals",
        &[
            "--tables=2 {at} oltp_read_write --table_size=100 prepare --verbosity=3",
            "{at} --events=5 oltp_read_write run --table_size=100 --tables=2 --events=20",
            "--report_interval=1 {at} oltp_read_write --skip-trx=off --time=1 {t} run --mysql_host=nowhere",
            "oltp_read_write cleanup {at} --tables=2 --threads=8",
        ],
    ),
    // What was there before 1.0.
    case(
        "--test=",
        &[
            "--test=oltp_read_only {at} {t} prepare",
            "--test=oltp_read_only {at} {t} --events=20 run",
            "--test=/usr/share/sysbench/oltp_read_only.lua {at} {t} --events=20 run",
            "run --test=oltp_read_only",
            "--test=oltp {at} --oltp-table-size=100 --max-requests=20 run",
            "--test=nosuch run",
            "{at} --test=oltp_read_only {t} cleanup",
        ],
    ),
    case(
        "old names of options",
        &[
            "oltp_read_only {at} {t} prepare",
            "oltp_read_only {at} {t} --num-threads=2 --max-requests=20 run",
            "oltp_read_only {at} {t} --max-time=1 --tx-rate=50 run",
            "oltp_read_only {at} {t} --num-threads=1 --max-requests=0 --tx-rate=0 --events=20 run",
            "--test=oltp_read_only --num-threads=2 --max-time=1 --max-requests=0 {at} {t} run",
        ],
    ),
    // A file of options.
    case(
        "a file of options",
        &[
            "--config-file=at {t} --threads=1 oltp_read_only prepare",
            "--config-file=at {t} --threads=1 oltp_read_only run",
            "--config-file=at {t} oltp_read_only run",
            "{t} oltp_read_only run --config-file=at --events=10",
            "{t} oltp_read_only cleanup --config-file=at",
        ],
    )
    .with(&[(
        "at",
        "mysql-socket={socket}\nmysql-user=root # the user\nmysql-db={db}\nthreads=2\n\
         events=20\ntime=5\nreport-interval=10\ndb-driver=mysql\n",
    )]),
    case(
        "traps of a file of options",
        &[
            "--config-file=tests {at} --tables=2 --table-size=100 oltp_read_only prepare",
            "--config-file=tests {at} --table-size=100 --events=10 oltp_read_only run",
            "--config-file=off {at} --table-size=100 --tables=2 --events=10 oltp_read_only run",
            "--config-file=comment {at} --table-size=100 --tables=2 --events=10 oltp_read_only run",
            "--config-file=quotes {at} --table-size=100 --tables=2 --events=10 oltp_read_only run",
            "--config-file=secret {at} --table-size=100 --tables=2 --events=10 --mysql-password= oltp_read_only run",
            "{at} --mysql-password=wrong --table-size=100 --tables=2 --events=10 --mysql-password= oltp_read_only run",
        ],
    )
    .with(&[
        ("tests", "tables=7\nskip_trx=on\nfoo=bar\n"),
        ("unknown", "foo=bar\n"),
        ("secret", "mysql-password=wrong\n"),
        ("off", "histogram=off\n"),
        ("comment", "# threads=4\nevents=10\n"),
        ("quotes", "rand-type=\"uniform\"\n"),
    ]),
    case(
        "a file of options that is not there",
        &[
            "--config-file=nowhere oltp_common {at} {t} prepare",
            "--config-file={dir}/nowhere oltp_common {at} {t} cleanup",
        ],
    ),
    // Errors of a server.
    case(
        "no account",
        &[
            "oltp_point_select {at} --mysql-user=nobody prepare",
            "oltp_point_select {at} --mysql-user=nobody run",
            "oltp_point_select {tcp} --mysql-user=nobody --mysql-password=x run",
            "oltp_point_select {at} --mysql-user=nobody cleanup",
            "bulk_insert {at} --mysql-user=nobody run",
        ],
    ),
    case(
        "no database",
        &[
            "oltp_point_select {at} --mysql-db=nosuch prepare",
            "oltp_point_select {at} --mysql-db=nosuch run",
        ],
    ),
    case(
        "no server",
        &[
            "oltp_point_select --mysql-host=127.0.0.1 --mysql-port=1 prepare",
            "oltp_point_select --mysql-host=127.0.0.1 --mysql-port=1 --time=1 run",
            "oltp_point_select --mysql-host=127.0.0.1 --mysql-port=1 cleanup",
            "oltp_point_select --mysql-socket=/nonexistent prepare",
            "oltp_point_select --mysql-socket=/nonexistent run",
        ],
    ),
    case(
        "no server for several threads",
        &["oltp_point_select --mysql-socket=/nonexistent --threads=3 run"],
    )
    .ordered(Order::Any),
    case(
        "prepare of several threads without a server",
        &["oltp_point_select --mysql-socket=/nonexistent --tables=2 --threads=2 prepare"],
    )
    .ordered(Order::Any),
    case(
        "no tables",
        &[
            "oltp_point_select {at} {t} --time=1 run",
            "oltp_read_write {at} {t} --time=1 run",
            "oltp_insert {at} {t} --time=1 run",
            "oltp_point_select {at} --db-ps-mode=disable --time=1 run",
            "oltp_read_only {at} --db-ps-mode=disable --time=1 run",
            "oltp_delete {at} {t} --time=1 run",
            "select_random_points {at} --time=1 run",
            "oltp_read_write {at} {t} prewarm",
            "bulk_insert {at} --events=5 run",
        ],
    ),
    case(
        "a table too few",
        &["oltp_read_only {at} {t} prepare", "oltp_read_only {at} --tables=3 --table-size=100 run"],
    ),
    case(
        "more rows than there are",
        &[
            "oltp_read_write {at} {t} prepare",
            "oltp_read_write {at} --tables=2 --table-size=100000 --events=20 run",
            "oltp_read_write {at} --tables=1 --table-size=10 --events=20 run",
        ],
    ),
    case(
        "tables that are there",
        &[
            "oltp_read_only {at} {t} prepare",
            "oltp_read_only {at} {t} prepare",
            "oltp_read_only {at} --tables=3 --table-size=10 prepare",
        ],
    ),
    case(
        "prepare of several threads where the tables are there",
        &["oltp_read_only {at} {t} prepare", "oltp_read_only {at} {t} --threads=2 prepare"],
    )
    .ordered(Order::Any),
    case(
        "prewarm of several threads without tables",
        &["oltp_read_only {at} {t} --threads=2 prewarm"],
    )
    .ordered(Order::Any),
    case(
        "rows of other programs",
        &[
            "oltp_write_only {at} --table-size=2 prepare",
            "oltp_insert {at} --table-size=2 --events=20 --auto_inc=off --rand-seed=7 run",
            "oltp_write_only {at} --table-size=2 --skip_trx --events=20 --mysql-ignore-errors=all run",
        ],
    ),
    case(
        "errors to ignore",
        &[
            "oltp_read_write {at} {t} prepare",
            "oltp_read_write {at} {t} --events=20 --mysql-ignore-errors=1213,1020,1205,1062 run",
            "oltp_read_write {at} {t} --events=20 --mysql-ignore-errors=all run",
            "oltp_read_write {at} {t} --events=20 --mysql-ignore-errors=abc run",
            "oltp_read_write {at} {t} --events=20 --mysql-ignore-errors= run",
        ],
    ),
    case(
        "--mysql-ssl where the server has none",
        &[
            "oltp_read_write {at} {t} prepare",
            "oltp_read_write {tcp} {t} --events=20 --mysql-ssl=on run",
        ],
    ),
    case(
        "a compressed protocol",
        &[
            "oltp_read_write {at} {t} prepare",
            "oltp_read_write {tcp} {t} --events=20 --mysql-compression run",
        ],
    ),
    case(
        "no server is asked",
        &[
            "oltp_point_select --mysql-dry-run --events=20 run",
            "oltp_read_write --mysql-dry-run --tables=2 prepare",
        ],
    ),
    case(
        "lists of hosts and ports",
        &[
            "oltp_point_select {at} {t} prepare",
            "oltp_point_select --mysql-host=127.0.0.1,127.0.0.1 --mysql-port={port},{port} \
         --mysql-user=root --mysql-db={db} {t} --threads=3 --events=20 run",
            "oltp_point_select --mysql-socket={socket},{socket} --mysql-user=root --mysql-db={db} {t} \
         --threads=2 --events=20 run",
        ],
    ),
    // Command lines of those who parse its outputs.
    case(
        "PerfKitBenchmarker",
        &[
            "oltp_read_write --db-driver=mysql --db-ps-mode=disable --tables=2 --table_size=100 \
         --report-interval=1 --threads=2 --mysql-ignore-errors=all --mysql-user=root \
         --mysql-password= --mysql-db={db} --mysql-host=127.0.0.1 --mysql-port={port} prepare",
            "oltp_read_write --db-driver=mysql --tables=2 --table_size=100 --report-interval=1 \
         --threads=2 --mysql-ignore-errors=all --skip_trx=on --mysql-user=root --mysql-password= \
         --mysql-db={db} --mysql-host=127.0.0.1 --mysql-port={port} --time=2 run",
        ],
    )
    .ordered(Order::Any),
    case(
        "PerfKitBenchmarker with its timeout of threads",
        &[
            "oltp_read_write --db-driver=mysql {t} {tcp} prepare",
            "oltp_read_write --db-driver=mysql {t} {tcp} --time=1 run --thread-init-timeout=120",
        ],
    ),
    case(
        "kubebench",
        &[
            "oltp_read_write --db-driver=mysql {tcp} --table_size=100 --tables=2 --threads=1 prepare",
            "oltp_read_write --db-driver=mysql {tcp} --table_size=100 --tables=2 --threads=2 --time=2 \
         --percentile=99 --report-interval=1 run",
        ],
    ),
    case(
        "dolt",
        &[
            "oltp_read_only --db-driver=mysql {tcp} --table-size=100 --rand-seed=1 --percentile=50 prepare",
            "oltp_read_only --db-driver=mysql {tcp} --table-size=100 --rand-seed=1 --percentile=50 \
         --time=1 --db-ps-mode=disable --rand-type=uniform run",
            "oltp_read_only --db-driver=mysql {tcp} --table-size=100 --rand-seed=1 cleanup",
        ],
    ),
    case(
        "cockroach",
        &[
            "--db-driver=mysql {tcp} --report-interval=1 --time=2 --threads=1 --tables=2 \
         --table_size=100 --auto_inc=false oltp_read_write prepare",
            "--db-driver=mysql {tcp} --report-interval=1 --time=2 --threads=2 --tables=2 \
         --table_size=100 --auto_inc=false oltp_update_index run",
        ],
    ),
    case(
        "lkp-tests",
        &[
            "oltp_read_write --mysql-db={db} --mysql-user=root --mysql-socket={socket} \
         --db-driver=mysql --tables=2 --table-size=100 prepare",
            "oltp_read_write --mysql-db={db} --mysql-user=root --mysql-socket={socket} \
         --db-driver=mysql --tables=2 --table-size=100 --threads=2 --time=1 --report-interval=1 run",
            "oltp_read_write --mysql-db={db} --mysql-user=root --mysql-socket={socket} --tables=2 cleanup",
        ],
    ),
    case(
        "mmtests",
        &[
            "--test=oltp {at} --mysql-table-engine=innodb --oltp-table-size=100 prepare",
            "--test=oltp {at} --num-threads=2 --max-requests=20 --oltp-test-mode=complex run",
        ],
    ),
    case(
        "mytools",
        &[
            "--db-driver=mysql --mysql-storage-engine=innodb --range-size=100 --table-size=100 --tables=2 \
         --events=0 --time=1 /usr/share/sysbench/oltp_point_select.lua --secondary prepare {tcp}",
            "--db-driver=mysql --range-size=100 --table-size=100 --tables=2 --threads=2 --events=0 \
         --time=1 /usr/share/sysbench/oltp_point_select.lua run {tcp} --rand-type=uniform --skip-trx",
        ],
    ),
    case(
        "mytools with its warm-up",
        &[
            "oltp_point_select {at} {t} prepare",
            "--warmup-time=0 --time=1 {t} {at} oltp_point_select run",
        ],
    ),
    case(
        "VirtualClient",
        &[
            "oltp_common --tables=2 --table-size=100 --threads=1 --mysql-db={db} --mysql-user=root \
         --mysql-host=127.0.0.1 --mysql-port={port} prepare",
            "oltp_read_write --threads=2 --tables=2 --table-size=100 --mysql-db={db} --mysql-user=root \
         --mysql-host=127.0.0.1 --mysql-port={port} --time=1 run",
            "oltp_read_write --tables=2 --mysql-db={db} --mysql-user=root --mysql-host=127.0.0.1 \
         --mysql-port={port} cleanup",
        ],
    ),
    case(
        "phoronix",
        &[
            "oltp_common --threads=1 --rand-type=uniform --db-driver=mysql {tcp} {t} prepare",
            "oltp_update_non_index run --threads=2 --time=1 --rand-type=uniform --db-driver=mysql {tcp} {t}",
            "oltp_common --threads=1 --rand-type=uniform --db-driver=mysql {tcp} {t} cleanup",
        ],
    ),
    case(
        "TiDB's manual",
        &[
            "--config-file=config oltp_point_select --tables=2 --table-size=100 prepare",
            "--config-file=config oltp_point_select --tables=2 --table-size=100 run",
            "--config-file=config oltp_update_index --tables=2 --table-size=100 run",
        ],
    )
    .with(&[(
        "config",
        "mysql-host=127.0.0.1\nmysql-port={port}\nmysql-user=root\nmysql-password=\nmysql-db={db}\n\
         time=1\nthreads=1\nreport-interval=10\ndb-driver=mysql\n",
    )]),
    case(
        "percona's wrappers",
        &[
            "oltp_read_write --mysql_storage_engine=innodb --table-size=100 --tables=2 --mysql-db={db} \
         --mysql-user=root --mysql-socket={socket} --db-driver=mysql prepare",
            "oltp_read_write --mysql_storage_engine=innodb --table-size=100 --tables=2 --mysql-db={db} \
         --mysql-user=root --mysql-socket={socket} --threads=2 --time=1 --report-interval=1 \
         --rand-type=pareto --events=0 --db-driver=mysql run",
        ],
    ),
];
