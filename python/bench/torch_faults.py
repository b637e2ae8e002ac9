#!/usr/bin/env python3
# torch_faults.py - training under faults: pccl, Gloo with restarts, torchft.
"""torch_faults.py [-n RANKS] [--seconds S] [--every E] [--rounds R]
                [--kills K] [--width W] [SYSTEM ...]

Trains the same network under each system by turns (pccl, gloo, torchft; the
last one if it is installed), each time for S seconds. Every E seconds one
random rank dies by SIGKILL, and a new process takes its place at once. A fault
waits while fewer than two ranks train, because there is no survivor then. With
--kills the time ends with so many faults. Ranks are forked from a process that
has imported torch, so that the start of Python is not measured.

pccl     elastic DistributedDataParallel under one pccl-master
gloo     torch's DistributedDataParallel; a fault ends all ranks, and all start
         again from the last checkpoint, as under torchrun. Rank 0 writes one
         every 20 steps, to memory (/dev/shm where there is one)
torchft  its Manager and DistributedDataParallel over Gloo, its lighthouse with
         --heartbeat_timeout_ms 1000 --join_timeout_ms 1000 (both are longer
         by default)

For each: steps of the model per second that counted in the end (a step that
was lost with a checkpoint, and made again, counts once); batches, which are
steps times the ranks that contributed; from the kill to the next step that no
process had made before (recovery), beside the median time of a step; and steps
whose parameters were not the same bits on all ranks that made it. The clock
runs from the moment when all train.
"""
import argparse
import collections
import gc
import importlib
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import zlib

def network():
    import torch
    torch.set_num_threads(1)
    torch.manual_seed(0)
    width = int(os.environ["WIDTH"])
    net = torch.nn.Sequential(
        torch.nn.Linear(width, width), torch.nn.ReLU(),
        torch.nn.Linear(width, width), torch.nn.ReLU(),
        torch.nn.Linear(width, 10))
    return net, torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)


class Log:
    """Lines "step time digest job", one for each step that this process made;
    job differs after a restart of all."""

    def __init__(self, path, net):
        self.file, self.net = open(path, "a", buffering=1), net

    def step(self, number):
        now, digest = time.monotonic(), 0
        for tensor in self.net.parameters():
            digest = zlib.crc32(tensor.detach().numpy(), digest)
        job = os.environ.get("MASTER_PORT", "0")
        self.file.write(f"{number} {now:.6f} {digest:08x} {job}\n")


def learn(model, step):
    import torch
    torch.manual_seed(step * 1000 + os.getpid())
    model(torch.randn(32, int(os.environ["WIDTH"]))).square().mean().backward()


def train_pccl(path):
    import torch.distributed as dist

    import pccl.torch
    net, optimizer = network()
    log = Log(path, net)
    dist.init_process_group("pccl", init_method="pccl://")
    model = pccl.torch.DistributedDataParallel(net, optimizer)
    while True:
        model.update()
        optimizer.zero_grad()
        learn(model, model.step)
        optimizer.step()
        log.step(model.step)


def train_gloo(path):
    import torch
    import torch.distributed as dist
    net, optimizer = network()
    log = Log(path, net)
    saved, step = os.environ["CHECKPOINT"], 0
    if os.path.exists(saved):
        state = torch.load(saved, weights_only=True)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(net)
    while True:
        optimizer.zero_grad()
        learn(model, step)
        optimizer.step()
        step += 1
        log.step(step)
        if step % 20 == 0 and dist.get_rank() == 0:
            torch.save({"net": net.state_dict(), "step": step,
                        "optimizer": optimizer.state_dict()}, saved + ".new")
            os.replace(saved + ".new", saved)


def train_torchft(path):
    import datetime
    import logging

    import torch.distributed as dist
    import torchft
    logging.disable(logging.CRITICAL)
    net, inner = network()
    log = Log(path, net)
    store = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)

    def load(state):
        net.load_state_dict(state["net"])
        inner.load_state_dict(state["optimizer"])
    manager = torchft.Manager(
        pg=torchft.ProcessGroupGloo(timeout=datetime.timedelta(seconds=5)),
        min_replica_size=1, load_state_dict=load, state_dict=lambda: {
            "net": net.state_dict(), "optimizer": inner.state_dict()},
        replica_id=f"replica_{os.getpid()}", rank=0, world_size=1,
        store_addr="127.0.0.1", store_port=store.port,
        timeout=datetime.timedelta(seconds=10))
    model = torchft.DistributedDataParallel(manager, net)
    optimizer = torchft.Optimizer(manager, inner)
    while True:
        optimizer.zero_grad()
        step = manager.current_step()
        learn(model, step)
        optimizer.step()
        if manager.current_step() > step:
            log.step(manager.current_step())


