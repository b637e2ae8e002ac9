#!/usr/bin/env python3
"""status_web.py - the status of a real job over HTTP, through a loss, a join and
a rank that keeps the others waiting.

usage: status_web.py MASTER RANK [page [FOLDER]]

MASTER is pccl-master, RANK is status_rank. Without `page` it looks at
/status.json, /metrics and /healthz, and lets promtool judge the metrics if that
is installed. With it, headless Chromium renders the page; exit status 77 if
there is none. FOLDER gets the pictures.
"""
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PATIENCE = 300
RANKS = 4
SLOW = "coordinator does not answer"  # for 2 s: this machine is busy


def fail(text):
    sys.exit(f"FAILED: {text}")


class Job:
    def __init__(self, master, rank, folder):
        self.master, self.rank = master, rank
        self.file = os.path.join(folder, "over")
        self.others = []
        self.process = subprocess.Popen(
            [master, "-n", str(RANKS), "--elastic", "-v", "--status-http",
             "127.0.0.1:0", rank, self.file],
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.url = self.said(r"status at (\S+)")
        self.address = self.said(r"listening on (\S+)")

    def said(self, pattern):
        while True:
            line = self.process.stderr.readline().decode()
            found = re.search(pattern, line)
            if found:
                return found.group(1)
            if not line:
                fail(f"pccl-master ended before it said {pattern}")

    def get(self, path):
        while True:
            try:
                with urllib.request.urlopen(self.url + path) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as e:
                text = e.read().decode()
                if SLOW not in text:
                    return e.code, text
            except urllib.error.URLError as e:
                fail(f"pccl-master: {e}: {self.process.stderr.read()}")

    def status(self):
        code, text = self.get("status.json")
        if code != 200:
            fail(f"status.json: {code}: {text}")
        return json.loads(text)

    def until(self, what, good):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            status = self.status()
            if good(status):
                return status
            time.sleep(.05)
        fail(f"{what}: not within {PATIENCE} s: {json.dumps(status)[:4000]}")

    def join(self):
        self.others.append(subprocess.Popen(
            [self.master, "--join", self.address, "-n", "1", self.rank,
             self.file], stdin=subprocess.DEVNULL))

    def hold(self, rank):
        with open(self.file + ".new", "w", encoding="ascii") as file:
            file.write(str(rank))
        os.rename(self.file + ".new", self.file + ".hold")

    def go_on(self):
        os.remove(self.file + ".hold")

    def end(self):
        with open(self.file, "w", encoding="ascii"):
            pass
        for process in [self.process] + self.others:
            process.stderr and process.stderr.read()
            if process.wait(PATIENCE) != 0:
                fail(f"pccl-master ended with {process.returncode}")

    def kill(self):
        for process in [self.process] + self.others:
            if process.poll() is None:
                process.kill()


def kinds(status):
    return {e["kind"] for e in status["events"]}


def lose_and_join(job):
    """Rank 3 is killed, and a new one joins."""
    status = job.until("four members", lambda s: s["member_count"] == RANKS)
    victim = [m["pid"] for m in status["members"] if m["launched"] == 3]
    os.kill(victim[0], signal.SIGKILL)
    job.until("a loss", lambda s: "lost" in kinds(s) and
              s["member_count"] == RANKS - 1)
    job.join()
    return job.until("a join", lambda s: s["member_count"] == RANKS)


def hold(job):
    job.hold(2)
    return job.until("a wait", lambda s: any(
        w["rank"] == 2 and w["cause"] == "not called" for w in s["why"]))


def metric(text, name):
    found = re.search("^" + re.escape(name) + r" (\S+)$", text, re.M)
    if not found:
        fail(f"no {name} in {text}")
    return float(found.group(1))


def judge_metrics(text):
    if not shutil.which("promtool"):
        print("promtool is not installed: it does not judge the metrics")
        return
    judged = subprocess.run(["promtool", "check", "metrics"], input=text,
                            capture_output=True, text=True, check=False)
    if judged.returncode != 0 or judged.stderr or judged.stdout:
        fail(f"promtool: {judged.stdout} {judged.stderr}")
    print("promtool has no complaint")


def look_at_interface(job):
    status = lose_and_join(job)
    code, text = job.get(f"status.json?after={status['event_count']}")
    news = json.loads(text)
    if code != 200 or len(news["events"]) != (
            news["event_count"] - status["event_count"]):
        fail(f"events after {status['event_count']}: {text}")
    for path, want in (("healthz", 200), ("nothing", 404),
                       ("status.json?after=x", 400)):
        if job.get(path)[0] != want:
            fail(f"{path}: {job.get(path)[0]}, not {want}")
    hold(job)
    # All founders have done the same; each report is of a moment of its own.
    job.until("equal counts", lambda s: len(
        {m["operations"] for m in s["members"] if 0 <= m["launched"] < 3}) == 1)
    status = job.status()
    traffic = status["traffic"]
    if not (traffic["operations"] >= 8 and traffic["received_bytes"] >= 1 << 20 and
            status["history"]):
        fail(f"traffic: {traffic}, {status.get('history')}")
    code, text = job.get("metrics")
    if code != 200:
        fail(f"metrics: {code}")
    for name, least in (('pccl_peers{state="member"}', RANKS),
                        ('pccl_events_total{kind="lost"}', 1),
                        ('pccl_stalls{cause="not called"}', 1),
                        ("pccl_operations_total", 8),
                        ("pccl_received_bytes_total", 1 << 20),
                        ("pccl_longest_stall_seconds", .1),
                        ("pccl_start_time_seconds", 1e9)):
        if metric(text, name) < least:
            fail(f"{name} is {metric(text, name)}, less than {least}")
    judge_metrics(text)
    job.go_on()


# ------------------------------------------------------------------- the page

def chromium(folder, url, *options):
    """What it prints, and its complaints about the page."""
    name = shutil.which("chromium") or shutil.which("chromium-browser")
    done = subprocess.run(
        [name, "--headless", "--no-sandbox", "--disable-gpu",
         "--hide-scrollbars", "--window-size=1280,1330",
         "--user-data-dir=" + os.path.join(folder, "profile"),
         "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-extensions", "--disable-sync",
         "--enable-logging=stderr", "--virtual-time-budget=3000",
         *options, url],
        capture_output=True, text=True, check=False, errors="replace",
        env={**os.environ, "HOME": folder})
    if done.returncode != 0:
        fail(f"chromium: {done.returncode}: {done.stderr[-2000:]}")
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    if said:
        fail(f"the page complains: {said}")
    return done.stdout


def look(job, folder, name, scheme, *wanted):
    """The page as a browser has made it, in which all of `wanted` are, and its
    picture. 0 is dark, 1 is light."""
    path = os.path.join(folder, name)
    text = chromium(folder, job.url, "--dump-dom", "--screenshot=" + path,
                    f"--blink-settings=preferredColorScheme={scheme}")
    page = text.split("<script>")[0]
    for part in wanted:
        if not re.search(part, page):
            fail(f"{part} is not in the page: {page}")
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        fail(f"{name} is no picture")
    width, height = struct.unpack(">II", data[16:24])
    if width < 1000 or height < 1000 or len(data) < 10000:
        fail(f"{name}: {width} x {height}, {len(data)} bytes")
    return page, data


def look_at_page(job, folder):
    code, text = job.get("")
    elsewhere = [u for u in re.findall(r"https?://[^'\"\s]+", text)
                 if u != "http://www.w3.org/2000/svg"]
    if code != 200 or elsewhere:
        fail(f"the page: {code}, refers to {elsewhere}")
    lose_and_join(job)
    hold(job)
    page, light = look(
        job, folder, "light.png", 1, 'data-state="waits"',
        f'data-members="{RANKS}"', "has not called", "MPI_Allreduce",
        'class="loss"', 'class="join"', 'class="wait"', "is lost",
        'data-rank="3"', "collectives/s")
    if int(re.search(r'data-updates="(\d+)"', page).group(1)) < 2:
        fail("the page does not update itself")
    _, dark = look(job, folder, "dark.png", 0, "has not called")
    if light == dark:
        fail("light and dark are the same")
    job.go_on()
    job.until("no wait", lambda s: not s["why"])


def main(arguments):
    page = len(arguments) > 2 and arguments[2] == "page"
    if len(arguments) not in (2, 3, 4) or (len(arguments) > 2 and not page):
        sys.exit(__doc__)
    if page and not (shutil.which("chromium") or
                     shutil.which("chromium-browser")):
        print("SKIPPED: chromium is not installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        pictures = arguments[3] if len(arguments) > 3 else folder
        job = Job(arguments[0], arguments[1], folder)
        try:
            if page:
                look_at_page(job, pictures)
            else:
                look_at_interface(job)
            job.end()
        finally:
            job.kill()
    print("passed")


if __name__ == "__main__":
    main(sys.argv[1:])
