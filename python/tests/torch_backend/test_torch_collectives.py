# test_torch_collectives.py - every collective of c10d, by values.
import pytest
import torch
import torch.distributed as dist

import pccl.torch
from pccl.torch import torch_tensors

TYPES = [torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32,
         torch.uint32, torch.int64, torch.uint64, torch.float16,
         torch.bfloat16, torch.float32, torch.float64]


def place():
    return dist.get_rank(), dist.get_world_size()


def equal(tensor, values):
    values = torch.as_tensor(values).to(tensor.dtype).expand_as(tensor)
    assert torch.equal(tensor, values), (tensor, values)


def reductions():
    rank, size = place()
    total = size * (size + 1) // 2
    for dtype in TYPES:
        tensor = torch.full((37,), rank + 1, dtype=dtype)
        dist.all_reduce(tensor)
        equal(tensor, total)
    for op, value in ((dist.ReduceOp.AVG, (size + 1) / 2),
                      (dist.ReduceOp.MAX, size), (dist.ReduceOp.MIN, 1),
                      (dist.ReduceOp.PRODUCT, {2: 2, 3: 6}[size])):
        tensor = torch.full((2, 3), rank + 1.0)
        dist.all_reduce(tensor, op)
        equal(tensor, value)
    tensor = torch.full((5,), complex(rank, 1))
    dist.all_reduce(tensor)
    equal(tensor, complex(total - size, size))
    tensor = torch.tensor([rank == 0, True, False])
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    equal(tensor, [True, True, False])
    for root in range(size):
        tensor = torch.full((4,), rank + 1.0)
        dist.reduce(tensor, root)
        equal(tensor, float(total) if rank == root else rank + 1.0)
    for tensor in (torch.empty(0), torch.tensor(1.0)):
        dist.all_reduce(tensor)
        equal(tensor, size)
    big = torch.full((300_000,), rank + 1.0)
    dist.all_reduce(big)
    equal(big, total)


