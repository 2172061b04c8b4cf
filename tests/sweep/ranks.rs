//! Clients in processes that a launcher started: the same words for each, with a rank in the environment.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use loadgen::canned::Canned;
use loadgen::summary::Outcome;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ring::hmac;
use serde_json::{Value, json};

use crate::common;
use crate::common::program::{Ended, Results, canned, command, wait};
use crate::common::proxy::Proxy;
use crate::common::restarting::until;

/// The longest time until all processes of a run that has failed have ended.
const ENDED_WITHIN: Duration = Duration::from_mins(1);
const VARIABLES: [&str; 8] = [
    "LOADGEN_RANK",
    "LOADGEN_SIZE",
    "LOADGEN_TOKEN",
    "LOADGEN_RENDEZVOUS",
    "SLURM_PROCID",
    "PMI_RANK",
    "OMPI_COMM_WORLD_RANK",
    "RANK",
];

/// The ranks of one run, each with results of its own.
struct Launch {
    words: String,
    connection: Vec<String>,
    place: String,
    /// The number of a job of Slurm's.
    job: Option<&'static str>,
    began: Instant,
}

struct Running {
    child: Child,
    results: Results,
    began: Instant,
}

impl Launch {
    fn new(words: &str, server: &Canned) -> Launch {
        let port = server.port().to_string();
        let connection = ["-h", "127.0.0.1", "-P", &port, "-u", "x"].map(str::to_owned).to_vec();
        // A port that is free now.
        let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
        let (place, began) = (free.to_string(), Instant::now());
        Launch { words: words.to_owned(), connection, place, job: None, began }
    }

    fn command(&self, rank: u32, size: u32, results: &Results) -> Command {
        let connection: Vec<&str> = self.connection.iter().map(String::as_str).collect();
        let mut command = command(&self.words, &connection, results);
        self.place(&mut command, rank, size);
        command
    }

    /// Makes a command one of the ranks.
    fn place(&self, command: &mut Command, rank: u32, size: u32) {
        for name in VARIABLES {
            command.env_remove(name);
        }
        let (rank, size) = (rank.to_string(), size.to_string());
        command.args(["--ranks", "auto", "--rendezvous", &self.place]);
        if let Some(job) = self.job {
            command.env("SLURM_PROCID", rank).env("SLURM_STEP_NUM_TASKS", size);
            command.env("SLURM_JOB_ID", job).env("SLURM_STEP_ID", "0");
        } else {
            command.env("LOADGEN_RANK", rank).env("LOADGEN_SIZE", size);
        }
    }

    fn start_with(&self, rank: u32, size: u32, more: impl FnOnce(&mut Command)) -> Running {
        let results = Results::new();
        let mut command = self.command(rank, size, &results);
        more(&mut command);
        Running { child: command.spawn().expect("it runs"), results, began: self.began }
    }

    fn start(&self, rank: u32, size: u32) -> Running {
        self.start_with(rank, size, |_| {})
    }

    /// Starts one that does not say that it waits, however late rank 0 is.
    fn start_quietly(&self, rank: u32, size: u32) -> Running {
        self.start_with(rank, size, |command| {
            command.arg("--quiet");
        })
    }
}

impl Running {
    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).expect("it runs");
    }

    fn wait(self) -> Ended {
        wait(self.child, self.began, &self.results)
    }
}

/// Checks that a rank other than 0 has left nothing.
fn check_silent(ended: &Ended) {
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    assert!(ended.summaries.is_empty());
}

