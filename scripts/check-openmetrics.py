"""Holds what --openmetrics serves against its standard, and its counters against the summary."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families

NAMES = ("operations", "statements", "clients", "step", "steps", "phase")


class Run:
    """A sweep, and the address of its metrics."""

    def __init__(self, loadgen, port, out, *words):
        argv = [loadgen, "point-select", *words, "--tables", "8", "--warmup", "0", "--no-defaults", "-h",
                "127.0.0.1", "-P", port, "-u", "x", "--out", out, "--openmetrics", "0"]
        self.out = out
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if found := re.search(r"http://(\S+)/metrics", line):
                self.address = found[1]
                return
        raise SystemExit(f"no address came: {argv}")

    def page(self):
        with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=10) as answer:
            return answer.read().decode()

    def last_totals(self):
        self.process.stderr.read()
        if self.process.wait() != 0:
            raise SystemExit(f"loadgen ended with {self.process.returncode}")
        steps = [json.load(open(os.path.join(self.out, name))) for name in os.listdir(self.out)
                 if name.endswith(".json")]
        return max(steps, key=lambda step: step["started_at"])["totals"]


def parsed(page):
    families = {family.name: family for family in text_string_to_metric_families(page)}
    if families:
        for name in NAMES:
            if f"loadgen_{name}" not in families:
                raise SystemExit(f"no loadgen_{name} in\n{page}")
    return families


def check_parser(loadgen, port, work):
    run, pages, families = Run(loadgen, port, f"{work}/parser", "--clients", "1,4", "--time", "2s"), 0, {}
    while True:
        try:
            families = parsed(run.page()) or families
            pages += 1
        except (urllib.error.URLError, ConnectionError):
            break
        time.sleep(0.1)
    ops = families["loadgen_operations"].samples[0].value
    totals = run.last_totals()
    if ops != totals["ops"]:
        raise SystemExit(f"the last scrape had {ops:.0f} operations, the summary has {totals['ops']}")
    print(f"{pages} pages are OpenMetrics; the last counters are the summary's: {ops:.0f} operations")


def free_port():
    import socket
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def known_to_prometheus(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        result = json.load(answer)["data"]["result"]
    return float(result[0]["value"][1]) if result else 0.0


def check_prometheus(loadgen, port, work):
    program = shutil.which("prometheus")
    if not program:
        print("skipped: prometheus is not installed")
        return
    run = Run(loadgen, port, f"{work}/prometheus", "--clients", "2", "--time", "8s")
    config, web = f"{work}/prometheus.yml", free_port()
    with open(config, "w", encoding="utf-8") as text:
        text.write("scrape_configs:\n  - job_name: loadgen\n    scrape_interval: 1s\n"
                   f"    static_configs:\n      - targets: ['{run.address}']\n")
    argv = [program, f"--config.file={config}", f"--storage.tsdb.path={work}/tsdb",
            f"--web.listen-address=127.0.0.1:{web}"]
    with open(f"{work}/prometheus.log", "wb") as log:
        prometheus = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        totals = run.last_totals()
        query = urllib.parse.urlencode({"query": "max_over_time(loadgen_operations_total[1m])"})
        url = f"http://127.0.0.1:{web}/api/v1/query?{query}"
        # What was scraped last may not be in its store yet.
        limit = time.monotonic() + 5
        while (ops := known_to_prometheus(url)) != totals["ops"] and time.monotonic() < limit:
            time.sleep(0.2)
        if ops != totals["ops"]:
            raise SystemExit(f"Prometheus has {ops:.0f} operations, the summary has {totals['ops']}")
        print(f"Prometheus has the summary's {ops:.0f} operations")
    finally:
        prometheus.terminate()
        prometheus.wait()


if __name__ == "__main__":
    check_parser(*sys.argv[1:])
    check_prometheus(*sys.argv[1:])
