/* coll.c - the collective engine: runs the steps of a collective. */
#include "coll.h"
#include "rank_use.h"
#include "revoke.h"
#include "transport.h"
#include "waiting.h"

#include "../base/fnv.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { FINISH_TRIES = 1000 };

/* ---------------------------------------------------------------- resources */

void coll_members_set(struct coll *coll, const struct group *members)
{
    struct group *old = coll->members;
    if (old == members) return;
    coll->members = (struct group *)(uintptr_t)members;
    if (members != coll->called) object_retain(&coll->members->object);
    if (old != coll->called) object_release(&old->object);
}

void coll_begin(struct coll *coll)
{
    coll->called = (struct group *)(uintptr_t)comm_scope(coll->comm);
    coll->members = coll->called;
    object_retain(&coll->called->object);
    coll->layout.entries = comm_peers(coll->comm)->size;
    coll->op.size = sizeof coll->op;
}

void coll_open(struct coll *coll, struct comm *comm, const char *function)
{
    memset(coll, 0, offsetof(struct coll, named));
    coll->comm = comm;
    coll->function = function;
    coll_begin(coll);
}

void coll_stages_free(struct coll *coll)
{
    for (int i = 0; i < COLL_STAGES; i++) {
        if (coll->stages[i]) free(coll->stages[i]);
        coll->stages[i] = NULL;
    }
    if (coll->layout.exchange) free(coll->layout.exchange);
    if (coll->layout.blocks) free(coll->layout.blocks);
    coll->layout.exchange = NULL;
    coll->layout.blocks = NULL;
}

/* Most small collectives have none of these. */
static bool has_arguments(const struct coll *coll)
{
    const void *const owned[] = {
        coll->reduction.split,   coll->layout.sendcounts,
        coll->layout.recvcounts, coll->layout.senddispls,
        coll->layout.recvdispls, coll->layout.sendtypes,
        coll->layout.recvtypes};
    uintptr_t any = 0;
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        any |= (uintptr_t)owned[i];
    return any != 0;
}

void coll_arguments_free(struct coll *coll)
{
    coll_stages_free(coll);
    if (has_arguments(coll)) {
        free(coll->reduction.split);
        free(coll->layout.sendcounts);
        free(coll->layout.recvcounts);
        free(coll->layout.senddispls);
        free(coll->layout.recvdispls);
        free(coll->layout.sendtypes);
        free(coll->layout.recvtypes);
    }
    if (coll->members && coll->members != coll->called)
        object_release(&coll->members->object);
    if (coll->called) object_release(&coll->called->object);
    coll->called = coll->members = NULL;
}

void *coll_stage(struct coll *coll, int index, size_t size)
{
    assert(!coll->stages[index]);
    coll->stages[index] = malloc(size ? size : 1);
    if (!coll->stages[index])
        error_note(MPI_ERR_NO_MEM, "no memory for %zu bytes", size);
    return coll->stages[index];
}

static const char *const call_names[] = {
    [CALL_INTERNAL] = "one that makes a communicator",
    [CALL_BARRIER] = "MPI_Barrier",
    [CALL_BCAST] = "MPI_Bcast",
    [CALL_GATHER] = "MPI_Gather",
    [CALL_SCATTER] = "MPI_Scatter",
    [CALL_ALLGATHER] = "MPI_Allgather",
    [CALL_ALLTOALL] = "MPI_Alltoall",
    [CALL_REDUCE] = "MPI_Reduce",
    [CALL_ALLREDUCE] = "MPI_Allreduce",
    [CALL_REDUCE_SCATTER] = "MPI_Reduce_scatter",
    [CALL_REDUCE_SCATTER_BLOCK] = "MPI_Reduce_scatter_block",
    [CALL_SCAN] = "MPI_Scan",
    [CALL_EXSCAN] = "MPI_Exscan",
    [CALL_NEIGHBOR_ALLGATHER] = "MPI_Neighbor_allgather",
    [CALL_NEIGHBOR_ALLTOALL] = "MPI_Neighbor_alltoall"};

static void mix(struct coll *coll, uint64_t word)
{
    coll->op.user_digest = fnv_word(coll->op.user_digest, word);
}