#[test]
fn ranks_measure_one_step_when_a_launcher_starts_them() {
    // Each rank finds by itself that the server has no TLS.
    let words = "point-select --tables 8 --clients 8 --warmup 1s --ops 800 --engine-threads 1 \
                 --beside update-index,clients=3 --ssl-mode PREFERRED";
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("rank-0");
    for (size, by_file) in [(1, false), (2, true), (3, false)] {
        let server = canned(Vec::new());
        let mut launch = Launch::new(words, &server);
        if by_file {
            // One of an earlier run that died.
            fs::write(&file, "127.0.0.1:1\n\n").expect("a file");
            launch.place = format!("file:{}", file.display());
        }
        // Those who come too early try again.
        let others: Vec<Running> = (1..size).map(|rank| launch.start_quietly(rank, size)).collect();
        sleep(Duration::from_millis(300));
        let ended = launch.start(0, size).wait();
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        for other in others {
            check_silent(&other.wait());
        }
        let step = ended.only();
        assert_eq!((step.totals.ops, step.plan.engine_threads), (800, size));
        let ranks: Vec<(u32, u32)> = step.hosts.iter().map(|of| (of.rank, of.threads)).collect();
        assert_eq!(ranks, (0..size).map(|rank| (rank, 1)).collect::<Vec<_>>());
        assert_eq!(step.hosts.iter().map(|of| of.ops).sum::<u64>(), 800);
        assert!(step.groups[0].totals.ops > 0, "{:?}", step.groups);
        assert!(!file.exists(), "it goes once all are there");
    }
}

#[test]
fn rank_is_told_no_sql_no_address_and_no_password() {
    let server = canned(Vec::new());
    let words = "sql --query DO('marker') --clients 2 --warmup 1s --ops 20";
    let mut launch = Launch::new(words, &server);
    let own = |command: &mut Command| {
        command.env("MYSQL_PWD", "marker-pw").env("LOADGEN_TOKEN", "marker-token-of-a-test");
    };
    let zero = launch.start_with(0, 2, own);
    let (_, port) = launch.place.rsplit_once(':').expect("a port");
    let between = Proxy::to(port.parse().expect("a number"));
    launch.place = format!("127.0.0.1:{}", between.port);
    let other = launch.start_with(1, 2, own).wait();
    let ended = zero.wait();
    assert_eq!((ended.code, other.code), (0, 0), "{}{}", ended.stderr, other.stderr);
    assert_eq!(ended.only().hosts.len(), 2);
    let told = String::from_utf8_lossy(&between.answered()).into_owned();
    let said = String::from_utf8_lossy(&between.said().concat()).into_owned();
    assert!(told.contains("Open") && said.contains("Hello"), "{told}");
    for secret in ["marker", "127.0.0.1"] {
        assert!(!told.contains(secret), "{secret}: {told}");
    }
    assert!(!said.contains("marker"), "{said}");
}

#[test]
fn error_of_a_clock_is_below_its_bound_whatever_each_way_takes() {
    let server = canned(Vec::new());
    let words =
        "point-select --tables 8 --clients 2 --think 5ms --warmup 1s --time 300ms --repeat 5";
    let mut launch = Launch::new(words, &server);
    let zero = launch.start(0, 2);
    let (_, port) = launch.place.rsplit_once(':').expect("a port");
    let between = Proxy::to(port.parse().expect("a number"));
    launch.place = format!("127.0.0.1:{}", between.port);
    let other = launch.start(1, 2);
    for (step, ms) in [[20, 0], [0, 20], [10, 0], [0, 0]].into_iter().enumerate() {
        until("a step's end", || zero.results.summaries().len() > step);
        between.delay(ms);
    }
    let (ended, _) = (zero.wait(), other.wait());
    // Both count from an instant of their own by the clock of one host: the offset never changes.
    let clocks: Vec<_> = ended.summaries.iter().map(|step| step.hosts[1].clock).collect();
    assert_eq!(clocks.len(), 5, "{}", ended.stderr);
    for one in &clocks {
        for other in &clocks {
            let apart = (one.offset_us - other.offset_us).abs();
            assert!(apart <= one.error_us + other.error_us, "{clocks:?}");
        }
    }
    assert!(clocks.iter().any(|clock| clock.error_us > 5_000.0), "delays are seen: {clocks:?}");
}

