/* driver_calls.c - see driver_calls.h. */
#include "driver_calls.h"

#include <assert.h>
#include <stdlib.h>

enum { OPS = 8, EVENTS = 4 };

static struct {
    pcclComm_t *c;
    struct program_options options;
    bool misled, troubled;
    struct {
        bool used;
        uint64_t tag;
        uint8_t *send, *recv;
        size_t arrays[2][MATES + 2];
    } ops[OPS];
    struct {
        bool used;
        uint64_t tag;
        uint8_t *send, *recv;
    } partials[OPS];
    uint8_t *bulks[MATE_BULKS];
    pcclEvent_t events[EVENTS];
    size_t event_count;
} p;

pcclComm_t *program_comm(void)
{
    return p.c;
}

void program_is_misled(void)
{
    p.misled = p.troubled = true;
}

void program_is_troubled(void)
{
    p.troubled = true;
}

/* ------------------------------------------------------------------ buffers */

/* Ones of the type, and no byte too many. */
static uint8_t *ones(size_t size, pcclDataType_t type)
{
    kernel_on = false; /* the program has memory */
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    kernel_on = true;
    assert(bytes);
    memset(bytes, 1, size);
    for (size_t i = 0; type == pcclFloat && i + 4 <= size; i += 4)
        memcpy(bytes + i, &(const float){1}, 4);
    return bytes;
}

static uint32_t world(void)
{
    int size = 0;
    if (pcclGetView(p.c, NULL, NULL, &size, NULL, 0) != pcclSuccess) return 1;
    return size > 0 ? (uint32_t)size : 1;
}

/* Of a mate: by a small number; or of nobody. */
static uint64_t member(uint8_t which)
{
    pcclMember_t members[MATES + 1];
    int size = 0;
    if (pcclGetView(p.c, NULL, NULL, &size, members, MATES + 1) !=
            pcclSuccess ||
        size == 0 || which > 250)
        return which;
    if (size > MATES + 1) size = MATES + 1;
    return members[which % size].id;
}

/* --------------------------------------------------------------- collectives
 */

static void look_at_sum(const uint8_t *sum, size_t count, uint32_t members)
{
    for (size_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, sum + 4 * i, sizeof value);
        assert(value == (float)members);
    }
}

static uint32_t free_op(void)
{
    uint32_t i = 0;
    while (i < OPS && p.ops[i].used) i++;
    return i;
}

static void op_free(uint32_t i)
{
    if (p.ops[i].recv != p.ops[i].send) free(p.ops[i].recv);
    free(p.ops[i].send);
    p.ops[i].used = false;
}

/* The operation does, and has its buffers. */
static bool goes_on(pcclResult_t result)
{
    return result == pcclCancelled || result == pcclTimedOut;
}

/* Nothing that has gone wrong stands against a call. */
static bool is_well(void)
{
    return !p.troubled && p.c && p.c->session &&
           p.c->session->state == SESSION_MEMBER;
}

static bool must_succeed(uint64_t tag)
{
    bool must = is_well();
    for (uint32_t i = 0; i < OPS; i++)
        must &= !p.ops[i].used || p.ops[i].tag != tag;
    return must;
}

static void reduce(struct fuzz_input *in)
{
    uint32_t i = free_op();
    uint64_t tag = fuzz_u8(in);
    size_t count = fuzz_u16(in);
    uint8_t bits = fuzz_u8(in);
    bool codes = bits & 4;
    if (i == OPS) return;
    uint8_t *send = ones(4 * count, pcclFloat);
    uint8_t *recv = bits & 1 ? send : ones(4 * count, pcclFloat);
    pcclReduceDescriptor_t d = {.count = count, .op = pcclSum, .tag = tag};
    pcclReduceInfo_t info = {0};
    d.src_descriptor.datatype = pcclFloat;
    if (codes) {
        d.quantization_options.algorithm = pcclQuantMinMax;
        d.quantization_options.quantized_datatype = pcclUint8;
    }
    bool must = must_succeed(tag);
    pcclResult_t rc = pcclAllReduce(send, recv, &d, p.c, &info);
    assert(!must || p.troubled || rc == pcclSuccess);
    if (rc == pcclSuccess && !p.misled && !codes)
        look_at_sum(recv, count, info.local_world_size);
    p.ops[i].tag = tag;
    p.ops[i].send = send;
    p.ops[i].recv = recv;
    p.ops[i].used = goes_on(rc);
    if (!p.ops[i].used) op_free(i);
}