static pcclArgument_t *sign(struct coll *coll, const char *name)
{
    assert(coll->op.argument_count < COLL_NAMED);
    pcclArgument_t *argument = &coll->named[coll->op.argument_count++];
    *argument = (pcclArgument_t){.name = name};
    return argument;
}

void coll_sign_text(struct coll *coll, const char *name, const char *text,
                    uint64_t number)
{
    sign(coll, name)->text = text;
    mix(coll, number);
}

void coll_sign_numbers(struct coll *coll, const char *name,
                       const uint64_t *numbers, int count)
{
    pcclArgument_t *argument = sign(coll, name);
    argument->values = numbers;
    argument->value_count = (size_t)count;
    for (int i = 0; i < count; i++) mix(coll, numbers[i]);
}

void coll_sign_number(struct coll *coll, const char *name, uint64_t number)
{
    uint64_t *kept = &coll->numbers[coll->op.argument_count];
    *kept = number;
    coll_sign_numbers(coll, name, kept, 1);
}

void coll_sign(struct coll *coll)
{
    coll->op.user_digest = FNV_BEGIN;
    coll->op.arguments = coll->named;
    coll->op.argument_count = 0;
    coll_sign_text(coll, "function", call_names[coll->call], coll->call);
    if (coll->rooted)
        coll_sign_number(coll, "root", (uint64_t)coll_root_now(coll));
}

/* A question as a word, with room for the answer in the low bits. */
static uint64_t question_word(const pcclCollective_t *ask)
{
    uint64_t bits = (uint64_t)ask->kind << 2 | (uint64_t)ask->flow;
    return ((uint64_t)ask->count << 6 | bits << 1 | !ask->members) << 6;
}

/* Most programs ask the same of their members again and again. */
void coll_choose(struct coll *coll, pcclCollectiveKind_t kind, pcclFlow_t flow,
                 MPI_Count bytes)
{
    struct group *members = coll->members;
    bool whole = coll->comm->follows_world;
    pcclCollective_t *op = &coll->op;
    op->kind = kind;
    op->flow = flow;
    if (members->size == 1) return;
    pcclCollective_t ask = {.size = sizeof ask,
                            .kind = kind,
                            .flow = flow,
                            .count = (size_t)bytes,
                            .members = whole ? NULL : members->ids,
                            .member_count = whole ? 0 : (size_t)members->size};
    uint64_t word = question_word(&ask);
    uint64_t known =
        atomic_load_explicit(&members->chosen, memory_order_relaxed);
    if (known >> 6 != word >> 6) {
        /* A process that is out of the run learns so at the launch. */
        if (pcclChooseCollective(&ask, world.pccl) != pcclSuccess) return;
        known = word | (uint64_t)ask.kind << 2 | (uint64_t)ask.flow;
        atomic_store_explicit(&members->chosen, known, memory_order_relaxed);
    }
    op->kind = (pcclCollectiveKind_t)(known >> 2 & 7);
    op->flow = (pcclFlow_t)(known & 3);
}

int coll_root_now(const struct coll *coll)
{
    if (coll->orphan || coll->called == coll->members) return coll->root;
    return group_rank_of(coll->members, coll->called->ids[coll->root]);
}

int coll_place(const struct coll *coll, int rank)
{
    const struct comm *comm = coll->comm;
    if (!comm->remote || comm->both->ids[0] == comm->remote->ids[0])
        return rank;
    return comm->both->size - comm->remote->size + rank;
}

bool coll_is_root(const struct coll *coll)
{
    if (coll->comm->remote) return coll->root == MPI_ROOT;
    return coll_root_now(coll) == coll->members->rank;
}

int coll_root_place(const struct coll *coll)
{
    if (!coll->comm->remote) return coll_root_now(coll);
    return coll->root < 0 ? -1 : coll_place(coll, coll->root);
}

int coll_old_rank(const struct coll *coll, int rank)
{
    if (coll->called == coll->members) return rank;
    return group_rank_of(coll->called, coll->members->ids[rank]);
}

/* ------------------------------------------------------------------- running
 */

/* As among several (rule D2f), where whoever sends itself other bytes than it
 * expects of itself gets an error. */
