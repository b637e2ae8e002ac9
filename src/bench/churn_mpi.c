/* churn_mpi.c - a process of pccl-bench churn that is an MPI program.
 *
 *     churn-mpi        started by pccl-bench, or by pccl-master --elastic
 *
 * The loop of churn_member.c, with PCCL_Update_topology and
 * PCCL_Sync_shared_state. Collectives are repeated by the library, among the
 * survivors (PCCL_ON_FAILURE=shrink), so each result tells its contributors. */
#include "churn.h"

#include <mpi.h>
#include <mpi_pccl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct churn_rank {
    struct churn_board *board;
    struct churn_slot *slot;
    struct churn_history h;
    uint32_t n;
    uint32_t ns[CHURN_SLOTS]; /* contributors of operation 0, by slot; or 0 */
    uint64_t step, hashes[CHURN_OPS];
    bool over, steady;
    void *in[CHURN_OPS], *out[CHURN_OPS];
    int64_t begun[CHURN_OPS];
    struct churn_op ops[CHURN_OPS];
    PCCL_Shared_state *state;
    uint32_t words[CHURN_STATE];
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static _Noreturn void wrong(struct churn_rank *r, const char *what)
{
    char text[200];
    const uint64_t at = now_ns();
    snprintf(text, sizeof text, "%s, step %llu", what,
             (unsigned long long)r->step);
    churn_write(&r->h, 'X', &at, 1, text);
    _exit(3);
}

/* The world goes on with the survivors; so an error means that this process is
 * none of them any more, and the history says why. */
static void well(struct churn_rank *r, int code)
{
    char why[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS) return;
    (void)MPI_Error_string(code, why, &length);
    const uint64_t at = now_ns();
    churn_write(&r->h, 'G', &at, 1, why);
    _exit(CHURN_GONE);
}

/* ------------------------------------------------------------------- place */

/* A process that pccl-master started takes a free slot of those that it
 * fills. */
static void take_slot(struct churn_rank *r)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    const char *given = getenv("CHURN_N");
    if (given) {
        r->n = (uint32_t)strtoul(given, NULL, 10);
        r->slot = &r->board->slots[r->n % CHURN_SLOTS];
        return;
    }
    /* A slot is free when the job has seen its process end: nobody wakes the
     * next one. */
    for (uint32_t i = 0;; i = (i + 1) % CHURN_LAUNCHED) {
        int32_t nobody = 0;
        r->slot = &r->board->slots[i];
        if (atomic_compare_exchange_strong(&r->slot->pid, &nobody, -1)) {
            r->n = i + CHURN_SLOTS * atomic_fetch_add(&r->board->next, 1);
            break;
        }
        (void)nanosleep(&pause, NULL);
    }
    atomic_store(&r->slot->steps, 0);
    atomic_store(&r->slot->state, CHURN_COMES);
    atomic_store(&r->slot->n, r->n);
    atomic_store(&r->slot->pid, (int32_t)getpid());
}

/* -------------------------------------------------------------- operations */

static MPI_Datatype type_of(const struct churn_op *o)
{
    switch (o->type) {
    case pcclFloat:
        return MPI_FLOAT;
    case pcclDouble:
        return MPI_DOUBLE;
    case pcclInt32:
        return MPI_INT32_T;
    case pcclUint8:
        return MPI_UINT8_T;
    case pcclUint16:
        return MPI_UINT16_T;
    default:
        return MPI_UINT64_T;
    }
}

static void make_op(struct churn_rank *r, uint32_t k)
{
    struct churn_op *o = &r->ops[k];
    churn_op_make(o, r->board->seed, r->step, k, r->n);
    o->quantized = false; /* what MPI has not */
    if (o->redop == pcclAvg) o->redop = pcclSum;
    if (o->type == pcclBFloat16) o->type = pcclUint16;
    churn_fill(o, r->n, r->over, r->in[k]);
    r->begun[k] = (int64_t)now_ns();
}

static void see_result(struct churn_rank *r, uint32_t k)
{
    const struct churn_op *o = &r->ops[k];
    const void *result = o->in_place ? r->in[k] : r->out[k];
    uint64_t ended = now_ns();
    uint32_t ns[CHURN_SLOTS];
    uint32_t count = 0;
    bool twice = false;
    uint32_t set = churn_set(o, result, 0, &twice);
    if (k == 0) {
        for (uint32_t i = 0; i < CHURN_SLOTS; i++) {
            uint64_t n;
            memcpy(&n, (const char *)result + 8 * i, 8);
            if (n != 0 && n % CHURN_SLOTS != i) twice = true;
            r->ns[i] = (uint32_t)n;
        }
    }
    for (uint32_t i = 0; i < CHURN_SLOTS; i++) {
        if (!(set >> i & 1)) continue;
        ns[count++] = r->ns[i];
        if (r->ns[i] == 0) twice = true;
    }
    bool holds = !twice && churn_holds(o, ns, count, result, &set, &r->over);
    r->hashes[k] = churn_hash(result, o->count * o->size);
    CHURN_WRITE(&r->h, 'O', (uint64_t)r->begun[k], ended, 0, o->step, k, 0, 0,
                count, set, r->hashes[k], o->count * o->size);
    if (!holds) wrong(r, "the result is the sum of no set of members");
}

