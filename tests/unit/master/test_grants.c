/* test_grants.c - rule K13 as transcripts: what the coordinator answers the
 * holders of tokens, and what it does when one ends (K12, K15). */
#include "founded.h"

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user;
    if (m->type == WIRE_HEARTBEAT || m->type == WIRE_SILENT) return;
    for (uint32_t i = 0; i < count; i++) {
        say("%u %s", links[i], wire_type_name(m->type));
        if (m->type == WIRE_EVICT) say(": %s", m->abort.text);
        say("\n");
    }
}

static void on_close(void *user, uint32_t link, const char *reason)
{
    (void)user;
    (void)reason;
    say("%u closed\n", link);
}

static void on_status(void *user, uint32_t link, bool json)
{
    (void)user;
    (void)json;
    say("%u sees the status\n", link);
}

static void open_master(bool tokens)
{
    struct master_config c = {
        .out = {.send = on_send, .close = on_close, .status = on_status},
        .deadline = 100,
        .quorum = 2,
        .tokens = tokens};
    assert_true(serve(&c));
}

static int setup(void **state)
{
    (void)state;
    open_master(true);
    return 0;
}

/* Group 0: any. */
static void enter(uint32_t link, const char *name, uint8_t rights,
                  uint32_t group)
{
    struct grant grant = {
        .rights = rights, .any_group = group == 0, .group = group};
    snprintf(grant.name, sizeof grant.name, "%s", name);
    master_step(master, &(struct master_event){.type = MASTER_CONNECTED,
                                               .link = link,
                                               .now = now});
    master_step(master, &(struct master_event){.type = MASTER_GRANTED,
                                               .link = link,
                                               .now = now,
                                               .grant = &grant});
    expect("");
}

static void give(uint32_t link, const struct wire_msg *msg, const char *text)
{
    master_step(master, &(struct master_event){.type = MASTER_RECEIVED,
                                               .link = link,
                                               .now = now,
                                               .msg = msg});
    expect(text);
}

#define GIVE(link, text, ...)                                                  \
    do {                                                                       \
        struct wire_msg msg_ = {__VA_ARGS__};                                  \
        give(link, &msg_, text);                                               \
    } while (0)

static void test_rights(void **state)
{
    (void)state;
    enter(0, "ann", GRANT_OBSERVE, 0);
    GIVE(0,
         "0 EVICT: the token of ann gives no right to join: --issue --rights "
         "join\n0 closed\n",
         .type = WIRE_HELLO);
    enter(0, "ann", GRANT_OBSERVE, 0);
    GIVE(0,
         "0 EVICT: the token of ann gives no right to join: --issue --rights "
         "join\n0 closed\n",
         .type = WIRE_OFFERS_GET);
    enter(0, "ann", GRANT_OBSERVE, 0);
    GIVE(0, "0 sees the status\n", .type = WIRE_STATUS_GET);
    enter(1, "bob", GRANT_JOIN, 0);
    GIVE(1,
         "1 EVICT: the token of bob gives no right to observe: --issue "
         "--rights observe\n1 closed\n",
         .type = WIRE_STATUS_GET);
    enter(1, "bob", GRANT_JOIN | GRANT_OBSERVE, 0);
    GIVE(1,
         "1 EVICT: the token of bob gives no right to be relayed\n1 closed\n",
         .type = WIRE_RELAY);
    enter(1, "bob", GRANT_JOIN, 0);
    GIVE(1, "1 WELCOME\n", .type = WIRE_HELLO);
    enter(2, "", GRANT_RELAY, 0); /* the key of links */
    GIVE(2,
         "2 EVICT: the token of nobody gives no right to join: --issue "
         "--rights join\n2 closed\n",
         .type = WIRE_HELLO);
    enter(2, "", GRANT_RELAY, 0);
    GIVE(2, "2 EVICT: nobody is to be relayed so\n2 closed\n",
         .type = WIRE_RELAY); /* by N12a */
}

