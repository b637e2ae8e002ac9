/* tools_pvar.c - performance variables (MPI_T_pvar_): what pcclGetStatistics
 * counts. All are 64-bit numbers, always run, belong to no object, and can only
 * be read. Before MPI_Init they are 0; after MPI_Finalize they stay. */
#include "tools.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

struct pvar {
    const char *name;
    const char *text;
    int class;
    size_t at; /* in pcclStatistics_t */
};

#define FIELD(name, class, field, text)                                        \
    {                                                                          \
        "pccl_" name, text, MPI_T_PVAR_CLASS_##class,                          \
            offsetof(pcclStatistics_t, field)                                  \
    }
#define KIND(name, kind, what)                                                 \
    FIELD(name "_started", COUNTER, operations[kind].started,                  \
          "calls of " what),                                                   \
        FIELD(name "_succeeded", COUNTER, operations[kind].succeeded,          \
              "of these, ended with success"),                                 \
        FIELD(name "_lost", COUNTER, operations[kind].lost,                    \
              "of these, ended by the loss of a member"),                      \
        FIELD(name "_failed", COUNTER, operations[kind].failed,                \
              "of these, ended otherwise")

static const struct pvar pvars[] = {
    KIND("all_reduce", pcclKindAllReduce, "an all-reduce"),
    KIND("broadcast", pcclKindBroadcast, "a broadcast"),
    KIND("barrier", pcclKindBarrier, "a barrier"),
    KIND("all_gather", pcclKindAllGather, "an all-gather"),
    KIND("all_to_all", pcclKindAllToAllV, "an all-to-all"),
    KIND("reduce_scatter", pcclKindReduceScatter, "a reduce-scatter"),
    FIELD("tcp_sent_bytes", AGGREGATE, tcp_sent_bytes, "bytes sent by TCP"),
    FIELD("tcp_received_bytes", AGGREGATE, tcp_received_bytes,
          "bytes received by TCP"),
    FIELD("shared_sent_bytes", AGGREGATE, shared_sent_bytes,
          "bytes sent through memory that two processes share"),
    FIELD("shared_received_bytes", AGGREGATE, shared_received_bytes,
          "bytes received through memory that two processes share"),
    FIELD("mapped_received_bytes", AGGREGATE, mapped_received_bytes,
          "bytes read from memory that all processes of a host share"),
    FIELD("cma_received_bytes", AGGREGATE, cma_received_bytes,
          "bytes read from a sender's own memory"),
    FIELD("sync_sent_bytes", AGGREGATE, sync_sent_bytes,
          "bytes of shared state that others received"),
    FIELD("sync_received_bytes", AGGREGATE, sync_received_bytes,
          "bytes of shared state that came from others"),
    FIELD("epochs", COUNTER, epochs,
          "views of the members that came into force"),
    FIELD("updates", COUNTER, updates, "... that the program asked for"),
    FIELD("recoveries", COUNTER, recoveries,
          "... that followed a loss or a broken link"),
    FIELD("recovery_ns", TIMER, recovery_ns,
          "nanoseconds from the end of a view to the next one, over all "
          "recoveries"),
    FIELD("recovery_longest_ns", HIGHWATERMARK, recovery_longest_ns,
          "nanoseconds of the longest recovery"),
    FIELD("losses", COUNTER, losses, "members that were lost or left"),
    FIELD("joins", COUNTER, joins, "members that joined"),
    FIELD("restarts", COUNTER, restarts,
          "operations that began again after a recovery"),
    FIELD("retries", COUNTER, retries,
          "operations that were called again after a loss"),
    FIELD("waits", COUNTER, waits, "sleeps of a call until data came"),
    FIELD("wait_ns", TIMER, wait_ns, "nanoseconds of these sleeps"),
};
enum { PVARS = sizeof pvars / sizeof *pvars };

int tools_pvar_count(void)
{
    return PVARS;
}

/* ------------------------------------------------------------------ values */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pcclComm_t *source; /* NULL: none now */
static pcclStatistics_t last;

static void look(void)
{
    pcclStatistics_t now = {.size = sizeof now};
    if (source && pcclGetStatistics(source, &now) == pcclSuccess) last = now;
}

void tools_join(pcclComm_t *pccl)
{
    pthread_mutex_lock(&lock);
    source = pccl;
    pthread_mutex_unlock(&lock);
}

void tools_leave(void)
{
    pthread_mutex_lock(&lock);
    look();
    source = NULL;
    pthread_mutex_unlock(&lock);
}

static unsigned long long value_of(const struct pvar *pvar)
{
    uint64_t value;
    pthread_mutex_lock(&lock);
    look();
    memcpy(&value, (const char *)&last + pvar->at, sizeof value);
    pthread_mutex_unlock(&lock);
    return value;
}

/* ----------------------------------------------------------------- queries */

int mpi_T_pvar_get_info(int index, char *name, int *name_length, int *verbosity,
                        int *class, MPI_Datatype *type, MPI_T_enum *enumeration,
                        char *text, int *text_length, int *bind, int *readonly,
                        int *continuous, int *atomic)
{
    if (index < 0 || index >= PVARS) return MPI_T_ERR_INVALID_INDEX;
    const struct pvar *pvar = &pvars[index];
    tools_give(pvar->name, name, name_length);
    tools_give(pvar->text, text, text_length);
    tools_give_number(MPI_T_VERBOSITY_USER_BASIC, verbosity);
    tools_give_number(pvar->class, class);
    if (type) *type = MPI_UNSIGNED_LONG_LONG;
    if (enumeration) *enumeration = MPI_T_ENUM_NULL;
    tools_give_number(MPI_T_BIND_NO_OBJECT, bind);
    tools_give_number(1, readonly);
    tools_give_number(1, continuous);
    tools_give_number(0, atomic);
    return MPI_SUCCESS;
}

