"""Draws comparisons from the runs of scripts/check-compare, has `loadgen compare` decide them, and
holds the verdicts against their marks.

The noise of a machine is not independent: runs beside each other are alike. So a comparison is not
drawn at random from all runs, but as an interleaved experiment would have met them: twelve
runs that followed each other, in six pairs, a coin saying which of a pair is which label. The cells of
a table are such draws, each with a coin of its own; they may share runs.

Only the recorded runs are read, and every draw follows from a fixed seed.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PAIRS = 6
COMPARISONS = 100
SHIFTS = [0.0, 0.01, 0.02, 0.03, 0.05, 0.1]
FLOORS = [0.02, 0.0]
FALSE_MAX = 5
CANNED = 20
CANNED_MIN = 18
# Six pairs cannot decide 24 cells.
TABLE_PAIRS = 8
TABLE_WORKLOADS = 4
TABLE_CLIENTS = [1, 2, 4, 8, 16, 32]
TABLE_SHIFTS = [0.0, -0.02, -0.05]
VERDICTS = ["better", "slightly better", "worse", "slightly worse", "same", "no difference shown",
            "inconclusive"]
FOUND = {"better", "slightly better", "worse", "slightly worse"}


def load(directory):
    """The summaries of a directory by time, without what a comparison does not read."""
    steps = []
    for path in Path(directory).glob("[!.]*.json"):
        step = json.loads(path.read_text(encoding="utf-8"))
        step["timeline"] = []
        steps.append(step)
    return sorted(steps, key=lambda step: step["started_at"])


def labelled(step, label, repeat, factor, workload=None, clients=None):
    """A run of a label in a repeat, its rates shifted by a factor; of another cell, where one is given."""
    step = json.loads(json.dumps(step))
    step["label"], step["run_id"] = label, "0" * 16
    step["workload"]["name"] = workload or step["workload"]["name"]
    step["plan"]["clients"] = clients or step["plan"]["clients"]
    cell = f"{step['workload']['name']}-{step['plan']['clients']}"
    step["step_id"] = f"{'0' * 16}-{cell}-{repeat}{label}"
    step["plan"]["repeat_index"] = repeat
    # One look: nobody went on because something was not decided.
    step["plan"]["repeats"] = PAIRS
    # Where a comparison spans two starts of the server, what differs in name only must not refuse.
    step["server"]["variables"] = {}
    step["totals"]["qps"] *= factor
    step["totals"]["tps"] *= factor
    return step


def compared(loadgen, steps, floor):
    """The rows of a comparison."""
    with tempfile.TemporaryDirectory() as directory:
        for at, step in enumerate(steps):
            text = json.dumps(step)
            Path(directory, f"{at}.json").write_text(text, encoding="utf-8")
        words = [loadgen, "compare", directory, "--base", "a", "--new", "b", "--format", "json"]
        words += ["--floor", f"{floor * 100:g}%"]
        ended = subprocess.run(words, check=True, capture_output=True, text=True)
    return json.loads(ended.stdout)["rows"]


def draw(steps, rng, shift, pairs=PAIRS, workload=None, clients=None):
    """So many against so many of runs that followed each other."""
    first = rng.randrange(len(steps) - 2 * pairs + 1)
    drawn = []
    for pair in range(pairs):
        both = steps[first + 2 * pair : first + 2 * pair + 2]
        if rng.random() < 0.5:
            both.reverse()
        drawn.append(labelled(both[0], "a", pair + 1, 1.0, workload, clients))
        drawn.append(labelled(both[1], "b", pair + 1, 1.0 + shift, workload, clients))
    return drawn


def noise(loadgen, steps):
    rates = [step["totals"]["qps"] for step in steps]
    neighbours = statistics.correlation(rates[:-1], rates[1:])
    spread = statistics.stdev(rates) / statistics.mean(rates)
    load = [float(step["notes"].get("load", "nan")) for step in steps]
    what = f"{steps[0]['workload']['name']} at {steps[0]['plan']['clients']} clients"
    print(f"{len(steps)} runs of {what}, {steps[0]['measured_s']:g} s each, mean {statistics.mean(rates):.0f} QPS,")
    print(f"deviation {spread:.2%}, correlation of neighbours {neighbours:+.2f}, load average {min(load):g} to {max(load):g}")
    missed = False
    for floor in FLOORS:
        heading(f"shift, floor {floor:.0%}", VERDICTS)
        rng = random.Random(1)
        for shift in sorted({sign * shift for shift in SHIFTS for sign in [1, -1]}):
            counts = dict.fromkeys(VERDICTS, 0)
            for _ in range(COMPARISONS):
                counts[compared(loadgen, draw(steps, rng, shift), floor)[0]["verdict"]] += 1
            missed |= not shift and sum(counts[name] for name in FOUND) > FALSE_MAX
            print(f"| {shift:+.0%} | " + " | ".join(map(str, counts.values())) + " |")
    print()
    return missed


def heading(first, names):
    print()
    print(f"| {first} | " + " | ".join(names) + " |")
    print("| ---: |" + " ---: |" * len(names))


def tables(loadgen, steps):
    """Whole tables, of which at most one cell has something to find."""
    missed = False
    workloads = [f"w{number}" for number in range(TABLE_WORKLOADS)]
    print(
        f"{COMPARISONS} tables of {TABLE_WORKLOADS} workloads x {len(TABLE_CLIENTS)} numbers of clients, "
        f"{TABLE_PAIRS} pairs a cell, floor {FLOORS[0]:.0%}; the first cell is shifted"
    )
    heading("shift", ["tables with a false finding", "false findings", *VERDICTS])
    for shift in TABLE_SHIFTS:
        rng = random.Random(3)
        false_tables, false, counts = 0, 0, dict.fromkeys(VERDICTS, 0)
        for _ in range(COMPARISONS):
            drawn = []
            for workload in workloads:
                for clients in TABLE_CLIENTS:
                    here = shift if not drawn else 0.0
                    drawn += draw(steps, rng, here, TABLE_PAIRS, workload, clients)
            rows = compared(loadgen, drawn, FLOORS[0])
            told = {(row["workload"], row["clients"]): row["verdict"] for row in rows}
            shifted = (workloads[0], TABLE_CLIENTS[0])
            counts[told[shifted]] += 1
            found = sum(told[cell] in FOUND for cell in told if not shift or cell != shifted)
            false_tables, false = false_tables + bool(found), false + found
        missed |= not shift and false_tables > FALSE_MAX
        print(f"| {shift:+.0%} | {false_tables} | {false} | " + " | ".join(map(str, counts.values())) + " |")
    print()
    return missed


def canned(loadgen, plain, slow):
    """Comparisons of six pairs that were measured side by side."""
    pairs = list(zip(plain, slow))
    rng = random.Random(2)
    counts, ratios = {}, []
    for _ in range(CANNED):
        first = rng.randrange(len(pairs) - PAIRS + 1)
        steps = []
        for at, (one, other) in enumerate(pairs[first : first + PAIRS]):
            steps.append(labelled(one, "a", at + 1, 1.0))
            steps.append(labelled(other, "b", at + 1, 1.0))
        row = compared(loadgen, steps, FLOORS[0])[0]
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
        ratios.append(row["ratio"])
    found = counts.get("worse", 0)
    print(
        f"canned server 5 % slower: worse in {found} of {CANNED} comparisons, "
        f"ratio {min(ratios):.3f} to {max(ratios):.3f}"
    )
    return found < CANNED_MIN


def main(loadgen, data):
    os.environ["LC_ALL"] = "C"
    recorded = load(Path(data, "noise"))
    missed = noise(loadgen, recorded)
    missed |= tables(loadgen, recorded)
    missed |= canned(loadgen, load(Path(data, "canned-plain")), load(Path(data, "canned-slow")))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
