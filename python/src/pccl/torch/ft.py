# ft.py - torchft's interface, so that its loops run with other imports.
"""Manager, Optimizer and DistributedDataParallel with torchft's semantics.

    from pccl.torch.ft import (DistributedDataParallel, Manager, Optimizer,
                               ProcessGroupGloo)

A *replica* is one process, or the processes of one torch.distributed job with
the same inner ranks in each replica. Differences:

* The lighthouse is pccl-master, found by PCCL_MASTER or lighthouse_addr.
* A replica that dies in mid-step does not cost the step: the survivors repeat
  what was under way and commit. Deaths are noticed by the end of a connection,
  not by a timeout of heartbeats.
* should_commit is decided alike on all replicas, not on each alone.
* With pccl-master --min-ranks N no replica commits a step of fewer than N, and
  start_quorum waits for others, without a limit.
* A newcomer gets the state before its first step, not beside it
  (use_async_quorum has no effect), by the library's synchronization.
"""
import datetime
import logging
import os
import time

import torch
import torch.distributed as dist
from torch.nn import parallel
from torch.utils.data import distributed

from .torch_elastic import average
from .torch_errors import PcclError, TooFewMembers
from .torch_group import ProcessGroup
from .torch_state import synchronize
from .torch_world import World

log = logging.getLogger(__name__)
MINUTE = datetime.timedelta(seconds=60)


class ProcessGroupPccl:
    """Stands where a loop makes a process group for the manager, which makes
    its own."""

    def __init__(self, timeout=MINUTE, *_, **__):
        self.timeout = timeout


ProcessGroupGloo = ProcessGroupNCCL = ProcessGroupPccl


class _Managed(dist.Work):
    """A work whose failure is reported to the manager and not raised."""

    def __init__(self, manager, work, tensor):
        super().__init__()
        self._manager, self._work, self._tensor = manager, work, tensor

    def wait(self, timeout=None):
        try:
            if self._work:
                self._work.wait(timeout)
        except PcclError as failure:
            self._manager.report_error(failure)
        return True

    def is_completed(self):
        return self._work is None or self._work.is_completed()

    def synchronize(self):
        self.wait()

    def get_future(self):
        done = torch.futures.Future()
        if self._work is None:
            done.set_result(self._tensor)
            return done

        def report(future):
            try:
                future.value()
            except Exception as failure:
                self._manager.report_error(failure)
            done.set_result(self._tensor)
        self._work.get_future().add_done_callback(report)
        return done


