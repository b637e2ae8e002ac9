/* test_disagree.c - members that disagree on an argument (contract C4): of each
 * collective, in each layout, at sizes on both sides of every border of the
 * algorithm table. Nobody returns success, not all of the members can hold the
 * result, and somebody reports the difference (rules D2c, D2e). */
#define ENGINES 6
#include "layouts.h"

#include "../../../include/pccl.h"
#include "../../../src/ring/algorithm_table.h"

enum { SIZE_MAX_TESTED = 1 << 21, LARGEST = 300000, SIZES_MAX = 64 };

static uint8_t in[WORLD][SIZE_MAX_TESTED], out[WORLD][SIZE_MAX_TESTED];
static uint32_t epoch, reports, runs;

/* The arguments of one member. */
struct call {
    enum plan_coll coll;
    uint64_t count;
    uint32_t root;
    enum plan_flow flow;
    uint32_t other; /* datatype, operator, ...: known by the digest alone */
    bool codes;
    size_t send_bytes[WORLD], recv_bytes[WORLD], displs[WORLD];
};

static void count_report(void *user, enum engine_fault fault,
                         const struct op *op, uint64_t peer)
{
    (void)user;
    (void)op;
    (void)peer;
    assert_int_equal(fault, FAULT_MISMATCH);
    reports++;
}

static uint64_t digest_of(const struct call *c)
{
    uint64_t h = c->coll * 1000003u + c->other * 31u + c->codes;
    bool counts = c->coll != COLL_ALLTOALLV || c->flow == FLOW_EVEN;
    h = h * 1000003u + (counts ? c->count : 0);
    return (h * 31 + c->root) * 31 + c->flow;
}

static struct op *launch(uint32_t i, const struct call *c)
{
    struct op_request r = {.call.tag = 3,
                           .call.dtype = c->codes ? DTYPE_F32 : DTYPE_U8,
                           .call.redop = REDOP_SUM,
                           .call.sendbuf = in[i],
                           .call.recvbuf =
                               c->coll == COLL_BROADCAST ? in[i] : out[i],
                           .call.digest = digest_of(c)};
    r.plan.coll = c->coll;
    r.plan.root = c->root;
    r.plan.flow = c->flow;
    r.plan.count = c->count;
    r.plan.element = c->codes ? 4 : 1;
    r.plan.send_bytes = c->send_bytes;
    r.plan.recv_bytes = c->recv_bytes;
    r.plan.send_displs = r.plan.recv_displs = c->displs;
    if (c->codes) engine_quantize(&r, QUANT_MINMAX, DTYPE_U8);
    struct op *op = engine_launch(engines[i], &r, false);
    assert_non_null(op);
    return op;
}

/* The epoch is closed; operations end with the verdict. */
static void next_epoch(void)
{
    for (uint32_t i = 0; i < world; i++) {
        engine_freeze(engines[i]);
        struct op *op = engine_op(engines[i], 0);
        engine_finish(engines[i], op, pcclInvalidArgument);
        engine_release(engines[i], op);
    }
    install_all(++epoch);
    settle();
}

static void check(const char *what, const struct call *c,
                  const struct call *odd, uint32_t who)
{
    uint32_t complete = 0;
    bool done = false;
    for (uint32_t i = 0; i < world; i++) {
        const struct op *op = engine_op(engines[i], 0);
        done |= op->phase == PHASE_DONE;
        complete += op->phase == PHASE_COMPLETE;
    }
    if (!done && complete < world && reports > 0) return;
    fail_msg("%s: collective %d of %llu, %d of %llu at %u of %u: %s%s%s", what,
             (int)c->coll, (unsigned long long)c->count, (int)odd->coll,
             (unsigned long long)odd->count, who, world,
             done ? "success, " : "", complete == world ? "all complete, " : "",
             reports == 0 ? "no report" : "");
}

/* One member's arguments differ. The members launch in different orders, so
 * that frames come before the launch and after it. */
