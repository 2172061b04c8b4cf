//! What runs once an operation, piece by piece, and whole operations against canned answers.
//!
//! The canned server has a thread of its own; the session and its runtime have this one, as an
//! engine thread has. What a whole operation costs beyond the pieces is the session, the
//! kernel and the way there and back.

use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use loadgen::canned::{Canned, Listen, Script, tables};
use loadgen::mysql::options::{Address, ConnectOptions, Secret, Ssl};
use loadgen::mysql::session::ServerLink;
use loadgen::mysql::wire::{Inbox, LeanSession, Params, Value, Want};
use loadgen::observe::recorder::{Ns, Op, Phases, Recorder};
use loadgen::observe::times::Times;
use loadgen::stop::Stop;
use loadgen::workload::distribution::{Distribution, Sampler};
use loadgen::workload::random::Stream;
use loadgen::workload::rows::{self, Rows};
use tokio::runtime::{Builder, Runtime};

/// As many rows as the tables of a large experiment have.
const ROWS: u64 = 16_000_000;
const SEED: u64 = 1;
const TABLE: u32 = 1;
const SELECT: &str = "SELECT c FROM sbtest1 WHERE id=?";
const UPDATE: &str = "UPDATE sbtest1 SET k=k+1 WHERE id=?";
const UPDATE_C: &str = "UPDATE sbtest1 SET c=? WHERE id=?";

fn sampler(distribution: Distribution) -> Sampler {
    Sampler::new(distribution, ROWS, SEED)
}

fn key_draw(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("key_draw");
    for distribution in
        [Distribution::Uniform, Distribution::Zipf(0.99), Distribution::ZipfAdjacent(0.99)]
    {
        let sampler = sampler(distribution);
        let mut stream = Stream::new(SEED);
        group.bench_function(BenchmarkId::from_parameter(distribution), |bencher| {
            bencher.iter(|| sampler.draw(&mut stream));
        });
    }
    group.finish();
}

/// The values of one statement, as a session takes them.
fn parameters(criterion: &mut Criterion) {
    let sampler = sampler(Distribution::Uniform);
    let (mut stream, mut params) = (Stream::new(SEED), Params::default());
    let mut group = criterion.benchmark_group("parameters");
    let draws: [(&str, Draw); 2] = [("id", only_id), ("c_and_id", c_and_id)];
    for (name, draw) in draws {
        group.bench_function(name, |bencher| {
            bencher.iter(|| draw(&mut params, &sampler, &mut stream));
        });
    }
    group.bench_function("text_id", |bencher| {
        let mut sql = Vec::new();
        bencher.iter(|| {
            sql.clear();
            text_select(&mut sql, sampler.draw(&mut stream));
        });
    });
    group.finish();
}

/// Draws the values of one statement.
type Draw = fn(&mut Params, &Sampler, &mut Stream);

fn only_id(params: &mut Params, sampler: &Sampler, stream: &mut Stream) {
    params.clear(1);
    params.set(0, Value::UInt(sampler.draw(stream)));
}

fn c_and_id(params: &mut Params, sampler: &Sampler, stream: &mut Stream) {
    let id = sampler.draw(stream);
    let c = rows::proven(TABLE, id, || stream.bits());
    params.clear(2);
    params.set_bytes(0, |bytes| bytes.extend_from_slice(&c));
    params.set(1, Value::UInt(id));
}

fn text_select(sql: &mut Vec<u8>, id: u64) {
    write!(sql, "SELECT c FROM sbtest1 WHERE id={id}").expect("a Vec takes everything");
}

