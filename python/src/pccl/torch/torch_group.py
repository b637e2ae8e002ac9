# torch_group.py - the process group "pccl" of torch.distributed.
"""ProcessGroup: the calls of c10d as operations of the library.

A group is *elastic* if it is the view of the run, whatever that is at the
moment: the default group of a program that pccl-master started. Its sums and
barriers are repeated by the survivors of a loss. A call that names ranks or has
room for them raises MemberLost, has had no effect, and may be made anew. Any
other group is a fixed list of members, and each of its calls raises MemberLost
when one of them is gone, until it is made anew.
"""
import functools
import zlib

import torch
import torch.distributed as dist

from .torch_errors import MemberLost, destroyed
from .torch_tensors import (AVG, MAX, MIN, PROD, SUM, check, fold, host,
                            memory_of, reducible, same)
from .torch_work import Work

OPERATORS = {
    dist.ReduceOp.SUM: SUM, dist.ReduceOp.AVG: AVG,
    dist.ReduceOp.PRODUCT: PROD, dist.ReduceOp.MAX: MAX,
    dist.ReduceOp.MIN: MIN,
}
TAGS = 256  # of a group in flight


def operator(reduce_op):
    """The library's operator for one of c10d."""
    kind = getattr(reduce_op, "op", reduce_op)
    if kind not in OPERATORS:
        raise ValueError(f"{kind} is not an operator of the pccl backend: use "
                         "SUM, AVG, PRODUCT, MIN or MAX")
    return OPERATORS[kind]


@functools.cache
def agreed(function, dtype):
    """What the members must agree on beside the arguments of an operation."""
    return ("function", function), ("dtype", str(dtype))


def placed(method):
    """A call with places for ranks: told of a loss before its arguments are
    compared with the new size."""
    @functools.wraps(method)
    def checked(self, *arguments, **named):
        self._usable()
        if self.elastic and self.world.view.epoch != self._epoch:
            self._see(self.world.view)
            raise MemberLost(f"{method.__name__}: a member was lost; ranks and "
                             "the size have changed")
        return method(self, *arguments, **named)
    return checked


