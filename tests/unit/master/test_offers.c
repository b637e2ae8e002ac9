/* test_offers.c - which revision a group offers, and which newcomers are too
 * far behind it (rules S10e, S10f): one master, three members. */
#include "founded.h"

#include "../../../src/master/state/offers.h"

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user, (void)links, (void)count;
    if (m->type != WIRE_OFFERS) return;
    say("revision %u:", (unsigned)m->offer.revision);
    for (uint32_t i = 0; i < m->member_count; i++)
        say(" %u", (unsigned)m->members[i].id);
    say("\n");
}

static void on_note(void *user, const struct master_note *n)
{
    (void)user, (void)n;
}

static int setup(void **state)
{
    (void)state;
    struct master_config c = {
        .out = {.send = on_send, .close = say_close, .note = on_note},
        .deadline = 10 * PCCL_S,
        .quorum = 3};
    return found(&c);
}

static void offer(uint32_t link, uint64_t revision)
{
    struct wire_msg m = {.type = WIRE_OFFER,
                         .offer = {.on = true, .revision = revision}};
    step(MASTER_RECEIVED, link, &m);
}

static void come(uint32_t link, uint64_t revision, uint64_t max_stale)
{
    struct wire_msg hello = {.type = WIRE_HELLO,
                             .hello = {.self.hint = -1,
                                       .fetched = true,
                                       .revision = revision,
                                       .max_stale = max_stale}};
    step(MASTER_CONNECTED, link, NULL);
    step(MASTER_RECEIVED, link, &hello);
}

static void ask(uint32_t link)
{
    struct wire_msg get = {.type = WIRE_OFFERS_GET};
    step(MASTER_CONNECTED, link, NULL);
    step(MASTER_RECEIVED, link, &get);
}

/* One that names a revision of its own moves nothing, up or down. */
static void test_the_median_counts(void **state)
{
    (void)state;
    offer(0, 4);
    offer(1, 900);
    offer(2, 4);
    ask(5);
    expect("revision 4: 1 2 3\n");
    come(3, 4, 0);
    offer(1, 0);
    ask(6);
    expect("revision 4: 1 3\n");
}

static void test_who_is_behind_is_refused(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3; i++) offer(i, 4);
    come(3, 3, 1); /* as far as it allows */
    come(4, 3, 0);
    expect("close 4: the state that it has downloaded is 1 revisions behind, "
           "and it allows 0: download again\n");
    offer(0, 5);
    expect("");
    offer(1, 5); /* most of them */
    expect("close 3: the state that it has downloaded is 2 revisions behind, "
           "and it allows 1: download again\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_median_counts, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_who_is_behind_is_refused, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
