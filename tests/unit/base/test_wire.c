/* test_wire.c - the codec of control messages: every type both ways, every
 * cut, every one-byte corruption, and the limits. */
#include "../unit.h"

#include "../../../src/base/wire.h"

static uint8_t frame[WIRE_FRAME_MAX];
static struct wire_store store;

static const struct wire_op ops[] = {
    {0, 1, 2, OP_COMPLETE, true},
    {UINT64_MAX, UINT64_MAX, 0, OP_RUNNING, false}};
static const uint64_t ids[] = {7, UINT64_MAX, 0};
static const uint16_t order[] = {2, 0, 1};
static const uint16_t sites[] = {7, 9};
static const struct wire_member members[] = {
    {.id = 5,
     .host = 6,
     .hint = -1,
     .pid = 8,
     .addr = {6, {1, 2, 3}, 99},
     .announced = {4, {192, 0, 2, 7}, 49148}},
    {.id = 9, .hint = 3, .addr = {4, {127, 0, 0, 1}, 65535}},
};

static const struct wire_wait waits[] = {{.kind = WAIT_COLLECTIVE,
                                          .coll = 4,
                                          .blocks = true,
                                          .scope = 1ull << 63,
                                          .tag = UINT64_MAX,
                                          .seq = 9,
                                          .count = 1ull << 40,
                                          .moved = 3,
                                          .peer = 4,
                                          .missing = 5,
                                          .age_ms = UINT32_MAX,
                                          .call = "MPI_Allreduce",
                                          .where = "MPI_COMM_WORLD"},
                                         {.kind = WAIT_REQUESTS}};

static const struct wire_part parts[] = {
    {.begin = 0, .count = 1ull << 40, .hash = 9, .weight = 1e300, .owner = 1},
    {.begin = 1ull << 40,
     .count = 3,
     .weight = 1e-300,
     .owner = WIRE_AVERAGED_MAX - 1,
     .contributors = WIRE_AVERAGED_MAX}};

static void fill_waiting(struct wire_msg *m)
{
    m->waiting.self = (struct wire_self){'R', 1000, 65535, UINT32_MAX};
    m->waiting.traffic = (struct wire_traffic){1, 2, UINT64_MAX};
    memcpy(m->waiting.host, "n17", 4);
    m->wait_count = 2;
    m->id_count = 2;
    m->set_count = 2;
    m->set_size = 3;
    m->sets = (const uint8_t *)"abcdef";
}

static void fill_hello(struct wire_msg *m)
{
    m->hello.group = 4;
    m->hello.pool = 3;
    m->hello.join = true;
    m->hello.self = members[0];
    m->hello.fetched = true;
    m->hello.revision = UINT64_MAX - 1;
    m->hello.max_stale = 5;
}

static void fill_welcome(struct wire_msg *m)
{
    m->welcome.id = 77;
    m->welcome.key = (struct wire_key){{1, UINT64_MAX}};
    m->welcome.deadline_ms = m->welcome.minimum = 3000;
    m->welcome.master_count = WIRE_MASTERS_MAX;
    for (uint8_t i = 0; i < WIRE_MASTERS_MAX; i++)
        m->welcome.masters[i] =
            (struct wire_addr){.family = 4, .ip = {10, 0, 0, i}, .port = 1};
}

static void fill_keep(struct wire_msg *m)
{
    m->keep.name = (struct wire_record_name){16, 3};
    if (m->type != WIRE_KEEP) return;
    m->keep.total = 9;
    m->keep.offset = 3;
    m->keep.size = 6;
    m->keep.bytes = (const uint8_t *)"record";
}

static void fill_offer(struct wire_msg *m)
{
    m->offer.revision = UINT64_MAX;
    m->offer.on = m->type == WIRE_OFFER;
    if (m->type == WIRE_OFFER) {
        m->offer.guests = 3;
        return;
    }
    m->offer.group_size = 9;
    m->offer.deadline_ms = 3000;
    m->offer.key = (struct wire_key){{1, UINT64_MAX}};
    m->member_count = 2;
}

static const struct wire_relay relays[] = {{0, 1, 2},
                                           {3, 65534, WIRE_RELAY_MASTER}};

