/* mpi_restart.c FOLDER STEPS [VICTIM] - sums the ranks in each step and writes
 * a checkpoint after it. In the first start of the job the victim dies halfway;
 * the next start goes on from the checkpoint. Without a victim: ranks that end
 * as soon as one was killed and its replacement has begun. */
#include "conform.h"

#include <signal.h>
#include <unistd.h>

static const char *folder;

static void place(char path[256], const char *name)
{
    snprintf(path, 256, "%s/%s", folder, name);
}

static void checkpoint_write(const long state[2])
{
    char made[256], path[256];
    place(made, "checkpoint.new");
    place(path, "checkpoint");
    FILE *file = fopen(made, "w");
    CHECK(file && fprintf(file, "%ld %ld\n", state[0], state[1]) > 0);
    CHECK(file && fclose(file) == 0 && rename(made, path) == 0);
}

static void checkpoint_read(long state[2])
{
    char path[256];
    place(path, "checkpoint");
    FILE *file = fopen(path, "r");
    if (!file) return;
    CHECK(fscanf(file, "%ld %ld", &state[0], &state[1]) == 2);
    fclose(file);
}

static int count_on(int rank, long steps, int victim)
{
    const char *again = getenv("PCCL_RESTART");
    long state[2] = {0, 0}; /* step, sum */
    if (rank == 0) checkpoint_read(state);
    MPI_Bcast(state, 2, MPI_LONG, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("start %s from step %ld\n", again, state[0]);
    fflush(stdout);
    while (state[0] < steps) {
        long sum = rank;
        if (state[0] == steps / 2 && strcmp(again, "0") == 0) {
            MPI_Barrier(MPI_COMM_WORLD); /* the checkpoint is written */
            if (rank == victim) raise(SIGKILL);
        }
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        state[0]++;
        state[1] += sum;
        if (rank == 0) checkpoint_write(state);
    }
    if (rank == 0) printf("sum %ld\n", state[1]);
    return EXIT_SUCCESS;
}

/* Rank 1 dies; the others end when a file says that its replacement is there.
 */
static int end_early(int rank)
{
    char path[256];
    int over = 0;
    place(path, "replaced");
    printf("run\n");
    fflush(stdout);
    for (int i = 0; !over; i++) {
        over = access(path, F_OK) == 0;
        if (rank == 1 && i == 10) raise(SIGKILL);
        MPI_Allreduce(MPI_IN_PLACE, &over, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    int rank;
    if (argc < 3) return 2;
    folder = argv[1];
    if (getenv("PCCL_JOIN")) {
        char path[256];
        place(path, "replaced");
        fclose(fopen(path, "w"));
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int status = argc > 3 ? count_on(rank, atol(argv[2]), atoi(argv[3]))
                          : end_early(rank);
    MPI_Finalize();
    return conform_failures ? EXIT_FAILURE : status;
}
