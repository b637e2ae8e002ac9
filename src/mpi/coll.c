/* coll.c - the engine of collectives and the one place that decides what the
 * loss of a member means. */
#include "coll.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* No collective of the program counts this far before the field wraps around
 * to it again, see comm_tag_of. */
enum { FINISH_SEQUENCE = 0x3fffff, FINISH_TRIES = 1000 };

/* ---------------------------------------------------------------- resources */

void coll_begin(struct coll *coll)
{
    coll->called = coll->members = comm_members(coll->comm);
    coll->op.size = sizeof coll->op;
}

static void stages_free(struct coll *coll)
{
    for (int i = 0; i < COLL_STAGES; i++) {
        free(coll->stages[i]);
        coll->stages[i] = NULL;
    }
    free(coll->exchange);
    free(coll->blocks);
    coll->exchange = NULL;
    coll->blocks = NULL;
}

static void arguments_free(struct coll *coll)
{
    stages_free(coll);
    free(coll->input);
    free(coll->sendcounts);
    free(coll->recvcounts);
    free(coll->senddispls);
    free(coll->recvdispls);
    free(coll->sendtypes);
    free(coll->recvtypes);
}

void *coll_stage(struct coll *coll, int index, size_t size)
{
    assert(!coll->stages[index]);
    coll->stages[index] = malloc(size ? size : 1);
    if (!coll->stages[index])
        error_note(MPI_ERR_NO_MEM, "no memory for %zu bytes", size);
    return coll->stages[index];
}

int coll_root_now(const struct coll *coll)
{
    if (coll->called == coll->members) return coll->root;
    return group_rank_of(coll->members, coll->called->ids[coll->root]);
}

int coll_old_rank(const struct coll *coll, int rank)
{
    if (coll->called == coll->members) return rank;
    return group_rank_of(coll->called, coll->members->ids[rank]);
}

/* ------------------------------------------------------------------- failure */

/* Names the members of `before` that are not in `after`. */
static void lost_describe(const struct group *before, const struct group *after,
                          char *text, size_t size)
{
    size_t used = 0;
    *text = 0;
    for (int i = 0; i < before->size && used < size; i++) {
        if (group_rank_of(after, before->ids[i]) != MPI_UNDEFINED) continue;
        int n = snprintf(text + used, size - used, "%s%d", used ? ", " : "", i);
        used += n > 0 ? (size_t)n : 0;
    }
}

static _Noreturn void failure_abort(const struct coll *coll, const char *what)
{
    char lost[128] = "", detail[256] = "", line[640];
    const char *function = coll->function;
    if (function[0] == 'P') function++;
    if (world_refresh())
        lost_describe(coll->called, atomic_load(&world.view), lost,
                      sizeof lost);
    (void)pcclGetLastError(world.pccl, detail, sizeof detail);
    snprintf(line, sizeof line,
             "Abort(%d) on node %d (rank %d in comm 0x%08x): Fatal error in "
             "%s: %s%s%s%s%s (PCCL_ON_FAILURE=abort)",
             MPIX_ERR_PROC_FAILED, coll->called->rank, coll->called->rank,
             (unsigned)coll->comm->object.handle, function, what,
             *lost ? ": rank " : "", lost, *detail ? ": " : "", detail);
    env_abort(MPIX_ERR_PROC_FAILED, line);
}

/* Drops the members of a communicator with a list of its own that are gone. */
static int members_filter(struct comm *comm)
{
    const struct group *now = comm_members(comm);
    const struct group *view = atomic_load(&world.view);
    struct group *left = group_new(now->size);
    if (!left) return error_note(MPI_ERR_NO_MEM, "out of memory");
    int used = 0;
    for (int i = 0; i < now->size; i++)
        if (group_rank_of(view, now->ids[i]) != MPI_UNDEFINED)
            left->ids[used++] = now->ids[i];
    if (used == now->size) {
        object_release(&left->object);
        return error_note(MPIX_ERR_PROC_FAILED,
                          "a member of the communicator was lost");
    }
    left->size = used;
    group_place(left, world.self);
    atomic_fetch_add(&comm->lost, (unsigned)(now->size - used));
    comm_members_replace(comm, left);
    return MPI_SUCCESS;
}

