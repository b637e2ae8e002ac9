/* test_room.c - a newcomer joins no world for whose links its process lacks
 * descriptors or memory (rule R3j). */
#include "../unit.h"

#include "../../../src/elastic/session.h"

enum { MEMBERS = 7 };

static struct session *session;
static struct wire_member members[MEMBERS];
static uint64_t affordable, asked_for, memory_left = UINT64_MAX;

static void on_send(void *user, const struct wire_msg *m)
{
    (void)user;
    (void)m;
}

static uint32_t on_dial(void *user, const struct wire_addr *addr)
{
    (void)user;
    return conn_is_free(session->links, addr->port) ? addr->port : NO_CONN;
}

static void on_close(void *user, uint32_t conn)
{
    (void)user;
    (void)conn;
}

static void on_changed(void *user)
{
    (void)user;
}

static uint64_t on_afford(void *user, uint64_t descriptors)
{
    (void)user;
    asked_for = descriptors;
    return affordable;
}

static uint64_t on_memory(void *user)
{
    (void)user;
    return memory_left;
}

/* Member 10 of 10 to 16 is proposed with all of them. */
static void join_with(uint64_t descriptors, bool mesh)
{
    static const uint64_t none[1];
    session = calloc(1, sizeof *session);
    struct session_config c = {.driver = {.dial = on_dial, .close = on_close},
                               .events = {.to_master = on_send,
                                          .changed = on_changed,
                                          .afford = on_afford,
                                          .memory = on_memory},
                               .pool_size = 1,
                               .deadline = PCCL_S};
    assert_true(session && session_init(session, &c));
    affordable = descriptors;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        members[i].id = 10 + i;
        members[i].addr.port = (uint16_t)i;
    }
    session_hello(session, &(struct wire_msg){.type = WIRE_HELLO});
    session_on_message(session, &(struct wire_msg){.type = WIRE_WELCOME,
                                                   .welcome = {.id = 10}});
    session_on_message(
        session, &(struct wire_msg){.type = WIRE_PROPOSE,
                                    .round = 1,
                                    .ids = none,
                                    .members = members,
                                    .member_count = MEMBERS,
                                    .view = {.ring = true, .mesh = mesh}});
}

static void leave(void)
{
    session_free(session);
    free(session);
}

static void test_enough_is_enough(void **state)
{
    (void)state;
    join_with(12, true);
    assert_int_equal(session->state, SESSION_JOINING);
    leave();
    join_with(4, false); /* two neighbours */
    assert_int_equal(asked_for, 4);
    assert_int_equal(session->state, SESSION_JOINING);
    leave();
}

static void test_one_too_few(void **state)
{
    (void)state;
    join_with(11, true);
    assert_int_equal(asked_for, 12);
    assert_int_equal(session->state, SESSION_GONE);
    assert_string_equal(session->reason,
                        "a world of 7 members needs 12 descriptors more in "
                        "this process, and there may be 11 (ulimit -n)");
    leave();
}

static void test_too_little_memory(void **state)
{
    (void)state;
    memory_left = 6 * 520 * 1024;
    join_with(12, true);
    assert_int_equal(session->state, SESSION_JOINING);
    leave();
    memory_left--;
    join_with(12, true);
    assert_int_equal(session->state, SESSION_GONE);
    assert_string_equal(session->reason,
                        "a world of 7 members needs 3120 KiB of memory more in "
                        "this process, and there are 3119 (ulimit -v, the "
                        "host, or its control group)");
    leave();
    memory_left = UINT64_MAX;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_enough_is_enough),
        cmocka_unit_test(test_one_too_few),
        cmocka_unit_test(test_too_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
