# test_torch_errors.py - bad input, forks, limits and the end of a process.
import datetime
import os
import signal
import time

import pytest
import torch
import torch.distributed as dist

import pccl.torch


def refused(call, *words):
    """The call raises, and the text has the words."""
    with pytest.raises((ValueError, TypeError, RuntimeError)) as caught:
        call()
    for word in words:
        assert word in str(caught.value), (word, str(caught.value))


def bad_input():
    size = dist.get_world_size()
    good = torch.zeros(4)
    refused(lambda: dist.all_reduce(torch.zeros(4, 4).t()), "contiguous",
            "(1, 4)")
    refused(lambda: dist.all_reduce(torch.zeros(4, dtype=torch.bool)),
            "torch.bool", "MAX")
    refused(lambda: dist.all_reduce(torch.zeros(4, dtype=torch.complex64),
                                    dist.ReduceOp.MAX), "complex")
    refused(lambda: dist.all_reduce(torch.zeros(4).to(torch.float8_e5m2)),
            "float8_e5m2")
    refused(lambda: dist.all_reduce(torch.zeros(4, device="meta")), "meta")
    refused(lambda: dist.all_reduce(torch.eye(3).to_sparse()), "dense")
    refused(lambda: dist.all_reduce(good, dist.ReduceOp.BAND), "BAND")
    refused(lambda: dist.broadcast(good, size))
    refused(lambda: dist.all_gather_into_tensor(torch.zeros(3), good), "3",
            "4")
    refused(lambda: dist.all_gather_into_tensor(
        torch.zeros(4 * size, dtype=torch.float64), good), "float64")
    refused(lambda: dist.all_gather([good], good))
    refused(lambda: dist.reduce_scatter_tensor(torch.zeros(3), good), "3")
    refused(lambda: dist.all_to_all_single(good, good.clone(), [1] * size,
                                           [1] * size), "split")
    dist.all_reduce(good)  # nothing is left behind


def disagree():
    """Each member gets the error; then the group works on."""
    rank = dist.get_rank()
    refused(lambda: dist.all_reduce(torch.zeros(4 + rank)), "count")
    refused(lambda: dist.all_reduce(torch.zeros(
        4, dtype=[torch.float32, torch.int32][rank])), "float32")
    if not dist.group.WORLD.elastic:  # there, sums are numbered apart
        refused(lambda: dist.all_gather_into_tensor(
            torch.zeros(8), torch.zeros(4)) if rank else
            dist.all_reduce(torch.zeros(4)))
    refused(lambda: dist.broadcast(torch.zeros(4), rank), "root")
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == 2


def freed():
    half = dist.new_group([0, 1])
    dist.all_reduce(torch.ones(1), group=half)
    world = dist.group.WORLD
    dist.destroy_process_group(half)
    refused(lambda: half.allreduce([torch.ones(1)]), "destroyed")
    dist.all_reduce(torch.ones(1))
    dist.destroy_process_group()
    refused(lambda: world.allreduce([torch.ones(1)]), "destroyed")
    refused(lambda: half.allreduce([torch.ones(1)]), "destroyed")
    refused(lambda: world.send([torch.ones(1)], 0), "destroyed")


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        try:
            dist.all_reduce(torch.ones(1))
        except pccl.torch.PcclError as failure:
            return float("forked" in str(failure))
        return 0.0


def forks():
    loader = torch.utils.data.DataLoader(Items(), batch_size=8, num_workers=2)
    for batch in loader:  # of both ranks at once, while they communicate
        assert batch.sum() == 8
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        assert tensor.item() == 2
    pid = os.fork()
    if pid == 0:
        try:
            dist.destroy_process_group()
        finally:
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    dist.barrier()


def test_input(ranks):
    def everything():
        bad_input()
        disagree()
        freed()
    ranks(2, everything)


def test_fork(ranks):
    ranks(2, forks)


def test_time_limit(jobs):
    """A call that a member never joins ends for those who wait, and the
    member learns of it in its own next call."""
    job = jobs.fixed(2)
    for rank in range(2):
        job.start(_late, job.mark("over"), RANK=str(rank))
    assert job.results() == ["ended", "ended"]


def _late(mark):
    dist.init_process_group("pccl")
    if dist.get_rank() == 0:
        work = dist.all_reduce(torch.ones(1), async_op=True)
        refused(lambda: work.wait(datetime.timedelta(milliseconds=50)))
        with open(mark, "w"):
            pass
    else:
        while not os.path.exists(mark):
            time.sleep(0.01)
        refused(lambda: dist.all_reduce(torch.ones(1)))
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == 2
    return "ended"


EXIT = """
import os, sys
import torch, torch.distributed as dist
import pccl.torch
dist.init_process_group("pccl", init_method="pccl://")
work = dist.all_reduce(torch.ones(1000), async_op=True)
future = work.get_future()
message = dist.irecv(torch.zeros(1), 1)
"""


def test_exit_with_work(jobs, run_script):
    """The interpreter ends while an operation and a message that nobody
    answers are under way."""
    job = jobs.elastic(2)
    job.start(_idle, job.mark("met"), PCCL_RANK="1")
    done = run_script(EXIT, PCCL_RANK="0", **job.environment)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    open(job.mark("met"), "w").close()
    assert job.results() == [1]


def _idle(mark):
    dist.init_process_group("pccl")
    while not os.path.exists(mark):
        time.sleep(0.01)
    dist.all_reduce(torch.ones(1000))
    return dist.get_world_size()


def test_interrupt(jobs):
    """Ctrl-C reaches a rank that waits for one that does not come."""
    job = jobs.fixed(2)
    for rank in range(2):
        job.start(_interrupted, job.mark("over"), RANK=str(rank))
    assert job.results() == ["interrupted", None]


def _interrupted(mark):
    dist.init_process_group("pccl")
    if dist.get_rank() == 0:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            dist.all_reduce(torch.ones(1))
        with open(mark, "w"):
            pass
        return "interrupted"
    while not os.path.exists(mark):
        time.sleep(0.01)
    return None


def test_no_coordinator(run_script):
    done = run_script("import torch.distributed as dist, pccl.torch\n"
                      "dist.init_process_group('pccl', "
                      "init_method='pccl://')", PCCL_MASTER="")
    assert "pccl-master" in done.stderr and done.returncode == 1