class Manager:
    """Keeps the replicas of a training run together, step by step."""

    def __init__(self, pg=None, load_state_dict=None, state_dict=None,
                 min_replica_size=1, use_async_quorum=True, timeout=MINUTE,
                 quorum_timeout=MINUTE, connect_timeout=MINUTE, rank=None,
                 world_size=None, lighthouse_addr=None, replica_id=None,
                 init_sync=True, max_retries=None, **ignored):
        mode = ignored.pop("world_size_mode", None)
        if mode is not None and getattr(mode, "name", mode) != "DYNAMIC":
            raise ValueError(f"world_size_mode {mode}: only DYNAMIC is "
                             "supported")
        address = lighthouse_addr or os.environ.get("PCCL_MASTER")
        if not address:
            raise ValueError("no coordinator: pass lighthouse_addr as "
                             "HOST:PORT of a pccl-master, or start the program "
                             "with it")
        inner = "MASTER_ADDR" in os.environ  # a job of torch.distributed
        self._rank = rank if rank is not None else \
            int(os.environ.get("RANK", 0)) if inner else 0
        self._inner_size = world_size if world_size is not None else \
            int(os.environ.get("WORLD_SIZE", 1)) if inner else 1
        self._address = address.rpartition("//")[2].split(",")[0]
        self._replica_id = replica_id or str(os.getpid())
        self._min, self._timeout = min_replica_size, timeout
        self._quorum_timeout = quorum_timeout
        self._connect_timeout = connect_timeout
        self._retries, self._failures = max_retries, 0
        self._saves, self._loads = {}, {}
        if state_dict and load_state_dict:
            self.set_state_dict_fns(load_state_dict, state_dict)
        self._world = self._pg = None
        self._revision, self._fresh = -1, True
        self._step = self._batches = 0
        self._errored = None
        self._known = ()

    # ------------------------------------------------------------- state

    def register_state_dict_fn(self, key, load_state_dict, state_dict):
        """State under a name of its own, which newcomers get."""
        if key in self._saves:
            raise ValueError(f"state {key!r} is registered already")
        self._loads[key], self._saves[key] = load_state_dict, state_dict

    def set_state_dict_fns(self, load_state_dict, state_dict):
        self._loads["default"] = load_state_dict
        self._saves["default"] = state_dict

    def allow_state_dict_read(self):
        """Has no effect: the state is read in start_quorum only."""

    disallow_state_dict_read = allow_state_dict_read

    def _save(self):
        return {"user": {key: save() for key, save in self._saves.items()},
                "manager": self.state_dict()}

    def _load(self, state):
        self.load_state_dict(state["manager"])
        for key, load in self._loads.items():
            load(state["user"][key])

    def state_dict(self):
        return {"step": self._step, "batches_committed": self._batches}

    def load_state_dict(self, state):
        self._step = state["step"]
        self._batches = state["batches_committed"]

    # ------------------------------------------------------------- steps

    def start_quorum(self, allow_heal=True, shrink_only=False, timeout=None):
        """Begins a step: admits newcomers, which get the state here, and waits
        until there are min_replica_size replicas."""
        self._errored = None
        if self._world is None:
            self._join()
        before = set(self._known)
        if not self._fresh and allow_heal and not shrink_only:
            self._admit(timeout or self._quorum_timeout)
        came = set(self._world.view.ids) - before
        if came:
            self._pg._set_members(None)
            self._revision, _ = synchronize(
                self._world, self._save, self._load, self._revision,
                self._gather)
            self._fresh = False
        self._known = self._world.view.ids
        if self.num_participants() < self._min:
            self.start_quorum(allow_heal, shrink_only, timeout)

    def _join(self):
        hint = -1 if os.environ.get("PCCL_JOIN") else \
            int(os.environ.get("PCCL_RANK", -1))
        world = World(self._address, hint, self._rank)
        world.connect(self._connect_timeout.total_seconds())
        self._world = world
        self._pg = ProcessGroup(world, None, "manager", self._timeout)

    def _gather(self):
        """Waits for as many replicas as the run needs."""
        self._world.update()
        self._pg._set_members(None)

    def _admit(self, timeout):
        end = time.monotonic() + timeout.total_seconds()
        while self._world.pending() or self.num_participants() < self._min:
            self._world.update()
            if self.num_participants() >= self._min:
                return
            if time.monotonic() > end:
                raise TimeoutError(f"{self.num_participants()} of at least "
                                   f"{self._min} replicas came in {timeout}")
            time.sleep(0.01)

    def wait_quorum(self):
        if self._world is None:
            raise RuntimeError("must call start_quorum before wait_quorum")

    def allreduce(self, tensor, should_quantize=False,
                  reduce_op=dist.ReduceOp.AVG):
        """Reduces a tensor over the replicas, in place. What happens meanwhile
        is not raised: should_commit takes it into account."""
        if self._errored:
            return _Managed(self, None, tensor)
        try:
            options = dist.AllreduceOptions()
            options.reduceOp = reduce_op
            work = self._pg.allreduce([tensor], options)
        except PcclError as failure:
            self.report_error(failure)
            work = None
        return _Managed(self, work, tensor)

    def should_commit(self, timeout=None):
        """Ends a step: whether all replicas may apply it. The same answer on
        all of them."""
        good = self._errored is None
        vote = torch.tensor([int(good)], dtype=torch.int32)
        if self._inner_size > 1:
            dist.all_reduce(vote, dist.ReduceOp.MIN)
        options = dist.AllreduceOptions()
        options.reduceOp = dist.ReduceOp.MIN
        options.timeout = timeout or self._timeout
        try:
            self._pg.allreduce([vote], options).wait()
        except TooFewMembers as failure:  # for all: start_quorum waits
            self._errored = failure
            vote.zero_()
        agreed = bool(vote[0]) and self.num_participants() >= self._min
        if agreed:
            self._step += 1
            self._batches += self.num_participants()
            self._failures = 0
            return True
        self._failures += 1
        if self._retries is not None and self._failures > self._retries:
            raise RuntimeError(f"should_commit failed {self._failures} times "
                               "in a row") from self._errored
        return False

    # ------------------------------------------------------------- facts

    def report_error(self, failure):
        """The gradients of this step are no good: no replica commits it."""
        log.warning("[%s, step %d] %s", self._replica_id, self._step, failure)
        self._errored = failure

    def errored(self):
        return self._errored

    def wrap_future(self, future, default, timeout=None):
        """A future whose failure is reported, and that yields default then."""
        done = torch.futures.Future()

        def report(finished):
            try:
                done.set_result(finished.value())
            except Exception as failure:
                self.report_error(failure)
                done.set_result(default)
        future.add_done_callback(report)
        return done

    def current_step(self):
        return self._step

    def batches_committed(self):
        return self._batches

    def num_participants(self):
        return self._world.view.size if self._world else 0

    def participating_rank(self):
        return self._world.view.rank if self._world else None

    def is_participating(self):
        return self._world is not None

    def replica_id(self):
        return self._replica_id

    def shutdown(self, wait=True):
        """Leaves the run."""
        if self._world:
            self._world.close()
        self._world = None


