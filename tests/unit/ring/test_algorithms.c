/* test_algorithms.c - every algorithm, forced by name, over every collective,
 * layout, type and world of 1 to 9 that it fits: the right result, in place
 * and out of place, in engines whose bytes the test moves. It also tests the
 * table: its choices, the values that PCCL_ALGORITHM may have, and which copies
 * bypass the caches. */
#define ENGINES 9
#include "layouts.h"

#include "../../../include/pccl.h"
#include "../../../src/ring/algorithm_table.h"

enum { SIZE_MAX_TESTED = 1 << 21, ALGORITHMS_MAX = 32 };

static uint8_t in[WORLD][SIZE_MAX_TESTED], out[WORLD][SIZE_MAX_TESTED];
static struct op *ops[WORLD];
static uint32_t ran[ALGORITHMS_MAX];
static uint64_t tag;
static bool twice; /* frames arrive twice, some of them before the launch */

/* ------------------------------------------------------------------ values */

/* Small numbers, which every type represents and adds exactly. */
static uint32_t number(uint32_t rank, size_t i)
{
    return (uint32_t)((rank * 5 + i * 3 + i / 7) % 6);
}

static void encode(enum dtype type, uint32_t n, uint8_t *to)
{
    float f = (float)n;
    double d = n;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (type == DTYPE_F64) {
        memcpy(to, &d, sizeof d);
    } else if (type == DTYPE_F32) {
        memcpy(to, &f, sizeof f);
    } else if (type == DTYPE_BF16) {
        uint16_t high = (uint16_t)(bits >> 16);
        memcpy(to, &high, sizeof high);
    } else if (type == DTYPE_F16) {
        uint16_t half = (uint16_t)((bits >> 13) - (112u << 10));
        if (n == 0) half = 0;
        memcpy(to, &half, sizeof half);
    } else {
        uint64_t whole = n; /* little-endian */
        memcpy(to, &whole, dtype_size(type));
    }
}

struct run {
    enum plan_coll coll;
    enum dtype type;
    enum redop redop;
    size_t count;
    bool in_place, codes;
    enum plan_flow flow;
    size_t bytes[WORLD][WORLD], send_at[WORLD][WORLD], recv_at[WORLD][WORLD];
};

static uint32_t sum_of(const struct run *r, size_t i)
{
    uint32_t most = 0, sum = 0;
    for (uint32_t k = 0; k < world; k++) {
        uint32_t n = number(k, i);
        sum += n;
        if (n > most) most = n;
    }
    return r->redop == REDOP_MAX ? most : sum;
}

static uint32_t root_of(const struct run *r)
{
    bool flows = r->flow == FLOW_TO_ROOT || r->flow == FLOW_FROM_ROOT;
    return r->coll == COLL_BROADCAST || flows ? world / 2 : 0;
}

/* The sum goes to another member. */
static bool lacks_sum(const struct run *r, uint32_t rank)
{
    return r->coll == COLL_ALLREDUCE && r->flow != FLOW_ALL &&
           rank != root_of(r);
}

static size_t pair_size(const struct run *r, uint32_t from, uint32_t to)
{
    if (r->flow == FLOW_TO_ROOT && to != root_of(r)) return 0;
    if (r->flow == FLOW_FROM_ROOT && from != root_of(r)) return 0;
    if (r->flow == FLOW_EVEN) return r->count;
    return (from * 3 + to) % 4 * r->count;
}

static void fill_pairs(struct run *r)
{
    for (uint32_t a = 0; a < world; a++) {
        size_t sends = 0, recvs = 0;
        for (uint32_t b = 0; b < world; b++) {
            r->bytes[a][b] = pair_size(r, a, b);
            r->send_at[a][b] = sends;
            r->recv_at[a][b] = recvs;
            sends += r->bytes[a][b];
            recvs += pair_size(r, b, a);
        }
    }
}

static void fill(const struct run *r, uint32_t rank)
{
    size_t size = plan_coll_reduces(r->coll) ? dtype_size(r->type) : 1;
    size_t most = r->flow == FLOW_EVEN ? 1 : 4; /* of a pair, by pair_size() */
    size_t pairs = most * world * r->count;
    size_t count = r->coll == COLL_ALLTOALLV ? pairs : r->count;
    enum dtype type = plan_coll_reduces(r->coll) ? r->type : DTYPE_U8;
    size_t blocks = r->coll == COLL_ALLGATHER ? world : 1;
    assert_true(count * size * blocks <= SIZE_MAX_TESTED);
    memset(out[rank], 0xee, count * size * blocks);
    for (size_t i = 0; i < count; i++)
        encode(type, number(rank, i), in[rank] + i * size);
}