/* First the one that tells who is there; the others all at once. */
static void reduce(struct churn_rank *r)
{
    MPI_Request requests[CHURN_OPS];
    bool over = atomic_load(&r->board->over) != 0;
    r->over = over;
    for (uint32_t k = 0; k < CHURN_OPS; k++) {
        make_op(r, k);
        const struct churn_op *o = &r->ops[k];
        const void *from = o->in_place ? MPI_IN_PLACE : r->in[k];
        void *to = o->in_place ? r->in[k] : r->out[k];
        MPI_Op op = o->redop == pcclMax ? MPI_MAX : MPI_SUM;
        int count = (int)o->count;
        if (k == 0) {
            well(r, MPI_Allreduce(from, to, count, type_of(o), op,
                                  MPI_COMM_WORLD));
            see_result(r, k);
        } else {
            well(r, MPI_Iallreduce(from, to, count, type_of(o), op,
                                   MPI_COMM_WORLD, &requests[k]));
        }
    }
    for (uint32_t k = 1; k < CHURN_OPS; k++) {
        well(r, MPI_Wait(&requests[k], MPI_STATUS_IGNORE));
        see_result(r, k);
    }
    for (uint32_t k = 0; k < CHURN_OPS; k++) {
        uint64_t h = churn_mix(r->hashes[k], r->step * CHURN_OPS + k);
        r->words[h % CHURN_STATE] += (uint32_t)(h >> 30);
    }
}

/* -------------------------------------------------------------------- loop */

static void let_in(struct churn_rank *r)
{
    int pending = 0;
    uint64_t begun = now_ns();
    well(r, PCCL_Are_peers_pending(MPI_COMM_WORLD, &pending));
    CHURN_WRITE(&r->h, 'P', begun, now_ns(), 0, r->step, (uint64_t)pending);
    if (!pending && r->step % 16 != 0) return;
    begun = now_ns();
    well(r, PCCL_Update_topology(MPI_COMM_WORLD));
    CHURN_WRITE(&r->h, 'U', begun, now_ns(), 0, r->step);
}

static void synchronize(struct churn_rank *r)
{
    MPI_Count received = 0;
    uint64_t revision = 0;
    uint64_t begun = now_ns();
    int code = PCCL_Sync_shared_state(MPI_COMM_WORLD, r->state,
                                      PCCL_SYNC_POPULAR, &received);
    uint64_t ended = now_ns();
    /* Let in when all others had ended well. */
    if (code != MPI_SUCCESS && !r->steady && atomic_load(&r->board->over))
        _exit(CHURN_GONE);
    well(r, code);
    well(r, PCCL_State_get_revision(r->state, &revision));
    uint64_t hash =
        churn_mix(churn_hash(r->words, sizeof r->words), r->step) >> 1;
    CHURN_WRITE(&r->h, 'S', begun, ended, 0, r->step, revision, hash,
                (uint64_t)received, r->steady);
    r->steady = true;
}

static void make_state(struct churn_rank *r)
{
    for (uint32_t k = 0; k < CHURN_OPS; k++) {
        size_t size = k + 1 == CHURN_OPS ? CHURN_BIG : CHURN_SMALL;
        r->in[k] = aligned_alloc(64, size);
        r->out[k] = aligned_alloc(64, size);
        if (!r->in[k] || !r->out[k]) wrong(r, "no memory");
    }
    well(r, PCCL_State_create(&r->state));
    well(r, PCCL_State_add(r->state, "step", &r->step, 1, MPI_UINT64_T));
    well(r, PCCL_State_add(r->state, "words", r->words, CHURN_STATE,
                           MPI_UINT32_T));
}

int main(int argc, char **argv)
{
    const char *folder = getenv("CHURN_FOLDER");
    static struct churn_rank self;
    struct churn_rank *r = &self;
    char name[16];
    if (!folder || !(r->board = churn_board_open(folder, false))) {
        fputs("churn-mpi: is started by pccl-bench churn\n", stderr);
        return 2;
    }
    take_slot(r);
    snprintf(name, sizeof name, "%u", r->n);
    if (!churn_history_open(&r->h, folder, name)) return 4;
    CHURN_WRITE(&r->h, 'B', now_ns(), r->n, 1, (uint64_t)getpid());
    uint64_t begun = now_ns();
    MPI_Init(&argc, &argv);
    CHURN_WRITE(&r->h, 'J', begun, now_ns(), 0);
    (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    make_state(r);
    atomic_store(&r->slot->state, CHURN_MEMBER);
    while (!r->over) {
        atomic_store(&r->slot->answer, atomic_load(&r->slot->question));
        if (atomic_load(&r->slot->leave)) break;
        if (r->steady) let_in(r); /* all enter the loop behind this */
        synchronize(r);
        reduce(r);
        r->step++;
        atomic_fetch_add(&r->slot->steps, 1);
        atomic_fetch_add(&r->board->steps, 1);
    }
    well(r, PCCL_State_free(&r->state));
    for (uint32_t k = 0; k < CHURN_OPS; k++) {
        free(r->in[k]);
        free(r->out[k]);
    }
    MPI_Finalize();
    CHURN_WRITE(&r->h, 'E', now_ns());
    return 0;
}