class OptimizerWrapper(torch.optim.Optimizer):
    """zero_grad() begins a step, and step() applies it if all may commit."""

    def __init__(self, manager, optim):
        self.manager, self.optim = manager, optim

    def zero_grad(self, set_to_none=True):
        self.manager.start_quorum()
        self.optim.zero_grad(set_to_none)

    def step(self, closure=None):
        if closure is not None:
            raise ValueError("optimizers with closures are not supported")
        if self.manager.should_commit():
            self.optim.step()

    def add_param_group(self, param_group):
        self.optim.add_param_group(param_group)

    def state_dict(self):
        return self.optim.state_dict()

    def load_state_dict(self, state_dict):
        self.optim.load_state_dict(state_dict)

    @property
    def param_groups(self):
        return self.optim.param_groups

    @property
    def state(self):
        return self.optim.state


Optimizer = OptimizerWrapper


class _NoGroup(dist.ProcessGroup):
    """What torch's wrapper takes for its group; the hook does the work."""

    def __init__(self):
        super().__init__(0, 1)

    def getRank(self):
        return 0

    def getSize(self):
        return 1

    def allreduce(self, tensors, opts=None):
        return _Managed(None, None, tensors)  # of the used parameters


class DistributedDataParallel(parallel.DistributedDataParallel):
    """torch's wrapper, whose gradients are averaged by the manager. Buckets
    stay as they are (find_unused_parameters), because newcomers would have
    others."""

    def __init__(self, manager, module, **options):
        super().__init__(module, process_group=_NoGroup(), init_sync=False,
                         find_unused_parameters=True, **options)
        self.register_comm_hook(manager, self._reduce)

    @staticmethod
    def _reduce(manager, bucket):
        if not manager.errored():
            try:
                return manager.wrap_future(average(manager._pg, bucket),
                                           bucket.buffer())
            except PcclError as failure:
                manager.report_error(failure)
        return _Managed(manager, None, bucket.buffer()).get_future()


class DistributedSampler(distributed.DistributedSampler):
    """The part of the data of one process of one replica. An approximation in
    a run whose size changes: num_replica_groups is the expected number."""

    def __init__(self, dataset, replica_rank, num_replica_groups,
                 group_rank=0, num_replicas=1, **options):
        super().__init__(dataset, rank=group_rank + num_replicas * replica_rank,
                         num_replicas=num_replicas * num_replica_groups,
                         **options)
