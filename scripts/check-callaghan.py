"""The comparison of scripts/check-callaghan."""

import argparse
import importlib
import os
import re
import subprocess
import sys
import tempfile
import tomllib

known = importlib.import_module("check-sysbench-lua")
PROFILE = "profiles/callaghan-sysbench.toml"
EVENTS = 10
# A range of 10,000 rows does not reach beyond most of the table.
ROWS = 20_000

# The script of each microbenchmark, and its options as in run.sh, copied.
READ_ONLY = {"simple-ranges", "sum-ranges", "order-ranges", "distinct-ranges"}
SCRIPTS = {
    "update-inlist": ("oltp_inlist_update", {}),
    "update-index": ("oltp_update_index", {}),
    "update-nonindex": ("oltp_update_non_index", {}),
    "update-one": ("oltp_update_non_index", {"table-size": 1}),
    # His has --rand-type=zipfian, which sysbench 1.0 does not know; keys are masked.
    "update-zipf": ("oltp_update_non_index", {}),
    "write-only": ("oltp_write_only", {}),
    "scan": ("oltp_scan", {}),
    "read-only-count": ("oltp_read_only_count", {"range-size": 1000, "skip-trx": "on"}),
    "point-query": ("oltp_point_select", {"skip-trx": "on"}),
    "hot-points": ("oltp_inlist_select", {"random-points": 100, "hot-points": "on", "skip-trx": "on"}),
    "delete": ("oltp_delete", {}),
    "insert": ("oltp_insert", {}),
}
for size in (10, 100):
    SCRIPTS[f"read-write_range={size}"] = ("oltp_read_write", {"range-size": size})
for size in (10, 100, 10000):
    SCRIPTS[f"read-only_range={size}"] = ("oltp_read_only", {"range-size": size})
for points in (10, 100, 1000):
    SCRIPTS[f"random-points_range={points}"] = ("oltp_inlist_select", {"random-points": points, "skip-trx": "on"})
for kind in ("simple", "sum", "order", "distinct"):
    others = {name: 0 for name in sorted(READ_ONLY - {f"{kind}-ranges"})}
    SCRIPTS[f"read-only-{kind}"] = ("oltp_read_only", {"range-size": 1000, **others})
for index, on_id in (("pk", "on"), ("si", "off")):
    for covered, on in (("covered", "on"), ("notcovered", "off")):
        options = {"random-points": 100, "skip-trx": "on", "on-id": on_id, "covered": on}
        SCRIPTS[f"points-{covered}-{index}"] = ("oltp_points_covered", options)
        SCRIPTS[f"range-{covered}-{index}"] = ("oltp_range_covered", options)


# Their keys are always the same.
FIXED = {"update-one", "hot-points"}


def mask(sql, fixed):
    """Leaves the statement, the length of its range and that of its list; keys that are fixed, too."""
    sql = re.sub(r"'[^']*'", "'S'", re.sub(r"\s+", " ", sql).strip())
    if fixed:
        return sql
    sql = re.sub(r"IN \(([-\d, ]+)\)", lambda of: f"IN (#{of[1].count(',') + 1} keys)", sql)
    sql = re.sub(r"BETWEEN (\d+) AND (\d+)", lambda of: f"BETWEEN N AND N+#{int(of[2]) - int(of[1])}", sql)
    return re.sub(r"(?<![#\d])\d+", "N", sql)