static void fill_lists(struct wire_msg *m)
{
    bool has_ops = m->type == WIRE_FLUSHED || m->type == WIRE_REPLY ||
                   m->type == WIRE_QUERY || m->type == WIRE_VERDICT;
    bool has_ids = m->type == WIRE_READY || m->type == WIRE_FLUSH ||
                   m->type == WIRE_PROPOSE;
    if (has_ops) m->op_count = 2;
    if (m->type == WIRE_FLUSHED || m->type == WIRE_REPLY) {
        m->set_count = 2;
        m->set_size = 3;
        m->sets = (const uint8_t *)"abcdef";
    }
    if (has_ids) m->id_count = 3;
    if (m->type == WIRE_PROPOSE) {
        m->member_count = 2;
        m->order_count = 3;
        m->site_count = 2;
        m->relay_count = 2;
        m->relays = relays;
    }
}

/* "ab" is "c"; "d" is 1. */
static const uint8_t named[] = {0, 2, 1,   0, 0, 'a', 'b', 'c', 1, 1, 0,
                                0, 1, 'd', 0, 0, 0,   0,   0,   0, 0, 1};

static void fill_dispute(struct wire_msg *m)
{
    if (m->type == WIRE_FLUSHED) {
        m->flushed.traits = 0x80000001u;
        m->flushed.described = true;
        m->flushed.args = (struct wire_args){.coll = 4,
                                             .dtype = 11,
                                             .redop = 4,
                                             .quant = 2,
                                             .code = 3,
                                             .root = 1u << 31,
                                             .count = 1ull << 63,
                                             .sends = 5,
                                             .recvs = 6,
                                             .digest = 1ull << 62,
                                             .rank = 3,
                                             .named = named,
                                             .named_size = sizeof named};
    } else if (m->type == WIRE_FLUSH) {
        m->flush.disputed = true;
        m->flush.op = (struct wire_op){.scope = 9, .tag = 8, .seq = 7};
        m->flush.pair[0] = 1ull << 60;
        m->flush.pair[1] = 2;
    } else {
        m->verdict.about = 1;
        snprintf(m->verdict.text, sizeof m->verdict.text, "members disagree");
    }
}

static void fill_samples(struct wire_msg *m)
{
    m->samples.step = 7;
    m->samples.count = 1ull << 52;
    m->samples.target = UINT64_MAX;
    m->samples.members = PEERS_MAX;
    m->samples.reached = true;
}

static void fill_partial(struct wire_msg *m)
{
    bool has_parts = m->type == WIRE_COVERAGE;
    m->partial.word = has_parts ? PARTIAL_REFUSE : PARTIAL_HOLDS;
    m->partial.why = PARTIAL_LATE;
    m->partial.tag = 1ull << 63;
    m->partial.number = 1ull << 40;
    m->partial.count = 1ull << 41;
    m->partial.dtype = 11;
    m->partial.redop = 1;
    m->partial.weight = 0.1;
    m->partial.deadline_ms = UINT32_MAX;
    m->partial.gather_ms = 2;
    m->partial.evict_after = 3;
    m->partial.version = 4;
    m->partial.part = WIRE_PARTS_MAX - 1;
    m->partial.hash = 5;
    m->partial.self = WIRE_AVERAGED_MAX - 1;
    m->partial.contributed = m->partial.last = true;
    snprintf(m->partial.text, sizeof m->partial.text, "too late");
    m->id_count = 3;
    m->set_count = 2;
    m->set_size = 3;
    m->sets = (const uint8_t *)"abcdef";
    m->part_count = has_parts ? 2 : 0;
    m->parts = parts;
}

static struct wire_msg example(enum wire_type type)
{
    struct wire_msg m = {.type = type, .round = 3, .epoch = 0x01020304};
    switch (type) {
    case WIRE_HELLO:
        fill_hello(&m);
        break;
    case WIRE_OFFER:
    case WIRE_OFFERS:
        fill_offer(&m);
        break;
    case WIRE_WELCOME:
        fill_welcome(&m);
        break;
    case WIRE_VOTE:
    case WIRE_ANSWER:
        m.vote.kind = VOTE_PENDING;
        m.vote.flag = 0xff;
        break;
    case WIRE_SUSPECT:
    case WIRE_REFRESH:
        m.fault.cause = REFRESH_UNREACHABLE;
        m.fault.scope = 10;
        m.fault.tag = 11;
        m.fault.seq = 12;
        m.fault.peer = 13;
        break;
    case WIRE_DONATE:
    case WIRE_RESULT:
        m.result.scope = 4;
        m.result.tag = 5;
        m.result.seq = 6;
        if (type == WIRE_DONATE) break;
        m.result.bytes = (const uint8_t *)"result";
        m.result.size = 6;
        break;
    case WIRE_ABORT:
    case WIRE_EVICT:
        m.abort.code = -2;
        m.abort.rank = 1;
        memcpy(m.abort.text, "why not", 8);
        break;
    case WIRE_PROPOSE:
    case WIRE_INSTALL:
        m.view.mesh = m.view.update = true;
        m.view.world = 5;
        m.view.groups = m.view.largest = 2;
        m.view.traits = 6;
        break;
    case WIRE_FLUSHED:
    case WIRE_FLUSH:
    case WIRE_VERDICT:
        fill_dispute(&m);
        break;
    case WIRE_SAMPLES:
        fill_samples(&m);
        break;
    case WIRE_STATUS:
        m.status.last = true;
        m.status.size = 6;
        m.status.bytes = (const uint8_t *)"status";
        break;
    default:
        break;
    }
    m.ops = ops;
    m.ids = ids;
    m.members = members;
    m.order = order;
    m.sites = sites;
    m.waits = waits;
    fill_lists(&m);
    if (type == WIRE_RELAY) m.relay.to = UINT64_MAX;
    if (type >= WIRE_KEEP && type <= WIRE_CLAIM) fill_keep(&m);
    if (type == WIRE_WAITING) fill_waiting(&m);
    if (type == WIRE_PARTIAL || type == WIRE_COVERAGE) fill_partial(&m);
    return m;
}

