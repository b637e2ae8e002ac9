/* test_state_vote.c - who is in a synchronization, and who may serve in it:
 * strategies that differ, members that only receive, members that go, and
 * members that call something else (rules S2, S3, S6, S8, S9). One master,
 * members 1 to 4 of ranks 0 to 3. */
#include "founded.h"

enum { MEMBERS = 4, DEADLINE = 100 };

static const char *role_name(uint8_t role)
{
    static const char *const names[] = {
        [SYNC_COMPLETE] = "complete", [SYNC_WAIT] = "waits",
        [SYNC_RECEIVE] = "receives",  [SYNC_NO_STATE] = "no state",
        [SYNC_MIXED] = "mixed",       [SYNC_CROSSED] = "crossed"};
    return role < ARRAY_COUNT(names) && names[role] ? names[role] : "?";
}

/* Who gets which part, and the members that serve, and those that receive. */
static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id = links[i] + 1;
        if (m->type == WIRE_ANSWER && m->vote.flag == 0xff)
            say("%u refused. ", id);
        if (m->type != WIRE_STATE) continue;
        say("%u %s", id, role_name(m->sync.role));
        for (uint32_t k = 0; k < m->sync.holders + m->sync.receivers; k++)
            say("%s %u", k == m->sync.holders ? " to" : "",
                (unsigned)m->ids[k]);
        say(". ");
    }
}

static void on_close(void *user, uint32_t link, const char *reason)
{
    (void)user;
    (void)reason;
    say("%u is out. ", link + 1);
}

static uint32_t calls; /* rule V1: a later one has a higher number */

static void send_as(uint32_t id, const struct wire_msg *m)
{
    struct master_event e = {
        .type = MASTER_RECEIVED, .link = id - 1, .now = 1, .msg = m};
    master_step(master, &e);
}

static int setup(void **state)
{
    (void)state;
    struct master_config c = {.out = {.send = on_send, .close = on_close},
                              .deadline = DEADLINE,
                              .quorum = MEMBERS};
    return found(&c);
}

static void synchronize(uint32_t id, enum sync_strategy how, uint64_t revision,
                        uint64_t content)
{
    struct wire_msg m = {.type = WIRE_SYNC,
                         .round = ++calls,
                         .epoch = 1,
                         .sync = {.strategy = (uint8_t)how,
                                  .revision = revision,
                                  .content = content}};
    send_as(id, &m);
}

static void received(uint32_t id)
{
    struct wire_msg m = {.type = WIRE_SYNCED,
                         .epoch = 1,
                         .sync = {.id = 1, .role = SYNC_COMPLETE}};
    send_as(id, &m);
}

static void lose(uint32_t id)
{
    struct master_event e = {.type = MASTER_CLOSED, .link = id - 1, .now = 1};
    master_step(master, &e);
}

static void vote(uint32_t id, enum vote_kind kind)
{
    struct wire_msg m = {
        .type = WIRE_VOTE, .round = ++calls, .vote = {.kind = (uint8_t)kind}};
    send_as(id, &m);
}

/* A member that has the content already has a copy, and keeps it to itself. */
static void test_who_only_receives_serves_nobody(void **state) /* S2b */
{
    (void)state;
    synchronize(1, SYNC_RECEIVE_ONLY, 0, 7);
    synchronize(2, SYNC_SEND_ONLY, 0, 7);
    synchronize(3, SYNC_RECEIVE_ONLY, 0, 8);
    synchronize(4, SYNC_SEND_ONLY, 0, 7);
    expect("2 waits 2 4 to 3. 4 waits 2 4 to 3. 1 waits 2 4 to 3. "
           "3 receives 2 4 to 3. ");
}

/* It stays so when it has received, also if nobody else is left. */
static void test_who_has_received_serves_nobody(void **state) /* S2b, S8a */
{
    (void)state;
    for (uint32_t id = 1; id <= 2; id++) synchronize(id, SYNC_SEND_ONLY, 0, 7);
    for (uint32_t id = 3; id <= 4; id++)
        synchronize(id, SYNC_RECEIVE_ONLY, 0, 8);
    expect("1 waits 1 2 to 3 4. 2 waits 1 2 to 3 4. "
           "3 receives 1 2 to 3 4. 4 receives 1 2 to 3 4. ");
    received(3);
    expect("");
    lose(2);
    expect("1 waits 1 to 4. 3 waits 1 to 4. 4 receives 1 to 4. ");
    lose(1);
    expect("3 complete. 4 no state. ");
}

