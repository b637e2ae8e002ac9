# torch_elastic.py - training that goes on when members die and join.
"""Membership of torch's groups, and DistributedDataParallel on top of it."""
import datetime
import functools
import gc
import inspect
import zlib

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d
from torch.nn import parallel

from .torch_errors import MemberLost, TooFewMembers
from .torch_group import ProcessGroup
from .torch_partial import PartialAverage
from .torch_state import synchronize
from .torch_work import Work

# torch's name, old or new, for a broadcast of buffers in each forward pass.
BUFFERS = next(name for name in ("forward_sync_buffers", "broadcast_buffers")
               if name in inspect.signature(
                   parallel.DistributedDataParallel.__init__).parameters)


def our_group(group=None):
    """The group, or the default one, if it is of this backend."""
    group = group or c10d._get_default_group()
    if not isinstance(group, ProcessGroup):
        raise ValueError("the group is not one of the backend pccl")
    return group


def _renew(group, members):
    group._set_members(members)
    c10d._world.pg_group_ranks[group] = {r: r for r in range(group.size())}


def _settle(group, before):
    """After an update of the world, which all members have made: newcomers
    and the others agree on torch's store, and the group begins anew."""
    came = bool(set(group.world.view.ids) - before)
    store = group.root_store
    if came or not store.served():
        store.meet()
    _renew(group, None)
    return came


def update(group=None):
    """Admits the newcomers that wait. Collective over the run; all members
    call it at the same point of their loop, with no operation under way.

    group  an elastic one; default: the default group

    Returns whether newcomers have come; the same on all members. Losses need
    no call: the operation that meets one takes it into account.
    """
    group = our_group(group)
    if not group.elastic:
        raise ValueError(f"{group} is fixed: after a loss call reconfigure()")
    before = set(group.world.view.ids)
    if not group.world.pending():
        return False
    group.world.update()
    return _settle(group, before)


def reconfigure(group=None):
    """Makes a group of those of its members that are left, after one of its
    calls has raised MemberLost. Collective over the run; operations under way
    are awaited first. Other groups have to be made anew (dist.new_group).

    Returns the new size. Survivors keep their order."""
    group = our_group(group)
    before = set(group.world.view.ids)
    view = group.world.update()
    if group.elastic:
        _settle(group, before)
    else:
        _renew(group, [i for i in group.members if i in set(view.ids)])
    return group.size()


def average(group, bucket):
    """The communication hook of DistributedDataParallel: the mean over those
    who contribute. Unlike torch's default, which divides by the size before
    the sum, it is right also in the step that meets a loss.

        ddp.register_comm_hook(group, pccl.torch.average)
    """
    tensor = bucket.buffer()
    layout = zlib.crc32(repr([tuple(p.shape)
                              for p in bucket.parameters()]).encode())
    return group.average(tensor, f"bucket {bucket.index()}, layout "
                         f"{layout:08x}").get_future()


class _Promoted:
    """A broadcast that is repeated after a loss, from the first rank that is
    left."""

    def __init__(self, start, root):
        self._start, self._root, self._work = start, root, None
        self._repeat()

    def _repeat(self):
        while True:
            try:
                self._work = self._start(self._root)
                return
            except MemberLost:
                self._root = 0

    def wait(self, timeout=None):
        while True:
            try:
                return self._work.wait(timeout)
            except MemberLost:
                self._root = 0
                self._repeat()

    def done(self):
        return False  # only a wait can tell


class _Reducer(ProcessGroup):
    """The group that torch's wrapper sees. It broadcasts the order of its
    buckets, and buffers if it is told to: what any member may send."""

    def broadcast(self, tensors, opts):
        def start(root):
            again = dist.BroadcastOptions()
            again.rootRank, again.rootTensor = root, opts.rootTensor
            return super(_Reducer, self).broadcast(tensors, again)
        promoted = _Promoted(start, opts.rootRank)
        return Work(self.world, [promoted], list(tensors), None, self.timeout)


class _Averages:
    """How the gradients of a step are averaged, and whether they were. Apart
    from the module, which the hook of its wrapper would keep for good."""

    def __init__(self, group, partial, weight):
        self.group, self.weight, self.discarded = group, weight, False
        self.partial = partial and PartialAverage(group, partial)

    def start(self, bucket):
        if self.partial:
            return self.partial.average(bucket, self.weight)
        try:
            future = average(self.group, bucket)
        except TooFewMembers:
            self.discarded = True
            future = torch.futures.Future()
            future.set_result(bucket.buffer())
            return future
        return future.then(functools.partial(self._take, bucket))

    def _take(self, bucket, finished):
        try:
            return finished.value()
        except TooFewMembers:
            self.discarded = True
            return bucket.buffer()

    def before_step(self, optimizer, *_):
        """An optimizer leaves parameters without a gradient as they are."""
        if self.discarded:
            optimizer.zero_grad(set_to_none=True)