def logged(server, words, cwd=None, fixed=False):
    """Runs a program and returns what its client sent: (whether prepared, masked text)."""
    server.ask("SET GLOBAL general_log = OFF; TRUNCATE mysql.general_log; SET GLOBAL general_log = ON")
    done = subprocess.run(words, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
    server.ask("SET GLOBAL general_log = OFF")
    if done.returncode:
        sys.exit(f"error: {' '.join(words)}\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    log = server.ask("SELECT thread_id, command_type, REPLACE(argument, '\\n', ' ') FROM mysql.general_log")
    threads = {}
    for line in log.splitlines():
        thread, command, text = line.split("\t", 2)
        ours = re.search(r"\bsbtest\d", text) and not re.match(r"(?i)\s*(show|explain|analyze|create|set)", text)
        control = text.strip() in ("BEGIN", "COMMIT", "ROLLBACK")
        if command in ("Execute", "Query") and (ours or control):
            threads.setdefault(thread, []).append((command == "Execute" or control, mask(text, fixed)))
    return max(threads.values(), key=len, default=[])


def one_client(text):
    """The profile with one client, one small table and a few operations."""
    for line, to in (("clients", "1"), ("count", "1"), ("rows", str(ROWS)), ("warmup", "0")):
        text = re.sub(rf"(?m)^{line} = .*", f"{line} = {to}", text)
    text = re.sub(r"(?m)^time = .*", f"ops = {EVENTS}", text)
    return re.sub(r"(?m)^(warm|settle) = .*\n", "", text)


def titles(profile):
    for run in profile["run"]:
        names = run.get("name", run["workload"])
        yield from [names] if isinstance(names, str) else names


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", type=lambda words: words.split(","))
    parser.add_argument("tree")
    args = parser.parse_args()
    with open(PROFILE, encoding="utf-8") as file:
        text = file.read()
    names = list(titles(tomllib.loads(text)))
    if sorted(names) != sorted(SCRIPTS):
        sys.exit(f"error: {PROFILE} does not have his workloads: {sorted(set(names) ^ set(SCRIPTS))}")
    if unknown := set(args.only or names) - set(names):
        sys.exit(f"error: --only: no such workload: {', '.join(sorted(unknown))} (there are {', '.join(names)})")
    names = [name for name in names if name in (args.only or names)]
    server, failed = known.Server(), 0
    shared = {"db-driver": "mysql", "mysql-host": "127.0.0.1", "mysql-port": server.port, "mysql-user": "root",
              "mysql-db": "check_sysbench", "threads": 1, "events": EVENTS, "time": 60, "tables": 1,
              "table-size": ROWS, "rand-type": "uniform", "explain-plans": "off"}

    def sysbench(script, options, command):
        words = [f"--{name}={value}" for name, value in {**shared, **options}.items()]
        return ["sysbench", f"./{script}.lua", *words, command]

    print(f"server {server.version}")
    with tempfile.TemporaryDirectory() as work:
        profile = os.path.join(work, "profile.toml")
        with open(profile, "w", encoding="utf-8") as file:
            file.write(one_client(text))
        try:
            server.ask("CREATE DATABASE check_sysbench; SET GLOBAL log_output = 'TABLE'")
            logged(server, sysbench("oltp_point_select", {}, "prepare"), args.tree)
            print(f"{'workload':24} {'':8} {'protocol':9} statements of one operation")
            for name in names:
                script, options = SCRIPTS[name]
                fixed = name in FIXED
                his = logged(server, sysbench(script, options, "run"), args.tree, fixed)
                # New tables: loadgen demands as many rows of a DISTINCT as its range has, and updates leave equal texts.
                server.ask("DROP DATABASE IF EXISTS check_loadgen; CREATE DATABASE check_loadgen")
                ours = logged(server, [
                    known.LOADGEN, "run", profile, "--only", f"workload={name}", "-h", "127.0.0.1", "-P", server.port,
                    "-u", "root", "-D", "check_loadgen", "--out", os.path.join(work, "out")], fixed=fixed)
                same = his == ours and len(his) > 0
                failed += not same
                protocol = "prepared" if all(prepared for prepared, _ in his) else "text"
                print(f"{name:24} {'same' if same else 'differs':8} {protocol:9} {len(his) / EVENTS:g}", flush=True)
                for (of_his, of_ours) in [pair for pair in zip(his, ours) if pair[0] != pair[1]][:3]:
                    print(f"    his  {of_his}\n    ours {of_ours}")
                if len(his) != len(ours):
                    print(f"    his {len(his)} statements, ours {len(ours)}")
        finally:
            server.end()
    print(f"{len(names)} workloads, {failed} differ")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
