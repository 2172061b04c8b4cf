//! Starting the processes of other hosts: by ssh, by the user's own command, or here.

use std::env;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use super::link::spawn;
use crate::error::{Error, Result, line};
use crate::mysql::Env;
use crate::progress::say;
use crate::stop::Group;

/// The host that needs no command: this one.
pub(super) const HERE: &str = "localhost";
const SSH: [&str; 5] = ["ssh", "-T", "-o", "BatchMode=yes", "--"];
const PLACE: &str = "{host}";
/// The name of `--hosts` for the nodes of Slurm's allocation, and the way to start a program on one.
const SLURM: &str = "slurm";
/// Else a task is bound to one core where the cluster binds tasks.
const SRUN: [&str; 7] = ["srun", "-u", "-N1", "-n1", "--cpu-bind=none", "-w", PLACE];
/// Upper limit on the nodes of an allocation: a few digits too many would fill the memory with names.
const NODES_MAX: usize = 1 << 16;

/// The hosts of `--hosts`, and the way to start loadgen there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) hosts: Vec<String>,
    /// Words before the program, with `{host}` in them; empty for ssh.
    pub(crate) command: Vec<String>,
    /// The program there; None for `loadgen` on its PATH.
    pub(crate) program: Option<String>,
}

impl Wanted {
    /// Checks the names, and splits the command as a shell does.
    pub(crate) fn new(
        mut hosts: Vec<String>,
        command: Option<&str>,
        program: Option<String>,
    ) -> Result<Wanted> {
        // As in other lists, a blank may follow a comma.
        hosts = hosts.iter().map(|host| host.trim().to_owned()).collect();
        let mut usual = Vec::new();
        if hosts == [SLURM] {
            hosts = allocated(Env::real().text("SLURM_JOB_NODELIST")?.as_deref())?;
            usual = owned(&SRUN);
        }
        if let Some(host) = hosts.iter().find(|host| host.is_empty() || host.starts_with('-')) {
            return Err(Error::usage(format!("--hosts: '{}' is no host", line(host)))
                .hint("--hosts c1,user@c2,localhost"));
        }
        let split = |text: &str| {
            let words = shlex::split(text).filter(|words| !words.is_empty());
            words.ok_or_else(|| {
                Error::usage(format!("--host-command '{}' is no command", line(text)))
                    .hint("--host-command 'podman exec -i {host}'")
            })
        };
        let command = command.map(split).transpose()?.unwrap_or(usual);
        if !command.is_empty() && !command.iter().any(|word| word.contains(PLACE)) {
            return Err(Error::usage("--host-command has no {host} for the host's name")
                .hint("--host-command 'podman exec -i {host}'"));
        }
        Ok(Wanted { hosts, command, program })
    }

    pub(super) fn way(&self, host: &str) -> Way {
        match host {
            HERE => Way::Here,
            _ if self.command.is_empty() => Way::Ssh,
            _ => Way::Command,
        }
    }

    /// Returns the command that starts a rank on a host.
    fn words(&self, host: &str) -> Vec<String> {
        let program = self.program.clone().unwrap_or_else(|| "loadgen".to_owned());
        let (mut words, program): (Vec<String>, String) = if self.way(host) == Way::Here {
            let own = env::current_exe().ok().filter(|own| own.exists());
            // The file of a program that was replaced while it runs has no name.
            let own = own.unwrap_or_else(|| "/proc/self/exe".into());
            (Vec::new(), own.to_string_lossy().into_owned())
        } else if self.command.is_empty() {
            (owned(&[&SSH[..], &[host]].concat()), program)
        } else {
            (self.command.iter().map(|word| word.replace(PLACE, host)).collect(), program)
        };
        words.extend([program, "rank".to_owned()]);
        words
    }