/* Both decode to the same bytes again. */
static void assert_same(const struct wire_msg *a, const struct wire_msg *b)
{
    static uint8_t left[WIRE_FRAME_MAX], right[WIRE_FRAME_MAX];
    size_t size = wire_encode(a, left);
    assert_int_equal(size, wire_encode(b, right));
    assert_memory_equal(left, right, size);
}

static void test_round_trip_and_every_cut(void **state)
{
    (void)state;
    for (enum wire_type t = WIRE_HELLO; t < WIRE_TYPE_COUNT; t++) {
        struct wire_msg m = example(t), got;
        size_t used = 0;
        size_t size = wire_encode(&m, frame);
        for (size_t cut = 0; cut < size; cut++) {
            uint8_t *exact = malloc(cut + 1);
            assert_non_null(exact);
            memcpy(exact, frame, cut);
            assert_int_equal(wire_decode(exact, cut, &store, &got, &used),
                             WIRE_MORE);
            free(exact);
        }
        frame[size] = 0xee; /* the next frame's business */
        assert_int_equal(wire_decode(frame, size + 1, &store, &got, &used),
                         WIRE_OK);
        assert_int_equal(used, size);
        assert_int_equal(got.type, t);
        assert_int_equal(got.round, 3);
        assert_int_equal(got.epoch, 0x01020304);
        assert_same(&m, &got);
        assert_string_not_equal(wire_type_name(t), "?");
    }
}

static void test_values_arrive(void **state)
{
    (void)state;
    struct wire_msg m = example(WIRE_PROPOSE), got;
    size_t used;
    size_t size = wire_encode(&m, frame);
    assert_int_equal(wire_decode(frame, size, &store, &got, &used), WIRE_OK);
    assert_int_equal(got.id_count, 3);
    assert_true(got.ids[1] == UINT64_MAX);
    assert_int_equal(got.members[0].hint, -1);
    assert_int_equal(got.members[1].addr.port, 65535);
    assert_int_equal(got.order[0], 2);
    assert_int_equal(got.site_count, 2);
    assert_int_equal(got.sites[1], 9);
    assert_int_equal(got.relay_count, 2);
    assert_int_equal(got.relays[1].relay, WIRE_RELAY_MASTER);
    assert_true(got.view.mesh && !got.view.ring && got.view.update);
    m = example(WIRE_EVICT);
    size = wire_encode(&m, frame);
    assert_int_equal(wire_decode(frame, size, &store, &got, &used), WIRE_OK);
    assert_string_equal(got.abort.text, "why not");
    assert_int_equal(got.abort.code, -2);
}

/* A decoder may accept a corrupted frame as another valid one. Its values are
 * then within limits: it can be encoded, to the very bytes received. */
static void test_every_corruption(void **state)
{
    (void)state;
    for (enum wire_type t = WIRE_HELLO; t < WIRE_TYPE_COUNT; t++) {
        struct wire_msg m = example(t), got;
        size_t size = wire_encode(&m, frame);
        uint8_t *bad = malloc(size);
        assert_non_null(bad);
        for (size_t at = 0; at < size; at++) {
            for (unsigned x = 1; x < 256; x++) {
                memcpy(bad, frame, size);
                bad[at] = (uint8_t)(bad[at] ^ x);
                size_t used = 0;
                enum wire_status s =
                    wire_decode(bad, size, &store, &got, &used);
                if (at < 3) assert_int_equal(s, WIRE_BAD);
                if (s != WIRE_OK) continue;
                static uint8_t again[WIRE_FRAME_MAX];
                assert_true(used <= size);
                assert_int_equal(wire_encode(&got, again), used);
                assert_memory_equal(again, bad, used);
            }
        }
        free(bad);
    }
}

