/* test_succession.c - a coordinator that takes the place of one that died, from
 * its side alone (rules H1 to H7). Sockets: run/successor; every moment of
 * death: test_sim, kind "masters". */
#include "founded.h"

#include "../../../src/base/siphash.h"
#include "../../../src/master/succession/memory.h"

enum { MEMBERS = 3, DEADLINE = 100, GRACE = 6 * DEADLINE };

static uint8_t journal[1 << 16];
static size_t journal_size;
static struct wire_key secrets[MEMBERS]; /* by link of the first coordinator */
static uint64_t term, answers;
static bool silent; /* nothing is said */
static bool full;   /* the disk */

static bool on_remember(void *user, const struct master_memory *memory)
{
    (void)user;
    if (full) return false;
    assert_true(memory_size(memory) <= sizeof journal);
    journal_size = memory_encode(memory, journal, sizeof journal);
    return true;
}

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user;
    for (uint32_t i = 0; i < count; i++) {
        if (m->type == WIRE_WELCOME && links[i] < MEMBERS)
            secrets[links[i]] = m->welcome.secret;
        if (m->type == WIRE_RESUMED) term = m->resume.term;
        answers += m->type == WIRE_ANSWER;
        if (silent || m->type == WIRE_HEARTBEAT || m->type == WIRE_WELCOME)
            continue;
        if (m->type == WIRE_STATE)
            say("STATE %u to %u. ", m->sync.role, links[i]);
        else if (m->type == WIRE_ANSWER)
            say("ANSWER %u to %u. ", m->vote.flag, links[i]);
        else
            say("%s to %u. ", wire_type_name(m->type), links[i]);
    }
}

static void on_note(void *user, const struct master_note *note)
{
    (void)user;
    if (note->kind == NOTE_SUCCESSION) say("(%s) ", note->reason);
}

static struct master_config config(const struct master_memory *memory,
                                   uint32_t quorum)
{
    return (struct master_config){.out = {.send = on_send,
                                          .close = say_close,
                                          .note = on_note,
                                          .remember = on_remember},
                                  .memory = memory,
                                  .key = {{5, 6}},
                                  .secret = {{7, 8}},
                                  .deadline = DEADLINE * PCCL_MS,
                                  .grace = GRACE * PCCL_MS,
                                  .quorum = quorum};
}

static int setup(void **state)
{
    (void)state;
    struct master_config c = config(NULL, MEMBERS);
    answers = 0;
    return found(&c);
}

static struct master_memory memory;

/* It dies, and the next one begins. */
static void next(void)
{
    (void)teardown(NULL);
    assert_true(memory_decode(&memory, journal, journal_size));
    struct master_config c = config(&memory, MEMBERS);
    master = calloc(1, sizeof *master);
    assert_non_null(master);
    assert_true(master_init(master, &c));
    assert_true(memory_keep(master));
    said[0] = '\0';
}

static struct wire_msg resume_of(uint32_t member)
{
    struct wire_msg m = {.type = WIRE_RESUME, .epoch = 1};
    m.resume.id = member + 1;
    m.resume.secret = secrets[member];
    m.resume.term = 1;
    return m;
}

static void resume(uint32_t link, const struct wire_msg *m)
{
    step(MASTER_CONNECTED, link, NULL);
    step(MASTER_RECEIVED, link, m);
}

/* Says that it waits for nothing more. */
static void spoken(uint32_t link, uint32_t member)
{
    struct wire_msg m = resume_of(member);
    step(MASTER_RECEIVED, link, &m);
}

static void test_all_come_back(void **state)
{
    (void)state;
    next();
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct wire_msg m = resume_of(i);
        resume(i, &m);
    }
    assert_int_equal(term, 2);
    assert_null(strstr(said, "FLUSH")); /* nobody has said what it waits for */
    for (uint32_t i = 0; i < MEMBERS; i++) spoken(i, i);
    assert_non_null(strstr(said, "takes over 3 members"));
    assert_non_null(strstr(said, "3 of 3 members are back"));
    assert_non_null(strstr(said, "FLUSH to 2. ")); /* a round as after a loss */
    assert_int_equal(master_count(master, PEER_MEMBER), MEMBERS);
    assert_int_equal(master->peers[1].rank, 1);
}

