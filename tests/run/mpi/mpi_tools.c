/* mpi_tools.c - tests the tools interface, used like a generic tool: before,
 * during and after MPI. */
#include "conform.h"

/* Every variable has a name of its own, a text, and a value. */
static void walk_pvars(MPI_T_pvar_session session, int pvars)
{
    char name[256], text[1024], small[4];
    int length, text_length, verbosity, bind, class, index, count;
    int readonly, continuous, atomic;
    MPI_Datatype type;
    MPI_T_enum enumeration;
    for (int i = 0; i < pvars; i++) {
        MPI_T_pvar_handle handle, other = MPI_T_PVAR_HANDLE_NULL;
        unsigned long long value = ~0ull;
        length = sizeof name;
        text_length = sizeof text;
        OK(MPI_T_pvar_get_info(i, name, &length, &verbosity, &class, &type,
                               &enumeration, text, &text_length, &bind,
                               &readonly, &continuous, &atomic));
        CHECK(length == (int)strlen(name) + 1 && strlen(text) > 0);
        CHECK(type == MPI_UNSIGNED_LONG_LONG && bind == MPI_T_BIND_NO_OBJECT);
        length = sizeof small;
        OK(MPI_T_pvar_get_info(i, small, &length, NULL, NULL, NULL, NULL, NULL,
                               NULL, NULL, NULL, NULL, NULL));
        CHECK(length == (int)strlen(name) + 1 && strlen(small) == 3);
        OK(MPI_T_pvar_get_index(name, class, &index));
        CHECK(index == i);
        CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_STATE, &index) ==
              MPI_T_ERR_INVALID_NAME);
        OK(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count));
        OK(MPI_T_pvar_handle_alloc(session, i, NULL, &other, &count));
        OK(MPI_T_pvar_read(session, handle, &value));
        CHECK(value != ~0ull && count == 1);
        CHECK(MPI_T_pvar_write(session, handle, &value) ==
              MPI_T_ERR_PVAR_NO_WRITE);
        OK(MPI_T_pvar_handle_free(session, &handle));
        CHECK(MPI_T_pvar_handle_alloc(session, pvars, NULL, &handle, &count) ==
              MPI_T_ERR_INVALID_INDEX);
    } /* the others are freed with the session */
}

static void walk_events(int events)
{
    char name[256], text[1024];
    int length, text_length, verbosity, elements, bind, index;
    MPI_Datatype types[8];
    MPI_Aint places[8];
    MPI_Count ticks, most, time = 0;
    MPI_T_source_order order;
    MPI_T_event_registration registration;
    for (int i = 0; i < events; i++) {
        length = sizeof name;
        text_length = sizeof text;
        elements = 8;
        OK(MPI_T_event_get_info(i, name, &length, &verbosity, types, places,
                                &elements, NULL, NULL, text, &text_length,
                                &bind));
        CHECK(elements >= 2 && elements <= 8 && places[0] == 0);
        CHECK(types[0] == MPI_UNSIGNED_LONG_LONG && types[1] == MPI_INT);
        OK(MPI_T_event_get_index(name, &index));
        CHECK(index == i);
        OK(MPI_T_event_handle_alloc(i, NULL, MPI_INFO_NULL, &registration));
        OK(MPI_T_event_set_dropped_handler(registration, NULL));
        OK(MPI_T_event_handle_free(registration, NULL, NULL));
    }
    CHECK(MPI_T_event_get_index("no such event", &index) ==
          MPI_T_ERR_INVALID_NAME);
    CHECK(MPI_T_event_handle_alloc(events, NULL, MPI_INFO_NULL,
                                   &registration) == MPI_T_ERR_INVALID_INDEX);
    length = sizeof name;
    text_length = sizeof text;
    OK(MPI_T_source_get_info(0, name, &length, text, &text_length, &order,
                             &ticks, &most, NULL));
    CHECK(order == MPI_T_SOURCE_ORDERED && ticks > 0);
    OK(MPI_T_source_get_timestamp(0, &time));
    CHECK(time > 0 && time <= most);
    CHECK(MPI_T_source_get_timestamp(1, &time) == MPI_T_ERR_INVALID_INDEX);
}

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
        if (count > 0) walk_pvars(session, count);
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
    if (!conform_is_mpich()) walk_events(count);
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
