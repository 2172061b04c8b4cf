"""The comparison of scripts/check-sysbench-lua."""

import argparse
import difflib
import os
import re
import subprocess
import sys

LOADGEN = os.path.abspath(os.environ["LOADGEN"])
SANDBOX = os.path.abspath(os.environ["SANDBOX"])
# The server counts these for what a script sends. COM_STMT_PREPARE and SHOW are not what a script is about.
COUNTED = ["select", "insert", "update", "delete", "replace", "begin", "commit", "rollback", "call_procedure",
           "create_table", "drop_table", "create_index", "alter_table", "truncate", "stmt_execute"]
LIMIT = 180
EVENT = re.compile(rb"^\s*(function\s+event\b|event\s*=)", re.M)


class Server:
    """A private server; closing its input ends it."""

    def __init__(self):
        words = [SANDBOX, *([os.environ["MYSQLD"]] if os.environ.get("MYSQLD") else [])]
        self.keeper = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        first = self.keeper.stdout.readline().split(" ", 1)
        if len(first) != 2:
            sys.exit("error: the server does not start")
        self.port, self.version = first[0], first[1].strip()

    def ask(self, sql):
        return subprocess.run(
            ["mariadb", "--no-defaults", "--protocol=tcp", "-h", "127.0.0.1", "-P", self.port, "-u", "root", "-NB",
             "-e", sql], check=True, capture_output=True, text=True).stdout

    def counts(self):
        rows = (line.split("\t") for line in self.ask("SHOW GLOBAL STATUS LIKE 'Com\\_%'").splitlines())
        known = {name.lower().removeprefix("com_"): int(value) for name, value in rows}
        return {name: known.get(name, 0) for name in COUNTED}

    def end(self):
        self.keeper.stdin.close()
        self.keeper.wait()


def mask(text):
    """Leaves what is the same in each run of one program."""
    lines = []
    for line in text.splitlines():
        if line.startswith("warning: ") or line.startswith("(last message repeated"):
            continue
        line = re.sub(r"^(sysbench \S+) \(using .*\)$", r"\1", line)
        line = line.replace("check_sysbench", "check_loadgen")
        line = re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "N", line)
        lines.append(re.sub(r"\s+", " ", line).strip())
    return lines


def run(words, cwd, server):
    before = server.counts()
    try:
        done = subprocess.run(words, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
        status, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        status, out, err = f"not done within {LIMIT} s", late.stdout or b"", late.stderr or b""
    after = server.counts()
    counts = {name: after[name] - before[name] for name in COUNTED if after[name] != before[name]}
    return status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), counts


def keep(out, name, command, program, result):
    if out:
        status, text, errors, counts = result
        with open(os.path.join(out, f"{name}.{command}.{program}"), "w", encoding="utf-8") as file:
            file.write(f"{text}\n--- standard error\n{errors}\n--- status {status}\n--- {counts}\n")


def differences(ours, real):
    found = []
    if ours[0] != real[0]:
        found.append(f"status {ours[0]} for {real[0]}")
    # A script that draws lots sends a number of statements that varies.
    for name in sorted(set(ours[3]) | set(real[3])):
        mine, theirs = ours[3].get(name, 0), real[3].get(name, 0)
        if abs(mine - theirs) > 0.3 * max(mine, theirs):
            found.append(f"Com_{name} {mine} for {theirs}")
    for what, mine, theirs in (("", ours[1], real[1]), ("errors: ", ours[2], real[2])):
        lines = [line for line in difflib.unified_diff(mask(theirs), mask(mine), n=0, lineterm="")
                 if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        found += [what + line for line in lines[:6]] + [f"{len(lines) - 6} more lines"] * (len(lines) > 6)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    parser.add_argument("--scripts", type=lambda words: words.split(","))
    parser.add_argument("trees", nargs="+")
    words, options = sys.argv[1:], []
    if "--" in words:
        cut = words.index("--")
        words, options = words[:cut], words[cut + 1:]
    args = parser.parse_args(words)
    if args.out:
        os.makedirs(args.out, exist_ok=True)
    os.environ["LOADGEN_LUA"] = "always"
    server, failed, ran = Server(), 0, 0
    print(f"server {server.version}")
    shared = ["--db-driver=mysql", "--mysql-host=127.0.0.1", f"--mysql-port={server.port}", "--mysql-user=root",
              "--threads=1", "--events=60", "--time=60", "--rand-type=uniform", *options]
    try:
        for tree in args.trees:
            names = sorted(name for name in os.listdir(tree) if name.endswith(".lua"))
            for name in names:
                with open(os.path.join(tree, name), "rb") as file:
                    is_script = EVENT.search(file.read())
                if args.scripts and name.removesuffix(".lua") not in args.scripts or not is_script:
                    continue
                found, statuses = [], []
                for command in ("prepare", "run", "cleanup"):
                    results = {}
                    for program in ("sysbench", "loadgen"):
                        database = f"check_{program}"
                        if command == "prepare":
                            server.ask(f"DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}")
                        start = [LOADGEN, "sysbench"] if program == "loadgen" else ["sysbench"]
                        words = [*start, f"./{name}", *shared, f"--mysql-db={database}", command]
                        results[program] = run(words, tree, server)
                        keep(args.out, name.removesuffix(".lua"), command, program, results[program])
                    statuses.append(str(results["sysbench"][0]))
                    found += [f"{command}: {what}" for what in differences(results["loadgen"], results["sysbench"])]
                ran += 1
                failed += bool(found)
                print(f"{os.path.join(os.path.basename(os.path.abspath(tree)), name):40} "
                      f"{'differs' if found else 'same'}, sysbench ends with {' '.join(statuses)}", flush=True)
                for what in found:
                    print(f"    {what[:150]}")
    finally:
        server.end()
    print(f"{ran} scripts, {failed} differ")
    sys.exit(failed > 0 or ran == 0)


if __name__ == "__main__":
    main()