static int failure_shrink(struct coll *coll)
{
    struct comm *comm = coll->comm;
    if (!world_refresh())
        return error_note(MPI_ERR_OTHER, "cannot read the view of the run");
    /* Another operation may have taken the loss into account already. */
    if (!comm->follows_world && comm_members(comm) == coll->members) {
        int result = members_filter(comm);
        if (result != MPI_SUCCESS) return result;
    }
    coll->members = comm_members(comm);
    if (coll->rooted && coll_root_now(coll) == MPI_UNDEFINED)
        return error_note(MPIX_ERR_PROC_FAILED, "the root was lost");
    coll->round = 0;
    stages_free(coll);
    return MPI_SUCCESS;
}

/* What PCCL_ON_FAILURE says about a failed operation. MPI_SUCCESS: start the
 * steps again. */
static int coll_failed(struct coll *coll, pcclResult_t result)
{
    char detail[256] = "";
    (void)pcclGetLastError(world.pccl, detail, sizeof detail);
    const char *text = *detail ? detail : pcclGetErrorString(result);
    switch (result) {
    case pcclRankConnectionLost:
    case pcclTooFewPeers:
        if (world.policy == FAILURE_SHRINK) return failure_shrink(coll);
        if (world.policy == FAILURE_ABORT) failure_abort(coll, "process lost");
        return error_note(MPIX_ERR_PROC_FAILED, "a member was lost: %s", text);
    case pcclMasterConnectionFailed:
        if (world.policy == FAILURE_ABORT)
            failure_abort(coll, "this process was evicted or the run is over");
        return error_note(MPI_ERR_OTHER,
                          "this process was evicted or the run is over: %s",
                          text);
    case pcclInvalidArgument:
        return error_note(MPI_ERR_NOT_SAME,
                          "the members do not agree on the arguments: %s",
                          text);
    case pcclInternalError: return error_note(MPI_ERR_NO_MEM, "%s", text);
    default: return error_note(MPI_ERR_OTHER, "%s", text);
    }
}

/* ------------------------------------------------------------------- running */

/* The operation in a group of one. */
static void run_alone(const pcclCollective_t *op, size_t element_size)
{
    size_t size = op->count * element_size;
    switch (op->kind) {
    case pcclKindAllReduce:
        if (op->sendbuf != op->recvbuf && size > 0)
            memcpy(op->recvbuf, op->sendbuf, size);
        break;
    case pcclKindAllGather:
        if (op->sendbuf && op->count > 0)
            memcpy(op->recvbuf, op->sendbuf, op->count);
        break;
    case pcclKindAllToAllV:
        if (op->send_bytes[0] > 0)
            memcpy((char *)op->recvbuf + op->recv_displs[0],
                   (const char *)op->sendbuf + op->send_displs[0],
                   op->send_bytes[0]);
        break;
    case pcclKindBroadcast:
    case pcclKindBarrier: break;
    }
}

static size_t pccl_size(pcclDataType_t type)
{
    switch (type) {
    case pcclUint8:
    case pcclInt8: return 1;
    case pcclUint16:
    case pcclInt16:
    case pcclFloat16:
    case pcclBFloat16: return 2;
    case pcclUint32:
    case pcclInt32:
    case pcclFloat: return 4;
    case pcclUint64:
    case pcclInt64:
    case pcclDouble: return 8;
    }
    return 1;
}

/* Tag, scope and epoch for the members it runs among now. */
static void op_address(struct coll *coll)
{
    const struct comm *comm = coll->comm;
    coll->op.tag = comm_tag_of(comm, coll->sequence);
    coll->op.view_epoch = comm->follows_world ? coll->members->epoch : 0;
    coll->op.members = comm->follows_world ? NULL : coll->members->ids;
    coll->op.member_count =
        comm->follows_world ? 0 : (size_t)coll->members->size;
}

/* Advances by steps that need no waiting. COLL_RUN: an operation is ready to
 * be launched. */
static int next_operation(struct coll *coll)
{
    for (;;) {
        int step = coll->step(coll);
        if (step != COLL_RUN) return step;
        if (coll->members->size > 1) {
            op_address(coll);
            return COLL_RUN;
        }
        run_alone(&coll->op, pccl_size(coll->op.datatype));
        coll->round++;
    }
}

static int run_blocking(struct coll *coll)
{
    for (;;) {
        int step = next_operation(coll);
        if (step != COLL_RUN) return step;
        pcclResult_t result = pcclCollective(&coll->op, world.pccl, NULL);
        if (result == pcclSuccess) {
            coll->round++;
            continue;
        }
        int error = coll_failed(coll, result);
        if (error != MPI_SUCCESS) return error;
    }
}