static void check(const struct run *r, uint32_t rank)
{
    size_t size = dtype_size(r->type);
    const uint8_t *got = ops[rank]->r.recvbuf;
    uint8_t want[8];
    size_t wrong = 0;
    assert_int_equal(ops[rank]->phase, PHASE_DONE);
    assert_int_equal(ops[rank]->result, pcclSuccess);
    if (lacks_sum(r, rank)) return;
    size_t first = 0, count = plan_coll_reduces(r->coll) ? r->count : 0;
    if (r->coll == COLL_REDUCE_SCATTER) {
        first = r->count / world * rank +
                (rank < r->count % world ? rank : r->count % world);
        count = r->count / world + (rank < r->count % world);
    }
    for (size_t i = 0; i < count; i++) {
        encode(r->type, sum_of(r, first + i), want);
        if (memcmp(got + i * size, want, size) != 0)
            fail_msg("element %zu of rank %u", i, rank);
    }
    for (size_t i = 0; r->coll == COLL_BROADCAST && i < r->count; i++)
        wrong += got[i] != number(world / 2, i);
    for (uint32_t k = 0; k < world; k++) {
        for (size_t i = 0; r->coll == COLL_ALLGATHER && i < r->count; i++)
            wrong += got[k * r->count + i] != number(k, i);
        size_t size_here = r->coll == COLL_ALLTOALLV ? r->bytes[k][rank] : 0;
        for (size_t i = 0; i < size_here; i++)
            wrong += got[r->recv_at[rank][k] + i] !=
                     number(k, r->send_at[k][rank] + i);
    }
    assert_int_equal(wrong, 0);
}

/* ------------------------------------------------------------ an operation */

static struct op_request request_of(struct run *r, uint32_t rank)
{
    bool one_buffer = r->coll == COLL_BROADCAST ||
                      (plan_coll_reduces(r->coll) && r->in_place);
    static size_t recv_bytes[WORLD][WORLD];
    struct op_request q = {.call.tag = tag,
                           .call.dtype = r->type,
                           .call.redop = r->redop,
                           .call.sendbuf = in[rank],
                           .call.recvbuf = one_buffer ? in[rank] : out[rank]};
    if (lacks_sum(r, rank)) q.call.recvbuf = NULL;
    q.plan.coll = r->coll;
    q.plan.root = root_of(r);
    q.plan.flow = r->flow;
    q.plan.count = r->count;
    q.plan.element =
        plan_coll_reduces(r->coll) ? (uint32_t)dtype_size(r->type) : 1;
    for (uint32_t k = 0; k < world; k++)
        recv_bytes[rank][k] = r->bytes[k][rank];
    q.plan.send_bytes = r->bytes[rank];
    q.plan.recv_bytes = recv_bytes[rank];
    q.plan.send_displs = r->send_at[rank];
    q.plan.recv_displs = r->recv_at[rank];
    if (r->codes) engine_quantize(&q, QUANT_MINMAX, DTYPE_U8);
    return q;
}

/* False: the algorithm does not fit. */
static bool run(struct run r, const struct algorithm *a)
{
    const char *name;
    if (r.coll == COLL_ALLTOALLV) fill_pairs(&r);
    struct op_request q = request_of(&r, 0);
    if (engine_unfit(engines[0], &q, &name)) return false;
    if (a->unfit == star_gather.unfit && r.flow != FLOW_TO_ROOT) return false;
    if (a->unfit == star_scatter.unfit && r.flow == FLOW_TO_ROOT) return false;
    for (uint32_t i = 0; i < world; i++) {
        fill(&r, i);
        q = request_of(&r, i);
        ops[i] = engine_launch(engines[i], &q, false);
        assert_non_null(ops[i]);
        if (world > 1) assert_ptr_equal(ops[i]->plan.algorithm, a);
        if (world > 1 && r.coll == COLL_REDUCE_SCATTER)
            assert_true(ops[i]->confirm); /* rule D21c */
        if (twice) settle_twice();
    }
    settle();
    for (uint32_t i = 0; i < world; i++) {
        assert_int_equal(ops[i]->phase, PHASE_DONE);
        if (!r.codes) check(&r, i);
        if (r.codes)
            assert_memory_equal(ops[i]->r.recvbuf, ops[0]->r.recvbuf,
                                r.count * dtype_size(r.type));
    }
    for (uint32_t i = 0; i < world; i++) engine_release(engines[i], ops[i]);
    tag++;
    return true;
}

static bool is_codes(const struct algorithm *a)
{
    return a == &allreduce_flat_codes || a == &allreduce_ring_codes;
}

