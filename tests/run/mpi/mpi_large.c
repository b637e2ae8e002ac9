/* mpi_large.c - tests more than 2^31 bytes: extents and displacements over
 * memory of which few pages are touched, and, with `large data`, that many
 * bytes in a message and in a collective (4.5 GiB for two ranks). */
#define _GNU_SOURCE
#include "conform.h"

#include <sys/mman.h>

static const MPI_Aint GIB = (MPI_Aint)1 << 30;

static int rank, size, to, from;

static char *reserve(MPI_Aint bytes)
{
    void *at = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(at != MAP_FAILED);
    return at == MAP_FAILED ? NULL : at;
}

/* One integer per GiB. */
static void test_extents(char *room)
{
    MPI_Datatype sparse;
    MPI_Status status;
    MPI_Count wide = -1;
    int three[3] = {-1, -1, -1}, n = -1;
    OK(MPI_Type_create_resized(MPI_INT, 0, GIB, &sparse));
    OK(MPI_Type_commit(&sparse));
    for (int i = 0; i < 3; i++) *(int *)(room + i * GIB) = 10 * rank + i;
    OK(MPI_Sendrecv(room, 3, sparse, to, 0, three, 3, MPI_INT, from, 0,
                    MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(n == 3);
    for (int i = 0; i < 3; i++) CHECK(three[i] == 10 * from + i);
    OK(MPI_Sendrecv(three, 3, MPI_INT, to, 0, room, 3, sparse, from, 0,
                    MPI_COMM_WORLD, &status));
    OK(MPI_Get_count_c(&status, sparse, &wide));
    int before = (rank + 2 * size - 2) % size;
    CHECK(wide == 3 && *(int *)(room + 2 * GIB) == 10 * before + 2);
    for (int i = 0; i < 3; i++)
        *(int *)(room + i * GIB) = rank == 0 ? 7 + i : -1;
    OK(MPI_Bcast(room, 3, sparse, 0, MPI_COMM_WORLD));
    CHECK(*(int *)(room + 2 * GIB) == 9);
    MPI_Aint low, extent;
    MPI_Datatype rows;
    OK(MPI_Type_vector(2, 1, 2, sparse, &rows));
    OK(MPI_Type_get_true_extent(rows, &low, &extent));
    CHECK(extent == 2 * GIB + 4);
    OK(MPI_Type_get_extent(rows, &low, &extent));
    CHECK(extent == 3 * GIB);
    OK(MPI_Type_free(&rows));
    OK(MPI_Type_free(&sparse));
}

/* Displacements beyond 2^31 bytes, as multiples of an extent and in bytes. */
static void test_displacements(char *room)
{
    MPI_Datatype sparse, types[16];
    int counts[16], displs[16], out[16];
    MPI_Count wide[16];
    MPI_Aint far[16], near[16];
    OK(MPI_Type_create_resized(MPI_INT, 0, GIB / 2, &sparse));
    OK(MPI_Type_commit(&sparse));
    for (int r = 0; r < size; r++) {
        counts[r] = 1;
        wide[r] = 1;
        displs[r] = 5 - r % 6;
        far[r] = 3 * GIB - 4096 * r;
        near[r] = 4 * r;
        types[r] = MPI_INT;
        out[r] = 100 * rank + r;
    }
    if (size <= 6) {
        OK(MPI_Allgatherv(&rank, 1, MPI_INT, room, counts, displs, sparse,
                          MPI_COMM_WORLD));
        for (int r = 0; r < size; r++)
            CHECK(size == 1 || *(int *)(room + displs[r] * (GIB / 2)) == r);
    }
    OK(MPI_Alltoallw_c(out, wide, near, types, room, wide, far, types,
                       MPI_COMM_WORLD));
    for (int r = 0; r < size; r++)
        CHECK(*(int *)(room + far[r]) == 100 * r + rank);
    OK(MPI_Type_free(&sparse));
}

/* The types themselves: sizes that exceed an int. */
static void test_sizes(void)
{
    MPI_Datatype giant, more;
    MPI_Count bytes = 0, low, extent;
    int n = 0;
    OK(MPI_Type_contiguous(1 << 30, MPI_INT, &giant));
    OK(MPI_Type_size(giant, &n));
    CHECK(n == MPI_UNDEFINED);
    OK(MPI_Type_size_x(giant, &bytes));
    CHECK(bytes == 4 * GIB);
    OK(MPI_Type_contiguous(1000, giant, &more));
    OK(MPI_Type_get_extent_x(more, &low, &extent));
    CHECK(extent == 4000 * GIB);
    OK(MPI_Type_commit(&more));
    OK(MPI_Type_contiguous_c(3 * GIB, MPI_BYTE, &giant));
    OK(MPI_Type_size_c(giant, &bytes));
    CHECK(bytes == 3 * GIB);
    MPI_Status status;
    memset(&status, 0, sizeof status);
    OK(MPI_Type_commit(&giant));
    OK(MPI_Status_set_elements_x(&status, giant, 2));
    OK(MPI_Get_count_c(&status, MPI_INT, &bytes));
    CHECK(bytes == 3 * GIB / 2);
    OK(MPI_Get_count(&status, MPI_BYTE, &n));
    CHECK(n == MPI_UNDEFINED);
    OK(MPI_Get_count(&status, giant, &n));
    CHECK(n == 2);
    OK(MPI_Type_free(&more));
    OK(MPI_Type_free(&giant));
}

static void fill(char *room, MPI_Aint bytes, int seed)
{
    for (MPI_Aint i = 0; i < bytes; i += 4096)
        room[i] = (char)(seed + i / 4096);
    room[bytes - 1] = (char)(seed + 77);
}

static int is_filled(const char *room, MPI_Aint bytes, int seed)
{
    for (MPI_Aint i = 0; i < bytes; i += 4096)
        if (room[i] != (char)(seed + i / 4096)) return 0;
    return room[bytes - 1] == (char)(seed + 77);
}

/* A message and a broadcast of slightly more than 2 GiB. */
static void test_data(void)
{
    const MPI_Aint bytes = 2 * GIB + 12345;
    MPI_Status status;
    MPI_Count count = -1;
    if (rank > 1) return;
    char *room = reserve(bytes);
    if (rank == 0) {
        fill(room, bytes, 3);
        OK(MPI_Send_c(room, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
    } else {
        OK(MPI_Recv_c(room, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count_c(&status, MPI_BYTE, &count));
        CHECK(count == bytes && is_filled(room, bytes, 3));
        fill(room, bytes, 5);
    }
    if (size == 2) {
        OK(MPI_Bcast_c(room, bytes, MPI_BYTE, 1, MPI_COMM_WORLD));
        CHECK(is_filled(room, bytes, 5));
        int *numbers = (int *)room;
        MPI_Count n = bytes / 4;
        for (MPI_Count i = 0; i < n; i++) numbers[i] = (int)(i % 1000) + rank;
        OK(MPI_Allreduce_c(MPI_IN_PLACE, numbers, n, MPI_INT, MPI_SUM,
                           MPI_COMM_WORLD));
        MPI_Count wrong = 0;
        for (MPI_Count i = 0; i < n; i++)
            wrong += numbers[i] != 2 * (int)(i % 1000) + 1;
        CHECK(wrong == 0);
    }
    munmap(room, (size_t)bytes);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    to = (rank + 1) % size;
    from = (rank + size - 1) % size;
    char *room = reserve(4 * GIB);
    if (room) {
        test_extents(room);
        test_displacements(room);
        munmap(room, (size_t)(4 * GIB));
    }
    test_sizes();
    if (argc > 1 && size > 1) test_data();
    return conform_end();
}
