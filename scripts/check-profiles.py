"""Looks at what a profile printed: check-profiles.py TABLES SUMMARIES STEPS

Every step has a completed summary without errors, and every table the form of its layout. Prints the
number of lines that hold numbers."""

import json
import pathlib
import re
import sys

NUMBER = r"-?\d+(?:\.\d+)?"
MARK = r"(?:\s*\*)?"
# What follows a number: its ratio to the baseline, and a mark.
BEHIND = r"(?: \(\d[\d.]*x\))?\*?"
HEAD = r"clients \d+, rate \S+/s|rate \S+/s|\d+"


def fail(text):
    sys.exit(text)


def summaries(directory, steps):
    files = sorted(pathlib.Path(directory).glob("*.json"))
    if len(files) != steps:
        fail(f"{len(files)} summaries of {steps} steps")
    labels = set()
    for file in files:
        one = json.loads(file.read_text(encoding="utf-8"))
        if one["outcome"] != "completed" or one["totals"]["errors"]:
            fail(f"{file.name}: {one['outcome']}, {one['totals']['errors']}")
        labels.add(one["label"])
    return labels


def versions(lines, at):
    """Clients across, one label a line: every number ends where its column's header does."""
    head = re.sub(r"  +(?:concurrent clients|clients \d+|label)$", "", lines[at])
    columns = [m.end() for m in re.finditer(HEAD, head)]
    rows = 0
    for line in lines[at + 1:]:
        if not line:
            break
        cells = list(re.finditer(rf"(\S+?){BEHIND}(?=\s|$)", line))[:len(columns)]
        if [cell.end(1) for cell in cells] != columns:
            fail(f"not below its column: {line}")
        if any(not re.fullmatch(NUMBER, cell.group(1)) for cell in cells):
            fail(f"a cell that was not measured: {line}")
        rows += 1
    return rows


def best_first(lines, at):
    """`  • 9231 QPS - orig5163`, best first."""
    values = []
    for line in lines[at:]:
        found = re.fullmatch(rf"  • ({NUMBER}) (?:QPS|s) - \S.*", line)
        if not found:
            break
        values.append(float(found.group(1)))
    if values != sorted(values, reverse=True):
        fail(f"not best first: {values}")
    return len(values)


def grid(lines, at, columns):
    """A head, then a label's line each with so many numbers."""
    rows = 0
    for line in lines[at + 1:]:
        if not line or not re.search(NUMBER + MARK + r"\s*(->.*)?$|^\s*" + NUMBER, line):
            break
        if len(re.findall(rf"(?<=\s){NUMBER}%?(?=\s|$)", " " + line)) < columns:
            fail(f"a cell that was not measured: {line}")
        rows += 1
    return rows


def main(tables, directory, steps):
    labels = summaries(directory, int(steps))
    text = pathlib.Path(tables).read_text(encoding="utf-8")
    lines = text.split("\n")
    missing = [label for label in sorted(labels) if label not in text]
    if missing:
        fail(f"no line of {', '.join(missing)}")
    rows = 0
    for at, line in enumerate(lines):
        if re.fullmatch(rf"\s*(?:{HEAD})\s.*(?:concurrent clients|clients \d+|label)", line):
            rows += versions(lines, at)
        elif line.startswith("  • ") and not lines[at - 1].startswith("  • ") and " - " in line:
            rows += best_first(lines, at)
        elif line.startswith("Relative-perf is "):
            rows += grid(lines, at + 1, 2)
        elif re.match(r"\s*clients\s.*cost %", line):
            rows += grid(lines, at, 2)
        elif re.match(r"workload\s+change\s", line):
            rows += grid(lines, at, 2)
    if rows == 0:
        fail("no table")
    print(rows)


main(*sys.argv[1:])