static void test_who_does_not_come_is_dead(void **state)
{
    (void)state;
    next();
    for (uint32_t i = 0; i < 2; i++) {
        struct wire_msg m = resume_of(i);
        resume(i, &m);
        spoken(i, i);
    }
    assert_null(strstr(said, "FLUSH"));
    for (int i = 0; i < 2 * GRACE / DEADLINE; i++) {
        struct wire_msg beat = {.type = WIRE_HEARTBEAT};
        now += DEADLINE / 2 * PCCL_MS;
        for (uint32_t k = 0; k < 2; k++) step(MASTER_RECEIVED, k, &beat);
        step(MASTER_TICK, 0, NULL);
    }
    assert_non_null(strstr(said, "2 of 3 members are back"));
    assert_non_null(strstr(said, "FLUSH to 1. "));
    assert_int_equal(master_count(master, PEER_DEAD), 1);
    struct wire_msg late = resume_of(2);
    said[0] = '\0';
    resume(4, &late);
    expect("EVICT to 4. close 4: it came back too late, and was given up\n");
}

static void test_strangers_are_refused(void **state)
{
    (void)state;
    next();
    struct wire_msg m = resume_of(0);
    m.resume.secret.word[1] ^= 1;
    resume(0, &m);
    assert_non_null(strstr(said, "it is no member of this run"));
    m = resume_of(0);
    m.resume.id = 77;
    resume(1, &m);
    assert_non_null(strstr(said, "close 1: it is no member of this run"));
    m = resume_of(0);
    m.epoch = 9;
    resume(2, &m);
    assert_non_null(strstr(said, "the view that it has is not the last one"));
    m = resume_of(0);
    resume(3, &m);
    m = resume_of(0);
    resume(4, &m);
    assert_non_null(strstr(said, "close 4: it is not in the last view"));
}

/* A member is not ended by a coordinator that has an old copy of the journal:
 * it goes on waiting for the right one (H1). */
static void test_an_old_journal_evicts_nobody(void **state)
{
    (void)state;
    next();
    struct wire_msg m = resume_of(0);
    m.resume.term = 2;
    resume(0, &m);
    assert_null(strstr(said, "EVICT"));
    assert_non_null(strstr(said, "has an old copy of the journal"));
    assert_non_null(strstr(said, "close 0: has known a later coordinator"));
}

static void test_without_a_grace_nobody_is_taken_over(void **state)
{
    (void)state;
    next();
    master->succession.grace = 0;
    struct wire_msg m = resume_of(0);
    resume(0, &m);
    assert_non_null(strstr(said, "it has no --master-grace"));
}

/* One member has the answer to a vote; the others, that wait in it, get the
 * same one (H6). */
static void test_an_answer_is_repeated(void **state)
{
    (void)state;
    next();
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct wire_msg m = resume_of(i);
        if (i == 1) {
            m.resume.answered[VOTE_PENDING] = 4;
            m.resume.answer[VOTE_PENDING] = 1;
        }
        resume(i, &m);
        struct wire_msg vote = {.type = WIRE_VOTE, .round = 9, .epoch = 1};
        vote.vote.kind = VOTE_PENDING;
        if (i != 1) step(MASTER_RECEIVED, i, &vote);
        step(MASTER_RECEIVED, i, &m);
    }
    assert_int_equal(answers, 2);
    assert_non_null(strstr(said, "ANSWER 1 to 0. ANSWER 1 to 2. "));
}

