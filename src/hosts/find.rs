//! The place of this process among the ranks that a launcher started, as its environment has it.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::launch::allocated;
use crate::error::{Error, Result, line};
use crate::terms::Launcher;

/// Upper limit on ranks: rank 0 has a connection and two threads for each.
const SIZE_MAX: u32 = 4096;
const HINT: &str = "--rendezvous HOST:PORT, or file:PATH in a directory that all ranks share";
/// Slurm's ports: the range below that of a kernel's own choice.
const PORTS: (u64, u64) = (20_000, 10_000);

/// This process among its ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Membership {
    /// The launcher, as it is called.
    pub(crate) launcher: String,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    /// The launcher's name of the job; empty where it tells none.
    pub(super) job: String,
}

/// The place where the ranks find rank 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meeting {
    At { host: String, port: u16 },
    File(PathBuf),
}

impl fmt::Display for Meeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Meeting::At { host, port } => write!(f, "{}:{port}", line(host)),
            Meeting::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl Meeting {
    /// Returns what to look at when nobody is there.
    pub(super) fn advise(&self) -> &'static str {
        match self {
            Meeting::At { .. } => {
                "does rank 0 run, with this --rendezvous, and may this host connect to its port?"
            }
            Meeting::File(_) => "does rank 0 run, and does it write to the same directory?",
        }
    }
}

/// A launcher's variables.
struct Variables {
    choice: Launcher,
    name: &'static str,
    rank: &'static str,
    size: &'static str,
    job: &'static str,
}

const GIVEN: &str = "the environment";
const OPEN_MPI: &str = "Open MPI";
const SLURM: &str = "Slurm";
const TORCHRUN: &str = "torchrun";

/// The first one counts: below mpirun in a job of Slurm's, Slurm's variables are those of a daemon.
const LAUNCHERS: [Variables; 6] = [
    row(Launcher::Env, GIVEN, ["LOADGEN_RANK", "LOADGEN_SIZE", ""]),
    row(
        Launcher::Mpi,
        OPEN_MPI,
        ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE"],
    ),
    row(Launcher::Mpi, "MPICH", ["PMI_RANK", "PMI_SIZE", "PMI_JOBID"]),
    row(Launcher::Slurm, SLURM, ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID"]),
    row(Launcher::Kubernetes, "Kubernetes", ["JOB_COMPLETION_INDEX", "LOADGEN_SIZE", ""]),
    row(Launcher::Env, TORCHRUN, ["RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"]),
];

const fn row(choice: Launcher, name: &'static str, words: [&'static str; 3]) -> Variables {
    let [rank, size, job] = words;
    Variables { choice, name, rank, size, job }
}

/// Finds the place of this process, and where it meets the others, if there are some; `given` is
/// `--rendezvous`, `env` reads a variable unless it is empty.
pub(crate) fn find(
    wanted: Launcher,
    given: Option<&str>,
    env: Env<'_>,
) -> Result<(Membership, Option<Meeting>)> {
    let mut all = LAUNCHERS.iter().filter(|of| wanted == Launcher::Auto || of.choice == wanted);
    let found = all.find_map(|of| Some(env(of.rank).transpose()?.map(|_| of)));
    let Some(of) = found.transpose()? else {
        let text = format!("--ranks {wanted}: the environment lacks the launcher's variables");
        return Err(Error::usage(text).hint(
            "start loadgen with srun or mpirun, or set LOADGEN_RANK and LOADGEN_SIZE for --ranks env",
        ));
    };
    if of.name == SLURM && env(of.size)?.is_none() {
        let text = "SLURM_PROCID is set and SLURM_STEP_NUM_TASKS is not: this is a batch script";
        return Err(Error::usage(text).hint("run it with srun: srun loadgen … --ranks slurm"));
    }
    let size = number(env, of.size)?;
    let rank = number(env, of.rank)?;
    if size == 0 || size > SIZE_MAX {
        let text = format!("{}: {size} ranks: at least 1, and {SIZE_MAX} at most", of.size);
        return Err(Error::usage(text));
    }
    if rank >= size {
        let text = format!("{}: there is no rank {rank}, because {} is {size}", of.rank, of.size);
        return Err(Error::usage(text).hint("ranks count from 0"));
    }
    let meeting = if size == 1 { None } else { Some(meeting(of, given, env)?) };
    let own = env(of.job)?;
    let mut job = if own.is_some() { own } else { env("LOADGEN_JOB")? }.unwrap_or_default();
    if of.name == SLURM {
        job = [job, env("SLURM_STEP_ID")?.unwrap_or_default()].join(".");
    }
    Ok((Membership { launcher: of.name.to_owned(), rank, size, job }, meeting))
}