static void test_size_is_judged_by_type(void **state)
{
    (void)state;
    struct wire_msg got;
    size_t used;
    for (unsigned type = 0; type < 256; type++) {
        uint8_t head[WIRE_HEADER_SIZE] = {
            0x50, 0x43, WIRE_VERSION, (uint8_t)type, 0, 8, 0, 0};
        enum wire_status s =
            wire_decode(head, sizeof head, &store, &got, &used);
        assert_int_equal(s, WIRE_BAD); /* half a MiB is too much for all */
        head[5] = 0;
        head[7] = 255;
        s = wire_decode(head, sizeof head, &store, &got, &used);
        bool small = type == 0 || type >= WIRE_TYPE_COUNT ||
                     type == WIRE_HELLO || type == WIRE_WELCOME ||
                     type == WIRE_VOTE;
        if (small) assert_int_equal(s, WIRE_BAD);
    }
}

static void test_full_lists_fit(void **state)
{
    (void)state;
    struct wire_store *big = calloc(1, sizeof *big);
    assert_non_null(big);
    struct wire_msg m = {.type = WIRE_READY, .id_count = PEERS_MAX};
    m.ids = big->ids;
    assert_true(wire_encode(&m, frame) <= WIRE_FRAME_MAX);
    m = (struct wire_msg){.type = WIRE_VERDICT, .op_count = WIRE_OPS_MAX};
    memset(m.verdict.text, 'x', WIRE_TEXT_MAX);
    m.ops = big->ops;
    assert_true(wire_encode(&m, frame) <= WIRE_FRAME_MAX);
    m = (struct wire_msg){.type = WIRE_FLUSHED,
                          .op_count = WIRE_OPS_MAX,
                          .set_count = WIRE_SETS_MAX,
                          .set_size = WIRE_SET_SIZE,
                          .flushed.described = true,
                          .ops = big->ops,
                          .sets = (const uint8_t *)big->members};
    assert_true(wire_encode(&m, frame) <= WIRE_FRAME_MAX);
    for (uint32_t i = 0; i < PEERS_MAX; i++) { /* as unlike as can be */
        struct wire_member *x = &big->members[i];
        uint64_t far = (uint64_t)i << 40 | i << 20;
        *x = (struct wire_member){.id = far,
                                  .host = i,
                                  .hint = -2 * (int32_t)i,
                                  .pid = i << 20,
                                  .addr = {6, {[14] = (uint8_t)(i >> 8)}, 1},
                                  .announced = {6, {1}, 2}};
        x->addr.ip[15] = (uint8_t)i;
    }
    m = (struct wire_msg){.type = WIRE_PROPOSE, .member_count = PEERS_MAX};
    m.members = big->members;
    m.order_count = PEERS_MAX;
    m.order = big->order;
    m.relay_count = WIRE_RELAYS_MAX;
    m.relays = big->relays;
    for (uint32_t i = 0; i < WIRE_RELAYS_MAX; i++)
        big->relays[i] = (struct wire_relay){0, 1, 2};
    assert_true(wire_encode(&m, frame) <= WIRE_FRAME_MAX);
    m = (struct wire_msg){.type = WIRE_WAITING,
                          .wait_count = WIRE_WAITS_MAX,
                          .id_count = 2 * WIRE_QUIET_MAX,
                          .set_count = WIRE_UNDER_WAY_MAX,
                          .set_size = WIRE_SET_SIZE,
                          .ids = big->ids,
                          .waits = big->waits,
                          .sets = (const uint8_t *)big->members};
    memset(m.waiting.host, 'x', WIRE_NAME_MAX);
    for (uint32_t i = 0; i < WIRE_WAITS_MAX; i++) {
        memset(big->waits[i].call, 'x', WIRE_NAME_MAX);
        memset(big->waits[i].where, 'x', WIRE_NAME_MAX);
    }
    assert_true(wire_encode(&m, frame) <= WIRE_FRAME_MAX);
    m = (struct wire_msg){.type = WIRE_STATUS};
    m.status.size = WIRE_PART_MAX;
    m.status.bytes = (const uint8_t *)big->members;
    assert_true(wire_encode(&m, frame) <= WIRE_FRAME_MAX);
    free(big);
}

