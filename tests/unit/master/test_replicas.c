/* test_replicas.c - a coordinator whose members keep its record, and the next
 * one, which collects it: message by message (rules H10 to H14, J5). Every
 * order of them, with several coordinators: test_fence. The member's side:
 * test_taken_over. */
#include "founded.h"

#include "../../../src/base/wire_resume.h"
#include "../../../src/master/succession/memory.h"

enum { MEMBERS = 3, DEADLINE = 100, GRACE = 6 * DEADLINE };

static struct wire_key secrets[MEMBERS];
static struct {
    struct wire_record_name name;
    uint8_t bytes[4096];
    uint32_t size;
} record; /* the last one that a coordinator has sent */

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user;
    if (m->type == WIRE_KEEP) {
        assert_true(m->keep.offset == 0 && m->keep.size == m->keep.total);
        assert_true(m->keep.size <= sizeof record.bytes);
        record.name = m->keep.name;
        record.size = m->keep.size;
        memcpy(record.bytes, m->keep.bytes, m->keep.size);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (m->type == WIRE_WELCOME && links[i] < MEMBERS)
            secrets[links[i]] = m->welcome.secret;
        if (m->type == WIRE_HEARTBEAT || m->type == WIRE_WELCOME) continue;
        if (m->type == WIRE_KEEP || m->type == WIRE_KEPT)
            say("%s %u.%u to %u. ", wire_type_name(m->type),
                (unsigned)m->keep.name.term, (unsigned)m->keep.name.seq,
                links[i]);
        else if (m->type == WIRE_CLAIM)
            say("CLAIM %u to %u. ", (unsigned)m->keep.name.term, links[i]);
        else
            say("%s to %u. ", wire_type_name(m->type), links[i]);
    }
}

static void begin(bool standby)
{
    struct master_config c = {.out = {.send = on_send, .close = say_close},
                              .key = {{5, 6}},
                              .secret = {{7, 8}},
                              .deadline = DEADLINE * PCCL_MS,
                              .grace = GRACE * PCCL_MS,
                              .quorum = MEMBERS,
                              .replicas = true,
                              .fenced = true,
                              .standby = standby};
    master = calloc(1, sizeof *master);
    assert_non_null(master);
    assert_true(master_init(master, &c));
}

static void kept(uint32_t link)
{
    struct wire_msg m = {.type = WIRE_KEPT};
    m.keep.name = record.name;
    step(MASTER_RECEIVED, link, &m);
}

static void hello(uint32_t link)
{
    struct wire_msg m = {.type = WIRE_HELLO};
    m.hello.self.hint = (int32_t)link;
    comes(link, &m);
}

/* Members 1, 2, 3 in one view, and all keep the record. */
static int setup(void **state)
{
    (void)state;
    now = 1;
    begin(false);
    for (uint32_t i = 0; i < MEMBERS; i++) hello(i);
    now += DEADLINE * PCCL_MS;
    step(MASTER_TICK, 0, NULL);
    all_are_ready();
    for (uint32_t i = 0; i < MEMBERS; i++) kept(i);
    said[0] = '\0';
    return master_count(master, PEER_MEMBER) == MEMBERS ? 0 : 1;
}

static void next(void)
{
    (void)teardown(NULL);
    begin(true);
    said[0] = '\0';
}

/* Of member link + 1, unless it says otherwise. */
static struct wire_msg resume_of(uint32_t link)
{
    struct wire_msg m = {.type = WIRE_RESUME, .epoch = 1};
    m.resume.id = link + 1;
    m.resume.secret = secrets[link];
    m.resume.term = m.resume.claimed = 1;
    m.resume.kept = record.name;
    return m;
}

static void resume(uint32_t link, const struct wire_msg *m)
{
    step(MASTER_CONNECTED, link, NULL);
    step(MASTER_RECEIVED, link, m);
}

static void back(uint32_t link)
{
    struct wire_msg m = resume_of(link);
    resume(link, &m);
}

static void give(uint32_t link)
{
    struct wire_msg m;
    uint32_t end =
        wire_record_part(&m, record.name, record.bytes, record.size, 0);
    assert_int_equal(end, record.size);
    step(MASTER_RECEIVED, link, &m);
}

static void confirm(uint32_t link, uint64_t term)
{
    struct wire_msg m = {.type = WIRE_CLAIM};
    m.keep.name.term = term;
    step(MASTER_RECEIVED, link, &m);
}

