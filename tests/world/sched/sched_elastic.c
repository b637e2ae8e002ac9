/* sched_elastic.c - programs with messages, shared state, members that come and
 * go, and a master that ends; and the table of all programs. See
 * sched_program.h. */
#include "sched_program.h"

#include <string.h>

enum { LETTER_MOST = 60000, BULK = 30000, TENSOR = 5000 };

/* ---------------------------------------------------------------- messages */

struct letters {
    pcclMember_t members[SCHED_MEMBERS_MAX];
    int world, rank;
    uint32_t next[SCHED_MEMBERS_MAX]; /* number of the next letter of each */
    uint32_t letters, sent, received; /* events that are missing */
    size_t size;                      /* of a letter */
    uint64_t out[BULK / 8], in[BULK / 8];
    uint8_t body[LETTER_MOST];
};

static int rank_of(struct sched_seat *seat, const struct letters *l,
                   uint64_t id)
{
    for (int i = 0; i < l->world; i++)
        if (l->members[i].id == id) return i;
    bool is_member = false;
    SCHED_CHECK(seat, is_member);
    return -1;
}

static void take_event(struct sched_seat *seat, struct letters *l, int patience)
{
    pcclEvent_t event;
    SCHED_RESULT(seat, pcclTakeEvent(seat->comm, patience, &event),
                 pcclSuccess);
    sched_progress();
    if (event.kind == pcclEventNone) return;
    int from = rank_of(seat, l, event.member);
    if (event.kind == pcclEventMessage) {
        uint32_t number;
        SCHED_CHECK(seat, event.header_size == sizeof number);
        memcpy(&number, event.header, sizeof number);
        SCHED_CHECK(seat, number == l->next[from]++);
        for (size_t i = 0; i < event.body_size; i++)
            SCHED_CHECK(seat, ((const uint8_t *)event.body)[i] ==
                                  (uint8_t)(number + (uint32_t)from + i));
        SCHED_CHECK(seat, event.body_size == l->size);
        l->letters--;
    } else if (event.kind == pcclEventBulkSent) {
        SCHED_RESULT(seat, event.result, pcclSuccess);
        l->sent--;
    } else if (event.kind == pcclEventBulkReceived) {
        SCHED_RESULT(seat, event.result, pcclSuccess);
        for (size_t i = 0; i < BULK / 8; i++)
            SCHED_CHECK(seat, l->in[i] == (uint64_t)from * 1000000 + i);
        l->received--;
    } else {
        SCHED_CHECK(seat, event.kind == pcclEventRoom);
    }
    SCHED_RESULT(seat, pcclReleaseEvent(seat->comm, &event), pcclSuccess);
}

static void post(struct sched_seat *seat, struct letters *l, int to,
                 uint32_t number)
{
    for (size_t i = 0; i < l->size; i++)
        l->body[i] = (uint8_t)(number + (uint32_t)l->rank + i);
    SCHED_RESULT(seat,
                 pcclPostMessage(seat->comm, l->members[to].id, &number,
                                 sizeof number, l->body, l->size),
                 pcclSuccess);
    sched_progress();
}

static void messages(struct sched_seat *seat)
{
    static struct letters all[SCHED_MEMBERS_MAX];
    struct letters *l = &all[seat->member];
    uint32_t rounds = (uint32_t)seat->run->rounds;
    SCHED_RESULT(seat,
                 pcclGetView(seat->comm, NULL, &l->rank, &l->world, l->members,
                             SCHED_MEMBERS_MAX),
                 pcclSuccess);
    l->size = 300;
    if (sched_common(seat->run, 700, 3) == 0) {
        l->size = LETTER_MOST;
        rounds = 16; /* more than the memory of a pair holds */
    }
    int next = (l->rank + 1) % l->world;
    int last = (l->rank + l->world - 1) % l->world;
    l->letters = rounds * (uint32_t)(l->world - 1);
    l->sent = l->received = 1;
    for (size_t i = 0; i < BULK / 8; i++)
        l->out[i] = (uint64_t)l->rank * 1000000 + i;
    if (seat->member % 2 == 0)
        SCHED_RESULT(seat,
                     pcclExpectBulk(seat->comm, l->members[last].id, 9, l->in,
                                    sizeof l->in),
                     pcclSuccess);
    SCHED_RESULT(
        seat,
        pcclSendBulk(seat->comm, l->members[next].id, 9, l->out, sizeof l->out),
        pcclSuccess);
    for (uint32_t number = 0; number < rounds; number++) {
        for (int to = 0; to < l->world; to++)
            if (to != l->rank) post(seat, l, to, number);
        if (sched_random() % 3 == 0) take_event(seat, l, 0);
    }
    if (seat->member % 2 != 0)
        SCHED_RESULT(seat,
                     pcclExpectBulk(seat->comm, l->members[last].id, 9, l->in,
                                    sizeof l->in),
                     pcclSuccess);
    while (l->letters > 0 || l->sent > 0 || l->received > 0)
        take_event(seat, l, sched_random() % 2 == 0 ? -1 : 3);
}

