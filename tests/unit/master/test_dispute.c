/* test_dispute.c - the text about an operation whose members disagree names the
 * argument, its values and the ranks (contract C4, rule F9). One master, whose
 * messages the test sends and reads. */
#include "founded.h"

#include "../../../src/base/arguments.h"
#include "../../../src/base/dtype.h"
#include "../../../src/base/scope.h"

enum { PEERS = 4, TAG = 7 };

static char text[WIRE_TEXT_MAX + 1];
static struct wire_msg flush;
static uint32_t verdicts;

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user;
    (void)links;
    (void)count;
    if (m->type == WIRE_FLUSH) flush = *m;
    if (m->type != WIRE_VERDICT) return;
    verdicts++;
    text[0] = '\0';
    if (m->verdict.about < m->op_count)
        memcpy(text, m->verdict.text, sizeof text);
}

static void on_close(void *user, uint32_t link, const char *reason)
{
    (void)user;
    fail_msg("%u closed: %s", link, reason);
}

/* Links 0..3 are ids 1..4 and ranks 0..3. */
static int setup(void **state)
{
    (void)state;
    struct master_config c = {.out = {.send = on_send, .close = on_close},
                              .deadline = 100,
                              .quorum = PEERS};
    verdicts = 0;
    return found(&c);
}

static const struct wire_op running = {.tag = TAG, .state = OP_RUNNING};

static void flushed(uint32_t link, const struct wire_args *args, bool lists)
{
    struct wire_msg m = {.type = WIRE_FLUSHED,
                         .round = master->round_last,
                         .ops = &running,
                         .op_count = lists};
    m.flushed.described = args != NULL;
    if (args) m.flushed.args = *args;
    step(MASTER_RECEIVED, link, &m);
}

/* Link `by` reports that the arguments of another one differ. */
static void report(uint32_t by, uint32_t other)
{
    struct wire_msg m = {.type = WIRE_REFRESH,
                         .epoch = master->groups[0].epoch};
    m.fault.cause = REFRESH_MISMATCH;
    m.fault.tag = TAG;
    m.fault.peer = other + 1;
    step(MASTER_RECEIVED, by, &m);
    assert_true(flush.flush.disputed);
    assert_int_equal(flush.flush.op.tag, TAG);
    assert_int_equal(flush.flush.pair[0], by + 1);
    assert_int_equal(flush.flush.pair[1], other + 1);
}

static void expect_text(const struct wire_args args[PEERS], const char *wanted)
{
    report(0, 1);
    for (uint32_t i = 0; i < PEERS; i++) flushed(i, &args[i], true);
    all_are_ready();
    assert_int_equal(verdicts, 1);
    verdicts = 0;
    assert_string_equal(text, wanted);
    assert_false(master->groups[0].dispute.open);
}

static void test_every_argument(void **state)
{
    (void)state;
    static const struct wire_args sum = {
        .count = 1000, .dtype = DTYPE_F32, .redop = REDOP_SUM, .digest = 5};
    struct wire_args a[PEERS];
#define ALL(x)                                                                 \
    for (uint32_t i = 0; i < PEERS; i++) a[i] = (x)
    ALL(sum);
    a[1].count = 1001;
    expect_text(a, "all-reduce (tag 7): members disagree on the count: 1000 on "
                   "ranks 0, 2, 3; 1001 on rank 1");
    ALL(sum);
    a[0].count = UINT64_MAX;
    a[1].count = 0;
    expect_text(a,
                "all-reduce (tag 7): members disagree on the count: "
                "18446744073709551615 on rank 0; 0 on rank 1; 1000 on ranks 2, "
                "3");
    ALL(sum);
    a[3].dtype = DTYPE_I8;
    expect_text(a,
                "all-reduce (tag 7): members disagree on the datatype: f32 on "
                "ranks 0-2; i8 on rank 3");
    ALL(sum);
    a[3].redop = REDOP_MAX;
    expect_text(a,
                "all-reduce (tag 7): members disagree on the operator: sum on "
                "ranks 0-2; max on rank 3");
    ALL(sum);
    a[2].quant = 1;
    a[2].code = DTYPE_U8;
    expect_text(
        a, "all-reduce (tag 7): members disagree on the quantization: none "
           "on ranks 0, 1, 3; min-max on rank 2");
    ALL(sum);
    a[2].coll = 2;
    expect_text(
        a, "collective (tag 7): members disagree on the kind: all-reduce on "
           "ranks 0, 1, 3; barrier on rank 2");
    ALL(sum);
    a[2].digest = 6;
    expect_text(
        a, "all-reduce (tag 7): members disagree on the further arguments: "
           "one set on ranks 0, 1, 3; another on rank 2");
    ALL(((struct wire_args){.coll = 1, .count = 10, .root = 2}));
    a[0].root = 3;
    expect_text(
        a, "broadcast (tag 7): members disagree on the root: 3 on rank 0; 2 "
           "on ranks 1-3");
    ALL(((struct wire_args){.coll = 4}));
    a[0].recvs = 10;
    expect_text(a,
                "all-to-all (tag 7): members disagree on the bytes from rank 1 "
                "to rank 0: 0 sent, 10 expected");
    ALL(((struct wire_args){.coll = 4}));
    expect_text(a, "");
    ALL(((struct wire_args){.coll = 3, .count = 10, .rank = 1}));
    a[2].count = 12;
    expect_text(
        a, "all-gather (tag 7): members disagree on the bytes: 10 on ranks "
           "0, 1, 3; 12 on rank 2");
    ALL(sum);
    a[2].quant = a[0].quant = a[1].quant = a[3].quant = 1;
    a[2].code = DTYPE_I8;
    expect_text(
        a, "all-reduce (tag 7): members disagree on the datatype of codes: "
           "u8 on ranks 0, 1, 3; i8 on rank 2");
#undef ALL
}