def scatters():
    rank, size = place()
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        out = torch.zeros(3, dtype=dtype)
        dist.reduce_scatter_tensor(out, (torch.arange(3 * size) + rank).to(
            dtype))
        equal(out, size * (torch.arange(3) + 3 * rank) +
              size * (size - 1) // 2)
    out = torch.zeros(3)
    dist.reduce_scatter_tensor(out, torch.arange(3.0 * size) + rank,
                               op=dist.ReduceOp.AVG)
    equal(out, torch.arange(3.0) + 3 * rank + (size - 1) / 2)
    out = torch.zeros(rank + 1)  # parts of different sizes
    dist.reduce_scatter(out, [torch.full((r + 1,), float(r))
                              for r in range(size)])
    equal(out, float(rank * size))
    out = torch.zeros(2)
    dist.scatter(out, [torch.full((2,), 10.0 * r) for r in range(size)]
                 if rank == 1 else None, src=1)
    equal(out, 10.0 * rank)


def gathers():
    rank, size = place()
    for dtype in TYPES + [torch.bool, torch.complex64]:
        tensor = torch.full((3,), rank, dtype=dtype)
        out = torch.zeros(3 * size, dtype=dtype)
        dist.all_gather_into_tensor(out, tensor)
        equal(out.view(size, 3), torch.arange(size).to(dtype).view(size, 1))
    out = torch.zeros(size, 2)
    out[rank] = rank  # in place
    dist.all_gather_into_tensor(out, out[rank])
    equal(out, torch.arange(size).view(size, 1))
    parts = [torch.zeros(2, 2) for _ in range(size)]
    dist.all_gather(parts, torch.full((2, 2), float(rank)))
    for other in range(size):
        equal(parts[other], float(other))
    parts = [torch.zeros(r + 1) for r in range(size)]  # different sizes
    dist.all_gather(parts, torch.full((rank + 1,), float(rank)))
    for other in range(size):
        equal(parts[other], float(other))
    parts = [torch.zeros(2) for _ in range(size)] if rank == 1 else None
    dist.gather(torch.full((2,), float(rank)), parts, dst=1)
    for other in range(size if rank == 1 else 0):
        equal(parts[other], float(other))


def exchanges():
    rank, size = place()
    out = torch.zeros(size)
    dist.all_to_all_single(out, torch.arange(float(size)) + 100 * rank)
    equal(out, 100 * torch.arange(size) + rank)
    send = [(rank + r) % 3 for r in range(size)]
    receive = [(r + rank) % 3 for r in range(size)]
    out = torch.zeros(sum(receive), 2)
    dist.all_to_all_single(out, torch.full((sum(send), 2), float(rank)),
                           receive, send)
    equal(out, torch.tensor([[float(r)] for r in range(size)
                             for _ in range(receive[r])]).view(-1, 1))
    parts = [torch.zeros(2) for _ in range(size)]
    dist.all_to_all(parts, [torch.full((2,), 10.0 * rank + r)
                            for r in range(size)])
    for other in range(size):
        equal(parts[other], 10.0 * other + rank)


def objects():
    rank, size = place()
    found = [None] * size
    dist.all_gather_object(found, {"rank": rank, "text": "x" * rank})
    assert found == [{"rank": r, "text": "x" * r} for r in range(size)]
    things = [rank]
    dist.broadcast_object_list(things, src=1)
    assert things == [1]
    tensor = torch.full((3,), float(rank))
    dist.broadcast(tensor, 1)
    equal(tensor, 1.0)
    dist.barrier()
    half = dist.new_group([0, 1])
    if rank < 2:
        tensor = torch.ones(3)
        dist.all_reduce(tensor, group=half)
        equal(tensor, 2)


def futures():
    rank, size = place()
    tensors = [torch.full((n,), float(rank)) for n in (1, 1000, 100_000)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    for tensor, work in zip(tensors, works):
        future = work.get_future()
        future.wait()
        equal(tensor, size * (size - 1) / 2)
        assert future.value()[0] is tensor
        assert work.is_completed() and work.is_success()
    many = [torch.ones(1) for _ in range(700)]  # more than can be in flight
    works = [dist.all_reduce(t, async_op=True) for t in many]
    for work in works:
        work.wait()
    assert all(t.item() == size for t in many)
    with dist._coalescing_manager():
        pair = torch.ones(2), torch.ones(3)
        for tensor in pair:
            dist.all_reduce(tensor)
    equal(pair[0], size)
    equal(pair[1], size)


def test_all(ranks):
    def everything():
        for part in (reductions, scatters, gathers, exchanges, objects,
                     futures):
            part()
        return True
    assert ranks(3, everything) == [True] * 3


def test_staged(ranks):
    """The way of tensors on a device: here, of tensors on the CPU. What it
    needs of a device beyond that (pinned memory) is not tested."""
    def everything():
        torch_tensors.DIRECT.clear()
        for part in (reductions, scatters, gathers, exchanges, objects,
                     messages):
            part()
        return True
    assert ranks(2, everything) == [True] * 2


def messages():
    rank, size = place()
    right, left = (rank + 1) % size, (rank - 1) % size
    for count in (0, 5, 9_000, 1_000_000):
        outgoing = torch.arange(float(count)) + rank
        incoming = torch.zeros(count)
        for work in dist.batch_isend_irecv([
                dist.P2POp(dist.isend, outgoing, right),
                dist.P2POp(dist.irecv, incoming, left)]):
            work.wait()
        equal(incoming, torch.arange(float(count)) + left)
    if rank == 0:  # tags are matched, not the order
        dist.send(torch.tensor([1.0]), right, tag=1)
        dist.send(torch.tensor([2.0]), right, tag=2)
    if rank == 1 % size:
        tensor = torch.zeros(1)
        dist.recv(tensor, left, tag=2)
        equal(tensor, 2)
        assert dist.recv(tensor, tag=1) == left
        equal(tensor, 1)
    dist.barrier()


def test_messages(ranks):
    assert ranks(3, messages) == [None] * 3


@pytest.mark.parametrize("backend", ["pccl", "gloo"])
def test_parallel(jobs, backend):
    """The wrappers of torch give what they give with Gloo."""
    job = jobs.fixed(4)
    for rank in range(4):
        job.start(_parallel, backend, RANK=str(rank))
    found = job.results()
    assert all(f == found[0] for f in found)
    _seen[backend] = found[0]
    if len(_seen) == 2:
        ours, theirs = _seen["pccl"], _seen["gloo"]
        assert ours == pytest.approx(theirs, rel=1e-4)


_seen = {}


def _parallel(backend):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Shard, distribute_tensor
    dist.init_process_group(backend)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    flat = init_device_mesh("cpu", (4,))

    def ddp(net):
        return torch.nn.parallel.DistributedDataParallel(net)

    def fsdp(net, where=flat):
        for layer in (net[0], net[2]):
            fully_shard(layer, mesh=where)
        return fully_shard(net, mesh=where)
    sums = [_train(ddp), _train(fsdp), _train(lambda n: fsdp(n, mesh))]
    whole = torch.arange(8.0).view(4, 2)
    parts = distribute_tensor(whole, flat, [Shard(0)])
    assert torch.equal(parts.full_tensor(), whole)
    assert parts.sum().full_tensor() == 28
    row = torch.full((2,), float(dist.get_rank()))
    dist.all_reduce(row, group=mesh["a"].get_group())
    equal(row, [2.0, 4.0][dist.get_rank() % 2])
    return sums


def _train(wrap):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.ReLU(),
                              torch.nn.Linear(20, 5))
    model = wrap(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(5):
        torch.manual_seed(step * 100 + dist.get_rank())
        optimizer.zero_grad()
        model(torch.randn(8, 10)).square().mean().backward()
        optimizer.step()
    return sum(getattr(p, "full_tensor", lambda p=p: p)().double().sum().item()
               for p in net.parameters())


def test_version():
    assert issubclass(pccl.torch.MemberLost, dist.DistBackendError)
