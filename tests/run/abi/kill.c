/* kill.c - a plain MPI program: the last but one rank is killed in mid-loop,
 * and the others finish. Run with pccl-master --elastic. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>

enum { STEPS = 60, DEATH = 20, COUNT = 5000 };

int main(int argc, char **argv)
{
    static double data[COUNT];
    int rank, size, first, left = -1, bad = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    first = size;
    for (int step = 0; step < STEPS; step++) {
        int one = 1;
        if (step == DEATH && first > 1 && rank == first - 2) raise(SIGKILL);
        for (int i = 0; i < COUNT; i++) data[i] = step;
        MPI_Allreduce(&one, &left, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, data, COUNT, MPI_DOUBLE, MPI_MAX,
                      MPI_COMM_WORLD);
        for (int i = 0; i < COUNT; i++) bad += data[i] != step;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    bad += left != (first > 1 ? first - 1 : 1);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) printf("%d of %d ranks left, %d faults\n", left, first, bad);
    MPI_Finalize();
    return bad != 0;
}
