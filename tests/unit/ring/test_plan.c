/* test_plan.c - the arithmetic of the algorithms: both ends agree on every
 * transfer, no order of waiting deadlocks, and the data end in the right
 * places.
 *
 * The little machine below moves bytes as the engine does, one transfer at a
 * time, with u8 sums that wrap: every contribution must be counted once. */
#include "../unit.h"

#include "../../../src/ring/algorithm_table.h"
#include "../../../src/ring/geometry.h"
#include "../../../src/ring/neighbors.h"
#include "../../../src/ring/pieces.h"

enum { STREAMED = 2 }; /* in `wrote` */
enum { WORLD_MAX = 9, BYTES_MAX = 1 << 20, XFERS_MAX = 4096 };

struct node {
    struct plan plan;
    uint8_t *send, *recv, *slots;
    uint8_t *wrote; /* ring: the last value written to each byte of recv */
    uint32_t sent[WORLD_MAX], received[WORLD_MAX];
    struct hierarchy hierarchy;
    /* Counts. ring: transfers from `prev`; direct: pieces that are summed up,
     * and pieces received as sums; single copy: pieces of the own chunk that
     * are summed up, and those of whose segment all other sums have arrived; of
     * a broadcast or all-gather: segments that have come from all. */
    bool got[XFERS_MAX];
    uint32_t summed[XFERS_MAX], sums[XFERS_MAX];
    size_t send_bytes[WORLD_MAX], send_displs[WORLD_MAX];
    size_t recv_bytes[WORLD_MAX], recv_displs[WORLD_MAX];
};

static struct node nodes[WORLD_MAX];
static const uint16_t *sites; /* of the members, or NULL */

static uint8_t value(uint32_t rank, uint64_t i)
{
    return (uint8_t)(rank * 37 + i * 11 + i / 256 + 1);
}

static size_t pair_size(uint32_t from, uint32_t to, uint64_t count)
{
    return (size_t)((from * 7 + to * 3) % 4 * count / 2);
}

static uint64_t vector_size(const struct plan_request *r)
{
    return r->count * r->element - r->spare;
}

static void setup(struct plan_request *r, uint32_t rank)
{
    struct node *n = &nodes[rank];
    memset(n, 0, sizeof *n);
    uint64_t size = vector_size(r);
    size_t sends = 0, recvs = 0;
    r->rank = rank;
    for (uint32_t i = 0; i < r->world; i++) {
        n->send_bytes[i] = pair_size(rank, i, r->count);
        n->recv_bytes[i] = pair_size(i, rank, r->count);
        n->send_displs[i] = sends;
        n->recv_displs[i] = recvs;
        sends += n->send_bytes[i];
        recvs += n->recv_bytes[i];
    }
    struct plan_request mine = *r;
    mine.send_bytes = n->send_bytes;
    mine.send_displs = n->send_displs;
    mine.recv_bytes = n->recv_bytes;
    mine.recv_displs = n->recv_displs;
    size_t send_size = r->coll == COLL_ALLTOALLV ? sends : (size_t)size;
    size_t recv_size = r->coll == COLL_ALLTOALLV ? recvs : (size_t)size;
    if (r->coll == COLL_ALLGATHER) recv_size *= r->world;
    if (sites) hierarchy_init(&n->hierarchy, sites, r->world, rank);
    if (sites) mine.hierarchy = &n->hierarchy;
    plan_init(&n->plan, &mine);
    n->send = malloc(send_size + 1);
    n->recv = calloc(1, recv_size + 1);
    n->slots = calloc(r->world, (size_t)size + 1);
    n->wrote = calloc(1, recv_size + 1);
    assert_true(n->send && n->recv && n->slots && n->wrote);
    for (size_t i = 0; i < send_size; i++) n->send[i] = value(rank, i);
    if (r->coll == COLL_ALLGATHER)
        memcpy(n->recv + rank * size, n->send, (size_t)size);
    if (r->coll == COLL_BROADCAST && rank == r->root)
        memcpy(n->recv, n->send, (size_t)size);
}