static void disagree(const char *what, const struct call *c,
                     const struct call *odd)
{
    uint32_t who = runs % world;
    uint32_t first = runs / world % world;
    bool late = runs++ / 3 % 2;
    struct call calls[WORLD];
    reports = 0;
    for (uint32_t i = 0; i < world; i++) calls[i] = i == who ? *odd : *c;
    for (uint32_t k = 0; k < world; k++) {
        uint32_t i = (first + k) % world;
        (void)launch(i, &calls[i]);
        if (late) settle();
    }
    settle();
    check(what, c, odd, who);
    next_epoch();
}

/* --------------------------------------------------------------- arguments */

static void kinds(const struct call *c)
{
    for (unsigned coll = 0; coll < COLL_COUNT; coll++) {
        struct call odd = *c;
        odd.coll = (enum plan_coll)coll;
        if (coll != c->coll) disagree("kind", c, &odd);
    }
}

static void counts(const struct call *c, const uint64_t *sizes, uint32_t n)
{
    struct call odd = *c;
    odd.count = c->count + 1;
    disagree("count + 1", c, &odd);
    odd.count = sizes[runs % n];
    if (odd.count != c->count) disagree("count", c, &odd);
}

static void roots(const struct call *c)
{
    for (uint32_t root = 0; root < world; root++) {
        struct call odd = *c;
        odd.root = root;
        if (root != c->root) disagree("root", c, &odd);
    }
}

static void rest(const struct call *c)
{
    struct call odd = *c;
    odd.other = 1;
    disagree("datatype", c, &odd);
    if (c->coll != COLL_ALLREDUCE) return;
    odd = *c;
    odd.codes = true;
    disagree("quantization", c, &odd);
}

static void each_size(const uint64_t *sizes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        for (unsigned coll = 0; coll < COLL_COUNT; coll++) {
            if (coll == COLL_ALLTOALLV) continue;
            struct call c = {.coll = (enum plan_coll)coll, .count = sizes[i]};
            if (coll == COLL_BROADCAST) c.root = i % world;
            if (coll == COLL_BARRIER) c.count = 0;
            kinds(&c);
            if (coll != COLL_BARRIER) counts(&c, sizes, n);
            if (coll == COLL_BROADCAST) roots(&c);
            rest(&c);
        }
    }
}

/* 0, 1, and both sides of every border. */
static uint32_t borders(uint64_t *sizes)
{
    const struct choice *row;
    uint32_t n = 0;
    sizes[n++] = 0;
    sizes[n++] = 1;
    for (uint32_t i = 0; (row = algorithm_row(i)) != NULL; i++) {
        uint64_t border[] = {row->bytes_max, row->total_max / (world - 1)};
        for (size_t k = 0; k < ARRAY_COUNT(border); k++) {
            bool known = border[k] == 0 || border[k] > LARGEST;
            for (uint32_t j = 0; j < n; j++) known |= sizes[j] == border[k];
            if (known) continue;
            assert_true(n + 2 <= SIZES_MAX);
            sizes[n++] = border[k];
            sizes[n++] = border[k] + 1;
        }
    }
    return n;
}

static void in_each_world(void (*body)(void))
{
    for (unsigned layout = 0; layout < LAYOUTS; layout++) {
        for (uint32_t size = 2; size <= WORLD; size++) {
            if (size == 5) continue;
            begin((enum layout)layout, size);
            epoch = 2;
            for (uint32_t i = 0; i < world; i++)
                engines[i]->out.fault = count_report;
            body();
            end();
        }
    }
}

static void any_size(void)
{
    uint64_t sizes[SIZES_MAX];
    uint32_t n = borders(sizes);
    each_size(sizes, n);
}

static void test_all_but_sizes(void **state)
{
    (void)state;
    in_each_world(any_size);
}

/* ------------------------------------------------- sizes of an all-to-all */