static uint32_t run_types(const struct algorithm *a, enum plan_coll coll)
{
    static const size_t counts[] = {0, 1, 2, 7, 8, 9, 1001};
    static const enum redop redops[] = {REDOP_SUM, REDOP_MAX};
    uint32_t count = 0;
    for (unsigned type = 0; type < DTYPE_COUNT; type++) {
        if (is_codes(a) && type != DTYPE_F32) continue;
        for (size_t i = 0; i < 2 * ARRAY_COUNT(counts); i++) {
            struct run r = {.coll = coll,
                            .type = (enum dtype)type,
                            .redop = redops[i / 2 % 2],
                            .count = counts[i / 2],
                            .in_place = i % 2,
                            .codes = is_codes(a)};
            count += run(r, a);
        }
        if (!plan_coll_reduces(coll)) break;
    }
    return count;
}

static uint32_t runs;

static void run_all(uint32_t number, const struct algorithm *a)
{
    for (unsigned coll = 0; coll < COLL_COUNT; coll++) {
        if (!(a->colls >> coll & 1)) continue;
        for (uint32_t i = 0; i < world; i++)
            assert_true(engine_force(engines[i], a->name));
        if (!twice) ran[number] += run_types(a, coll);
        /* Many segments. */
        struct run r = {.coll = coll,
                        .type = is_codes(a) ? DTYPE_F32 : DTYPE_U8,
                        .count = coll == COLL_ALLTOALLV ? 30001 : 200003,
                        .codes = is_codes(a)};
        ran[number] += run(r, a);
        r.in_place = plan_coll_reduces(coll); /* else as before */
        if (r.in_place) ran[number] += run(r, a);
        unsigned flows = coll == COLL_ALLTOALLV                   ? FLOW_COUNT
                         : coll == COLL_ALLREDUCE && !is_codes(a) ? 2
                                                                  : 1;
        for (unsigned flow = 1; flow < flows; flow++) {
            static const size_t sizes[] = {0, 1, 1001, 30001};
            r.flow = (enum plan_flow)flow;
            r.count = sizes[runs++ % ARRAY_COUNT(sizes)];
            if (r.flow == FLOW_EVEN && r.count > 8001) r.count = 8001;
            ran[number] += run(r, a);
        }
    }
}

static void test_every_algorithm(void **state)
{
    (void)state;
    const struct algorithm *a;
    for (unsigned layout = 0; layout < LAYOUTS; layout++) {
        for (uint32_t size = 1; size <= WORLD; size++) {
            begin((enum layout)layout, size);
            for (uint32_t i = 0; (a = algorithm_by_number(i)) != NULL; i++)
                if (layout != REGIONS || a->put) run_all(i, a);
            end();
        }
    }
    for (uint32_t i = 0; (a = algorithm_by_number(i)) != NULL; i++)
        assert_true(ran[i] > 0);
}

/* A transfer that has come counts once (rule D2). */
static void test_every_frame_twice(void **state)
{
    (void)state;
    const struct algorithm *a;
    twice = true;
    for (unsigned layout = 0; layout < LAYOUTS; layout++) {
        for (uint32_t size = 2; size <= 4; size++) {
            begin((enum layout)layout, size);
            for (uint32_t i = 0; (a = algorithm_by_number(i)) != NULL; i++)
                if (layout != REGIONS || a->put) run_all(i, a);
            end();
        }
    }
    twice = false;
}

/* ------------------------------------------------------ forced algorithms */

static void test_names(void **state)
{
    (void)state;
    const char *forced[COLL_COUNT];
    assert_true(algorithm_parse("ring", forced));
    assert_string_equal(forced[COLL_ALLREDUCE], "ring");
    assert_string_equal(forced[COLL_BARRIER], "ring");
    assert_string_equal(forced[COLL_ALLGATHER], "ring");
    assert_null(forced[COLL_BROADCAST]);
    assert_null(forced[COLL_ALLTOALLV]);
    assert_true(algorithm_parse("allreduce:direct,broadcast:chain", forced));
    assert_string_equal(forced[COLL_ALLREDUCE], "direct");
    assert_string_equal(forced[COLL_BROADCAST], "chain");
    assert_null(forced[COLL_BARRIER]);
    assert_true(algorithm_parse("ring,allreduce:flat", forced));
    assert_string_equal(forced[COLL_ALLREDUCE], "flat");
    assert_string_equal(forced[COLL_ALLGATHER], "ring");
    static const char *const wrong[] = {
        "",      "rin",    "rings", "local",       "ring,",
        ",ring", ":",      "ring:", "reduce:ring", "broadcast:ring",
        ":ring", "flat,x", "ring;"};
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++)
        assert_false(algorithm_parse(wrong[i], forced));
    for (uint32_t i = 0; algorithm_name(i); i++) {
        assert_true(algorithm_parse(algorithm_name(i), forced));
        for (uint32_t k = 0; k < i; k++)
            assert_string_not_equal(algorithm_name(i), algorithm_name(k));
    }
    /* What is gone says what to use. */
    static const char *const gone[] = {"centralized", "barrier:centralized",
                                       "ring,broadcast:linear"};
    for (size_t k = 0; k < ARRAY_COUNT(gone); k++) {
        assert_false(algorithm_parse(gone[k], forced));
        assert_non_null(strstr(algorithm_gone(gone[k]), "is gone: use "));
    }
    assert_null(algorithm_gone("allgather:linear"));
}