static struct wire_msg a_sync(uint64_t content, uint64_t revision)
{
    static uint32_t calls = 100;
    struct wire_msg m = {.type = WIRE_SYNC, .round = ++calls, .epoch = 1};
    m.sync.strategy = SYNC_ENFORCE_POPULAR;
    m.sync.revision = revision;
    m.sync.content = content;
    return m;
}

static void ask(uint32_t link, uint64_t content, bool again, uint64_t ended)
{
    struct wire_msg m = a_sync(content, 3);
    m.sync.again = again;
    m.sync.id = ended;
    step(MASTER_RECEIVED, link, &m);
}

static void ask_at(uint32_t link, uint64_t content, uint64_t revision)
{
    struct wire_msg m = a_sync(content, revision);
    step(MASTER_RECEIVED, link, &m);
}

/* The first coordinator has told one member that a synchronization is complete,
 * and died. Who has the state is told so, too; who has another one is not, for
 * nobody gives it any more (H6). */
static void test_the_end_of_a_synchronization_is_repeated(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < MEMBERS; i++) ask(i, 30, false, 0);
    assert_non_null(strstr(said, "STATE 0 to 2. "));
    uint64_t id = master->groups[0].synced;
    assert_true(id > 0);
    next();
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct wire_msg m = resume_of(i);
        if (i == 0) m.resume.sync_over = m.resume.sync_well = id;
        resume(i, &m);
        if (i > 0) ask(i, i == 1 ? 30 : 31, true, 0);
        step(MASTER_RECEIVED, i, &m);
    }
    assert_non_null(strstr(said, "STATE 0 to 1. "));
    char none[32];
    snprintf(none, sizeof none, "STATE %u to 2. ", SYNC_NO_STATE);
    assert_non_null(strstr(said, none));
    assert_true(master->peers[0].sync.well == id);
    assert_true(master->peers[1].sync.well == id);
    assert_false(master->peers[2].sync.well == id);
}

/* Who was in the last synchronization gives its state in the next one, though
 * it asked before all others had resumed, and was refused in one between. */
static void test_who_has_the_state_is_known(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < MEMBERS; i++) ask(i, 30, false, 0);
    uint64_t id = master->groups[0].synced;
    next();
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct wire_msg m = resume_of(i);
        m.resume.sync_over = id + 1;
        m.resume.sync_well = id;
        resume(i, &m);
        step(MASTER_RECEIVED, i, &m);
        ask_at(i, 40, 4);
    }
    struct wire_msg flushed = {
        .type = WIRE_FLUSHED, .round = master->round_last, .epoch = 1};
    for (uint32_t i = 0; i < MEMBERS; i++) step(MASTER_RECEIVED, i, &flushed);
    all_are_ready();
    assert_non_null(strstr(said, "STATE 0 to 2. "));
    assert_int_equal(master->records[0].revision, 4);
}

/* Nobody was told how it has ended: it is decided anew, as if it had not been
 * begun. The journal has nothing of it. */
static void test_a_synchronization_under_way_never_was(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < MEMBERS; i++) ask(i, i == 2 ? 31 : 30, false, 0);
    assert_true(master->groups[0].sync_id != 0);
    next();
    for (uint32_t i = 0; i < MEMBERS; i++) {
        struct wire_msg m = resume_of(i);
        resume(i, &m);
        step(MASTER_RECEIVED, i, &m);
    }
    assert_false(master->records[0].used);
}

/* The disk refuses the record of a view, and a member of it is lost. The next
 * record has the will of that view, whatever is written for: it is installed,
 * and who has it in hand is taken over (J5). */
