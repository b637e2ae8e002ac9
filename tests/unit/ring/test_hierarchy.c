/* test_hierarchy.c - a hierarchical all-reduce: the path that the parts of each
 * chunk take between sites (rule D15), as all members compute it. */
#include "../unit.h"

#include "../../../src/ring/hierarchy.h"

/* Two sites send each other one vector. Between any two members there is at
 * most the part of a chunk and the sum of one. */
static void test_sites_cross_once(void **state)
{
    (void)state;
    static const uint16_t site[] = {0, 1, 0, 1, 0, 1, 1, 0};
    static struct hierarchy tree[8];
    uint32_t cross = 0;
    for (uint32_t i = 0; i < 8; i++) hierarchy_init(&tree[i], site, 8, i);
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t parts = 0;
        for (uint32_t c = 0; c < 8; c++) {
            uint32_t up = tree[0].parent[c][i];
            assert_int_equal(tree[i].parent[c][i], up);
            assert_int_equal(tree[i].parts_before[c], parts);
            parts += hierarchy_turns(&tree[i], c);
            if (i == c) assert_int_equal(up, c);
            if (site[i] == site[c]) assert_int_equal(up, c);
            for (uint32_t k = 1, turn = 0; k < 8; k++) {
                uint32_t from = (i + k) % 8;
                if (tree[0].parent[c][from] == i)
                    assert_int_equal(hierarchy_turn(&tree[i], c, from), ++turn);
            }
        }
        assert_int_equal(tree[i].parts, parts);
        for (uint32_t k = 0; k < 8; k++) {
            uint32_t there = hierarchy_chunks(&tree[0], i, k);
            uint32_t back = hierarchy_chunks(&tree[0], k, i);
            if (site[i] == site[k] || i == k) continue;
            assert_true(there <= 1 && back <= 1);
            if (site[i] == 0) cross += there + back;
        }
    }
    assert_int_equal(cross, 8); /* chunks: one vector per direction */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sites_cross_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
