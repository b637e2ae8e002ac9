/* mpi_calls.c - the program of fuzz_mpi: legal calls by a tape, with buffers
 * that are exact. See mpi_run.h; mpi_make.c has what makes communicators. */
#include "mpi_calls.h"

#include "../../src/mpi/mpi_comm.h"
#include "../../src/mpi/p2p.h"
#include "../../src/mpi/transport.h"

#include <stdio.h>

enum { FILLER = 0xa5, GAP_WORDS = 3 };

struct call_slot calls[CALLS_MAX];
MPI_Comm call_comms[CALL_COMMS];
bool call_comm_waits[CALL_COMMS];
static MPI_Datatype gapped;

/* ----------------------------------------------------------------- buffers */

static MPI_Datatype type_of(uint8_t which)
{
    static const MPI_Datatype types[] = {MPI_INT, MPI_BYTE, MPI_DOUBLE};
    return which % 4 == 3 ? gapped : types[which % 4];
}

static size_t extent_of(uint8_t which)
{
    static const uint8_t extents[] = {4, 1, 8, 4 * GAP_WORDS};
    return extents[which % 4];
}

void *call_buffer(uint8_t type, size_t count)
{
    size_t size = extent_of(type) * count;
    void *bytes = malloc(size > 0 ? size : 1); /* exact, for sanitizers */
    if (!bytes) abort();
    memset(bytes, FILLER, size);
    return bytes;
}

/* What the type leaves out is as it was. */
static void check_gaps(const uint8_t *bytes, uint8_t type, size_t count)
{
    if (type % 4 != 3) return;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 4; k < 8; k++)
            if (bytes[4 * GAP_WORDS * i + k] != FILLER)
                run_fail("a gap of a buffer was written");
}

/* The words of a vector of no count are as they were. */
static void check_received(const struct call_slot *c, const MPI_Status *status)
{
    int elements = 0;
    if (PMPI_Get_elements(status, MPI_BYTE, &elements) != MPI_SUCCESS) return;
    if (elements == MPI_UNDEFINED) return;
    size_t packed = c->count * (c->type % 4 == 3 ? 8 : extent_of(c->type));
    if (elements < 0 || (size_t)elements > packed)
        run_fail("a receive has more than was asked for");
    if (c->type % 4 == 3) return;
    for (size_t i = (size_t)elements; i < packed; i++)
        if (((const uint8_t *)c->in)[i] != FILLER)
            run_fail("a buffer was written behind what has come");
}

/* ---------------------------------------------------------------- requests */

struct call_slot *call_slot_new(void)
{
    for (uint32_t i = 0; i < CALLS_MAX; i++) {
        if (calls[i].used) continue;
        calls[i] = (struct call_slot){
            .used = true, .request = MPI_REQUEST_NULL, .made = CALL_COMMS};
        return &calls[i];
    }
    return NULL;
}

void call_slot_free(struct call_slot *c)
{
    if (c->in) check_gaps(c->in, c->type, c->count);
    free(c->in);
    free(c->out);
    if (c->made < CALL_COMMS) call_comm_waits[c->made] = false;
    c->used = false;
}

/* A request is over. */
static void settle(struct call_slot *c, const MPI_Status *status, int result)
{
    int cancelled = 0;
    (void)PMPI_Test_cancelled(status, &cancelled);
    if (c->receives && result == MPI_SUCCESS && !cancelled)
        check_received(c, status);
    if (c->request != MPI_REQUEST_NULL) return; /* persistent */
    call_slot_free(c);
}

static void call_begins(const struct comm *comm, int tag)
{
    run_call(comm ? comm->context : 0, tag);
}

static uint8_t comm_index(uint8_t which)
{
    which %= CALL_COMMS;
    if (call_comms[which] == MPI_COMM_NULL || call_comm_waits[which])
        which %= 2;
    return which;
}

uint32_t run_context(uint8_t which)
{
    MPI_Comm handle = call_comms[which % CALL_COMMS];
    const struct comm *comm =
        handle != MPI_COMM_NULL ? comm_find(handle) : NULL;
    return comm ? comm->context : which;
}

static int rank_in(const struct comm *comm, uint8_t which, bool any)
{
    int size = comm_peers(comm)->size;
    if (which % 32 == 31) return MPI_PROC_NULL;
    if (any && which % 8 == 7) return MPI_ANY_SOURCE;
    return size > 0 ? which % size : MPI_PROC_NULL;
}

