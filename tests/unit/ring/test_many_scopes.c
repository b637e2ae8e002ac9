/* test_many_scopes.c - a million scopes, each used once: the memory of a member
 * does not grow. The table of tags counts scopes, too, and starts afresh with
 * each epoch (D1); when it is nearly full the member asks for a new epoch. */
#include "../unit.h"

#include "../../../src/ring/op.h"
#include "../install_view.h"

enum { WORLD = 24, SCOPES = 1000000, EARLY = 100000 };

static struct wire_member members[WORLD];
static uint64_t ids[WORLD];
static uint32_t full; /* times that a new epoch was asked for */

static uint32_t on_dial(void *user, const struct wire_addr *addr)
{
    (void)user, (void)addr;
    return NO_CONN;
}

static void on_close(void *user, uint32_t conn)
{
    (void)user;
    fail_msg("connection %u closed", conn);
}

static void on_fault(void *user, enum engine_fault fault, const struct op *op,
                     uint64_t peer)
{
    (void)user, (void)op, (void)peer;
    full += fault == FAULT_TAGS;
}

static void on_finished(void *user, struct op *op)
{
    (void)user, (void)op;
}

static void install(struct engine *e, uint32_t epoch)
{
    engine_freeze(e);
    install_view(e, epoch, members, WORLD, 0);
}

/* Scope number i: this member, the next one, and some of the others. */
static void use_once(struct engine *e, uint32_t i)
{
    uint64_t scope[WORLD];
    uint32_t size = 0;
    for (uint32_t k = 0; k < WORLD; k++)
        if (k < 2 || i >> (k - 2) & 1) scope[size++] = ids[k];
    struct op_request r = {
        .call.tag = 7, .call.members = scope, .call.member_count = size};
    r.plan.coll = COLL_BARRIER;
    struct op *op = engine_launch(e, &r, false);
    assert_non_null(op);
    engine_finish(e, op, 1);
    engine_release(e, op);
}

static void test_a_million_scopes(void **state)
{
    (void)state;
    struct driver driver = {.dial = on_dial, .close = on_close};
    struct engine_events events = {.fault = on_fault, .finished = on_finished};
    struct engine *e = engine_new(&driver, &events, 1, PCCL_S);
    assert_non_null(e);
    const struct wire_key key = {{1, 2}};
    for (uint32_t i = 0; i < WORLD; i++) members[i].id = ids[i] = 10 + i;
    links_set_self(engine_links(e), ids[0], &key);
    uint32_t epoch = 1;
    uint32_t seen = 0;
    size_t early = 0;
    install(e, epoch);
    for (uint32_t i = 0; i < SCOPES; i++) {
        use_once(e, i);
        if (full > seen) install(e, ++epoch);
        seen = full;
        assert_int_equal(e->links.pool.in_use, 0);
        if (i == EARLY) early = e->links.pool.cached;
    }
    assert_in_range(epoch, SCOPES / TAGS_MAX, SCOPES / TAGS_MAX * 2);
    assert_int_equal(e->links.pool.cached, early);
    engine_delete(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_million_scopes),
    };
    return cmocka_run_group_tests_name("ring/many_scopes", tests, NULL, NULL);
}
