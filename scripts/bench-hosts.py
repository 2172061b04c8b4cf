"""The measurement of scripts/bench-hosts, and the rank that repeats what another one said."""

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

CORE_MAX = 0.25
RSS_MAX_MIB = 200
# Clients of each recorded rank.
EACH = 256


def sweep(loadgen, port, out, words):
    """Runs a sweep."""
    base = [loadgen, "point-select", "-h", "127.0.0.1", "-P", port, "-u", "x", "--no-defaults"]
    command = base + ["--tables", "8", "--quiet", "--out", str(out)] + words
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def record(loadgen, port, work):
    """Records what a rank with so many clients says in a step of ten seconds."""
    said = work / "said.jsonl"
    script = f'"$@" | tee {shlex.quote(str(said))}'
    command = f"sh -c {shlex.quote(script)} sh env AT={{host}}"
    words = ["--hosts", "a", "--host-command", command, "--host-program", loadgen]
    words += ["--engine-threads", "1", "--clients", str(EACH), "--warmup", "1s", "--time", "10s"]
    sweep(loadgen, port, work / "recorded", words)
    return said


def usage(pid):
    """CPU seconds of a process, and its peak resident size in MiB."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    status = Path(f"/proc/{pid}/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), peak


def lead(loadgen, port, work, ranks):
    """Leads so many ranks that repeat a recording; reads the use of the process that leads."""
    said = record(loadgen, port, work)
    hosts = ",".join(f"h{n}" for n in range(ranks))
    words = [loadgen, "point-select", "-h", "127.0.0.1", "-P", port, "-u", "x", "--no-defaults"]
    words += ["--tables", "8", "--quiet", "--out", str(work / "led"), "--engine-threads", "1"]
    command = f"env AT={{host}} python3 {shlex.quote(__file__)} repeat {shlex.quote(str(said))}"
    words += ["--hosts", hosts, "--host-command", command]
    words += ["--clients", str(EACH * ranks), "--warmup", "1s", "--time", "10s"]
    errors = work / "errors"
    with errors.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=file)
    samples = []
    while process.poll() is None:
        try:
            samples.append((time.monotonic(), *usage(process.pid)))
        except (OSError, IndexError):
            break
        time.sleep(0.2)
    if process.wait() != 0:
        said = errors.read_text(encoding="utf-8")
        sys.exit(f"the run with {ranks} ranks ended with {process.returncode}:\n{said}")
    step = json.loads(next((work / "led").glob("*.json")).read_text())
    # Those of the window of ten seconds, which ends about a second before the process.
    began = samples[-1][0] - 11
    inside = [sample for sample in samples if began <= sample[0] <= began + 10]
    cores = (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])
    peak = max(sample[2] for sample in samples)
    well = cores <= CORE_MAX and peak <= RSS_MAX_MIB
    print(f"{len(step['hosts'])} ranks of {EACH} clients each, which repeat a recorded one:\n")
    print("| cores of rank 0 in the window | peak MiB | its CPU s in all | marks | result |")
    print("| ----------------------------: | -------: | ---------------: | ----- | ------ |")
    print(
        f"| {cores:.3f} | {peak:.0f} | {samples[-1][1]:.1f}"
        f" | ≤ {CORE_MAX}, ≤ {RSS_MAX_MIB} | {'ok' if well else 'MISSED'} |"
    )
    return not well


def repeat(path):
    """Is a rank that says what another one said; only the answers about clocks are its own."""
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if line.strip() not in ('"Beat"', "") and '"Pong"' not in line]
    kind = lambda line: next(iter(json.loads(line))) if line.startswith("{") else None
    hello = next(line for line in lines if kind(line) == "Hello")
    server = next(line for line in lines if kind(line) == "Server")
    rest = [line for line in lines if kind(line) not in ("Hello", "Server")]
    opened = [line for line in rest if json.loads(line) == {"Event": [0, "Opened"]}]
    events = [line for line in rest if json.loads(line) != {"Event": [0, "Opened"]}]
    # An interval or a report is said when it has ended.
    timed, last = [], 0
    for line in events:
        _, event = json.loads(line).get("Event", [0, None])
        body = event if isinstance(event, dict) else {}
        ends = body.get("Interval", {}).get("end", body.get("Service", {}).get("until", last))
        last = max(last, ends) if ends < 1 << 62 else last
        timed.append((last / 1e9, line))

    def say(text):
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()

    say(hello)
    origin, todo = None, []
    os.set_blocking(0, False)
    pending, beat = b"", time.monotonic()
    while True:
        try:
            more = os.read(0, 1 << 20)
            if not more:
                return
            pending += more
        except BlockingIOError:
            time.sleep(0.001 if origin is None else 0.02)
        *whole, pending = pending.split(b"\n")
        for line in whole:
            now = time.monotonic_ns()
            message = json.loads(line)
            name = message if isinstance(message, str) else next(iter(message))
            if name == "Ping":
                answer = {"sent": message["Ping"]["sent"], "received": now, "answered": time.monotonic_ns()}
                say(json.dumps({"Pong": answer}))
            elif name == "Server":
                say(server)
            elif name == "Open":
                sys.stdout.write("".join(opened))
                sys.stdout.flush()
            elif name == "Go":
                origin, todo = message["Go"]["start"] / 1e9, list(timed)
            elif name == "Close":
                origin, todo = None, []
            elif name == "End":
                return
        now = time.monotonic()
        while todo and origin is not None and now >= origin + todo[0][0]:
            say(todo.pop(0)[1])
        if now - beat >= 1:
            say('"Beat"')
            beat = now


def main(words):
    if words[0] == "repeat":
        repeat(words[1])
        return
    loadgen, port, work, ranks = words
    sys.exit(1 if lead(loadgen, port, Path(work), int(ranks)) else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