static void play_isend(struct comm *comm, MPI_Comm handle,
                       struct fuzz_input *in)
{
    struct call_slot *c = call_slot_new();
    if (!c) return;
    int to = rank_in(comm, fuzz_u8(in), false), tag = fuzz_u8(in) % 4;
    uint8_t mode = fuzz_u8(in) % 8;
    c->type = fuzz_u8(in);
    int count = fuzz_u16(in) % 10000;
    c->count = (size_t)count;
    c->out = call_buffer(c->type, c->count);
    MPI_Datatype type = type_of(c->type);
    bool self = to >= 0 && comm_peers(comm)->ids[to] == world.self;
    call_begins(comm, tag);
    if (mode == 0 && !self)
        (void)PMPI_Issend(c->out, count, type, to, tag, handle, &c->request);
    else if (mode == 1)
        (void)PMPI_Send(c->out, self ? 0 : count, type, to, tag, handle);
    else if (mode == 2 && PMPI_Send_init(c->out, count, type, to, tag, handle,
                                         &c->request) == MPI_SUCCESS)
        (void)PMPI_Start(&c->request);
    else
        (void)PMPI_Isend(c->out, count, type, to, tag, handle, &c->request);
    if (c->request == MPI_REQUEST_NULL) call_slot_free(c);
}

static void play_irecv(struct comm *comm, MPI_Comm handle,
                       struct fuzz_input *in, bool waits)
{
    struct call_slot *c = call_slot_new();
    if (!c) return;
    int from = rank_in(comm, fuzz_u8(in), true), tag = fuzz_u8(in) % 5;
    MPI_Status status;
    bool self = from >= 0 && comm_peers(comm)->ids[from] == world.self;
    tag = tag == 4 ? MPI_ANY_TAG : tag;
    c->type = fuzz_u8(in);
    int count = fuzz_u16(in) % 10000;
    c->count = (size_t)count;
    c->in = call_buffer(c->type, c->count);
    c->receives = from != MPI_PROC_NULL;
    call_begins(comm, tag == MPI_ANY_TAG ? 0 : tag);
    MPI_Datatype type = type_of(c->type);
    /* Of itself alone it would wait for ever. */
    if (waits && !self && !comm->local && comm_peers(comm)->size > 1) {
        int result = PMPI_Recv(c->in, count, type, from, tag, handle, &status);
        settle(c, &status, result);
        return;
    }
    (void)PMPI_Irecv(c->in, count, type, from, tag, handle, &c->request);
    if (c->request == MPI_REQUEST_NULL) call_slot_free(c);
}

static void play_test(uint8_t which, uint8_t how)
{
    struct call_slot *c = &calls[which % CALLS_MAX];
    MPI_Status status;
    int flag = 0, result = MPI_SUCCESS;
    if (!c->used) return;
    run_call(run_context(0), 0);
    switch (how % 8) {
    case 0:
        if (c->receives) (void)PMPI_Cancel(&c->request);
        return;
    case 1:
        (void)PMPI_Request_get_status(c->request, &flag, &status);
        return;
    case 2: {
        MPI_Request all[CALLS_MAX];
        int index;
        for (int i = 0; i < CALLS_MAX; i++)
            all[i] = calls[i].used ? calls[i].request : MPI_REQUEST_NULL;
        result = PMPI_Testany(CALLS_MAX, all, &index, &flag, &status);
        if (!flag || index == MPI_UNDEFINED) return;
        c = &calls[index];
        c->request = all[index];
        break;
    }
    case 3:
        if (!c->persistent) break;
        if (PMPI_Test(&c->request, &flag, &status) == MPI_SUCCESS && flag)
            (void)PMPI_Start(&c->request);
        return;
    default:
        break;
    }
    if (!flag) result = PMPI_Test(&c->request, &flag, &status);
    if (flag || c->request == MPI_REQUEST_NULL) settle(c, &status, result);
}

/* Looks, or takes what is there. */
static void play_probe(struct comm *comm, MPI_Comm handle,
                       struct fuzz_input *in)
{
    int from = rank_in(comm, fuzz_u8(in), true), tag = fuzz_u8(in) % 5;
    uint8_t how = fuzz_u8(in) % 4;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    int flag = 1;
    bool waits = !comm->local && comm_peers(comm)->size > 1 &&
                 (from < 0 || comm_peers(comm)->ids[from] != world.self);
    tag = tag == 4 ? MPI_ANY_TAG : tag;
    call_begins(comm, tag == MPI_ANY_TAG ? 0 : tag);
    if (how == 0 && waits) {
        (void)PMPI_Probe(from, tag, handle, &status);
        return;
    }
    if (how == 1) {
        (void)PMPI_Iprobe(from, tag, handle, &flag, &status);
        return;
    }
    int result =
        how == 2 && waits
            ? PMPI_Mprobe(from, tag, handle, &message, &status)
            : PMPI_Improbe(from, tag, handle, &flag, &message, &status);
    if (result != MPI_SUCCESS || !flag) return;
    struct call_slot *c = call_slot_new();
    uint8_t type = fuzz_u8(in);
    int count = fuzz_u16(in) % 10000;
    MPI_Message taken = message;
    if (!c) { /* it is taken all the same */
        void *room = call_buffer(type, (size_t)count);
        call_begins(comm, 0);
        (void)PMPI_Mrecv(room, count, type_of(type), &taken, &status);
        free(room);
        return;
    }
    c->type = type;
    c->count = (size_t)count;
    c->in = call_buffer(type, c->count);
    c->receives = message != MPI_MESSAGE_NO_PROC;
    call_begins(comm, 0);
    if (how == 2) {
        result = PMPI_Mrecv(c->in, count, type_of(type), &taken, &status);
        settle(c, &status, result);
        return;
    }
    (void)PMPI_Imrecv(c->in, count, type_of(type), &taken, &c->request);
    if (c->request == MPI_REQUEST_NULL) call_slot_free(c);
}

