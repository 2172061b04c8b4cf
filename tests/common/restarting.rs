//! A real server that is killed and comes back on the same port, with the same data.
#![allow(dead_code, reason = "every test program uses its own part of this")]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use loadgen::sandbox::Sandbox;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The longest that anything here may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// Waits for something to become true; panics with its name if it does not.
pub(crate) fn until(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < PATIENCE, "{what} did not happen within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A sandbox whose server may be killed and started again.
pub(crate) struct Restarting {
    pub(crate) sandbox: Sandbox,
    command: Vec<OsString>,
    again: Option<Child>,
    pid: u32,
}

impl Restarting {
    pub(crate) fn new(sandbox: Sandbox) -> Restarting {
        let pid = sandbox.pid;
        let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).expect("the server runs");
        let command = bytes.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        let command = command.map(|word| OsString::from_vec(word.to_vec())).collect();
        Restarting { sandbox, command, again: None, pid }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid.cast_signed()), signal).expect("the server runs");
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        if let Some(child) = &mut self.again {
            child.wait().expect("a child");
        }
        // The sandbox's own child is not waited for here: without its memory it is dead.
        let pid = self.pid;
        until("the server's end", || {
            std::fs::read_to_string(format!("/proc/{pid}/statm")).is_ok_and(|m| m.starts_with("0 "))
                || !std::path::Path::new(&format!("/proc/{pid}")).exists()
        });
    }

    /// Starts it again; it may take a while until it answers.
    pub(crate) fn start(&mut self) {
        // MySQL takes the dead server for a live one, whose lock this is, while nobody has waited for
        // it.
        let mut lock = self.sandbox.socket.as_os_str().to_owned();
        lock.push(".lock");
        let _ = std::fs::remove_file(lock);
        let child = Command::new(&self.command[0])
            .args(&self.command[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        self.pid = child.id();
        self.again = Some(child);
    }

    pub(crate) fn answers(&self) -> bool {
        std::os::unix::net::UnixStream::connect(&self.sandbox.socket).is_ok()
    }
}

impl Drop for Restarting {
    fn drop(&mut self) {
        if let Some(mut child) = self.again.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
