"""The names of PrimeIntellect's package pccl 1.0, for programs made for it.

Same classes, arguments and results; bad arguments raise the exceptions of
pccl.errors, whose base class is PCCLError. What is new here: DataType.INT16,
addresses with names and IPv6, arrays of any library.
"""
from __future__ import annotations

import logging
import time
from enum import Enum
from typing import Any

from pccl import _address, _native
from pccl.errors import (
    InvalidArgument, MasterConnectionFailed, PCCLError, RankConnectionLost,
    Result, TooFewPeers)
from pccl.run import Attribute, Master, ReduceInfo, ReduceOp, Run

__all__ = [
    "Communicator", "MasterNode", "ReduceOp", "Attribute",
    "SharedStateSyncStrategy", "DataType", "DeviceType", "DistributionHint",
    "QuantizationAlgorithm", "ReduceOperandDescriptor", "QuantizationOptions",
    "ReduceDescriptor", "TensorInfo", "SharedState", "SharedStateSyncInfo",
    "ReduceInfo", "ReduceOpDescriptor", "AsyncReduceHandle", "PCCLError",
    "Result",
]


class SharedStateSyncStrategy(Enum):
    """Whose content wins."""

    ENFORCE_POPULAR = 0
    RECEIVE_ONLY = 1
    SEND_ONLY = 2


class DataType(Enum):
    """Types of elements."""

    UINT8 = 0
    INT8 = 1
    INT16 = 2
    UINT16 = 3
    UINT32 = 4
    INT32 = 5
    UINT64 = 6
    INT64 = 7
    FLOAT16 = 8
    BFLOAT16 = 9
    FLOAT = 10
    DOUBLE = 11

    @property
    def _common_name(self) -> str:
        return {"FLOAT": "float32", "DOUBLE": "float64"}.get(
            self.name, self.name.lower())

    @classmethod
    def _of(cls, name: str) -> DataType:
        for datatype in cls:
            if datatype._common_name == name:
                return datatype
        raise ValueError(f"Unsupported dtype: {name}")

    def to_torch_dtype(self) -> Any:
        """The dtype of torch."""
        import torch
        return getattr(torch, self._common_name)

    def to_numpy_dtype(self) -> Any:
        """The dtype of numpy; bfloat16 is that of ml_dtypes."""
        import numpy
        if self is DataType.BFLOAT16:
            import ml_dtypes
            return numpy.dtype(ml_dtypes.bfloat16)
        return numpy.dtype(self._common_name)

    @classmethod
    def from_torch_dtype(cls, dtype: Any) -> DataType:
        """The type of a dtype of torch."""
        return cls._of(str(dtype).removeprefix("torch."))

    @classmethod
    def from_numpy_dtype(cls, dtype: Any) -> DataType:
        """The type of a dtype of numpy."""
        import numpy
        return cls._of(numpy.dtype(dtype).name)


class DeviceType(Enum):
    """Where memory is."""

    CPU = 0
    CUDA = 1

    @classmethod
    def from_torch_device_type(cls, device_type: str) -> DeviceType | None:
        """The device of torch's "cpu" or "cuda"; None for others."""
        return {"cpu": cls.CPU, "cuda": cls.CUDA}.get(device_type)


class DistributionHint(Enum):
    """Accepted and not used: quantization follows the data."""

    NONE = 0
    NORMAL = 1
    UNIFORM = 2


class QuantizationAlgorithm(Enum):
    """How codes are spread."""

    NONE = 0
    MIN_MAX = 1
    ZERO_POINT_SCALE = 2


class ReduceOperandDescriptor:
    """The type of the elements."""

    def __init__(self, datatype: DataType, distribution_hint: DistributionHint
                 = DistributionHint.NONE) -> None:
        self.datatype = datatype
        self.distribution_hint = distribution_hint


class QuantizationOptions:
    """The type of the codes, and the algorithm."""

    def __init__(self, quantized_datatype: DataType = DataType.UINT8,
                 algorithm: QuantizationAlgorithm
                 = QuantizationAlgorithm.MIN_MAX) -> None:
        self.quantized_datatype = quantized_datatype
        self.algorithm = algorithm


