/* churn_member.c - a process of pccl-bench churn on the native API.
 *
 * The loop of the stress test in PCCL's technical report: let newcomers in,
 * synchronize the shared state, then eight all-reduces at once, each repeated
 * until it succeeds; advance the state by their results. */
#include "churn.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct member {
    const struct churn_seat *seat;
    struct churn_slot *slot;
    struct churn_history h;
    pcclComm_t *comm;
    uint64_t epoch;
    uint32_t world, ns[CHURN_SLOTS];
    bool steady; /* has stepped with the others since its last sync */
    bool gone;   /* evicted */
    bool over;
    uint64_t steps;
    struct {
        struct churn_op o;
        void *in, *out;
        int64_t begun;
        uint64_t epoch;
        uint32_t world, ns[CHURN_SLOTS];
        pcclAsyncReduceOp_t handle;
        bool done, launched;
        uint64_t hash;
    } ops[CHURN_OPS];
    pcclSharedState_t state;
    pcclTensorInfo_t tensors[2];
    uint64_t step;
    uint32_t words[CHURN_STATE];
};

static uint64_t now_ns(void)
{
    return (uint64_t)bench_now();
}

/* What must not be: the history has it, and the process ends. */
static _Noreturn void wrong(struct member *m, const char *what, uint64_t rc)
{
    char text[256];
    char why[200] = "";
    (void)pcclGetLastError(m->comm, why, sizeof why);
    snprintf(text, sizeof text, "%s: result %u, step %llu: %.160s", what,
             (unsigned)rc, (unsigned long long)m->step, why);
    const uint64_t at = now_ns();
    churn_write(&m->h, 'X', &at, 1, text);
    _exit(3);
}

static void see_view(struct member *m)
{
    pcclMember_t members[CHURN_SLOTS];
    uint64_t v[CHURN_FIELDS];
    uint64_t epoch = 0;
    int rank = -1;
    int size = 0;
    if (pcclGetView(m->comm, &epoch, &rank, &size, members, CHURN_SLOTS) !=
        pcclSuccess)
        return;
    if (epoch == m->epoch) return;
    if (size > CHURN_SLOTS) wrong(m, "more members than slots", 0);
    v[0] = now_ns();
    v[1] = m->epoch = epoch;
    v[2] = (uint64_t)rank;
    v[3] = m->world = (uint32_t)size;
    for (int i = 0; i < size; i++)
        v[4 + i] = m->ns[i] = (uint32_t)members[i].hint;
    churn_write(&m->h, 'V', v, 4 + (uint32_t)size, NULL);
}

/* True: evicted, and the history says why. */
static bool is_gone(struct member *m, pcclResult_t rc)
{
    if (rc != pcclMasterConnectionFailed && rc != pcclUpdateTopologyFailed)
        return false;
    if (!m->gone) {
        char why[200] = "";
        (void)pcclGetLastError(m->comm, why, sizeof why);
        const uint64_t at = now_ns();
        churn_write(&m->h, 'G', &at, 1, why);
    }
    m->state.revision = 0; /* behind, whatever the others do meanwhile */
    return m->gone = true;
}

static _Noreturn void leave(struct member *m)
{
    pcclResult_t rc = pcclDestroyCommunicator(m->comm);
    m->comm = NULL;
    if (rc != pcclSuccess) wrong(m, "destroy", rc);
    CHURN_WRITE(&m->h, 'E', now_ns());
    _exit(0);
}

static void join(struct member *m)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    atomic_store(&m->slot->state, CHURN_COMES);
    pcclResult_t rc;
    do {
        uint64_t begun = now_ns();
        rc = pcclConnect(m->comm);
        char why[200] = "";
        if (rc != pcclSuccess) (void)pcclGetLastError(m->comm, why, sizeof why);
        const uint64_t v[] = {begun, now_ns(), rc};
        churn_write(&m->h, 'J', v, 3, *why ? why : NULL);
        if (rc == pcclSuccess) break;
        if (rc != pcclMasterConnectionFailed) wrong(m, "connect", rc);
        (void)nanosleep(&pause, NULL); /* it was refused: not at once again */
    } while (!atomic_load(&m->seat->board->over));
    if (rc != pcclSuccess) leave(m); /* the job ended meanwhile */
    m->gone = m->steady = false;
    m->epoch = 0;
    see_view(m);
    atomic_store(&m->slot->state, CHURN_MEMBER);
}