#[test]
fn ranks_follow_all_steps_of_a_profile_and_of_its_recheck() {
    // A log-in takes long on a full machine.
    let server = common::sandbox(&common::local(), &[("connect-timeout", "60")]);
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("two.toml");
    let text = "name = \"two\"\ntables = { count = 2, rows = 100 }\n\
        [[server]]\nlabel = \"one\"\n[[run]]\nworkload = [\"point-select\", \"update-index\"]\n\
        clients = [2]\nwarmup = \"2s\"\nops = 100\nrepeat = 2\n";
    fs::write(&profile, text).expect("a file");
    let words = format!("run {}", profile.display());
    let socket = server.socket.to_str().expect("text");
    let connection = ["-S", socket, "-u", "root", "--connect-timeout", "60s"];
    let connection = connection.map(str::to_owned).to_vec();
    let place = format!("file:{}", dir.path().join("rank-0").display());
    let launch = Launch { words, connection, place, job: None, began: Instant::now() };
    let (zero, other) = (launch.start(0, 2), launch.start_quietly(1, 2));
    let ended = wait(zero.child, zero.began, &zero.results);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    check_silent(&other.wait());
    assert_eq!(ended.summaries.len(), 4);
    for step in &ended.summaries {
        assert_eq!((step.outcome, step.hosts.len()), (Outcome::Completed, 2));
        assert!(step.hosts.iter().all(|host| host.ops > 0));
    }
    let (path, out, nothing) = (profile.display().to_string(), zero.results.dir(), Results::new());
    let recheck = |rank: Option<u32>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
        command.arg("recheck").arg(out).args(["--profile", &path, "--max-repeats", "3"]);
        command.args(["--spread-max", "0.0001%", "--no-defaults", "--quiet"]);
        command.args(&launch.connection).env("LOADGEN_CALIBRATION", "/nonexistent");
        if let Some(rank) = rank {
            launch.place(&mut command, rank, 2);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
    };
    let [again, other] = [0, 1].map(|rank| recheck(Some(rank)));
    let (again, other) =
        (wait(again, launch.began, &zero.results), wait(other, launch.began, &nothing));
    // No range of three is so narrow.
    assert_eq!(again.code, 98, "{}", again.stderr);
    check_silent(&other);
    assert_eq!(again.summaries.len(), 6);
    assert!(again.summaries.iter().all(|step| step.hosts.len() == 2));
    // Of one process these are no cells, and it says of how many they are.
    let alone = wait(recheck(None), launch.began, &nothing);
    assert_eq!((alone.code, alone.stderr.contains("--ranks on 2")), (4, true), "{}", alone.stderr);
    server.stop().expect("it ends well");
}

/// Processes of a run that cannot be, and their exit statuses.
struct Refused {
    name: &'static str,
    size: u32,
    /// By process: its rank, the size that it believes in, more words, its token and job, its status.
    ranks: Vec<(u32, u32, &'static str, &'static str, i32)>,
    /// Words of rank 0's error.
    names: &'static str,
}

const TOKEN: &str = "the token of these ranks";
const OTHER: &str = "the token of other ranks";