    /// Starts a rank; what it says on standard error is shown with its host.
    pub(super) fn start(&self, host: &str) -> Result<Group> {
        let words = self.words(host);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let started = Group::spawn(command.stderr(Stdio::piped())).map_err(|e| {
            Error::failed(format!("--hosts {host}: {} cannot be started: {e}", words[0]))
                .hint("--host-command names another way to start a program there")
        });
        let mut group = started?;
        let (errors, name) = (group.stderr.take().expect("it is piped"), host.to_owned());
        spawn("host-errors", move || pass_on(errors, &name))?;
        Ok(group)
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Lists the nodes of an allocation, which Slurm writes as `a[03,07-9],b`.
pub(super) fn allocated(list: Option<&str>) -> Result<Vec<String>> {
    let hint = "inside salloc or sbatch, or --hosts node1,node2";
    let Some(list) = list.filter(|list| !list.is_empty()) else {
        let text = "--hosts slurm: SLURM_JOB_NODELIST is not set, so this is no allocation";
        return Err(Error::usage(text).hint(hint));
    };
    let refused = || Error::usage(format!("SLURM_JOB_NODELIST: '{}' is no list", line(list)));
    let (mut nodes, mut rest) = (Vec::new(), list);
    while !rest.is_empty() {
        let end = rest.find([',', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let Some(inside) = after.strip_prefix('[') else {
            nodes.push(name.to_owned());
            rest = after.strip_prefix(',').unwrap_or(after);
            continue;
        };
        let (ranges, after) = inside.split_once(']').ok_or_else(refused)?;
        for range in ranges.split(',') {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            let numbers = from.parse::<u32>().ok().zip(to.parse::<u32>().ok());
            let fit = |(first, last): &(u32, u32)| {
                first <= last && nodes.len() + ((last - first) as usize) < NODES_MAX
            };
            let (first, last) = numbers.filter(fit).ok_or_else(refused)?;
            let width = from.len();
            nodes.extend((first..=last).map(|number| format!("{name}{number:0width$}")));
        }
        rest = match after.strip_prefix(',') {
            Some(more) => more,
            None if after.is_empty() => after,
            None => return Err(refused().hint(hint)),
        };
    }
    Ok(nodes)
}

fn pass_on(errors: impl Read, host: &str) {
    let lines = BufReader::new(errors).split(b'\n').map_while(std::io::Result::ok);
    for text in lines.filter(|text| !text.is_empty()) {
        say(&format!("{host}: {}", line(String::from_utf8_lossy(&text).trim_end())));
    }
}

/// The way in which a rank was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Ssh,
    Command,
    Here,
    /// By somebody else, with words of its own.
    Launcher,
}

impl Way {
    /// Returns what to do about the end of a rank, with the status of the command that was to start it.
    pub(super) fn hint(self, host: &str, code: Option<i32>, started: bool) -> String {
        // Its output has this name, also where a launcher's rank 0 has that of the host.
        let host = if self == Way::Here { HERE } else { host };
        match (self, code.filter(|_| !started)) {
            (Way::Launcher, _) => "read the output of this rank: its launcher has it".to_owned(),
            (Way::Ssh, Some(127)) => format!("no loadgen is there: {}", copy(host)),
            (Way::Command, Some(127)) => {
                "no loadgen is there: --host-program names its path there".to_owned()
            }
            (Way::Ssh, Some(255)) => {
                format!("ssh could not connect: try ssh -o BatchMode=yes {host} true")
            }
            _ => format!("the lines above that begin with {host}: are its output"),
        }
    }

    /// Returns how the same program comes to a host.
    pub(super) fn same_program(self, host: &str) -> String {
        match self {
            Way::Ssh => format!("the same program everywhere: {}", copy(host)),
            _ => "the same program everywhere".to_owned(),
        }
    }
}

fn copy(host: &str) -> String {
    format!("scp \"$(command -v loadgen)\" {host}: and --host-program ./loadgen")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: Option<&str>, program: Option<&str>, host: &str) -> String {
        let wanted = Wanted::new(vec![host.to_owned()], command, program.map(str::to_owned));
        let wanted = wanted.expect("a command");
        wanted.words(&wanted.hosts[0]).join("|")
    }

    #[test]
    fn rank_is_started_by_ssh_by_the_own_command_or_here() {
        assert_eq!(words(None, None, "u@c1"), "ssh|-T|-o|BatchMode=yes|--|u@c1|loadgen|rank");
        let own = "kubectl  exec -i 'pod {host}' \"a\\\"b\" --";
        assert_eq!(
            words(Some(own), Some("/opt/loadgen"), "c1"),
            "kubectl|exec|-i|pod c1|a\"b|--|/opt/loadgen|rank"
        );
        assert_eq!(words(None, None, " c1"), words(None, None, "c1"));
        assert!(words(Some("env AT={host}"), None, HERE).ends_with("|rank"));
        assert!(!words(Some("env AT={host}"), None, HERE).contains("env"));
    }

    #[test]
    fn output_of_rank_0_is_named_as_it_is_shown() {
        assert!(Way::Here.hint("node7", None, true).contains("begin with localhost:"));
        assert!(Way::Ssh.hint("node7", None, true).contains("begin with node7:"));
    }

    #[test]
    fn nodes_of_an_allocation_are_those_of_its_list() {
        let nodes = |list| allocated(Some(list)).map(|nodes| nodes.join(" ")).ok();
        assert_eq!(nodes("n1").as_deref(), Some("n1"));
        assert_eq!(nodes("a[03,07-9],b").as_deref(), Some("a03 a07 a08 a09 b"));
        assert_eq!(nodes("g[1-2],c[098-100]").as_deref(), Some("g1 g2 c098 c099 c100"));
        for wrong in ["", "a[", "a[x]", "a[3-1]", "a[1]b", "a[1-4000000000]"] {
            assert_eq!(nodes(wrong), None, "{wrong}");
        }
        assert!(allocated(None).is_err());
    }

    #[test]
    fn host_or_command_that_cannot_be_is_refused() {
        for (host, command) in
            [("-oProxy", None), (" ", None), ("a", Some("env")), ("a", Some("env '{host}"))]
        {
            let refused = Wanted::new(vec![host.to_owned()], command, None);
            assert_eq!(refused.expect_err(host).kind(), crate::error::Kind::Usage);
        }
    }
}