static bool is(const struct plan *p, const struct algorithm *a)
{
    return p->algorithm == a;
}

static bool reduces_in_regions(const struct plan *p)
{
    return is(p, &allreduce_single_copy) || is(p, &reduce_scatter_single_copy);
}

static bool has_pieces(const struct plan *p)
{
    return is(p, &allreduce_direct) || is(p, &reduce_scatter_direct) ||
           reduces_in_regions(p);
}

/* Returns whether the transfer is a part to add. */
static bool part_of(const struct plan *p, uint32_t from, uint32_t k,
                    struct pieces_part *part)
{
    return p->algorithm->part(p, from, k, part);
}

static void deliver_lent(struct node *to, uint32_t piece, bool adds)
{
    const struct plan *p = &to->plan;
    uint32_t g = piece % p->segments, others = p->r.world - 1;
    uint32_t own = p->r.rank * p->segments + g;
    assert_true(piece == own || !adds);
    if (adds && ++to->summed[piece] == others) to->got[own] = true;
    if (!adds && ++to->sums[g] == others) to->got[pieces_count(p) + own] = true;
}

/* Rule D16b: nobody sends an input before this member has added those of the
 * last segment but one. */
static void check_buffer(const struct node *to, uint32_t piece, bool adds)
{
    uint32_t g = piece % to->plan.segments;
    assert_true(!adds || g < 2 || to->got[piece - SINGLE_COPY_BUFFERS]);
}

/* Of all members that send to this one. */
static void deliver_spread(struct node *to, uint32_t k)
{
    uint32_t senders = 0;
    for (uint32_t i = 0; i < plan_partners(&to->plan); i++) {
        uint32_t from = plan_partner(&to->plan, i);
        senders += plan_recvs(&to->plan, from) > 0;
    }
    if (++to->sums[k] == senders) to->got[k] = true;
}

/* Rule D19b: all have taken the segment whose place this one gets. */
static void check_place(uint32_t from, uint32_t k, uint32_t world)
{
    for (uint32_t to = 0; to < world; to++)
        if (to != from)
            assert_true(k < nodes[to].received[from] + SINGLE_COPY_PLACES);
}

static void deliver(struct node *to, uint32_t from, const uint8_t *bytes,
                    uint32_t size)
{
    struct plan_xfer y;
    uint32_t k = to->received[from]++;
    assert_true(k < plan_recvs(&to->plan, from));
    plan_recv(&to->plan, from, k, &y);
    assert_int_equal(y.size, size);
    uint8_t *base = y.space == SPACE_SLOT ? to->slots : to->recv;
    bool pairwise = has_pieces(&to->plan);
    bool adds = pairwise && y.action != ACTION_STORE;
    if (is(&to->plan, &allreduce_ring) && size > 0)
        to->wrote[y.offset] = ring_streams(&to->plan, k) ? STREAMED : 1;
    struct pieces_part part = {.piece = 0};
    if (pairwise) assert_true(part_of(&to->plan, from, k, &part) == adds);
    uint32_t piece = part.piece;
    const uint8_t *with = adds && to->summed[piece] > 0 ? to->recv : to->send;
    for (uint32_t i = 0; i < size; i++) {
        uint8_t own = y.action == ACTION_STORE ? 0 : with[y.offset + i];
        base[y.offset + i] = (uint8_t)(bytes[i] + own);
    }
    if (reduces_in_regions(&to->plan)) {
        check_buffer(to, piece, adds);
        deliver_lent(to, piece, adds);
        return;
    }
    if (is(&to->plan, &spread_single_copy)) {
        deliver_spread(to, k);
        return;
    }
    if (adds && ++to->summed[piece] == part.turns) to->got[piece] = true;
    if (pairwise && !adds)
        to->got[to->plan.r.world * to->plan.segments + piece] = true;
    if (pairwise) return;
    if (from == to->plan.prev && k < XFERS_MAX) to->got[k] = true;
}

