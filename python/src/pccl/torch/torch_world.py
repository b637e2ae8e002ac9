# torch_world.py - one communicator of this process: members and operations.
"""World: the members of a run, and the operations under way between them.

A world belongs to the process that connected it. In a forked child (a worker
of a DataLoader) every call raises PcclError, and nothing that the child does
reaches the run of its parent.
"""
import atexit
import contextlib
import ctypes
import os
import queue
import socket
import threading
import time
import weakref

from . import torch_library as lib
from .torch_library import LIB
from .torch_messages import Inbox

# A wait returns to the interpreter this often, for signals and for close().
SLICE_MS = 100
# Operations not awaited; the library has room for 256.
IN_FLIGHT_MAX = 192


class View:
    """The members at one moment; ids in the order of the ranks."""

    __slots__ = ("epoch", "rank", "ids", "hints")

    def __init__(self, epoch, rank, ids, hints):
        self.epoch, self.rank, self.ids, self.hints = epoch, rank, ids, hints

    @property
    def size(self):
        return len(self.ids)


def parse_address(text):
    """HOST:PORT or [IPV6]:PORT as the library's structure."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdigit():
        raise ValueError(f"{text!r} is no HOST:PORT")
    found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    family, _, _, _, where = min(found, key=lambda f: f[0] != socket.AF_INET)
    address = lib.Address(port=int(port))
    if family == socket.AF_INET6:
        address.protocol = 1
        address.ipv6[:] = socket.inet_pton(family, where[0].split("%")[0])
    else:
        address.ipv4[:] = socket.inet_pton(family, where[0])
    return address


class Operation:
    """One collective under way. `keep` holds what its pointers point to.

    elastic  repeated after a loss; else group.member_lost() is called
    """

    def __init__(self, world, call, keep, elastic, group):
        self.world, self.call, self.keep = world, call, keep
        self.elastic, self.group = elastic, group
        self.handle = lib.Handle()
        self.info = lib.ReduceInfo()
        self.lock = threading.Lock()
        self.finished, self.failure = False, None

    def launch(self):
        """Starts it. Repeats the launch after a loss if it is elastic."""
        while True:
            result = LIB.pcclCollectiveAsync(
                ctypes.byref(self.call), self.world.comm,
                ctypes.byref(self.handle))
            if result == lib.SUCCESS:
                return
            if result == lib.TOO_FEW_PEERS:
                self._alone()
                return
            if not self._again(result):
                raise lib.error(result, self.world.comm, "launch")

    def _alone(self):
        """All-reduce in a world of one: the result is the input."""
        call = self.call
        if call.sendbuf and call.recvbuf != call.sendbuf:
            width = (1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8)[call.datatype]
            ctypes.memmove(call.recvbuf, call.sendbuf, call.count * width)
        self.info.world = 1
        self.finished = True

    def _again(self, result):
        if result != lib.MEMBER_LOST:
            return False
        self.world.forget_view()
        if not self.elastic and self.group:
            self.group.member_lost()
        return self.elastic

    def done(self):
        """Whether wait() would return at once."""
        if self.finished or not self.lock.acquire(blocking=False):
            return self.finished
        try:
            flag = ctypes.c_bool()
            self.world.alive()
            LIB.pcclTestAsync(ctypes.byref(self.handle), ctypes.byref(flag))
            if flag.value:
                self._await(None)
            return self.finished
        finally:
            self.lock.release()

    def wait(self, timeout=None):
        """Waits for the end, `timeout` seconds at most; then the operation
        fails on all members. Raises what it failed with."""
        if not self.finished:
            self.world.alive()
            with self.lock:
                if not self.finished:
                    self._await(timeout)
        if self.failure:
            raise self.failure

    def _await(self, timeout):
        self.world.alive()
        end = time.monotonic() + timeout if timeout else None
        handle, flag = ctypes.byref(self.handle), ctypes.c_bool()
        while not self.finished:
            while LIB.pcclWaitAsync(handle, SLICE_MS, ctypes.byref(
                    flag)) == lib.SUCCESS and not flag.value:
                self.world.alive()
                self.world.inbox.poll()
                if end and time.monotonic() > end:
                    LIB.pcclFailCollective(self.world.comm, self.handle.tag)
                    end = None
            result = LIB.pcclAwaitAsyncReduce(handle, ctypes.byref(self.info))
            if result == lib.SUCCESS:
                self.finished = True
            elif self._again(result):
                self._relaunch()
            else:
                self._fail(lib.error(result, self.world.comm, "collective"))
        self.keep = None

    def _relaunch(self):
        try:
            self.launch()
        except lib.PcclError as failure:
            self._fail(failure)

    def _fail(self, failure):
        self.failure, self.finished = failure, True


class World:
    """A connected communicator."""

    def __init__(self, address, rank_hint=-1, peer_group=0):
        self.pid = os.getpid()
        self.closed = False
        self.comm = None
        self.inbox = Inbox(self)
        self._view = None
        self._flying = []
        self._flying_lock = threading.Lock()
        self._futures, self._completer = None, None
        self.master = None
        lib.check(LIB.pcclInit())
        params = lib.CreateParams(parse_address(address), peer_group, 0)
        comm = ctypes.c_void_p()
        lib.check(LIB.pcclCreateCommunicator(ctypes.byref(params),
                                             ctypes.byref(comm)))
        self.comm = comm
        options = lib.CommOptions(ctypes.sizeof(lib.CommOptions), rank_hint)
        lib.check(LIB.pcclSetOptions(comm, ctypes.byref(options)), comm)
        self.address = address
        _worlds.add(self)

    def connect(self, patience=60.0):
        """Joins the run, and waits until its members admit this process. A
        coordinator that is not there yet is tried again for `patience`
        seconds."""
        end = time.monotonic() + patience
        while True:
            result = LIB.pcclConnect(self.comm)
            if result == lib.SUCCESS:
                return
            if result != lib.MASTER_LOST or time.monotonic() > end:
                raise lib.error(result, self.comm,
                                f"connecting to {self.address}")
            time.sleep(0.05)

    def alive(self):
        """Raises unless this process may use the communicator."""
        if self.closed:
            raise lib.PcclError(lib.INVALID_USAGE,
                                "the process group was destroyed")
        if os.getpid() != self.pid:
            raise lib.PcclError(
                lib.INVALID_USAGE,
                "this process was forked from a rank (a worker of a "
                "DataLoader?) and cannot communicate in its place")

    # ------------------------------------------------------- membership

    @property
    def view(self):
        """The members as this process has been told of them."""
        return self._view or self._read_view()

    def _read_view(self):
        self.alive()
        epoch, rank, size = ctypes.c_uint64(), ctypes.c_int(), ctypes.c_int()
        room = 16
        while True:
            members = (lib.Member * room)()
            lib.check(LIB.pcclGetView(
                self.comm, ctypes.byref(epoch), ctypes.byref(rank),
                ctypes.byref(size), members, room), self.comm, "view")
            if size.value <= room:
                break
            room = size.value
        found = members[:size.value]
        self._view = View(epoch.value, rank.value, [m.id for m in found],
                          [m.hint for m in found])
        return self._view

    def forget_view(self):
        """The library has reported a loss: the view is read anew."""
        self._view = None

    def pending(self):
        """Whether newcomers wait. Collective; all get the same answer."""
        self.alive()
        flag = ctypes.c_bool()
        lib.check(LIB.pcclArePeersPending(self.comm, ctypes.byref(flag)),
                  self.comm, "pending")
        return flag.value

    def update(self):
        """Admits newcomers and takes losses into account. Collective."""
        self.alive()
        self.reap(0)
        lib.check(LIB.pcclUpdateTopology(self.comm), self.comm, "update")
        self.forget_view()
        return self.view

    # ------------------------------------------------------- operations

    def launch(self, call, keep, elastic, group=None):
        """Starts a collective and remembers it until it is over."""
        self.alive()
        self.reap(IN_FLIGHT_MAX)
        operation = Operation(self, call, keep, elastic, group)
        operation.launch()
        if not operation.finished:
            with self._flying_lock:
                self._flying.append(operation)
        return operation

    def reap(self, most):
        """Forgets what is over. Where more than `most` are under way, waits
        for the older half."""
        if most and len(self._flying) <= most:
            return
        with self._flying_lock:
            self._flying = [o for o in self._flying if not o.finished]
            older = self._flying[:len(self._flying) - most // 2]
        for operation in older:
            with contextlib.suppress(lib.PcclError):  # its Work raises it
                operation.wait()
        with self._flying_lock:
            self._flying = [o for o in self._flying if not o.finished]

    def complete(self, work):
        """Has a thread wait for the work, so that its future completes."""
        if self._completer is None:
            self._futures = queue.SimpleQueue()
            self._completer = threading.Thread(
                target=self._complete, name="pccl-futures", daemon=True)
            self._completer.start()
        self._futures.put(work)

    def _complete(self):
        while True:
            work = self._futures.get()
            if work is None:
                return
            work.fulfil()

    def close(self):
        """Leaves the run. What is under way is cancelled."""
        if self.closed or os.getpid() != self.pid:
            return
        self.closed = True
        if self._completer and self._completer is not \
                threading.current_thread():
            self._futures.put(None)
            self._completer.join()
        for operation in self._flying:
            with operation.lock:  # a thread that waits has noticed
                pass
        with self.inbox.lock:
            LIB.pcclDestroyCommunicator(self.comm)
            self.comm = None
        if self.master:
            self.master.close()


class Master:
    """A coordinator in a thread of this process."""

    def __init__(self, host="0.0.0.0"):
        self.pid = os.getpid()
        self.pointer, port = ctypes.c_void_p(), ctypes.c_uint16()
        lib.check(LIB.pcclCreateMaster(parse_address(f"{host}:0"),
                                       ctypes.byref(self.pointer)))
        lib.check(LIB.pcclRunMaster(self.pointer), doing="coordinator")
        lib.check(LIB.pcclGetMasterPort(self.pointer, ctypes.byref(port)))
        self.port = port.value

    def close(self):
        if self.pointer and os.getpid() == self.pid:
            LIB.pcclInterruptMaster(self.pointer)
            LIB.pcclDestroyMaster(self.pointer)
        self.pointer = None


_worlds = weakref.WeakSet()


@atexit.register
def _close_all():
    for world in list(_worlds):
        world.close()
