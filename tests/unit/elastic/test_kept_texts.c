/* test_kept_texts.c - the texts about members that disagree, which a session
 * keeps (rule F9): each operation, and each verdict that waits for a launch,
 * has that of its own round. */
#include "joined.h"

#include "../../../include/pccl.h"
#include "../../../src/ring/op.h"

static uint32_t round_number;

static int setup(void **state)
{
    (void)state;
    round_number = 1;
    return join(NULL, NULL, &welcome_10);
}

static struct op *launch(uint64_t tag)
{
    static uint64_t in, out;
    struct op_request r = {
        .call.tag = tag, .call.sendbuf = &in, .call.recvbuf = &out};
    struct op *op;
    assert_int_equal(session_launch(session, &r, 0, &op), pcclSuccess);
    return op;
}

/* A round in which that operation fails; `text` may be "". */
static void disagree(uint64_t tag, uint32_t seq, const char *text)
{
    static const uint64_t none[1];
    const struct wire_op op = {
        .tag = tag, .seq = seq, .state = VERDICT_INVALID};
    struct wire_msg m = {.type = WIRE_FLUSH,
                         .epoch = round_number,
                         .round = round_number + 1,
                         .ids = none,
                         .view = {.ring = true, .mesh = true}};
    round_number++;
    hear(&m);
    m.type = WIRE_PROPOSE;
    hear(&m);
    struct wire_msg verdict = {
        .type = WIRE_VERDICT, .round = round_number, .ops = &op, .op_count = 1};
    snprintf(verdict.verdict.text, sizeof verdict.verdict.text, "%s", text);
    hear(&verdict);
    m.type = WIRE_INSTALL;
    hear(&m);
}

static void takes(struct op *op, const char *text)
{
    uint32_t contributors;
    uint64_t tx, rx;
    uint32_t number = op_dispute(op);
    assert_int_equal(session_take(session, op, &contributors, &tx, &rx),
                     pcclInvalidArgument);
    const char *kept = session_dispute(session, number);
    assert_string_equal(kept ? kept : "none", text);
}

static void test_a_result_that_is_taken_late(void **state)
{
    (void)state;
    struct op *op = launch(7);
    disagree(7, op_name(op).seq, "first");
    disagree(7, op_name(op).seq + 1, "second");
    takes(op, "first");
    takes(launch(7), "second");
}

static void test_a_round_without_a_text(void **state)
{
    (void)state;
    struct op *op = launch(7);
    disagree(7, op_name(op).seq, "first");
    takes(op, "first");
    op = launch(7);
    disagree(7, op_name(op).seq, "");
    takes(op, "none");
    disagree(8, 0, "");
    takes(launch(8), "none");
}

static void test_the_last_texts_are_kept(void **state)
{
    (void)state;
    struct op *first = launch(7);
    struct op *second = launch(8);
    disagree(7, op_name(first).seq, "first");
    disagree(8, op_name(second).seq, "second");
    for (uint32_t i = 0; i + 1 < DISPUTES_KEPT; i++) disagree(9, i, "another");
    takes(first, "none");
    takes(second, "second");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_result_that_is_taken_late),
        TEST(test_a_round_without_a_text),
        TEST(test_the_last_texts_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