/* ------------------------------------------------------------- collectives */

enum { STARTS = 1, PREPARES = 2, IN_PLACE = 4, UNEVEN = 8 };

/* Blocks of any count for each rank, in a row. */
static void play_alltoallv(MPI_Comm handle, struct call_slot *c, int count,
                           int n, bool starts)
{
    static int counts[RUN_MEMBERS * 2], displs[RUN_MEMBERS * 2];
    MPI_Datatype type = type_of(c->type);
    for (int i = 0; i < n; i++) {
        counts[i] = i % 2 ? count : 0;
        displs[i] = i * count;
    }
    if (starts)
        (void)PMPI_Ialltoallv(c->out, counts, displs, type, c->in, counts,
                              displs, type, handle, &c->request);
    else
        (void)PMPI_Alltoallv(c->out, counts, displs, type, c->in, counts,
                             displs, type, handle);
}

static void play_one(MPI_Comm handle, struct call_slot *c, uint8_t which,
                     int count, int root)
{
    MPI_Datatype type = type_of(c->type);
    switch (which % 8) {
    case 0:
        (void)PMPI_Barrier(handle);
        return;
    case 1:
        (void)PMPI_Bcast(c->in, count, type, root, handle);
        return;
    case 2:
        (void)PMPI_Allreduce(c->out, c->in, count, MPI_INT, MPI_SUM, handle);
        return;
    case 3:
        (void)PMPI_Allgather(c->out, count, type, c->in, count, type, handle);
        return;
    case 4:
        (void)PMPI_Alltoall(c->out, count, type, c->in, count, type, handle);
        return;
    case 5:
        (void)PMPI_Gather(c->out, count, type, c->in, count, type, root,
                          handle);
        return;
    case 6:
        (void)PMPI_Scatter(c->out, count, type, c->in, count, type, root,
                           handle);
        return;
    default:
        (void)PMPI_Allgather(MPI_IN_PLACE, count, type, c->in, count, type,
                             handle);
        return;
    }
}

static void start_one(MPI_Comm handle, struct call_slot *c, uint8_t which,
                      int count, int root)
{
    MPI_Datatype type = type_of(c->type);
    switch (which % 8) {
    case 0:
        (void)PMPI_Ibarrier(handle, &c->request);
        return;
    case 1:
        (void)PMPI_Ibcast(c->in, count, type, root, handle, &c->request);
        return;
    case 2:
        (void)PMPI_Iallreduce(c->out, c->in, count, MPI_INT, MPI_MAX, handle,
                              &c->request);
        return;
    case 3:
        (void)PMPI_Iallgather(c->out, count, type, c->in, count, type, handle,
                              &c->request);
        return;
    case 4:
        (void)PMPI_Ialltoall(c->out, count, type, c->in, count, type, handle,
                             &c->request);
        return;
    case 5:
        (void)PMPI_Igather(c->out, count, type, c->in, count, type, root,
                           handle, &c->request);
        return;
    default:
        c->persistent = true;
        if (PMPI_Bcast_init(c->in, count, type, root, handle, MPI_INFO_NULL,
                            &c->request) == MPI_SUCCESS)
            (void)PMPI_Start(&c->request);
        return;
    }
}

static void play_coll(struct comm *comm, MPI_Comm handle, struct fuzz_input *in)
{
    struct call_slot *c = call_slot_new();
    if (!c) return;
    call_begins(comm, 0);
    if (comm->remote) { /* whose roots and blocks are others */
        (void)PMPI_Barrier(handle);
        call_slot_free(c);
        return;
    }
    uint8_t which = fuzz_u8(in), how = fuzz_u8(in);
    c->type = fuzz_u8(in);
    uint8_t root = fuzz_u8(in);
    int n = comm_scope(comm)->size;
    int count = fuzz_u16(in) % (how & 128 ? 5000 : 40);
    bool sums = which % 8 == 2;
    if (sums) c->type = 0; /* the sum of its type is known */
    c->count = (size_t)count * (size_t)n;
    c->in = call_buffer(c->type, c->count);
    c->out = call_buffer(c->type, c->count);
    call_begins(comm, 0);
    if (how & UNEVEN && n <= RUN_MEMBERS * 2)
        play_alltoallv(handle, c, count, n, how & STARTS);
    else if (how & STARTS)
        start_one(handle, c, which, count, root % n);
    else
        play_one(handle, c, which, count, root % n);
    if (c->request == MPI_REQUEST_NULL) call_slot_free(c);
}

