#!/usr/bin/env python3
# torch_all_reduce.py - all-reduce of torch.distributed: pccl beside Gloo.
"""torch_all_reduce.py [-n RANKS] [--rounds R] [--tcp] [BYTES ...]

Starts RANKS processes that reduce float32 tensors in place, by turns with the
backends pccl and gloo, so that a busy machine slows both. Prints for each the
median time and processor time of rank 0, and the medians of the ratios of
neighbours. With --tcp (the default of Gloo, which has nothing else) pccl does
not share memory either.
"""
import argparse
import os
import resource
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing


def used():
    """Seconds that the processors have worked for this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def timed(group, tensor, repeats):
    """Seconds of one all-reduce, and of the processors in it."""
    dist.barrier(group=group)
    begin, worked = time.perf_counter(), used()
    for _ in range(repeats):
        dist.all_reduce(tensor, group=group)
    return ((time.perf_counter() - begin) / repeats,
            (used() - worked) / repeats)


def compare(groups, size, rounds):
    """(pccl, gloo, ratio) of the time and of the processor time."""
    tensor = torch.zeros(size // 4)
    repeats = max(1, min(200, 8_000_000 // size))
    for group in groups:
        timed(group, tensor, 2)
    times = [[timed(group, tensor, repeats) for group in groups]
             for _ in range(rounds)]
    return [(statistics.median(ours[kind] for ours, _ in times),
             statistics.median(theirs[kind] for _, theirs in times),
             statistics.median(b[kind] / a[kind] for a, b in times))
            for kind in (0, 1)]


def rank_main(rank, options, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                      RANK=str(rank), WORLD_SIZE=str(options.ranks))
    if options.tcp:
        os.environ["PCCL_TRANSPORT"] = "tcp"
    torch.set_num_threads(1)
    import pccl.torch  # noqa: F401
    dist.init_process_group("gloo")
    ours = dist.new_group(backend="pccl")
    for size in options.sizes:
        times = compare((ours, dist.group.WORLD), size, options.rounds)
        if rank == 0:
            text = [f"pccl {a * 1e3:9.3f} ms  gloo {b * 1e3:9.3f} ms  "
                    f"gloo/pccl {ratio:5.2f}" for a, b, ratio in times]
            print(f"{size:>11} bytes  {text[0]}  processors: {text[1]}",
                  flush=True)
    dist.barrier()
    dist.destroy_process_group(ours)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("-n", "--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tcp", action="store_true")
    parser.add_argument("sizes", nargs="*", type=int)
    options = parser.parse_args()
    options.sizes = options.sizes or [4, 4096, 65536, 4_000_000, 40_000_000,
                                      400_000_000]
    store = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "True"
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(store.port)
    print(f"{options.ranks} ranks on {os.cpu_count()} processors, pccl over "
          f"{'TCP' if options.tcp else 'shared memory'}", flush=True)
    multiprocessing.spawn(rank_main, (options, store.port), options.ranks)


if __name__ == "__main__":
    sys.exit(main())