type Env<'a> = &'a dyn Fn(&str) -> Result<Option<String>>;

fn number<T: std::str::FromStr>(env: Env<'_>, name: &str) -> Result<T> {
    let missing = || Error::usage(format!("{name} is not set")).hint("the launcher sets it");
    let value = env(name)?.ok_or_else(missing)?;
    let refused = |_| Error::usage(format!("{name}: '{}' is no number", line(&value)));
    value.parse().map_err(refused)
}

fn meeting(of: &Variables, given: Option<&str>, env: Env<'_>) -> Result<Meeting> {
    if let Some(text) = given {
        return parse(text, "--rendezvous");
    }
    if let Some(text) = env("LOADGEN_RENDEZVOUS")? {
        return parse(&text, "LOADGEN_RENDEZVOUS");
    }
    let same =
        |one: &str, slurms: &str| Ok::<_, Error>(env(one)?.is_some() && env(one)? == env(slurms)?);
    // srun sets the variables of MPICH, too, where the site wants it to.
    let by_srun = same(of.rank, "SLURM_PROCID")? && same(of.size, "SLURM_STEP_NUM_TASKS")?;
    match of.name {
        TORCHRUN => {
            let host = env("MASTER_ADDR")?.ok_or_else(|| Error::usage("MASTER_ADDR is not set"));
            Ok(Meeting::At { host: host?, port: number(env, "MASTER_PORT")? })
        }
        OPEN_MPI => Err(unknown(of)),
        _ if by_srun => at_slurm(env),
        _ => Err(unknown(of)),
    }
}

fn unknown(of: &Variables) -> Error {
    Error::usage(format!("{} does not tell the address of rank 0", of.name)).hint(HINT)
}

/// Returns the place that all ranks of a step find by themselves.
fn at_slurm(env: Env<'_>) -> Result<Meeting> {
    const NODES: &str = "SLURM_STEP_NODELIST";
    let refused = || Error::usage(format!("{NODES} names no first node")).hint(HINT);
    let nodes = allocated(env(NODES)?.as_deref()).map_err(|_| refused())?;
    let host = nodes.into_iter().next().ok_or_else(refused)?;
    let (job, step) = (number::<u64>(env, "SLURM_JOB_ID")?, number::<u64>(env, "SLURM_STEP_ID")?);
    let (first, count) = PORTS;
    let port = first + job.wrapping_add(step.wrapping_mul(61)) % count;
    Ok(Meeting::At { host, port: port as u16 })
}