static int alone_disagrees(const pcclCollective_t *op)
{
    if (op->kind != pcclKindAllToAllV || op->send_bytes[0] == op->recv_bytes[0])
        return MPI_SUCCESS;
    return error_note(MPI_ERR_NOT_SAME,
                      "this rank sends itself %zu bytes, and expects %zu",
                      op->send_bytes[0], op->recv_bytes[0]);
}

/* Runs the operation in a group of one. */
static void run_alone(const pcclCollective_t *op, size_t element_size)
{
    size_t size = op->count * element_size;
    switch (op->kind) {
    case pcclKindAllReduce:
    case pcclKindReduceScatter:
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
    case pcclKindBarrier:
    case pcclKindScan:
        break;
    }
}

static size_t pccl_size(pcclDataType_t type)
{
    switch (type) {
    case pcclUint8:
    case pcclInt8:
        return 1;
    case pcclUint16:
    case pcclInt16:
    case pcclFloat16:
    case pcclBFloat16:
        return 2;
    case pcclUint32:
    case pcclInt32:
    case pcclFloat:
        return 4;
    case pcclUint64:
    case pcclInt64:
    case pcclDouble:
        return 8;
    }
    return 1;
}

/* Sets tag, scope and epoch for the members that take part now. */
static void op_address(struct coll *coll)
{
    const struct comm *comm = coll->comm;
    coll->op.tag = comm_tag_of(comm, coll->slot);
    coll->op.view_epoch = comm->follows_world ? coll->members->view->epoch : 0;
    coll->op.members = comm->follows_world ? NULL : coll->members->ids;
    coll->op.member_count =
        comm->follows_world ? 0 : (size_t)coll->members->size;
    /* All members get an error, and none a wrong result (E6, E7): nobody else
     * has this argument. */
    if (coll->unaware)
        coll_sign_number(coll, "process that may not know its rank",
                         world.self);
}

/* Advances through steps that need no waiting. COLL_RUN: an operation is ready
 * for launch. */
static int next_operation(struct coll *coll)
{
    for (;;) {
        int step = coll->ready ? COLL_RUN : coll->step(coll);
        coll->ready = false;
        if (step != COLL_RUN) return step;
        if (coll->unaware && coll->members->size == 1)
            return coll_failed(coll, pcclInvalidArgument);
        if (coll->members->size > 1) {
            op_address(coll);
            return COLL_RUN;
        }
        int result = alone_disagrees(&coll->op);
        if (result != MPI_SUCCESS) return result;
        run_alone(&coll->op, pccl_size(coll->op.datatype));
        coll->round++;
    }
}

static int revoked_error(const struct coll *coll)
{
    if (!comm_revoked(coll->comm)) return MPI_SUCCESS;
    return error_note(MPIX_ERR_REVOKED, "the communicator was revoked");
}

/* Likewise, unless the communicator is revoked (U2). A collective whose last
 * operation has succeeded is over for all (U3). */
static int next_step(struct coll *coll)
{
    int error = coll->round == 0 ? revoked_error(coll) : MPI_SUCCESS;
    if (error != MPI_SUCCESS) return error;
    int step = next_operation(coll);
    if (step != COLL_RUN) return step;
    error = revoked_error(coll);
    return error == MPI_SUCCESS ? COLL_RUN : error;
}

/* A failed broadcast may have brought all data of the root. They leave the
 * buffer that a restart frees. */
static void note_data(struct coll *coll, const pcclReduceInfo_t *info)
{
    if (coll->op.kind != pcclKindBroadcast || coll->has_data ||
        info->rx_bytes < coll->op.count || coll->op.count == 0)
        return;
    coll->has_data = true;
    if (coll->op.recvbuf != coll->recvbuf)
        type_unpack(coll->recvbuf, coll->recvcount, coll->recvtype, 0,
                    coll->op.recvbuf, (MPI_Count)coll->op.count);
}

