/* mpi_env.c - initialization, finalization, and inquiry about process and
 * library. */
#include "coll.h"
#include "mpi_comm.h"
#include "mpi_op.h"
#include "p2p.h"
#include "mpi_progress.h"
#include "rank_use.h"
#include "request.h"
#include "revoke.h"
#include "transport.h"
#include "type.h"

#include "../base/quiet_write.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Phases of the connection, and of the world model on top of it. Sessions may
 * exist without MPI_Init, before it and after MPI_Finalize. A process that was
 * forked after the connection was made has no part in it (PHASE_FORKED). */
enum phase {
    PHASE_BEFORE,
    PHASE_STARTING,
    PHASE_ACTIVE,
    PHASE_OVER,
    PHASE_FORKED
};

static _Atomic(enum phase) run_phase, world_phase;
static int thread_level;
static pthread_t main_thread;
/* Guards start and stop, and the variables below. */
static pthread_mutex_t lifecycle = PTHREAD_MUTEX_INITIALIZER;
static int session_count;
static bool sessions_used;

bool env_active(void)
{
    return atomic_load(&run_phase) == PHASE_ACTIVE;
}

bool env_forked(void)
{
    return atomic_load(&run_phase) == PHASE_FORKED;
}

const char *env_outside(void)
{
    if (env_forked())
        return " (this process was forked from a rank, and is no part of its "
               "run)";
    if (env_active()) return "";
    return atomic_load(&world_phase) == PHASE_OVER
               ? " (MPI_Finalize has been called)"
               : " (MPI_Init has not been called)";
}

static void in_child(void)
{
    atomic_store(&run_phase, PHASE_FORKED);
}

bool env_world_active(void)
{
    return env_active() && atomic_load(&world_phase) == PHASE_ACTIVE;
}

int env_thread_level(void)
{
    return thread_level;
}

_Noreturn void env_abort(int code, const char *message)
{
    quiet_print("%s\n", message);
    quiet_flush();
    if (world.pccl) (void)pcclAbortRun(world.pccl, code);
    /* Not exit(): a program may call MPI from its exit handlers. */
    _exit(code & 0xff ? code & 0xff : code ? 1 : 0);
}

/* The caller holds `lifecycle`. Connects once; errors end the process. */
static void run_start(int required, const char *function)
{
    char message[512];
    if (atomic_load(&run_phase) == PHASE_ACTIVE) return;
    if (atomic_load(&run_phase) == PHASE_OVER)
        env_abort(MPI_ERR_OTHER, "MPI cannot be initialized again: the process "
                                 "has left the run");
    if (env_forked())
        env_abort(MPI_ERR_OTHER, "MPI cannot be initialized in a process that "
                                 "was forked from a rank");
    atomic_store(&run_phase, PHASE_STARTING);
    (void)pthread_atfork(NULL, NULL, in_child);
    if (required < MPI_THREAD_SINGLE) required = MPI_THREAD_SINGLE;
    thread_level =
        required > MPI_THREAD_MULTIPLE ? MPI_THREAD_MULTIPLE : required;
    main_thread = pthread_self();
    op_start();
    if (!type_start() || !requests_start() ||
        !world_connect(message, sizeof message) || !comm_start()) {
        char line[640];
        snprintf(line, sizeof line, "Fatal error in %s: %s", function, message);
        env_abort(MPI_ERR_OTHER, line);
    }
    rank_use_start();
    atomic_store(&run_phase, PHASE_ACTIVE);
    /* Losses are reported only after a first poll for events. */
    (void)transport_progress(0);
    if (world.pccl) (void)mpi_progress_start();
}

/* The caller holds `lifecycle`. */
static void run_stop(bool together)
{
    /* A member leaves only when none works any more; a loss here does not
     * matter. */
    transport_stop();
    if (world.pccl && together) (void)coll_finish();
    mpi_progress_stop();
    transport_end();
    p2p_stop();
    revoke_stop();
    atomic_store(&run_phase, PHASE_OVER);
    world_disconnect();
    comm_stop();
    groups_release_retired();
    struct group *view = atomic_exchange(&world.view, NULL);
    if (view) object_release(&view->object);
}

/* A session may follow the last finalized one, and a process that has left a
 * run cannot return as the same member. So a process with sessions leaves when
 * it exits; an open session then is a failure. */
static void leave_at_exit(void)
{
    if (env_forked()) return;
    pthread_mutex_lock(&lifecycle);
    if (env_active() && session_count == 0 &&
        atomic_load(&world_phase) != PHASE_ACTIVE)
        run_stop(true);
    pthread_mutex_unlock(&lifecycle);
}

_Noreturn void env_leave(void)
{
    (void)attr_delete_all(MPI_COMM_SELF, &comm_self.attributes);
    (void)attr_delete_all(MPI_COMM_WORLD, &comm_world.attributes);
    pthread_mutex_lock(&lifecycle);
    run_stop(false);
    atomic_store(&world_phase, PHASE_OVER);
    pthread_mutex_unlock(&lifecycle);
    exit(EXIT_SUCCESS);
}

void env_session_begin(int level, const char *function)
{
    pthread_mutex_lock(&lifecycle);
    run_start(level, function);
    session_count++;
    if (!sessions_used) (void)atexit(leave_at_exit);
    sessions_used = true;
    pthread_mutex_unlock(&lifecycle);
}

void env_session_end(void)
{
    pthread_mutex_lock(&lifecycle);
    session_count--;
    pthread_mutex_unlock(&lifecycle);
}

