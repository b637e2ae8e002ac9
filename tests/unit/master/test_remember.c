/* test_remember.c - tests of what a coordinator remembers: nothing follows from
 * what is not kept, and a new one goes on from it (rules J1, J4, S4). */
#include "founded.h"

#include "../../../src/master/succession/memory.h"

enum { MEMBERS = 2, DEADLINE = 100 };

static bool full; /* the disk */
static struct master_memory kept;

static bool on_remember(void *user, const struct master_memory *memory)
{
    (void)user;
    if (!full || *said == '\0') /* it is asked more than once */
        say("%s %u. ", full ? "refused" : "kept", (unsigned)memory->round);
    if (!full) kept = *memory;
    return !full;
}

static void on_send(void *user, const uint32_t *links, uint32_t count,
                    const struct wire_msg *m)
{
    (void)user, (void)links;
    if (m->type == WIRE_INSTALL)
        say("install %u to %u. ", (unsigned)m->round, (unsigned)count);
    if (m->type == WIRE_EVICT) say("evict %u. ", (unsigned)links[0] + 1);
    if (m->type == WIRE_STATE)
        say("role %u revision %u. ", (unsigned)m->sync.role,
            (unsigned)m->sync.revision);
}

static int begin(const struct master_memory *memory)
{
    struct master_config c = {
        .out = {.send = on_send, .close = say_close, .remember = on_remember},
        .memory = memory,
        .key = {{5, 6}},
        .deadline = DEADLINE,
        .quorum = MEMBERS};
    return found(&c);
}

static int setup(void **state)
{
    (void)state;
    full = false;
    return begin(NULL);
}

static void synchronize(uint32_t link, uint64_t revision, uint64_t content)
{
    static uint32_t calls;
    struct wire_msg m = {.type = WIRE_SYNC,
                         .round = ++calls,
                         .epoch =
                             master->groups[master->peers[link].group].epoch,
                         .sync = {.strategy = SYNC_ENFORCE_POPULAR,
                                  .revision = revision,
                                  .content = content}};
    step(MASTER_RECEIVED, link, &m);
}

static void test_a_view_waits_for_the_disk(void **state)
{
    (void)state;
    assert_int_equal(kept.round, 1);
    assert_int_equal(kept.id, 2);
    assert_int_equal(kept.key.word[1], 6);
    full = true;
    step(MASTER_CLOSED, 1, NULL);
    struct wire_msg flushed = {.type = WIRE_FLUSHED, .round = 2};
    struct wire_msg ready = {.type = WIRE_READY, .round = 2};
    step(MASTER_RECEIVED, 0, &flushed);
    step(MASTER_RECEIVED, 0, &ready);
    expect("refused 2. ");
    /* Heartbeats decide nothing; the tick asks again. */
    for (int i = 0; i < 5 * DEADLINE; i += 10) {
        struct wire_msg beat = {.type = WIRE_HEARTBEAT};
        now += 10;
        step(MASTER_RECEIVED, 0, &beat);
        step(MASTER_TICK, 0, NULL);
        expect("refused 2. ");
    }
    full = false;
    step(MASTER_TICK, 0, NULL);
    expect("kept 2. install 2 to 1. ");
}

static void test_a_synchronization_waits_for_the_disk(void **state)
{
    (void)state;
    full = true;
    for (uint32_t link = 0; link < MEMBERS; link++) synchronize(link, 7, 70);
    assert_int_equal(strncmp(said, "refused 1. ", 11), 0);
    assert_null(strstr(said, "role"));
    said[0] = '\0';
    full = false;
    step(MASTER_TICK, 0, NULL);
    expect("kept 1. role 0 revision 7. ");
    assert_int_equal(kept.record_count, 1);
    assert_int_equal(kept.records[0].revision, 7);
    assert_int_equal(kept.records[0].content, 70);
}

static void restart(void)
{
    struct master_memory memory;
    static uint8_t bytes[MEMORY_SIZE_MAX];
    size_t size = memory_encode(&kept, bytes, sizeof bytes);
    assert_true(memory_decode(&memory, bytes, size));
    (void)teardown(NULL);
    assert_int_equal(begin(&memory), 0);
}

/* All members have died with it. The run resumes from what it had, and from
 * nothing else (S4). */
static void test_a_new_one_goes_on(void **state)
{
    (void)state;
    for (uint32_t link = 0; link < MEMBERS; link++) synchronize(link, 7, 70);
    said[0] = '\0';
    restart();
    assert_int_equal(master->round_last, 1 + MEMORY_ROUNDS_SKIPPED + 1);
    assert_int_equal(master->peers[0].info.id, 2 + MEMORY_IDS_SKIPPED + 1);
    assert_int_equal(master->key.word[0], 5);
    said[0] = '\0';
    synchronize(0, 6, 60);
    synchronize(1, 7, 70);
    assert_non_null(strstr(said, "revision 7"));
    assert_int_equal(kept.records[0].revision, 7);
    (void)restart();
    said[0] = '\0';
    synchronize(0, 8, 80);
    synchronize(1, 8, 80);
    assert_int_equal(kept.records[0].revision, 7); /* ahead: refused */
    assert_int_equal(kept.records[0].content, 70);
}

static void test_every_cut_and_every_flip_is_noticed(void **state)
{
    (void)state;
    struct master_memory memory;
    static uint8_t bytes[MEMORY_SIZE_MAX];
    for (uint32_t link = 0; link < MEMBERS; link++) synchronize(link, 7, 70);
    size_t size = memory_encode(&kept, bytes, sizeof bytes);
    for (size_t end = 0; end < size; end++) {
        uint8_t *exact = malloc(end + 1); /* for sanitizers */
        assert_non_null(exact);
        memcpy(exact, bytes, end);
        assert_false(memory_decode(&memory, exact, end));
        free(exact);
    }
    assert_true(memory_decode(&memory, bytes, size));
    assert_false(memory_decode(&memory, bytes, size + 1));
    bytes[3]++; /* another form */
    assert_false(memory_decode(&memory, bytes, size));
    bytes[3]--;
    bytes[4] = 0x80; /* a round that has none after it */
    assert_false(memory_decode(&memory, bytes, size));
    kept.records[1] = kept.records[0]; /* one group twice */
    kept.record_count = 2;
    size = memory_encode(&kept, bytes, sizeof bytes);
    assert_false(memory_decode(&memory, bytes, size));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_view_waits_for_the_disk),
        TEST(test_a_synchronization_waits_for_the_disk),
        TEST(test_a_new_one_goes_on),
        TEST(test_every_cut_and_every_flip_is_noticed),
    };
    return cmocka_run_group_tests_name("master/remember", tests, NULL, NULL);
}
