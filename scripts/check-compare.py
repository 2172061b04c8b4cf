"""Draws comparisons from the runs of scripts/check-compare, has `loadgen compare` decide them, and
holds the verdicts against their marks.

The noise of a machine is not independent: runs beside each other are alike. So a comparison is not
drawn at random from all runs, but as an interleaved experiment would have met them: twelve
runs that followed each other, in six pairs, a coin saying which of a pair is which label.
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


def load(directory):
    """The summaries of a directory by time, without what a comparison does not read."""
    steps = []
    for path in Path(directory).glob("[!.]*.json"):
        step = json.loads(path.read_text(encoding="utf-8"))
        step["timeline"] = []
        steps.append(step)
    return sorted(steps, key=lambda step: step["started_at"])


def labelled(step, label, repeat, factor):
    """A run of a label in a repeat, its rates shifted by a factor."""
    step = json.loads(json.dumps(step))
    step["label"], step["run_id"] = label, "0" * 16
    step["step_id"] = f"{'0' * 16}-{repeat}{label}"
    step["plan"]["repeat_index"] = repeat
    step["plan"]["repeats"] = PAIRS
    # Where a comparison spans two starts of the server, what differs in name only must not refuse.
    step["server"]["variables"] = {}
    step["totals"]["qps"] *= factor
    step["totals"]["tps"] *= factor
    return step


def verdict(loadgen, steps, floor):
    with tempfile.TemporaryDirectory() as directory:
        for at, step in enumerate(steps):
            text = json.dumps(step)
            Path(directory, f"{at}.json").write_text(text, encoding="utf-8")
        words = [loadgen, "compare", directory, "--base", "a", "--new", "b", "--format", "json"]
        words += ["--floor", f"{floor * 100:g}%"]
        ended = subprocess.run(words, check=True, capture_output=True, text=True)
    row = json.loads(ended.stdout)["rows"][0]
    return row["verdict"], row["ratio"]


def draw(steps, rng, shift):
    """Six against six of runs that followed each other."""
    first = rng.randrange(len(steps) - 2 * PAIRS + 1)
    drawn = []
    for pair in range(PAIRS):
        both = steps[first + 2 * pair : first + 2 * pair + 2]
        if rng.random() < 0.5:
            both.reverse()
        drawn.append(labelled(both[0], "a", pair + 1, 1.0))
        drawn.append(labelled(both[1], "b", pair + 1, 1.0 + shift))
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
    names = ["better", "worse", "same", "no difference shown"]
    for floor in FLOORS:
        print()
        print(f"| shift, floor {floor:.0%} | " + " | ".join(names) + " |")
        print("| ---: | ---: | ---: | ---: | ---: |")
        rng = random.Random(1)
        for shift in sorted({sign * shift for shift in SHIFTS for sign in [1, -1]}):
            counts = dict.fromkeys(names, 0)
            for _ in range(COMPARISONS):
                told, _ = verdict(loadgen, draw(steps, rng, shift), floor)
                counts[told] += 1
            false = counts["better"] + counts["worse"]
            missed |= not shift and false > FALSE_MAX
            print(f"| {shift:+.0%} | " + " | ".join(map(str, counts.values())) + " |")
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
        told, ratio = verdict(loadgen, steps, FLOORS[0])
        counts[told] = counts.get(told, 0) + 1
        ratios.append(ratio)
    found = counts.get("worse", 0)
    print(
        f"canned server 5 % slower: worse in {found} of {CANNED} comparisons, "
        f"ratio {min(ratios):.3f} to {max(ratios):.3f}"
    )
    return found < CANNED_MIN


def main(loadgen, data):
    os.environ["LC_ALL"] = "C"
    missed = noise(loadgen, load(Path(data, "noise")))
    missed |= canned(loadgen, load(Path(data, "canned-plain")), load(Path(data, "canned-slow")))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
