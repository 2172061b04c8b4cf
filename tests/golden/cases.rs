//! The command lines, by group: each has a file in `kept/contract` and one in `kept/text`.

use super::{Case, case, check};

pub(crate) const GROUPS: [&str; 12] = [
    "help", "usage", "list", "profiles", "servers", "report", "layouts", "pages", "compare",
    "gates", "runs", "changed",
];

const FORMATS: [&str; 4] = ["text", "markdown", "csv", "json"];

/// All kinds of kept summaries.
const KINDS: [&str; 13] = [
    "closed", "open", "timed", "loads", "writes", "phptest", "broken", "outages", "ended",
    "killed", "older", "warned", "verdicts",
];

fn cases<S: Into<String>>(lines: impl IntoIterator<Item = S>) -> Vec<Case> {
    lines.into_iter().map(case).collect()
}

fn in_formats(line: &str) -> impl Iterator<Item = Case> {
    FORMATS.map(|format| case(format!("{line} --format {format}"))).into_iter()
}

#[test]
fn help() {
    let verbs = [
        "",
        "prepare",
        "point-select",
        "read-write",
        "bulk-insert",
        "read-fts",
        "workloads",
        "run",
        "load",
        "report",
        "compare",
        "calibrate",
        "recheck",
        "explain",
        "verify",
        "cleanup",
        "completions",
        "man",
        "canned",
    ];
    let mut all = cases(verbs.map(|verb| format!("{verb} --help").trim_start().to_owned()));
    all.extend(cases(["sql --help", "point-select --help-all", "help report"]));
    all.extend(cases(["", "help", "--version", "workloads"]));
    all.extend(cases(
        ["bash", "elvish", "fish", "powershell", "zsh"].map(|shell| format!("completions {shell}")),
    ));
    check("help", &all);
}

#[test]
fn usage() {
    check(
        "usage",
        &cases([
            "no-such-verb",
            "oltp_point_selct --threads=8 run",
            "point-select run",
            "oltp_read_write --mysql-host=db1 --mysql-password=marker --verbosity=3 --time=60 run",
            "oltp_read_write --threads=8 --table-size=1000 prepare",
            "sql --list",
            "sql --query 'BEGIN; SELECT {random 1..9}, 2; COMMIT' --list",
            "sql --query 'SELECT {rand 1..9}' --list",
            "oltp_point_select --no-such-flag",
            "point-select --mysql-host=db1 --threads=4 --list",
            "point-select --table-size=100 --list",
            "point-select --clients 0 --list",
            "point-select --clients 8..4 --list",
            "point-select --clients 1,x --list",
            "point-select --rows -1 --list",
            "point-select --time 0 --list",
            "point-select --time 10 --ops 5 --list",
            "point-select --time 5parsecs --list",
            "point-select --interval 1ms --list",
            "point-select --rate 0 --list",
            "point-select --slo p99 --list",
            "point-select --slo 'qps>1k' --list",
            "point-select --gate 'p99<5' --list",
            "point-select --gate 'p99<<5ms' --list",
            "point-select --gate 'p101<5ms' --list",
            "point-select --distribution zipf --list",
            "point-select --distribution zipf:x --list",
            "point-select --on-error ignore --list",
            "point-select --max-errors 200% --list",
            "point-select --op-timeout 1ms --list",
            "point-select --seed 99999999999999999999 --list",
            "point-select --engine-threads 0 --list",
            "point-select --note x --list",
            "point-select --label '' --list",
            "point-select --sandbox-option x=1 --list",
            "point-select --sandbox --sandbox-option a_b=1 --sandbox-option a-b=2 --list",
            "point-select --settle 5m --list",
            "point-select --clients 8.. --list",
            "point-select --sandbox --list",
            "point-select --arrival poisson --list",
            "point-select --url nonsense --list",
            "point-select --url mysql://h/db -h other --list",
            "point-select --ssl-mode SOMETIMES --list",
            "point-select --protocol pipe --list",
            "read-write --range-size 0 --list",
            "read-write --point-selects x --list",
            "prepare --rows 0",
            "prepare --rows 11G",
            "prepare --tables 0",
            "prepare --schema nothing",
            "prepare --fill slowly",
            "load --mode fast",
            "load --from-dump x.sql --rows 5",
            "load --from-dump no-such.sql --list",
            "load --insert-bytes 1",
            "report",
            "report closed --layout none",
            "report closed --metric nothing",
            "report closed --metric p100",
            "report closed --format pdf",
            "report closed --chart pie",
            "report ended outages --layout delta",
            "report closed --gate p99",
            "compare closed --new 5.6.24 --new 10.11",
            "compare closed --base 5.6.24 --new 10.11 --floor x",
            "explain ended outages",
            "recheck closed",
            "run",
            "run no-such.toml",
            "run closed/5.6.24_point-select_c1_n1.json",
            "verify",
            "verify no-such",
            "completions tcsh",
            "calibrate --clients 0",
            "calibrate --time 0",
            "canned --service fast",
        ]),
    );
}

