/* mpi_sessions.c - tests MPI sessions: without MPI_Init, beside it, after
 * MPI_Finalize, and several at a time. With an argument MPI_Init is called. */
#include "conform.h"

static int handled;

static void on_error(MPI_Session *session, int *code, ...)
{
    (void)session;
    if (*code != MPI_SUCCESS) handled++;
}

static MPI_Session begin(void)
{
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Info info;
    char value[64];
    int found;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_MULTIPLE"));
    OK(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    OK(MPI_Info_free(&info));
    CHECK(session != MPI_SESSION_NULL);
    OK(MPI_Session_get_info(session, &info));
    OK(MPI_Info_get(info, "thread_level", 63, value, &found));
    CHECK(found);
    OK(MPI_Info_free(&info));
    return session;
}

static void check_sets(MPI_Session session)
{
    int count = 0, length, world = 0, self = 0, found;
    char name[MPI_MAX_PSET_NAME_LEN], text[64];
    MPI_Info info;
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count));
    CHECK(count >= 2);
    for (int i = 0; i < count; i++) {
        length = 0;
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name));
        CHECK(length > 1 && length < MPI_MAX_PSET_NAME_LEN);
        OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name));
        CHECK((int)strlen(name) == length - 1);
        world += strcmp(name, "mpi://WORLD") == 0;
        self += strcmp(name, "mpi://SELF") == 0;
        OK(MPI_Session_get_pset_info(session, name, &info));
        OK(MPI_Info_get(info, "mpi_size", 63, text, &found));
        CHECK(found && atoi(text) >= 1);
        OK(MPI_Info_free(&info));
    }
    CHECK(world == 1 && self == 1);
}

static MPI_Group set_group(MPI_Session session, const char *name)
{
    MPI_Group group = MPI_GROUP_NULL;
    OK(MPI_Group_from_session_pset(session, name, &group));
    return group;
}

/* Sums the ranks over the communicator of a group. */
static void check_group(MPI_Group group, const char *tag)
{
    MPI_Comm comm = MPI_COMM_NULL;
    int rank, size, sum = -1;
    OK(MPI_Group_size(group, &size));
    OK(MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                  &comm));
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size * (size - 1) / 2);
    OK(MPI_Comm_free(&comm));
    /* raised by the handler given, as there is no communicator */
    if (conform_is_mpich()) return;
    FAILS(MPI_ERR_ARG, MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL,
                                                  MPI_ERRORS_RETURN, NULL));
    FAILS(MPI_ERR_ARG,
          MPI_Intercomm_create_from_groups(
              group, 0, group, 0, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL));
}

static void check_inter(MPI_Group world, const char *tag)
{
    MPI_Group halves[2];
    MPI_Comm inter;
    int size, rank, got = -1;
    OK(MPI_Group_size(world, &size));
    OK(MPI_Group_rank(world, &rank));
    if (size < 2) return;
    int ranges[2][1][3] = {{{0, size / 2 - 1, 1}}, {{size / 2, size - 1, 1}}};
    for (int i = 0; i < 2; i++)
        OK(MPI_Group_range_incl(world, 1, ranges[i], &halves[i]));
    int mine = rank >= size / 2;
    OK(MPI_Intercomm_create_from_groups(halves[mine], 0, halves[!mine], 0, tag,
                                        MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                        &inter));
    int one = 1, others = mine ? size / 2 : size - size / 2;
    OK(MPI_Allreduce(&one, &got, 1, MPI_INT, MPI_SUM, inter));
    CHECK(got == others);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Group_free(&halves[0]));
    OK(MPI_Group_free(&halves[1]));
}

static void use(MPI_Session session)
{
    MPI_Group world = set_group(session, "mpi://WORLD");
    MPI_Group self = set_group(session, "mpi://SELF");
    int size, ranks[2] = {0, 0};
    check_sets(session);
    check_group(world, "org.example.world");
    check_group(self, "org.example.self");
    OK(MPI_Group_size(self, &size));
    CHECK(size == 1);
    /* overlapping groups with the same string */
    int rank;
    OK(MPI_Group_size(world, &size));
    OK(MPI_Group_rank(world, &rank));
    for (int r = 1; r < size; r++) {
        MPI_Group pair;
        if (rank != 0 && rank != r) continue;
        ranks[1] = r;
        OK(MPI_Group_incl(world, 2, ranks, &pair));
        check_group(pair, "org.example.pair");
        OK(MPI_Group_free(&pair));
    }
    check_inter(world, "org.example.inter");
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&self));
}

static void check_errors(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Errhandler handler, got;
    OK(MPI_Session_create_errhandler(on_error, &handler));
    OK(MPI_Session_init(MPI_INFO_NULL, handler, &session));
    handled = 0;
    OK(MPI_Session_call_errhandler(session, MPI_ERR_OTHER));
    CHECK(handled == 1);
    CHECK(MPI_Group_from_session_pset(session, "no such set", &group) !=
          MPI_SUCCESS);
    CHECK(handled == 2);
    OK(MPI_Session_get_errhandler(session, &got));
    CHECK(got == handler);
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN));
    OK(MPI_Session_get_errhandler(session, &got));
    CHECK(got == MPI_ERRORS_RETURN);
    OK(MPI_Session_finalize(&session));
    CHECK(session == MPI_SESSION_NULL);
}

int main(int argc, char **argv)
{
    MPI_Session first = begin(), second;
    int flag = -1;
    OK(MPI_Initialized(&flag));
    CHECK(flag == 0);
    use(first);
    second = begin();
    use(second);
    OK(MPI_Session_finalize(&first));
    use(second);
    if (argc > 1) {
        int rank, size, sum = -1;
        OK(MPI_Init(&argc, &argv));
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK(sum == size * (size - 1) / 2);
        use(second);
        OK(MPI_Finalize());
        OK(MPI_Finalized(&flag));
        CHECK(flag == 1);
    }
    use(second);
    /* MPICH 4.0.2 drops the handler passed to MPI_Session_init */
    if (!conform_is_mpich()) check_errors();
    OK(MPI_Session_finalize(&second));
    /* another one after the last; MPICH 4.0.2 crashes there */
    if (conform_is_mpich()) return conform_failures ? EXIT_FAILURE : 0;
    first = begin();
    use(first);
    OK(MPI_Session_finalize(&first));
    return conform_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
