/* mpi_exhausted.c - a call that lacks memory raises one error, on the object
 * that it is about: here a group that needs one more chunk of handles. Alone:
 * no other thread takes what is left. */
#include "conform.h"

#include <sys/resource.h>

enum { HANDLES = 1024 /* of a chunk */, BLOCKS = 1 << 16, LARGE = 4000 };

static int on_session, on_world;

static void session_error(MPI_Session *session, int *code, ...)
{
    CHECK(*session != MPI_SESSION_NULL && conform_class(*code) > 0);
    on_session++;
}

static void world_error(MPI_Comm *comm, int *code, ...)
{
    CHECK(*comm != MPI_COMM_NULL && conform_class(*code) > 0);
    on_world++;
}

/* Leaves one block of LARGE bytes, which is less than a chunk. */
static void take_all(void *blocks[BLOCKS], int *count,
                     const struct rlimit *before)
{
    struct rlimit none = {0, before->rlim_max};
    *count = 0;
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    for (size_t size = LARGE; size >= 16; size /= 2)
        while (*count < BLOCKS && (blocks[*count] = malloc(size)) != NULL)
            ++*count;
    CHECK(*count > 0 && *count < BLOCKS);
    free(blocks[0]);
    blocks[0] = NULL;
}

int main(int argc, char **argv)
{
    static void *blocks[BLOCKS];
    struct rlimit before;
    MPI_Session session;
    MPI_Errhandler of_session, of_world;
    MPI_Group group;
    int count;
    MPI_Init(&argc, &argv);
    OK(MPI_Session_create_errhandler(session_error, &of_session));
    OK(MPI_Comm_create_errhandler(world_error, &of_world));
    OK(MPI_Session_init(MPI_INFO_NULL, of_session, &session));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_world));
    for (int i = 0; i < HANDLES; i++)
        OK(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    take_all(blocks, &count, &before);
    int code = MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
    for (int i = 0; i < count; i++) free(blocks[i]);
    FAILS(MPI_ERR_NO_MEM, code);
    CHECK(on_session == 1 && on_world == 0);
    OK(MPI_Group_from_session_pset(session, "mpi://SELF", &group));
    OK(MPI_Session_finalize(&session));
    return conform_end();
}