static void three_hold_and_one_receives(void)
{
    for (uint32_t id = 1; id <= 4; id++)
        synchronize(id, SYNC_ENFORCE_POPULAR, 0, id < 4 ? 7 : 8);
    expect("1 waits 1 2 3 to 4. 2 waits 1 2 3 to 4. 3 waits 1 2 3 to 4. "
           "4 receives 1 2 3 to 4. ");
}

static void test_lists_go_out_again_after_a_loss(void **state) /* S8a */
{
    (void)state;
    three_hold_and_one_receives();
    lose(2);
    expect("1 waits 1 3 to 4. 3 waits 1 3 to 4. 4 receives 1 3 to 4. ");
}

static void test_a_leaver_is_not_listed(void **state) /* S6 */
{
    (void)state;
    three_hold_and_one_receives();
    send_as(2, &(struct wire_msg){.type = WIRE_LEAVE});
    expect("");
    lose(3);
    expect("1 waits 1 to 4. 2 waits 1 to 4. 4 receives 1 to 4. ");
}

static void test_the_last_revision_is_refused(void **state) /* S3 */
{
    (void)state;
    synchronize(1, SYNC_ENFORCE_POPULAR, UINT64_MAX, 7);
    expect("1 is out. ");
}

/* The kind of the others is that of most; of two equals it is the kind of the
 * lowest rank. */
static void test_strategies_do_not_mix(void **state) /* S2a */
{
    (void)state;
    synchronize(1, SYNC_SEND_ONLY, 0, 7);
    for (uint32_t id = 2; id <= 4; id++)
        synchronize(id, SYNC_ENFORCE_POPULAR, 0, 7);
    expect("1 mixed. 2 complete. 3 complete. 4 complete. ");
}

static void test_the_lowest_rank_breaks_the_tie(void **state) /* S2a */
{
    (void)state;
    for (uint32_t id = 1; id <= 4; id++)
        synchronize(id, id % 2 ? SYNC_ENFORCE_POPULAR : SYNC_RECEIVE_ONLY, 0,
                    7);
    expect("2 mixed. 4 mixed. 1 complete. 3 complete. ");
}

/* Members of the last synchronization outweigh those that were not in it. */
static void test_newcomers_do_not_choose_the_strategy(void **state) /* S2a */
{
    (void)state;
    synchronize(1, SYNC_SEND_ONLY, 0, 7);
    for (uint32_t id = 2; id <= 4; id++)
        synchronize(id, SYNC_ENFORCE_POPULAR, 0, 7);
    expect("1 mixed. 2 complete. 3 complete. 4 complete. ");
    /* Two of three go on as before; the third and the one refused do not. */
    synchronize(1, SYNC_SEND_ONLY, 1, 7);
    synchronize(2, SYNC_SEND_ONLY, 1, 7);
    synchronize(3, SYNC_ENFORCE_POPULAR, 1, 7);
    synchronize(4, SYNC_ENFORCE_POPULAR, 1, 7);
    expect("1 mixed. 2 mixed. 3 complete. 4 complete. ");
}

/* Nobody waits for a member that waits in another call. */
static void test_a_synchronization_and_an_update(void **state) /* S9 */
{
    (void)state;
    for (uint32_t id = 1; id <= 3; id++)
        synchronize(id, SYNC_ENFORCE_POPULAR, 0, 7);
    expect("");
    vote(4, VOTE_UPDATE);
    expect("1 crossed. 2 crossed. 3 crossed. 4 refused. ");
    /* Nothing is left of it. */
    for (uint32_t id = 1; id <= 4; id++)
        synchronize(id, SYNC_ENFORCE_POPULAR, 0, 7);
    expect("1 complete. 2 complete. 3 complete. 4 complete. ");
}

static void test_an_optimization_and_an_update(void **state) /* S9 */
{
    (void)state;
    vote(1, VOTE_UPDATE);
    vote(2, VOTE_PENDING);
    vote(3, VOTE_OPTIMIZE);
    expect("");
    vote(4, VOTE_OPTIMIZE);
    expect("1 refused. 2 refused. 3 refused. 4 refused. ");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_who_only_receives_serves_nobody),
        TEST(test_who_has_received_serves_nobody),
        TEST(test_lists_go_out_again_after_a_loss),
        TEST(test_a_leaver_is_not_listed),
        TEST(test_the_last_revision_is_refused),
        TEST(test_strategies_do_not_mix),
        TEST(test_the_lowest_rank_breaks_the_tie),
        TEST(test_newcomers_do_not_choose_the_strategy),
        TEST(test_a_synchronization_and_an_update),
        TEST(test_an_optimization_and_an_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