class ReduceDescriptor:
    """One all-reduce but its memory."""

    def __init__(self, count: int, op: ReduceOp, tag: int,
                 operand_descriptor: ReduceOperandDescriptor,
                 quantization_options: QuantizationOptions) -> None:
        self.count = count
        self.op = op
        self.tag = tag
        self.operand_descriptor = operand_descriptor
        self.quantization_options = quantization_options


def _same_arrays(send: Any, recv: Any) -> None:
    first, second = _native.describe(send), _native.describe(recv)
    if first[1:] != second[1:]:
        raise InvalidArgument(
            Result.INVALID_ARGUMENT, "ReduceOpDescriptor",
            f"send has {first[1]} elements of {first[2]} and recv "
            f"{second[1]} of {second[2]}")


class ReduceOpDescriptor:
    """One all-reduce for all_reduce_multiple_with_retry.

    Made from addresses, the caller keeps the memory; from arrays, this does.
    """

    def __init__(self, sendbuf_ptr: int, recvbuf_ptr: int,
                 reduce_descriptor: ReduceDescriptor) -> None:
        self.sendbuf_ptr = sendbuf_ptr
        self.recvbuf_ptr = recvbuf_ptr
        self.reduce_descriptor = reduce_descriptor
        self._arrays: tuple[Any, Any] | None = None

    @staticmethod
    def _from(send: Any, recv: Any, descriptor: ReduceDescriptor
              ) -> ReduceOpDescriptor:
        _same_arrays(send, recv)
        made = ReduceOpDescriptor(_native.describe(send)[0],
                                  _native.describe(recv)[0], descriptor)
        made._arrays = (send, recv)
        return made

    @staticmethod
    def from_torch(send: Any, recv: Any, reduce_descriptor: ReduceDescriptor
                   ) -> ReduceOpDescriptor:
        """Of two tensors in host memory."""
        return ReduceOpDescriptor._from(send, recv, reduce_descriptor)

    @staticmethod
    def from_numpy(send: Any, recv: Any, reduce_descriptor: ReduceDescriptor
                   ) -> ReduceOpDescriptor:
        """Of two arrays."""
        return ReduceOpDescriptor._from(send, recv, reduce_descriptor)

    def _memory(self) -> tuple[Any, Any]:
        if self._arrays:
            return self._arrays
        d = self.reduce_descriptor
        rest = (d.count, d.operand_descriptor.datatype.value, 0)
        return (self.sendbuf_ptr, *rest), (self.recvbuf_ptr, *rest)


class TensorInfo:
    """A tensor of the shared state.

    Made from an address, the caller keeps the memory; from a tensor, this
    does.
    """

    def __init__(self, name: str, data_ptr: int, *, numel: int,
                 dtype: DataType, device_type: DeviceType,
                 allow_content_inequality: bool) -> None:
        if data_ptr == 0:
            raise ValueError("Invalid data pointer: nullptr")
        self.name = name
        self.data_ptr = data_ptr
        self.numel = numel
        self.dtype = dtype
        self.device_type = device_type
        self.allow_content_inequality = allow_content_inequality
        self._tensor: Any = None

    @classmethod
    def _from(cls, tensor: Any, name: str, device: DeviceType, allow: bool
              ) -> TensorInfo:
        address, count, dtype = _native.describe(tensor)
        made = cls(name, address, numel=count, dtype=DataType._of(dtype),
                   device_type=device, allow_content_inequality=allow)
        made._tensor = tensor
        return made

    @classmethod
    def from_torch(cls, tensor: Any, name: str, *,
                   allow_content_inequality: bool = False) -> TensorInfo:
        """Of a contiguous tensor."""
        device = DeviceType.from_torch_device_type(tensor.device.type)
        return cls._from(tensor, name, device or DeviceType.CPU,
                         allow_content_inequality)

    @classmethod
    def from_numpy(cls, tensor: Any, name: str, *,
                   allow_content_inequality: bool = False) -> TensorInfo:
        """Of a contiguous array."""
        return cls._from(tensor, name, DeviceType.CPU,
                         allow_content_inequality)

    def _entry(self) -> tuple[str, Any, bool]:
        memory = self._tensor
        if memory is None:
            memory = (self.data_ptr, self.numel, self.dtype.value,
                      self.device_type.value)
        return self.name, memory, self.allow_content_inequality


