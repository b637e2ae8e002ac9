# test_torch_few.py - trainings with few members, late ones, and seldom averages.
import os
import signal
import time

import pytest
import torch
import torch.distributed as dist
from test_torch_elastic import agree, digest, kill_in_backward, network, touch

import pccl.torch
from pccl.torch import ft, torch_partial


def waits(steps, seed, kill_at, marks, late=0):
    """Steps of elastic DDP that need two members."""
    net = network(seed)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    dist.init_process_group("pccl")
    model = pccl.torch.DistributedDataParallel(net, optimizer,
                                               bucket_cap_mb=0.1)
    seen, discarded = {}, 0
    while model.step < steps:
        model.update()
        if model.step == kill_at:
            kill_in_backward(net)
        torch.manual_seed(1000 * model.step + seed)
        optimizer.zero_grad()
        before = digest(net)
        model(torch.randn(16, 64)).square().mean().backward()
        optimizer.step()
        if model.discarded:
            assert digest(net) == before
            discarded += 1
            touch(f"{marks}/discarded")
        else:
            assert dist.get_world_size() >= 2
            seen[model.step] = digest(net)
    return seen, discarded


def test_an_update_waits_for_enough_members(jobs):
    job = jobs.elastic(2, options=["--min-ranks", "2"])
    marks = job.folder.name
    job.start(waits, 30, 0, 10, marks, PCCL_RANK="0")
    job.start(waits, 30, 1, -1, marks, PCCL_RANK="1")
    job.wait_mark("discarded")
    job.start(waits, 30, 2, -1, marks, PCCL_JOIN="1")
    found = job.results(killed=[0])
    assert found[1][1] == 1 and found[2][1] == 0
    assert sorted(map(int, found[1][0])) == list(range(1, 31))
    agree(found[1:])


def manages(steps, seed, kill_at, marks):
    """A loop of torchft; the run, not the manager, needs two."""
    net = network(seed)
    inner = torch.optim.SGD(net.parameters(), lr=1e-2)
    manager = ft.Manager(
        load_state_dict=lambda state: net.load_state_dict(state["net"]),
        state_dict=lambda: {"net": net.state_dict()})
    model = ft.DistributedDataParallel(manager, net)
    optimizer = ft.Optimizer(manager, inner)
    seen, tries = {}, 0
    while manager.current_step() < steps:
        step = manager.current_step()
        optimizer.zero_grad()
        if step == kill_at:
            kill_in_backward(net)
        torch.manual_seed(1000 * step + seed)
        model(torch.randn(16, 64)).square().mean().backward()
        optimizer.step()
        tries += 1
        if manager.current_step() > step:
            assert manager.num_participants() == 2
            seen[manager.current_step()] = digest(net)
        else:
            touch(f"{marks}/discarded")
    manager.shutdown()
    return seen, tries


def test_a_manager_waits_for_enough_members(jobs):
    job = jobs.elastic(2, options=["--min-ranks", "2"])
    marks = job.folder.name
    job.start(manages, 20, 0, 8, marks, PCCL_RANK="0")
    job.start(manages, 20, 1, -1, marks, PCCL_RANK="1")
    job.wait_mark("discarded")
    job.start(manages, 20, 2, -1, marks, PCCL_JOIN="1")
    found = job.results(killed=[0])
    agree(found[1:])
    assert found[1][1] > 20


def partial(steps, seed, late, kill_at):
    """Steps whose gradients wait for nobody."""
    net = network(0)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    dist.init_process_group("pccl")
    model = pccl.torch.DistributedDataParallel(
        net, optimizer, partial=0.6, weight=16, update_every=10,
        bucket_cap_mb=0.1)
    seen, covered = {}, []
    while model.step < steps:
        model.update()
        if model.step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if model.step == late:
            time.sleep(0.4)  # the others begin without it after 0.15
        torch.manual_seed(1000 * model.step + seed)
        optimizer.zero_grad()
        model(torch.randn(16, 64)).square().mean().backward()
        optimizer.step()
        covered.append(model.coverage)
        seen[model.step] = digest(net)
    return seen, covered


def test_partial_averages(jobs):
    """One is late once and one is killed: nobody raises, and all that are
    left have the same bits."""
    job = jobs.elastic(3)
    for rank in range(3):
        job.start(partial, 25, rank, 5 if rank == 1 else -1,
                  13 if rank == 2 else -1, PCCL_RANK=str(rank))
    found = job.results(killed=[2])
    agree(found[:2])
    assert found[0][1] == found[1][1] and max(found[0][1]) == 1


def spoiled(seed):
    """A step whose average fails, after one that succeeds."""
    net = network(0)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    dist.init_process_group("pccl")
    model = pccl.torch.DistributedDataParallel(
        net, optimizer, partial=30.0, bucket_cap_mb=0.1)
    raised = False
    for _ in range(2):
        model.update()
        torch.manual_seed(1000 * model.step + seed)
        optimizer.zero_grad()
        loss = model(torch.randn(16, 64)).square().mean()
        if model.step == 1:
            torch_partial._Round.wait = fail
        try:
            loss.backward()
        except RuntimeError as failure:
            raised = "the average is gone" in str(failure)
            break
        optimizer.step()
    return model.step, raised


def fail(*_):
    raise pccl.torch.PcclError("the average is gone")


def test_a_partial_average_that_fails_ends_the_backward_pass(jobs):
    job = jobs.elastic(2)
    for rank in range(2):
        job.start(spoiled, rank, PCCL_RANK=str(rank))
    assert job.results() == [[1, True], [1, True]]


def seldom(rounds, seed, kill_at, marks):
    net = network(seed)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    dist.init_process_group("pccl")
    outer = pccl.torch.DiLoCo(net, every=3)
    seen, most = {}, 0
    while outer.outer_steps < rounds or outer.contributors < 3:
        torch.manual_seed(1000 * outer.outer_steps + seed)
        if outer.outer_steps == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        loss = net(torch.randn(16, 64)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if outer.step(loss.item()):
            most = max(most, outer.contributors)
            seen[outer.outer_steps] = digest(net)
            touch(f"{marks}/round{outer.outer_steps}")
            assert outer.loss > 0
    return seen, most


@pytest.mark.parametrize("least", [1, 3])
def test_diloco(jobs, least):
    """One is killed between two outer steps, another one joins."""
    job = jobs.elastic(3, options=["--min-ranks", str(least)])
    marks = job.folder.name
    for rank in range(3):
        job.start(seldom, 20, rank, 5 if rank == 0 else -1, marks,
                  PCCL_RANK=str(rank))
    job.wait_mark("round5")
    job.start(seldom, 20, 3, -1, marks, PCCL_JOIN="1")
    found = job.results(killed=[0])
    agree(found[1:])
    assert found[1][1] == 3


def test_diloco_of_a_fixed_group(jobs):
    job = jobs.fixed(1)
    job.start(fixed, RANK="0")
    assert job.results() == [True]


def fixed():
    dist.init_process_group("pccl")
    with pytest.raises(ValueError, match="is fixed"):
        pccl.torch.DiLoCo(network(0))
    return True