static void test_three_steps(void **state)
{
    (void)state;
    next();
    back(0);
    expect("KEEP_GET to 0. ");
    give(0);
    expect("");
    back(1);
    expect("CLAIM 2 to 0. CLAIM 2 to 1. ");
    confirm(0, 2);
    expect("");
    confirm(1, 2);
    expect("KEEP 2.2 to 0. KEEP 2.2 to 1. ");
    kept(1);
    expect("");
    kept(0);
    assert_non_null(strstr(said, "RESUMED to 0. RESUMED to 1. "));
}

static void test_who_comes_later_is_claimed_too(void **state)
{
    (void)state;
    next();
    back(0);
    give(0);
    back(1);
    said[0] = '\0';
    back(2);
    expect("CLAIM 2 to 2. ");
    confirm(2, 2);
    confirm(1, 2);
    expect("KEEP 2.2 to 0. KEEP 2.2 to 1. KEEP 2.2 to 2. ");
}

static void test_a_later_record_is_asked_for(void **state)
{
    (void)state;
    next();
    back(0);
    give(0);
    back(1);
    said[0] = '\0';
    struct wire_msg m = resume_of(2);
    m.resume.kept.seq++;
    resume(2, &m);
    expect("KEEP_GET to 2. ");
}

/* The highest that it has heard of, and one more. */
static void test_terms(void **state)
{
    (void)state;
    next();
    struct wire_msg m = resume_of(0);
    m.resume.claimed = 40;
    resume(0, &m);
    give(0);
    said[0] = '\0';
    back(1);
    expect("CLAIM 41 to 0. CLAIM 41 to 1. ");
    m = resume_of(2);
    m.resume.claimed = 50;
    resume(2, &m);
    expect("CLAIM 51 to 0. CLAIM 51 to 1. CLAIM 51 to 2. ");
    confirm(0, 51);
    confirm(1, 51);
    expect("KEEP 51.2 to 0. KEEP 51.2 to 1. KEEP 51.2 to 2. ");
    step(MASTER_CLOSED, 2, NULL);
    m.resume.claimed = 60;
    resume(2, &m);
    assert_non_null(strstr(said, "CLAIM 61 to 0. "));
}

/* Another coordinator has that term already. */
static void test_a_claim_of_a_term_that_is_taken(void **state)
{
    (void)state;
    next();
    back(0);
    give(0);
    back(1);
    said[0] = '\0';
    struct wire_msg m = resume_of(2);
    m.resume.term = 2;
    resume(2, &m);
    expect("CLAIM 3 to 0. CLAIM 3 to 1. CLAIM 3 to 2. ");
}

/* No coordinator can be above those. */
static void test_terms_have_an_end(void **state)
{
    (void)state;
    next();
    struct wire_msg m = resume_of(0);
    m.resume.claimed = UINT64_MAX;
    resume(0, &m);
    expect("close 0: names a term that cannot be\n");
    m = resume_of(1);
    m.resume.term = MEMORY_TERM_MAX;
    resume(1, &m);
    expect("close 1: names a term that cannot be\n");
}

/* It could be read, and what this coordinator would remember could not. */
static void test_a_record_that_none_follows(void **state)
{
    (void)state;
    struct master_memory memory;
    next();
    size_t voters = sizeof(uint32_t);
    assert_true(
        memory_decode(&memory, record.bytes + voters, record.size - voters));
    memory.round = UINT32_MAX / 2;
    static uint8_t bytes[sizeof record.bytes];
    size_t size = memory_encode(&memory, bytes, sizeof bytes);
    assert_int_equal(size, record.size - voters);
    memcpy(record.bytes + voters, bytes, size);
    back(0);
    said[0] = '\0';
    give(0);
    expect("EVICT to 0. close 0: sent a record that cannot be\n");
}

/* It has been claimed with this term, by this one or by another one, and says
 * so once. */
static void test_who_has_confirmed_gets_a_higher_term(void **state)
{
    (void)state;
    next();
    back(0);
    give(0);
    back(1);
    step(MASTER_CLOSED, 1, NULL);
    said[0] = '\0';
    struct wire_msg m = resume_of(1);
    m.resume.claimed = 2;
    resume(1, &m);
    expect("CLAIM 3 to 0. CLAIM 3 to 1. ");
}

static void test_a_member_counts_once(void **state)
{
    (void)state;
    next();
    back(0);
    give(0);
    said[0] = '\0';
    struct wire_msg m = resume_of(0);
    resume(1, &m);
    expect("close 0: it has come again\n");
}

/* Those who lack the record count as much, where nobody knows that it counts;
 * its voters are asked too. */
