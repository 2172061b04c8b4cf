//! Verbs of this host: calibrate, and processes for others: the canned-answer server, a rank of `--hosts`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::shared::{DisplayArgs, listen};
use super::summaries::for_tables;
use crate::canned::{Action, At, Fault, Listen, Script, Service, serve, tables};
use crate::error::{Kind, Result};
use crate::hosts::run_rank;
use crate::plan::defaults;
use crate::plan::knobs::Knobs;
use crate::plan::units::parse_duration;
use crate::plan::value::{Clients, Length, Whole};
use crate::report::Format;
use crate::run::{calibration, print_data};
use crate::workload::named;

/// Time before each window, for connecting and warming caches.
const WARMUP: Duration = Duration::from_millis(300);
const WORKLOAD: &str = "point-select";
/// Upper limit on engine threads.
const THREADS_MAX: u32 = 1024;

#[derive(clap::Args, Debug, Clone)]
#[command(after_help = "\
The same engine runs prepared point selects against a server of canned answers in another process. The
result is kept, and later runs on this host are held against it (docs/reference/verdicts.md).")]
pub(crate) struct CalibrateArgs {
    /// Concurrent clients, a step each: 64 or 1,2,4 or 8..256 (doubling)
    #[arg(long, value_name = "LIST", default_value = defaults::CALIBRATE_CLIENTS)]
    pub clients: Clients,

    /// Operating system threads of the client, steps of their own [default: 1 and the cores]
    #[arg(long, value_name = "LIST", value_parser = threads)]
    pub engine_threads: Option<Clients>,

    /// Length of each measured window
    #[arg(long, value_name = "DURATION", default_value = defaults::CALIBRATE_TIME, value_parser = window)]
    pub time: Length<100>,

    /// Output format: text, markdown, csv or json
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, hide_possible_values = true)]
    pub format: Format,

    /// File of the result [default: LOADGEN_CALIBRATION, else
    /// loadgen/calibration.json in XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,

    #[command(flatten)]
    pub display: DisplayArgs,
}

fn threads(text: &str) -> Result<Clients, String> {
    let threads: Clients = text.parse()?;
    match threads.0.iter().find(|n| **n > THREADS_MAX) {
        Some(n) => Err(format!("{n} engine threads are more than {THREADS_MAX}")),
        None => Ok(threads),
    }
}

fn window(text: &str) -> Result<Length<100>, String> {
    let window: Length<100> = text.parse()?;
    let fits = (window.0 <= Duration::from_hours(1)).then_some(window);
    fits.ok_or_else(|| format!("'{text}' is longer than 1h"))
}

pub(super) fn calibrate(args: CalibrateArgs) -> Result<()> {
    for_tables(args.format)?;
    // The plan of the workload's verb, with its defaults.
    let knobs = Knobs {
        tables: Some(Whole(1)),
        clients: Some(args.clients),
        warmup: Some(Length(WARMUP)),
        time: Some(Length(args.time.0)),
        ..Knobs::default()
    };
    let plan = knobs.resolve(named(WORKLOAD).expect("it is built in"), 0)?;
    let threads = args.engine_threads.as_ref().map(|threads| threads.0.as_slice());
    let (kept, progress) = (args.calibration.as_deref(), args.display.progress());
    calibration::run(&plan, threads, kept, args.format, progress, &listen()?)
}

#[derive(clap::Args, Debug, Clone)]
#[command(hide = true)]
pub(crate) struct CannedArgs {
    /// Port of 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0, conflicts_with = "socket")]
    pub port: u16,
    /// Unix socket
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Number of tables that it reports
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub tables: u32,
    /// Connections at most
    #[arg(long, default_value_t = 10_100, value_name = "N")]
    pub connections: u32,
    /// Time of a statement: const:1ms, or exp:1ms for exponential times with this mean;
    /// each connection by itself [default: no time]
    #[arg(long, value_name = "KIND:DURATION", value_parser = service)]
    pub service: Option<Service>,
    /// Close the connection instead of each N-th answer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub close_every: Option<u64>,
    /// Seed of exponential service times
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub service_seed: u64,
    /// Ends with its standard input, too: with the process that started it
    #[arg(long)]
    pub until_eof: bool,
}

/// Runs clients for another loadgen, which leads by lines over standard input and output.
#[derive(clap::Args, Debug, Clone)]
#[command(hide = true)]
pub(crate) struct RankArgs {}

pub(super) fn rank(RankArgs {}: RankArgs) -> Result<()> {
    run_rank(&listen()?)
}

fn service(text: &str) -> Result<Service, String> {
    let form = || format!("'{text}' is neither const:DURATION nor exp:DURATION");
    let (kind, time) = text.split_once(':').ok_or_else(form)?;
    let time = parse_duration(time)?;
    match kind {
        "const" => Ok(Service::Constant(time)),
        "exp" => Ok(Service::Exponential { mean: time, seed: 0 }),
        _ => Err(form()),
    }
}

/// Serves until it is told to stop; prints the port.
pub(super) fn canned(args: CannedArgs) -> Result<()> {
    let stop = &listen()?;
    // Only for the workload's statements: those of the preflight need answers.
    let closing = |every| Fault::new(At::EachStatement(every), Action::Close).only("WHERE id=");
    let mut service = args.service.unwrap_or(Service::Instant);
    if let Service::Exponential { seed, .. } = &mut service {
        *seed = args.service_seed;
    }
    let script = Script {
        connections_max: args.connections,
        answers: tables::answers(args.tables),
        service,
        faults: args.close_every.map(closing).into_iter().collect(),
        ..Script::default()
    };
    let listen = args.socket.map_or(Listen::Port(args.port), Listen::Socket);
    if args.until_eof {
        let stop = stop.clone();
        // The thread ends with the process.
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            stop.ask(Kind::Terminated);
        });
    }
    let mut printed: Result<()> = Ok(());
    let until = async {
        stop.wait().await;
    };
    let ready = |port| {
        printed = print_data(&format!("{port}\n"));
        // Nobody knows where it listens.
        if printed.is_err() {
            stop.ask(Kind::Terminated);
        }
    };
    serve(script, &listen, Arc::default(), until, ready)?;
    printed
}