/* The newcomer's way through the loop begins behind this one. */
static void let_in(struct member *m)
{
    bool pending = false;
    uint64_t begun = now_ns();
    pcclResult_t rc = pcclArePeersPending(m->comm, &pending);
    CHURN_WRITE(&m->h, 'P', begun, now_ns(), rc, m->step, pending);
    if (rc == pcclInvalidUsage) return; /* if evicted: the next call tells */
    if (is_gone(m, rc)) return;
    if (rc != pcclSuccess) wrong(m, "pending", rc);
    if (!pending && m->step % 16 != 0) return;
    begun = now_ns();
    rc = pcclUpdateTopology(m->comm);
    CHURN_WRITE(&m->h, 'U', begun, now_ns(), rc, m->step);
    if (is_gone(m, rc)) return;
    if (rc != pcclSuccess) wrong(m, "update", rc);
    see_view(m);
}

static void synchronize(struct member *m)
{
    pcclSharedStateSyncInfo_t info = {0, 0};
    uint64_t begun = now_ns();
    m->state.revision++;
    pcclResult_t rc = pcclSynchronizeSharedState(
        m->comm, &m->state, PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR,
        &info);
    uint64_t ended = now_ns();
    uint64_t hash =
        churn_mix(churn_hash(m->words, sizeof m->words), m->step) >> 1;
    CHURN_WRITE(&m->h, 'S', begun, ended, rc, m->step, m->state.revision, hash,
                info.rx_bytes, m->steady);
    if (is_gone(m, rc)) return;
    /* All that had the state are cut off, or have ended well. */
    if (rc == pcclNoSharedStateAvailable && !m->steady) {
        atomic_store(&m->seat->board->lost, 1);
        leave(m);
    }
    if (rc != pcclSuccess) wrong(m, "synchronize", rc);
    m->steady = true;
}

/* -------------------------------------------------------------- operations */

static void launch(struct member *m, uint32_t k)
{
    struct churn_op *o = &m->ops[k].o;
    pcclReduceDescriptor_t d = {.count = o->count,
                                .op = o->redop,
                                .tag = k,
                                .src_descriptor = {o->type, 0}};
    if (o->quantized) {
        d.quantization_options.algorithm = pcclQuantMinMax;
        d.quantization_options.quantized_datatype = pcclUint8;
    }
    churn_fill(o, m->seat->n, m->over, m->ops[k].in);
    m->ops[k].epoch = m->epoch;
    m->ops[k].world = m->world;
    memcpy(m->ops[k].ns, m->ns, sizeof m->ns);
    m->ops[k].begun = bench_now();
    pcclResult_t rc = pcclAllReduceAsync(
        m->ops[k].in, o->in_place ? m->ops[k].in : m->ops[k].out, &d, m->comm,
        &m->ops[k].handle);
    m->ops[k].launched = rc == pcclSuccess;
    if (rc == pcclSuccess || rc == pcclRankConnectionLost || is_gone(m, rc))
        return;
    wrong(m, "launch", rc);
}

/* Contract C2: what failed has left its input as it was. */
static void check_input(struct member *m, uint32_t k)
{
    struct churn_op *o = &m->ops[k].o;
    size_t size = o->count * o->size;
    uint64_t left = churn_hash(m->ops[k].in, size);
    churn_fill(o, m->seat->n, m->over, m->ops[k].in);
    if (left != churn_hash(m->ops[k].in, size))
        wrong(m, "a failed operation has changed its input", k);
}

static void await(struct member *m, uint32_t k, uint64_t attempt)
{
    struct churn_op *o = &m->ops[k].o;
    pcclReduceInfo_t info = {0, 0, 0};
    pcclResult_t rc = pcclAwaitAsyncReduce(&m->ops[k].handle, &info);
    uint64_t ended = now_ns();
    const void *result = o->in_place ? m->ops[k].in : m->ops[k].out;
    uint32_t set = 0;
    bool over = false;
    bool holds = true;
    if (rc == pcclSuccess) {
        holds =
            churn_holds(o, m->ops[k].ns, m->ops[k].world, result, &set, &over);
        m->ops[k].hash = churn_hash(result, o->count * o->size);
        m->ops[k].done = true;
    }
    CHURN_WRITE(&m->h, 'O', (uint64_t)m->ops[k].begun, ended, rc, o->step, k,
                attempt, m->ops[k].epoch, info.local_world_size, set,
                m->ops[k].done ? m->ops[k].hash : 0, o->count * o->size);
    see_view(m);
    if (!holds) wrong(m, "the result is not that of the view's members", k);
    m->over |= over;
    if (rc == pcclSuccess || is_gone(m, rc)) return;
    if (rc != pcclRankConnectionLost && rc != pcclRankConnectionFailed)
        wrong(m, "operation", rc);
    check_input(m, k);
}

