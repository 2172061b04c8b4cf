//! Commands that loadgen runs for its user, each in a process group of its own: suites, what stands
//! beside a window, what starts and stops servers or looks at them. The terminal's Ctrl-C is not for them, so a
//! second signal, at which nothing is waited for, has to end them first.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// The groups that run.
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A command and all that it starts; killed when dropped before its end.
pub(crate) struct Group {
    pub(crate) leader: Child,
}

impl Group {
    /// Starts a command as the leader of a group.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Group> {
        let leader = command.process_group(0).spawn()?;
        running().insert(leader.id().cast_signed());
        Ok(Group { leader })
    }

    /// Its number, which is its leader's process id.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.leader.id().cast_signed())
    }

    /// Sends a signal to all that are in it.
    pub(crate) fn signal(&self, signal: Signal) {
        // That nobody is left is what it is for.
        let _ = killpg(self.pid(), signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Ok(None) = self.leader.try_wait() {
            self.signal(Signal::SIGKILL);
            let _ = self.leader.wait();
        }
        running().remove(&self.pid().as_raw());
    }
}

/// Kills all of them, whatever they do.
pub(crate) fn kill_all() {
    for group in running().iter() {
        let _ = killpg(Pid::from_raw(*group), Signal::SIGKILL);
    }
}

fn running() -> MutexGuard<'static, BTreeSet<i32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