/* What the caller of a member names. */
struct named {
    const char *function, *operator;
    uint64_t root, counts[200];
    uint32_t entries;
};

static void name(struct wire_args *a, uint8_t *bytes, const struct named *n)
{
    struct arguments list = {.bytes = bytes};
    arguments_text(&list, false, "function", n->function);
    arguments_values(&list, false, "root", &n->root, 1);
    arguments_values(&list, false, "counts", n->counts, n->entries);
    if (n->operator) arguments_text(&list, false, "operator", n->operator);
    arguments_text(&list, true, "algorithm", n->root == 77 ? "ring" : "any");
    assert_true(arguments_valid(bytes, list.size));
    a->named = bytes;
    a->named_size = list.size;
    a->digest = (uint64_t)(uintptr_t)bytes;
}

static void expect_named(const struct wire_args *usual,
                         const struct named n[PEERS], const char *wanted)
{
    static uint8_t bytes[PEERS][ARGUMENTS_SIZE];
    struct wire_args a[PEERS];
    for (uint32_t i = 0; i < PEERS; i++) {
        a[i] = usual[i];
        name(&a[i], bytes[i], &n[i]);
    }
    expect_text(a, wanted);
}

/* The caller's arguments come before those of the operation. Ranks are those of
 * the scope, as the members have them. */
static void test_named_arguments(void **state)
{
    (void)state;
    struct wire_args usual[PEERS];
    struct named n[PEERS];
    for (uint32_t i = 0; i < PEERS; i++) {
        usual[i] = (struct wire_args){.count = i / 3, .rank = PEERS - 1 - i};
        n[i] = (struct named){
            .function = "MPI_Reduce", .operator= "MPI_SUM", .entries = 200};
    }
    n[1].function = "MPI_Bcast";
    n[1].operator= NULL;
    expect_named(usual, n,
                 "members disagree on the function: MPI_Reduce on ranks 0, 1, "
                 "3; MPI_Bcast on rank 2");
    n[1].function = n[0].function;
    expect_named(usual, n,
                 "members disagree on the operator: MPI_SUM on ranks 0, 1, 3; "
                 "none on rank 2");
    n[1].operator= "MPI_MAX";
    for (uint32_t i = 0; i < PEERS; i++)
        n[i].operator= i == 1 ? "MPI_MAX" : NULL;
    expect_named(usual, n,
                 "members disagree on the operator: none on ranks 0, 1, 3; "
                 "MPI_MAX on rank 2");
    for (uint32_t i = 0; i < PEERS; i++)
        n[i].operator= i == 1 ? "MPI_MAX" : "MPI_SUM";
    n[2].root = 7;
    expect_named(usual, n,
                 "members disagree on the root: 0 on ranks 0, 2, 3; 7 on rank "
                 "1");
    n[2].root = 0;
    n[3].counts[3] = 5;
    expect_named(usual, n,
                 "members disagree on counts[3]: 5 on rank 0; 0 on ranks 1-3");
    n[3].counts[3] = 0;
    n[0].counts[150] = 5;
    n[1].operator= n[0].operator;
    expect_named(usual, n,
                 "members disagree on counts[127] or later: one set on ranks "
                 "0-2; another on rank 3");
    n[0].counts[150] = 0;
    n[0].entries = 2;
    expect_named(usual, n,
                 "members disagree on counts[2]: 0 on ranks 0-2; none on rank "
                 "3");
    n[0].entries = 200;
    expect_named(usual, n,
                 "members disagree on the count: 1 on rank 0; 0 on ranks 1-3");
    usual[3].count = 0;
    for (uint32_t i = 0; i < PEERS; i++) n[i].root = 77;
    expect_named(usual, n,
                 "members disagree on the further arguments: one set on rank "
                 "0; another on rank 1; a third on rank 2; others on rank 3");
    usual[2].rank = 0; /* of two members: ranks of the view */
    usual[2].root = 1;
    expect_named(usual, n,
                 "members disagree on the root: 0 on ranks 0, 1, 3; 1 on rank "
                 "2");
}

