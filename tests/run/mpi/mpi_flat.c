/* mpi_flat.c - tests that communicators which are made and freed, and views
 * that are replaced, leave nothing behind: the process does not grow. */
#include "conform.h"

#include <mpi_pccl.h>
#include <unistd.h>

/* The table of tags in use doubles up to 1 MiB and is then made anew, so one
 * doubling of it, 512 KiB and what the allocator adds, is no leak. What stays
 * behind of a communicator has more than 1,000 bytes. */
enum {
    WARM = 1000,
    CYCLES = 11000,
    REVOCATIONS = 4000,
    GROWTH_MAX = 768 * 1024
};

static int rank, size;

/* Bytes in memory that are not of files. */
static long resident(void)
{
    long all = 0, used = 0, shared = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%ld %ld %ld", &all, &used, &shared) != 3) used = 0;
    fclose(file);
    return (used - shared) * sysconf(_SC_PAGESIZE);
}

static void duplicate(int cycle)
{
    MPI_Comm made;
    (void)cycle;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &made));
    OK(MPI_Comm_free(&made));
}

static void split(int cycle)
{
    MPI_Comm made;
    OK(MPI_Comm_split(MPI_COMM_WORLD, (rank + cycle) % 2, rank, &made));
    OK(MPI_Barrier(made));
    OK(MPI_Comm_free(&made));
}

/* A new view with the same members. */
static void change_view(int cycle)
{
    (void)cycle;
    OK(PCCL_Optimize_topology(MPI_COMM_WORLD));
}

static void end_revoked(int cycle)
{
    MPI_Comm made;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &made));
    MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    if (rank == cycle % size) OK(MPIX_Comm_revoke(made));
    /* all know it before it is freed */
    while (MPI_Barrier(made) != MPIX_ERR_REVOKED) continue;
    OK(MPI_Comm_free(&made));
}

static void check(void (*run)(int), const char *name, int cycles)
{
    long before = 0;
    for (int i = 0; i < cycles; i++) {
        if (i == WARM) before = resident();
        run(i);
    }
    long growth = resident() - before;
    if (growth > GROWTH_MAX)
        fprintf(stderr, "rank %d: %s: %ld bytes more\n", rank, name, growth);
    CHECK(growth <= GROWTH_MAX);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(duplicate, "duplicates", CYCLES);
    check(split, "splits", CYCLES);
    check(change_view, "views", CYCLES);
    check(end_revoked, "revocations", REVOCATIONS);
    return conform_end();
}
