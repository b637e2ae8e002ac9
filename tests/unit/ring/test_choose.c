/* test_choose.c - which collective carries out another one. */
#include "../unit.h"

#include "../../../src/ring/algorithm_table.h"
#include "../../../src/ring/choose.h"

enum { SCOPE, CROWDED, ROOM, PLACES };

static struct plan_request request(int place, enum plan_coll coll,
                                   enum plan_flow flow, uint32_t world,
                                   uint64_t bytes)
{
    bool shares = place != SCOPE;
    return (struct plan_request){.coll = coll,
                                 .flow = flow,
                                 .world = world,
                                 .count = bytes,
                                 .one_host = shares,
                                 .shared_memory = shares,
                                 .boards = shares,
                                 .roomy = place == ROOM};
}

/* All that may be asked for. */
static const struct {
    enum plan_coll coll;
    enum plan_flow flow;
} asked[] = {{COLL_ALLREDUCE, FLOW_TO_ROOT}, {COLL_REDUCE_SCATTER, FLOW_ALL},
             {COLL_ALLTOALLV, FLOW_TO_ROOT}, {COLL_ALLTOALLV, FLOW_FROM_ROOT},
             {COLL_ALLTOALLV, FLOW_EVEN},    {COLL_SCAN, FLOW_ALL}};

static bool can_carry(enum plan_coll coll, enum plan_flow flow,
                      const struct plan_request *way)
{
    if (coll == COLL_SCAN)
        return way->coll == COLL_ALLGATHER ||
               (way->coll == COLL_ALLTOALLV && way->flow <= FLOW_TO_ROOT);
    if (way->coll == coll && way->flow == flow) return true;
    if (way->flow != FLOW_ALL) return false;
    if (coll != COLL_ALLTOALLV) return way->coll == COLL_ALLREDUCE;
    return way->coll ==
           (flow == FLOW_FROM_ROOT ? COLL_BROADCAST : COLL_ALLGATHER);
}

/* Every row is taken by some request, and every answer can carry it out. */
static void test_every_row_is_taken(void **state)
{
    (void)state;
    bool taken[64] = {false};
    static const uint32_t worlds[] = {2, 3, 4, 5, 8, 9, 16, 32, 33, 64, 200};
    for (int place = 0; place < PLACES; place++) {
        for (size_t i = 0; i < ARRAY_COUNT(asked); i++) {
            for (size_t w = 0; w < ARRAY_COUNT(worlds); w++) {
                for (uint64_t bytes = 0; bytes < 1 << 24;
                     bytes += bytes / 2 + 1) {
                    struct plan_request r = request(
                        place, asked[i].coll, asked[i].flow, worlds[w], bytes);
                    const struct detour *d = choose_way(&r);
                    assert_true(can_carry(asked[i].coll, asked[i].flow, &r));
                    for (uint32_t k = 0; d && k < ARRAY_COUNT(taken); k++)
                        taken[k] |= choose_row(k) == d;
                }
            }
        }
    }
    const struct detour *d;
    for (uint32_t k = 0; (d = choose_row(k)) != NULL; k++) {
        if (!taken[k]) fail_msg("row %u is never taken", k);
        assert_non_null(d->why);
    }
}

/* Both sides of limits that were measured. */
static void test_limits(void **state)
{
    (void)state;
    static const struct {
        int place;
        enum plan_coll coll;
        enum plan_flow flow;
        uint32_t world;
        uint64_t most; /* bytes that go as `as`; of more it is its own way */
        enum plan_coll as;
    } limits[] = {
        {CROWDED, COLL_ALLREDUCE, FLOW_TO_ROOT, 4, 1024, COLL_ALLREDUCE},
        {CROWDED, COLL_ALLTOALLV, FLOW_TO_ROOT, 4, 512, COLL_ALLGATHER},
        {CROWDED, COLL_ALLTOALLV, FLOW_FROM_ROOT, 8, 256, COLL_BROADCAST},
        {CROWDED, COLL_ALLTOALLV, FLOW_EVEN, 4, 512, COLL_ALLGATHER},
        {CROWDED, COLL_REDUCE_SCATTER, FLOW_ALL, 4, 512, COLL_ALLREDUCE},
        {CROWDED, COLL_REDUCE_SCATTER, FLOW_ALL, 8, 4096, COLL_ALLREDUCE},
        {ROOM, COLL_ALLTOALLV, FLOW_TO_ROOT, 16, 1024, COLL_ALLGATHER},
        {ROOM, COLL_ALLTOALLV, FLOW_FROM_ROOT, 4, 4096, COLL_BROADCAST},
        {SCOPE, COLL_ALLTOALLV, FLOW_TO_ROOT, 4, 4096, COLL_ALLGATHER},
        {SCOPE, COLL_ALLTOALLV, FLOW_EVEN, 16, 1024, COLL_ALLGATHER},
        {SCOPE, COLL_REDUCE_SCATTER, FLOW_ALL, 8, 16383, COLL_ALLREDUCE},
    };
    for (size_t i = 0; i < ARRAY_COUNT(limits); i++) {
        for (uint64_t more = 0; more < 2; more++) {
            struct plan_request r =
                request(limits[i].place, limits[i].coll, limits[i].flow,
                        limits[i].world, limits[i].most + more);
            (void)choose_way(&r);
            enum plan_coll as = more ? limits[i].coll : limits[i].as;
            enum plan_flow flow = more ? limits[i].flow : FLOW_ALL;
            if (r.coll != as || r.flow != flow)
                fail_msg("limit %zu: %d, %d", i, (int)r.coll, (int)r.flow);
        }
    }
}

/* Up to the end of its range an algorithm stays, and where the rows alone
 * decide, the next byte has another row. */
static void check_ranges(struct plan_request r)
{
    uint64_t most = 0;
    for (r.count = 0; r.count <= PLAN_SEGMENT_MAX; r.count = most + 1) {
        struct plan_request last = r, middle = r;
        const struct algorithm *a = algorithm_choose_range(&r, &most);
        const struct choice *row = algorithm_row_of(&r);
        assert_ptr_equal(a, algorithm_choose(&r));
        assert_true(most >= r.count);
        if (r.coll == COLL_BARRIER) return; /* it has no bytes */
        last.count = most;
        middle.count = r.count + (most - r.count) / 2;
        assert_ptr_equal(a, algorithm_choose(&middle));
        if (most == UINT64_MAX) return;
        assert_ptr_equal(a, algorithm_choose(&last));
        last.count++;
        bool alone = !r.forced && a != &small_grid;
        if (alone) assert_ptr_not_equal(row, algorithm_row_of(&last));
    }
}

static void test_ranges(void **state)
{
    (void)state;
    static const char *const forced[] = {NULL, "tree", "flat", "confirmed",
                                         "ring"};
    static const uint32_t worlds[] = {1, 2, 3, 4, 8, 9, 10, 33, 64, 65, 200};
    for (int place = 0; place < PLACES; place++) {
        for (unsigned coll = 0; coll < COLL_COUNT; coll++) {
            for (size_t w = 0; w < ARRAY_COUNT(worlds); w++) {
                struct plan_request r =
                    request(place, coll, FLOW_ALL, worlds[w], 0);
                r.mesh = r.tree = true;
                r.element = 1;
                r.single_copy_world = worlds[w] <= 64 ? 64 : 0;
                if (coll == COLL_ALLTOALLV) r.flow = FLOW_EVEN;
                for (size_t i = 0; i < ARRAY_COUNT(forced); i++) {
                    r.forced = forced[i];
                    check_ranges(r);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_is_taken),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
