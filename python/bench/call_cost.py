#!/usr/bin/env python3
"""call_cost.py [INCLUDE LIBDIR]: what a call costs above C, in a world of one.

Compares all_reduce of 16 bytes through pccl._native (this package) with the
same call from C and through cffi in API mode: bare, with everything prepared,
and as a binding has to do it, from an array and with an exception on failure.
Needs numpy, cffi and a C compiler; torch is measured if it is there. Prints the
best of many rounds, in nanoseconds. In a build tree: its include and lib.
"""
import importlib.util
import sys
import tempfile
import time
from pathlib import Path

import numpy

import pccl

CALLS, ROUNDS = 2_000, 200

DECLARATIONS = """
typedef struct { uint32_t local_world_size; uint64_t tx_bytes, rx_bytes; }
    pcclReduceInfo_t;
typedef struct { int datatype, distribution_hint; } operand_t;
typedef struct { int quantized_datatype, algorithm; } quantization_t;
typedef struct { size_t count; int op; uint64_t tag; operand_t src_descriptor;
    quantization_t quantization_options; } descriptor_t;
void *joined(int port);
int reduce(const void *send, void *recv, const descriptor_t *d, void *comm,
           pcclReduceInfo_t *info);
double in_c(void *comm, void *x, int calls);
"""

SOURCE = """
#include <pccl.h>
#include <time.h>
typedef pcclReduceOperandDescriptor_t operand_t;
typedef pcclQuantizationOptions_t quantization_t;
typedef pcclReduceDescriptor_t descriptor_t;
static void *joined(int port)
{
    pcclCommCreateParams_t p = {0};
    p.master_address.inet.ipv4.data[0] = 127;
    p.master_address.inet.ipv4.data[3] = 1;
    p.master_address.port = (uint16_t)port;
    pcclComm_t *comm = NULL;
    if (pcclInit() || pcclCreateCommunicator(&p, &comm) || pcclConnect(comm))
        return NULL;
    return comm;
}
static int reduce(const void *send, void *recv, const descriptor_t *d,
                  void *comm, pcclReduceInfo_t *info)
{
    return (int)pcclAllReduce(send, recv, d, comm, info);
}
static double in_c(void *comm, void *x, int calls)
{
    pcclReduceDescriptor_t d = {.count = 4,
        .src_descriptor = {.datatype = pcclFloat}};
    pcclReduceInfo_t info;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < calls; i++)
        if (pcclAllReduce(x, x, &d, comm, &info)) return -1;
    clock_gettime(CLOCK_MONOTONIC, &b);
    return (double)(b.tv_sec - a.tv_sec) * 1e9 +
           (double)(b.tv_nsec - a.tv_nsec);
}
"""


def compiled():
    """The same library through cffi."""
    from cffi import FFI
    builder = FFI()
    builder.cdef(DECLARATIONS)
    include, library = (sys.argv[1:3] if len(sys.argv) > 2 else
                        (pccl.get_include(), pccl.get_library_dir()))
    library = Path(library).resolve()
    name = next(library.glob("libpccl.so*")).name
    builder.set_source("_cost", SOURCE, include_dirs=[str(Path(include).resolve())],
                       extra_link_args=[str(library / name),
                                        f"-Wl,-rpath,{library}"])
    place = tempfile.mkdtemp()
    path = builder.compile(tmpdir=place)
    spec = importlib.util.spec_from_file_location("_cost", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ffi, module.lib


def best(call):
    """Nanoseconds of one call."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter_ns() - start) / CALLS)
    return min(times)


def main():
    ffi, lib = compiled()
    x = numpy.ones(4, "f4")
    with pccl.Master() as one, pccl.Master() as two:
        run = pccl.connect(one.address)
        comm = lib.joined(two.port)
        address = ffi.cast("void *", x.ctypes.data)
        ready = ffi.new("descriptor_t *", {
            "count": 4, "src_descriptor": {"datatype": 10}})
        info = ffi.new("pcclReduceInfo_t *")

        def as_a_binding(a):
            if not a.flags["C_CONTIGUOUS"] or a.dtype.name != "float32":
                raise ValueError
            memory = ffi.from_buffer(a)
            d = ffi.new("descriptor_t *")
            d.count = a.size
            d.src_descriptor.datatype = 10
            got = ffi.new("pcclReduceInfo_t *")
            if lib.reduce(memory, memory, d, comm, got):
                raise RuntimeError
            return got.local_world_size, got.tx_bytes, got.rx_bytes

        in_c = min(lib.in_c(comm, address, CALLS)
                   for _ in range(ROUNDS)) / CALLS
        rows = [
            ("C", in_c),
            ("pccl._native, numpy", best(lambda: run.all_reduce(x))),
            ("pccl._native, numpy, op='avg', tag=1",
             best(lambda: run.all_reduce(x, op="avg", tag=1))),
            ("cffi, all prepared",
             best(lambda: lib.reduce(address, address, ready, comm, info))),
            ("cffi, as a binding", best(lambda: as_a_binding(x))),
        ]
        if importlib.util.find_spec("torch"):
            import torch
            t = torch.ones(4)
            rows.insert(2, ("pccl._native, torch",
                            best(lambda: run.all_reduce(t))))
        for name, took in rows:
            print(f"{name:40} {took:7.0f} ns   {took - in_c:+7.0f}")
        run.close()


if __name__ == "__main__":
    main()
