/* test_stall_votes.c - whom members wait for that wait in a vote (rule W4). One
 * master; members 1 and 2 in one group, member 3 in another one. */
#include "founded.h"

#include "../../../src/master/watch/stall.h"

enum { MEMBERS = 3, AGE = 10, DEADLINE = 10000 };

static const struct master_group *group_of(uint32_t link)
{
    return &master->groups[master->peers[link].group];
}

static int setup(void **state)
{
    (void)state;
    struct master_config c = {
        .out = {.close = say_close}, .deadline = DEADLINE, .quorum = MEMBERS};
    if (!serve(&c)) return 1;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct wire_msg hello = {
            .type = WIRE_HELLO,
            .hello = {.group = i == 2, .self.hint = (int32_t)i}};
        comes(i, &hello);
    }
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct wire_msg ready = {.type = WIRE_READY,
                                 .round = group_of(i)->round};
        step(MASTER_RECEIVED, i, &ready);
    }
    said[0] = '\0';
    return master_count(master, PEER_MEMBER) == MEMBERS ? 0 : 1;
}

/* Members 1 and 2, whose contents differ. */
static void synchronize(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct wire_msg m = {
            .type = WIRE_SYNC,
            .round = 1,
            .epoch = group_of(i)->epoch,
            .sync = {.strategy = SYNC_ENFORCE_POPULAR, .content = 7 + i}};
        step(MASTER_RECEIVED, i, &m);
    }
    assert_int_equal(master->peers[1].sync.part, PART_LACKS);
}

/* Member 3 waits for an update of all groups. */
static void update(void)
{
    struct wire_msg m = {
        .type = WIRE_VOTE, .round = 1, .vote.kind = VOTE_UPDATE};
    step(MASTER_RECEIVED, 2, &m);
    now += AGE;
    step(MASTER_TICK, 0, NULL);
}

static void expect_members_in(enum stall_object his)
{
    struct stall s[4];
    assert_int_equal(stall_find(master, AGE, s, 4), 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(s[i].object, STALL_UPDATE);
        assert_int_equal(s[i].culprit, i);
        assert_int_equal(s[i].waiter_count, 1);
        assert_int_equal(s[i].waiters[0], 2);
        if (his == STALL_OPERATION) {
            assert_int_equal(s[i].cause, CAUSE_NOT_CALLED);
            continue;
        }
        assert_int_equal(s[i].cause, CAUSE_OTHER_CALL);
        assert_int_equal(s[i].his_vote, his);
    }
}

static void test_who_has_not_called(void **state)
{
    (void)state;
    update();
    expect_members_in(STALL_OPERATION);
}

/* A synchronization is a call until it is over, though all have come to it. */
static void test_a_synchronization_under_way_is_a_call(void **state)
{
    (void)state;
    synchronize();
    update();
    expect_members_in(STALL_SYNC);
    struct wire_msg done = {.type = WIRE_SYNCED,
                            .epoch = group_of(1)->epoch,
                            .sync = {.id = 1, .role = SYNC_COMPLETE}};
    step(MASTER_RECEIVED, 1, &done);
    assert_string_equal(said, "");
    expect_members_in(STALL_OPERATION);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_who_has_not_called),
        TEST(test_a_synchronization_under_way_is_a_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