#[test]
fn list() {
    check(
        "list",
        &cases([
            "point-select --list",
            "point-select --list --clients 8..256 --repeat 3 --order shuffled --seed 1",
            "point-select --list --clients 8..64+8 --time 5s --warmup 1s --tables 8 --rows 16M",
            "point-select --list --clients 4 --ops 1000 --seed 5 --label x --note a=b --note c=d",
            "point-select --list --clients 1,2 --rate 1k..4k --arrival uniform --seed 7",
            "point-select --list --clients 4 --slo 'p99<2ms' --slo 'errors<0.1%' --slo-resolution 10%",
            "update-index --list --tables 4 --clients 4,8 --on-error reconnect --max-errors 1% \
             --op-timeout 5s --gate 'p99<5ms' --gate errors==0",
            "read-only --list --warm pool --settle --ahi cold --expect-class io-bound",
            "read-write --list --range-size 10 --point-selects 2 --skip-trx --statements text",
            "random-points --list --distribution zipf:0.9 --spread random --charset latin1",
            "random-ranges --list --distribution pareto:0.2 --engine-threads 1 --interval 500ms",
            "bulk-insert --list --clients 4",
            "insert --list --distribution special",
            "read-fts --list --tables 1",
            "oltp_read_write --list --tables 2",
            "point-select --list --sandbox=/usr/sbin/none --rows 10k --sandbox-option a=1",
            "load --list",
            "load --list --tables 3 --rows 1M --mode single --repeat 2 --label a --charset latin1",
            "load --list --mode load-data --sandbox=/usr/sbin/none",
            "load --list --from-dump ../../fixtures/dump.sql",
            "load --list --insert-bytes 4096 --note x=y",
        ]),
    );
}

#[test]
fn profiles() {
    let shipped = [
        "innodb-read-suite",
        "io-bound-point-select",
        "read-iops",
        "smoke",
        "sysbench-oltp",
        "update-one-client",
        "version-cost",
    ];
    let mut all = Vec::new();
    for name in shipped {
        let line = format!("run ../../../profiles/{name}.toml --list --seed 1 --out {{dir}}");
        all.push(case(line.as_str()));
        all.push(case(format!("{line} --scale 0.001 --program old=/opt/a --program new=/opt/b")));
    }
    let line = "run ../../../profiles/version-cost.toml --list --seed 1 --out {dir}";
    all.extend(cases([
        format!("{line} --only workload=point-select"),
        format!("{line} --only workload=suite-commands --only repeat=1"),
        format!("{line} --only label=none"),
        format!("{line} --only nothing=1"),
        format!("{line} --scale 2"),
        format!("{line} --program x"),
    ]));
    all.extend(cases(
        ["all", "suite", "wrong-key", "wrong-value", "no-workload"]
            .map(|name| format!("run profiles/{name}.toml --list --seed 1 --out {{dir}}")),
    ));
    check("profiles", &all);
}