static void test_voters(void **state)
{
    (void)state;
    step(MASTER_CLOSED, 2,
         NULL); /* members 1 and 2 go on, and all three vote */
    assert_non_null(strstr(said, "FLUSH to 0. "));
    for (uint32_t i = 0; i < 2; i++) {
        struct wire_msg m = {.type = WIRE_FLUSHED, .round = master->round_last};
        step(MASTER_RECEIVED, i, &m);
    }
    said[0] = '\0';
    all_are_ready();
    expect("KEEP 1.2 to 0. KEEP 1.2 to 1. ");
    kept(0);
    expect("");
    kept(1);
    assert_non_null(strstr(said, "INSTALL to 0. INSTALL to 1. "));
}

/* A view that members may keep is installed, whoever is lost meanwhile (J5). */
static void test_a_decided_view(void **state)
{
    (void)state;
    step(MASTER_CLOSED, 2, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        struct wire_msg m = {.type = WIRE_FLUSHED, .round = master->round_last};
        step(MASTER_RECEIVED, i, &m);
    }
    all_are_ready();
    said[0] = '\0';
    kept(0);
    step(MASTER_CLOSED, 0, NULL);
    expect("");
    kept(1);
    assert_non_null(strstr(said, "INSTALL to 1. "));
}

static void take_over(void)
{
    for (uint32_t i = 0; i < 2; i++) back(i);
    give(0);
    for (uint32_t i = 0; i < 2; i++) confirm(i, master->replicas.claim);
    for (uint32_t i = 0; i < 2; i++) kept(i);
    assert_int_equal(master->replicas.phase, REPLICAS_SERVES);
}

/* A member may still be about to say READY for one of the former master's. */
static void test_no_round_is_named_twice(void **state)
{
    (void)state;
    next();
    take_over();
    uint32_t first = master->round_last;
    uint64_t id = master->id_last;
    next();
    take_over();
    assert_true(master->round_last >= first + MEMORY_ROUNDS_SKIPPED);
    assert_true(master->id_last >= id + MEMORY_IDS_SKIPPED);
}

/* Members were claimed, and died. A run that begins later asks none of them. */
static void test_what_is_given_up_is_void(void **state)
{
    (void)state;
    (void)teardown(NULL);
    begin(false);
    for (uint32_t i = 0; i < 2; i++) back(i);
    give(0);
    for (uint32_t i = 0; i < 2; i++) confirm(i, 2);
    for (uint32_t i = 0; i < 2; i++) step(MASTER_CLOSED, i, NULL);
    now += 2 * GRACE * PCCL_MS;
    for (uint32_t i = 0; i < MEMBERS; i++) hello(i);
    said[0] = '\0';
    step(MASTER_TICK, 0, NULL);
    all_are_ready();
    assert_int_equal(master_count(master, PEER_MEMBER), MEMBERS);
}

/* A coordinator that nobody is left with leads no more (H12), and asks for a
 * tick to see it. */
static void test_nobody_is_left(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < MEMBERS; i++) step(MASTER_CLOSED, i, NULL);
    assert_false(master->replicas.over);
    assert_true(master_next_tick(master) != PCCL_NEVER);
    now += 2 * GRACE * PCCL_MS;
    step(MASTER_TICK, 0, NULL);
    assert_true(master->replicas.over);
    assert_true(master_next_tick(master) == PCCL_NEVER);
}

/* A process that downloads before it joins learns nothing wrong (S10b): not
 * that the run is empty, while its members may come to this coordinator, or
 * have another one. The first member of a new run may ask, too. */
static void ask_for_offers(uint32_t link)
{
    struct wire_msg m = {.type = WIRE_OFFERS_GET};
    step(MASTER_CONNECTED, link, NULL);
    step(MASTER_RECEIVED, link, &m);
}

static void test_who_is_there_is_not_known(void **state)
{
    (void)state;
    next();
    ask_for_offers(0);
    expect("EVICT to 0. close 0: stands by for another coordinator\n");
    (void)teardown(NULL);
    begin(false);
    ask_for_offers(0);
    expect("EVICT to 0. close 0: waits for its members\n");
    now += DEADLINE * PCCL_MS;
    ask_for_offers(1);
    expect("OFFERS to 1. ");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_three_steps),
        CASE(test_who_comes_later_is_claimed_too),
        CASE(test_a_later_record_is_asked_for),
        CASE(test_terms),
        CASE(test_a_claim_of_a_term_that_is_taken),
        CASE(test_terms_have_an_end),
        CASE(test_a_record_that_none_follows),
        CASE(test_who_has_confirmed_gets_a_higher_term),
        CASE(test_a_member_counts_once),
        CASE(test_voters),
        CASE(test_a_decided_view),
        CASE(test_no_round_is_named_twice),
        CASE(test_what_is_given_up_is_void),
        CASE(test_nobody_is_left),
        CASE(test_who_is_there_is_not_known),
    };
    return cmocka_run_group_tests_name("master/replicas", tests, NULL, NULL);
}
