#!/usr/bin/env python3
"""judge.py - injects faults into small jobs and asks the coordinator who keeps
whom waiting.

usage: judge.py MASTER RANK [CASES [SEED]]

MASTER is pccl-master, RANK is why_rank. Each case is a job of a random size, a
random kind of fault and a random rank that has it. A second after all ranks are
ready the coordinator is asked once: that answer goes to the confusion matrix.
Then it is asked until the answer is right. A case fails if an answer blames a
rank that is not the cause, or if none is right for a minute: a busy machine may
be late, and never wrong. Exit status 1 if a case failed.
"""
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

PATIENCE = 60

# kind: (least size, object, right causes)
KINDS = {
    "spin": (2, "operation", {"computes", "starved"}),
    "sleep": (2, "operation", {"not called"}),
    "stop": (2, "operation", {"stopped"}),
    "other": (3, "operation", {"other call"}),
    "receive": (2, "operation", {"cycle"}),
    "probe": (2, "operation", {"cycle"}),
    "wait": (2, "operation", {"cycle"}),
    "sends": (2, None, {"cycle"}),
    "silent": (2, "message", {"not called"}),
    "pending": (2, "operation", {"not called"}),
    "finalize": (2, "operation", {"not called"}),
    "update": (2, "update", {"not called"}),
    "sync": (2, "sync", {"not called"}),
    "quorum": (2, "quorum", {"none"}),
    "newcomer": (1, "admission", {"none"}),
    "healthy": (2, None, set()),
}


class Job:
    """A running job, and the ranks of it that were said to be ready."""

    def __init__(self, master, arguments, env):
        self.process = subprocess.Popen(
            [master] + arguments, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env)

    def address(self):
        while True:
            line = self.process.stderr.readline().decode()
            found = re.search(r"listening on (\S+)", line)
            if found:
                return found.group(1)
            if not line:
                raise RuntimeError("no coordinator")

    def await_ready(self, count):
        while count > 0:
            line = self.process.stdout.readline().decode()
            if not line:
                raise RuntimeError("the job has ended: " +
                                   self.process.stderr.read().decode())
            count -= line.startswith("ready")

    def end(self):
        """The second signal ends the job, the third one kills."""
        for _ in range(3):
            if self.process.poll() is not None:
                break
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(1)
            except subprocess.TimeoutExpired:
                pass
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


def ask(master, address):
    answer = subprocess.run([master, "--status", address, "--json"],
                            stdout=subprocess.PIPE, check=False)
    if answer.returncode != 0:
        return None
    return json.loads(answer.stdout.decode())


def culprits(kind, victim, size):
    if kind == "sends":
        return {victim, (victim + 1) % size}
    if kind in ("quorum", "newcomer"):
        return {None}
    return {victim}


def judge(kind, victim, size, why):
    """What the answer says, and whether it is right, or blames another one."""
    _, wanted, causes = KINDS[kind]
    if not why:
        return "nobody", kind == "healthy", False
    first = why[0]
    good = culprits(kind, victim, size)
    right = (first["rank"] in good and first["cause"] in causes and
             wanted in (None, first["object"]))
    innocent = [w for w in why if w["rank"] not in good and
                w["cause"] not in ("other call", "waits in a receive",
                                   "waits in a send", "cycle")]
    name = first["cause"] if first["cause"] != "none" else first["object"]
    if first["rank"] not in good:
        name = "wrong rank: " + name
    return name, right, bool(innocent) and kind != "healthy"


class Case:
    def __init__(self, master, rank, seed):
        self.random = random.Random(seed)
        kinds = sorted(KINDS)
        self.kind = kinds[seed % len(kinds)]
        self.size = self.random.randint(KINDS[self.kind][0], 4)
        self.victim = self.random.randrange(self.size)
        self.master, self.rank = master, rank
        self.answer, self.late, self.failure = "", False, None
        self.took = 0 # seconds of the first answer

    def start(self, env):
        arguments = ["-v", "-n", str(self.size), self.rank, self.kind,
                     str(self.victim)]
        if self.kind == "newcomer":
            arguments.insert(0, "--elastic")
        job = Job(self.master, arguments, env)
        address = job.address()
        job.await_ready(self.size)
        return job, address

    def run(self):
        env = dict(os.environ, PCCL_STALL_WARN="0")
        job, address = self.start(env)
        newcomer = None
        try:
            if self.kind == "newcomer":
                newcomer = Job(self.master, ["--join", address, "-n", "1",
                                             self.rank, "join", "0"], env)
                newcomer.await_ready(1)
            self.look(job, address)
        finally:
            if newcomer:
                newcomer.end()
            job.end()

    def evicted(self, job):
        """It was stopped for so long that it was evicted meanwhile."""
        text = job.process.stderr.read().decode()
        return re.search(r"rank %d \(.*was stopped by a signal" % self.victim,
                         text)

    def look(self, job, address):
        begun = time.monotonic()
        time.sleep(1) # the question comes a second after the fault
        first = True
        while True:
            asked = time.monotonic()
            status = ask(self.master, address)
            if first:
                self.took = time.monotonic() - asked
            if status is None:
                self.late = True
                if self.kind != "stop" or not self.evicted(job):
                    self.failure = "no status"
                return
            name, right, wrong = judge(self.kind, self.victim, self.size,
                                       status["why"])
            if first:
                self.answer, self.late = name, not right
                first = False
            if wrong:
                self.failure = json.dumps(status["why"])
                return
            if right or self.kind == "healthy":
                return
            if time.monotonic() - begun > PATIENCE:
                self.failure = "never right: " + json.dumps(status["why"])
                return


def print_matrix(matrix):
    columns = sorted({name for row in matrix.values() for name in row})
    print("%-10s" % "fault" + "".join(" %14s" % c[:14] for c in columns))
    for kind in sorted(matrix):
        row = matrix[kind]
        print("%-10s" % kind +
              "".join(" %14s" % (row.get(c) or ".") for c in columns))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    master, rank = sys.argv[1:3]
    cases = int(sys.argv[3]) if len(sys.argv) > 3 else len(KINDS)
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    matrix, failed, late, took = {}, 0, 0, []
    for i in range(seed, seed + cases):
        case = Case(master, rank, i)
        case.run()
        row = matrix.setdefault(case.kind, {})
        row[case.answer] = row.get(case.answer, 0) + 1
        late += case.late
        took.append(case.took)
        if case.failure:
            failed += 1
            print("case %d: %s of %d, rank %d: %s" % (
                i, case.kind, case.size, case.victim, case.failure))
            sys.stdout.flush()
    print_matrix(matrix)
    took.sort()
    print("answers took %.2f s (median), %.2f s (99 %%), %.2f s (most)" % (
        took[len(took) // 2], took[len(took) * 99 // 100], took[-1]))
    print("%d cases, %d answered later than at the first question, %d failed"
          % (cases, late, failed))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