/// What is refused where no server is, and by a canned one, which has no tables of loadgen's.
#[test]
fn servers() {
    let nowhere = "--url mysql://root@127.0.0.1:1/sbtest --quiet";
    let canned = "--url mysql://root@127.0.0.1:{port}/sbtest --quiet";
    let mut all = cases(
        [
            "prepare",
            "cleanup --yes",
            "verify writes",
            "point-select --out {dir}",
            "load --out {dir}",
            "prepare --no-defaults --ssl-mode REQUIRED",
        ]
        .map(|verb| format!("{verb} {nowhere}")),
    );
    all.extend(cases([
        "prepare --socket /no/such/socket",
        "point-select --defaults-file no-such.cnf --out {dir}",
        "point-select --out {dir} --ssl-mode VERIFY_CA --url mysql://root@127.0.0.1:1/x",
        "point-select --out {dir} --password-fd 77 --url mysql://root@127.0.0.1:1/x",
        "recheck closed --profile profiles/all.toml --list",
        "verify closed/no-such.json --url mysql://root@127.0.0.1:1/x",
    ]));
    for verb in [
        "prepare --tables 2 --rows 100",
        "prepare --tables 9 --rows 100",
        "prepare --tables 2 --rows 200 --force --yes",
        "cleanup --yes",
        "verify writes",
        "verify writes --elsewhere",
        "load --rows 100 --out {dir}",
        "point-select --tables 9 --out {dir}",
        "point-select --tables 2 --rows 1000 --out {dir}",
        "bulk-insert --clients 4 --out {dir}",
        "read-key-point --out {dir}",
    ] {
        all.push(Case { server: Some("--tables 2"), ..case(format!("{verb} {canned}")) });
    }
    check("servers", &all);
}

#[test]
fn report() {
    let mut all = Vec::new();
    for kind in KINDS {
        for format in ["text", "csv", "json"] {
            all.push(case(format!("report {kind} --format {format}")));
        }
    }
    let metrics = [
        "natural",
        "qps",
        "tps",
        "p50",
        "p95",
        "p99.9",
        "mean",
        "min",
        "max",
        "stddev",
        "service-p99",
        "service-mean",
        "response-p99",
        "response-mean",
        "wait-p99",
        "wait-mean",
        "errors",
        "seconds",
        "rows",
        "iops",
        "innodb-reads",
        "miss",
        "miss%",
        "pages-written",
        "log-writes",
        "log-bytes",
        "handlers",
        "ahi",
        "server-cpu",
        "cs",
        "read-time",
        "reads",
        "rkb",
        "wkb",
        "cpu",
        "client-cpu",
        "client-seconds",
        "rtt",
    ];
    for metric in metrics {
        for kinds in ["closed open", "timed"] {
            all.push(case(format!("report {kinds} --metric {metric} --format csv")));
        }
    }
    for metric in ["p99", "p99.9", "miss%", "cpu", "iops", "errors", "response-mean"] {
        all.push(case(format!("report closed open --metric {metric}")));
    }
    for line in [
        "report closed --baseline 5.6.24",
        "report open --baseline 10.11 --metric p99",
        "report timed --baseline 5.6.24",
        "report closed open --spread",
        "report ended outages broken --partial",
        "report closed older --latest",
    ] {
        all.extend(in_formats(line));
    }
    all.extend(cases([
        "report closed/5.6.24_point-select_c1_n1.json",
        "report closed open timed loads writes phptest broken outages ended older",
        "report closed --order 10.11 --order 5.6.24",
        "report closed --order none",
        "report closed --baseline none",
        "report closed --label 10.11 --clients 8..64",
        "report closed --label none",
        "report closed --clients 3",
        "report closed --workload none",
        "report closed --metric qps --metric p99",
        "report closed --metric qps --metric p99 --format csv",
        "report closed --metric qps --metric p99 --format json",
        "report slo",
        "report slo --format csv",
        "report nowhere",
        "report calibration.json",
        "report profiles",
        "report closed calibration.json --skip-bad",
        "report damaged",
        "report damaged --skip-bad",
    ]));
    check("report", &all);
}