#[test]
fn rank_is_refused_by_name_when_it_is_none_of_the_run() {
    let cases = [
        Refused { name: "token", size: 2, ranks: vec![(1, 2, "", OTHER, 1)], names: "rank 1" },
        Refused { name: "plan", size: 2, ranks: vec![(1, 2, "--ops 7", TOKEN, 1)], names: "plan" },
        Refused { name: "size", size: 2, ranks: vec![(1, 3, "", TOKEN, 1)], names: "1 of 3" },
        Refused {
            name: "twice",
            size: 3,
            // Either of both is here first, and is told the end.
            ranks: vec![(1, 3, "", TOKEN, -1), (1, 3, "", TOKEN, -1)],
            names: "rank 2 did not",
        },
        Refused {
            name: "late",
            size: 3,
            ranks: vec![(2, 3, "", TOKEN, 0)],
            names: "rank 1 did not",
        },
    ];
    let server = &canned(Vec::new());
    std::thread::scope(|scope| {
        for Refused { name, size, ranks, names } in cases {
            scope.spawn(move || {
                let words = "point-select --tables 8 --clients 4 --warmup 0";
                let launch = Launch::new(words, server);
                let start = |rank, size, more: &str, token: &str, wait: &str| {
                    let more = if more.is_empty() { "--ops 20" } else { more };
                    launch.start_with(rank, size, |command| {
                        command.args(more.split(' ')).args(["--ranks-wait", wait]);
                        command.env("LOADGEN_TOKEN", token);
                    })
                };
                let zero = start(0, size, "", TOKEN, "15s");
                let others: Vec<_> = ranks
                    .into_iter()
                    .map(|(rank, size, more, token, code)| {
                        (start(rank, size, more, token, "30s"), code)
                    })
                    .collect();
                let ended = zero.wait();
                assert_eq!(ended.code, 1, "{name}: {}", ended.stderr);
                assert!(ended.stderr.contains(names), "{name}: {}", ended.stderr);
                assert!(ended.took < ENDED_WITHIN && ended.summaries.is_empty(), "{name}");
                let others = others.into_iter().map(|(other, code)| (other.wait(), code));
                let codes: Vec<(i32, i32)> = others.map(|(of, code)| (of.code, code)).collect();
                if name == "twice" {
                    let mut codes: Vec<i32> = codes.iter().map(|(code, _)| *code).collect();
                    codes.sort_unstable();
                    assert_eq!(codes, [0, 1]);
                } else {
                    assert!(codes.iter().all(|(code, wanted)| code == wanted), "{name}: {codes:?}");
                }
            });
        }
    });
}

#[test]
fn rank_of_another_job_is_refused_and_one_without_rank_0_gives_up() {
    let server = canned(Vec::new());
    let words = "point-select --tables 8 --clients 4 --ops 20 --ranks-wait 10s";
    let mut launch = Launch { job: Some("17"), ..Launch::new(words, &server) };
    let zero = launch.start(0, 2);
    launch.job = Some("18");
    let other = launch.start(1, 2);
    let (zero, other) = (zero.wait(), other.wait());
    assert_eq!((zero.code, other.code), (1, 1), "{}{}", zero.stderr, other.stderr);
    assert!(other.stderr.contains("18.0"), "{}", other.stderr);
    let launch = Launch::new("point-select --ops 20 --ranks-wait 8s", &server);
    let alone = launch.start(1, 2).wait();
    assert_eq!((alone.code, alone.took < ENDED_WITHIN), (1, true), "{}", alone.stderr);
    // It says whom it waits for, and at the end where it looked.
    let named = alone.stderr.lines().filter(|line| line.contains(&launch.place)).count();
    assert!(named >= 2, "{}", alone.stderr);
}

