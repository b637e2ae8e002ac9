/* test_collective_check.c - the errors in the flow of an all-to-all or a sum
 * (pcclFlow_t), which one member sees alone. */
#include "../unit.h"

#include "../../../src/peer/collective_check.h"

enum { WORLD = 3, SIZE = 5 };

static size_t sends[WORLD], receives[WORLD], displs[WORLD];

static pcclCollective_t call(pcclCollectiveKind_t kind, pcclFlow_t flow)
{
    for (size_t i = 0; i < WORLD; i++) sends[i] = receives[i] = SIZE;
    return (pcclCollective_t){.size = sizeof(pcclCollective_t),
                              .kind = kind,
                              .count = SIZE,
                              .root = 1,
                              .send_bytes = sends,
                              .send_displs = displs,
                              .recv_bytes = receives,
                              .recv_displs = displs,
                              .flow = flow};
}

static void test_even(void **state)
{
    (void)state;
    pcclCollective_t c = call(pcclKindAllToAllV, pcclFlowEven);
    assert_true(collective_is_even(&c));
    assert_false(collective_is_rooted(&c));
    assert_null(collective_check(&c, WORLD, 0));
    assert_null(collective_check_flow(&c, WORLD, 0));
    for (size_t i = 0; i < WORLD; i++) {
        sends[i]++;
        assert_string_equal(collective_check_flow(&c, WORLD, 0),
                            "a size is not `count` where all blocks are equal");
        sends[i]--;
        receives[i]--;
        assert_non_null(collective_check_flow(&c, WORLD, 0));
        receives[i]++;
    }
    c.kind = pcclKindAllReduce;
    assert_string_equal(collective_check_flow(&c, WORLD, 0),
                        "a sum has no such flow");
    c.kind = pcclKindAllGather; /* where nobody looks at it */
    assert_null(collective_check_flow(&c, WORLD, 0));
    c.kind = pcclKindAllToAllV; /* of a program that knows no flows */
    c.size = offsetof(pcclCollective_t, flow);
    assert_false(collective_is_even(&c));
}

static void test_rooted(void **state)
{
    (void)state;
    static const char wrong[] = "a size is not 0 where no data flow";
    pcclCollective_t c = call(pcclKindAllToAllV, pcclFlowToRoot);
    assert_true(collective_is_rooted(&c));
    assert_string_equal(collective_check_flow(&c, WORLD, 0), wrong);
    sends[0] = sends[2] = 0;
    for (size_t i = 0; i < WORLD; i++) receives[i] = 0;
    assert_null(collective_check_flow(&c, WORLD, 0));
    receives[2] = SIZE;
    assert_string_equal(collective_check_flow(&c, WORLD, 0), wrong);
    c = call(pcclKindAllToAllV, pcclFlowFromRoot);
    assert_string_equal(collective_check_flow(&c, WORLD, 1), wrong);
    receives[0] = receives[2] = 0;
    assert_null(collective_check_flow(&c, WORLD, 1));
    c.root = WORLD;
    assert_string_equal(collective_check_flow(&c, WORLD, 1),
                        "root is not a rank of the world");
    c.root = 1;
    c.flow = (pcclFlow_t)4;
    assert_string_equal(collective_check_flow(&c, WORLD, 1), "unknown flow");
    c.kind = pcclKindAllReduce;
    c.flow = pcclFlowFromRoot;
    assert_string_equal(collective_check_flow(&c, WORLD, 1),
                        "a sum has no such flow");
    c.flow = pcclFlowToRoot;
    assert_null(collective_check_flow(&c, WORLD, 1));
    assert_true(collective_has_result(&c, 1));
    assert_false(collective_has_result(&c, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_even),
        cmocka_unit_test(test_rooted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