/// Parses `HOST:PORT` or `file:PATH`.
fn parse(text: &str, from: &str) -> Result<Meeting> {
    let refused = || {
        Error::usage(format!("{from}: '{}' is neither HOST:PORT nor file:PATH", line(text)))
            .hint(HINT)
    };
    if let Some(path) = text.strip_prefix("file:") {
        return if path.is_empty() { Err(refused()) } else { Ok(Meeting::File(path.into())) };
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(refused)?;
    let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = inside.unwrap_or(host).to_owned();
    let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(refused)?;
    if host.is_empty() { Err(refused()) } else { Ok(Meeting::At { host, port }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    fn found(
        wanted: Launcher,
        given: Option<&str>,
        recorded: &str,
    ) -> Result<(Membership, Option<Meeting>)> {
        let pairs = recorded.split_whitespace().filter_map(|word| word.split_once('='));
        let env: Vec<(&str, &str)> = pairs.collect();
        let get = |name: &str| {
            let pair = env.iter().find(|(of, _)| *of == name);
            Ok(pair.map(|(_, value)| (*value).to_owned()))
        };
        find(wanted, given, &get)
    }

    const BATCH: &str = "SLURM_JOB_ID=4711 SLURM_PROCID=0 SLURM_NODEID=0 SLURM_LOCALID=0 \
        SLURM_NTASKS=4 SLURM_JOB_NODELIST=n[1-2] ";
    const STEP: &str = "SLURM_STEP_ID=3 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=n[07,09-10] ";

    struct Case {
        env: String,
        given: Option<&'static str>,
        is: (&'static str, u32, u32),
        at: &'static str,
    }

    #[test]
    fn rank_is_that_of_the_launcher_next_to_it() {
        let (at, file) = (Some("n1:7000"), Some("file:/shared/job"));
        let ompi = "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=3 ";
        let hydra = "PMI_RANK=1 PMI_SIZE=3 PMI_FD=6 ";
        let daemon = BATCH.replace("PROCID=0", "PROCID=1") + STEP;
        let torch = "RANK=1 WORLD_SIZE=2 MASTER_ADDR=n1 MASTER_PORT=29500 LOCAL_RANK=0";
        let cases = [
            Case { env: ompi.into(), given: at, is: (OPEN_MPI, 3, 4), at: "n1:7000" },
            Case {
                env: format!("{daemon}{ompi}"),
                given: file,
                is: (OPEN_MPI, 3, 4),
                at: "file:/shared/job",
            },
            Case { env: format!("{BATCH}{hydra}"), given: at, is: ("MPICH", 1, 3), at: "n1:7000" },
            Case { env: format!("{daemon}{hydra}"), given: at, is: ("MPICH", 1, 3), at: "n1:7000" },
            Case { env: daemon.clone(), given: None, is: (SLURM, 1, 2), at: "n07:24894" },
            Case { env: daemon.clone(), given: at, is: (SLURM, 1, 2), at: "n1:7000" },
            Case {
                env: format!("{daemon}PMI_RANK=1 PMI_SIZE=2"),
                given: None,
                is: ("MPICH", 1, 2),
                at: "n07:24894",
            },
            Case {
                env: "JOB_COMPLETION_INDEX=2 LOADGEN_SIZE=4 LOADGEN_RENDEZVOUS=lg-0.lg:7000".into(),
                given: None,
                is: ("Kubernetes", 2, 4),
                at: "lg-0.lg:7000",
            },
            Case { env: torch.into(), given: None, is: (TORCHRUN, 1, 2), at: "n1:29500" },
            Case {
                env: "LOADGEN_RANK=0 LOADGEN_SIZE=1".into(),
                given: None,
                is: (GIVEN, 0, 1),
                at: "",
            },
            Case {
                env: format!("{torch} {hydra}LOADGEN_RANK=0 LOADGEN_SIZE=2"),
                given: Some("[::1]:7000"),
                is: (GIVEN, 0, 2),
                at: "::1:7000",
            },
        ];
        for Case { env, given, is: (launcher, rank, size), at } in cases {
            let (found, meeting) = found(Launcher::Auto, given, &env).expect(&env);
            assert_eq!(
                (found.launcher.as_str(), found.rank, found.size),
                (launcher, rank, size),
                "{env}"
            );
            let meeting = meeting.map_or_else(String::new, |meeting| meeting.to_string());
            assert_eq!(meeting, at, "{env}");
        }
        let (by_name, _) =
            found(Launcher::Slurm, None, &format!("{daemon}{ompi}")).expect("srun's");
        assert_eq!((by_name.rank, by_name.job.as_str()), (1, "4711.3"));
    }

    #[test]
    fn environment_that_cannot_be_is_refused_by_its_variable() {
        let (at, step) = (Some("n1:7000"), format!("{BATCH}{STEP}"));
        for (given, env, names) in [
            (None, BATCH, "SLURM_STEP_NUM_TASKS"),
            (at, "", "--ranks auto"),
            (at, "LOADGEN_RANK=2 LOADGEN_SIZE=2", "LOADGEN_RANK"),
            (at, "LOADGEN_RANK=0 LOADGEN_SIZE=0", "LOADGEN_SIZE"),
            (at, "LOADGEN_RANK=0 LOADGEN_SIZE=4000000000", "LOADGEN_SIZE"),
            (at, "LOADGEN_RANK=-1 LOADGEN_SIZE=2", "LOADGEN_RANK"),
            (at, "PMI_RANK=x PMI_SIZE=2", "PMI_RANK"),
            (at, "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE"),
            (at, "JOB_COMPLETION_INDEX=1", "LOADGEN_SIZE"),
            (None, "PMI_RANK=0 PMI_SIZE=2", "MPICH"),
            (None, "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a", "MASTER_PORT"),
            (None, &step.replace("n[07,", "n[x,"), "SLURM_STEP_NODELIST"),
            (None, &step.replace("STEP_ID=3", "STEP_ID=x"), "SLURM_STEP_ID"),
            (Some("n1"), "LOADGEN_RANK=0 LOADGEN_SIZE=2", "--rendezvous"),
            (Some("n1:0"), "LOADGEN_RANK=0 LOADGEN_SIZE=2", "--rendezvous"),
            (Some("file:"), "LOADGEN_RANK=0 LOADGEN_SIZE=2", "--rendezvous"),
            (None, "LOADGEN_RANK=0 LOADGEN_SIZE=2 LOADGEN_RENDEZVOUS=:1", "LOADGEN_RENDEZVOUS"),
        ] {
            let refused = found(Launcher::Auto, given, env).expect_err(env);
            assert_eq!(refused.kind(), Kind::Usage, "{env}");
            assert!(refused.to_string().contains(names), "{env}: {refused}");
        }
    }
}
