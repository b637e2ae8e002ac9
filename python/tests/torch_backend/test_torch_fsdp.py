# test_torch_fsdp.py - FSDP2 goes on after a loss, as TORCH.md says.
import copy
import hashlib
import os
import signal

import pytest
import torch
import torch.distributed as dist
from torch.distributed.checkpoint import state_dict as states

import pccl.torch

STEPS, EVERY, KILL_AT = 12, 4, 6
WHOLE = states.StateDictOptions(full_state_dict=True)  # on every member


def sharded(shape):
    """A network and its optimizer, sharded over the members there are now."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(16, 40), torch.nn.ReLU(),
                              torch.nn.Linear(40, 5))
    names = ("replicate", "shard")[-len(shape):]
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    for layer in (net[0], net[2]):
        fully_shard(layer, mesh=mesh)
    model = fully_shard(net, mesh=mesh)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01), mesh


def whole_state(model, optimizer):
    """The state without shards, on every member. Collective."""
    return copy.deepcopy([
        states.get_model_state_dict(model, options=WHOLE),
        states.get_optimizer_state_dict(model, optimizer, options=WHOLE)])


def load(model, optimizer, state):
    net, rest = copy.deepcopy(state)
    states.set_model_state_dict(model, net, options=WHOLE)
    states.set_optimizer_state_dict(model, optimizer, rest, options=WHOLE)


def digest(state):
    found = hashlib.sha256()
    for name, tensor in sorted(state[0].items()):
        found.update(name.encode() + tensor.numpy().tobytes())
    return found.hexdigest()


def learn(model, optimizer, step, seed, dies):
    def kill(_):
        os.kill(os.getpid(), signal.SIGKILL)
    torch.manual_seed(step * 100 + seed)
    loss = model(torch.randn(8, 16)).square().mean()
    if dies:  # after the last gather of parameters, before some gradients
        next(iter(model.parameters())).register_hook(kill)
        loss.register_hook(kill)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def common(step):
    """The latest step that all members have. Collective."""
    least = torch.tensor([step])
    dist.all_reduce(least, dist.ReduceOp.MIN)
    return int(least.item())


def from_checkpoint(seed):
    """Every member keeps whole checkpoints in memory. After a loss the
    survivors shard the last one anew, over one member less."""
    dist.init_process_group("pccl")
    model, optimizer, _ = sharded((dist.get_world_size(),))
    saved, resumed, step = {}, [], 0
    while step < STEPS:
        try:
            if step % EVERY == 0:
                saved[step] = whole_state(model, optimizer)
            learn(model, optimizer, step, seed, seed == 1 and step == KILL_AT)
            step += 1
        except pccl.torch.MemberLost:
            pccl.torch.reconfigure()
            step = common(max(saved))
            model, optimizer, _ = sharded((dist.get_world_size(),))
            load(model, optimizer, saved[step])
            resumed.append((step, digest(saved[step]), digest(
                whole_state(model, optimizer))))
    return resumed, digest(whole_state(model, optimizer)), \
        dist.get_world_size()


@pytest.mark.parametrize("way", ["elastic", "fixed"])
def test_checkpoint(jobs, way):
    job = getattr(jobs, way)(3)
    for rank in range(3):
        job.start(from_checkpoint, rank, RANK=str(rank), PCCL_RANK=str(rank))
    found = job.results(killed=[1])
    assert found[0] == found[2]
    resumed, _, size = found[0]
    assert size == 2 and len(resumed) == 1
    step, saved, loaded = resumed[0]
    assert step == KILL_AT // EVERY * EVERY and saved == loaded


def from_replica(seed):
    """Hybrid sharding over 2 x 2: the loss leaves a row whose two members
    have all parts. They make the state whole, and no step is lost but the one
    under way, without a checkpoint."""
    dist.init_process_group("pccl")
    model, optimizer, mesh = sharded((2, 2))
    step, before = 0, None
    while step < STEPS:
        try:
            learn(model, optimizer, step, seed, seed == 1 and step == KILL_AT)
            step += 1
        except pccl.torch.PcclError:  # MemberLost, or its partner has left
            before = intact(model, mesh.get_group(1), step)
            again()
            step, whole = handed_on(before)
            model, optimizer, mesh = sharded((dist.get_world_size(),))
            before = step, digest([whole])
            states.set_model_state_dict(model, whole, options=WHOLE)
    return before, digest(whole_state(model, optimizer))


def intact(model, row, step):
    """(step, parameters) where this row has lost nobody, else None."""
    try:
        dist.barrier(group=row)
        return step, whole_rows(model, row)
    except pccl.torch.MemberLost:
        return None


def again():
    """Others may be in operations of groups that have lost nobody, until they
    notice that a partner has left."""
    while True:
        try:
            return pccl.torch.reconfigure()
        except pccl.torch.PcclError as failure:
            print(failure)


def whole_rows(model, row):
    """The parameters of a model sharded over this row. Collective there."""
    found = {}
    for name, parameter in model.named_parameters():
        local = parameter.to_local().detach()
        most = -(-parameter.shape[0] // 2)
        padded = torch.zeros(most, *parameter.shape[1:])
        padded[:local.shape[0]] = local
        parts = [torch.zeros_like(padded) for _ in range(2)]
        dist.all_gather(parts, padded, group=row)
        found[name] = torch.cat(parts)[:parameter.shape[0]].clone()
    return found


def handed_on(state):
    """Gives all members the state of the lowest rank that has one."""
    have = torch.tensor([dist.get_rank() if state else 99])
    dist.all_reduce(have, dist.ReduceOp.MIN)
    box = [state]
    dist.broadcast_object_list(box, int(have.item()))
    return box[0]


def test_replica(jobs):
    job = jobs.fixed(4)
    for rank in range(4):
        job.start(from_replica, rank, RANK=str(rank))
    found = job.results(killed=[1])
    assert found[0] == found[2] == found[3]
    assert found[0][0][0] == KILL_AT