/* The engine's fold when all vectors are in their slots. */
static bool fold(struct node *n, uint64_t size)
{
    const struct plan *p = &n->plan;
    for (uint32_t a = 0; a < p->r.world; a++)
        if (a != p->r.rank && n->received[a] == 0) return false;
    for (uint64_t i = 0; i < size; i++) {
        uint8_t sum = n->send[i];
        for (uint32_t a = 0; a < p->r.world; a++)
            sum = (uint8_t)(sum + n->slots[a * size + i]);
        n->recv[i] = sum;
    }
    return true;
}

/* One round over all pairs; the number of transfers made. */
static uint32_t move(uint32_t world)
{
    uint32_t moved = 0;
    for (uint32_t a = 0; a < world; a++) {
        struct node *n = &nodes[a];
        for (uint32_t i = 0; i < plan_partners(&n->plan); i++) {
            uint32_t b = plan_partner(&n->plan, i);
            assert_int_equal(plan_sends(&n->plan, b),
                             plan_recvs(&nodes[b].plan, a));
            if (n->sent[b] == plan_sends(&n->plan, b)) continue;
            struct plan_xfer x;
            plan_send(&n->plan, b, n->sent[b], &x);
            bool waits = x.after != PLAN_NOTHING;
            waits = waits && !n->got[x.after];
            if (waits) continue;
            assert_true(x.size <= PLAN_SEGMENT_MAX);
            if (is(&n->plan, &spread_single_copy) && x.size > 0)
                check_place(a, n->sent[b], world);
            if (is(&n->plan, &allreduce_ring) && x.space == SPACE_RECV)
                assert_true(x.size == 0 || n->wrote[x.offset] == 1);
            const uint8_t *base = x.space == SPACE_SEND ? n->send : n->recv;
            deliver(&nodes[b], a, base + x.offset, x.size);
            n->sent[b]++;
            moved++;
        }
    }
    return moved;
}

static uint8_t expected(const struct plan_request *r, uint32_t rank, uint64_t i)
{
    uint64_t size = vector_size(r);
    uint8_t sum = 0;
    switch (r->coll) {
    case COLL_BROADCAST:
        return value(r->root, i);
    case COLL_ALLGATHER:
        return value((uint32_t)(i / size), i % size);
    default:
        for (uint32_t k = 0; k < r->world; k++)
            sum = (uint8_t)(sum + value(k, i));
        (void)rank;
        return sum;
    }
}

static void check(const struct plan_request *r, uint32_t rank)
{
    if (r->coll == COLL_BARRIER) return; /* moves nothing */
    struct node *n = &nodes[rank];
    uint64_t size = vector_size(r);
    if (r->coll == COLL_ALLTOALLV) {
        for (uint32_t a = 0; a < r->world; a++) {
            for (size_t i = 0; a != rank && i < n->recv_bytes[a]; i++)
                assert_int_equal(n->recv[n->recv_displs[a] + i],
                                 value(a, nodes[a].send_displs[rank] + i));
        }
        return;
    }
    /* The engine folds the slots. */
    if (is(&n->plan, &allreduce_flat) || is(&n->plan, &allreduce_flat_codes))
        assert_true(fold(n, size));
    if (r->coll == COLL_ALLGATHER) size *= r->world;
    uint64_t first = plan_result_first(&n->plan);
    if (r->coll == COLL_REDUCE_SCATTER)
        size = first + plan_chunk_size(&n->plan, rank);
    for (uint64_t i = first; i < size; i++)
        assert_int_equal(n->recv[i], expected(r, rank, i));
}

