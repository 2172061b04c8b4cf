"""Drives headless Chromium over its debugging pipe, and looks at loadgen's page as a reader would.
Exits with 1 if anything is wrong, naming it. See scripts/check-page."""

import argparse
import base64
import copy
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
import zlib

LOADGEN = os.environ["LOADGEN"]
HOSTILE = "</title><script>window.pwned=1</script><img src=x onerror=window.pwned=1>\"'&"
PATIENCE_S = 60
# What the issue asks for.
OPEN_MAX_S, BYTES_MAX = 2.0, 5_000_000


class Browser:
    """Chromium, spoken to in JSON between zero bytes on the descriptors 3 and 4."""

    def __init__(self, profile):
        there, self.output = os.pipe()
        self.input, back = os.pipe()
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                   "--disable-dev-shm-usage", "--disable-background-networking",
                   "--user-data-dir=" + profile, "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(
            ["sh", "-c", 'exec "$@" 3<&%d 4>&%d' % (there, back), "sh"] + command,
            pass_fds=(there, back), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(there)
        os.close(back)
        self.buffer, self.calls, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def receive(self):
        while b"\0" not in self.buffer:
            chunk = os.read(self.input, 1 << 20)
            if not chunk:
                raise RuntimeError("Chromium went away")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.calls += 1
        message = {"id": self.calls, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.calls:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        """Seconds from the request to the end of the first frame after everything is there."""
        self.events.clear()
        began = time.monotonic()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while not any(e["method"] == "Page.loadEventFired" for e in self.events):
            self.events.append(self.receive())
        self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        return time.monotonic() - began

    def run(self, script):
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:2000])
        return result["result"].get("value")

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def media(self, scheme, kind=""):
        self.call("Emulation.setEmulatedMedia", media=kind,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def shot(self, path):
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def cpu(self):
        """CPU seconds of all of its processes so far."""
        ticks = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid, encoding="utf-8") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == self.process.pid:
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        self.process.wait(PATIENCE_S)


def histogram(microseconds):
    """HdrHistogram V2 of 1 ns to 1 h at 3 digits, deflated, base64."""
    counts = {}
    for us in microseconds:
        value = max(1, int(us * 1000))
        bucket = max(0, value.bit_length() - 11)
        index = (bucket << 10) + (value >> bucket) if bucket else value
        counts[index] = counts.get(index, 0) + 1
    payload, last = b"", -1
    for index in sorted(counts):
        if index > last + 1:
            payload += zigzag(-(index - last - 1))
        payload += zigzag(counts[index])
        last = index
    header = b"".join(n.to_bytes(size, "big") for n, size in (
        (0x1C849313, 4), (len(payload), 4), (0, 4), (3, 4), (1, 8), (3_600_000_000_000, 8)))
    deflated = zlib.compress(header + b"\x3f\xf0" + bytes(6) + payload)
    envelope = (0x1C849314).to_bytes(4, "big") + len(deflated).to_bytes(4, "big")
    return base64.b64encode(envelope + deflated).decode()


