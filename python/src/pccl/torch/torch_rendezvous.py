# torch_rendezvous.py - how a process of torch.distributed joins its run.
"""Registers the backend, joins the run, and makes the groups.

Two ways in:

* The coordinator is known (PCCL_MASTER: the program was started by
  pccl-master, or by hand beside one). Rank and size are the library's, the
  default group is elastic, and newcomers join a running job.
* torch's own rendezvous (torchrun, mp.spawn: MASTER_ADDR, RANK, WORLD_SIZE).
  Rank 0 runs the coordinator, and groups are fixed until reconfigure().
"""
import datetime
import functools
import importlib
import os
import socket
import time

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from pccl import _address
from pccl.errors import MasterConnectionFailed

from .torch_errors import MemberLost
from .torch_group import ProcessGroup, agreed
from .torch_tensors import memory_of
from .torch_world import Master, World

MEET_TAG = 1 << 60
RECORD = 64  # bytes of a member at a meeting: its store's address, or nothing


def local_address(towards):
    """The address of this host as seen by who is reached at `towards`."""
    host, _, port = towards.rpartition(":")
    found = socket.getaddrinfo(host.strip("[]"), int(port),
                               type=socket.SOCK_DGRAM)[0]
    with socket.socket(found[0], socket.SOCK_DGRAM) as probe:
        probe.connect(found[4])
        return probe.getsockname()[0]


class Store(dist.Store):
    """torch's key-value store in an elastic run. One member serves it. When
    that one is lost, its keys are lost too, and the members that meet next
    begin an empty one."""

    def __init__(self, world):
        super().__init__()
        self.world = world
        self.server, self.own = None, b""  # of this process
        self.connected = None
        self.where = b""
        self.host_id = 0
        self.timeout_now = datetime.timedelta(minutes=5)

    def meet(self):
        """All members agree on who serves. Collective; to be called when
        newcomers have been admitted or the member that serves was lost."""
        while True:
            try:
                records = self._exchange(self.own)
                if not any(records):
                    if self.world.view.rank == 0:
                        self._serve()
                    records = self._exchange(self.own)
                break
            except MemberLost:
                continue
        chosen = next((r for r in records if r), b"")
        self.host_id = self.world.view.ids[
            records.index(chosen)] if chosen else 0
        if chosen != self.where:
            self.where, self.connected = chosen, None

    def _serve(self):
        host = local_address(self.world.address)
        self.server = dist.TCPStore(host, 0, None, True, self.timeout_now,
                                    wait_for_workers=False)
        self.own = self.where = f"{host}:{self.server.port}".encode()
        self.connected = self.server

    def _exchange(self, record):
        view = self.world.view
        everyone = torch.zeros(view.size, RECORD, dtype=torch.uint8)
        own = everyone[view.rank]
        own[:len(record)] = torch.frombuffer(
            bytearray(record), dtype=torch.uint8) if record else 0
        self.world.launch(functools.partial(
            self.world.comm.all_gather_async, None, memory_of(everyone),
            tag=MEET_TAG, epoch=view.epoch,
            agree=agreed("meet", torch.uint8)), False).wait()
        return [bytes(row.tolist()).rstrip(b"\0") for row in everyone]

    def served(self):
        """Whether the member that serves is still one of us."""
        return self.host_id in self.world.view.ids

    @property
    def client(self):
        """The connection, made when it is needed: who serves may be lost
        meanwhile."""
        if self.connected is None:
            host, _, port = self.where.decode().rpartition(":")
            self.connected = dist.TCPStore(host, int(port), None, False,
                                           self.timeout_now,
                                           wait_for_workers=False)
        return self.connected

    # ----------------------------------------------- what torch calls

    def set(self, key, value):
        return self.client.set(key, value)

    def get(self, key):
        return self.client.get(key)

    def add(self, key, amount):
        return self.client.add(key, amount)

    def check(self, keys):
        return self.client.check(keys)

    def wait(self, keys, timeout=None):
        return self.client.wait(keys, timeout or self.timeout_now)

    def compare_set(self, key, expected, desired):
        return self.client.compare_set(key, expected, desired)

    def delete_key(self, key):
        return self.client.delete_key(key)

    def num_keys(self):
        return self.client.num_keys()

    def set_timeout(self, timeout):
        self.timeout_now = timeout
        if self.connected:
            self.connected.set_timeout(timeout)

    @property
    def timeout(self):
        return self.timeout_now


