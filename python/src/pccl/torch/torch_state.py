# torch_state.py - the state of a training run, given to newcomers.
"""Brings members that are behind to the state of the others, bit for bit.

The state is whatever `save` returns: dicts, lists and tuples of tensors,
numbers and texts, nested. A member that is behind first gets its structure, as
the file format of torch.save without tensor data, which is read with
weights_only: nothing that a member sends is executed. Then the library
synchronizes the tensors: only blocks that differ travel, from all members that
have them at once, and each is checked by its hash.
"""
import functools
import io
import struct

import torch

from .torch_errors import MemberLost, TooFewMembers, calling
from .torch_group import agreed
from .torch_tensors import DATATYPES, memory_of

SYNC_TAG = 1 << 61
PROGRESS = struct.Struct("<QQ")  # of a member: revision, bytes of the structure


def flatten(state, path="state", found=None):
    """(the same state with tensors on meta, {path: tensor})."""
    found = {} if found is None else found
    if isinstance(state, torch.Tensor):
        found[path] = state.detach()
        return torch.empty_like(state, device="meta"), found
    if isinstance(state, dict):
        return type(state)((key, flatten(value, f"{path}/{key}", found)[0])
                           for key, value in state.items()), found
    if isinstance(state, (list, tuple)):
        parts = [flatten(value, f"{path}/{index}", found)[0]
                 for index, value in enumerate(state)]
        return (parts if isinstance(state, list) else tuple(parts)), found
    return state, found


def unflatten(structure, tensors, path="state"):
    """The inverse of flatten."""
    if isinstance(structure, torch.Tensor):
        return tensors[path]
    if isinstance(structure, dict):
        return type(structure)((k, unflatten(v, tensors, f"{path}/{k}"))
                               for k, v in structure.items())
    if isinstance(structure, (list, tuple)):
        parts = [unflatten(value, tensors, f"{path}/{index}")
                 for index, value in enumerate(structure)]
        return parts if isinstance(structure, list) else tuple(parts)
    return structure


def _call(world, collective, *arguments):
    world.launch(functools.partial(
        collective, *arguments, tag=SYNC_TAG, epoch=world.view.epoch,
        agree=agreed("synchronize", torch.uint8)), False).wait()


def _all_progress(world, revision, size):
    """What every member has: [(revision, bytes of its structure)]."""
    view = world.view
    rows = torch.zeros(view.size, PROGRESS.size, dtype=torch.uint8)
    rows[view.rank] = torch.frombuffer(
        bytearray(PROGRESS.pack(revision, size)), dtype=torch.uint8)
    _call(world, world.comm.all_gather_async, None, memory_of(rows))
    return [PROGRESS.unpack(bytes(row.tolist())) for row in rows]


def _shared(tensors):
    """The library's table of tensors, and the host memory that it names."""
    memory = {path: tensor.cpu().contiguous()
              for path, tensor in tensors.items()}
    return [(path, held if held.dtype in DATATYPES else memory_of(held), False)
            for path, held in memory.items()], memory


def synchronize(world, save, load, revision, admit=None):
    """Gives all members the same state. Collective, to be called by all when
    newcomers have been admitted.

    save()       returns the state of this process
    load(state)  takes another one; called where something was missing
    revision     of the last synchronization here, or -1 for none
    admit()      waits for newcomers; default: world.update

    Returns (revision, bytes of tensors received). Repeats after a loss. Where
    members are fewer than the run needs (pccl-master --min-ranks) it waits for
    others."""
    while True:
        try:
            return _synchronize(world, save, load, revision)
        except MemberLost:
            continue
        except TooFewMembers:
            (admit or world.update)()


def _synchronize(world, save, load, revision):
    structure, tensors = flatten(save())
    buffer = io.BytesIO()
    torch.save(structure, buffer)
    packed = buffer.getvalue()
    progress = _all_progress(world, revision + 1, len(packed))
    newest = max(progress)[0]
    leader = next(rank for rank, (r, _) in enumerate(progress) if r == newest)
    # At first nobody is ahead, and rank 0 tells the others.
    behind = [r < newest or newest == 0 and rank != leader
              for rank, (r, _) in enumerate(progress)]
    mine = behind[world.view.rank]
    if any(behind):
        text = torch.empty(progress[leader][1], dtype=torch.uint8)
        if world.view.rank == leader:
            text.copy_(torch.frombuffer(bytearray(packed), dtype=torch.uint8))
        _call(world, world.comm.broadcast_async, memory_of(text), leader)
        if mine:
            structure = torch.load(io.BytesIO(bytes(text.numpy())),
                                   weights_only=True)
            tensors = _fitting(structure, tensors)
    entries, memory = _shared(tensors)
    with calling("synchronize"):
        done, _, received = world.comm._sync(entries, newest)
    if mine or received:
        load(unflatten(structure, memory))
    return done, received


def _fitting(structure, own):
    """Memory for a structure: own tensors where they fit, so that what is
    equal need not travel."""
    wanted = flatten(structure)[1]
    return {path: own[path] if path in own and
            own[path].shape == tensor.shape and
            own[path].dtype == tensor.dtype else
            torch.zeros(tensor.shape, dtype=tensor.dtype)
            for path, tensor in wanted.items()}