#[test]
fn no_rank_waits_in_vain_when_rank_0_cannot_begin() {
    let (server, wait) = (canned(Vec::new()), "--ranks-wait 20s");
    for wrong in ["--rate 1k,2k --slo p99<10ms", "--probe="] {
        let words = format!("point-select --tables 8 {wait} {wrong}");
        let other = Launch::new(&words, &server).start(1, 2).wait();
        assert_eq!((other.code, other.took < ENDED_WITHIN), (2, true), "{}", other.stderr);
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let launch = Launch::new(&format!("point-select --tables 8 --ops 20 {wait}"), &server);
    let zero = launch.start_with(0, 2, |command| {
        command.args(["--openmetrics", &port]);
    });
    let other = launch.start(1, 2).wait();
    let zero = zero.wait();
    assert!(zero.code != 0 && zero.summaries.is_empty(), "{}", zero.stderr);
    assert_eq!(other.code, 0, "{}", other.stderr);
}

/// Greets rank 0 as a rank that knows the token; returns the answer.
fn greet(place: &str, greeting: &Value) -> String {
    let mut stream = None;
    until("rank 0", || {
        stream = TcpStream::connect(place).ok();
        stream.is_some()
    });
    let mut stream = stream.expect("rank 0 is there");
    stream.set_read_timeout(Some(ENDED_WITHIN)).expect("a bound");
    let mut lines = BufReader::new(stream.try_clone().expect("a handle")).lines();
    let nonce = lines.next().expect("a line").expect("text");
    let nonce: String = serde_json::from_str(&nonce).expect("JSON");
    let key = hmac::Key::new(hmac::HMAC_SHA256, TOKEN.as_bytes());
    let proof = hmac::sign(&key, format!("rank\n{nonce}\n{greeting}").as_bytes());
    let proof = URL_SAFE_NO_PAD.encode(proof);
    let told = stream.write_all(format!("{greeting}\n\"{proof}\"\n").as_bytes());
    told.expect("rank 0 listens");
    lines.next().expect("an answer").expect("text")
}

#[test]
fn run_ends_at_once_when_a_rank_is_of_another_version() {
    let server = canned(Vec::new());
    let token = |command: &mut Command| {
        command.env("LOADGEN_TOKEN", TOKEN);
    };
    let of = json!({"launcher": "the environment", "rank": 1, "size": 2, "job": ""});
    let program = json!({"version": "9.1", "revision": null, "profile": "release"});
    let (host, nonce) = ("c7", "n");
    for greeting in [
        json!({"protocol": 1, "program": program, "executable": null, "host": host, "of": of,
            "plan": "p", "nonce": nonce}),
        // Fields of a later version.
        json!({"protocol": 99, "program": {"version": "9.1", "later": []}, "host": host, "of": of}),
    ] {
        let launch = Launch::new("point-select --tables 8 --ops 20 --ranks-wait 20s", &server);
        let zero = launch.start_with(0, 2, token);
        let answer = greet(&launch.place, &greeting);
        let ended = zero.wait();
        assert_eq!((ended.code, ended.took < ENDED_WITHIN), (1, true), "{}", ended.stderr);
        for named in ["rank 1", host, "9.1", env!("CARGO_PKG_VERSION")] {
            assert!(ended.stderr.contains(named), "{named}: {}", ended.stderr);
        }
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert!(answer["Refused"]["why"].as_str().is_some_and(|why| why.contains("9.1")));
    }
    // What answers is another program, for as long as the rank waits.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a listener");
    let place = listener.local_addr().expect("bound").to_string();
    let words = "point-select --tables 8 --ops 20 --ranks-wait 3s";
    let other = Launch { place, ..Launch::new(words, &server) }.start_with(1, 2, token);
    let mut stream = None;
    until("the rank", || {
        stream = listener.accept().ok();
        stream.is_some()
    });
    let (mut stream, _) = stream.expect("it has connected");
    stream.set_nonblocking(false).expect("a stream");
    stream.set_read_timeout(Some(ENDED_WITHIN)).expect("a bound");
    stream.write_all(b"\"n\"\n").expect("it listens");
    let greeting = BufReader::new(&stream).lines().next().expect("a line").expect("text");
    assert!(greeting.contains("\"rank\":1"), "{greeting}");
    stream.write_all(b"{\"Later\":{}}\n").expect("it listens");
    let ended = other.wait();
    assert_eq!((ended.code, ended.took < ENDED_WITHIN), (1, true), "{}", ended.stderr);
}

#[test]
fn run_ends_on_all_hosts_when_one_process_dies_stops_or_is_interrupted() {
    let words = "point-select --tables 8 --clients 3 --think 20ms --warmup 1s --time 120s";
    let cases = [
        // Who, its signal, and the status of rank 0, 1 and 2; of those killed or stopped none.
        (0, Signal::SIGKILL, [None, Some(1), Some(1)]),
        (0, Signal::SIGSTOP, [None, Some(1), Some(1)]),
        (1, Signal::SIGKILL, [Some(1), None, Some(0)]),
        (1, Signal::SIGSTOP, [Some(1), None, Some(0)]),
        (2, Signal::SIGINT, [Some(130), Some(0), Some(0)]),
        (0, Signal::SIGTERM, [Some(143), Some(0), Some(0)]),
    ];
    std::thread::scope(|scope| {
        for (who, signal, codes) in cases {
            scope.spawn(move || {
                let server = canned(Vec::new());
                let launch = Launch::new(words, &server);
                let ranks = [0, 1, 2].map(|rank| launch.start(rank, 3));
                until("the window", || server.counts().executes > 20);
                sleep(Duration::from_millis(1500));
                let died = Instant::now();
                ranks[who].signal(signal);
                let mut gone = Vec::new();
                for (rank, (running, code)) in ranks.into_iter().zip(codes).enumerate() {
                    let case = format!("{signal} to {who}, rank {rank}");
                    let Some(code) = code else {
                        gone.push(running);
                        continue;
                    };
                    let ended = running.wait();
                    assert_eq!(ended.code, code, "{case}: {}", ended.stderr);
                    assert!(died.elapsed() < ENDED_WITHIN, "{case}: {:?}", died.elapsed());
                    if rank == 0 {
                        let outcome =
                            if code == 1 { Outcome::RankLost } else { Outcome::Interrupted };
                        assert_eq!(ended.only().outcome, outcome, "{case}");
                    }
                }
                // One that is stopped stays so until the others have ended.
                for mut running in gone {
                    running.child.kill().expect("it was there");
                    running.child.wait().expect("it ends");
                }
            });
        }
    });
}

#[test]
fn ranks_are_refused_where_one_process_does_the_work() {
    let dir = tempfile::tempdir().expect("a directory");
    let profile = dir.path().join("loads.toml");
    let text = "name = \"loads\"\ntables = { count = 1, rows = 100 }\n[[server]]\nlabel = \"one\"\n\
        sandbox = {}\n[[run]]\nworkload = [\"point-select\"]\nclients = [2]\n";
    fs::write(&profile, text).expect("a file");
    let scripted = dir.path().join("scripted.toml");
    let text = "name = \"scripted\"\ntables = { count = 1, rows = 100 }\n[[server]]\nlabel = \"one\"\nhost = \"db1\"\n\
        [[run]]\nworkload = [\"point-select\"]\nclients = [2]\n[[run.group]]\nlua = \"a.lua\"\n";
    fs::write(&scripted, text).expect("a file");
    fs::write(dir.path().join("a.lua"), "function event() end\n").expect("a file");
    let env = "--ranks env";
    for (words, code) in [
        (format!("point-select {env} --hosts a"), 2),
        #[cfg(feature = "lua")]
        (format!("run {} {env}", scripted.display()), 2),
        (format!("point-select {env} --sandbox"), 2),
        (format!("load {env} --rows 10"), 2),
        (format!("run {} {env}", profile.display()), 2),
        // As sysbench says it.
        ("sysbench oltp_read_only --ranks=env run".to_owned(), 1),
        ("point-select --ranks-wait 1s".to_owned(), 2),
        ("point-select --ranks slurm".to_owned(), 2),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
        for name in VARIABLES {
            command.env_remove(name);
        }
        command.env("LOADGEN_RANK", "0").env("LOADGEN_SIZE", "1").current_dir(dir.path());
        let output = command.args(words.split_whitespace()).output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words}: {stderr}");
        assert!(stderr.contains("--ranks"), "{words}: {stderr}");
    }
}

#[test]
fn variable_of_ranks_that_is_no_text_is_refused_by_its_name() {
    for (name, words) in [
        ("LOADGEN_RENDEZVOUS", "--ranks env"),
        ("LOADGEN_RANK", "--ranks env"),
        ("LOADGEN_JOB", "--ranks env --rendezvous c1:7000"),
        ("SLURM_STEP_NUM_TASKS", "--ranks slurm"),
        ("SLURM_JOB_NODELIST", "--hosts slurm"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
        for name in VARIABLES {
            command.env_remove(name);
        }
        command.env("LOADGEN_RANK", "1").env("LOADGEN_SIZE", "2").env("SLURM_PROCID", "1");
        command.env(name, OsStr::from_bytes(b"c1:\xff"));
        let output = command.arg("point-select").args(words.split(' ')).output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {stderr}");
        assert!(stderr.contains(name), "{name}: {stderr}");
    }
}
