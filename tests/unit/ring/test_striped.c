/* test_striped.c - a ring over links of several connections. Received data are
 * passed on in any order, once, and none before it has arrived (rule D13). A
 * lost connection takes the operation back to its beginning (rule R6). Three
 * engines; the test decides which bytes each connection carries, and when. */
#include "../unit.h"

#include "../../../include/pccl.h"
#include "../../../src/ring/algorithm.h"
#include "../../../src/ring/op.h"
#include "../install_view.h"

enum {
    WORLD = 3,
    STRIPES = 3, /* connections of a link */
    STEPS = 2 * (WORLD - 1),
    SEGMENTS = 8, /* of a chunk */
    TRANSFERS = STEPS * SEGMENTS,
    SEGMENT = PLAN_SEGMENT_WAN_MIN,
    COUNT = WORLD * SEGMENTS * SEGMENT / 8,
    FRAMES_MAX = 64, /* under way on one connection */
};

/* One direction of a connection. */
struct way {
    bool stopped; /* nothing comes out of it */
    uint8_t bytes[2 * SEGMENT];
    size_t size;
    uint32_t body; /* missing bytes of the frame that goes in */
    struct {
        struct frame frame;
        size_t size; /* bytes that have not come out */
    } frames[FRAMES_MAX];
    uint32_t frame_count;
};

static struct engine *engines[WORLD];
static struct wire_member members[WORLD];
static uint64_t ids[WORLD];
static struct op *ops[WORLD];
static uint64_t in[WORLD][COUNT], out[WORLD][COUNT];

/* By the end that sends or receives, the other end, and the connection. */
static struct way ways[WORLD][WORLD][STRIPES];
static bool held[WORLD][WORLD][STRIPES];
static bool called[WORLD][WORLD][STRIPES];

static bool sent[WORLD][TRANSFERS], came[WORLD][TRANSFERS];
static uint32_t epoch, faults, overtaken;
static uint64_t random_state;

static uint32_t pick(uint32_t count)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % count;
}

static uint32_t self_of(const void *user)
{
    return (uint32_t)((const uint64_t *)user - ids);
}

static uint32_t on_dial(void *user, const struct wire_addr *addr)
{
    uint32_t a = self_of(user);
    uint32_t b = addr->port;
    uint32_t j = 0;
    while (j < STRIPES && (held[a][b][j] || held[b][a][j])) j++;
    assert_true(j < STRIPES);
    held[a][b][j] = called[a][b][j] = true;
    return b * STRIPES + j;
}

static void on_close(void *user, uint32_t conn)
{
    held[self_of(user)][conn / STRIPES][conn % STRIPES] = false;
}

static void on_fault(void *user, enum engine_fault fault, const struct op *op,
                     uint64_t peer)
{
    (void)user, (void)op, (void)peer;
    assert_int_equal(fault, FAULT_BROKEN);
    faults++;
}

static void on_finished(void *user, struct op *op)
{
    (void)user, (void)op;
}

/* ----------------------------------------------------- permission to send */

/* The k-th transfer of step s passes on the one received a step before. */
static bool has_come(uint32_t a, uint32_t k)
{
    return k < SEGMENTS || came[a][k - SEGMENTS];
}

static void check_sent(uint32_t a, const struct frame *f)
{
    uint32_t k = f->index;
    if (f->type != FRAME_DATA) return;
    assert_int_equal(f->epoch, epoch);
    assert_true(k < TRANSFERS);
    assert_false(sent[a][k]);
    assert_true(has_come(a, k));
    sent[a][k] = true;
    for (uint32_t i = 0; i < k; i++) {
        assert_true(sent[a][i] || !has_come(a, i)); /* the earliest first */
        overtaken += !sent[a][i];
    }
}

static void move_in(uint32_t a, uint32_t b, uint32_t j)
{
    struct way *w = &ways[a][b][j];
    uint32_t conn = b * STRIPES + j;
    struct conn_part parts[2];
    /* Socket buffers are small, and a driver asks which endpoint may send. */
    if (w->size >= SEGMENT || !engine_may_send(engines[a], conn)) return;
    uint32_t count = engine_tx_window(engines[a], conn, parts);
    if (count == 0) {
        engine_clear_dirty(engines[a], conn);
        return;
    }
    size_t size = parts[0].size;
    assert_true(w->size + size <= sizeof w->bytes);
    if (w->body == 0) { /* a header, whole */
        struct frame f;
        assert_true(frame_decode(parts[0].from, &f));
        assert_true(w->frame_count < FRAMES_MAX);
        uint32_t whole = FRAME_SIZE + f.size;
        const struct links *n = &engines[a]->links;
        if (f.type == FRAME_HELLO) /* and FILL behind it */
            whole += FRAME_SIZE + (n->conns[conn]->further ? 0 : n->fill_size);
        w->frames[w->frame_count].size = whole;
        w->frames[w->frame_count++].frame = f;
        w->body = whole;
        check_sent(a, &f);
    }
    memcpy(w->bytes + w->size, parts[0].from, size);
    w->size += size;
    w->body -= (uint32_t)size;
    engine_tx(engines[a], conn, size);
}

