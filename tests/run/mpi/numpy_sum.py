"""numpy_sum.py - collectives of numpy arrays by way of mpi4py, whose wheel loads
whatever library has MPICH's ABI. Run by mpi4py.sh."""
import sys
import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
if "PCCL" not in MPI.Get_library_version():
    sys.exit("another MPI library was loaded: " + MPI.Get_library_version())
base = numpy.arange(1000, dtype="d")
total = numpy.empty_like(base)
comm.Allreduce(base + comm.rank, total)
expected = comm.size * base + comm.size * (comm.size - 1) / 2
assert (total == expected).all()
request = comm.Iallreduce(MPI.IN_PLACE, total, op=MPI.MAX)
request.Wait()
assert (total == expected).all()
rows = numpy.empty((comm.size, 4), dtype="i")
comm.Allgather(numpy.full(4, comm.rank, dtype="i"), rows)
assert (rows == numpy.arange(comm.size)[:, None]).all()
half = comm.Split(comm.rank % 2, comm.rank)
count = numpy.ones(1, dtype="i")
half.Allreduce(MPI.IN_PLACE, count)
assert count[0] == half.size
assert comm.bcast({"from": "rank 0"}, root=0) == {"from": "rank 0"}
half.Free()
if comm.rank == 0:
    print("mpi4py: all right with", comm.size, "ranks")