#[test]
fn layouts() {
    let mut all = Vec::new();
    for kinds in ["closed", "open", "timed", "outages ended"] {
        for layout in [
            "list",
            "relative --baseline 5.6.24",
            "delta --baseline 5.6.24 --new 10.11",
            "overhead --baseline 5.6.24 --new 10.11",
            "per-op",
            "peak",
            "outages",
            "suite",
            "settings",
            "workloads --baseline 5.6.24",
        ] {
            let line = format!("report {kinds} --layout {layout}");
            let formats = if kinds == "closed" { &FORMATS[..] } else { &FORMATS[2..] };
            all.extend(formats.iter().map(|format| case(format!("{line} --format {format}"))));
        }
    }
    all.extend(in_formats("report scripts --layout transactions"));
    all.extend(cases([
        "report closed --layout transactions",
        "report open --layout relative --baseline 5.6.24",
        "report open --layout per-op",
        "report timed --layout suite",
        "report timed --layout suite --format markdown",
        "report ended outages --layout outages",
        "report ended outages --layout outages --format markdown",
        "report closed --layout list --metric p99",
        "report closed --layout relative --metric p99 --baseline 10.11",
        "report closed --layout per-op --baseline 10.11",
        "report closed timed --layout workloads --metric natural --metric server-cpu",
        "report closed --layout peak --metric mean",
        "report older --layout per-op",
        "report older --layout settings",
        "report older --layout suite",
        "report broken --layout suite --partial",
        "report open --layout list --metric response-p99",
        "report closed --layout delta --from 5.6.24 --to 10.11",
        "report closed --layout delta --baseline 5.6.24 --new none",
        "report closed --layout overhead --baseline 5.6.24",
        "report slo --layout slo",
        "report closed --layout per-op --metric p99 --metric qps",
    ]));
    check("layouts", &all);
}

#[test]
fn pages() {
    let mut all = cases([
        "report closed/5.6.24_point-select_c1_n1.json closed/10.11_point-select_c1_n1.json \
         --format html",
        "report open/10.11_point-select_c2_r200_n1.json ended/many_update-index_c2_n1.json \
         warned/some.json --format html",
    ]);
    for chart in ["qps", "relative", "latency", "timeline"] {
        for kinds in ["closed", "open"] {
            all.push(case(format!("report {kinds} --format svg --chart {chart}")));
        }
    }
    all.extend(cases([
        "report timed --format svg",
        "report older --format svg --chart latency",
        "report closed --format html --gate 'p99<5ms'",
        "report closed --format svg --layout list",
        "report closed --output {dir}/page.csv --format csv",
    ]));
    check("pages", &all);
}

#[test]
fn compare() {
    let mut all = Vec::new();
    for line in [
        "compare closed --baseline 5.6.24 --new 10.11",
        "compare closed --baseline 5.6.24 --new 10.11 --metric p99 --floor 1%",
        "compare closed --base 5.6.24 --new 10.11 --fail-on-regression",
        "compare closed --base 10.11 --new 5.6.24 --fail-on-regression --fail-on inconclusive",
        "compare open --base 5.6.24 --new 10.11",
        "compare open --base 5.6.24 --new 10.11 --metric p99",
        "compare timed --base 5.6.24 --new 10.11",
        "compare timed --base 5.6.24 --new 10.11 --metric client-seconds",
        "compare closed --base 5.6.24 --new 10.11 --metric client-seconds",
        "compare closed --base 5.6.24 --new 10.11 --metric errors",
        "compare older --base 5.6.24 --new 10.11",
        "compare closed --base 5.6.24 --metric qps --metric p99 --fail-on-regression",
        "compare warned --metric qps,errors",
        "compare ended outages --base many --new done",
        "compare ended outages --base reconnect --new canned --force",
        "explain --baseline 5.6.24 --new 10.11 closed",
    ] {
        all.extend(in_formats(line));
    }
    all.extend(cases([
        "compare closed --base 5.6.24 --new 10.11 --metric client-seconds --fail-on-regression",
        "compare ended outages",
        "compare closed warned --new none --new some --metric qps,qps --format junit",
        "compare closed --metric qps --metric wait-p50",
        "compare closed --base none --new 10.11",
        "compare closed --base 10.11 --new 10.11",
        "compare phptest --base 5.6.24 --new 10.11",
        "compare closed",
        "explain closed",
        "explain 10.11 5.6.24 closed open",
        "explain 10.11 5.6.24 closed open --format csv",
        "explain 5.6.24 10.11 older",
        "explain 5.6.24 none closed",
        "explain many done ended --force",
        "explain 5.6.24 10.11 timed",
    ]));
    check("compare", &all);
}