/* ------------------------------------------------------------ shared state */

static void shared_state(struct sched_seat *seat)
{
    static uint64_t tensors[SCHED_MEMBERS_MAX][TENSOR];
    uint64_t *own = tensors[seat->member];
    for (int round = 1; round <= seat->run->rounds; round++) {
        uint32_t odd = sched_common(seat->run, 600 + (uint64_t)round,
                                    (uint32_t)seat->run->founders);
        bool differs = seat->run->founders > 2 && seat->member == (int)odd;
        for (size_t i = 0; i < TENSOR; i++)
            own[i] = differs ? 7 : (uint64_t)round * i;
        pcclTensorInfo_t tensor = {.name = "weights",
                                   .data = own,
                                   .count = TENSOR,
                                   .datatype = pcclUint64};
        pcclSharedState_t state = {
            .revision = (uint64_t)round, .count = 1, .infos = &tensor};
        SCHED_RESULT(seat,
                     pcclSynchronizeSharedState(
                         seat->comm, &state,
                         PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR, NULL),
                     pcclSuccess);
        sched_progress();
        for (size_t i = 0; i < TENSOR; i++)
            SCHED_CHECK(seat, own[i] == (uint64_t)round * i);
        (void)sched_reduce(seat, (uint64_t)round, seat->in, seat->out);
    }
}

/* ----------------------------------------------------- come, go, optimize */

static void *destroy(void *argument)
{
    struct sched_seat *seat = argument;
    SCHED_RESULT(seat, pcclDestroyCommunicator(seat->comm), pcclSuccess);
    seat->comm = NULL;
    return NULL;
}

static void leave(struct sched_seat *seat)
{
    pthread_t other;
    SCHED_CHECK(seat, pthread_create(&other, NULL, destroy, seat) == 0);
    (void)pthread_join(other, NULL);
}

/* The founders work; one after the other leaves, destroyed by another thread;
 * the last member joins in between. */
static void come_and_go(struct sched_seat *seat)
{
    struct sched_run *run = seat->run;
    int size = run->founders;
    uint64_t key = 1;
    if (seat->member >= run->founders) {
        sched_join(seat);
        size = run->founders + 1;
    } else {
        (void)sched_reduce(seat, key, seat->in, seat->out);
        sched_gather(seat, ++size);
    }
    for (int gone = 0; gone < run->founders - 1; gone++) {
        (void)sched_reduce(seat, ++key, seat->in, seat->out);
        if (seat->member == gone) {
            leave(seat);
            return;
        }
        size--;
        while (sched_world(seat, NULL) > size) {
            SCHED_RESULT(seat, pcclUpdateTopology(seat->comm), pcclSuccess);
            sched_point_yield();
        }
    }
    (void)sched_reduce(seat, ++key, seat->in, seat->out);
}

static void optimize(struct sched_seat *seat)
{
    for (uint64_t key = 1; key <= (uint64_t)seat->run->rounds; key++) {
        SCHED_RESULT(seat, pcclOptimizeTopology(seat->comm), pcclSuccess);
        (void)sched_reduce(seat, key, seat->in, seat->out);
    }
}

/* Each call ends, whatever its result, and so does the communicator. */
static void master_ends(struct sched_seat *seat)
{
    for (uint64_t key = 1; key <= 5; key++) {
        uint64_t in = 1;
        pcclReduceDescriptor_t d = {.count = 1,
                                    .op = pcclSum,
                                    .tag = key,
                                    .src_descriptor = {pcclUint64, 0}};
        if (seat->member == 0 && key == 2)
            SCHED_RESULT(seat, pcclInterruptMaster(seat->run->master),
                         pcclSuccess);
        (void)pcclAllReduce(&in, &in, &d, seat->comm, NULL);
        if (key == 3) (void)pcclUpdateTopology(seat->comm);
    }
    if (seat->member == 0)
        SCHED_RESULT(seat, pcclMasterAwaitTermination(seat->run->master),
                     pcclSuccess);
}

const struct sched_program sched_programs[] = {
    {"collectives", sched_collectives, .prompt = true, .rounds = 12},
    {"small", sched_small, .prompt = true, .rounds = 25},
    {"async", sched_asynchronous, .prompt = true, .rounds = 4},
    {"threads", sched_two_threads, .prompt = true, .rounds = 5},
    {"losses", sched_losses, .loses = true, .rounds = 10},
    {"messages", messages, .prompt = true, .rounds = 12},
    {"state", shared_state, .prompt = true, .rounds = 3, .members_most = 4},
    {"elastic", come_and_go, .rounds = 1, .members_most = 4, .joins = 1},
    {"optimize", optimize, .rounds = 2, .members_most = 4},
    {"master ends", master_ends, .rounds = 1},
};
const int sched_program_count =
    (int)(sizeof sched_programs / sizeof *sched_programs);