/* A list of arguments that is none ends the connection (rule F9a). */
static void test_lists_of_arguments(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[8];
        uint32_t size;
        bool good;
    } lists[] = {{{0, 1, 1, 0, 0, 'a', 'b'}, 7, true},
                 {{0, 0, 0, 0, 0}, 5, true},
                 {{0}, 0, true},
                 {{0, 1, 1, 0, 0, 'a', 'b'}, 6, false}, /* cut */
                 {{0, 1, 1, 0, 0, 'a', 'b', 0}, 8, false},
                 {{0, 1, 1, 0, 0, 'a', 7}, 7, false},   /* unprintable */
                 {{4, 1, 1, 0, 0, 'a', 'b'}, 7, false}, /* flags */
                 {{0, 1, 0, 0, 1, 'a'}, 6, false},      /* lacks a value */
                 {{0, 1, 0, 1, 0, 'a'}, 6, false},
                 {{0, 0, 0, 0}, 4, false}};
    for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
        struct wire_msg out, m = {.type = WIRE_FLUSHED};
        m.flushed.described = true;
        m.flushed.args.named = lists[i].bytes;
        m.flushed.args.named_size = lists[i].size;
        size_t used, size = wire_encode(&m, frame);
        assert_int_equal(wire_decode(frame, size, &store, &out, &used),
                         lists[i].good ? WIRE_OK : WIRE_BAD);
    }
}

/* Rule N1. */
static void test_an_announced_address_is_one_host(void **state)
{
    (void)state;
    static const struct {
        struct wire_addr addr;
        bool good;
    } rows[] = {
        {{4, {192, 0, 2, 7}, 1}, true},
        {{4, {127, 0, 0, 1}, 1}, true},
        {{6, {0x20, 1, [15] = 1}, 65535}, true},
        {{6, {[15] = 1}, 1}, true},
        {{4, {192, 0, 2, 7}, 0}, false},
        {{4, {0}, 1}, false},
        {{4, {224, 0, 0, 1}, 1}, false},
        {{4, {255, 255, 255, 255}, 1}, false},
        {{6, {0}, 1}, false},
        {{6, {0xff, 2, [15] = 1}, 1}, false},
        {{6, {0xfe, 0x80, [15] = 1}, 1}, false},
        {{5, {1}, 1}, false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct wire_msg m = {.type = WIRE_HELLO}, got;
        size_t used = 0;
        assert_int_equal(wire_addr_is_host(&rows[i].addr), rows[i].good);
        m.hello.self.announced = (struct wire_addr){4, {1, 2, 3, 4}, 5};
        size_t size = wire_encode(&m, frame);
        uint8_t *at = memmem(frame, size, "\4\1\2\3\4", 5);
        assert_non_null(at);
        at[0] = rows[i].addr.family;
        memcpy(at + 1, rows[i].addr.ip, sizeof rows[i].addr.ip);
        at[17] = (uint8_t)(rows[i].addr.port >> 8);
        at[18] = (uint8_t)rows[i].addr.port;
        assert_int_equal(wire_decode(frame, size, &store, &got, &used),
                         rows[i].good ? WIRE_OK : WIRE_BAD);
    }
}

/* A part lies within its record, and a record has a limit. */
static void test_parts_of_a_record(void **state)
{
    (void)state;
    struct wire_msg m = {.type = WIRE_KEEP}, back;
    size_t used;
    fill_keep(&m);
    size_t size = wire_encode(&m, frame);
    uint8_t *total = frame + WIRE_HEADER_SIZE + 8 + 16;
    assert_int_equal(wire_decode(frame, size, &store, &back, &used), WIRE_OK);
    assert_memory_equal(back.keep.bytes, "record", 6);
    total[3] = 8; /* one less than offset and size */
    assert_int_equal(wire_decode(frame, size, &store, &back, &used), WIRE_BAD);
    total[0] = 1; /* 16 MiB */
    assert_int_equal(wire_decode(frame, size, &store, &back, &used), WIRE_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip_and_every_cut),
        cmocka_unit_test(test_parts_of_a_record),
        cmocka_unit_test(test_values_arrive),
        cmocka_unit_test(test_every_corruption),
        cmocka_unit_test(test_size_is_judged_by_type),
        cmocka_unit_test(test_full_lists_fit),
        cmocka_unit_test(test_an_announced_address_is_one_host),
        cmocka_unit_test(test_lists_of_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