/* An in-place input that was overwritten in part comes back on failure. */
static int settle(struct coll *coll, int error)
{
    if (error != MPI_SUCCESS && coll->input)
        type_unpack(coll->recvbuf, coll->recvcount, coll->recvtype, 0,
                    coll->input, coll->recvcount * coll->recvtype->size);
    coll->error = error;
    return error;
}

/* Polls the operation in flight and launches the next; true when done. */
static bool advance(struct coll *coll)
{
    for (;;) {
        pcclResult_t result;
        if (coll->launched) {
            bool done = true;
            if (pcclTestAsync(&coll->handle, &done) == pcclSuccess && !done)
                return false;
            result = pcclAwaitAsyncReduce(&coll->handle, NULL);
            coll->launched = false;
            if (result == pcclSuccess) coll->round++;
        } else {
            int step = next_operation(coll);
            if (step != COLL_RUN) {
                (void)settle(coll, step);
                return true;
            }
            result = pcclCollectiveAsync(&coll->op, world.pccl, &coll->handle);
            coll->launched = result == pcclSuccess;
        }
        if (result == pcclSuccess) continue;
        int error = coll_failed(coll, result);
        if (error != MPI_SUCCESS) {
            (void)settle(coll, error);
            return true;
        }
    }
}

/* Unfinished nonblocking collectives, of all threads. Any waiting thread moves
 * all of them: a member that waits for one may be needed for another. */
static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;
static struct coll *pending;
static atomic_int pending_count;

static void pending_add(struct coll *coll)
{
    pthread_mutex_lock(&pending_lock);
    coll->next = pending;
    if (pending) pending->previous = coll;
    pending = coll;
    coll->listed = true;
    pthread_mutex_unlock(&pending_lock);
    atomic_fetch_add(&pending_count, 1);
}

/* With pending_lock. */
static void pending_remove(struct coll *coll)
{
    if (coll->previous)
        coll->previous->next = coll->next;
    else
        pending = coll->next;
    if (coll->next) coll->next->previous = coll->previous;
    coll->next = coll->previous = NULL;
    coll->listed = false;
    atomic_fetch_sub(&pending_count, 1);
}

bool coll_progress(struct coll *coll)
{
    if (atomic_load(&coll->finished)) return true;
    pthread_mutex_lock(&pending_lock);
    bool mine = coll->listed && !coll->busy;
    if (mine) coll->busy = true;
    pthread_mutex_unlock(&pending_lock);
    if (!mine) return atomic_load(&coll->finished);
    bool done = advance(coll);
    pthread_mutex_lock(&pending_lock);
    coll->busy = false;
    if (done) pending_remove(coll);
    pthread_mutex_unlock(&pending_lock);
    /* Last: the owner may free it from here on. */
    if (done) atomic_store(&coll->finished, true);
    return done;
}

void coll_progress_all(void)
{
    /* One pass; a coll that another thread moves is left to it. */
    enum { BATCH = 64 };
    struct coll *batch[BATCH];
    int count = 0;
    if (atomic_load(&pending_count) == 0) return;
    pthread_mutex_lock(&pending_lock);
    for (struct coll *at = pending; at && count < BATCH; at = at->next) {
        if (at->busy) continue;
        at->busy = true;
        batch[count++] = at;
    }
    pthread_mutex_unlock(&pending_lock);
    for (int i = 0; i < count; i++) {
        bool done = advance(batch[i]);
        pthread_mutex_lock(&pending_lock);
        batch[i]->busy = false;
        if (done) pending_remove(batch[i]);
        pthread_mutex_unlock(&pending_lock);
        if (done) atomic_store(&batch[i]->finished, true);
    }
}

void backoff(unsigned *turn)
{
    if ((*turn)++ < 200) {
        sched_yield();
        return;
    }
    struct timespec pause = {.tv_nsec = *turn < 1000 ? 20000 : 200000};
    nanosleep(&pause, NULL);
}

/* Numbers the collective and runs it to the end. */
static int run(struct coll *coll)
{
    coll->sequence = comm_sequence(coll->comm);
    if (coll->members->size == 1 || atomic_load(&pending_count) == 0)
        return settle(coll, run_blocking(coll));
    unsigned turn = 0;
    pending_add(coll);
    while (!coll_progress(coll)) {
        coll_progress_all();
        backoff(&turn);
    }
    return coll->error;
}

int coll_run(struct coll *coll)
{
    int error = run(coll);
    arguments_free(coll);
    if (error == MPI_SUCCESS) return MPI_SUCCESS;
    return error_raise_noted(coll->comm, error, coll->function);
}

int coll_refuse(struct coll *coll, int error_class, const char *text)
{
    arguments_free(coll);
    return error_raise(coll->comm, error_class, coll->function, "%s", text);
}

