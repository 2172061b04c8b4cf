//! `loadgen canned`: the canned-answer server in a process of its own.

use std::path::PathBuf;

use super::listen;
use crate::canned::{Action, At, Fault, Listen, Script, Service, serve, tables};
use crate::error::{Kind, Result};
use crate::observe::process::raise_descriptor_limit;
use crate::plan::units::parse_duration;
use crate::run::print_data;

#[derive(clap::Args, Debug, Clone)]
#[command(hide = true)]
pub(crate) struct CannedArgs {
    /// Port of 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0, conflicts_with = "socket")]
    pub port: u16,
    /// Unix socket
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Tables that it claims to have
    #[arg(long, default_value_t = 8, value_name = "N")]
    pub tables: u32,
    /// Connections at most
    #[arg(long, default_value_t = 10_100, value_name = "N")]
    pub connections: u32,
    /// How long a statement takes: const:1ms, or exp:1ms for exponential times with this mean;
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

fn service(text: &str) -> std::result::Result<Service, String> {
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
pub(super) fn run(args: CannedArgs) -> Result<()> {
    let stop = &listen()?;
    raise_descriptor_limit()?;
    // Of the workload's statements only: those of the preflight are to be answered.
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
    serve(script, &listen, until, |port| printed = print_data(&format!("{port}\n")))?;
    printed
}
