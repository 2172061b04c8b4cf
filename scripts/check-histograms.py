"""Decodes the histograms of loadgen's summaries with Python's hdrhistogram, and compares its
count and percentiles with those in the JSON; adds up the intervals of logs (NAME.hlog of the
summaries in NAME/) and compares those. Exits with 1 if they differ."""

import glob
import json
import math
import sys

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

PERCENTILES = {"p50_us": 50, "p75_us": 75, "p90_us": 90, "p95_us": 95, "p99_us": 99,
               "p99_9_us": 99.9, "p99_99_us": 99.99}


def distributions(summary):
    latency = summary["latency"]
    yield "service", latency["service"]
    yield "failed", latency["failed"]
    for one in latency["by_statement"]:
        yield "statement %d" % one["statement"], one["service"]


def differences(name, theirs):
    histogram = HdrHistogram.decode(theirs["histogram"])
    if histogram.get_total_count() != theirs["count"]:
        yield "%s: count %d, JSON says %d" % (name, histogram.get_total_count(), theirs["count"])
    if theirs["count"] == 0:
        return
    for key, percentile in PERCENTILES.items():
        # The value of rank ceil(p% of n), as in HdrHistogram's Java original since 2.1.10; the
        # Python port still rounds the rank to the nearest, so it is asked for the exact one.
        rank = math.ceil(round(percentile * theirs["count"] / 100, 6))
        exact = histogram.get_value_at_percentile(100 * rank / theirs["count"])
        # Both give the upper edge of a bucket; the JSON never goes above the exact maximum.
        ours = min(exact / 1e3, theirs["max_us"])
        if abs(ours - theirs[key]) > 1e-6:
            yield "%s: %s is %r, JSON says %r" % (name, key, ours, theirs[key])


def logged(path, summaries):
    """The distributions of an interval log, added up by their tags, against the summaries'."""
    reader, sums = HistogramLogReader(path, HdrHistogram(1, 3_600_000_000_000, 3)), {}
    while (histogram := reader.get_next_interval_histogram()) is not None:
        tag = histogram.get_tag()
        if tag in sums:
            sums[tag].add(histogram)
        else:
            sums[tag] = histogram
    for summary in summaries:
        number = summary["step_id"].rsplit("-", 1)[1]
        for name in ("service", "response"):
            theirs = summary["latency"][name]
            if theirs is None:
                continue
            # In a log of one step, what that is about has no tag.
            main = "service" if summary["latency"]["response"] is None else "response"
            alone = sums.get(None if name == main else name)
            ours = sums.get("step%s.%s" % (number, name), alone)
            if ours is None:
                yield "step %s has no %s time" % (number, name)
            elif ours.get_total_count() != theirs["count"]:
                yield "step %s: %s time has %d values, JSON says %d" % (
                    number, name, ours.get_total_count(), theirs["count"])
            # The edge of a bucket of three digits.
            elif abs(ours.get_max_value() / 1e3 / theirs["max_us"] - 1) > 2e-3:
                yield "step %s: %s time up to %r us, JSON says %r" % (
                    number, name, ours.get_max_value() / 1e3, theirs["max_us"])


def main(paths):
    compared, wrong = 0, []
    logs = [path for path in paths if path.endswith(".hlog")]
    paths = [path for path in paths if path not in logs]
    for log in logs:
        summaries = []
        for path in glob.glob(log[:-len(".hlog")] + "/*.json"):
            with open(path, encoding="utf-8") as file:
                summaries.append(json.load(file))
        compared += len(summaries)
        wrong += ["%s: %s" % (log, text) for text in logged(log, summaries)]
    for path in paths:
        with open(path, encoding="utf-8") as file:
            summary = json.load(file)
        for name, distribution in distributions(summary):
            compared += 1
            wrong += ["%s: %s" % (path, text) for text in differences(name, distribution)]
    for text in wrong:
        print(text)
    print("%d histograms of %d summaries and %d interval logs compared, %d differences"
          % (compared, len(paths), len(logs), len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
