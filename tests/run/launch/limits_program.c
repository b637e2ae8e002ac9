/* limits_program.c - a program that needs little: a sum, and the end. */
#include <mpi.h>

int main(int argc, char **argv)
{
    int one = 1, sum = 0, size = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum == size ? 0 : 3;
}
