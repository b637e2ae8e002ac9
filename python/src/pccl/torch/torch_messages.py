# torch_messages.py - send and receive between two members of a group.
"""Inbox: matches messages with the receives that a program has posted.

Small tensors travel in the message. A large one is announced by a message and
goes straight from the sender's memory into the receiver's once the receive is
posted. Between two members, messages of one group and tag match in the order
in which they were sent.
"""
import contextlib
import ctypes
import struct
import threading
import time

from pccl.errors import PCCLError, PendingAsyncOps, Result, error_class

from .torch_errors import (InvalidArgument, MemberLost, PcclError, calling,
                           translated)
from .torch_tensors import memory_of

# group, tag, bytes of the tensor, key of the bulk transfer or 0
HEADER = struct.Struct("<QqQQ")
INLINE_MAX = 32 * 1024
POLL = 0.02  # seconds, of a thread that waits while others wait too


class Transfer:
    """One send or receive; waits as an operation of a Work does."""

    def __init__(self, inbox, member, group, tag, memory):
        self.inbox, self.member = inbox, member
        self.group, self.tag, self.memory = group, tag, memory
        self.size = memory.numel() * memory.element_size()
        self.finished, self.failure, self.rank_of = False, None, None

    def end(self, failure=None):
        self.finished, self.failure = True, failure

    def done(self):
        if not self.finished:
            self.inbox.poll()
        return self.finished

    def wait(self, timeout=None):
        end = time.monotonic() + timeout if timeout else None
        while not self.finished:
            self.inbox.take(POLL)
            if end and time.monotonic() > end and not self.finished:
                self.inbox.give_up(self)
                raise PcclError("message: time limit exceeded",
                                Result.OPERATION_FAILED)
        if self.failure:
            raise self.failure

    def source_rank(self):
        return self.rank_of(self.member) if self.rank_of else -1


class Inbox:
    """The messages of one world. Any thread may call."""

    def __init__(self, world):
        self.world = world
        self.lock = threading.Lock()
        self.arrived = []   # (member, group, tag, size, key, body)
        self.expected = []  # receives without a message
        self.sending = {}   # (member, key): Transfer
        self.receiving = {}
        self.lost = set()
        self.last_key = 0

    def send(self, member, group, tag, memory):
        """Starts a send of host memory to the member of this id."""
        transfer = Transfer(self, member, group, tag, memory)
        inline = transfer.size <= INLINE_MAX
        with self.lock:
            self.last_key += 1
            key = self.last_key
        header = HEADER.pack(group, tag, transfer.size, 0 if inline else key)
        self._post(member, header, memory_of(memory) if inline else b"")
        if inline:
            transfer.end()
            return transfer
        with self.lock:
            with calling("send"):
                self.world.comm.send_bulk(member, key, memory_of(memory))
            self.sending[member, key] = transfer
        return transfer

    def _post(self, member, header, body):
        with calling("send"):
            while True:
                try:
                    return self.world.comm.post(member, body, header)
                except PendingAsyncOps:
                    self.take(POLL)

    def receive(self, member, group, tag, memory):
        """Starts a receive from the member of this id, or from any (None)."""
        transfer = Transfer(self, member, group, tag, memory)
        with self.lock:
            for index, message in enumerate(self.arrived):
                if self._fits(transfer, message):
                    del self.arrived[index]
                    self._deliver(transfer, message)
                    return transfer
            if member in self.lost or \
                    member is not None and member not in self.world.view.ids:
                transfer.end(MemberLost("receive: the sender is gone"))
            else:
                self.expected.append(transfer)
        return transfer

    @staticmethod
    def _fits(transfer, message):
        return transfer.member in (None, message[0]) and \
            (transfer.group, transfer.tag) == message[1:3]

    def _deliver(self, transfer, message):
        member, _, _, size, key, body = message
        transfer.member = member
        if key:
            # A wrong size is an error of both sides, by the library.
            try:
                self.world.comm.expect_bulk(member, key,
                                            memory_of(transfer.memory))
                self.receiving[member, key] = transfer
            except PCCLError as failure:
                transfer.end(translated(failure, "receive"))
        elif size != transfer.size:
            transfer.end(InvalidArgument(
                f"receive: the message has {size} bytes, the tensor "
                f"{transfer.size}"))
        else:
            ctypes.memmove(transfer.memory.data_ptr(), body, size)
            transfer.end()

    def give_up(self, transfer):
        """Cancels what has not happened within its time limit."""
        with self.lock:
            if transfer in self.expected:
                self.expected.remove(transfer)
            comm = self.world.comm
            for pending, cancel in ((self.receiving, comm.cancel_bulk),
                                    (self.sending, comm.withdraw_bulk)):
                for where in [w for w, t in pending.items() if t is transfer]:
                    with contextlib.suppress(PCCLError):  # on its way
                        cancel(*where)
                        del pending[where]

    def poll(self):
        """Takes the events that are there."""
        while self.take(0):
            pass

    def take(self, timeout):
        """Takes one event within `timeout` seconds; whether there was one."""
        with self.lock:
            try:
                event = self.world.comm.take_event(timeout)
            except PCCLError as failure:
                self._all_fail(translated(failure, "message"))
                return False
            if event is None:
                return False
            self._handle(event)
        return True

    def _handle(self, event):
        where = event.member, event.key
        if event.kind == "message":
            self._arrive(event)
        elif event.kind in ("sent", "received"):
            pending = self.sending if event.kind == "sent" else self.receiving
            transfer = pending.pop(where, None)
            if transfer:
                transfer.end(translated(
                    error_class(event.result)(event.result), "message")
                    if event.result else None)
        elif event.kind == "lost":
            self._lose(event.member)

    def _arrive(self, event):
        if len(event.header) != HEADER.size:
            return  # not one of ours: the program may post its own
        group, tag, size, key = HEADER.unpack(event.header)
        if not key and size != len(event.body):
            return
        message = event.member, group, tag, size, key, event.body
        for transfer in self.expected:
            if self._fits(transfer, message):
                self.expected.remove(transfer)
                self._deliver(transfer, message)
                return
        self.arrived.append(message)

    def _lose(self, member):
        self.lost.add(member)
        failure = MemberLost("receive: the sender was lost before it sent")
        for transfer in [t for t in self.expected if t.member == member]:
            self.expected.remove(transfer)
            transfer.end(failure)

    def _all_fail(self, failure):
        everything = self.expected + list(self.sending.values()) + \
            list(self.receiving.values())
        self.expected, self.sending, self.receiving = [], {}, {}
        for transfer in everything:
            transfer.end(failure)