/* A partitioned message. */
static void play_parts(struct comm *comm, MPI_Comm handle,
                       struct fuzz_input *in)
{
    struct call_slot *c = call_slot_new();
    if (!c) return;
    int peer = rank_in(comm, fuzz_u8(in), false), tag = fuzz_u8(in) % 4;
    bool self = peer >= 0 && comm_peers(comm)->ids[peer] == world.self;
    bool sends = self || fuzz_u8(in) & 1; /* of itself it would wait for ever */
    int partitions = 1 + fuzz_u8(in) % 4, flag;
    c->count = (size_t)partitions * 2;
    c->in = call_buffer(0, c->count);
    call_begins(comm, tag);
    int result = sends
                     ? PMPI_Psend_init(c->in, partitions, 2, MPI_INT, peer, tag,
                                       handle, MPI_INFO_NULL, &c->request)
                     : PMPI_Precv_init(c->in, partitions, 2, MPI_INT, peer, tag,
                                       handle, MPI_INFO_NULL, &c->request);
    if (result == MPI_SUCCESS && PMPI_Start(&c->request) == MPI_SUCCESS) {
        int last[] = {partitions - 1};
        if (sends && partitions > 1)
            (void)PMPI_Pready_range(0, partitions - 2, c->request);
        if (sends) (void)PMPI_Pready_list(1, last, c->request);
        if (!sends) (void)PMPI_Parrived(c->request, 0, &flag);
    }
    if (c->request == MPI_REQUEST_NULL) call_slot_free(c);
}

/* --------------------------------------------------------------------- all */

void calls_begin(void)
{
    if (!gapped) {
        (void)PMPI_Type_vector(2, 1, 2, MPI_INT, &gapped);
        (void)PMPI_Type_commit(&gapped);
    }
    for (uint32_t i = 0; i < CALL_COMMS; i++) {
        call_comms[i] = MPI_COMM_NULL;
        call_comm_waits[i] = false;
    }
    call_comms[0] = MPI_COMM_WORLD;
    call_comms[1] = MPI_COMM_SELF;
}

void calls_play(const struct tape_record *r)
{
    struct fuzz_input in = {r->bytes, r->size};
    uint8_t index = comm_index(r->arg);
    MPI_Comm handle = call_comms[index];
    struct comm *comm = comm_find(handle);
    if (!comm) return;
    switch (r->kind % RUN_KIND_COUNT) {
    case CALL_ISEND:
        play_isend(comm, handle, &in);
        break;
    case CALL_IRECV:
        play_irecv(comm, handle, &in, false);
        break;
    case CALL_RECV:
        play_irecv(comm, handle, &in, true);
        break;
    case CALL_TEST: {
        uint8_t which = fuzz_u8(&in);
        play_test(which, fuzz_u8(&in));
        break;
    }
    case CALL_PROBE:
        play_probe(comm, handle, &in);
        break;
    case CALL_COLL:
        play_coll(comm, handle, &in);
        break;
    case CALL_PARTS:
        play_parts(comm, handle, &in);
        break;
    default:
        call_make(r->kind % RUN_KIND_COUNT, index, &in);
        break;
    }
    run_call_over();
}

/* Nobody is left to wait for. */
static void end_one(struct call_slot *c)
{
    MPI_Status status;
    run_call(0, 0);
    if (c->receives) (void)PMPI_Cancel(&c->request);
    int result = PMPI_Wait(&c->request, &status);
    /* One that a message is being moved to keeps its buffer until then. */
    while (result == MPIX_ERR_PROC_FAILED_PENDING) {
        (void)transport_progress(1);
        result = PMPI_Wait(&c->request, &status);
    }
    if (c->request != MPI_REQUEST_NULL) (void)PMPI_Request_free(&c->request);
    settle(c, &status, result);
}

void calls_end(void)
{
    for (uint32_t i = 0; i < CALLS_MAX; i++)
        if (calls[i].used) end_one(&calls[i]);
    for (uint32_t i = 2; i < CALL_COMMS; i++)
        if (call_comms[i] != MPI_COMM_NULL)
            (void)PMPI_Comm_free(&call_comms[i]);
    run_call_over();
}
