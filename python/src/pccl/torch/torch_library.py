# torch_library.py - libpccl.so as the torch backend calls it, by ctypes.
"""The C interface: structures, functions and errors of include/pccl.h.

Only this module touches ctypes. Every call releases the interpreter's lock.
"""
import ctypes
import os
import pathlib

import torch.distributed as dist

SUCCESS = 0
INVALID_ARGUMENT = 3
INVALID_USAGE = 4
TOO_FEW_PEERS = 5
MASTER_LOST = 6
MEMBER_LOST = 8
PENDING = 10
FAILED_BY_MEMBER = 13

ALL_REDUCE, BROADCAST, BARRIER, ALL_GATHER, ALL_TO_ALL = range(5)
SUM, AVG, PROD, MAX, MIN = range(5)
EVENT_NONE, EVENT_MESSAGE, EVENT_SENT, EVENT_RECEIVED, EVENT_ROOM, \
    EVENT_LOST = range(6)
MESSAGE_MAX = 64 * 1024
HEADER_MAX = 64


class PcclError(dist.DistBackendError):
    """A call of the library failed; `result` is its pcclResult_t."""

    def __init__(self, result, text):
        super().__init__(text)
        self.result = result


class MemberLost(PcclError):
    """A member that the call needs is gone, and the call had no effect."""


class MasterLost(PcclError):
    """This process is out of the run: evicted, or the coordinator is gone."""


class InvalidArgument(PcclError, ValueError):
    """An argument is wrong here, or the members disagree on it."""


class Address(ctypes.Structure):
    _fields_ = [("protocol", ctypes.c_int), ("ipv4", ctypes.c_uint8 * 4),
                ("ipv6", ctypes.c_uint8 * 16), ("port", ctypes.c_uint16)]


class CreateParams(ctypes.Structure):
    _fields_ = [("master", Address), ("peer_group", ctypes.c_uint32),
                ("pool", ctypes.c_uint32)]


class CommOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("rank_hint", ctypes.c_int32),
                ("deadline_ms", ctypes.c_uint32),
                ("evicts_nobody", ctypes.c_uint32)]


class Member(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("host", ctypes.c_uint64),
                ("rank", ctypes.c_int32), ("hint", ctypes.c_int32)]


class Argument(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("text", ctypes.c_char_p),
                ("values", ctypes.POINTER(ctypes.c_uint64)),
                ("value_count", ctypes.c_size_t)]


class Collective(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("kind", ctypes.c_int),
                ("tag", ctypes.c_uint64), ("sendbuf", ctypes.c_void_p),
                ("recvbuf", ctypes.c_void_p), ("count", ctypes.c_size_t),
                ("datatype", ctypes.c_int), ("op", ctypes.c_int),
                ("root", ctypes.c_int), ("user_digest", ctypes.c_uint64),
                ("view_epoch", ctypes.c_uint64),
                ("send_bytes", ctypes.c_void_p),
                ("send_displs", ctypes.c_void_p),
                ("recv_bytes", ctypes.c_void_p),
                ("recv_displs", ctypes.c_void_p),
                ("members", ctypes.c_void_p),
                ("member_count", ctypes.c_size_t),
                ("arguments", ctypes.c_void_p),
                ("argument_count", ctypes.c_size_t)]


class Handle(ctypes.Structure):
    _fields_ = [("comm", ctypes.c_void_p), ("tag", ctypes.c_uint64)]


class ReduceInfo(ctypes.Structure):
    _fields_ = [("world", ctypes.c_uint32), ("tx_bytes", ctypes.c_uint64),
                ("rx_bytes", ctypes.c_uint64)]


class TensorInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p),
                ("count", ctypes.c_size_t), ("datatype", ctypes.c_int),
                ("device", ctypes.c_int), ("may_differ", ctypes.c_bool)]


class SharedState(ctypes.Structure):
    _fields_ = [("revision", ctypes.c_uint64), ("count", ctypes.c_size_t),
                ("infos", ctypes.POINTER(TensorInfo))]


class SyncInfo(ctypes.Structure):
    _fields_ = [("tx_bytes", ctypes.c_size_t), ("rx_bytes", ctypes.c_size_t)]