static void note_come(struct way *w, uint32_t b, size_t size)
{
    while (size > 0) {
        size_t part = w->frames[0].size;
        if (part > size) part = size;
        size -= part;
        w->frames[0].size -= part;
        if (w->frames[0].size > 0) return;
        const struct frame *f = &w->frames[0].frame;
        if (f->type == FRAME_DATA && f->epoch == epoch)
            came[b][f->index] = true;
        w->frame_count--;
        memmove(w->frames, w->frames + 1, w->frame_count * sizeof w->frames[0]);
    }
}

static void move_out(uint32_t a, uint32_t b, uint32_t j)
{
    struct way *w = &ways[a][b][j];
    uint32_t conn = a * STRIPES + j;
    uint8_t *to;
    if (w->stopped || !held[b][a][j]) return;
    size_t size = engine_rx_window(engines[b], conn, &to);
    if (size > w->size) size = w->size;
    if (size == 0) return;
    memcpy(to, w->bytes, size);
    w->size -= size;
    memmove(w->bytes, w->bytes + size, w->size);
    note_come(w, b, size);
    assert_true(engine_rx(engines[b], conn, size));
}

/* ----------------------------------------------------------- the connections
 */

static void answer_calls(void)
{
    for (uint32_t i = 0; i < WORLD * WORLD * STRIPES; i++) {
        uint32_t a = i / STRIPES / WORLD, b = i / STRIPES % WORLD;
        uint32_t j = i % STRIPES;
        if (!called[a][b][j]) continue;
        called[a][b][j] = false;
        if (!held[a][b][j]) continue;
        held[b][a][j] = true;
        assert_true(engine_accepted(engines[b], a * STRIPES + j));
        engine_dialed(engines[a], b * STRIPES + j, true);
    }
}

/* Each end receives the closes of the other end. Bytes under way there are
 * lost. */
static void hear_ends(void)
{
    for (uint32_t i = 0; i < WORLD * WORLD * STRIPES; i++) {
        uint32_t a = i / STRIPES / WORLD, b = i / STRIPES % WORLD;
        uint32_t j = i % STRIPES;
        if (held[a][b][j] && (held[b][a][j] || called[a][b][j])) continue;
        ways[a][b][j] = ways[b][a][j] = (struct way){0};
        if (!held[a][b][j]) continue;
        held[a][b][j] = false;
        engine_closed(engines[a], b * STRIPES + j);
    }
}

static void turns(uint32_t count)
{
    while (count-- > 0) {
        uint32_t a = pick(WORLD), b = pick(WORLD), j = pick(STRIPES);
        answer_calls(); /* a link that is open dials for more (R3c) */
        if (a == b || !held[a][b][j] || called[a][b][j]) continue;
        move_in(a, b, j);
        move_out(a, b, j);
    }
}

static void link_all(void)
{
    for (uint32_t a = 0; a < WORLD; a++) {
        for (uint32_t b = a + 1; b < WORLD; b++)
            links_want(&engines[a]->links, &members[b], STRIPES);
    }
    answer_calls();
}

static void install(void)
{
    epoch++;
    memset(sent, 0, sizeof sent);
    memset(came, 0, sizeof came);
    for (uint32_t i = 0; i < WORLD; i++) {
        install_view(engines[i], epoch, members, WORLD, i);
    }
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < WORLD; i++) {
        engine_free(engines[i]);
        free(engines[i]);
    }
    return 0;
}