def zigzag(number):
    number = number << 1 if number >= 0 else (-number << 1) - 1
    out = b""
    for _ in range(8):
        if number < 0x80:
            return out + bytes([number])
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def summaries(directory, labels, clients, repeats, seconds):
    """Steps of made-up servers, as varied as real ones."""
    with open("tests/fixtures/summary.json", encoding="utf-8") as file:
        sound = json.load(file)
    chance = random.Random(1)
    for order, label in enumerate(labels):
        speed = chance.uniform(0.6, 1.4)
        times = [chance.lognormvariate(0, 0.4) for _ in range(1500)]
        for count in clients:
            for repeat in range(1, repeats + 1):
                step = copy.deepcopy(sound)
                step["label"], step["run_id"] = label, "%016x" % order
                step["step_id"] = "%016x-%d-%d" % (order, count, repeat)
                step["started_at"] = "2026-11-20T%02d:%02d:%02dZ" % (
                    order // 60 % 24, order % 60, repeat)
                step["server"]["variables"]["innodb_io_capacity"] = str(1000 + order)
                qps = 9000 * speed * count / (1 + count / 24) * chance.uniform(0.97, 1.03)
                us = count / qps * 1e6
                step["plan"].update(clients=count, repeat_index=repeat, repeats=repeats,
                                    time_s=seconds)
                ops = int(qps * seconds)
                step["measured_s"] = seconds
                step["totals"].update(qps=qps, tps=qps, ops=ops, statements=ops)
                step["server"]["status"]["deltas"] = {"Questions": int(ops * 1.001)}
                shape = [us * t for t in times] + [us * 30]
                quantile = lambda p: sorted(shape)[math.ceil(p * len(shape)) - 1]
                step["latency"]["service"].update(
                    count=len(shape), p50_us=quantile(0.5), p99_us=quantile(0.99),
                    max_us=us * 30, histogram=histogram(shape))
                step["timeline"] = [dict(
                    phase="warmup" if at < 10 else "measure", start_s=at, length_s=1.0,
                    ops=int(qps * chance.uniform(0.9, 1.05)), errors=0,
                    p50_us=us, p99_us=us * chance.uniform(2, 4), max_us=us * 30)
                    for at in range(10 + seconds)]
                if order == 2:
                    # Too few ops for a p99 on both sides of the interval that HOVER points at.
                    for at in (*range(35, 41), *range(42, 48)):
                        step["timeline"][at]["ops"] = 900
                if order == 1:
                    step["timeline"][20].update(ops=0, errors=7, p50_us=None, p99_us=None)
                    step["totals"]["errors"] = [dict(
                        code=1213, sqlstate="40001", **{"class": "session"},
                        message=HOSTILE, count=7)]
                    step["warnings"] = [dict(code="hostile", message=HOSTILE)]
                name = "%d-%d-%d.json" % (order, count, repeat)
                with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                    json.dump(step, file)


def report(paths, *words):
    subprocess.run([LOADGEN, "report", *paths, *words], check=True)


CHARTS = """(() => {
  document.querySelectorAll('details').forEach(d => { d.open = true; });
  const wrong = [];
  const charts = [...document.querySelectorAll('svg.chart')];
  for (const chart of charts) {
    const name = chart.getAttribute('aria-label');
    const box = chart.getBoundingClientRect();
    if (box.width < 100 || box.height < 50) wrong.push(name + ': ' + box.width + ' x ' + box.height);
    const lines = [...chart.querySelectorAll('.l')];
    if (lines.length === 0) wrong.push(name + ': no line');
    for (const path of chart.querySelectorAll('path')) {
      if (/NaN|inf/.test(path.getAttribute('d'))) wrong.push(name + ': ' + path.getAttribute('d'));
    }
    const texts = [...chart.querySelectorAll('text')];
    if (texts.length < 4) wrong.push(name + ': too few texts');
    for (const text of texts) {
      // On the screen, because a text of the legend has a place of its own.
      const b = text.getBoundingClientRect();
      if (b.left < box.left - 1 || b.top < box.top - 1 || b.right > box.right + 1 || b.bottom > box.bottom + 1)
        wrong.push(name + ': "' + text.textContent + '" is clipped');
    }
    for (const ticks of ['text.mid:not(.name)', 'text.end']) {
      const boxes = [...chart.querySelectorAll(ticks)].map(t => t.getBBox());
      boxes.forEach((a, i) => boxes.slice(i + 1).forEach(b => {
        if (a.x < b.x + b.width && b.x < a.x + a.width && a.y + 3 < b.y + b.height && b.y + 3 < a.y + a.height)
          wrong.push(name + ': two ticks overlap');
      }));
    }
  }
  return {charts: charts.length, wrong};
})()"""

SWITCHES = """(() => {
  const wrong = [];
  const seen = (at) => [...document.querySelectorAll('main .s' + at)]
    .filter(e => getComputedStyle(e).display !== 'none').length;
  const inputs = [...document.querySelectorAll('#switches input[type=checkbox]')];
  const before = inputs.map((_, at) => seen(at));
  inputs.forEach((input, at) => {
    if (before[at] === 0) wrong.push('label ' + at + ' shows nothing');
    document.querySelector('label.k' + at).click();
    if (seen(at) !== 0) wrong.push('label ' + at + ' does not go away');
    const others = inputs.some((_, other) => other !== at && seen(other) !== before[other]);
    if (others) wrong.push('label ' + at + ' takes others along');
    input.click();
    if (seen(at) !== before[at]) wrong.push('label ' + at + ' does not come back');
  });
  const [all, none] = document.querySelectorAll('.tools button');
  none.click();
  if (inputs.some((_, at) => seen(at) !== 0)) wrong.push('none leaves some');
  const rows = [...document.querySelectorAll('table.main tbody tr')];
  if (rows.some(r => getComputedStyle(r).display !== 'none')) wrong.push('none leaves rows');
  if (rows.length < inputs.length) wrong.push('only ' + rows.length + ' rows');
  all.click();
  if (inputs.some((_, at) => seen(at) !== before[at])) wrong.push('all is not all');
  return {switches: inputs.length, wrong};
})()"""

HOVER = """(() => {
  const wrong = [];
  for (const chart of document.querySelectorAll('svg.chart')) {
    chart.scrollIntoView({block: 'center'});
    const box = chart.getBoundingClientRect();
    const at = {bubbles: true, clientX: box.x + box.width * 0.6, clientY: box.y + box.height * 0.5};
    chart.dispatchEvent(new PointerEvent('pointermove', at));
    const tip = document.querySelector('.tip');
    const names = [...tip.querySelectorAll('span:first-child')].map(name => name.textContent);
    if (new Set(names).size !== names.length) wrong.push(chart.getAttribute('aria-label') + ': a label twice');
    if (tip.hidden || !/\\d/.test(tip.textContent) || /undefined|NaN/.test(tip.textContent))
      wrong.push(chart.getAttribute('aria-label') + ': says ' + (tip.hidden ? 'nothing' : tip.textContent));
  }
  document.body.dispatchEvent(new PointerEvent('pointermove', {bubbles: true}));
  if (!document.querySelector('.tip').hidden) wrong.push('the values stay');
  return wrong;
})()"""

FOREIGN = """(() => {
  const wrong = [];
  if (window.pwned) wrong.push('a label ran as a script');
  if (document.querySelectorAll('script').length !== 1) wrong.push('another script');
  if (document.querySelector('img, iframe, object, embed, form, [onerror], [style]:not(.tip)'))
    wrong.push('an element that is none of the page\\'s');
  return wrong;
})()"""


def faults(browser):
    """What the browser complained about or fetched."""
    for event in browser.events:
        method, params = event["method"], event.get("params", {})
        if method == "Runtime.exceptionThrown":
            yield "exception: %s" % json.dumps(params)[:500]
        if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            yield "console: %s" % params["entry"]["text"]
        if method == "Runtime.consoleAPICalled":
            yield "console: %s" % json.dumps(params["args"])[:500]
        if method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith(("file://", "data:")):
                yield "fetched %s" % url


# What folds hold, as a reader sees it: CHARTS has opened them all.
FOLDED = """(async () => {
  const folds = [...document.querySelectorAll('details.print')];
  folds.forEach(fold => { fold.open = false; });
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  const shown = folds.filter(fold => fold.lastElementChild.checkVisibility({contentVisibilityAuto: true,
    contentVisibilityProperty: true}) && fold.lastElementChild.getBoundingClientRect().height > 0);
  return [folds.length, shown.length];
})()"""


def check(browser, page, shots):
    wrong = []
    browser.size(1280, 900)
    browser.media("light")
    browser.open(page)
    charts = browser.run(CHARTS)
    switches = browser.run(SWITCHES)
    wrong += charts["wrong"] + switches["wrong"] + browser.run(HOVER) + browser.run(FOREIGN)
    paper = "getComputedStyle(document.body).backgroundColor"
    if charts["charts"] < 5:
        wrong.append("only %d charts" % charts["charts"])
    light = browser.run(paper)
    looks = [("desk", 1280, "light", ""), ("dark", 1280, "dark", ""), ("phone", 360, "light", ""),
             ("small", 320, "dark", "")]
    for name, width, scheme, kind in looks:
        browser.size(width, 900)
        browser.media(scheme, kind)
        over = browser.run("document.documentElement.scrollWidth - innerWidth")
        if over > 0:
            wrong.append("%s: %d pixels stick out" % (name, over))
        if (browser.run(paper) == light) == (scheme == "dark"):
            wrong.append("%s: the paper is %s" % (name, browser.run(paper)))
        if shots:
            browser.shot(os.path.join(shots, name + ".png"))
    browser.size(1280, 900)
    folds, shown = browser.run(FOLDED)
    if not folds or shown:
        wrong.append("%d of %d folds cannot be folded" % (shown, folds))
    # A dark reader's page is printed on white paper, too, and with everything unfolded.
    browser.media("dark", "print")
    folds, shown = browser.run(FOLDED)
    if shown != folds:
        wrong.append("print: %d of %d folds stay folded" % (folds - shown, folds))
    if browser.run(paper) != light:
        wrong.append("print: the paper is %s" % browser.run(paper))
    browser.media("light")
    pdf = browser.pdf()
    if not pdf.startswith(b"%PDF"):
        wrong.append("print: no PDF")
    if shots:
        with open(os.path.join(shots, "print.pdf"), "wb") as file:
            file.write(pdf)
    wrong += faults(browser)
    print("%d bytes, %d charts, %d switches" % (os.path.getsize(page), charts["charts"],
                                                switches["switches"]))
    return wrong


def check_pictures(browser, paths, work):
    wrong = []
    for chart in ("qps", "relative", "latency", "timeline"):
        path = os.path.join(work, chart + ".svg")
        report(paths, "--format", "svg", "--chart", chart, "-o", path)
        text = open(path, encoding="utf-8").read()
        ElementTree.fromstring(text)
        browser.open(path)
        wrong += ["%s.svg: %s" % (chart, fault) for fault in faults(browser)]
        lines = browser.run("document.querySelectorAll('.l').length")
        if not lines or "NaN" in text or browser.run("!!window.pwned"):
            wrong.append("%s.svg: %d lines" % (chart, lines))
    return wrong


def large(browser, page):
    browser.size(1280, 900)
    browser.open("/dev/null")
    before = browser.cpu()
    seconds = sorted(browser.open(page) for _ in range(5))
    size = os.path.getsize(page)
    print("%d bytes; opened in %.2f s (median of 5, %.2f to %.2f), %.2f s CPU each"
          % (size, seconds[2], seconds[0], seconds[-1], (browser.cpu() - before) / 5))
    toggled = browser.run("""(() => { const began = performance.now();
        document.querySelector('#l0').click();
        document.body.offsetHeight; return performance.now() - began; })()""")
    print("a switch takes %.0f ms" % toggled)
    wrong = list(faults(browser))
    if size > BYTES_MAX:
        wrong.append("larger than %d bytes" % BYTES_MAX)
    if seconds[2] > OPEN_MAX_S:
        wrong.append("slower than %.0f s" % OPEN_MAX_S)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--shots")
    parser.add_argument("paths", nargs="*")
    args = parser.parse_args()
    if args.shots:
        os.makedirs(args.shots, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        data, page = os.path.join(work, "results"), os.path.join(work, "report.html")
        os.mkdir(data)
        if not args.paths:
            labels = ["label %d" % i for i in range(200)] if args.large else [
                "8.4.3", HOSTILE, "orig5610+bp8+fastcs", "größe"]
            clients = [1 << i for i in range(8)] if args.large else [1, 2, 4, 8, 16, 64, 100]
            summaries(data, labels, clients, 1 if args.large else 6, 60)
        paths = args.paths or [data]
        report(paths, "--format", "html", "-o", page)
        browser = Browser(os.path.join(work, "profile"))
        try:
            wrong = large(browser, page) if args.large else check(browser, page, args.shots)
            if not args.large:
                wrong += check_pictures(browser, paths, args.shots or work)
        finally:
            browser.close()
    for text in wrong:
        print(text)
    print("%d faults" % len(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