class DistributedDataParallel(torch.nn.Module):
    """torch's DistributedDataParallel for a world that changes.

        model = pccl.torch.DistributedDataParallel(net, optimizer)
        while model.step < steps:
            model.update()                  # newcomers get everything here
            loss(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()

    A loss in mid-step costs nothing but the contribution of the lost: the
    survivors have the same mean of the gradients, bit for bit. Buffers are not
    broadcast in each forward pass unless the options say so.

    Where members are fewer than the run needs (pccl-master --min-ranks), the
    step is discarded on all of them: optimizer.step() changes nothing, `step`
    does not count it, and the next update() waits for newcomers. A program
    that does not give its optimizer here looks at `discarded` after backward.

    module     the same on all members
    optimizer  whose state newcomers need, or None
    state      more that newcomers need: an object with state_dict and
               load_state_dict (a data loader, a scheduler), or None
    partial    seconds: gradients are averaged by rounds that end then with
               what has come, and wait for no straggler. Where a part of them
               is missing it is 0 on all members; `coverage` says how much of
               the gradients of the last step is there, 0 to 1.
    weight     partial: what this member counts, say the samples of its batch;
               the attribute may be set before each backward
    update_every  update() waits for all members and looks for newcomers in
               each so many steps only
    options    of torch.nn.parallel.DistributedDataParallel
    """

    def __init__(self, module, optimizer=None, state=None, process_group=None,
                 *, partial=None, weight=1.0, update_every=1, **options):
        super().__init__()
        self.module = module
        self.group = our_group(process_group)
        if not self.group.elastic:
            raise ValueError(f"{self.group} is fixed: start the program with "
                             "pccl-master, or use torch's own wrapper")
        self.step = 0
        self._averages = _Averages(self.group, partial, weight)
        self._every = update_every
        if optimizer is not None:
            optimizer.register_step_pre_hook(self._averages.before_step)
        self._parts = {"model": module, "optimizer": optimizer,
                       "state": state}
        self._options = {BUFFERS: False, **options}
        self._revision = -1
        self._alone = []  # not a submodule: its state is the module's
        self._fresh = True
        self._known = None  # members at the last call of update

    def _wrap(self):
        self._alone.clear()
        gc.collect()  # the hooks of the former wrapper end with it
        group = _Reducer(self.group.world, None, "ddp", datetime.timedelta(
            seconds=self.group.timeout))
        inner = parallel.DistributedDataParallel(
            self.module, process_group=group, init_sync=False, **self._options)
        inner.register_comm_hook(self._averages, _Averages.start)
        self._alone.append(inner)

    def forward(self, *inputs, **named):
        if self._fresh:
            self.update()
        return self._alone[0](*inputs, **named)

    def no_sync(self):
        return self._alone[0].no_sync()

    @property
    def discarded(self):
        """Whether the step does not count: the members were too few."""
        return self._averages.discarded

    @property
    def weight(self):
        """What this member counts in partial averages."""
        return self._averages.weight

    @weight.setter
    def weight(self, weight):
        self._averages.weight = weight

    @property
    def coverage(self):
        """Of the last step: the share of the gradients that is averaged."""
        partial = self._averages.partial
        return partial.coverage if partial else 1.0

    def update(self):
        """Begins a step: admits newcomers and gives them the state, model.step
        included. Collective. Returns whether the members are others than at
        the last call. Where the run has too few members it waits for others.
        """
        if self.discarded:
            self.step -= 1
            self._averages.discarded = False
            came = update(self.group)
        else:
            came = not self._fresh and self.step % self._every == 0 and \
                update(self.group)
        if came or self._fresh:
            self._revision, _ = synchronize(
                self.group.world, self._save, self._load, self._revision,
                functools.partial(update, self.group))
            self._fresh = False
            self._wrap()
        self.step += 1
        before, self._known = self._known, self.group.world.view.ids
        return self._known != before

    def _save(self):
        saved = {name: part.state_dict()
                 for name, part in self._parts.items() if part is not None}
        return {**saved, "step": self.step}

    def _load(self, state):
        self.step = state["step"]
        for name, part in self._parts.items():
            if part is not None:
                part.load_state_dict(state[name])