static void test_a_refused_view_is_installed(void **state)
{
    (void)state;
    step(MASTER_CLOSED, 2, NULL);
    struct wire_msg flushed = {
        .type = WIRE_FLUSHED, .round = master->round_last, .epoch = 1};
    for (uint32_t i = 0; i < 2; i++) step(MASTER_RECEIVED, i, &flushed);
    full = true;
    all_are_ready();
    said[0] = '\0';
    step(MASTER_CLOSED, 0, NULL);
    expect("");
    full = false;
    uint32_t round = master->round_last;
    step(MASTER_TICK, 0, NULL);
    expect("INSTALL to 1. FLUSH to 1. ");
    next();
    struct wire_msg m = resume_of(1);
    m.round = round; /* it has not read INSTALL */
    resume(1, &m);
    expect("(takes over 2 members; waits for them for up to 0 s) "
           "RESUMED to 1. INSTALL to 1. ");
}

static bool refused; /* memory for the frames of a will */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
    return refused && size == WIRE_FRAME_MAX ? NULL : __real_malloc(size);
}

/* Memory ends while a will is written. Records that are written meanwhile have
 * the will of the view in force, and no half one (H3). */
static void test_half_a_will_is_none(void **state)
{
    (void)state;
    static uint8_t will[sizeof journal];
    assert_true(memory_decode(&memory, journal, journal_size));
    size_t size = memory.wills[0].size;
    memcpy(will, memory.wills[0].bytes, size);
    step(MASTER_CLOSED, 2, NULL);
    struct wire_msg flushed = {
        .type = WIRE_FLUSHED, .round = master->round_last, .epoch = 1};
    for (uint32_t i = 0; i < 2; i++) step(MASTER_RECEIVED, i, &flushed);
    said[0] = '\0';
    refused = true;
    all_are_ready();
    expect("");
    assert_true(memory_keep(master));
    assert_true(memory_decode(&memory, journal, journal_size));
    assert_int_equal(memory.will_count, 1);
    assert_int_equal(memory.wills[0].size, size);
    assert_memory_equal(memory.wills[0].bytes, will, size);
    refused = false;
    step(MASTER_TICK, 0, NULL);
    expect("INSTALL to 0. INSTALL to 1. ");
}

/* Two numbers of the paper's table: keys 0, 1, .. 15, inputs of 0 and of 8
 * bytes 0, 1, ... */
static void test_siphash(void **state)
{
    (void)state;
    const uint64_t key[2] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
    const uint64_t eight = 0x0706050403020100u;
    assert_true(siphash_words(key, NULL, 0) == 0x726fdb47dd0e0e31u);
    assert_true(siphash_words(key, &eight, 1) == 0x93f5f5799a932462u);
}

/* Wills that no coordinator has written: refused, never obeyed. */
static void test_damaged_wills(void **state)
{
    (void)state;
    uint8_t *copy = malloc(journal_size);
    assert_non_null(copy);
    memcpy(copy, journal, journal_size);
    size_t size = journal_size;
    silent = true;
    for (size_t at = 0; at < size; at++) {
        memcpy(journal, copy, size);
        journal[at] = (uint8_t)(journal[at] ^ 1u << at % 8);
        if (!memory_decode(&memory, journal, size)) continue;
        struct master_config c = config(&memory, MEMBERS);
        struct master *m = calloc(1, sizeof *m);
        assert_non_null(m);
        c.out.remember = NULL;
        (void)master_init(m, &c);
        master_free(m);
        free(m);
    }
    silent = false;
    free(copy);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_all_come_back),
        CASE(test_who_does_not_come_is_dead),
        CASE(test_strangers_are_refused),
        CASE(test_an_old_journal_evicts_nobody),
        CASE(test_without_a_grace_nobody_is_taken_over),
        CASE(test_an_answer_is_repeated),
        CASE(test_the_end_of_a_synchronization_is_repeated),
        CASE(test_who_has_the_state_is_known),
        CASE(test_a_synchronization_under_way_never_was),
        CASE(test_a_refused_view_is_installed),
        CASE(test_half_a_will_is_none),
        cmocka_unit_test(test_siphash),
        CASE(test_damaged_wills),
    };
    return cmocka_run_group_tests_name("master/succession", tests, NULL, NULL);
}