class SharedState:
    """Tensors that all members hold, and their revision."""

    def __init__(self, tensor_infos: list[TensorInfo]) -> None:
        if not tensor_infos:
            raise ValueError("At least one tensor info must be provided")
        self._infos = list(tensor_infos)
        self.revision = 0

    def push_revision(self) -> None:
        """One more."""
        self.revision += 1


class SharedStateSyncInfo:
    """What a synchronization moved."""

    def __init__(self, tx_bytes: int, rx_bytes: int) -> None:
        self.tx_bytes = tx_bytes
        self.rx_bytes = rx_bytes


class AsyncReduceHandle:
    """An all-reduce under way."""

    def __init__(self, operation: _native.Operation) -> None:
        self._operation = operation
        self._outcome: tuple[bool, int, ReduceInfo] | None = None

    def wait(self) -> tuple[bool, int, ReduceInfo]:
        """Waits; whether it succeeded, its result, and what it did."""
        if self._outcome is None:
            try:
                info = self._operation.result()
                self._outcome = True, Result.SUCCESS.value, info
            except PCCLError as error:
                self._outcome = False, error.result.value, ReduceInfo(
                    (0, 0, 0, 0))
        return self._outcome


class Communicator:
    """A communicator of PCCL 1.0."""

    def __init__(self, address: str, peer_group: int = 0,
                 p2p_connection_pool_size: int = 0) -> None:
        host, port = _address.resolve(address)
        self._run = Run(host, port, peer_group, p2p_connection_pool_size)

    def __del__(self) -> None:
        if hasattr(self, "_run"):
            self._run.close()

    def get_attribute(self, attribute: Attribute) -> int:
        """A number of the world."""
        return self._run.attribute(attribute)

    def connect(self, n_attempts: int = 5) -> None:
        """Joins the run; tries n_attempts times, a second apart."""
        for attempt in range(1, n_attempts + 1):
            try:
                self._run.connect()
                logging.info("Connected to the master node")
                return
            except MasterConnectionFailed as error:
                logging.error("Failed to connect to the master node "
                              "(Attempt %d/%d): %s", attempt, n_attempts,
                              error)
                if attempt == n_attempts:
                    raise
                time.sleep(1)

    def update_topology(self) -> None:
        """Admits newcomers."""
        self._run.update_topology()

    def are_peers_pending(self) -> bool:
        """Whether newcomers wait."""
        return self._run.peers_pending()

    def optimize_topology(self) -> None:
        """Finds a better ring."""
        self._run.optimize()

    def sync_shared_state(self, shared_state: SharedState,
                          strategy: SharedStateSyncStrategy
                          = SharedStateSyncStrategy.ENFORCE_POPULAR
                          ) -> SharedStateSyncInfo:
        """Makes the tensors of all members equal."""
        entries = [info._entry() for info in shared_state._infos]
        revision, sent, received = self._run._sync(
            entries, shared_state.revision, strategy.value)
        shared_state.revision = revision
        return SharedStateSyncInfo(sent, received)

    def _keywords(self, send: Any, op: ReduceOp, tag: int,
                  operand: ReduceOperandDescriptor | None,
                  options: QuantizationOptions | None) -> dict[str, Any]:
        if operand is not None:
            name = _native.describe(send)[2]
            if operand.datatype._common_name != name:
                raise InvalidArgument(
                    Result.INVALID_ARGUMENT, "all_reduce",
                    f"the descriptor says {operand.datatype.name} and send "
                    f"is of {name}")
        if self._run.attribute(Attribute.LOCAL_WORLD_SIZE) < 2:
            raise TooFewPeers(Result.TOO_FEW_PEERS, "all_reduce",
                              "the world is this peer alone")
        quantize = None if options is None else (
            options.quantized_datatype.value, options.algorithm.value)
        return {"op": op.value, "tag": tag, "quantize": quantize}

    def all_reduce(self, send: Any, recv: Any, *, op: ReduceOp, tag: int = 0,
                   operand_descriptor: ReduceOperandDescriptor | None = None,
                   quantization_options: QuantizationOptions | None = None
                   ) -> ReduceInfo:
        """Reduces send of all members into recv."""
        return self._run.all_reduce(send, recv, **self._keywords(
            send, op, tag, operand_descriptor, quantization_options))

    def all_reduce_async(
            self, send: Any, recv: Any, *, op: ReduceOp, tag: int = 0,
            operand_descriptor: ReduceOperandDescriptor | None = None,
            quantization_options: QuantizationOptions | None = None
            ) -> AsyncReduceHandle:
        """Starts an all_reduce."""
        return AsyncReduceHandle(self._run.all_reduce_async(
            send, recv, **self._keywords(
                send, op, tag, operand_descriptor, quantization_options)))

    def _start(self, descriptor: ReduceOpDescriptor) -> _native.Operation:
        send, recv = descriptor._memory()
        d = descriptor.reduce_descriptor
        options = d.quantization_options
        return self._run.all_reduce_async(
            send, recv, op=d.op.value, tag=d.tag,
            quantize=(options.quantized_datatype.value,
                      options.algorithm.value))

    def _round(self, todo: list[ReduceOpDescriptor], most: int,
               done: list[ReduceInfo]) -> list[ReduceOpDescriptor]:
        """Runs all; those that a loss ended are returned."""
        flying: list[tuple[ReduceOpDescriptor, _native.Operation]] = []
        again: list[ReduceOpDescriptor] = []
        failed: PCCLError | None = None

        def land() -> None:
            nonlocal failed
            descriptor, operation = flying.pop(0)
            try:
                done.append(operation.result())
            except RankConnectionLost:
                again.append(descriptor)
            except PCCLError as error:
                failed = failed or error

        for descriptor in todo:
            while len(flying) >= most:
                land()
            if again or failed:
                again.append(descriptor)
                continue
            try:
                flying.append((descriptor, self._start(descriptor)))
            except RankConnectionLost:
                again.append(descriptor)
        while flying:
            land()
        if failed:
            raise failed
        return again

    def all_reduce_multiple_with_retry(
            self, descriptors: list[ReduceOpDescriptor], *,
            max_in_flight: int = 4) -> ReduceInfo:
        """Runs the operations, max_in_flight at a time, and those that a loss
        ended again until all are done or the world is too small."""
        if not descriptors or max_in_flight < 1:
            raise InvalidArgument(
                Result.INVALID_ARGUMENT, "all_reduce_multiple_with_retry",
                "there is no operation, or max_in_flight is less than 1")
        todo, done = list(descriptors), list[ReduceInfo]()
        while todo:
            if self._run.attribute(Attribute.LOCAL_WORLD_SIZE) < 2:
                raise TooFewPeers(
                    Result.TOO_FEW_PEERS, "all_reduce_multiple_with_retry",
                    "the world is this peer alone")
            todo = self._round(todo, max_in_flight, done)
        world = done[-1].world_size
        return ReduceInfo((world, sum(info.tx_bytes for info in done),
                           sum(info.rx_bytes for info in done), world))


class MasterNode:
    """A master of PCCL 1.0: its end waits until it was interrupted."""

    def __init__(self, listen_address: str) -> None:
        self._master = Master(listen_address)
        self._ran = False

    def run(self) -> None:
        """Starts serving; does not block."""
        self._master.run()
        self._ran = True

    def interrupt(self) -> None:
        """Asks it to stop."""
        self._master.interrupt()

    def __del__(self) -> None:
        if not hasattr(self, "_master"):
            return
        try:
            if self._ran:
                self._master.join()
        finally:
            self._master.close()
