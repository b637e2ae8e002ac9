/* test_pool.c - the cache of memory keeps what is used and gives back the rest
 * (src/base/pool.h). */
#include "../unit.h"

#include "../../../src/base/pool.h"

static struct pool pool;

static int setup(void **state)
{
    (void)state;
    memset(&pool, 0, sizeof pool);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pool_trim(&pool);
    assert_int_equal(pool.cached, 0);
    assert_int_equal(pool.in_use, 0);
    return 0;
}

static void use(uint32_t count, size_t size)
{
    void *blocks[8];
    for (uint32_t i = 0; i < count; i++) {
        blocks[i] = pool_take(&pool, size);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 64, 0);
        memset(blocks[i], (int)i, size);
    }
    for (uint32_t i = 0; i < count; i++) pool_give(&pool, blocks[i]);
}

static void test_a_block_is_used_again(void **state)
{
    (void)state;
    void *block = pool_take(&pool, 1000);
    pool_give(&pool, block);
    assert_ptr_equal(pool_take(&pool, 1900), block);
    assert_int_equal(pool.cached, 0);
    pool_give(&pool, block);
    assert_int_equal(pool.cached, 2048);
}

/* A burst of eight, then one at a time. */
static void test_blocks_without_use_are_freed(void **state)
{
    (void)state;
    use(8, 4000);
    use(2, 100000);
    pool_age(&pool, POOL_IDLE);
    assert_int_equal(pool.cached, 8 * 4096 + 2 * 131072);
    for (int i = 0; i < 3; i++) use(1, 4000);
    pool_age(&pool, 2 * POOL_IDLE - 1); /* not yet */
    assert_int_equal(pool.cached, 8 * 4096 + 2 * 131072);
    pool_age(&pool, 2 * POOL_IDLE);
    assert_int_equal(pool.cached, 4096);
    use(1, 4000);
    pool_age(&pool, 3 * POOL_IDLE);
    assert_int_equal(pool.cached, 4096);
    pool_age(&pool, 4 * POOL_IDLE);
    assert_int_equal(pool.cached, 0);
}

static void test_blocks_in_use_stay(void **state)
{
    (void)state;
    void *block = pool_take(&pool, 4000);
    memset(block, 7, 4000);
    for (int i = 1; i < 5; i++) pool_age(&pool, i * POOL_IDLE);
    assert_int_equal(((uint8_t *)block)[3999], 7);
    assert_int_equal(pool.in_use, 4096);
    pool_give(&pool, block);
    pool_age(&pool, 5 * POOL_IDLE); /* it was used in this time */
    assert_int_equal(pool.cached, 4096);
}

static void test_a_block_outlives_its_pool(void **state)
{
    (void)state;
    struct pool other = {.cached = 0};
    void *block = pool_take(&other, 4000);
    pool_trim(&other);
    memset(block, 7, 4000);
    pool_discard(block);
    pool_discard(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_block_is_used_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_blocks_without_use_are_freed,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_blocks_in_use_stay, setup,
                                        teardown),
        cmocka_unit_test(test_a_block_outlives_its_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
