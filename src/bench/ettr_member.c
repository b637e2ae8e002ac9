/* ettr_member.c - a member of pccl-bench ettr: the loop of a training whose
 * computing is a wait, so that a busy machine does not change its length.
 *
 * Each member contributes a bit of its own, times a number that changes with
 * element and step: the sum tells who is in it, and of which step it is. */
#include "ettr.h"

#include "../../include/pccl_loop.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD = 7 };

struct ettr_member {
    const struct ettr_seat *seat;
    struct churn_slot *slot;
    struct churn_history h;
    pcclComm_t *comm;
    pcclLoop_t loop;
    pcclSharedState_t state;
    pcclTensorInfo_t tensors[2];
    uint64_t step; /* shared, as the weights are */
    size_t count;
    float *weights, *sum;
    bool connected;
};

static _Noreturn void wrong(struct ettr_member *m, const char *what,
                            uint64_t rc)
{
    char text[256];
    char why[200] = "";
    if (m->comm) (void)pcclGetLastError(m->comm, why, sizeof why);
    snprintf(text, sizeof text, "%s: result %u, step %llu: %.160s", what,
             (unsigned)rc, (unsigned long long)m->step, why);
    const uint64_t at = (uint64_t)bench_now();
    churn_write(&m->h, 'X', &at, 1, text);
    _exit(3);
}

static bool is_gone(struct ettr_member *m, pcclResult_t rc)
{
    if (rc != pcclMasterConnectionFailed && rc != pcclUpdateTopologyFailed)
        return false;
    m->connected = false;
    return true;
}

static bool is_over(const struct ettr_member *m)
{
    return atomic_load(&m->seat->board->over) != 0;
}

static void join(struct ettr_member *m)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    atomic_store(&m->slot->state, CHURN_COMES);
    while (!m->connected && !is_over(m)) {
        pcclResult_t rc = pcclConnect(m->comm);
        m->connected = rc == pcclSuccess;
        if (rc == pcclMasterConnectionFailed) (void)nanosleep(&pause, NULL);
        if (rc != pcclSuccess && rc != pcclMasterConnectionFailed)
            wrong(m, "connect", rc);
    }
    m->loop = (pcclLoop_t){.comm = m->comm, .state = &m->state};
    m->state.revision = 0;
    if (m->connected) atomic_store(&m->slot->state, CHURN_MEMBER);
}

static float factor(const struct ettr_member *m, size_t i)
{
    return (float)(1 + (i + m->step) % PERIOD);
}

/* The slots whose sum it is; 0: it is no sum of this step. */
static uint32_t contributors(const struct ettr_member *m, uint32_t members)
{
    float first = m->sum[0] / factor(m, 0);
    if (!(first >= 1 && first < 1 << CHURN_SLOTS)) return 0;
    uint32_t set = (uint32_t)first;
    for (size_t i = 0; i < m->count; i++)
        if (m->sum[i] != (float)set * factor(m, i)) return 0;
    bool mine = set >> m->seat->n % CHURN_SLOTS & 1;
    return mine && (uint32_t)__builtin_popcount(set) == members ? set : 0;
}

static void compute(const struct ettr_member *m)
{
    double s = m->seat->o->compute;
    struct timespec t = {.tv_sec = (time_t)s,
                         .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)};
    (void)nanosleep(&t, NULL);
}

/* pcclInvalidUsage: evicted, as the next call tells. */
static bool begin(struct ettr_member *m)
{
    pcclResult_t rc = pcclLoopBegin(&m->loop);
    if (is_gone(m, rc)) return false;
    /* Who joins at the end finds that all that had the state have left. */
    if (rc == pcclNoSharedStateAvailable && is_over(m)) return false;
    if (rc != pcclSuccess && rc != pcclInvalidUsage) wrong(m, "begin", rc);
    return true;
}

static void pass(struct ettr_member *m)
{
    pcclReduceDescriptor_t d = {.count = m->count, .op = pcclSum};
    pcclReduceInfo_t info = {0, 0, 0};
    pcclResult_t rc;
    d.src_descriptor.datatype = pcclFloat;
    if (!begin(m)) return;
    compute(m);
    float mine = (float)(1u << m->seat->n % CHURN_SLOTS);
    for (size_t i = 0; i < m->count; i++) m->sum[i] = mine * factor(m, i);
    do rc = pcclAllReduce(m->sum, m->sum, &d, m->comm, &info);
    while (rc == pcclRankConnectionLost);
    if (is_gone(m, rc)) return;
    if (rc != pcclSuccess) wrong(m, "sum", rc);
    if (info.local_world_size < 2) return; /* alone: discarded */
    uint32_t set = contributors(m, info.local_world_size);
    if (set == 0) wrong(m, "the sum is wrong", rc);
    for (size_t i = 0; i < m->count; i++)
        m->weights[i] = 0.5f * (m->weights[i] + m->sum[i]);
    m->step++;
    CHURN_WRITE(&m->h, 'T', (uint64_t)bench_now(), m->step, set);
    atomic_fetch_add(&m->slot->steps, 1);
}

static bool make(struct ettr_member *m)
{
    pcclCommCreateParams_t params = {.p2p_connection_pool_size = 1};
    pcclCommOptions_t options = {.size = sizeof options,
                                 .rank_hint = (int32_t)m->seat->n};
    m->count = m->seat->o->bytes / sizeof *m->sum;
    m->weights = calloc(m->count, sizeof *m->weights);
    m->sum = calloc(m->count, sizeof *m->sum);
    m->tensors[0] = (pcclTensorInfo_t){
        .name = "step", .data = &m->step, .count = 1, .datatype = pcclUint64};
    m->tensors[1] = (pcclTensorInfo_t){.name = "weights",
                                       .data = m->weights,
                                       .count = m->count,
                                       .datatype = pcclFloat};
    m->state = (pcclSharedState_t){.count = 2, .infos = m->tensors};
    return m->weights && m->sum &&
           bench_address(m->seat->address, &params.master_address) &&
           pcclInit() == pcclSuccess &&
           pcclCreateCommunicator(&params, &m->comm) == pcclSuccess &&
           pcclSetOptions(m->comm, &options) == pcclSuccess;
}

_Noreturn void ettr_member(const struct ettr_seat *seat)
{
    char name[16];
    static struct ettr_member m;
    snprintf(name, sizeof name, "%u", seat->n);
    if (!churn_history_open(&m.h, seat->folder, name)) _exit(4);
    m.seat = seat;
    m.slot = &seat->board->slots[seat->n % CHURN_SLOTS];
    CHURN_WRITE(&m.h, 'B', (uint64_t)bench_now(), seat->n, 0,
                (uint64_t)getpid());
    if (!make(&m)) wrong(&m, "start", 0);
    while (!is_over(&m) && !atomic_load(&m.slot->leave)) {
        if (!m.connected) join(&m);
        if (m.connected) pass(&m);
    }
    (void)pcclDestroyCommunicator(m.comm);
    CHURN_WRITE(&m.h, 'E', (uint64_t)bench_now());
    _exit(0);
}
