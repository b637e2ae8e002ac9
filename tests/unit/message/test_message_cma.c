/* test_message_cma.c - which transfers are read by CMA (rule P2P-9a): all of a
 * piece or more, none below CMA_TRY_MIN, and between them those that the driver
 * prefers. It compares those that have nothing beside them. */
#include "../unit.h"

#include "../../../include/pccl.h"
#include "pair.h"

#include <stdlib.h>

enum { TRIES_MAX = 100000 };

/* Sends `count` transfers at once, and takes their events. */
static void transfer(size_t size, uint32_t count)
{
    uint8_t *from = malloc(size), *to = calloc(count, size);
    assert_true(from && to);
    for (size_t i = 0; i < size; i++) from[i] = (uint8_t)(i * 31 >> 3);
    for (uint32_t key = 0; key < count; key++) {
        assert_int_equal(
            message_recv_rndv(boxes[1], 1, key, to + key * size, size),
            pcclSuccess);
        assert_int_equal(message_send_rndv(boxes[0], 2, key, from, size),
                         pcclSuccess);
    }
    uint32_t left = 2 * count;
    for (int n = 0; n < TRIES_MAX && left > 0; n++) {
        pair_turn();
        for (int i = 0; i < 2; i++) {
            struct message_event *event = message_take(boxes[i]);
            if (!event) continue;
            assert_int_equal(event->result, pcclSuccess);
            message_release(boxes[i], event);
            left--;
        }
    }
    assert_int_equal(left, 0);
    for (uint32_t key = 0; key < count; key++)
        assert_memory_equal(from, to + key * size, size);
    free(from);
    free(to);
}

static void open_pair(enum fetching how)
{
    fetching = how;
    pair_start(3);
    pair_install(0);
    pair_install(1);
    preferring = false;
    transfer(100, 1); /* there is a connection */
    fetched = tries = compared = 0;
}

static void test_preferred(void **state)
{
    (void)state;
    open_pair(FETCH_ALWAYS);
    transfer(CMA_TRY_MIN, 1);
    assert_int_equal(fetched, 0);
    assert_int_equal(compared, 0x101);
    preferring = true;
    transfer(CMA_TRY_MIN, 1);
    assert_int_equal(fetched, 1);
    assert_int_equal(compared, 0x202);
    transfer(CMA_MIN - 1, 1);
    assert_int_equal(fetched, 2);
    assert_int_equal(compared, 0x303);
    /* the driver has no say */
    transfer(CMA_TRY_MIN - 1, 1);
    assert_int_equal(fetched, 2);
    preferring = false;
    transfer(CMA_MIN, 1);
    assert_int_equal(fetched, 3);
    assert_int_equal(compared, 0x303);
    pair_stop();
}

/* Only the first of three is alone when it is announced. */
static void test_side_by_side(void **state)
{
    (void)state;
    open_pair(FETCH_ALWAYS);
    preferring = true;
    transfer(CMA_TRY_MIN, 3);
    assert_int_equal(fetched, 3);
    assert_int_equal(compared, 0x101);
    pair_stop();
}

/* Memory that cannot be read: the data are sent, and it is not tried again. */
static void test_refused(void **state)
{
    (void)state;
    open_pair(FETCH_AT_TIMES);
    preferring = true;
    tries = 1;
    transfer(CMA_TRY_MIN, 1);
    transfer(CMA_TRY_MIN, 1);
    assert_int_equal(fetched, 0);
    assert_int_equal(tries, 2);
    assert_int_equal(compared, 0x100); /* the one that failed tells nothing */
    pair_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_preferred),
                                       cmocka_unit_test(test_side_by_side),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
