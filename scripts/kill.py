"""The campaigns of scripts/kill-server and scripts/kill-loadgen."""

import argparse
import contextlib
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LOADGEN, SANDBOX = os.environ["LOADGEN"], os.environ["SANDBOX"]
TABLES, ROWS = 4, 10_000
OK, DATA, UNDECIDED = 0, 4, 98


class Server:
    """A private server whose data stays."""

    def __init__(self, program, options, data):
        self.words = [SANDBOX, *([program] if program else []), f"--data={data}", *options]
        self.log = data + ".log"
        self.keeper = self.port = self.pid = None

    def start(self):
        with open(self.log, "a", encoding="utf-8") as log:
            self.keeper = subprocess.Popen(self.words, stdin=subprocess.PIPE, stderr=log,
                                           stdout=subprocess.PIPE, text=True)
        first = self.keeper.stdout.readline().split(" ", 1)
        if len(first) != 2:
            with open(self.log, encoding="utf-8") as log:
                sys.exit("error: the server does not start:\n" + log.read()[-2000:])
        self.port, self.version = first[0], first[1].strip()
        self.pid = int(self.keeper.stdout.readline())

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def end(self):
        self.keeper.stdin.close()
        self.keeper.wait()

    def drop(self):
        """Whatever became of it; what it leaves, its own keeper takes away."""
        if self.keeper:
            self.keeper.kill()
            self.keeper.wait()


@contextlib.contextmanager
def started(argv, stderr):
    """A loadgen that does not outlive the block."""
    load = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=stderr, text=True)
    try:
        yield load
    finally:
        load.kill()
        load.wait()


def words(server, verb, *rest):
    return [LOADGEN, verb, "--no-defaults", "-h", "127.0.0.1", "-P", server.port, "-u", "root",
            "--quiet", *rest]


