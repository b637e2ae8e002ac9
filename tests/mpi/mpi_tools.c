/* mpi_tools.c - tests the tools interface, used like a generic tool: before,
 * during and after MPI. */
#include "conform.h"

static void walk(void)
{
    char name[256], text[1024];
    int count, length, text_length, verbosity, bind, scope, class;
    int readonly, continuous, atomic, cvars, pvars, categories;
    MPI_Datatype type;
    MPI_T_enum enumeration;
    MPI_T_pvar_session session;
    OK(MPI_T_cvar_get_num(&count));
    CHECK(count >= 0);
    for (int i = 0; i < count; i++) {
        length = sizeof name;
        text_length = sizeof text;
        OK(MPI_T_cvar_get_info(i, name, &length, &verbosity, &type,
                               &enumeration, text, &text_length, &bind,
                               &scope));
    }
    length = sizeof name;
    text_length = sizeof text;
    CHECK(MPI_T_cvar_get_info(count, name, &length, &verbosity, &type,
                              &enumeration, text, &text_length, &bind,
                              &scope) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_cvar_get_index("no such variable", &length) ==
          MPI_T_ERR_INVALID_NAME);
    OK(MPI_T_pvar_get_num(&count));
    /* MPICH 4.0.2 crashes in these */
    if (!conform_is_mpich()) {
        CHECK(MPI_T_pvar_get_info(count, name, &length, &verbosity, &class,
                                  &type, &enumeration, text, &text_length,
                                  &bind, &readonly, &continuous,
                                  &atomic) == MPI_T_ERR_INVALID_INDEX);
        OK(MPI_T_pvar_session_create(&session));
        OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
        OK(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
        OK(MPI_T_pvar_session_free(&session));
        CHECK(session == MPI_T_PVAR_SESSION_NULL);
    }
    OK(MPI_T_category_get_num(&count));
    for (int i = 0; i < count; i++) {
        length = sizeof name;
        text_length = sizeof text;
        OK(MPI_T_category_get_info(i, name, &length, text, &text_length, &cvars,
                                   &pvars, &categories));
    }
    OK(MPI_T_category_changed(&count));
    OK(MPI_T_event_get_num(&count));
    OK(MPI_T_source_get_num(&count));
}

int main(int argc, char **argv)
{
    int level, count, result;
    CHECK(MPI_T_cvar_get_num(&count) == MPI_T_ERR_NOT_INITIALIZED);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    walk();
    MPI_Init(&argc, &argv);
    walk();
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    OK(MPI_T_finalize());
    walk();
    result = conform_end();
    OK(MPI_T_finalize());
    CHECK(MPI_T_pvar_get_num(&count) == MPI_T_ERR_NOT_INITIALIZED);
    return conform_failures ? EXIT_FAILURE : result;
}