static void run(struct plan_request r)
{
    for (uint32_t k = 0; k < r.world; k++) setup(&r, k);
    bool tree = is(&nodes[0].plan, &small_tree); /* test_tree.c */
    while (!tree && move(r.world) > 0) continue;
    for (uint32_t a = 0; a < r.world && !tree; a++) {
        struct plan *p = &nodes[a].plan;
        for (uint32_t i = 0; i < plan_partners(p); i++) {
            uint32_t b = plan_partner(p, i);
            assert_int_not_equal(a, b);
            assert_int_equal(nodes[a].sent[b], plan_sends(p, b));
            assert_int_equal(nodes[b].received[a],
                             plan_recvs(&nodes[b].plan, a));
        }
        if (r.world > 1) check(&r, a);
    }
    for (uint32_t a = 0; a < r.world; a++) {
        free(nodes[a].send);
        free(nodes[a].recv);
        free(nodes[a].slots);
        free(nodes[a].wrote);
    }
}

static void test_every_plan(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 2, 5, 8, 9, 1000, 40000, 500001};
    static const uint16_t shuffled[WORLD_MAX][WORLD_MAX] = {
        {0},
        {0},
        {1, 0},
        {1, 0, 2},
        {2, 0, 3, 1},
        {4, 1, 3, 0, 2},
        {5, 0, 4, 1, 3, 2},
        {6, 2, 4, 0, 5, 1, 3},
        {7, 0, 6, 1, 5, 2, 4, 3}};
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
            if (counts[c] > 100000 && world > 4) continue;
            for (unsigned coll = 0; coll < COLL_COUNT; coll++) {
                struct plan_request r = {.coll = coll,
                                         .world = world,
                                         .root = world / 2,
                                         .count = counts[c],
                                         .element = 1};
                r.mesh = true;
                r.codes = coll == COLL_ALLREDUCE;
                run(r);
                r.codes = false;
                run(r);
                r.one_host = r.shared_memory = true;
                run(r); /* interleaved */
                r.cached = UINT64_MAX;
                run(r);
                r.single_copy_world = WORLD_MAX - 1;
                r.piece = counts[c] > 100000 ? 4096 : 0;
                run(r);
                r.piece = 0;
                r.shared_memory = false;
                run(r);
                r.mesh = false;
                run(r);
                r.one_host = false;
                if (world < WORLD_MAX) r.order = shuffled[world];
                run(r);
            }
        }
    }
}

/* Elements that are blocks of many bytes, the last of them shorter: no
 * transfer cuts one. */
static void test_blocks(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 2, 3, 7, 250, 1003};
    for (uint32_t world = 2; world <= WORLD_MAX; world++) {
        for (size_t i = 0; i < 3 * (sizeof counts / sizeof counts[0]); i++) {
            struct plan_request r = {.coll = COLL_ALLREDUCE,
                                     .world = world,
                                     .count = counts[i / 3],
                                     .element = 520,
                                     .spare = (uint32_t)(i % 3 * 511 / 2),
                                     .codes = true,
                                     .mesh = i % 2};
            run(r);
            struct plan p;
            plan_init(&p, &r);
            assert_true(plan_vector_size(&p) == vector_size(&r));
            for (uint32_t k = 0; k < plan_sends(&p, 1); k++) {
                struct plan_xfer x;
                plan_send(&p, 1, k, &x);
                uint64_t end = x.offset + x.size;
                assert_true(x.offset % 520 == 0 || x.size == 0);
                assert_true(end % 520 == 0 || end == vector_size(&r));
            }
        }
    }
}

/* Only the tree's root has more than one partner, and messages are few. */
static void test_star(void **state)
{
    (void)state;
    struct plan_request r = {.world = 7,
                             .mesh = true,
                             .one_host = true,
                             .root = 5,
                             .count = 64 * 1024,
                             .element = 1};
    for (unsigned coll = COLL_ALLREDUCE; coll <= COLL_BROADCAST; coll++) {
        uint32_t sends = 0;
        r.coll = coll;
        for (r.rank = 0; r.rank < r.world; r.rank++) {
            struct plan p;
            plan_init(&p, &r);
            assert_int_equal(p.done, DONE_TREE);
            assert_int_equal(plan_partners(&p), r.rank == 0 ? 6 : 1);
            for (uint32_t i = 0; i < plan_partners(&p); i++)
                sends += plan_sends(&p, plan_partner(&p, i));
        }
        assert_int_equal(sends, 12);
    }
}