#[test]
fn gates() {
    let mut all = Vec::new();
    for line in [
        "report closed --gate 'p99<5ms' --gate 'qps>=10k' --gate errors==0",
        "report closed --gate 'p99<60s' --gate errors==0",
        "report closed --gate 'mean<1us'",
        "report open --gate 'p99<5ms' --gate 'tps>100'",
        "report ended outages --gate 'errors<0.1%' --gate errors==0",
        "report ended outages --gate 'errors<90%' --partial",
        "report killed --gate 'qps>0'",
        "report older --gate 'errors<1%' --gate 'p50<1s'",
        "report timed --gate 'p99<1s'",
        "report closed --gate 'p99.99<60s'",
    ] {
        all.extend(["text", "csv"].map(|format| case(format!("{line} --format {format}"))));
    }
    all.push(case("report ended open --gate 'p99<5ms' --gate errors==0 --format json"));
    all.push(case("report closed --gate 'p99<5ms' --format markdown"));
    check("gates", &all);
}

/// Runs against canned answers: what was asked for is held, what was measured is masked.
#[test]
fn runs() {
    let to =
        "--seed 7 --engine-threads 1 --url mysql://root@127.0.0.1:{port}/sbtest --out {dir}/out";
    let run = |flags, line: &str| Case {
        server: Some(flags),
        measured: true,
        ..case(format!("{line} {to}"))
    };
    let experiment = |profile, line: &str| Case {
        server: Some("--tables 2"),
        measured: true,
        profile,
        ..case(line.replace("run;", "run {profile} --seed 7 --out {dir}/out;"))
    };
    check(
        "runs",
        &[
            run("", "point-select --tables 8 --clients 8 --ops 400 --label a --note k=v"),
            run("", "point-select --tables 4 --clients 1,2 --ops 200 --repeat 2 --quiet"),
            run("", "update-index --tables 2 --clients 2 --ops 200 --statements text"),
            run("", "read-write --tables 2 --clients 2 --ops 20 --range-size 10"),
            run(
                "",
                "point-select --tables 2 --clients 2 --ops 200 --gate errors==0 --gate 'qps>1'",
            ),
            run("", "point-select --tables 2 --clients 2 --ops 200 --gate 'mean<1ns'"),
            run("", "point-select --tables 2 --clients 2 --ops 200 --gate 'p99.9<60s'"),
            run("", "point-select --tables 2 --clients 2 --rate 500 --ops 100 --arrival uniform"),
            run("--close-every 50", "point-select --tables 2 --clients 1 --ops 200"),
            run(
                "--close-every 50",
                "point-select --tables 2 --clients 1 --ops 200 --on-error reconnect",
            ),
            run(
                "--close-every 50",
                "update-index --tables 1 --clients 1 --ops 200 --on-error reconnect --max-errors 2",
            ),
            run("--connections 1", "point-select --tables 2 --clients 1 --ops 200"),
            // Run, run again, run again with more to do; then what is there.
            experiment(
                EXPERIMENT,
                "run; run; run; report {dir}/out --format csv; \
                 compare {dir}/out --base a --new b --format csv; \
                 recheck {dir}/out --profile {profile} --list",
            ),
            experiment(FAILING, "run; report {dir}/out --format csv --partial"),
            Case {
                measured: true,
                ..case(
                    "calibrate --clients 1 --engine-threads 1 --time 300ms --format json --quiet",
                )
            },
        ],
    );
}

const EXPERIMENT: &str = r#"
name = "two"
gates = ["errors==0"]
[[server]]
label = "a"
url = "mysql://root@127.0.0.1:{port}/sbtest"
[[server]]
label = "b"
base = "a"
note = "the same"
[[workload]]
name = "ping"
about = "asks"
[[workload.transaction]]
[[workload.transaction.statement]]
kind = "select"
sql = "SELECT 1"
expect = { rows = 1 }
[[run]]
workload = "ping"
clients = [1, 2]
ops = 100
engine_threads = 1
repeat = 2
[[run]]
[run.suite]
name = "commands"
[[run.suite.tests]]
name = "none"
run = ["true"]
"#;

const FAILING: &str = r#"
name = "failing"
[[server]]
label = "a"
url = "mysql://root@127.0.0.1:{port}/sbtest"
[[workload]]
name = "ping"
about = "asks"
[[workload.transaction]]
[[workload.transaction.statement]]
kind = "select"
sql = "SELECT 1"
expect = { rows = 1 }
[[run]]
workload = "ping"
ops = 100
engine_threads = 1
[[run]]
[run.suite]
name = "commands"
[[run.suite.tests]]
name = "fails"
run = ["sh", "-c", "echo this fails; exit 3"]
[expect]
variables = { version = "8.0.0-canned" }
"#;
