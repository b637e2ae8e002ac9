/* mpi_memory.c - tests a receiver without memory for a message: it gets an
 * error, and so does the sender, which waits no longer; later messages work. */
#include "conform.h"

#include <malloc.h>
#include <sys/resource.h>

enum {
    COUNT = 4 << 20, /* 16 MiB, sent by rendezvous */
    SPARE = 4 << 20, /* memory that the receiver has left */
    TAG = 7
};

static rlim_t memory_used(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%lu", &pages) == 1);
    if (file) fclose(file);
    return (rlim_t)pages * 4096;
}

static void check_text(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    OK(MPI_Error_string(code, text, &length));
    CHECK(strstr(text, what) != NULL);
    CHECK(strstr(text, "lost") == NULL);
}

static void send_it(int *data)
{
    int code = MPI_Send(data, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD);
    FAILS(MPI_ERR_NO_MEM, code);
    check_text(code, "the receiver has no memory");
}

/* Into a layout with holes, which needs an intermediate buffer. */
static void receive_it(int *data, MPI_Datatype holes)
{
    MPI_Request request;
    struct rlimit before;
    getrlimit(RLIMIT_AS, &before);
    struct rlimit little = {memory_used() + SPARE, before.rlim_max};
    CHECK(setrlimit(RLIMIT_AS, &little) == 0);
    int code =
        MPI_Recv(data, 1, holes, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    FAILS(MPI_ERR_NO_MEM, code);
    check_text(code, "no memory to receive");
    OK(MPI_Irecv(data, 1, holes, 0, TAG, MPI_COMM_WORLD, &request));
    code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    FAILS(MPI_ERR_NO_MEM, code);
    check_text(code, "no memory to receive");
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
    OK(MPI_Recv(data, 1, holes, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(data[0] == 1 && data[1] == 0 && data[2 * (COUNT - 1)] == 1);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Datatype holes;
    mallopt(M_ARENA_MAX, 1); /* reserves no address space */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    OK(MPI_Type_vector(COUNT, 1, 2, MPI_INT, &holes));
    OK(MPI_Type_commit(&holes));
    int *data = calloc(2 * COUNT, sizeof *data);
    CHECK(data != NULL);
    for (int i = 0; data && i < COUNT && rank == 0; i++) data[i] = 1;
    if (rank == 1) memset(data, 0, 2 * COUNT * sizeof *data);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) {
        send_it(data);
        send_it(data);
        OK(MPI_Send(data, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD));
    }
    if (rank == 1) receive_it(data, holes);
    free(data);
    OK(MPI_Type_free(&holes));
    return conform_end();
}