class ProcessGroup(dist.ProcessGroup):
    """`members`: ids in the order of the ranks, or None for an elastic one."""

    def __init__(self, world, members, name, timeout, store=None):
        view = world.view
        ids = members or view.ids
        rank = ids.index(view.ids[view.rank])
        super().__init__(rank, len(ids))
        self.world, self.store = world, store
        self.root_store = store  # without torch's prefix, where it is ours
        self.timeout = timeout.total_seconds()
        self.owner = False  # destroying it destroys the world
        self.freed = False
        self._name, self._description = name, ""
        self._tags = (zlib.crc32(name.encode()) + 1) << 24
        self._batch = None
        self._set_members(members)

    def _set_members(self, members):
        self.members = list(members) if members else None
        view = self.world.view
        if members:
            self._rank = self.members.index(view.ids[view.rank])
        self._launched = 0
        self._see(view)

    def _see(self, view):
        """From now on calls with places for ranks mean this view. Such a call
        that came before the loss fails; one that comes after it, where a sum
        has met the loss and was repeated in silence, has to fail too, or the
        program would be told on some members only. Therefore the first one in
        a new view raises MemberLost without an operation. Operations of two
        views never meet, so their tags begin anew."""
        self._epoch, self._placed = view.epoch, 0

    def member_lost(self):
        """An operation of this group has met a loss and raises it."""
        if self.elastic:
            self._see(self.world.view)

    # ------------------------------------------------- rank, size, names

    @property
    def elastic(self):
        return self.members is None

    def ids(self):
        """The ids of the members in the order of the ranks."""
        return self.members or self.world.view.ids

    def rank(self):
        return self._rank if self.members else self.world.view.rank

    def size(self):
        return len(self.ids())

    def getRank(self):
        return self.rank()

    def getSize(self):
        return self.size()

    def getBackendName(self):
        return "pccl"

    _get_backend_name = getBackendName

    def name(self):
        return "pccl"

    def getGroupName(self):
        return self._name

    def setGroupName(self, name):
        self._name = name

    _set_group_name = setGroupName

    def getGroupDesc(self):
        return self._description

    def setGroupDesc(self, text):
        self._description = text

    _set_group_desc = setGroupDesc

    @property
    def group_name(self):
        return self._name

    @property
    def group_desc(self):
        return self._description

    # torch asks these of the backend of a device; this one is for all.
    supports_splitting = False
    supports_coalescing = False

    def _get_backend(self, device):
        return self

    get_backend = _get_backend

    def get_group_store(self):
        return self.store

    def __repr__(self):
        return (f"<pccl group {self._name!r} rank {self.rank()} of "
                f"{self.size()}{' elastic' if self.elastic else ''}>")

    # --------------------------------------------------------- launching

    def _start(self, function, collective, dtype, places, *arguments, **named):
        """Starts one operation. `places`: the number of ranks for which its
        buffers or its root were made, 0 if it is indifferent to ranks."""
        self._usable()
        if self.members:
            named["members"] = self.members
        elif places:
            named["epoch"] = self._place(function, places)
        if places or self.members:
            tag = 1 << 16 | self._placed % TAGS
            self._placed += 1
        else:
            tag = self._launched % TAGS
            self._launched += 1
        start = functools.partial(
            getattr(self.world.comm, collective), *arguments,
            tag=self._tags | tag, agree=agreed(function, dtype), **named)
        return self.world.launch(start, self.elastic and not places, self)

    def _place(self, function, places):
        """The epoch of the view that the arguments of a call are made for."""
        view = self.world.view
        if view.epoch != self._epoch or view.size != places:  # by a thread
            self._see(view)
            raise MemberLost(f"{function}: a member was lost; ranks and the "
                             "size have changed")
        return view.epoch

    def _usable(self):
        if self.freed:
            raise destroyed(f"the process group {self._name!r}")

    def _work(self, operations, result, finish=None, options=None):
        limit = self.timeout
        given = getattr(options, "timeout", None)
        if given and 0 < given.total_seconds() < limit:
            limit = given.total_seconds()
        work = Work(self.world, operations, result, finish, limit)
        if self._batch is not None:
            self._batch.append(work)
        return work

    def _start_coalescing(self, device=None):
        self._batch = []

    def _end_coalescing(self, device=None):
        works, self._batch = self._batch, None
        return Work(self.world, works, [], None, self.timeout)

    start_coalescing = _start_coalescing
    end_coalescing = _end_coalescing

    def _reduce(self, function, tensor, op, out, places=0):
        """One all-reduce of host memory; in place if `out` is `tensor`."""
        source = reducible(tensor, op, "the tensor")
        target = source if out is tensor else reducible(out, op, "the out")
        return self._start(function, "all_reduce_async", tensor.dtype, places,
                           source, target, op=op)

    def _exchange(self, function, source, send, target, receive):
        """All-to-all of the elements of two flat tensors of host memory;
        `send` and `receive` count elements per rank, in order."""
        width = source.element_size()
        return self._start(function, "all_to_all_async", source.dtype,
                           len(send), memory_of(source), memory_of(target),
                           [width * n for n in send],
                           [width * n for n in receive])

    def _gather_all(self, function, source, target):
        """All-gather of host memory; in place if source lies in target."""
        count = source.numel() * source.element_size()
        places = target.numel() // source.numel() if count else self.size()
        own = target.data_ptr() + self.rank() * count
        return self._start(function, "all_gather_async", source.dtype, places,
                           None if source.data_ptr() == own
                           else memory_of(source), memory_of(target))

    # -------------------------------------------------------- reductions

    def _each_reduced(self, function, tensors, options):
        if not tensors:
            raise ValueError(f"{function}: no tensors")
        op = operator(options.reduceOp if options else dist.ReduceOp.SUM)
        same(tensors, tensors[0], f"{function}: tensor")
        staged = [host(tensor) for tensor in tensors]
        numbers = [reducible(tensor, op, f"{function}: the tensor")
                   for tensor in staged]
        operations = [self._start(function, "all_reduce_async", tensor.dtype,
                                  0, number, op=op)
                      for tensor, number in zip(staged, numbers)]
        return self._work(operations, list(tensors),
                          self._back(staged, tensors), options)

    @staticmethod
    def _back(staged, tensors):
        """What copies staged results to their devices, or None."""
        if all(memory is tensor or memory.device == tensor.device and
               memory.data_ptr() == tensor.data_ptr()
               for memory, tensor in zip(staged, tensors)):
            return None

        def back():
            for memory, tensor in zip(staged, tensors):
                tensor.detach().copy_(memory)
        return back

    def allreduce(self, tensors, opts=None, timeout=None):
        if isinstance(tensors, torch.Tensor):
            tensors = [tensors]
        if opts is not None and not hasattr(opts, "reduceOp"):
            options = dist.AllreduceOptions()
            options.reduceOp = opts
            opts = options
        return self._each_reduced("all_reduce", tensors, opts)

    def allreduce_coalesced(self, tensors, opts=None):
        # Tensors of several types are legal here.
        works = [self._each_reduced("all_reduce_coalesced", [tensor], opts)
                 for tensor in tensors]
        return self._joined(works, list(tensors))

    def _joined(self, works, result):
        if not works:
            return self._work([], result)
        return Work(self.world, works, result, None, works[0]._timeout)

    def average(self, tensor, what):
        """The mean of a tensor over those who contribute, in place. All must
        call it with the same text. The future of the work is the tensor."""
        memory = host(check(tensor, "average: the tensor"))
        operation = self._reduce(what, memory, AVG, memory)
        return self._work([operation], tensor, self._back([memory], [tensor]))

    @placed
    def reduce(self, tensors, opts):
        tensor = check(tensors[0], "reduce: the tensor")
        op = operator(opts.reduceOp)
        root = self._root(opts.rootRank)
        source = host(tensor)
        mine = root == self.rank()
        target = source if mine else torch.empty_like(source)
        operation = self._reduce("reduce", source, op, target, self.size())
        back = self._back([source], [tensor]) if mine else None
        return self._work([operation], [tensor], back, opts)

    def _root(self, root):
        if not 0 <= root < self.size():
            raise ValueError(f"root {root} is not a rank of a group of "
                             f"{self.size()}")
        return root

    @placed
    def _reduce_scatter_base(self, output, input, opts=None):
        op = operator(opts.reduceOp if opts else dist.ReduceOp.SUM)
        check(output, "reduce_scatter: the output")
        same([input], output, "reduce_scatter: input")
        size = self.size()
        if input.numel() != size * output.numel():
            raise ValueError(
                f"reduce_scatter: the input has {input.numel()} elements, not "
                f"{size} times the {output.numel()} of the output")
        source = host(input)
        reducible(source, op, "reduce_scatter: the input")
        blocks = torch.empty_like(source).view(size, -1)
        counts = [output.numel()] * size
        operation = self._exchange("reduce_scatter", source, counts, blocks,
                                   counts)
        return self._work([operation], [output], lambda: fold(
            blocks, op, output.detach()), opts)

    reduce_scatter_single = _reduce_scatter_base

    @placed
    def reduce_scatter(self, outputs, inputs, opts=None):
        works = []
        for output, parts in zip(outputs, inputs):
            same(parts, output, "reduce_scatter: input")
            flat = torch.cat([part.detach().reshape(-1) for part in parts])
            works.append(self._scattered(output, parts, flat, opts))
        return self._joined(works, list(outputs))

    def _scattered(self, output, parts, flat, opts):
        """A reduce-scatter whose parts may have different sizes."""
        size, op = self.size(), operator(opts.reduceOp)
        self._lengths(parts, "reduce_scatter: input")
        if parts[self.rank()].numel() != output.numel():
            raise ValueError("reduce_scatter: the own part of the input has "
                             f"{parts[self.rank()].numel()} elements, the "
                             f"output {output.numel()}")
        source = host(flat)
        reducible(source, op, "reduce_scatter: the input")
        blocks = torch.empty(size, output.numel(), dtype=source.dtype)
        operation = self._exchange("reduce_scatter", source,
                                   [part.numel() for part in parts], blocks,
                                   [output.numel()] * size)
        return self._work([operation], [output], lambda: fold(
            blocks, op, output.detach()), opts)

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts=None):
        return self._joined([self._reduce_scatter_base(o, i, opts)
                             for o, i in zip(outputs, inputs)], list(outputs))

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    # ------------------------------------------------- moving data about

    def _lengths(self, tensors, what):
        if len(tensors) != self.size():
            raise ValueError(f"{what}: {len(tensors)} tensors for a group of "
                             f"{self.size()}")

    @placed
    def broadcast(self, tensors, opts):
        tensor = check(tensors[opts.rootTensor], "broadcast: the tensor")
        root = self._root(opts.rootRank)
        memory = host(tensor)
        operation = self._start("broadcast", "broadcast_async", tensor.dtype,
                                self.size(), memory_of(memory), root)
        return self._work([operation], [tensor],
                          self._back([memory], [tensor]), opts)

    @placed
    def _allgather_base(self, output, input, opts=None):
        check(output, "all_gather: the output")
        same([input], output, "all_gather: input")
        if output.numel() != self.size() * input.numel():
            raise ValueError(
                f"all_gather: the output has {output.numel()} elements, not "
                f"{self.size()} times the {input.numel()} of the input")
        target = host(output, load=False)
        operation = self._gather_all("all_gather", host(input), target)
        return self._work([operation], [output],
                          self._back([target], [output]), opts)

    all_gather_single = _allgather_base

    @placed
    def allgather(self, outputs, inputs, opts=None):
        works = [self._gathered("all_gather", lists, tensor, None, opts)
                 for lists, tensor in zip(outputs, inputs)]
        return self._joined(works, outputs)

    allgather_coalesced = allgather

    def _gathered(self, function, outputs, tensor, root, opts):
        """What all have, into a list: of the root, or of all (root None)."""
        check(tensor, f"{function}: the input")
        size, mine = self.size(), root is None or root == self.rank()
        if mine:
            self._lengths(outputs, f"{function}: output")
            same(outputs, tensor, f"{function}: output")
        receive = [part.numel() for part in outputs] if mine else [0] * size
        source = host(tensor)
        flat = torch.empty(sum(receive), dtype=source.dtype)
        if root is None and set(receive) == {tensor.numel()}:
            operation = self._gather_all(function, source, flat)
        else:
            send = [tensor.numel() if root in (None, rank) else 0
                    for rank in range(size)]
            if root is None:  # each gets a copy of its own
                source = source.reshape(-1).repeat(size)
            operation = self._exchange(function, source, send, flat, receive)

        def finish():
            for part, block in zip(outputs if mine else (),
                                   flat.split(receive)):
                part.detach().copy_(block.view(part.shape))
        return self._work([operation], list(outputs) if mine else [], finish,
                          opts)

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        return self._joined([self._allgather_base(o, i, opts)
                             for o, i in zip(outputs, inputs)], list(outputs))

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    @placed
    def gather(self, outputs, inputs, opts):
        root = self._root(opts.rootRank)
        return self._gathered("gather", outputs[0] if outputs else [],
                              inputs[0], root, opts)

    @placed
    def scatter(self, outputs, inputs, opts):
        output = check(outputs[0], "scatter: the output")
        root, size = self._root(opts.rootRank), self.size()
        send, source = [0] * size, torch.empty(0, dtype=output.dtype)
        if root == self.rank():
            parts = inputs[0]
            self._lengths(parts, "scatter: input")
            same(parts, output, "scatter: input")
            send = [part.numel() for part in parts]
            source = host(torch.cat([p.detach().reshape(-1) for p in parts]))
        receive = [output.numel() if rank == root else 0
                   for rank in range(size)]
        target = host(output, load=False)
        operation = self._exchange("scatter", source, send, target, receive)
        return self._work([operation], [output],
                          self._back([target], [output]), opts)

    @placed
    def alltoall_base(self, output, input, output_splits, input_splits,
                      opts=None):
        check(output, "all_to_all: the output")
        same([input], output, "all_to_all: input")
        receive = self._splits(output, output_splits, "output")
        send = self._splits(input, input_splits, "input")
        target = host(output, load=False)
        operation = self._exchange("all_to_all", host(input), send, target,
                                   receive)
        return self._work([operation], [output],
                          self._back([target], [output]), opts)

    all_to_all_single = alltoall_base

    def _splits(self, tensor, splits, what):
        """How many elements each rank has of a tensor split along dim 0."""
        size, rows = self.size(), tensor.shape[0] if tensor.dim() else 1
        if not splits:
            if rows % size:
                raise ValueError(f"all_to_all: {rows} rows of the {what} "
                                 f"cannot be split among {size} ranks")
            splits = [rows // size] * size
        if len(splits) != size or sum(splits) != rows:
            raise ValueError(f"all_to_all: the split sizes {list(splits)} of "
                             f"the {what} do not fit {rows} rows and {size} "
                             "ranks")
        row = tensor.numel() // rows if rows else 0
        return [row * split for split in splits]

    @placed
    def alltoall(self, outputs, inputs, opts=None):
        self._lengths(inputs, "all_to_all: input")
        self._lengths(outputs, "all_to_all: output")
        same(inputs, inputs[0], "all_to_all: input")
        same(outputs, inputs[0], "all_to_all: output")
        source = host(torch.cat([t.detach().reshape(-1) for t in inputs]))
        receive = [t.numel() for t in outputs]
        flat = torch.empty(sum(receive), dtype=source.dtype)
        operation = self._exchange("all_to_all", source,
                                   [t.numel() for t in inputs], flat, receive)

        def finish():
            for part, block in zip(outputs, flat.split(receive)):
                part.detach().copy_(block.view(part.shape))
        return self._work([operation], list(outputs), finish, opts)

    def barrier(self, opts=None, timeout=None):
        operation = self._start("barrier", "barrier_async", None, 0)
        return self._work([operation], [], None, opts)

    # ---------------------------------------------------------- messages

    def _key(self):
        return zlib.crc32(self._name.encode())

    def send(self, tensors, dst, tag=0):
        self._usable()
        tensor = check(tensors[0], "send: the tensor")
        member = self.ids()[self._root(dst)]
        transfer = self.world.inbox.send(member, self._key(), tag,
                                         host(tensor))
        return self._work([transfer], [tensor])

    def recv(self, tensors, src, tag=0):
        self._usable()
        tensor = check(tensors[0], "recv: the tensor")
        member = None if src is None else self.ids()[self._root(src)]
        memory = host(tensor, load=False)
        transfer = self.world.inbox.receive(member, self._key(), tag, memory)
        transfer.rank_of = self.ids().index
        return self._work([transfer], [tensor], self._back([memory], [tensor]))

    def recv_anysource(self, tensors, tag=0):
        return self.recv(tensors, None, tag)

    recvAnysource = recv_anysource

    # -------------------------------------------- members, end of a group

    @property
    def supports_reconfigure(self):
        return True

    def get_reconfigure_handle(self):
        """Names this process to reconfigure()."""
        view = self.world.view
        return f"pccl:{view.ids[view.rank]}"

    def reconfigure(self, opts):
        """torch's call: the group becomes a fixed one of the members of these
        handles, in their order (a set: in the order of the ids). Collective
        over the run."""
        ids = [int(handle.rpartition(":")[2]) for handle in opts.handles]
        if isinstance(opts.handles, (set, frozenset)):
            ids.sort()
        view = self.world.update()
        gone = [i for i in ids if i not in view.ids]
        if gone:
            raise MemberLost(f"reconfigure: members {gone} are not in the run")
        self._set_members(ids)
        return self._work([], [])

    def abort(self):
        self.shutdown()

    def shutdown(self):
        """Leaves the run if this group joined it. torch calls it from
        destroy_process_group."""
        self.freed = True
        if self.owner:
            self.world.close()