/* The buffers of a call, in a free place; OPS: there is none. */
static uint32_t prepare(pcclCollective_t *c, struct fuzz_input *in)
{
    uint32_t i = free_op(), n = world();
    if (i == OPS) return OPS;
    *c = (pcclCollective_t){.size = sizeof *c,
                            .kind = (pcclCollectiveKind_t)(fuzz_u8(in) % 6)};
    c->tag = fuzz_u8(in);
    c->count = fuzz_u16(in);
    uint8_t bits = fuzz_u8(in);
    c->root = (int)(fuzz_u8(in) % n);
    c->datatype = bits & 1 ? pcclUint8 : pcclFloat;
    c->op = pcclSum;
    if (bits & 2) c->user_digest = fuzz_u8(in);
    size_t size = c->count * 4 * (n + 1);
    for (uint32_t k = 0; k < n && k < MATES + 2; k++) {
        p.ops[i].arrays[0][k] = c->count;
        p.ops[i].arrays[1][k] = c->count * k;
    }
    if (c->kind == pcclKindAllToAllV && n <= MATES + 2) {
        c->send_bytes = c->recv_bytes = p.ops[i].arrays[0];
        c->send_displs = c->recv_displs = p.ops[i].arrays[1];
    }
    p.ops[i].tag = c->tag;
    p.ops[i].send = ones(size, c->datatype);
    p.ops[i].recv = ones(size, c->datatype);
    c->sendbuf = p.ops[i].send;
    c->recvbuf = p.ops[i].recv;
    if (c->kind == pcclKindBroadcast) c->sendbuf = c->recvbuf;
    return i;
}

static void collective(struct fuzz_input *in, bool async)
{
    pcclCollective_t c;
    pcclAsyncReduceOp_t handle;
    pcclReduceInfo_t info;
    uint32_t i = prepare(&c, in);
    if (i == OPS) return;
    pcclResult_t rc = async ? pcclCollectiveAsync(&c, p.c, &handle)
                            : pcclCollective(&c, p.c, &info);
    p.ops[i].used = async ? rc == pcclSuccess : goes_on(rc);
    if (!p.ops[i].used) op_free(i);
}

static void await_op(struct fuzz_input *in)
{
    uint32_t i = 0;
    pcclReduceInfo_t info;
    bool done = false;
    uint64_t tag = fuzz_u8(in);
    uint8_t bits = fuzz_u8(in);
    while (i < OPS && (!p.ops[i].used || (p.ops[i].tag != tag && tag < 250)))
        i++;
    pcclAsyncReduceOp_t handle = {p.c, i < OPS ? p.ops[i].tag : tag};
    if (bits & 1) {
        (void)pcclTestAsync(&handle, &done);
        return;
    }
    pcclResult_t rc = pcclAwaitAsyncReduce(&handle, &info);
    if (i < OPS && !goes_on(rc)) op_free(i);
}

static void partial(struct fuzz_input *in)
{
    uint32_t i = 0;
    uint64_t tag = fuzz_u8(in);
    size_t count = fuzz_u16(in);
    uint8_t bits = fuzz_u8(in);
    pcclPartialInfo_t info = {.size = sizeof info};
    while (i < OPS && p.partials[i].used) i++;
    if (i == OPS) return;
    pcclPartialDescriptor_t d = {.size = sizeof d,
                                 .tag = tag,
                                 .count = count,
                                 .datatype = pcclFloat,
                                 .op = pcclSum,
                                 .weight = 1,
                                 .deadline_ms = 500,
                                 .gather_ms = bits & 2 ? 0 : 20};
    p.partials[i].tag = tag;
    p.partials[i].send = ones(4 * count, pcclFloat);
    p.partials[i].recv = ones(4 * count, pcclFloat);
    pcclPartialOp_t handle = {p.c, tag};
    pcclResult_t rc =
        bits & 1 ? pcclAllReducePartialAsync(
                       p.partials[i].send, p.partials[i].recv, &d, p.c, &handle)
                 : pcclAllReducePartial(p.partials[i].send, p.partials[i].recv,
                                        &d, p.c, &info);
    if (rc == pcclSuccess && (bits & 1)) rc = pcclAwaitPartial(&handle, &info);
    p.partials[i].used = goes_on(rc);
    if (p.partials[i].used) return;
    free(p.partials[i].send);
    free(p.partials[i].recv);
}

