/* test_dispute.c - the text about an operation whose members disagree names the
 * argument, its values and the ranks (contract C4, rule F9). One master, whose
 * messages the test sends and reads. */
#include "unit.h"

#include "../../src/base/dtype.h"
#include "../../src/master/master.h"

enum { PEERS = 4, TAG = 7 };

static struct master *master;
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

static void step(enum master_event_type type, uint32_t link,
                 const struct wire_msg *m)
{
    struct master_event e = {.type = type, .link = link, .now = 1, .msg = m};
    master_step(master, &e);
}

static void ready_all(void)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        struct wire_msg ready = {.type = WIRE_READY,
                                 .round = master->round_last};
        step(MASTER_RECEIVED, i, &ready);
    }
}

/* Links 0..3 are ids 1..4 and ranks 0..3. */
static int setup(void **state)
{
    (void)state;
    master = calloc(1, sizeof *master);
    if (!master) return 1;
    struct master_config c = {.out = {.send = on_send, .close = on_close},
                              .deadline = 100,
                              .quorum = PEERS};
    master_init(master, &c);
    for (uint32_t i = 0; i < PEERS; i++) {
        struct wire_msg hello = {.type = WIRE_HELLO,
                                 .hello = {.self.hint = (int32_t)i}};
        step(MASTER_CONNECTED, i, NULL);
        step(MASTER_RECEIVED, i, &hello);
    }
    ready_all();
    verdicts = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    master_free(master);
    free(master);
    return 0;
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

static void expect(const struct wire_args args[PEERS], const char *wanted)
{
    report(0, 1);
    for (uint32_t i = 0; i < PEERS; i++) flushed(i, &args[i], true);
    ready_all();
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
    expect(a, "all-reduce (tag 7): members disagree on the count: 1000 on "
              "ranks 0, 2, 3; 1001 on rank 1");
    ALL(sum);
    a[0].count = UINT64_MAX;
    a[1].count = 0;
    expect(a, "all-reduce (tag 7): members disagree on the count: "
              "18446744073709551615 on rank 0; 0 on rank 1; 1000 on ranks 2, "
              "3");
    ALL(sum);
    a[3].dtype = DTYPE_I8;
    expect(a, "all-reduce (tag 7): members disagree on the datatype: f32 on "
              "ranks 0, 1, 2; i8 on rank 3");
    ALL(sum);
    a[3].redop = REDOP_MAX;
    expect(a, "all-reduce (tag 7): members disagree on the operator: sum on "
              "ranks 0, 1, 2; max on rank 3");
    ALL(sum);
    a[2].quant = 1;
    a[2].code = DTYPE_U8;
    expect(a, "all-reduce (tag 7): members disagree on the quantization: none "
              "on ranks 0, 1, 3; min-max to u8 on rank 2");
    ALL(sum);
    a[2].coll = 2;
    expect(a, "collective (tag 7): members disagree on the kind: all-reduce on "
              "ranks 0, 1, 3; barrier on rank 2");
    ALL(sum);
    a[2].digest = 6;
    expect(a, "all-reduce (tag 7): members disagree on the further arguments: "
              "one set on ranks 0, 1, 3; another on rank 2");
    ALL(((struct wire_args){.coll = 1, .count = 10, .root = 2}));
    a[0].root = 3;
    expect(a, "broadcast (tag 7): members disagree on the root: 3 on rank 0; 2 "
              "on ranks 1, 2, 3");
    ALL(((struct wire_args){.coll = 4}));
    a[0].recvs = 10;
    expect(a, "all-to-all (tag 7): members disagree on the bytes from rank 1 "
              "to rank 0: 0 sent, 10 expected");
    ALL(((struct wire_args){.coll = 4}));
    expect(a, "");
#undef ALL
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
    ready_all();
    assert_string_equal(text, "all-reduce (tag 7): members disagree on the "
                              "count: 1 on rank 0; 3 on rank 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_argument, setup, teardown),
        cmocka_unit_test_setup_teardown(test_those_who_have_launched, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