/* One member sends or expects something else than its partner says. */
static void pairs(void)
{
    static const size_t sizes[] = {0,
                                   1,
                                   1000,
                                   EAGER_MAX,
                                   EAGER_MAX + 1,
                                   PLAN_SEGMENT_MAX,
                                   2 * PLAN_SEGMENT_MAX};
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        for (size_t k = 0; k < ARRAY_COUNT(sizes); k++) {
            struct call c = {.coll = COLL_ALLTOALLV};
            for (uint32_t j = 0; j < world; j++)
                c.send_bytes[j] = c.recv_bytes[j] = sizes[i];
            struct call odd = c;
            uint32_t with = (runs % world + 1) % world;
            if (i == k) continue;
            odd.send_bytes[with] = sizes[k];
            disagree("bytes sent", &c, &odd);
            odd = c;
            with = (runs % world + 1) % world;
            odd.recv_bytes[with] = sizes[k];
            disagree("bytes expected", &c, &odd);
            odd.other = 1;
            disagree("anything", &c, &odd);
        }
    }
}

static void test_sizes_of_pairs(void **state)
{
    (void)state;
    in_each_world(pairs);
}

/* A member sends itself something else than it expects of itself. It reports
 * that, and writes nothing behind the block that is too small. */
static void of_itself(void)
{
    static const size_t sizes[] = {0, 100, 40};
    for (uint32_t k = 0; k < 9 * world; k++) {
        struct call c = {.coll = COLL_ALLTOALLV};
        uint32_t who = runs % world;
        for (uint32_t j = 0; j < world; j++)
            c.send_bytes[j] = c.recv_bytes[j] = sizes[k / 3 % 3];
        struct call odd = c;
        odd.send_bytes[who] = 100;
        odd.recv_bytes[who] = k % 3 * 45;
        memset(in[who], 1, 200);
        memset(out[who], 0, 200);
        disagree("bytes to itself", &c, &odd);
        size_t most = odd.recv_bytes[who] > c.recv_bytes[0]
                          ? odd.recv_bytes[who]
                          : c.recv_bytes[0];
        for (size_t i = most; i < 200; i++) assert_int_equal(out[who][i], 0);
        memset(in[who], 0, 200);
    }
}

static void test_sizes_of_a_member_to_itself(void **state)
{
    (void)state;
    in_each_world(of_itself);
}

/* A gather or a scatter, and what differs at one member: also the root, by
 * which it may be the only one to be its own root (rule D23c). */
static void rooted_pairs(void)
{
    static const size_t sizes[] = {0, 1000, EAGER_MAX + 1};
    for (uint32_t k = 0; k < 6 * world * world * world; k++) {
        struct call c = {.coll = COLL_ALLTOALLV, .root = k / world % world};
        c.flow = k % 2 ? FLOW_TO_ROOT : FLOW_FROM_ROOT;
        for (uint32_t j = 0; j < world; j++)
            c.send_bytes[j] = c.recv_bytes[j] = sizes[k / 2 % 3];
        struct call odd = c;
        odd.root = k / world / world % world;
        if (odd.root != c.root) disagree("root", &c, &odd);
        if (odd.root != c.root) disagree("root of all others", &odd, &c);
        odd = c;
        odd.flow = k % 2 ? FLOW_FROM_ROOT : FLOW_TO_ROOT;
        disagree("flow", &c, &odd);
        odd.flow = FLOW_ALL;
        disagree("no flow", &c, &odd);
        disagree("flow of one", &odd, &c);
        odd = c;
        odd.send_bytes[c.root] = odd.recv_bytes[runs % world] = 7;
        if (runs % world != c.root) disagree("bytes", &c, &odd);
        odd = c;
        odd.flow = FLOW_ALL;
        odd.coll = (enum plan_coll)(k % COLL_COUNT);
        if (odd.coll == COLL_ALLTOALLV) odd.coll = COLL_BARRIER;
        disagree("kind and flow", &c, &odd);
        disagree("flow and kind", &odd, &c);
        odd = c;
        c.root = runs % world; /* the member that differs */
        c.flow = FLOW_TO_ROOT;
        odd = c;
        odd.send_bytes[c.root]++;
        disagree("bytes of a root to itself", &c, &odd);
    }
}