int coll_go(struct coll *coll, MPI_Request *request)
{
    return request ? coll_start(coll, request) : coll_run(coll);
}

/* --------------------------------------------------------------- nonblocking */

static void references(struct coll *coll, void (*change)(struct object *))
{
    struct type *types[] = {coll->sendtype, coll->recvtype};
    for (int i = 0; i < 2; i++)
        if (types[i] && !types[i]->predefined) change(&types[i]->object);
    if (coll->reducer && !coll->reducer->predefined)
        change(&coll->reducer->object);
    for (int i = 0; coll->sendtypes && i < coll->called->size; i++)
        change(&coll->sendtypes[i]->object);
    for (int i = 0; coll->recvtypes && i < coll->called->size; i++)
        change(&coll->recvtypes[i]->object);
    change(&coll->comm->object);
}

void coll_free(struct coll *coll)
{
    references(coll, object_release);
    arguments_free(coll);
    free(coll);
}

static bool request_progress(struct request *request)
{
    struct coll *coll = request->state;
    if (!coll_progress(coll)) {
        coll_progress_all();
        if (!atomic_load(&coll->finished)) return false;
    }
    request->error = coll->error;
    status_empty(&request->status);
    return true;
}

static void request_release(struct request *request)
{
    coll_free(request->state);
}

static const struct request_kind coll_kind = {.progress = request_progress,
                                              .release = request_release};

int coll_start(struct coll *from, MPI_Request *out)
{
    struct coll *coll = malloc(sizeof *coll);
    if (!coll) return coll_refuse(from, MPI_ERR_NO_MEM, "out of memory");
    memcpy(coll, from, sizeof *coll);
    references(coll, object_retain);
    struct request *request = request_new(&coll_kind, coll->comm, coll);
    if (!request) {
        coll_free(coll);
        return error_raise(from->comm, MPI_ERR_NO_MEM, from->function,
                           "out of memory");
    }
    coll->sequence = comm_sequence(coll->comm);
    pending_add(coll);
    (void)coll_progress(coll);
    request->active = true;
    int result = request_publish(request, out);
    if (result == MPI_SUCCESS) return MPI_SUCCESS;
    return error_raise_noted(from->comm, result, from->function);
}

/* ---------------------------------------------------------- for the facade */

int coll_gather_bytes(struct comm *comm, const void *mine, size_t size,
                      void *all)
{
    struct coll coll = {.comm = comm, .function = "MPI internal"};
    coll.step = step_allgather;
    coll.sendbuf = mine;
    coll.recvbuf = all;
    coll.sendtype = coll.recvtype = type_find(MPI_BYTE);
    coll.sendcount = coll.recvcount = (MPI_Count)size;
    coll_begin(&coll);
    int error = run(&coll);
    arguments_free(&coll);
    return error;
}

int coll_max_u32(struct comm *comm, uint32_t mine, uint32_t *out)
{
    struct coll coll = {.comm = comm, .function = "MPI internal"};
    coll.step = step_reduce_direct;
    coll.sendbuf = &mine;
    coll.recvbuf = out;
    coll.sendtype = coll.recvtype = type_find(MPI_UINT32_T);
    coll.recvcount = 1;
    coll.keep = true;
    coll.keep_count = 1;
    coll.reducer = op_find(MPI_MAX);
    coll_begin(&coll);
    int error = run(&coll);
    arguments_free(&coll);
    return error;
}

int coll_barrier(struct comm *comm)
{
    struct coll coll = {.comm = comm, .function = "MPI internal"};
    coll.step = step_barrier;
    coll_begin(&coll);
    return run(&coll);
}

/* The barrier of MPI_Finalize. A survivor's MPI_Finalize succeeds: losses are
 * neither reported nor do they end the job here. */
int coll_finish(void)
{
    pcclCollective_t op = {.size = sizeof op, .kind = pcclKindBarrier};
    op.tag = comm_tag_of(&comm_world, FINISH_SEQUENCE);
    pcclResult_t result = pcclRankConnectionLost;
    for (int tries = 0; tries < FINISH_TRIES; tries++) {
        if (!world_refresh() || atomic_load(&world.view)->size == 1) break;
        op.view_epoch = atomic_load(&world.view)->epoch;
        result = pcclCollective(&op, world.pccl, NULL);
        if (result != pcclRankConnectionLost) break;
    }
    return result == pcclSuccess ? MPI_SUCCESS : MPI_ERR_OTHER;
}