/* The choice must not depend on the rank: all members run the same plan. */
static void test_same_kind_everywhere(void **state)
{
    (void)state;
    for (uint64_t count = 0; count < 200000; count += 4096) {
        for (uint32_t rank = 0; rank < 5; rank++) {
            struct plan_request r = {.coll = COLL_ALLREDUCE,
                                     .world = 5,
                                     .mesh = true,
                                     .codes = true,
                                     .count = count,
                                     .element = 4,
                                     .rank = rank};
            struct plan p;
            plan_init(&p, &r);
            bool small = count * 4 * 4 <= 128 * 1024;
            assert_ptr_equal(p.algorithm, small ? &allreduce_flat_codes
                                                : &allreduce_ring_codes);
            assert_int_equal(p.algorithm->defers, small);
        }
    }
}

/* Members that share memory: every piece of the vector has one number, and
 * each partner has one turn. */
static void test_pairwise(void **state)
{
    (void)state;
    static const uint64_t counts[] = {4099, 20003, 32768};
    for (size_t c = 0; c < ARRAY_COUNT(counts); c++) {
        struct plan_request r = {.coll = COLL_ALLREDUCE,
                                 .world = 9,
                                 .rank = 4,
                                 .mesh = true,
                                 .one_host = true,
                                 .shared_memory = true,
                                 .forced = "direct",
                                 .count = counts[c],
                                 .element = 4};
        struct plan p;
        plan_init(&p, &r);
        assert_ptr_equal(p.algorithm, &allreduce_direct);
        assert_true(p.algorithm->defers);
        uint64_t end = 0;
        for (uint32_t i = 0; i < 9 * p.segments; i++) {
            struct plan_xfer x;
            pieces_cut(&p, i, &x);
            assert_true(x.offset == end && x.size <= plan_chunk_size(&p, 0));
            end += x.size;
        }
        assert_true(end == plan_vector_size(&p));
        for (uint32_t from = 0; from < 9; from++) {
            if (from == 4) continue;
            uint32_t turn = (from + 5) % 9;
            struct plan_xfer x, y;
            for (uint32_t k = 0; k < 2 * p.segments; k++) {
                plan_recv(&p, from, k, &x);
                struct pieces_part part;
                bool is_part = k < p.segments;
                assert_true(part_of(&p, from, k, &part) == is_part);
                pieces_cut(&p, part.piece, &y);
                assert_true(x.offset == y.offset && x.size == y.size);
                assert_int_equal(x.action,
                                 is_part ? ACTION_REDUCE : ACTION_STORE);
                if (!is_part) continue;
                assert_int_equal(part.turn, turn);
                assert_int_equal(part.turns, 8);
            }
        }
        r.forced = NULL;
        r.count = 128 * 1024 / 4 + 1;
        plan_init(&p, &r);
        assert_ptr_equal(p.algorithm, &small_tree);
        r.count = 256 * 1024 / 4 + 1;
        plan_init(&p, &r);
        assert_ptr_equal(p.algorithm, &allreduce_ring);
        r.single_copy_world = 8;
        plan_init(&p, &r);
        assert_ptr_equal(p.algorithm, &allreduce_ring);
        r.single_copy_world = 9;
        plan_init(&p, &r);
        assert_ptr_equal(p.algorithm, &allreduce_single_copy);
    }
}

/* High-RTT members that are all linked: small sums take two distances, and all
 * members of a ring receive the DONE of all. */