def run(argv, allowed=(OK,)):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode not in allowed:
        fail(f"{' '.join(argv)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


def fail(what):
    print(f"error: {what}", file=sys.stderr)
    raise SystemExit(1)


def tidy(work):
    """Removes it, unless something failed: then it is the evidence."""
    if sys.exc_info()[0] is None:
        shutil.rmtree(work, ignore_errors=True)
    else:
        print(f"kept: {work}", file=sys.stderr)


def prepare(server):
    run(words(server, "prepare", "--tables", str(TABLES), "--rows", str(ROWS), "--force", "--yes"))


def summaries(results):
    """Every summary, whole; the schema's own name stands for the rest of what readers check."""
    found = []
    for path in glob.glob(os.path.join(glob.escape(results), "*.json")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        try:
            found.append(json.loads(text))
        except ValueError as error:
            fail(f"{path} is damaged: {error}")
    if found:
        run([LOADGEN, "report", "--partial", results])
    return found


def records(results):
    """Of steps that began to write and have no summary yet."""
    return glob.glob(os.path.join(glob.escape(results), "*.begun"))


def ledger(steps, field):
    return sum(entry[field] for step in steps for entry in step["ledger"])


def progress(i, n, text):
    print(f"{i} of {n}: {text}", file=sys.stderr, flush=True)


def kill_server(options, server_options):
    """Kills the server N times."""
    work = tempfile.mkdtemp(prefix="kill-server-")
    server_options = [f"--innodb-flush-log-at-trx-commit={options.trx_commit}", *server_options]
    server = Server(options.server, server_options, os.path.join(work, "data"))
    began, exact, unsure, losses, acked, doubts, idle = time.time(), 0, 0, [], 0, 0, 0
    try:
        server.start()
        version = server.version
        results = os.path.join(work, "results")
        for i in range(1, options.n + 1):
            # What a loss leaves would be found again, and what was in doubt would hide one.
            shutil.rmtree(results, ignore_errors=True)
            prepare(server)
            known = {step["step_id"] for step in summaries(results)}
            argv = words(server, "update-index", "--clients", "64", "--warmup", "0", "--time",
                         "60s", "--out", results)
            with started(argv, subprocess.PIPE) as load:
                # Its record is durable just before its first write.
                while not records(results) and load.poll() is None:
                    time.sleep(0.01)
                time.sleep(random.uniform(0, 1.5))
                server.kill()
                try:
                    said = load.communicate(timeout=60)[1]
                except subprocess.TimeoutExpired:
                    fail("loadgen did not end within a minute of the server's death")
            server.end()
            server.start()
            now = [step for step in summaries(results) if step["step_id"] not in known]
            if load.returncode != 1 or len(now) != 1:
                fail(f"loadgen ended with {load.returncode} and {len(now)} summaries: {said}")
            updates, doubt = ledger(now, "updates"), ledger(now, "in_doubt")
            acked, doubts, idle = acked + updates, doubts + doubt, idle + (updates == 0)
            done = run(words(server, "verify", results), (OK, DATA, UNDECIDED))
            lost = sum(int(n) for n in re.findall(r"LOST (\d+)", done.stdout))
            if re.search("DAMAGED|INDEX", done.stdout):
                fail(f"damaged:\n{done.stdout}")
            exact += done.returncode == OK
            unsure += done.returncode == UNDECIDED
            if lost:
                losses.append(lost)
            progress(i, options.n, f"{updates} acknowledged, {doubt} in doubt, {lost} lost "
                                   f"(verify {done.returncode})")
            if done.returncode != OK and options.trx_commit != "0":
                fail(f"a durable server, and verify says:\n{done.stdout}{done.stderr}")
        server.end()
    finally:
        server.drop()
        tidy(work)
    spread = f"{min(losses)} to {max(losses)}" if losses else "0"
    print(f"| {version} | {options.trx_commit} | {options.n} | {exact} | {unsure} | {len(losses)} "
          f"| {sum(losses)} ({spread} a kill) | {acked} | {doubts} | {idle} "
          f"| {time.time() - began:.0f} s |")


def kill_loadgen(options, server_options):
    """Kills loadgen N times."""
    work = tempfile.mkdtemp(prefix="kill-loadgen-")
    server = Server(options.server, server_options, os.path.join(work, "data"))
    workloads = ("update-index", "write-only", "insert", "delete", "update-non-index")
    began, steps, verdicts, recorded = time.time(), 0, {}, 0
    try:
        server.start()
        for i in range(1, options.n + 1):
            results = os.path.join(work, "results")
            shutil.rmtree(results, ignore_errors=True)
            os.mkdir(results)
            prepare(server)
            workload = workloads[i % len(workloads)]
            argv = words(server, workload, "--clients", "1,2,4,8", "--warmup", "0", "--time",
                         "300ms", "--out", results)
            argv.remove("--quiet")
            errors = os.path.join(work, "stderr")
            with open(errors, "w", encoding="utf-8") as log, started(argv, log):
                time.sleep(random.uniform(0.02, 2.0))
            with open(errors, encoding="utf-8") as log:
                told = len(re.findall(r"clients: \d+ QPS", log.read()))
            whole = len(summaries(results))
            if whole < told:
                fail(f"{told} steps were told as finished, {whole} summaries are there")
            left = records(results)
            done = run(words(server, "verify", results), (OK, UNDECIDED))
            # Without a record every step is known: only what has no trace may be undecided.
            if not left and done.returncode != OK and workload in ("update-index", "insert"):
                fail(f"{workload}, nothing is missing, and verify says:\n{done.stdout}")
            key = "ok" if done.returncode == OK else "cannot judge"
            verdicts[key] = verdicts.get(key, 0) + 1
            steps, recorded = steps + whole, recorded + len(left)
            progress(i, options.n, f"{workload}: {whole} summaries, {len(left)} records: {key}")
        server.end()
    finally:
        server.drop()
        tidy(work)
    print(f"| {server.version} | {options.n} | {steps} | 0 | {recorded} | {verdicts.get('ok', 0)} "
          f"| {verdicts.get('cannot judge', 0)} | 0 | {time.time() - began:.0f} s |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("server", "loadgen"))
    parser.add_argument("n", nargs="?", type=int, default=10)
    parser.add_argument("--server")
    parser.add_argument("--trx-commit", default="1", choices="012")
    parser.add_argument("--seed", type=int, default=None)
    options, server_options = parser.parse_known_args()
    random.seed(options.seed)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    {"server": kill_server, "loadgen": kill_loadgen}[options.what](options, server_options)


main()