static void test_groups(void **state)
{
    (void)state;
    enter(0, "ann", GRANT_JOIN, 7);
    GIVE(0,
         "0 EVICT: the token of ann is for peer group 7, and it asks for group "
         "3\n0 closed\n",
         .type = WIRE_HELLO, .hello = {.group = 3});
    enter(0, "ann", GRANT_JOIN, 7);
    GIVE(0,
         "0 EVICT: the token of ann is for peer group 7, and it asks for group "
         "0\n0 closed\n",
         .type = WIRE_OFFERS_GET);
    enter(0, "ann", GRANT_JOIN, 7);
    GIVE(0, "0 OFFERS\n", .type = WIRE_OFFERS_GET, .offer = {.group = 7});
    GIVE(0, "0 WELCOME\n", .type = WIRE_HELLO, .hello = {.group = 7});
}

/* Without one nothing is granted: the driver has to say what it proved. */
static void test_no_token(void **state)
{
    (void)state;
    master_step(master,
                &(struct master_event){.type = MASTER_CONNECTED, .now = now});
    GIVE(0,
         "0 EVICT: the token of nobody gives no right to join: --issue "
         "--rights join\n0 closed\n",
         .type = WIRE_HELLO);
    (void)teardown(state);
    open_master(false);
    master_step(master,
                &(struct master_event){.type = MASTER_CONNECTED, .now = now});
    GIVE(0, "0 WELCOME\n", .type = WIRE_HELLO);
}

static void expel(uint32_t link, const char *why, const char *text)
{
    master_step(master, &(struct master_event){.type = MASTER_EXPELLED,
                                               .link = link,
                                               .now = now,
                                               .reason = why});
    expect(text);
}

static void test_expelled(void **state)
{
    (void)state;
    enter(0, "ann", GRANT_JOIN, 0);
    expel(0, "expired", "0 EVICT: expired\n0 closed\n");
    for (uint32_t i = 0; i < 3; i++) enter(i, "ann", GRANT_JOIN, 0);
    GIVE(0, "0 WELCOME\n", .type = WIRE_HELLO, .hello = {.self.hint = 0});
    GIVE(1, "1 WELCOME\n0 PROPOSE\n1 PROPOSE\n", .type = WIRE_HELLO,
         .hello = {.self.hint = 1});
    GIVE(2, "2 WELCOME\n", .type = WIRE_HELLO, .hello = {.self.hint = 2});
    expel(2, "revoked", "2 EVICT: revoked\n2 closed\n"); /* a newcomer */
    GIVE(0, "", .type = WIRE_READY, .round = 1);
    GIVE(1, "0 INSTALL\n1 INSTALL\n", .type = WIRE_READY, .round = 1);
    expel(1, "revoked", "1 EVICT: revoked\n1 closed\n0 FLUSH\n");
    assert_int_equal(master->peers[1].state, PEER_DEAD);
}

/* The time to say HELLO begins when the token is proved. */
static void test_time(void **state)
{
    (void)state;
    struct grant grant = {.rights = GRANT_JOIN, .any_group = true};
    master_step(master,
                &(struct master_event){.type = MASTER_CONNECTED, .now = now});
    now += 90;
    master_step(master, &(struct master_event){.type = MASTER_GRANTED,
                                               .now = now,
                                               .grant = &grant});
    now += 90;
    master_step(master,
                &(struct master_event){.type = MASTER_TICK, .now = now});
    expect("");
    now += 90;
    master_step(master,
                &(struct master_event){.type = MASTER_TICK, .now = now});
    assert_non_null(strstr(said, "0 closed\n"));
    said[0] = '\0';
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rights, setup, teardown),
        cmocka_unit_test_setup_teardown(test_groups, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_token, setup, teardown),
        cmocka_unit_test_setup_teardown(test_expelled, setup, teardown),
        cmocka_unit_test_setup_teardown(test_time, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
