#!/usr/bin/env python3
"""kill_and_join.py - a training that loses a member and gets a new one.

Four processes train a network on two spirals. One is killed with SIGKILL, later
another one joins; the picture shows the loss and the members over time. The
cells (# %%) run one by one in an editor or as a notebook, or all at once:

    python kill_and_join.py [PICTURE]        # needs numpy and matplotlib
"""
# %% What a member does
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import numpy

import pccl

STEPS, KILL_AT, JOIN_AT, MEMBERS = 450, 120, 240, 4
MEAN = 15  # steps, of the smooth line


def spirals(draw, count):
    """Points of two spirals, and which one each is of."""
    turn = numpy.sqrt(draw.random(count)) * 3 * numpy.pi
    kind = draw.integers(0, 2, count)
    angle = turn + numpy.pi * kind
    points = numpy.stack([numpy.cos(angle), numpy.sin(angle)], 1)
    return points * turn[:, None] / 10 + draw.normal(0, .01, (count, 2)), kind


def network(draw):
    """Weights of three layers."""
    sizes = [(2, 48), (48, 48), (48, 1)]
    return {f"{name}{i}": draw.normal(0, (2 / rows) ** .5, (rows, columns))
            if name == "w" else numpy.zeros(columns)
            for i, (rows, columns) in enumerate(sizes) for name in "wb"}


def gradient(net, x, y):
    """Loss, and its derivative by all weights, in one vector."""
    a = numpy.maximum(x @ net["w0"] + net["b0"], 0)
    b = numpy.maximum(a @ net["w1"] + net["b1"], 0)
    out = 1 / (1 + numpy.exp(-(b @ net["w2"] + net["b2"])[:, 0]))
    loss = -numpy.log(numpy.where(y == 1, out, 1 - out) + 1e-9).mean()
    d = ((out - y) / len(y))[:, None]
    e = d @ net["w2"].T * (b > 0)
    f = e @ net["w1"].T * (a > 0)
    parts = [x.T @ f, f.sum(0), a.T @ e, e.sum(0), b.T @ d, d.sum(0)]
    return numpy.concatenate([part.ravel() for part in parts] + [[loss]])


def member(log):
    """Trains until STEPS, and writes a line for each step."""
    with pccl.connect() as run, open(log / f"{os.getpid()}.log", "w",
                                     buffering=1) as lines:
        draw = numpy.random.default_rng(run.id)
        net = network(draw)
        state = {"net": net, "momentum": {
            name: numpy.zeros_like(w) for name, w in net.items()}, "step": 0}
        joined, most = True, 0
        while state["step"] < STEPS:
            if not joined:
                joined = run.update()
            if joined:
                run.sync(state)
            joined = False
            sums = gradient(net, *spirals(draw, 256))
            info = run.all_reduce(sums, op="avg", retry=True)
            if info.world_size == 1 and most > 1:
                continue  # a lone survivor has no mean: it discards the step
            most = max(most, info.world_size)
            start = 0
            for name, weights in net.items():
                part = sums[start:start + weights.size].reshape(weights.shape)
                start += weights.size
                state["momentum"][name] *= .9
                state["momentum"][name] += part
                weights -= .1 * state["momentum"][name]
            state["step"] += 1
            lines.write(json.dumps([time.time(), state["step"], sums[-1],
                                    info.world_size]) + "\n")
            time.sleep(.005)  # so that there is something to see


if __name__ == "__main__" and sys.argv[1:2] == ["--member"]:
    member(pathlib.Path(sys.argv[2]))
    sys.exit()


# %% The job: four members, one is killed, one joins
def launch(log, *words):
    """Starts pccl-master; its messages go to a file."""
    with open(log / "launcher.txt", "ab") as messages:
        return subprocess.Popen(
            ["pccl-master", "--verbose", *words, sys.executable, __file__,
             "--member", str(log)], stderr=messages,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})


def step_of(log):
    """The step of the member that is furthest, and the members' files."""
    steps = {path: path.read_text().count("\n") for path in log.glob("*.log")}
    return max(steps.values(), default=0), sorted(steps)


def wait_for(log, step):
    """Returns the members' files."""
    while step_of(log)[0] < step:
        time.sleep(.02)
    return step_of(log)[1]


def train(log):
    """Returns when the victim was killed and the newcomer started."""
    job = launch(log, "-n", str(MEMBERS), "--elastic")
    victim = wait_for(log, KILL_AT)[-1]
    killed = time.time()
    os.kill(int(victim.stem), signal.SIGKILL)
    wait_for(log, JOIN_AT)
    address = re.search(r"listening on (\S+:\d+)",
                        (log / "launcher.txt").read_text()).group(1)
    started = time.time()
    newcomer = launch(log, "--join", address, "-n", "1")
    job.wait()
    newcomer.wait()
    return killed, started


# %% The picture
def draw_picture(log, killed, started, picture):
    """Loss and members over time, of a member that was there all along."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    logs = [[json.loads(line) for line in path.read_text().splitlines()
             if line.endswith("]")] for path in log.glob("*.log")]
    whole = max(logs, key=len)
    when, step, loss, members = map(numpy.array, zip(*whole))
    zero = when[0]
    figure, (top, bottom) = pyplot.subplots(
        2, 1, sharex=True, figsize=(8, 5), height_ratios=[3, 1])
    top.plot(when - zero, loss, color="0.8", linewidth=.8, label="each step")
    smooth = numpy.convolve(loss, numpy.ones(MEAN) / MEAN, "valid")
    half = MEAN // 2
    top.plot(when[half:-half] - zero, smooth, color="tab:blue",
             label=f"mean of {MEAN} steps")
    top.set_ylabel("loss, mean of all members")
    top.legend(loc="upper right")
    bottom.step(when - zero, members, where="post", color="tab:green")
    bottom.set_ylabel("members")
    bottom.set_ylim(0, MEMBERS + 1)
    bottom.set_xlabel("seconds")
    for at, text in [(killed, "kill -9"), (started, "join")]:
        for axes in (top, bottom):
            axes.axvline(at - zero, color="tab:red", linestyle=":")
        top.text(at - zero, top.get_ylim()[1] * .6, f" {text}",
                 color="tab:red")
    gap = numpy.diff(when)[numpy.searchsorted(when, killed) - 1]
    figure.suptitle(f"{STEPS} steps; {gap * 1000:.0f} ms from the kill to the "
                    "next step")
    figure.tight_layout()
    figure.savefig(picture)
    print(f"{picture}: members {sorted(set(members.tolist()))}, loss "
          f"{loss[:MEAN].mean():.3f} -> {loss[-MEAN:].mean():.3f}, "
          f"{gap * 1000:.0f} ms from the kill to the next step")


# %% All of it
if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        times = train(place)
        draw_picture(place, *times, sys.argv[1] if len(sys.argv) > 1
                     else "kill_and_join.svg")