static void test_far(void **state)
{
    (void)state;
    struct plan_request r = {.coll = COLL_ALLREDUCE,
                             .world = 5,
                             .rank = 2,
                             .mesh = true,
                             .count = 1024 * 1024 / 4,
                             .element = 4};
    struct plan p;
    plan_init(&p, &r);
    assert_ptr_equal(p.algorithm, &allreduce_direct);
    r.codes = true;
    plan_init(&p, &r);
    assert_ptr_equal(p.algorithm, &allreduce_ring_codes);
    r.codes = false;
    r.count++;
    plan_init(&p, &r);
    assert_ptr_equal(p.algorithm, &allreduce_ring);
    assert_int_equal(p.done, DONE_PAIRS);
    assert_int_equal(plan_partners(&p), 4);
    static const uint32_t partners[] = {1, 3, 0, 4};
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(plan_partner(&p, i), partners[i]);
        assert_int_equal(plan_sends(&p, partners[i]) > 0, i == 1);
        assert_int_equal(plan_recvs(&p, partners[i]) > 0, i == 0);
    }
    r.mesh = false;
    plan_init(&p, &r);
    assert_int_equal(p.done, DONE_RING);
    assert_int_equal(plan_partners(&p), 2);
}

/* Rule D15: every division into sites gives the sums, at every position of the
 * members in them. */
static void test_sites(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 1, 7, 1000, 200000};
    uint16_t site[WORLD_MAX];
    sites = site;
    for (uint32_t world = 3; world <= WORLD_MAX; world++) {
        for (uint32_t n = 1; n <= world; n++) {
            for (uint32_t kind = 0; kind < 3; kind++) {
                for (uint32_t i = 0; i < world; i++) {
                    site[i] = (uint16_t)(i % n);
                    if (kind == 1) site[i] = (uint16_t)(i * n / world);
                    if (kind == 2) site[i] = (uint16_t)(i < n ? i : n - 1);
                }
                for (size_t c = 0; c < ARRAY_COUNT(counts); c++) {
                    if (counts[c] > 100000 && world > 3) continue;
                    struct plan_request r = {.coll = COLL_ALLREDUCE,
                                             .world = world,
                                             .count = counts[c],
                                             .element = 1,
                                             .mesh = true};
                    run(r);
                }
            }
        }
    }
    sites = NULL;
}

/* Between hosts the chunks come in more pieces, so that connections can share
 * them. */
static void test_pieces_for_many_connections(void **state)
{
    (void)state;
    struct plan_request r = {.coll = COLL_ALLREDUCE,
                             .world = 6,
                             .count = 2 << 20,
                             .element = 4,
                             .cached = UINT64_MAX};
    struct plan p;
    plan_init(&p, &r);
    assert_true(p.segments >= 2 * 16); /* one sent, one next, for 16 */
    assert_true(p.segment >= PLAN_SEGMENT_WAN_MIN);
    r.one_host = r.shared_memory = true;
    plan_init(&p, &r);
    assert_true(p.segments <= 5);
    assert_true(p.segment <= PLAN_SEGMENT_MAX);
    r.shared_memory = false; /* few system calls */
    plan_init(&p, &r);
    assert_int_equal(p.segments, (r.count * 4 / 6 - 1) / PLAN_SEGMENT_MAX + 1);
    r.count = PLAN_SEGMENT_MAX / 4 * 6;
    plan_init(&p, &r);
    assert_int_equal(p.segments, 1);
    r.coll = COLL_BROADCAST; /* a chain goes on before it has all */
    r.count = 2 * PLAN_SEGMENT_MAX;
    plan_init(&p, &r);
    assert_ptr_equal(p.algorithm, &broadcast_chain);
    assert_int_equal(p.segments, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_plan),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_star),
        cmocka_unit_test(test_same_kind_everywhere),
        cmocka_unit_test(test_pairwise),
        cmocka_unit_test(test_far),
        cmocka_unit_test(test_sites),
        cmocka_unit_test(test_pieces_for_many_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