/* ----------------------------------------------------------------- messages */

static void post(struct fuzz_input *in)
{
    static const uint8_t bytes[PCCL_MESSAGE_MAX + 100];
    uint64_t to = member(fuzz_u8(in));
    size_t head = fuzz_u8(in) % 80, size = fuzz_u16(in);
    (void)pcclPostMessage(p.c, to, bytes, head, bytes, size);
}

static void bulk(struct fuzz_input *in)
{
    uint64_t other = member(fuzz_u8(in));
    uint64_t key = fuzz_u8(in) % MATE_BULKS;
    size_t size = world_bulk_size(key);
    if (!p.bulks[key]) p.bulks[key] = ones(size, pcclUint8);
    switch (fuzz_u8(in) % 4) {
    case 0:
        (void)pcclSendBulk(p.c, other, key, p.bulks[key], size);
        return;
    case 1:
        (void)pcclExpectBulk(p.c, other, key, p.bulks[key], size);
        return;
    case 2:
        (void)pcclCancelBulk(p.c, other, key);
        return;
    default:
        (void)pcclWithdrawBulk(p.c, other, key);
    }
}

static void take_events(struct fuzz_input *in)
{
    uint8_t bits = fuzz_u8(in);
    int ms = fuzz_u8(in);
    pcclEvent_t event = {.kind = pcclEventNone};
    if (ms > 250) ms = -1;
    if (bits & 1) {
        (void)pcclTakeEvents(p.c, ms, p.events, EVENTS, &p.event_count);
        return;
    }
    if (pcclTakeEvent(p.c, ms, &event) == pcclSuccess)
        (void)pcclReleaseEvent(p.c, &event);
}

/* -------------------------------------------------------------------- others
 */

static void look(void)
{
    char text[300];
    bool flag;
    int value;
    size_t count;
    int ranks[MATES + 1];
    uint32_t traits;
    pcclViewChange_t change;
    pcclProgress_t progress = {.size = sizeof progress};
    (void)pcclGetLastError(p.c, text, sizeof text);
    for (int i = 0; i < 8; i++)
        (void)pcclGetAttribute(p.c, (pcclAttribute_t)i, &value);
    (void)pcclGetRing(p.c, ranks, MATES + 1, &count);
    (void)pcclSetTraits(p.c, 3);
    (void)pcclGetTraits(p.c, &traits);
    (void)pcclGetViewChange(p.c, &change);
    (void)pcclGetProgress(p.c, &progress);
    (void)pcclDrainRequested(&flag);
}

static void create(void)
{
    pcclCommCreateParams_t params = {
        .master_address = {.inet = {.protocol = inetIPv4,
                                    .ipv4 = {{127, 0, 0, 1}}},
                           .port = PORT_MASTER},
        .p2p_connection_pool_size = p.options.pool};
    const pcclCommOptions_t o = {.size = sizeof o,
                                 .rank_hint = -1,
                                 .deadline_ms =
                                     (uint32_t)(WORLD_DEADLINE / PCCL_MS),
                                 .goes_on_with_few = p.options.goes_on,
                                 .token_file = p.options.token_file};
    p.c = NULL;
    if (pcclCreateCommunicator(&params, &p.c) != pcclSuccess) return;
    kernel_own(&p.c->lock);
    (void)pcclSetOptions(p.c, &o);
    (void)pcclSetTimeLimit(p.c, p.options.limit_ms);
}

static void destroy(void)
{
    for (size_t i = 0; i < p.event_count; i++)
        assert(pcclReleaseEvent(p.c, &p.events[i]) == pcclSuccess);
    p.event_count = 0;
    if (p.c) (void)pcclDestroyCommunicator(p.c);
    kernel_own(NULL);
    p.c = NULL;
    for (uint32_t i = 0; i < OPS; i++) {
        if (p.ops[i].used) op_free(i);
        if (!p.partials[i].used) continue;
        free(p.partials[i].send);
        free(p.partials[i].recv);
        p.partials[i].used = false;
    }
}

