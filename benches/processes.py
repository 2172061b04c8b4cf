"""Processes that a script starts: what they cost as the kernel counts it, and an end for each
of them, whatever happens to the script."""

import contextlib
import os
import re
import resource
import select
import subprocess
import tempfile
import time


class Failed(Exception):
    """A program did not do what it should; the text says which one, and what it said."""


def command(argv, core):
    """A command line that is pinned, if to a core, and ends with us even if we are killed."""
    pin = [] if core is None else ["taskset", "-c", str(core)]
    return ["setpriv", "--pdeathsig", "TERM", *pin, *argv]


def environment():
    """Ours, without what would lead a client elsewhere."""
    led = ("MYSQL", "MARIADB", "LOADGEN")
    return {name: value for name, value in os.environ.items() if not name.startswith(led)}


def stop(process):
    """Ends a process that we started and waits for it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def watch(pid):
    """Waits until a process ends, without reaping it; its peak resident size in KiB so far as
    it was seen."""
    seen_kib = 0
    poll = select.poll()
    with open(os.pidfd_open(pid)) as end:
        poll.register(end, select.POLLIN)
        while not poll.poll(20):
            with open(f"/proc/{pid}/status", encoding="utf-8") as status:
                peak = re.search(r"VmHWM:\s+(\d+) kB", status.read())
            # An ended process has none.
            seen_kib = int(peak[1]) if peak else seen_kib
    return seen_kib


class Turn:
    """One run of one program: what it printed, what it complained of, and what it cost."""

    def __init__(self, argv, core=None):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            began = time.monotonic()
            process = subprocess.Popen(command(argv, core), stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=err, env=environment())
            try:
                seen_kib = watch(process.pid)
                self.wall_s = time.monotonic() - began
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            finally:
                stop(process)
            out.seek(0)
            err.seek(0)
            self.printed = out.read().decode(errors="replace")
            self.complained = err.read().decode(errors="replace")
        if process.returncode != 0:
            said = self.complained + self.printed
            tail = "\n".join(said.strip().splitlines()[-8:])
            raise Failed(f"{' '.join(argv)}: status {process.returncode}\n{tail}")
        self.cpu_s = usage.ru_utime + usage.ru_stime
        # The kernel's peak begins with our own size, as a child is ours until it executes its
        # program: up to there, what was seen has to do.
        own_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.peak_mib = (usage.ru_maxrss if usage.ru_maxrss > own_kib else seen_kib) / 1024

    def counted(self, count, per_s=None, p50_us=None, p99_us=None):
        """With what it did, how fast (else over its whole time), and how long an op took."""
        self.per_s, self.p50_us, self.p99_us = per_s or count / self.wall_s, p50_us, p99_us
        self.cpu_us = self.cpu_s * 1e6 / count
        return self


@contextlib.contextmanager
def serving(argv, core=None):
    """A server of ours: the line that it prints once it is ready, and its pid. It ends with its
    standard input or by a signal."""
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command(argv, core), stdin=subprocess.PIPE, stderr=err,
                                   stdout=subprocess.PIPE, text=True, env=environment())
        try:
            line = process.stdout.readline().strip()
            if not line:
                err.seek(0)
                raise Failed(f"{' '.join(argv)} did not start\n{err.read().decode().strip()}")
            yield line, process.pid
        finally:
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20 if core is None else 0)
            stop(process)
            process.stdout.close()


def busy_s(pid):
    """CPU seconds of a running process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