static int run_blocking(struct coll *coll)
{
    for (;;) {
        int step = next_step(coll);
        if (step != COLL_RUN) return step;
        pcclReduceInfo_t info = {0};
        atomic_store(&coll->comm->running, coll->op.tag);
        pcclResult_t result = pcclCollective(&coll->op, world.pccl, &info);
        atomic_store_explicit(&coll->comm->running, 0, memory_order_release);
        if (result != pcclSuccess) note_data(coll, &info);
        if (result == pcclSuccess) {
            coll->round++;
            continue;
        }
        int error = coll_failed(coll, result);
        if (error != MPI_SUCCESS) return error;
    }
}

/* Whether the operation is in flight. A revocation ends an operation for all of
 * its members. */
static bool in_flight(const struct flight *f, enum coll_care care)
{
    const struct coll *coll = f->coll;
    bool done = true;
    pcclResult_t result = care == CARE_MOVE
                              ? pcclTestAsync(&f->handle, &done)
                              : pcclWaitAsync(&f->handle, 0, &done);
    if (result != pcclSuccess || done) return false;
    if (comm_revoked(coll->comm))
        (void)pcclFailCollective(world.pccl, coll->op.tag);
    return true;
}

bool coll_advance(struct flight *f, enum coll_care care)
{
    struct coll *coll = f->coll;
    bool background = care == CARE_BACKGROUND;
    for (;;) {
        pcclResult_t result;
        if (f->failed != pcclSuccess) {
            if (background) return false;
            result = f->failed;
            f->failed = pcclSuccess;
        } else if (f->launched) {
            if (in_flight(f, care)) return false;
            pcclReduceInfo_t info = {0};
            result = pcclAwaitAsyncReduce(&f->handle, &info);
            f->launched = false;
            if (result == pcclSuccess)
                coll->round++;
            else
                note_data(coll, &info);
        } else {
            int step = next_step(coll);
            if (step != COLL_RUN) {
                f->error = step;
                return true;
            }
            result = pcclCollectiveAsync(&coll->op, world.pccl, &f->handle);
            f->launched = result == pcclSuccess;
            if (care == CARE_MOVE) care = CARE_LOOK; /* that moved it */
        }
        if (result == pcclSuccess) continue;
        if (background) {
            f->failed = result;
            return false;
        }
        int error = coll_failed(coll, result);
        if (error != MPI_SUCCESS) {
            f->error = error;
            return true;
        }
    }
}

int coll_settle(struct coll *coll)
{
    coll->slot = SLOT_BLOCKING;
    rank_use_collective(coll);
    /* Other members may wait for messages from here, or for their reception. */
    bool alone = !coll_any_pending() && !transport_busy();
    if (coll->members->size == 1 || alone) return run_blocking(coll);
    struct call_wait w;
    waiting_begins(&w);
    struct flight flight = {.coll = coll};
    coll_pending_add(&flight);
    while (!coll_progress(&flight)) {
        coll_progress_all();
        if (waiting_turn(&w)) waiting_requests(&w, coll->function);
    }
    waiting_over(&w);
    return flight.error;
}

int coll_run(struct coll *coll)
{
    int error = coll_settle(coll);
    if (error == MPI_SUCCESS) {
        coll_end(coll);
        return MPI_SUCCESS;
    }
    coll_arguments_free(coll);
    return error_raise_noted(coll->comm, error, coll->function);
}

int coll_refuse(struct coll *coll, int error_class, const char *text)
{
    coll_arguments_free(coll);
    return error_raise(coll->comm, error_class, coll->function, "%s", text);
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
    int error = coll_settle(&coll);
    coll_arguments_free(&coll);
    return error;
}

/* The barrier of MPI_Finalize. A survivor's MPI_Finalize succeeds: losses are
 * not reported and do not end the job here. */
int coll_finish(void)
{
    pcclCollective_t op = {.size = sizeof op, .kind = pcclKindBarrier};
    op.tag = comm_tag_of(&comm_world, SLOT_FINISH);
    pcclResult_t result = pcclRankConnectionLost;
    for (int tries = 0; tries < FINISH_TRIES; tries++) {
        if (!world_refresh() || atomic_load(&world.view)->size == 1) break;
        op.view_epoch = atomic_load(&world.view)->view->epoch;
        result = pcclCollective(&op, world.pccl, NULL);
        if (result != pcclRankConnectionLost) break;
    }
    return result == pcclSuccess ? MPI_SUCCESS : MPI_ERR_OTHER;
}