static void set_options(struct fuzz_input *in)
{
    static const char *const ports[] = {"2100-2103", "2105", "0-5", "x", NULL};
    static const char *const hosts[] = {"127.0.0.1:7", "127.0.0.1", "0.0.0.0",
                                        "::1",         "[x",        "a b"};
    uint8_t bits = fuzz_u8(in);
    program_is_troubled();
    const pcclCommOptions_t o = {
        .size = sizeof o,
        .rank_hint = bits & 7,
        .deadline_ms = (uint32_t)(WORLD_DEADLINE / PCCL_MS),
        .ports = ports[fuzz_u8(in) % ARRAY_COUNT(ports)],
        .announce = bits & 64 ? hosts[fuzz_u8(in) % ARRAY_COUNT(hosts)] : NULL,
        .token_file = bits & 8 ? "/none" : p.options.token_file};
    (void)pcclSetOptions(p.c, &o);
}

/* A run in which nothing goes wrong can be joined, once. */
static void join(void)
{
    bool joined = p.c && p.c->session;
    pcclResult_t rc = pcclConnect(p.c);
    assert(joined || p.troubled || rc == pcclSuccess);
}

/* The mates vote, too. */
static void update(void)
{
    bool must = is_well();
    for (uint32_t i = 0; i < OPS; i++) must &= !p.ops[i].used;
    pcclResult_t rc = pcclUpdateTopology(p.c);
    assert(!must || p.troubled || rc == pcclSuccess);
}

static void vote_or_so(uint8_t which, struct fuzz_input *in)
{
    bool pending;
    switch (which) {
    case CALL_CONNECT:
        join();
        return;
    case CALL_UPDATE:
        update();
        return;
    case CALL_PENDING:
        (void)pcclArePeersPending(p.c, &pending);
        return;
    case CALL_OPTIMIZE:
        (void)pcclOptimizeTopology(p.c);
        return;
    case CALL_CANCEL:
        program_is_troubled();
        (void)pcclCancel(p.c);
        return;
    case CALL_RESUME:
        (void)pcclResume(p.c);
        return;
    case CALL_LIMIT:
        program_is_troubled();
        (void)pcclSetTimeLimit(p.c, 1 + 10 * fuzz_u8(in));
        return;
    case CALL_ABORT:
        program_is_troubled();
        (void)pcclAbortRun(p.c, 3);
        return;
    case CALL_FAIL:
        (void)pcclFailCollective(p.c, fuzz_u8(in));
        return;
    case CALL_ANEW:
        destroy();
        create();
        return;
    case CALL_AWAIT_SAVE:
        (void)pcclAwaitSave(p.c, NULL);
        return;
    case CALL_SAMPLES:
        (void)pcclReportProgress(p.c, fuzz_u8(in), fuzz_u8(in), 4);
        return;
    default:
        look();
    }
}

static void call(uint8_t which, struct fuzz_input *in)
{
    switch (which) {
    case CALL_REDUCE:
        reduce(in);
        return;
    case CALL_COLLECTIVE:
    case CALL_ASYNC:
        collective(in, which == CALL_ASYNC);
        return;
    case CALL_AWAIT:
        await_op(in);
        return;
    case CALL_POST:
        post(in);
        return;
    case CALL_BULK:
        bulk(in);
        return;
    case CALL_EVENT:
        take_events(in);
        return;
    case CALL_PARTIAL:
        partial(in);
        return;
    case CALL_OPTIONS:
        set_options(in);
        return;
    case CALL_SYNC:
    case CALL_OFFER:
    case CALL_PREFETCH:
    case CALL_SAVE:
    case CALL_LOAD:
        program_state_call(which, in);
        return;
    default:
        vote_or_so(which, in);
    }
}

void program_call(uint8_t which, struct fuzz_input *in)
{
    kernel_call_begins();
    kernel_on = true;
    call(which % CALL_KINDS, in);
    kernel_on = false;
}

/* ------------------------------------------------------------ begin and end */

void program_begin(const struct program_options *options)
{
    assert(pcclInit() == pcclSuccess);
    p.options = *options;
    p.misled = p.troubled = false;
    program_state_begin();
    kernel_on = true;
    create();
    kernel_on = false;
}

void program_end(void)
{
    kernel_call_begins();
    kernel_on = true;
    destroy();
    kernel_on = false;
    for (uint32_t i = 0; i < MATE_BULKS; i++) {
        free(p.bulks[i]);
        p.bulks[i] = NULL;
    }
    program_state_end();
}
