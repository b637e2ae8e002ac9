"""Fault-tolerant, elastic collective communication.

    import pccl
    with pccl.connect() as run:          # started by pccl-master
        while not finished:
            if run.update():             # newcomers join here
                run.sync(state)          # and get the state
            run.all_reduce(grad, op="avg", retry=True)

A second set of names is that of PrimeIntellect's package of the same name
(Communicator, SharedState, ...), whose programs run as they are.
"""
from __future__ import annotations

from pccl import _cuda as cuda, train
from pccl._pccl import (
    AsyncReduceHandle, Communicator, DataType, DeviceType, DistributionHint,
    MasterNode, QuantizationAlgorithm, QuantizationOptions, ReduceDescriptor,
    ReduceOpDescriptor, ReduceOperandDescriptor, SharedState,
    SharedStateSyncInfo, SharedStateSyncStrategy, TensorInfo)
from pccl._programs import get_include, get_library_dir
from pccl._version import __version__
from pccl.errors import (
    Cancelled, FileError, InternalError, InvalidArgument, InvalidUsage,
    MasterConnectionFailed, NoSharedStateAvailable, NotInitialized,
    OperationFailed, PCCLError, PendingAsyncOps, RankConnectionFailed,
    RankConnectionLost, Result, TimedOut, TooFewPeers,
    TopologyOptimizationFailed, UpdateTopologyFailed)
from pccl.partial import (
    Part, PartialInfo, PartialOperation, PrefetchInfo, Progress)
from pccl.run import (
    Attribute, Checkpoint, Event, Master, Member, Operation, ReduceInfo,
    ReduceOp, Run, SyncInfo, connect, prefetch, quantization)

__all__ = [
    "connect", "prefetch", "Run", "Part", "PartialInfo", "PartialOperation",
    "PrefetchInfo", "Progress", "train",
    "Master", "Operation", "Member", "Event", "SyncInfo",
    "Checkpoint",
    "quantization", "get_include", "get_library_dir",
    "cuda", "Communicator", "MasterNode", "ReduceOp", "Attribute",
    "SharedStateSyncStrategy", "DataType", "DeviceType", "DistributionHint",
    "QuantizationAlgorithm", "ReduceOperandDescriptor", "QuantizationOptions",
    "ReduceDescriptor", "TensorInfo", "SharedState", "SharedStateSyncInfo",
    "ReduceInfo", "ReduceOpDescriptor", "AsyncReduceHandle", "PCCLError",
    "Result", "NotInitialized", "InternalError", "InvalidArgument",
    "InvalidUsage", "TooFewPeers", "MasterConnectionFailed",
    "RankConnectionFailed", "RankConnectionLost", "NoSharedStateAvailable",
    "PendingAsyncOps", "UpdateTopologyFailed", "TopologyOptimizationFailed",
    "OperationFailed", "Cancelled", "TimedOut", "FileError", "__version__",
]
