"""Holds the summaries of scripts/check-pacing against their marks and against queueing theory."""

import json
import math
import sys

RATE_OFF = 0.01
START_US = 1000.0
WAIT_OFF = 0.05


def erlang_c(servers, load):
    """The part of arrivals that wait in M/M/c (Erlang 1917), by way of Erlang's B."""
    blocked = 1.0
    for n in range(1, servers + 1):
        blocked = load * blocked / (n + load * blocked)
    return blocked / (1 - load / servers * (1 - blocked))


def wait_mmc(servers, rate, service):
    """The mean wait in M/M/c, in the unit of the service time."""
    load = rate * service
    return erlang_c(servers, load) * service / (servers - load)


def wait_mdc(servers, rate, service):
    """The mean wait in M/D/c, by Crommelin's argument (1932): whoever is in service now has left
    a service time later, so that the number in the system then is what waits now and what arrives
    meanwhile. The stationary distribution is found by iteration; Little's law makes it a time."""
    load = rate * service
    size = servers * 60
    arrivals = [math.exp(-load)]
    while len(arrivals) < load or arrivals[-1] > 1e-16:
        arrivals.append(arrivals[-1] * load / len(arrivals))
    number = [1.0] + [0.0] * (size - 1)
    while True:
        waiting = [sum(number[: servers + 1])] + number[servers + 1 :]
        after = [0.0] * size
        for n, there in enumerate(waiting):
            if there > 1e-18:
                for more, probability in enumerate(arrivals):
                    after[min(n + more, size - 1)] += there * probability
        if sum(abs(a - b) for a, b in zip(after, number)) < 1e-12:
            break
        number = after
    return sum(max(n - servers, 0) * p for n, p in enumerate(number)) / rate


def check_theory():
    """What is known in closed form: M/M/1, M/D/1, and Erlang's table of M/M/8."""
    assert abs(wait_mmc(1, 0.75, 1.0) - 3.0) < 1e-12
    assert abs(wait_mdc(1, 0.75, 1.0) - 1.5) < 1e-6
    assert abs(erlang_c(8, 6.0) - 0.35698) < 1e-4


def main(paths):
    check_theory()
    rows, missed = [], False
    for path in paths:
        with open(path, encoding="utf-8") as file:
            step = json.load(file)
        name, totals = step["notes"]["check"], step["totals"]
        asked, wait = step["plan"]["rate"], step["latency"]["wait"]
        common = [name, f"{asked:g}", f"{totals['tps']:.1f}"]
        if name == "start":
            off = totals["tps"] / asked - 1
            kept = totals["tps"] / (totals["intended"] / step["measured_s"]) - 1
            # N arrivals of a Poisson process vary by sqrt(N) by themselves.
            chance = 4 / math.sqrt(totals["intended"])
            well = abs(kept) < RATE_OFF and abs(off) < RATE_OFF + chance
            well = well and wait["p99_us"] < START_US
            busy = step["client"]["threads"][0]["busy"]
            what = (
                f"rate {off:+.2%}, of its arrivals {kept:+.3%}; start p50 {wait['p50_us']:.1f}, "
                f"p99 {wait['p99_us']:.0f}, p99.9 {wait['p99_9_us']:.0f} us; thread {busy:.0%} busy"
            )
        else:
            service = step["latency"]["service"]["mean_us"] / 1e6
            clients = step["plan"]["clients"]
            # What arrived, not what was asked for: chance is no error of the client.
            rate = totals["intended"] / step["measured_s"]
            theory = {"M/M/8": wait_mmc, "M/D/8": wait_mdc}[name](clients, rate, service) * 1e6
            off = wait["mean_us"] / theory - 1
            well = abs(off) < WAIT_OFF
            spread = step["latency"]["service"]["stddev_us"] / 1e6 / service
            what = (
                f"wait {wait['mean_us']:.1f} us, theory {theory:.1f}: {off:+.2%}; service "
                f"{service * 1e3:.3f} ms, deviation/mean {spread:.3f}, load {rate * service / clients:.3f}"
            )
        missed |= not well
        rows.append([*common, what, step["notes"]["load"], "ok" if well else "missed"])
    print("| check | asked /s | done /s | measured | load average before | mark |")
    print("| --- | ---: | ---: | --- | ---: | --- |")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
