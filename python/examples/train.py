#!/usr/bin/env python3
"""train.py - an elastic training without any other package.

    pccl-master -n 4 --elastic python train.py
    pccl-master --join HOST:PORT -n 2 python train.py     # while it runs
    kill -9 PID                                           # and one less

Fits a line to points that every member draws for itself. Newcomers get the
weights and the step from the others; a lost member costs nothing but its share
of the points. A lone survivor discards its steps until company has come (with
--min-ranks 2 of pccl-master it waits).
"""
import argparse
import random
from array import array

import pccl


def gradient(weights, points):
    """Of the mean squared error of weights[0] * x + weights[1]."""
    slope = offset = loss = 0.0
    for x, y in points:
        error = weights[0] * x + weights[1] - y
        slope += 2 * error * x
        offset += 2 * error
        loss += error * error
    return array("d", [slope, offset, loss, len(points)])


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=200)
    arguments.add_argument("--quiet", action="store_true")
    steps = arguments.parse_args().steps

    with pccl.connect() as run:
        draw = random.Random(run.id)
        state = {"weights": array("d", [0.0, 0.0]), "step": 0}
        joined = True
        most = 0
        while state["step"] < steps:
            if not joined:
                joined = run.update()
            if joined:  # newcomers are there, or this is one
                run.sync(state)
            joined = False
            xs = [draw.uniform(-1, 1) for _ in range(64)]
            points = [(x, 3 * x - 2 + draw.gauss(0, 0.01)) for x in xs]
            sums = gradient(state["weights"], points)
            try:
                info = run.all_reduce(sums, retry=True)  # survivors try again
            except pccl.TooFewPeers:  # --min-ranks: update() waits for others
                continue
            if info.world_size == 1 and most > 1:
                continue  # a lone survivor has no mean: it discards the step
            for i in range(2):
                state["weights"][i] -= 0.2 * sums[i] / sums[3]
            state["step"] += 1
            most = max(most, info.world_size)
        print(f"rank {run.rank}: y = {state['weights'][0]:.3f} x + "
              f"{state['weights'][1]:.3f}, loss {sums[2] / sums[3]:.5f}, up "
              f"to {most} members", flush=True)


if __name__ == "__main__":
    main()