static int setup(void **state)
{
    (void)state;
    memset(ways, 0, sizeof ways);
    memset(held, 0, sizeof held);
    memset(called, 0, sizeof called);
    epoch = faults = overtaken = 0;
    for (uint32_t i = 0; i < WORLD; i++) {
        ids[i] = members[i].id = 10 + i;
        members[i].addr.port = (uint16_t)i;
        engines[i] = calloc(1, sizeof *engines[i]);
        struct driver d = {.user = &ids[i], .dial = on_dial, .close = on_close};
        struct engine_events o = {
            .user = &ids[i], .fault = on_fault, .finished = on_finished};
        if (!engines[i] || !engine_init(engines[i], &d, &o, STRIPES, PCCL_S))
            return 1;
        engines[i]->links.self = ids[i];
        engines[i]->links.fill_size = 8;
        engines[i]->input_large = 0; /* overwritten, and put back */
        if (!engine_force(engines[i], "ring")) return 1;
    }
    install();
    link_all();
    turns(2000);
    for (uint32_t i = 0; i < WORLD; i++) {
        for (size_t k = 0; k < COUNT; k++) in[i][k] = k * (i + 1);
        memset(out[i], 0xff, sizeof out[i]);
        struct op_request r = {.call.dtype = DTYPE_U64,
                               .call.redop = REDOP_SUM,
                               .call.sendbuf = in[i],
                               .call.recvbuf = i == 1 ? in[i] : out[i]};
        r.plan.coll = COLL_ALLREDUCE;
        r.plan.count = COUNT;
        r.plan.element = 8;
        ops[i] = engine_launch(engines[i], &r, false);
        if (!ops[i] || ops[i]->plan.algorithm != &allreduce_ring ||
            ops[i]->plan.segments != SEGMENTS)
            return 1;
    }
    return 0;
}

static uint32_t sent_by(uint32_t a)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < TRANSFERS; k++) count += sent[a][k];
    return count;
}

static void finish(void)
{
    turns(40000);
    for (uint32_t i = 0; i < WORLD; i++) {
        assert_int_equal(sent_by(i), TRANSFERS);
        assert_int_equal(ops[i]->phase, PHASE_DONE);
        assert_int_equal(ops[i]->result, pcclSuccess);
        const uint64_t *sum = ops[i]->r.recvbuf;
        for (size_t k = 0; k < COUNT; k++) assert_int_equal(sum[k], 6 * k);
    }
}

/* -------------------------------------------------------------------- tests */

/* A segment is late: only the transfers that depend on it wait, one of each
 * member. All others go round the whole ring. */
static void test_what_is_late_keeps_nothing_else(void **state)
{
    for (uint32_t j = 0; j < STRIPES; j++) {
        ways[2][0][j].stopped = true;
        turns(40000);
        for (uint32_t i = 0; i < WORLD; i++) {
            assert_int_equal(sent_by(i), TRANSFERS - 1);
            assert_int_equal(ops[i]->phase, PHASE_RUNNING);
        }
        assert_true(overtaken > 0);
        ways[2][0][j].stopped = false;
        finish();
        (void)teardown(state);
        assert_int_equal(setup(state), 0);
    }
}

/* The data arrive in any order. */
static void test_any_order(void **state)
{
    uint32_t all = 0;
    for (uint32_t seed = 1; seed <= 50; seed++) {
        random_state = seed;
        for (uint32_t i = 0; i < 200; i++) {
            struct way *w = ways[pick(WORLD)][pick(WORLD)] + pick(STRIPES);
            w->stopped = !w->stopped;
            turns(pick(100));
        }
        for (uint32_t i = 0; i < WORLD * WORLD * STRIPES; i++)
            (&ways[0][0][0])[i].stopped = false;
        finish();
        all += overtaken;
        (void)teardown(state);
        assert_int_equal(setup(state), 0);
    }
    assert_true(all > 1000);
}

static bool any_done(void)
{
    bool done = false;
    for (uint32_t i = 0; i < WORLD; i++) done |= ops[i]->phase == PHASE_DONE;
    return done;
}

/* A flush and a view of the same members do this when no member was lost. */
static void begin_again(void)
{
    for (uint32_t i = 0; i < WORLD; i++) engine_freeze(engines[i]);
    link_all();
    install();
    for (uint32_t i = 0; i < WORLD; i++)
        assert_true(engine_start(engines[i], ops[i]));
}

/* One connection ends at any moment, with the bytes under way on it. An end
 * reports it, and in the next view every transfer is made again, each once. */
static void test_a_lost_connection(void **state)
{
    bool last = false;
    for (uint32_t moment = 0; !last; moment += 5) {
        random_state = moment;
        turns(moment);
        last = any_done();
        if (!last) {
            uint32_t a = pick(WORLD), b = (a + 1) % WORLD, j = pick(STRIPES);
            held[a][b][j] = false;
            engine_closed(engines[a], b * STRIPES + j);
            for (uint32_t i = 0; i < WORLD; i++) hear_ends();
            assert_true(faults > 0);
            begin_again();
            finish();
        }
        (void)teardown(state);
        assert_int_equal(setup(state), 0);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_what_is_late_keeps_nothing_else),
        TEST(test_any_order),
        TEST(test_a_lost_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