/* All of the step's operations, until each has succeeded once. */
static void reduce(struct member *m)
{
    bool over = atomic_load(&m->seat->board->over) != 0;
    m->over = over;
    for (uint32_t k = 0; k < CHURN_OPS; k++) {
        churn_op_make(&m->ops[k].o, m->seat->board->seed, m->step, k,
                      m->seat->n);
        m->ops[k].done = false;
        m->ops[k].hash = 0;
    }
    uint32_t left = CHURN_OPS;
    for (uint64_t attempt = 0; left > 0 && m->world > 1 && !m->gone;
         attempt++) {
        for (uint32_t k = 0; k < CHURN_OPS; k++)
            if (!m->ops[k].done) launch(m, k);
        left = 0;
        for (uint32_t k = 0; k < CHURN_OPS; k++) {
            if (m->ops[k].done) continue;
            if (m->ops[k].launched) await(m, k, attempt);
            left += !m->ops[k].done;
        }
        see_view(m);
    }
}

static void advance(struct member *m)
{
    for (uint32_t k = 0; k < CHURN_OPS; k++) {
        uint64_t h = churn_mix(m->ops[k].hash, m->step * CHURN_OPS + k);
        m->words[h % CHURN_STATE] += (uint32_t)(h >> 30);
    }
    m->step++;
    m->steps++;
    atomic_fetch_add(&m->slot->steps, 1);
    atomic_fetch_add(&m->seat->board->steps, 1);
}

/* -------------------------------------------------------------------- life */

static void note_memory(struct member *m)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f) return;
    if (fscanf(f, "%*u %lu", &pages) == 1)
        CHURN_WRITE(&m->h, 'M', now_ns(),
                    pages * (unsigned long)sysconf(_SC_PAGESIZE) / 1024,
                    m->steps);
    (void)fclose(f);
}

static bool make_buffers(struct member *m)
{
    for (uint32_t k = 0; k < CHURN_OPS; k++) {
        size_t size = k + 1 == CHURN_OPS ? CHURN_BIG : CHURN_SMALL;
        m->ops[k].in = aligned_alloc(64, size);
        m->ops[k].out = aligned_alloc(64, size);
        if (!m->ops[k].in || !m->ops[k].out) return false;
    }
    m->tensors[0] = (pcclTensorInfo_t){
        .name = "step", .data = &m->step, .count = 1, .datatype = pcclUint64};
    m->tensors[1] = (pcclTensorInfo_t){.name = "words",
                                       .data = m->words,
                                       .count = CHURN_STATE,
                                       .datatype = pcclUint32};
    m->state = (pcclSharedState_t){.count = 2, .infos = m->tensors};
    return true;
}

static bool make_comm(struct member *m)
{
    pcclCommCreateParams_t params = {.p2p_connection_pool_size = 1};
    pcclCommOptions_t options = {.size = sizeof options,
                                 .rank_hint = (int32_t)m->seat->n};
    return bench_address(m->seat->address, &params.master_address) &&
           pcclInit() == pcclSuccess &&
           pcclCreateCommunicator(&params, &m->comm) == pcclSuccess &&
           pcclSetOptions(m->comm, &options) == pcclSuccess;
}

_Noreturn void churn_member(const struct churn_seat *seat)
{
    char name[16];
    struct member *m = calloc(1, sizeof *m);
    snprintf(name, sizeof name, "%u", seat->n);
    if (!m || !churn_history_open(&m->h, seat->folder, name)) _exit(4);
    m->seat = seat;
    m->slot = &seat->board->slots[seat->n % CHURN_SLOTS];
    CHURN_WRITE(&m->h, 'B', now_ns(), seat->n, 0, (uint64_t)getpid());
    (void)setenv("PCCL_TRANSPORT", seat->transport, 1);
    if (!make_buffers(m) || !make_comm(m)) wrong(m, "start", 0);
    bool newcomer = true;
    m->gone = true;
    while (!m->over) {
        if (m->gone) {
            join(m);
            newcomer = true;
        }
        if (atomic_load(&m->slot->leave)) break;
        if (!newcomer) let_in(m);
        newcomer = false;
        if (!m->gone) synchronize(m);
        if (!m->gone) reduce(m);
        if (m->gone) continue;
        advance(m);
        if (m->steps % 64 == 32) note_memory(m);
    }
    leave(m);
}
