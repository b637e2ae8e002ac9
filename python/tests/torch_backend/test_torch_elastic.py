# test_torch_elastic.py - members die and join; the others' values agree.
import hashlib
import os
import signal

import pytest
import torch
import torch.distributed as dist

import pccl.torch
from pccl.torch import ft


def touch(path):
    open(path, "w").close()


def digest(net):
    found = hashlib.sha256()
    for tensor in net.state_dict().values():
        found.update(tensor.numpy().tobytes())
    return found.hexdigest()


def network(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(64, 300), torch.nn.ReLU(),
                               torch.nn.Linear(300, 300), torch.nn.ReLU(),
                               torch.nn.Linear(300, 4))


def kill_in_backward(net):
    """SIGKILL in the middle of a backward pass, after some buckets."""
    net[0].weight.register_hook(lambda _: os.kill(os.getpid(),
                                                  signal.SIGKILL))


def train(steps, seed, kill_at, marks, until_size=0):
    """Steps of elastic DDP. Returns {step: digest} and the last size."""
    net = network(seed)  # every rank begins with other values
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    dist.init_process_group("pccl")
    model = pccl.torch.DistributedDataParallel(
        net, optimizer, bucket_cap_mb=0.1)
    seen, extra = {}, 0
    while model.step < steps or extra < 20:
        if model.update():
            touch(marks + f"/size{dist.get_world_size()}")
        if model.step == kill_at:
            kill_in_backward(net)
        torch.manual_seed(1000 * model.step + seed)
        optimizer.zero_grad()
        model(torch.randn(16, 64)).square().mean().backward()
        optimizer.step()
        seen[model.step] = digest(net)
        extra += model.step >= steps and \
            dist.get_world_size() >= until_size
    return seen, dist.get_world_size()


def agree(histories):
    """Every step that several have seen has the same bits, and they share
    some."""
    steps = {}
    for seen, _ in histories:
        for step, value in seen.items():
            steps.setdefault(step, set()).add(value)
    assert all(len(values) == 1 for values in steps.values())
    last = [max(seen, key=int) for seen, _ in histories]
    assert len(set(last)) == 1


def test_kill_and_join(jobs):
    """kill -9 in a backward pass, and a newcomer in mid-epoch."""
    job = jobs.elastic(3)
    marks = job.folder.name
    for rank in range(3):
        job.start(train, 60, rank, 30 if rank == 0 else 0, marks, 3,
                  PCCL_RANK=str(rank))
    job.wait_mark("size2")
    job.start(train, 60, 7, 0, marks, 3, PCCL_JOIN="1")
    found = job.results(killed=[0])
    agree(found[1:])
    assert [size for _, size in found[1:]] == [3, 3, 3]
    newcomer = found[3][0]
    assert min(map(int, newcomer)) > 30


def plain(steps, seed, kill_at):
    """torch's own wrapper with the hook."""
    net = network(0)
    dist.init_process_group("pccl")
    model = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.1)
    model.register_comm_hook(dist.group.WORLD, pccl.torch.average)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    seen = {}
    for step in range(steps):
        if step == kill_at:
            kill_in_backward(net)
        torch.manual_seed(1000 * step + seed)
        optimizer.zero_grad()
        model(torch.randn(16, 64)).square().mean().backward()
        optimizer.step()
        seen[step] = digest(net)
    return seen, dist.get_world_size()


def test_hook(jobs):
    job = jobs.elastic(3)
    for rank in range(3):
        job.start(plain, 20, rank, 10 if rank == 2 else -1,
                  PCCL_RANK=str(rank))
    found = job.results(killed=[2])
    agree(found[:2])
    assert [size for _, size in found[:2]] == [2, 2]