/* Many values end where the text does. */
static void test_long_texts_end(void **state)
{
    (void)state;
    struct wire_args usual[PEERS] = {{.count = 0}};
    struct named n[PEERS];
    static const char *const longs[PEERS] = {
        "0123456789012345678901234567890123456789012345678901234567890123456",
        "1123456789012345678901234567890123456789012345678901234567890123456",
        "2123456789012345678901234567890123456789012345678901234567890123456",
        "3\n2345678901234567890123456789012345678901234567890123456789012345"};
    for (uint32_t i = 0; i < PEERS; i++)
        n[i] = (struct named){.function = longs[i]};
    expect_named(usual, n,
                 "members disagree on the function: "
                 "012345678901234567890123456789012345678901234567890123456789"
                 "012 on rank 0; "
                 "112345678901234567890123456789012345678901234567890123456789"
                 "012 on rank 1; "
                 "21234567890123456789012345678901234567890123456789012...");
}

/* Three members of which each waits in a scope of its own. */
static void test_scopes(void **state)
{
    (void)state;
    static const uint8_t sets[][1] = {{3}, {6}, {5}}; /* bits of ranks */
    struct wire_op ops[3];
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t ids[2] = {i < 2 ? i + 1 : 1, i < 2 ? i + 2 : 3};
        ops[i] = (struct wire_op){
            .scope = scope_number(ids, 2), .tag = TAG, .state = OP_RUNNING};
    }
    for (uint32_t i = 0; i < 3; i++) {
        struct wire_msg m = {.type = WIRE_BLOCKED,
                             .epoch = master->groups[0].epoch,
                             .blocked.age_ms = 1};
        now += PCCL_MS;
        step(MASTER_RECEIVED, i, &m);
    }
    for (uint32_t i = 0; i < PEERS; i++) {
        struct wire_msg m = {.type = WIRE_FLUSHED,
                             .round = master->round_last,
                             .ops = &ops[i % 3],
                             .op_count = i < 3,
                             .set_count = i < 3,
                             .set_size = 1,
                             .sets = sets[i % 3]};
        step(MASTER_RECEIVED, i, &m);
    }
    for (uint32_t i = 0; i < 3; i++) {
        struct wire_op asked[2];
        uint32_t count = 0;
        /* in the order of the lists: those of its scopes that it lacks */
        for (uint32_t k = 0; k < 3; k++) {
            if (!(sets[k][0] >> i & 1)) continue;
            asked[count] = ops[k];
            asked[count++].state = k == i ? OP_RUNNING : OP_NOT_LAUNCHED;
        }
        struct wire_msg m = {.type = WIRE_REPLY,
                             .round = master->round_last,
                             .ops = asked,
                             .op_count = count};
        step(MASTER_RECEIVED, i, &m);
    }
    all_are_ready();
    assert_int_equal(verdicts, 3);
    assert_string_equal(text, "collective (tag 7): members disagree on the "
                              "scope: ranks 0, 1 on rank 0; ranks 1, 2 on rank "
                              "1; ranks 0, 2 on rank 2");
}

/* Some have not launched it, and one describes what it does not list. */
static void test_those_who_have_launched(void **state)
{
    (void)state;
    struct wire_args a[PEERS] = {{.count = 1}, {.count = 2}, {.count = 3}};
    report(2, 0);
    flushed(0, &a[0], true);
    flushed(1, &a[1], false);
    flushed(2, &a[2], true);
    flushed(3, NULL, false);
    struct wire_op absent = {.tag = TAG, .state = OP_NOT_LAUNCHED};
    struct wire_op here = {.tag = TAG, .state = OP_RUNNING};
    for (uint32_t i = 0; i < PEERS; i++) {
        struct wire_msg m = {.type = WIRE_REPLY,
                             .round = master->round_last,
                             .ops = i % 2 ? &absent : &here,
                             .op_count = 1};
        step(MASTER_RECEIVED, i, &m);
    }
    all_are_ready();
    assert_string_equal(text, "all-reduce (tag 7): members disagree on the "
                              "count: 1 on rank 0; 3 on rank 2");
}

/* A member is lost in the flush: the answers to the next one count. */
static void test_second_flush(void **state)
{
    (void)state;
    struct wire_args a[PEERS] = {{.count = 1}, {.count = 2}, {.count = 2}};
    report(0, 1);
    for (uint32_t i = 1; i < PEERS; i++) flushed(i, &a[i], true);
    step(MASTER_CLOSED, 2, NULL);
    assert_true(flush.flush.disputed);
    flushed(0, &a[0], true);
    flushed(1, &a[1], true);
    flushed(3, &a[1], true);
    for (uint32_t i = 0; i < PEERS; i++) {
        struct wire_msg ready = {.type = WIRE_READY,
                                 .round = master->round_last};
        if (i != 2) step(MASTER_RECEIVED, i, &ready);
    }
    assert_string_equal(text, "all-reduce (tag 7): members disagree on the "
                              "count: 1 on rank 0; 2 on ranks 1, 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_argument, setup, teardown),
        cmocka_unit_test_setup_teardown(test_named_arguments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_texts_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scopes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_second_flush, setup, teardown),
        cmocka_unit_test_setup_teardown(test_those_who_have_launched, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
