//! Flags and steps that several verbs share.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::hosts::{ClientHosts, Launched, Token, Wanted, find};
use crate::mysql::Env;
use crate::observe::require_descriptors;
use crate::plan::defaults;
use crate::plan::units::parse_percent;
use crate::plan::value::Length;
use crate::progress::{Progress, say, wipe};
use crate::run::Invocation;
use crate::stop::{Stop, kill_all};
use crate::terms::Launcher;

#[derive(clap::Args, Debug, Clone)]
pub(crate) struct DisplayArgs {
    /// Interval of progress [default: 1s on a terminal, 10s otherwise]
    #[arg(long, value_name = "DURATION")]
    pub progress: Option<Length<100>>,

    /// Warnings and errors only
    #[arg(long)]
    pub quiet: bool,
}

const HOSTS: &str = "Hosts";

#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct HostArgs {
    /// Hosts that run the clients, over ssh: c1,user@c2,localhost; or slurm [default: this one]
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = HOSTS)]
    pub hosts: Vec<String>,

    /// Command that starts a program on {host}: 'podman exec -i {host}' [default: ssh]
    #[arg(long, value_name = "COMMAND", requires = "hosts", help_heading = HOSTS)]
    pub host_command: Option<String>,

    /// Path of loadgen on these hosts [default: loadgen, on their PATH]
    #[arg(long, value_name = "PATH", requires = "hosts", help_heading = HOSTS)]
    pub host_program: Option<String>,
}

impl HostArgs {
    pub(super) fn wanted(self) -> Result<Option<ClientHosts>> {
        let HostArgs { hosts, host_command, host_program } = self;
        let given = !hosts.is_empty();
        let wanted = || Wanted::new(hosts, host_command.as_deref(), host_program);
        given.then(|| wanted().map(ClientHosts::Started)).transpose()
    }
}

/// The time in which the ranks of a launcher come.
const RANKS_WAIT: Length<0> = Length(Duration::from_mins(5));

#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct RankFlags {
    /// Clients on all processes that a launcher started; LOADGEN_TOKEN proves them
    #[arg(long, value_name = "LAUNCHER", value_enum, conflicts_with = "hosts", help_heading = HOSTS)]
    pub ranks: Option<Launcher>,

    /// Time in which all ranks come [default: 5m]
    #[arg(long, value_name = "DURATION", requires = "ranks", help_heading = HOSTS)]
    pub ranks_wait: Option<Length<0>>,

    /// Address of rank 0: HOST:PORT, or file:PATH in a shared directory [default: the launcher's]
    #[arg(long, value_name = "PLACE", requires = "ranks", help_heading = HOSTS)]
    pub rendezvous: Option<String>,
}

impl RankFlags {
    /// Returns this rank among those of its launcher; else the hosts of `others`.
    pub(super) fn wanted(self, others: HostArgs) -> Result<Option<ClientHosts>> {
        let RankFlags { ranks: Some(launcher), ranks_wait, rendezvous } = self else {
            return others.wanted();
        };
        let env = Env::real();
        let (of, meeting) = find(launcher, rendezvous.as_deref(), &|name| env.text(name))?;
        let token = std::env::var_os("LOADGEN_TOKEN");
        let token = Token::new(token.as_deref().map(OsStr::as_encoded_bytes))?;
        let wait = ranks_wait.unwrap_or(RANKS_WAIT).0;
        Ok(Some(ClientHosts::Launched(Box::new(Launched { of, meeting, token, wait }))))
    }
}

/// Flags of whatever measures workloads.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct ClientArgs {
    /// Result of loadgen calibrate on this host [default: its own default]
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,

    /// Serve numbers of the running step to Prometheus: [ADDRESS:]PORT, on 127.0.0.1 without an address
    #[arg(long, value_name = "PORT", value_parser = parse_listen)]
    pub openmetrics: Option<SocketAddr>,

    /// Measure a step again, three times at most, if other programs and the hypervisor used more of a host's CPU
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub others_max: Option<f64>,

    #[command(flatten)]
    pub hosts: HostArgs,

    #[command(flatten)]
    pub ranks: RankFlags,
}

fn parse_listen(text: &str) -> std::result::Result<SocketAddr, String> {
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    let form = "no [ADDRESS:]PORT, such as 9464, 0.0.0.0:9464 or [::1]:9464; port 0 is a free one";
    text.parse().map_err(|_| form.to_owned())
}

impl ClientArgs {
    pub(super) fn invocation<'a>(
        self,
        display: &DisplayArgs,
        stop: &'a Stop,
        out: PathBuf,
    ) -> Result<Invocation<'a>> {
        let hosts = self.ranks.wanted(self.hosts)?;
        let (progress, calibration) = (display.progress(), self.calibration);
        Ok(Invocation {
            progress,
            stop,
            out,
            calibration,
            hosts,
            openmetrics: self.openmetrics,
            exporter: None,
            others_max: self.others_max,
        })
    }
}

#[derive(clap::Args, Debug, Clone)]
pub(crate) struct ServerArgs {
    #[command(flatten)]
    pub display: DisplayArgs,

    #[command(flatten)]
    pub connection: crate::mysql::options::ConnectionArgs,
}

impl DisplayArgs {
    pub(super) fn progress(&self) -> Progress {
        Progress::new(self.quiet, self.progress.map(|every| every.0))
    }
}

/// Returns the given paths of summaries, else the default directory if it exists.
pub(super) fn summary_paths(given: Vec<PathBuf>) -> Result<Vec<PathBuf>> {
    let usual = PathBuf::from(defaults::OUT);
    match given.as_slice() {
        [] if usual.is_dir() => Ok(vec![usual]),
        [] => {
            Err(Error::usage(format!("no PATH is given, and there is no {}/ here", defaults::OUT))
                .hint("name the directory of the runs' --out, or files in it"))
        }
        _ => Ok(given),
    }
}

/// Time for the last line when a second signal ends the process.
const LAST_WORD: Duration = Duration::from_millis(200);

/// Listens to signals, for verbs that do more than read and print.
pub(super) fn listen() -> Result<Stop> {
    listen_as(false)
}

/// Listens to signals; an ignored SIGINT stays ignored if `ignored_stays`.
pub(super) fn listen_as(ignored_stays: bool) -> Result<Stop> {
    require_descriptors()?;
    let stop = Stop::default();
    // A second signal waits for nothing. A sandbox's keeper notices the end of this process and removes the server.
    #[expect(clippy::exit, reason = "the second signal ends the process")]
    let listening = stop.listen(ignored_stays, |code| {
        kill_all();
        tell_lost();
        std::process::exit(i32::from(code))
    });
    listening.map_err(|e| Error::failed(format!("cannot listen to signals: {e}")))?;
    Ok(stop)
}

/// Warns that unfinished work is lost. Does not wait for a terminal or a reader of standard error that is stuck.
fn tell_lost() {
    let (told, wait) = sync_channel(1);
    let tell = move || {
        wipe();
        say(
            "error: ended by a second signal: the step or work under way is lost, what was saved before stays",
        );
        told.send(())
    };
    if thread::Builder::new().spawn(tell).is_ok() {
        let _ = wait.recv_timeout(LAST_WORD);
    }
}