def positional():
    """A call that has places for ranks raises, once, and then works."""
    dist.init_process_group("pccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(pccl.torch.MemberLost):
        dist.all_gather_into_tensor(torch.zeros(size), torch.zeros(1))
    assert dist.get_world_size() == size - 1
    out = torch.zeros(size - 1)
    dist.all_gather_into_tensor(out, torch.full((1,), float(dist.get_rank())))
    return out.tolist()


def test_places(jobs):
    job = jobs.elastic(3)
    for rank in range(3):
        job.start(positional, PCCL_RANK=str(rank))
    assert job.results(killed=[0])[1:] == [[0, 1], [0, 1]]


def hidden(late):
    """A sum repeats a loss in silence on one member, while a call with places
    for ranks has met it on another one: both are told in that call, once."""
    dist.init_process_group("pccl")
    size = dist.get_world_size()
    if dist.get_rank() == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    total = torch.ones(1)
    work = dist.all_reduce(total, async_op=True)
    told = 0
    if late:  # this one knows before it gathers
        work.wait()
    while True:
        try:
            size = dist.get_world_size()
            out = torch.zeros(size)
            gather = dist.all_gather_into_tensor(
                out, torch.full((1,), float(dist.get_rank())), async_op=True)
            work.wait()
            gather.wait()
            break
        except pccl.torch.MemberLost:
            told += 1
    dist.broadcast(total, 0)
    return told, total.item(), out.tolist()


def test_hidden(jobs):
    job = jobs.elastic(3)
    for rank in range(3):
        job.start(hidden, rank == 1, PCCL_RANK=str(rank))
    assert job.results(killed=[0])[1:] == [[1, 2, [0, 1]]] * 2


def fixed_group(call):
    dist.init_process_group("pccl")
    rank = dist.get_rank()
    pair = dist.new_group([0, 2])
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    for _ in range(2):  # as often as it is tried
        with pytest.raises(pccl.torch.MemberLost):
            dist.all_reduce(torch.ones(1))
    tensor = torch.ones(1)  # a group without the lost one is not concerned
    dist.all_reduce(tensor, group=pair)
    assert tensor.item() == 2
    if call == "ours":
        assert pccl.torch.reconfigure() == 2
    else:
        handles = [None, None]
        dist.all_gather_object(
            handles, dist.distributed_c10d._get_reconfigure_handle(),
            group=pair)
        dist.distributed_c10d._reconfigure(1, handles[::-1]).wait()
    tensor = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(tensor)
    assert tensor.item() == 1 and dist.get_world_size() == 2
    return dist.get_rank()


@pytest.mark.parametrize("call, order", [("ours", [0, 1]),
                                         ("torch's", [1, 0])])
def test_reconfigure(jobs, call, order):
    if call != "ours" and not hasattr(dist.distributed_c10d, "_reconfigure"):
        pytest.skip("this torch has no reconfigure")
    job = jobs.fixed(3)
    for rank in range(3):
        job.start(fixed_group, call, RANK=str(rank))
    found = job.results(killed=[1])
    assert [found[0], found[2]] == order


def managed(steps, seed, kill_at, marks, bad_at=0, size=2):
    """A loop of torchft with other imports."""
    net = network(seed)
    inner = torch.optim.AdamW(net.parameters(), lr=1e-3)

    def load(state):
        net.load_state_dict(state["net"])
        inner.load_state_dict(state["optimizer"])
    manager = ft.Manager(
        pg=ft.ProcessGroupGloo(), min_replica_size=size,
        load_state_dict=load, state_dict=lambda: {
            "net": net.state_dict(), "optimizer": inner.state_dict()})
    model = ft.DistributedDataParallel(manager, net)
    optimizer = ft.Optimizer(manager, inner)
    seen, tries = {}, 0
    while manager.current_step() < steps:
        optimizer.zero_grad()
        touch(f"{marks}/size{manager.num_participants()}")
        step = manager.current_step()
        if step == kill_at:
            kill_in_backward(net)
        torch.manual_seed(1000 * step + seed)
        model(torch.randn(16, 64)).square().mean().backward()
        if step == bad_at and tries == step and seed == 1:
            manager.report_error(RuntimeError("no good"))
        optimizer.step()
        tries += 1
        if manager.current_step() > step:
            seen[manager.current_step()] = digest(net)
    answer = seen, tries, manager.batches_committed()
    manager.shutdown()
    return answer


def test_manager(jobs):
    """A death, an error of one replica that no replica commits, too few
    replicas, and a newcomer."""
    job = jobs.elastic(2)
    marks = job.folder.name
    job.start(managed, 30, 0, 20, marks, 10, PCCL_RANK="0")
    job.start(managed, 30, 1, -1, marks, 10, PCCL_RANK="1")
    job.wait_mark("size2")
    job.start(managed, 30, 2, -1, marks, PCCL_JOIN="1")
    found = job.results(killed=[0])
    agree([(f[0], 0) for f in found[1:]])
    assert found[1][1] > 30  # the bad step was repeated
    assert found[1][2] == found[2][2]
