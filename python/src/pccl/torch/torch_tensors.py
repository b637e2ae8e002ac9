# torch_tensors.py - tensors as memory that the library reads and writes.
"""Checks of tensors, their types, and staging of those on a device."""
import torch

SUM, AVG, PROD, MAX, MIN = range(5)

DATATYPES = {torch.uint8, torch.int8, torch.int16, torch.uint16, torch.uint32,
             torch.int32, torch.uint64, torch.int64, torch.float16,
             torch.bfloat16, torch.float32, torch.float64}
# Devices whose tensors the library reads where they are.
DIRECT = {"cpu"}


def check(tensor, what):
    """Refuses what has no plain memory; the text names it."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{what} is {type(tensor).__name__}, not a tensor")
    if tensor.layout is not torch.strided:
        raise ValueError(f"{what} is {tensor.layout}: pass a dense tensor")
    if tensor.device.type not in ("cpu", "cuda"):
        raise ValueError(f"{what} is on {tensor.device}: the pccl backend "
                         "takes tensors on cpu and cuda")
    if not tensor.is_contiguous():
        raise ValueError(f"{what} is not contiguous (shape "
                         f"{tuple(tensor.shape)}, strides {tensor.stride()}): "
                         "pass .contiguous()")
    return tensor


def same(tensors, like, what):
    """Checks tensors that have to be of one type and device."""
    for index, tensor in enumerate(tensors):
        check(tensor, f"{what} {index}")
        if tensor.dtype != like.dtype:
            raise ValueError(f"{what} {index} is {tensor.dtype}, not "
                             f"{like.dtype}")
        if tensor.device != like.device:
            raise ValueError(f"{what} {index} is on {tensor.device}, not on "
                             f"{like.device}")
    return tensors


def host(tensor, load=True):
    """The memory of a tensor as the library can use it: the tensor itself, or
    pinned host memory with its content. Who gets the latter copies it back."""
    if tensor.device.type in DIRECT:
        return tensor.detach() if tensor.requires_grad else tensor
    staged = torch.empty(tensor.shape, dtype=tensor.dtype,
                         pin_memory=torch.cuda.is_available())
    if load:
        staged.copy_(tensor.detach())
    return staged


def memory_of(tensor):
    """The bytes of host memory that a tensor of any type has, as the library
    takes them; they keep the tensor."""
    return (tensor.data_ptr(), tensor.numel() * tensor.element_size(), 0, 0,
            tensor)


def reducible(tensor, op, what):
    """A tensor as the library reduces it. Complex numbers are pairs of real
    ones, and booleans are bytes of 0 and 1."""
    if tensor.is_complex():
        if op not in (SUM, AVG):
            raise ValueError(f"{what} is {tensor.dtype}: complex tensors can "
                             "be summed and averaged only")
        tensor = torch.view_as_real(tensor)
    elif tensor.dtype is torch.bool:
        if op not in (MAX, MIN, PROD):
            raise ValueError(f"{what} is torch.bool: its operators are MAX, "
                             "MIN and PRODUCT")
        tensor = tensor.view(torch.uint8)
    if tensor.dtype not in DATATYPES:
        raise ValueError(f"{what} is {tensor.dtype}, which cannot be reduced")
    return tensor


def fold(blocks, op, out):
    """Reduces the rows of `blocks` into `out`, in the order of the ranks. Half
    types are added in float32, as in the library."""
    wide = blocks
    half = blocks.dtype in (torch.float16, torch.bfloat16)
    if half and op in (SUM, AVG, PROD):
        wide = blocks.float()
    total = wide[0].clone()
    for row in wide[1:]:
        if op in (SUM, AVG):
            total += row
        elif op == PROD:
            total *= row
        else:
            (torch.maximum if op == MAX else torch.minimum)(total, row,
                                                            out=total)
    if op == AVG:
        if total.is_floating_point() or total.is_complex():
            total /= len(blocks)
        else:
            total = torch.div(total, len(blocks), rounding_mode="trunc")
    out.copy_(total.view(out.shape))
