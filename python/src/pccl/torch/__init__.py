# __init__.py - pccl.torch: torch.distributed that survives its members.
"""The torch.distributed backend "pccl", and elastic training with it.

    import torch.distributed as dist
    import pccl.torch                      # makes the backend known

    dist.init_process_group("pccl")

Under pccl-master --elastic the default group is the view of the run. When a
member dies, the survivors repeat the sums and barriers under way; the others'
calls raise MemberLost once. update() admits newcomers. Under torchrun and
mp.spawn groups are fixed: calls raise MemberLost until reconfigure().

Tensors on the CPU are used where they are, without a copy. Those on a GPU pass
through pinned host memory.
"""
from .ft import Manager
from .torch_diloco import DiLoCo
from .torch_elastic import (DistributedDataParallel, average, reconfigure,
                            update)
from .torch_errors import (InvalidArgument, MasterLost, MemberLost, PcclError,
                           TooFewMembers)
from .torch_group import ProcessGroup
from .torch_rendezvous import register
from .torch_state import synchronize

__all__ = ["DiLoCo", "DistributedDataParallel", "InvalidArgument", "Manager",
           "MasterLost", "MemberLost", "PcclError", "ProcessGroup",
           "TooFewMembers", "average", "reconfigure", "register",
           "synchronize", "update"]

register()