/* The request forces the algorithm before the launch; where the algorithm does
 * not fit, the table decides. */
static void test_one_that_does_not_fit(void **state)
{
    (void)state;
    const char *name;
    struct run r = {.coll = COLL_ALLREDUCE, .type = DTYPE_U8, .count = 5};
    begin(SEVERAL, 3);
    struct op_request q = request_of(&r, 0);
    assert_null(engine_unfit(engines[0], &q, &name));
    for (uint32_t i = 0; i < world; i++)
        assert_true(engine_force(engines[i], "single_copy"));
    assert_string_equal(
        engine_unfit(engines[0], &q, &name),
        "needs 3 to 64 members of one host that share its memory");
    assert_string_equal(name, "single_copy");
    for (uint32_t i = 0; i < world; i++) {
        fill(&r, i);
        q = request_of(&r, i);
        ops[i] = engine_launch(engines[i], &q, false);
        assert_ptr_equal(ops[i]->plan.algorithm, &allreduce_flat);
    }
    struct op_look look;
    op_look(ops[0], &look);
    assert_string_equal(look.reason.algorithm, "flat");
    assert_string_equal(look.reason.why, "one message deep");
    assert_string_equal(look.reason.instead_of, "single_copy");
    assert_string_equal(look.reason.unfit, engine_unfit(engines[0], &q, &name));
    settle();
    for (uint32_t i = 0; i < world; i++) check(&r, i);
    q.plan.coll = COLL_ALLTOALLV;
    assert_null(engine_unfit(engines[0], &q, &name));
    end();
}

/* What a trace tells of a choice: its row, and the first row for the request
 * if another one was taken. */
static void check_reason(const struct plan_request *r)
{
    struct plan_reason told;
    const struct choice *row = algorithm_row_of(r);
    algorithm_explain(r, &told);
    assert_string_equal(told.algorithm, row->algorithm->name);
    assert_string_equal(told.why, row->why);
    assert_int_equal(told.instead_of == NULL, told.unfit == NULL);
    assert_null(strpbrk(told.why, "\"\\"));
    if (told.unfit) assert_null(strpbrk(told.unfit, "\"\\"));
    struct plan_request forced = *r;
    for (uint32_t i = 0; algorithm_name(i); i++) {
        forced.forced = algorithm_name(i);
        algorithm_explain(&forced, &told);
        assert_string_equal(told.algorithm, algorithm_choose(&forced)->name);
        const char *unfit = algorithm_unfit(&forced);
        assert_true(told.unfit == unfit);
        if (unfit) assert_string_equal(told.instead_of, forced.forced);
        if (unfit) assert_string_equal(told.why, row->why);
        if (!unfit && r->world > 1) assert_string_equal(told.why, "forced");
    }
}

static struct plan_reason explain(struct plan_request r)
{
    struct plan_reason told;
    algorithm_explain(&r, &told);
    return told;
}

static void test_reasons(void **state)
{
    (void)state;
    struct plan_request r = {.coll = COLL_ALLREDUCE,
                             .world = 2,
                             .mesh = true,
                             .one_host = true,
                             .shared_memory = true,
                             .single_copy_world = 16,
                             .cached = UINT64_MAX,
                             .count = 1 << 20,
                             .element = 1};
    struct plan_reason told = explain(r);
    assert_string_equal(told.algorithm, "ring");
    assert_string_equal(told.instead_of, "single_copy");
    r.world = 3;
    told = explain(r);
    assert_string_equal(told.algorithm, "single_copy");
    assert_null(told.instead_of);
    /* Rows of plain vectors are not for codes. */
    r.codes = true;
    told = explain(r);
    assert_string_equal(told.algorithm, "ring");
    assert_null(told.instead_of);
    /* Of two of one name the one for such elements says why. */
    r.forced = "flat";
    r.mesh = true;
    assert_string_equal(algorithm_unfit(&r), "takes up to 512 KiB");
    r.codes = false;
    assert_string_equal(algorithm_unfit(&r), "takes up to 512 KiB");
    r.count = 8;
    assert_null(algorithm_unfit(&r));
    r = (struct plan_request){.coll = COLL_BARRIER,
                              .world = 8,
                              .tree = true,
                              .one_host = true,
                              .shared_memory = true};
    told = explain(r);
    assert_string_equal(told.algorithm, "tree");
    assert_string_equal(told.instead_of, "flat");
    assert_string_equal(told.unfit, "needs links between all pairs of members");
}