int mpi_T_pvar_get_index(const char *name, int class, int *index)
{
    if (!name || !index) return MPI_T_ERR_INVALID;
    for (int i = 0; i < PVARS; i++) {
        if (pvars[i].class != class || strcmp(pvars[i].name, name) != 0)
            continue;
        *index = i;
        return MPI_SUCCESS;
    }
    return MPI_T_ERR_INVALID_NAME;
}

/* ------------------------------------------------------ sessions, handles */

enum { SESSION_MAGIC = 0x7075, HANDLE_MAGIC = 0x7076 };

struct PVAR_SESSION {
    int magic;
    MPI_T_pvar_handle first; /* of its handles */
};
struct PVAR_HANDLE {
    int magic;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle next;
    const struct pvar *pvar;
};

static bool session_valid(MPI_T_pvar_session session)
{
    return session && session->magic == SESSION_MAGIC;
}

/* The result for a pair that is none, or MPI_SUCCESS. */
static int check(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    if (!session_valid(session)) return MPI_T_ERR_INVALID_SESSION;
    if (handle == MPI_T_PVAR_ALL_HANDLES || !handle ||
        handle->magic != HANDLE_MAGIC || handle->session != session)
        return MPI_T_ERR_INVALID_HANDLE;
    return MPI_SUCCESS;
}

static void handle_drop(MPI_T_pvar_handle handle)
{
    handle->magic = 0;
    free(handle);
}

int mpi_T_pvar_session_create(MPI_T_pvar_session *session)
{
    if (!session) return MPI_T_ERR_INVALID;
    *session = calloc(1, sizeof **session);
    if (!*session) return MPI_T_ERR_OUT_OF_SESSIONS;
    (*session)->magic = SESSION_MAGIC;
    return MPI_SUCCESS;
}

int mpi_T_pvar_session_free(MPI_T_pvar_session *session)
{
    if (!session || !session_valid(*session)) return MPI_T_ERR_INVALID_SESSION;
    while ((*session)->first) {
        MPI_T_pvar_handle handle = (*session)->first;
        (*session)->first = handle->next;
        handle_drop(handle);
    }
    (*session)->magic = 0;
    free(*session);
    *session = MPI_T_PVAR_SESSION_NULL;
    return MPI_SUCCESS;
}

int mpi_T_pvar_handle_alloc(MPI_T_pvar_session session, int index, void *object,
                            MPI_T_pvar_handle *handle, int *count)
{
    if (!session_valid(session)) return MPI_T_ERR_INVALID_SESSION;
    if (index < 0 || index >= PVARS) return MPI_T_ERR_INVALID_INDEX;
    if (!handle || !count) return MPI_T_ERR_INVALID;
    MPI_T_pvar_handle new = calloc(1, sizeof *new);
    if (!new) return MPI_T_ERR_OUT_OF_HANDLES;
    new->magic = HANDLE_MAGIC;
    new->session = session;
    new->pvar = &pvars[index];
    pthread_mutex_lock(&lock);
    new->next = session->first;
    session->first = new;
    pthread_mutex_unlock(&lock);
    *handle = new;
    *count = 1;
    return MPI_SUCCESS;
}

int mpi_T_pvar_handle_free(MPI_T_pvar_session session,
                           MPI_T_pvar_handle *handle)
{
    if (!handle) return MPI_T_ERR_INVALID;
    int result = check(session, *handle);
    if (result != MPI_SUCCESS) return result;
    pthread_mutex_lock(&lock);
    MPI_T_pvar_handle *at = &session->first;
    while (*at != *handle) at = &(*at)->next;
    *at = (*handle)->next;
    pthread_mutex_unlock(&lock);
    handle_drop(*handle);
    *handle = MPI_T_PVAR_HANDLE_NULL;
    return MPI_SUCCESS;
}

int mpi_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                    void *buffer)
{
    int result = check(session, handle);
    if (result != MPI_SUCCESS) return result;
    if (!buffer) return MPI_T_ERR_INVALID;
    unsigned long long value = value_of(handle->pvar);
    memcpy(buffer, &value, sizeof value);
    return MPI_SUCCESS;
}

/* What no variable allows. */
static int refuse(MPI_T_pvar_session session, MPI_T_pvar_handle handle, int why)
{
    int result = check(session, handle);
    return result != MPI_SUCCESS ? result : why;
}

/* The handle of all variables has those for which it is allowed: none. */
static int refuse_one(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                      int why)
{
    if (session_valid(session) && handle == MPI_T_PVAR_ALL_HANDLES)
        return MPI_SUCCESS;
    return refuse(session, handle, why);
}

int mpi_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                         void *buffer)
{
    return refuse(session, handle, MPI_T_ERR_PVAR_NO_ATOMIC);
}

int mpi_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                     const void *buffer)
{
    return refuse(session, handle, MPI_T_ERR_PVAR_NO_WRITE);
}

int mpi_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return refuse_one(session, handle, MPI_T_ERR_PVAR_NO_WRITE);
}

int mpi_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return refuse_one(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP);
}

int mpi_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return refuse_one(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP);
}