_joined = None  # the World and Store of the default group that is being made


def join(url, timeout=None, **_):
    """The rendezvous handler of pccl://[HOST:PORT]."""
    global _joined
    address = url.partition("://")[2].partition("?")[0] or \
        os.environ.get("PCCL_MASTER", "")
    if not address:
        raise ValueError("pccl:// needs the coordinator's address: start the "
                         "program with pccl-master, set PCCL_MASTER, or name "
                         "it: pccl://HOST:PORT")
    # Optimizers and DistributedDataParallel import them, which takes seconds.
    # Members wait for a newcomer from its admission on.
    for slow in ("torch._dynamo", "torch.distributed.fsdp"):
        importlib.import_module(slow)
    world = World(address.split(",")[0], _number("PCCL_RANK", -1))
    world.connect(timeout.total_seconds() if timeout else 60.0)
    store = Store(world)
    store.meet()
    _joined = world, store
    yield store, world.view.rank, world.view.size
    raise RuntimeError("pccl:// does not meet again: call reconfigure()")


def _number(name, default):
    text = os.environ.get(name, "")
    return int(text) if text.lstrip("-").isdigit() else default


def environment(url, **options):
    """env:// under pccl-master is pccl://, else that of torch."""
    if os.environ.get("PCCL_MASTER") and "MASTER_ADDR" not in os.environ:
        return join("pccl://", **options)
    return _torch_environment(url, **options)


def found(store, rank, size, timeout):
    """A world of processes that know a store, their rank and their number.
    Returns it and the ids of its members in the order of the ranks."""
    master = None
    key = "pccl/coordinator"
    if rank == 0:
        address = os.environ.get("PCCL_MASTER")
        if not address:
            master = Master()
            address = f"{_own_name()}:{master.port}"
        store.set(key, address)
    store.wait([key], timeout)
    world = World(store.get(key).decode(), rank)
    world.master = master
    world.connect(timeout.total_seconds())
    end = time.monotonic() + timeout.total_seconds()
    while world.view.size < size:
        if time.monotonic() > end:
            raise TimeoutError(f"{world.view.size} of {size} ranks have come "
                               f"in {timeout}")
        time.sleep(0.002)
        world.update()
    view = world.view
    order = dict(zip(view.hints, view.ids))
    if sorted(order) != list(range(size)):
        raise ValueError(f"ranks {sorted(view.hints)} came, not 0 to "
                         f"{size - 1}: does another job use this coordinator?")
    return world, [order[r] for r in range(size)]


def _own_name():
    """How others reach rank 0: by the name that torch's rendezvous gave it."""
    name = os.environ.get("MASTER_ADDR") or "127.0.0.1"
    try:
        _address.resolve(f"{name}:1")
        return name
    except MasterConnectionFailed:
        return socket.gethostname()


def create(options, _):
    """Called by torch for each new group."""
    global _joined
    ranks, name = options.global_ranks_in_group, options.group_id
    if _joined and not ranks:
        world, store = _joined
        _joined = None
        members = None if _elastic() else list(world.view.ids)
        group = ProcessGroup(world, members, name, options.timeout, store)
        group.owner = True
        return group
    parent = c10d._get_default_group() if dist.is_initialized() else None
    if ranks and isinstance(parent, ProcessGroup):
        ids = parent.ids()
        return ProcessGroup(parent.world, [ids[r] for r in ranks], name,
                            options.timeout, options.store)
    world, members = found(options.store, options.group_rank,
                           options.group_size, options.timeout)
    group = ProcessGroup(world, members, name, options.timeout, options.store)
    group.owner = True
    return group


def _elastic():
    return os.environ.get("PCCL_ON_FAILURE") != "return"


_torch_environment = None


def register():
    """Makes "pccl" known to torch.distributed. Importing pccl.torch does it;
    torch 2.15 and later find it without, by the package's entry point."""
    global _torch_environment
    if "PCCL" in dist.Backend._plugins:
        return
    dist.Backend.register_backend("pccl", create, extended_api=True,
                                  devices=["cpu", "cuda"])
    dist.register_rendezvous_handler("pccl", join)
    handlers = importlib.import_module(
        "torch.distributed.rendezvous")._rendezvous_handlers
    _torch_environment = handlers["env"]
    handlers["env"] = environment
