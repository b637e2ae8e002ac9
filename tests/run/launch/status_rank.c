/* status_rank.c - a rank for status_web.py: status_rank FILE. Sums until FILE
 * exists, and admits newcomers in each step. While FILE.hold exists the rank
 * that it names, as it was launched, calls nothing. */
#include <mpi.h>
#include <mpi_pccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ELEMENTS = 1 << 16, STEP_US = 10000 };

static int is_held(const char *name)
{
    int rank = -1;
    FILE *file = fopen(name, "r");
    if (!file) return 0;
    if (fscanf(file, "%d", &rank) != 1) rank = -1;
    fclose(file);
    const char *mine = getenv("PCCL_RANK");
    return mine && rank == (int)strtol(mine, NULL, 10);
}

int main(int argc, char **argv)
{
    static float in[ELEMENTS], out[ELEMENTS];
    char hold[1024];
    MPI_Init(&argc, &argv);
    const char *file = argc > 1 ? argv[1] : "";
    snprintf(hold, sizeof hold, "%s.hold", file);
    for (int over = 0; over == 0;) {
        int here = access(file, F_OK) == 0;
        while (is_held(hold)) (void)usleep(STEP_US);
        MPI_Allreduce(in, out, ELEMENTS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(&here, &over, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        /* A newcomer begins behind it. */
        if (over == 0) PCCL_Update_topology(MPI_COMM_WORLD);
        (void)usleep(STEP_US); /* the step of a program */
    }
    MPI_Finalize();
    return 0;
}