static int start(int required, int *provided, const char *function)
{
    enum phase before = PHASE_BEFORE;
    if (!atomic_compare_exchange_strong(&world_phase, &before, PHASE_STARTING))
        return error_raise(NULL, MPI_ERR_OTHER, function,
                           before == PHASE_OVER
                               ? "MPI cannot be initialized again"
                               : "MPI is initialized already");
    pthread_mutex_lock(&lifecycle);
    run_start(required, function);
    atomic_store(&world_phase, PHASE_ACTIVE);
    pthread_mutex_unlock(&lifecycle);
    if (provided) *provided = thread_level;
    return MPI_SUCCESS;
}

MPI_PUBLIC(Init);
int PMPI_Init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return start(MPI_THREAD_SINGLE, NULL, "MPI_Init");
}

MPI_PUBLIC(Init_thread);
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    (void)argc;
    (void)argv;
    return start(required, provided, "MPI_Init_thread");
}

MPI_PUBLIC(Finalize);
int PMPI_Finalize(void)
{
    if (!env_world_active())
        return RAISE(NULL, MPI_ERR_OTHER, "MPI is not initialized");
    /* Attributes of MPI_COMM_SELF go first, as the standard requires: programs
     * use their delete callbacks for finalization. */
    (void)attr_delete_all(MPI_COMM_SELF, &comm_self.attributes);
    (void)attr_delete_all(MPI_COMM_WORLD, &comm_world.attributes);
    rank_use_tell_end();
    pthread_mutex_lock(&lifecycle);
    if (!sessions_used) run_stop(true);
    atomic_store(&world_phase, PHASE_OVER);
    pthread_mutex_unlock(&lifecycle);
    return MPI_SUCCESS;
}

int mpi_Initialized(int *flag)
{
    enum phase now = atomic_load(&world_phase);
    *flag = now == PHASE_ACTIVE || now == PHASE_OVER;
    return MPI_SUCCESS;
}

int mpi_Finalized(int *flag)
{
    *flag = atomic_load(&world_phase) == PHASE_OVER;
    return MPI_SUCCESS;
}

int mpi_Query_thread(int *provided)
{
    *provided = thread_level;
    return MPI_SUCCESS;
}

int mpi_Is_thread_main(int *flag)
{
    *flag = pthread_equal(main_thread, pthread_self()) != 0;
    return MPI_SUCCESS;
}

MPI_PUBLIC(Abort);
int PMPI_Abort(MPI_Comm handle, int code)
{
    char line[256], name[32];
    struct comm *comm = comm_find(handle);
    const struct group *view = env_active() ? atomic_load(&world.view) : NULL;
    const struct group *members = comm ? comm_members(comm) : view;
    snprintf(name, sizeof name, "comm=0x%08X", HANDLE_BITS(handle));
    snprintf(line, sizeof line,
             "Abort(%d) on node %d (rank %d in comm %d): application called "
             "MPI_Abort(%s, %d) - process %d",
             code, view ? view->rank : 0, members ? members->rank : 0,
             comm ? (int)comm->context : 0,
             handle == MPI_COMM_WORLD  ? "MPI_COMM_WORLD"
             : handle == MPI_COMM_SELF ? "MPI_COMM_SELF"
                                       : name,
             code, view ? view->rank : 0);
    env_abort(code, line);
}

MPI_PUBLIC(Wtime);
double PMPI_Wtime(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

MPI_PUBLIC(Wtick);
double PMPI_Wtick(void)
{
    struct timespec tick;
    clock_getres(CLOCK_MONOTONIC, &tick);
    return (double)tick.tv_sec + 1e-9 * (double)tick.tv_nsec;
}

int mpi_Get_processor_name(char *name, int *length)
{
    if (!name) return note_argument("null name");
    if (gethostname(name, MPI_MAX_PROCESSOR_NAME - 1) != 0)
        snprintf(name, MPI_MAX_PROCESSOR_NAME, "localhost");
    name[MPI_MAX_PROCESSOR_NAME - 1] = 0;
    *length = (int)strlen(name);
    return MPI_SUCCESS;
}

int mpi_Get_version(int *version, int *subversion)
{
    *version = MPI_VERSION;
    *subversion = MPI_SUBVERSION;
    return MPI_SUCCESS;
}

int mpi_Get_library_version(char *version, int *length)
{
    if (!version) return note_argument("null version");
    snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING,
             "PCCL/MPI %s: elastic, fault-tolerant collectives over libpccl.\n"
             "Not MPICH; offers %s. Functions beyond its\n"
             "tables return MPI_ERR_UNSUPPORTED_OPERATION.\n",
             PCCL_MPI_VERSION, FACE_NAME);
    *length = (int)strlen(version);
    return MPI_SUCCESS;
}

MPI_PUBLIC(Pcontrol);
int PMPI_Pcontrol(const int level, ...)
{
    (void)level;
    return MPI_SUCCESS;
}

int mpi_Alloc_mem(MPI_Aint size, MPI_Info info, void *base)
{
    (void)info;
    if (size < 0 || !base) return note_argument("negative size or null base");
    void *memory = NULL;
    if (posix_memalign(&memory, 64, size ? (size_t)size : 1) != 0)
        return note_no_memory();
    *(void **)base = memory;
    return MPI_SUCCESS;
}

int mpi_Free_mem(void *base)
{
    free(base);
    return MPI_SUCCESS;
}