class Event(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("result", ctypes.c_int),
                ("member", ctypes.c_uint64), ("key", ctypes.c_uint64),
                ("header", ctypes.c_void_p), ("body", ctypes.c_void_p),
                ("header_size", ctypes.c_size_t),
                ("body_size", ctypes.c_size_t), ("owned", ctypes.c_void_p)]


POINTER = ctypes.c_void_p
SIGNATURES = {
    "pcclInit": (),
    "pcclCreateCommunicator": (POINTER, POINTER),
    "pcclDestroyCommunicator": (POINTER,),
    "pcclSetOptions": (POINTER, POINTER),
    "pcclConnect": (POINTER,),
    "pcclUpdateTopology": (POINTER,),
    "pcclArePeersPending": (POINTER, POINTER),
    "pcclGetView": (POINTER, POINTER, POINTER, POINTER, POINTER,
                    ctypes.c_size_t),
    "pcclGetLastError": (POINTER, ctypes.c_char_p, ctypes.c_size_t),
    "pcclCollectiveAsync": (POINTER, POINTER, POINTER),
    "pcclCollective": (POINTER, POINTER, POINTER),
    "pcclAwaitAsyncReduce": (POINTER, POINTER),
    "pcclWaitAsync": (POINTER, ctypes.c_int, POINTER),
    "pcclTestAsync": (POINTER, POINTER),
    "pcclFailCollective": (POINTER, ctypes.c_uint64),
    "pcclSynchronizeSharedState": (POINTER, POINTER, ctypes.c_int, POINTER),
    "pcclPostMessage": (POINTER, ctypes.c_uint64, POINTER, ctypes.c_size_t,
                        POINTER, ctypes.c_size_t),
    "pcclSendBulk": (POINTER, ctypes.c_uint64, ctypes.c_uint64, POINTER,
                     ctypes.c_size_t),
    "pcclExpectBulk": (POINTER, ctypes.c_uint64, ctypes.c_uint64, POINTER,
                       ctypes.c_size_t),
    "pcclCancelBulk": (POINTER, ctypes.c_uint64, ctypes.c_uint64),
    "pcclWithdrawBulk": (POINTER, ctypes.c_uint64, ctypes.c_uint64),
    "pcclTakeEvent": (POINTER, ctypes.c_int, POINTER),
    "pcclReleaseEvent": (POINTER, POINTER),
    "pcclCreateMaster": (Address, POINTER),
    "pcclRunMaster": (POINTER,),
    "pcclGetMasterPort": (POINTER, POINTER),
    "pcclInterruptMaster": (POINTER,),
    "pcclDestroyMaster": (POINTER,),
}


def library_path():
    """Where libpccl.so is: LIBPCCL, the package, or the loader's path."""
    named = os.environ.get("LIBPCCL")
    if named:
        return named
    prefix = pathlib.Path(__file__).parent.parent / "_prefix" / "lib"
    for folder in (prefix / "mpich-abi", prefix):  # of the wheel, of a build
        if (folder / "libpccl.so.0").exists():
            return str(folder / "libpccl.so.0")
    return "libpccl.so.0"


def _load():
    loaded = ctypes.CDLL(library_path())
    for name, arguments in SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype = ctypes.c_int
        function.argtypes = arguments
    loaded.pcclGetErrorString.restype = ctypes.c_char_p
    loaded.pcclGetErrorString.argtypes = (ctypes.c_int,)
    return loaded


LIB = _load()


def error(result, comm=None, doing=""):
    """The exception for a result, with the library's reason in its text."""
    text = LIB.pcclGetErrorString(result).decode()
    reason = ctypes.create_string_buffer(256)
    if comm and LIB.pcclGetLastError(comm, reason, 256) == SUCCESS:
        if reason.value:
            text += ": " + reason.value.decode(errors="replace")
    kind = {MEMBER_LOST: MemberLost, MASTER_LOST: MasterLost,
            INVALID_ARGUMENT: InvalidArgument}.get(result, PcclError)
    return kind(result, f"{doing}: {text}" if doing else text)


def check(result, comm=None, doing=""):
    if result != SUCCESS:
        raise error(result, comm, doing)