/* The same of a sum that goes to a root (rule D25). */
static void rooted_sums(void)
{
    static const uint64_t sizes[] = {0, 1000, EAGER_MAX + 1, LARGEST};
    for (uint32_t k = 0; k < 4 * world * world * world; k++) {
        struct call c = {.coll = COLL_ALLREDUCE, .flow = FLOW_TO_ROOT};
        c.root = k / world % world;
        c.count = sizes[k % 4];
        struct call odd = c;
        odd.root = k / world / world % world;
        if (odd.root != c.root) disagree("root of a sum", &c, &odd);
        odd = c;
        odd.flow = FLOW_ALL;
        disagree("a sum for all", &c, &odd);
        disagree("a sum for a root", &odd, &c);
        odd.coll = (enum plan_coll)(1 + k % (COLL_COUNT - 1));
        disagree("kind and sum", &c, &odd);
        disagree("sum and kind", &odd, &c);
        odd = c;
        odd.count++;
        disagree("count of a sum", &c, &odd);
        odd = c;
        odd.other++;
        disagree("operator of a sum", &c, &odd);
    }
}

static void test_roots(void **state)
{
    (void)state;
    in_each_world(rooted_pairs);
}

static void test_roots_of_sums(void **state)
{
    (void)state;
    in_each_world(rooted_sums);
}

/* Blocks of one size, which go over a tree, in which most pairs exchange
 * nothing (rule D26). */
static void even_pairs(void)
{
    static const size_t sizes[] = {0, 1000, EAGER_MAX + 1};
    for (uint32_t i = 0; i < world; i++)
        assert_true(engine_force(engines[i], "alltoallv:tree"));
    for (uint32_t k = 0; k < 3 * world * world; k++) {
        struct call c = {.coll = COLL_ALLTOALLV, .flow = FLOW_EVEN};
        c.count = sizes[k % 3];
        for (uint32_t j = 0; j < world; j++)
            c.send_bytes[j] = c.recv_bytes[j] = (size_t)c.count;
        struct call odd = c;
        odd.flow = FLOW_ALL;
        disagree("unequal blocks", &c, &odd);
        disagree("equal blocks", &odd, &c);
        odd = c;
        odd.count += 8;
        for (uint32_t j = 0; j < world; j++)
            odd.send_bytes[j] = odd.recv_bytes[j] = (size_t)odd.count;
        disagree("bytes of equal blocks", &c, &odd);
        odd = c;
        odd.flow = FLOW_TO_ROOT;
        odd.root = k / 3 % world;
        disagree("equal blocks and a gather", &c, &odd);
        odd.flow = FLOW_ALL;
        odd.coll = (enum plan_coll)(k % COLL_COUNT);
        if (odd.coll == COLL_ALLTOALLV) odd.coll = COLL_BARRIER;
        disagree("equal blocks and another kind", &c, &odd);
        disagree("another kind and equal blocks", &odd, &c);
    }
}

static void test_equal_blocks(void **state)
{
    (void)state;
    in_each_world(even_pairs);
}

/* Everyone expects of the next member what it does not send, and sends to it:
 * each of them alone would wait for the other. */
static void cycles(void)
{
    for (uint32_t i = 0; i < world; i++) {
        struct call c = {.coll = COLL_ALLTOALLV};
        c.send_bytes[(i + 1) % world] = c.recv_bytes[(i + 1) % world] = 10;
        c.recv_bytes[(i + world - 1) % world] = 10;
        (void)launch(i, &c);
    }
    reports = 0;
    settle();
    struct call none = {.coll = COLL_ALLTOALLV};
    if (world > 2) check("cycle", &none, &none, 0);
    next_epoch();
}

static void test_cycles_of_sizes(void **state)
{
    (void)state;
    in_each_world(cycles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_but_sizes),
        cmocka_unit_test(test_sizes_of_pairs),
        cmocka_unit_test(test_roots),
        cmocka_unit_test(test_roots_of_sums),
        cmocka_unit_test(test_equal_blocks),
        cmocka_unit_test(test_cycles_of_sizes),
        cmocka_unit_test(test_sizes_of_a_member_to_itself),
    };
    return cmocka_run_group_tests(tests, make_regions, free_regions);
}
