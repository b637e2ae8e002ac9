/* test_partner.c - what is granted to members that hold back messages (rule X3
 * of src/mpi/partner.h), without a library below. */
#include "partner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct world world;
static uint32_t posted[8]; /* letters of each kind */

pcclResult_t pcclPostMessage(pcclComm_t *comm, uint64_t member,
                             const void *header, size_t header_size,
                             const void *data, size_t size)
{
    (void)comm, (void)member, (void)header_size, (void)data, (void)size;
    posted[((const struct letter *)header)->kind]++;
    return pcclSuccess;
}

void message_release(struct message *message)
{
    (void)message;
}

static void who_holds_back_is_granted_once(void **state)
{
    (void)state;
    partner_holds(partner_of(3));
    partner_holds(partner_of(3));
    partners_grant(4);
    assert_int_equal(posted[LETTER_GRANT], 0);
    partners_grant(3);
    partners_grant(3);
    assert_int_equal(posted[LETTER_GRANT], 1);
    partner_holds(partner_of(3));
    partners_grant(MATCH_ANY_SOURCE);
    assert_int_equal(posted[LETTER_GRANT], 2);
}

/* A lost member holds nothing back: nobody is looked for who does, and it gets
 * nothing. */
static void the_lost_are_granted_nothing(void **state)
{
    struct partner *lost = partner_of(5);
    (void)state;
    posted[LETTER_GRANT] = 0;
    partner_holds(lost);
    partner_lose(lost);
    partners_grant(MATCH_ANY_SOURCE);
    partners_grant(5);
    assert_int_equal(posted[LETTER_GRANT], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_holds_back_is_granted_once),
        cmocka_unit_test(the_lost_are_granted_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
