"""Decodes the histograms of loadgen's summaries with Python's hdrhistogram, and compares its
count and percentiles with those in the JSON. Exits with 1 if they differ."""

import json
import math
import sys

from hdrh.histogram import HdrHistogram

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


def main(paths):
    compared, wrong = 0, []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            summary = json.load(file)
        for name, distribution in distributions(summary):
            compared += 1
            wrong += ["%s: %s" % (path, text) for text in differences(name, distribution)]
    for text in wrong:
        print(text)
    print("%d histograms of %d summaries compared, %d differences"
          % (compared, len(paths), len(wrong)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
