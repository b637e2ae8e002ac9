#!/usr/bin/env python3
"""partial.py - a training whose rounds wait for nobody.

Four processes average their gradients by partial all-reduces. One of them is
often late, and another one is killed; no round takes longer than its deadline.
The picture shows the loss, and which part of the vector was averaged in each
round, by how many. The cells (# %%) run one by one in an editor or as a
notebook, or all at once:

    python partial.py [PICTURE]        # needs numpy and matplotlib
"""
# %% What a member does
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import numpy
from kill_and_join import gradient, network, spirals

import pccl

ROUNDS, KILL_AT, MEMBERS, DEADLINE = 150, 75, 4, 0.4
LATE = 0.15  # seconds; in one of eight rounds of one member. The others wait for
# a quarter of the deadline, and begin without it.


def member(log):
    """Trains until ROUNDS, and writes a line for each round."""
    with pccl.connect() as run, open(log / f"{os.getpid()}.log", "w",
                                     buffering=1) as lines:
        net = network(numpy.random.default_rng(0))  # the same on all
        momentum = {name: numpy.zeros_like(w) for name, w in net.items()}
        draw = numpy.random.default_rng(run.id)
        slow, done = run.rank == 1, 0
        run.barrier()
        while done < ROUNDS:
            own = gradient(net, *spirals(draw, 256))
            if slow and draw.random() < 1 / 8:
                time.sleep(LATE)
            # Elements of missing parts stay 0: no step is made there, on no
            # member. The last element is the loss.
            mean = numpy.zeros_like(own)
            began = time.time()
            info = run.all_reduce_partial(own, mean, weight=256,
                                          deadline=DEADLINE)
            start = 0
            for name, weights in net.items():
                part = mean[start:start + weights.size].reshape(weights.shape)
                start += weights.size
                momentum[name] = .9 * momentum[name] + part
                weights -= .1 * momentum[name]
            done = info.round  # they count from 1
            lines.write(json.dumps([
                time.time(), info.round, mean[-1],
                [(part.begin / info.count, part.end / info.count,
                  len(part.contributors)) for part in info.coverage],
                time.time() - began]) + "\n")


if __name__ == "__main__" and sys.argv[1:2] == ["--member"]:
    member(pathlib.Path(sys.argv[2]))
    sys.exit()


# %% The job: four members, one is often late, one is killed
def rounds_of(path):
    return path.read_text().count("\n")


def train(log):
    """Returns when the victim was killed, and the logs."""
    job = subprocess.Popen(
        ["pccl-master", "-n", str(MEMBERS), "--elastic", sys.executable,
         __file__, "--member", str(log)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    while True:
        logs = sorted(log.glob("*.log"))
        if max(map(rounds_of, logs), default=0) >= KILL_AT:
            break
        time.sleep(.02)
    victim = max(logs, key=rounds_of)  # not the one that is late
    os.kill(int(victim.stem), signal.SIGKILL)
    killed = time.time()
    job.wait()
    return killed, logs


# %% The picture
def draw_picture(killed, logs, picture):
    """Loss and coverage, as a member has them that was never late."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    lines = [[json.loads(line) for line in path.read_text().splitlines()
              if line.endswith("]")] for path in logs]
    # The one that is late waits for nobody.
    whole = max(lines, key=lambda log: (len(log), sum(x[4] for x in log)))
    number = [line[1] for line in whole]
    loss = [line[2] or numpy.nan for line in whole]
    figure, (top, bottom) = pyplot.subplots(
        2, 1, sharex=True, figsize=(8, 5), height_ratios=[1, 1.3])
    top.plot(number, loss, color="tab:blue")
    top.set_ylabel("loss, mean of who came")
    shades = pyplot.get_cmap("Greens")
    colors = [shades(.25 + .6 * count / MEMBERS)
              for count in range(1, MEMBERS + 1)]
    fine = 500
    image = numpy.ones((fine, len(whole), 4))  # white
    for column, line in enumerate(whole):
        for begin, end, count in line[3]:
            if count:
                image[int(begin * fine):int(end * fine),
                      column] = colors[count - 1]
    bottom.imshow(image, aspect="auto", origin="lower",
                  interpolation="nearest",
                  extent=(number[0] - .5, number[-1] + .5, 0, 1))
    bottom.set_ylabel("part of the vector")
    bottom.set_xlabel("round")
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=c) for c in colors]
    bottom.legend(handles, range(1, MEMBERS + 1), title="contributors",
                  loc="center left", bbox_to_anchor=(1, .5))
    at = next((line[1] for line in whole if line[0] > killed), ROUNDS)
    for axes in (top, bottom):
        axes.axvline(at - .5, color="tab:red", linestyle=":")
    top.text(at, top.get_ylim()[1] * .8, "kill -9", color="tab:red")
    covered = numpy.mean([sum(end - begin for begin, end, count in line[3]
                              if count) for line in whole])
    slowest = max(line[4] for line in whole)
    figure.suptitle(f"{len(whole)} rounds, {covered:.1%} averaged; the longest "
                    f"took {slowest * 1000:.0f} ms")
    figure.tight_layout()
    figure.savefig(picture)
    print(f"{picture}: {len(whole)} rounds, {covered:.1%} averaged, the "
          f"longest took {slowest * 1000:.0f} ms, loss {loss[0]:.3f} -> "
          f"{numpy.nanmean(loss[-15:]):.3f}")


# %% All of it
if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        draw_picture(*train(pathlib.Path(folder)),
                     sys.argv[1] if len(sys.argv) > 1 else "partial.svg")
