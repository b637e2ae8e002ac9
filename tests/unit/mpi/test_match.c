/* test_match.c - tests of the matching queues, as tables of arrivals and
 * posts. */
#include "match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct match_queues queues;

static struct match_entry entry(uint64_t source, uint32_t context, int tag)
{
    return (struct match_entry){.key = {source, context, tag}};
}

static int fresh(void **state)
{
    (void)state;
    queues = (struct match_queues){0};
    return 0;
}

static void receives_fit_by_all_three(void **state)
{
    struct match_entry receive = entry(3, 1, 7);
    struct match_entry wrong[] = {entry(4, 1, 7), entry(3, 2, 7),
                                  entry(3, 1, 8)};
    struct match_entry right = entry(3, 1, 7);
    (void)state;
    assert_null(match_post(&queues, &receive));
    for (size_t i = 0; i < 3; i++)
        assert_null(match_arrive(&queues, &wrong[i]));
    assert_ptr_equal(match_arrive(&queues, &right), &receive);
    assert_null(receive.list);
    assert_null(right.list);
}

static void wildcards_do_not_cross_contexts(void **state)
{
    struct match_entry any = entry(MATCH_ANY_SOURCE, 1, MATCH_ANY_TAG);
    struct match_entry other = entry(1, 2, 1), own = entry(9, 1, 5);
    (void)state;
    assert_null(match_arrive(&queues, &other));
    assert_null(match_post(&queues, &any));
    assert_ptr_equal(match_arrive(&queues, &own), &any);
}

static void messages_do_not_overtake(void **state)
{
    struct match_entry first = entry(1, 1, 5), second = entry(1, 1, 5);
    struct match_entry a = entry(1, 1, 5);
    struct match_entry b = entry(MATCH_ANY_SOURCE, 1, MATCH_ANY_TAG);
    (void)state;
    assert_null(match_arrive(&queues, &first));
    assert_null(match_arrive(&queues, &second));
    assert_ptr_equal(match_peek(&queues, &a.key), &first);
    assert_ptr_equal(match_post(&queues, &a), &first);
    assert_ptr_equal(match_post(&queues, &b), &second);
    assert_null(match_peek(&queues, &b.key));
}

static void receives_match_in_the_order_of_posting(void **state)
{
    struct match_entry any = entry(MATCH_ANY_SOURCE, 1, MATCH_ANY_TAG);
    struct match_entry exact = entry(1, 1, 5);
    struct match_entry first = entry(1, 1, 5), second = entry(1, 1, 5);
    (void)state;
    assert_null(match_post(&queues, &any));
    assert_null(match_post(&queues, &exact));
    assert_ptr_equal(match_arrive(&queues, &first), &any);
    assert_ptr_equal(match_arrive(&queues, &second), &exact);
}

static void removed_entries_match_nothing(void **state)
{
    struct match_entry a = entry(1, 1, 5), b = a, c = a, message = a;
    (void)state;
    assert_null(match_post(&queues, &a));
    assert_null(match_post(&queues, &b));
    assert_null(match_post(&queues, &c));
    assert_true(match_remove(&b)); /* from the middle */
    assert_false(match_remove(&b));
    assert_true(match_remove(&a)); /* the first */
    assert_ptr_equal(match_arrive(&queues, &message), &c);
    assert_null(queues.posted.first);
    assert_null(queues.posted.last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(receives_fit_by_all_three, fresh),
        cmocka_unit_test_setup(wildcards_do_not_cross_contexts, fresh),
        cmocka_unit_test_setup(messages_do_not_overtake, fresh),
        cmocka_unit_test_setup(receives_match_in_the_order_of_posting, fresh),
        cmocka_unit_test_setup(removed_entries_match_nothing, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
