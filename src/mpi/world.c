/* world.c - the connection to the run and the current view of its members. */
#include "mpi_comm.h"
#include "mpi_progress.h"
#include "slurm.h"
#include "tools.h"
#include "waiting.h"

#include "../base/host_id.h"
#include "../base/quiet_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TASK_WAIT_MS = 60000 };

struct world world;

static void policy_read(void)
{
    static const struct {
        const char *name;
        enum failure_policy policy;
        bool forced;
    } known[] = {{"abort", FAILURE_ABORT, false},
                 {"shrink", FAILURE_SHRINK, false},
                 {"force", FAILURE_SHRINK, true},
                 {"return", FAILURE_RETURN, false}};
    const char *text = getenv("PCCL_ON_FAILURE");
    world.policy = FAILURE_ABORT;
    if (!text || !*text) return;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcasecmp(text, known[i].name) == 0) {
            world.policy = known[i].policy;
            world.forced = known[i].forced;
            return;
        }
    }
    quiet_print(
        "pccl: PCCL_ON_FAILURE=%s is none of abort, shrink, force, return; "
        "taking abort\n",
        text);
}

static void lost_root_read(void)
{
    const char *text = getenv("PCCL_LOST_ROOT");
    world.promotes = text && strcasecmp(text, "promote") == 0;
    if (!text || !*text || world.promotes || strcasecmp(text, "end") == 0)
        return;
    quiet_print("pccl: PCCL_LOST_ROOT=%s is none of end, promote; taking end\n",
                text);
}

static bool view_alone(void)
{
    struct view *alone = view_new(1, 0, 0);
    if (!alone) return false;
    alone->members[0].id = world.self = 1;
    view_index(alone);
    struct group *view = group_of_view(alone);
    atomic_store(&world.view, view);
    return view != NULL;
}

/* N tasks that each are a world of one do the work N times. */
static void alone_warn(void)
{
    int rank, size;
    const char *launcher;
    if (!foreign_task_read(&rank, &size, &launcher) || rank != 0) return;
    quiet_print(
        "pccl: %s has started %d processes, and each of them is a world of "
        "one: they have no PCCL_MASTER. Start them by pccl-master -n %d\n",
        launcher, size, size);
}

/* A task waits for the master, which task 0 may not have started yet. */
static pcclResult_t connect_to(const char *master,
                               const struct slurm_task *task)
{
    const char *rank = getenv("PCCL_RANK");
    int hint = rank && *rank ? (int)strtol(rank, NULL, 10) : -1;
    pcclCommCreateParams_t params = {.peer_group = 0};
    /* In this mode the program repairs its world itself. */
    pcclCommOptions_t options = {.size = sizeof options,
                                 .rank_hint = task ? task->rank : hint,
                                 .evicts_nobody =
                                     world.policy == FAILURE_RETURN,
                                 .goes_on_with_few = 1,
                                 .masters = task ? task->master : master,
                                 .master_wait_ms = task ? TASK_WAIT_MS : 0,
                                 .must_leave = 1};
    pcclResult_t result = pcclCreateCommunicator(&params, &world.pccl);
    if (result != pcclSuccess) return result;
    result = pcclSetOptions(world.pccl, &options);
    if (result == pcclSuccess) result = pcclSetNamer(world.pccl, waiting_name);
    if (result == pcclSuccess) result = pcclConnect(world.pccl);
    return result;
}

/* Without one the coordinator would refuse all tasks of other hosts. */
static bool has_key(void)
{
    const char *file = getenv("PCCL_TOKEN_FILE");
    const char *insecure = getenv("PCCL_INSECURE");
    return (file && *file) || (insecure && strcmp(insecure, "1") == 0);
}

static bool connect_run(const char *master, const struct slurm_task *task,
                        char *message, size_t size)
{
    char detail[256] = "";
    if (task && !task->alone && !has_key()) {
        snprintf(message, size,
                 "the tasks are on several hosts, and this run has no key: "
                 "give all a token file (PCCL_TOKEN_FILE, made by pccl-master "
                 "--make-token), or PCCL_INSECURE=1 in a network that you "
                 "trust");
        return false;
    }
    if (task && task->rank == 0 && !slurm_master_start(task, message, size))
        return false;
    pcclResult_t result = connect_to(master, task);
    if (result == pcclSuccess) return true;
    if (world.pccl) {
        (void)pcclGetLastError(world.pccl, detail, sizeof detail);
        (void)pcclDestroyCommunicator(world.pccl);
        world.pccl = NULL;
    }
    snprintf(message, size, "cannot join the run at %s: %s%s%s",
             task ? task->master : master, pcclGetErrorString(result),
             *detail ? ": " : "", detail);
    return false;
}

bool world_connect(char *message, size_t size)
{
    const char *master = getenv("PCCL_MASTER");
    struct slurm_task task;
    bool is_task = (!master || !*master) && slurm_task_read(&task);
    policy_read();
    lost_root_read();
    snprintf(message, size, "out of memory");
    pcclResult_t result = pcclInit(); /* warns of unknown variables */
    if (!is_task && (!master || !*master)) {
        alone_warn();
        return view_alone();
    }
    if (result != pcclSuccess) {
        snprintf(message, size, "%s", pcclGetErrorString(result));
        return false;
    }
    if (!connect_run(master, is_task ? &task : NULL, message, size))
        return false;
    (void)pcclTraceEnabled(&world.traces);
    tools_join(world.pccl);
    snprintf(message, size, "cannot read the view of the run");
    return world_refresh();
}

void world_disconnect(void)
{
    tools_leave();
    if (world.pccl) (void)pcclDestroyCommunicator(world.pccl);
    world.pccl = NULL;
}

struct group *world_now(void)
{
    if (!world.pccl) return group_copy(atomic_load(&world.view));
    const struct view *view = pcclHoldView(world.pccl);
    return view ? group_of_view(view) : NULL;
}

static void tell_crowd(const struct view *view)
{
    uint64_t host = view->members[view->rank].host;
    uint32_t here = 0;
    for (uint32_t i = 0; i < view->size; i++)
        here += view->members[i].host >> 1 == host >> 1;
    mpi_progress_crowd(here, host_processors(host));
}

bool world_refresh(void)
{
    if (!world.pccl) return true;
    struct group *view = world_now();
    if (!view) return false;
    facade_lock();
    struct group *old = atomic_load(&world.view);
    bool news = !old || old->view->epoch < view->view->epoch;
    if (news) {
        tell_crowd(view->view);
        world.self = view->ids[view->rank];
        object_retain(&view->object);
        atomic_store(&world.view, view);
    }
    facade_unlock();
    if (news && old) {
        tools_view(old, view);
        facade_lock();
        group_retire(old);
        facade_unlock();
    }
    object_release(&view->object);
    return true;
}

bool world_learn(const struct group *scope)
{
    return pcclTakeLoss(world.pccl, scope->ids, (size_t)scope->size, NULL) ==
           pcclSuccess;
}
