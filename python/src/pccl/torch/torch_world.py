# torch_world.py - one communicator of this process: members and operations.
"""World: the members of a run, and the operations under way between them.

A world belongs to the process that connected it. In a forked child (a worker
of a DataLoader) every call raises PcclError, and nothing that the child does
reaches the run of its parent.
"""
import atexit
import os
import queue
import threading
import time
import weakref

from pccl import _address, _native
from pccl.errors import (MasterConnectionFailed, PCCLError, RankConnectionLost,
                         TimedOut)

from .torch_errors import PcclError, calling, destroyed, translated
from .torch_messages import Inbox

SLICE = 0.1  # seconds: how often a wait takes messages that have come
# Operations not awaited: a group has 256 tags, and the library room for 256
# operations in scopes.
IN_FLIGHT_MAX = 192


class View:
    """The members at one moment; ids in the order of the ranks."""

    __slots__ = ("epoch", "rank", "ids", "hints")

    def __init__(self, epoch, rank, ids, hints):
        self.epoch, self.rank, self.ids, self.hints = epoch, rank, ids, hints

    @property
    def size(self):
        return len(self.ids)


class Operation:
    """One collective under way.

    start    launches it, now and again after a loss
    elastic  repeated after a loss; else group.member_lost() is called
    """

    __slots__ = ("world", "start", "elastic", "group", "native", "lock",
                 "finished", "failure")

    def __init__(self, world, start, elastic, group):
        self.world, self.start = world, start
        self.elastic, self.group = elastic, group
        self.lock = threading.Lock()
        self.finished, self.failure = False, None
        self.launch()

    def launch(self):
        while True:
            try:
                self.native = self.start()
                return
            except PCCLError as failure:
                if not self._again(failure):
                    raise translated(failure, "launch") from None

    def _again(self, failure):
        if not isinstance(failure, RankConnectionLost):
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
            with calling("collective"):
                if not self.finished and self.native.done():
                    self._await(None)
            return self.finished
        finally:
            self.lock.release()

    def wait(self, timeout=None):
        """Waits for the end, `timeout` seconds at most; then the operation
        fails on all members. Raises what it failed with."""
        if not self.finished:
            with self.lock:
                if not self.finished:
                    self._await(timeout)
        if self.failure:
            raise self.failure

    def _await(self, timeout):
        end = time.monotonic() + timeout if timeout else None
        while not self.finished:
            try:
                self.native.result(SLICE)
                self.finished = True
            except TimedOut:
                self.world.inbox.poll()
                if end and time.monotonic() > end:
                    with calling("collective"):
                        self.world.comm.fail(self.native.tag)
                    end = None
            except PCCLError as failure:
                self._failed(failure)
        self.start = self.native = None

    def _failed(self, failure):
        try:
            if self._again(failure):
                self.launch()
                return
            self.failure = translated(failure, "collective")
        except PcclError as again:
            self.failure = again
        self.finished = True


class World:
    """A connected communicator."""

    def __init__(self, address, rank_hint=-1, peer_group=0):
        self.pid = os.getpid()
        self.address = address
        self._view = None
        self._flying = []
        self._flying_lock = threading.Lock()
        self._futures, self._completer = None, None
        self.master = None
        with calling(f"the coordinator {address}"):
            host, port = _address.resolve(address)
            self.comm = _native.Comm(host, port, peer_group,
                                     rank_hint=rank_hint)
        self.inbox = Inbox(self)
        _worlds.add(self)

    def connect(self, patience=60.0):
        """Joins the run, and waits until its members admit this process. A
        coordinator that is not there yet is tried again for `patience`
        seconds."""
        end = time.monotonic() + patience
        with calling(f"connecting to {self.address}"):
            while True:
                try:
                    self.comm.connect()
                    return
                except MasterConnectionFailed:
                    if time.monotonic() > end:
                        raise
                time.sleep(0.05)

    # ------------------------------------------------------- membership

    @property
    def view(self):
        """The members as this process has been told of them."""
        return self._view or self._read_view()

    def _read_view(self):
        with calling("view"):
            epoch, rank, members = self.comm._members()
        self._view = View(epoch, rank, [m.id for m in members],
                          [m.hint for m in members])
        return self._view

    def forget_view(self):
        """The library has reported a loss: the view is read anew."""
        self._view = None

    def pending(self):
        """Whether newcomers wait. Collective; all get the same answer."""
        with calling("pending"):
            return self.comm.peers_pending()

    def update(self):
        """Admits newcomers and takes losses into account. Collective."""
        self.reap(0)
        with calling("update"):
            self.comm.update_topology()
        self.forget_view()
        return self.view

    # ------------------------------------------------------- operations

    def launch(self, start, elastic, group=None):
        """Starts a collective and remembers it until it is over."""
        if self.comm.closed:
            raise destroyed("the process group")
        self.reap(IN_FLIGHT_MAX)
        operation = Operation(self, start, elastic, group)
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
            try:
                operation.wait()
            except PcclError:
                pass  # its Work raises it
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
        if self.comm.closed or os.getpid() != self.pid:
            return
        self.comm.close()  # ends the calls of other threads
        if self._completer and self._completer is not \
                threading.current_thread():
            self._futures.put(None)
            self._completer.join()
        if self.master:
            self.master.close()


class Master(_native.Master):
    """A coordinator in a thread of this process."""

    def __new__(cls, host="0.0.0.0"):
        with calling("coordinator"):
            self = super().__new__(cls, *_address.resolve(f"{host}:0"))
            self.run()
        return self


_worlds: weakref.WeakSet[World] = weakref.WeakSet()


@atexit.register
def _close_all():
    for world in list(_worlds):
        world.close()