fn recording(criterion: &mut Criterion) {
    // Times as they come: spread over four powers of two, so that the buckets are not all hot.
    let mut stream = Stream::new(SEED);
    let times_ns: Vec<u64> =
        (0..4096).map(|_| (50_000 << stream.below(5)) + stream.below(50_000)).collect();
    let mut group = criterion.benchmark_group("recording");
    let mut next = times_ns.iter().copied().cycle();
    let mut times = Times::new();
    group.bench_function("times_record", |bencher| {
        bencher.iter(|| times.record(next.next().unwrap_or(1)));
    });
    group.bench_function("recorder_succeeded", |bencher| {
        // Ten microseconds apart: a hundred thousand share the interval that is swapped then.
        let phases = Phases {
            window_start: 0,
            window_end: Ns::MAX,
            by_issue: false,
            interval: 1_000_000_000,
        };
        let swapped = Box::new(|interval| drop(black_box(interval)));
        let mut recorder = Recorder::new(phases, 0, swapped);
        let mut completed = 10_000_000;
        bencher.iter(|| {
            completed += 10_000;
            let issued = completed - next.next().unwrap_or(1);
            let (measured, statements, rows) = (true, 1, 1);
            let op = Op { issued, measured, completed, statements, rows, ..Op::default() };
            recorder.succeeded(op)
        });
    });
    group.bench_function("clock", |bencher| {
        let origin = Instant::now();
        bencher.iter(|| origin.elapsed());
    });
    group.finish();
}

fn content_check(criterion: &mut Criterion) {
    let row = Rows::new(1, TABLE, ROWS).row(4711);
    criterion.bench_function("content_check", |bencher| {
        bencher.iter(|| rows::proves(TABLE, black_box(row.id), black_box(&row.c)));
    });
}

/// A canned server on a thread of its own, and one session with it.
fn stage() -> (Canned, Runtime, LeanSession) {
    let script = Script { answers: tables::answers(1), ..Script::default() };
    let server = Canned::start(script, Listen::Port(0)).expect("a canned server");
    let target = ConnectOptions {
        address: Address::Tcp { host: "127.0.0.1".to_owned(), port: server.port() },
        others: Vec::new(),
        user: "root".to_owned(),
        password: Secret::default(),
        database: "sbtest".to_owned(),
        ssl: Ssl::default(),
        connect_timeout: Duration::from_secs(10),
    };
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let link = ServerLink::to(target, &Stop::default()).expect("options");
    let session =
        runtime.block_on(LeanSession::open(&link, &Inbox::default(), None)).expect("a session");
    (server, runtime, session)
}

/// One round trip each, one client.
fn whole_op(criterion: &mut Criterion) {
    let (_server, runtime, mut session) = stage();
    let sampler = sampler(Distribution::Uniform);
    let (mut stream, mut params) = (Stream::new(SEED), Params::default());
    let mut group = criterion.benchmark_group("whole_op");
    group.throughput(Throughput::Elements(1));
    let statements: [(&str, &str, Draw); 3] = [
        ("prepared_point_select", SELECT, only_id),
        ("prepared_update_index", UPDATE, only_id),
        ("prepared_update_non_index", UPDATE_C, c_and_id),
    ];
    for (name, sql, draw) in statements {
        let id = runtime.block_on(session.prepare(sql)).expect("prepared");
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|ops| {
                runtime.block_on(async {
                    let start = Instant::now();
                    for _ in 0..ops {
                        draw(&mut params, &sampler, &mut stream);
                        let answer = session.execute(id, &params, Want::Count).await;
                        let answer = answer.expect(name);
                        assert_eq!(answer.rows + answer.affected, 1, "{name}");
                    }
                    start.elapsed()
                })
            });
        });
    }
    group.bench_function("text_point_select", |bencher| {
        bencher.iter_custom(|ops| {
            runtime.block_on(async {
                let start = Instant::now();
                for _ in 0..ops {
                    text_select(session.text(), sampler.draw(&mut stream));
                    let answer = session.query(Want::Count).await.expect("a row");
                    assert_eq!(answer.rows, 1);
                }
                start.elapsed()
            })
        });
    });
    group.finish();
    runtime.block_on(session.close(Duration::from_secs(1)));
}

fn configured() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
}

criterion_group! {
    name = hot_path;
    config = configured();
    targets = key_draw, parameters, recording, content_check, whole_op
}
criterion_main!(hot_path);