class Rank:
    """A rank in a process of its own."""

    def __init__(self, system, path, environment):
        self.path, self.status, self.killed = path, None, False
        self.pid = os.fork()
        if self.pid:
            return
        try:
            gc.freeze()  # what the parent left is not ended here
            os.environ.update(environment)
            sys.stderr = open(f"{path}.err", "w", buffering=1)
            globals()["train_" + system](path)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    def poll(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = status
        return self.status

    def kill(self):
        self.killed = True  # it may end a little later
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        if self.poll() is None:
            self.status = os.waitpid(self.pid, 0)[1]


class Driver:
    """Ranks of one system, their faults, and what they logged."""

    def __init__(self, system, options, folder):
        self.system, self.options = system, options
        self.folder = pathlib.Path(folder)
        self.ranks, self.server = {}, None  # rank: process
        self.started = 0
        self.environment = dict(os.environ, OMP_NUM_THREADS="1",
                                WIDTH=str(options.width))
        getattr(self, "serve_" + system)()

    def serve_pccl(self):
        log = self.folder / "coordinator"
        self.server = subprocess.Popen(
            [master_program(), "--listen", "127.0.0.1:0", "--quorum",
             str(self.options.ranks)], stderr=subprocess.STDOUT,
            stdout=open(log, "w"))
        where = None
        while not where:
            time.sleep(0.01)
            where = re.search(r"127\.0\.0\.1:\d+\s", log.read_text())
        self.environment["PCCL_MASTER"] = where[0].strip()

    def serve_gloo(self):
        shared = "/dev/shm" if os.path.isdir("/dev/shm") else str(self.folder)
        self.checkpoint = f"{shared}/torch_faults.{os.getpid()}"
        self.environment["CHECKPOINT"] = self.checkpoint

    def serve_torchft(self):
        port = free_port()
        self.server = subprocess.Popen(
            [os.path.join(os.path.dirname(sys.executable),
                          "torchft_lighthouse"), "--bind", f"[::]:{port}",
             "--min_replicas", "1", "--heartbeat_timeout_ms", "1000",
             "--join_timeout_ms", "1000"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.environment["TORCHFT_LIGHTHOUSE"] = f"http://127.0.0.1:{port}"

    def start(self, ranks):
        more = {}
        if self.system == "gloo":
            more = {"MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": str(free_port()),
                    "WORLD_SIZE": str(self.options.ranks)}
        for rank in ranks:
            path = self.folder / str(self.started)
            self.started += 1
            names = {"RANK": str(rank)}
            if self.system == "pccl":
                names = {"PCCL_RANK": str(rank)} \
                    if self.started <= self.options.ranks else {}
            self.ranks[rank] = Rank(self.system, str(path), dict(
                self.environment, **names, **more))

    def revive(self):
        """Starts what the faults, or what came of them, have ended."""
        dead = [r for r, p in self.ranks.items() if p.poll() is not None]
        if dead and self.system == "gloo":
            self.end_ranks()
            dead = list(self.ranks)
        self.start(dead)

    def training(self):
        """The processes that live and have made a step."""
        return [process for process in self.ranks.values()
                if process.poll() is None and not process.killed and
                os.path.exists(process.path) and
                os.path.getsize(process.path)]

    def end_ranks(self):
        for process in self.ranks.values():
            process.kill()
        for process in self.ranks.values():
            process.wait()

    def rows(self):
        """(step, time, digest, process, job) of all processes."""
        found = []
        for number in range(self.started):
            path = self.folder / str(number)
            if path.exists():
                for line in path.read_text().splitlines(keepends=True):
                    if line.endswith("\n"):
                        step, when, digest, job = line.split()
                        found.append((int(step), float(when), digest, number,
                                      job))
        return found

    def run(self):
        ranks = self.options.ranks
        self.start(range(ranks))
        while len({row[3] for row in self.rows()}) < ranks:
            time.sleep(0.1)
            self.revive()
        begin, kills = time.monotonic(), []
        end = begin + self.options.seconds
        due = begin + self.options.every
        most = self.options.kills or sys.maxsize
        while time.monotonic() < end and (
                len(kills) < most or time.monotonic() < due):
            if due < time.monotonic() < end - 1 and len(kills) < most:
                training = self.training()
                if len(training) > 1:
                    kills.append(time.monotonic())
                    due = kills[-1] + self.options.every
                    random.choice(training).kill()
            self.revive()
            time.sleep(0.005)
        return begin, min(end, time.monotonic()), kills

    def close(self):
        self.end_ranks()
        if self.server:
            self.server.kill()
            self.server.wait()
        if self.system == "gloo" and os.path.exists(self.checkpoint):
            os.unlink(self.checkpoint)


def step_seconds(rows):
    """Median time between two steps of one process."""
    last, found = {}, []
    for _, when, _, process, _ in rows:
        if process in last:
            found.append(when - last[process])
        last[process] = when
    return statistics.median(found)


def measure(rows, begin, end, kills):
    """(useful steps and batches per second, recoveries in seconds, number of
    steps of other bits, seconds of a step)"""
    first, versions = {}, collections.defaultdict(dict)
    for step, when, digest, process, job in sorted(
            rows, key=lambda row: row[1]):
        first.setdefault(step, when)
        versions[step, job][process] = when, digest
    useful = sum(begin <= when <= end for when in first.values())
    recoveries = []
    for kill in kills:
        known = max((s for s, when in first.items() if when <= kill),
                    default=0)
        # The step under way may be finished by who lives, without the dead.
        later = [when for s, when in first.items()
                 if s > known and kill < when <= end]
        recoveries.append(min(later) - kill if later else end - kill)
    wrong, latest = 0, {}
    for (step, _), made in versions.items():
        newest = max(when for when, _ in made.values())
        same = [d for when, d in made.values() if newest - when < 1]
        wrong += len(set(same)) > 1
        latest[step] = max(latest.get(step, (0, 0)), (newest, len(same)))
    batches = sum(ranks for when, ranks in latest.values()
                  if begin <= when <= end)
    seconds = end - begin
    return useful / seconds, batches / seconds, recoveries, wrong, \
        step_seconds(rows)


def master_program():
    from pccl import _programs
    return _programs.program("pccl-master")


def import_all(systems):
    """What the ranks need, before they are forked."""
    for name in ["torch", "torch._dynamo", "torch.distributed.fsdp"] + (
            ["pccl.torch"] if "pccl" in systems else []) + (
            ["torchft"] if "torchft" in systems else []):
        importlib.import_module(name)


def free_port():
    import socket
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("-n", "--ranks", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--every", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("systems", nargs="*")
    options = parser.parse_args()
    systems = options.systems or ["pccl", "gloo", "torchft"]
    import_all(systems)
    totals = {s: ([], [], [], [], []) for s in systems}
    for _ in range(options.rounds):
        for system in systems:
            with tempfile.TemporaryDirectory() as folder:
                driver = Driver(system, options, folder)
                try:
                    times = driver.run()
                finally:
                    driver.close()
                for total, value in zip(totals[system],
                                        measure(driver.rows(), *times)):
                    total.append(value)
    print(f"{options.ranks} ranks, {options.rounds} x {options.seconds:g} s, "
          f"SIGKILL every {options.every:g} s")
    print(f"{'system':8} {'steps/s':>8} {'batches/s':>9} {'step ms':>8} "
          f"{'faults':>6} {'p50 ms':>9} {'p99 ms':>9} {'wrong bits':>10}")
    for system, (rates, batches, recoveries, wrong, step) in totals.items():
        flat = sorted(r for one in recoveries for r in one) or [float("nan")]
        at99 = flat[min(len(flat) - 1, int(len(flat) * 0.99))]
        print(f"{system:8} {statistics.median(rates):8.1f} "
              f"{statistics.median(batches):9.1f} "
              f"{statistics.median(step) * 1e3:8.1f} {len(flat):6} "
              f"{statistics.median(flat) * 1e3:9.1f} {at99 * 1e3:9.1f} "
              f"{sum(wrong):10}", flush=True)


if __name__ == "__main__":
    main()