/* Every row is the choice of some request, and has its reason. */
static void test_rows(void **state)
{
    (void)state;
    const struct choice *c;
    static struct hierarchy sites;
    static const uint16_t site[] = {0, 0, 1, 1};
    static size_t sizes[160];
    bool taken[64] = {false};
    hierarchy_init(&sites, site, 4, 0);
    enum { N = COLL_COUNT, W = 8 };
    for (uint64_t i = 0; i < 2ull * N * W * 3 * 32; i++) {
        uint32_t worlds[] = {1, 2, 4, 8, 32, 48, 128, 160};
        struct plan_request r = {.coll = (enum plan_coll)(i % N),
                                 .world = worlds[i / N % W],
                                 .one_host = i / (W * N) % 3 > 0,
                                 .shared_memory = i / (W * N) % 3 > 1,
                                 .codes = i % N == 0 && i / (3 * W * N) % 2,
                                 .single_copy_world = 16,
                                 .cached = UINT64_MAX,
                                 .count = (uint64_t)1 << (i / (6 * W * N)) >> 1,
                                 .element = 1,
                                 .send_bytes = sizes,
                                 .recv_bytes = sizes};
        for (uint32_t with = 0; with < 4; with++) {
            if (with == 1 && (r.one_host || r.world != 4)) continue;
            if (with == 3 && r.one_host) continue;
            r.hierarchy = with == 1 ? &sites : NULL;
            r.mesh = with < 2; /* else a tree, and then a grid */
            r.tree = with != 3;
            r.grid = with == 3;
            bool pairs = r.coll == COLL_ALLTOALLV;
            bool sum = r.coll == COLL_ALLREDUCE && r.mesh && !r.codes;
            r.boards = r.mesh && i / (6 * W * N) % 2;
            r.roomy = i / (12 * W * N) % 2;
            uint64_t flow = i / (6 * W * N) % FLOW_COUNT;
            r.flow = (enum plan_flow)(pairs || (sum && flow == 1) ? flow : 0);
            const struct choice *row = algorithm_row_of(&r);
            assert_ptr_equal(algorithm_choose(&r), row->algorithm);
            check_reason(&r);
            uint32_t k = 0;
            while (algorithm_row(k) != row) k++;
            taken[k] = true;
        }
    }
    for (uint32_t i = 0; (c = algorithm_row(i)) != NULL; i++) {
        if (!taken[i]) fail_msg("row %u is never taken", i);
        assert_non_null(c->why);
    }
}

/* Copies of results pass the caches by where ranks share processors, and where
 * no cache holds them. */
static void test_copies_that_bypass_the_caches(void **state)
{
    (void)state;
    struct plan_request r = {.coll = COLL_BROADCAST,
                             .world = 4,
                             .mesh = true,
                             .one_host = true,
                             .shared_memory = true,
                             .single_copy_world = 4,
                             .cached = PLAN_CACHED,
                             .element = 1};
    static const struct {
        uint64_t all;
        bool crowded, roomy;
    } rows[] = {{PLAN_CROWDED - 4, false, false},
                {PLAN_CROWDED, true, false},
                {PLAN_CACHED - 4, true, false},
                {PLAN_CACHED, true, true}};
    struct plan p;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        r.count = rows[i].all / r.world;
        for (int roomy = 0; roomy < 2; roomy++) {
            r.roomy = roomy;
            plan_init(&p, &r);
            assert_int_equal(p.bypasses,
                             roomy ? rows[i].roomy : rows[i].crowded);
        }
    }
    r.one_host = r.roomy = false;
    plan_init(&p, &r);
    assert_false(p.bypasses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_one_that_does_not_fit),
        cmocka_unit_test(test_every_algorithm),
        cmocka_unit_test(test_every_frame_twice),
        cmocka_unit_test(test_copies_that_bypass_the_caches),
    };
    return cmocka_run_group_tests(tests, make_regions, free_regions);
}
