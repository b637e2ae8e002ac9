/* test_board.c - posts (rule L11): a multicast ring whose posts come in order
 * with the bytes of each reader's channel, and readers that are left behind. */
#include "../unit.h"

#include "../../../src/link/channel.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 16 * 1024, READERS = 2, SMALL = 40 };

static struct board board;
static struct channel_page pages[READERS];
static uint8_t *queues[READERS], *copies[READERS];
static struct channel writer[READERS], reader[READERS];

static int setup(void **state)
{
    (void)state;
    void *memory = mmap(NULL, BOARD_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    board = (struct board){.memory = memory};
    memset(pages, 0, sizeof pages);
    for (size_t i = 0; i < READERS; i++) {
        queues[i] = calloc(4, SIZE);
        copies[i] = malloc(BOARD_POST_MAX);
        channel_init(&writer[i], &pages[i], queues[i], SIZE, 0);
        channel_init(&reader[i], &pages[i], queues[i], SIZE, 1);
        channel_attach(&reader[i], board.memory, copies[i], board.posts);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (size_t i = 0; i < READERS; i++) {
        free(queues[i]);
        free(copies[i]);
    }
    return munmap(board.memory, BOARD_SIZE);
}

/* False: rule L11b forbids it. */
static bool post_as(uint8_t value, size_t size, size_t flags)
{
    for (size_t i = 0; i < READERS; i++) {
        if (!channel_may_post(&writer[i], board.posts)) return false;
    }
    for (size_t i = 0; i < READERS && flags != BOARD_HINT; i++) {
        if (channel_mark_post(&writer[i], board.posts)) flags |= BOARD_MARKED;
    }
    memset(board_begin(&board), value, size);
    board_post(&board, size | flags);
    return true;
}

static bool post(uint8_t value, size_t size)
{
    return post_as(value, size, 0);
}

static void send(size_t i, uint8_t value, size_t size)
{
    uint8_t *to = NULL;
    assert_true(channel_room(&writer[i], &to) >= size);
    memset(to, value, size);
    channel_write(&writer[i], size);
}

/* The next bytes are so many of that value, read in portions. */
static void expect(size_t i, uint8_t value, size_t size, size_t portion)
{
    while (size > 0) {
        const uint8_t *from = NULL;
        size_t ready = channel_ready(&reader[i], &from);
        assert_true(ready > 0 && ready <= size);
        if (ready > portion) ready = portion;
        for (size_t k = 0; k < ready; k++) assert_int_equal(from[k], value);
        channel_read(&reader[i], ready);
        size -= ready;
    }
}

static void expect_none(size_t i)
{
    const uint8_t *from;
    assert_int_equal(channel_ready(&reader[i], &from), 0);
    assert_false(channel_shows(&reader[i]));
    assert_false(reader[i].broken);
}

/* Posts come in order with the bytes of a channel, also those that are not read
 * when the post is made. */
static void test_order(void **state)
{
    (void)state;
    for (uint8_t turn = 0; turn < 100; turn++) {
        if (turn % 2) send(0, turn, 300);
        assert_true(post((uint8_t)(turn + 1), SMALL));
        send(0, (uint8_t)(turn + 2), 100);
        assert_true(post((uint8_t)(turn + 3), BOARD_POST_MAX));
        send(0, (uint8_t)(turn + 4), 200);
        assert_true(channel_shows(&reader[0]));
        if (turn % 2) expect(0, turn, 300, 299);
        expect(0, (uint8_t)(turn + 1), SMALL, 7);
        expect(0, (uint8_t)(turn + 2), 100, 60);
        expect(0, (uint8_t)(turn + 3), BOARD_POST_MAX, 50000);
        expect(0, (uint8_t)(turn + 4), 200, SIZE);
        expect(1, (uint8_t)(turn + 1), SMALL, SMALL);
        expect(1, (uint8_t)(turn + 3), BOARD_POST_MAX, SIZE);
        for (size_t i = 0; i < READERS; i++) expect_none(i);
    }
}

/* Hints are no part of the channel. */
static void test_hints(void **state)
{
    (void)state;
    const uint8_t *hint;
    bool posted;
    assert_true(post_as(1, SMALL, BOARD_HINT));
    expect_none(0);
    assert_true(post(2, SMALL) && post_as(3, SMALL, BOARD_HINT));
    assert_true(post(4, SMALL));
    assert_int_equal(channel_look(&reader[0], &hint, &posted), SMALL);
    assert_null(channel_look_at_hint(&reader[0], 1, SMALL - 1));
    assert_null(channel_look_at_hint(&reader[0], 2, SMALL));
    assert_null(channel_look_at_hint(&reader[0], 0, SMALL));
    hint = channel_look_at_hint(&reader[0], 1, SMALL);
    assert_non_null(hint);
    assert_true(hint[0] == 3 && hint[SMALL - 1] == 3);
    expect(0, 2, SMALL, 3);
    expect(0, 4, SMALL, SMALL);
    expect(1, 2, SMALL, SMALL);
    assert_non_null(channel_look_at_hint(&reader[1], 0, SMALL));
    expect(1, 4, SMALL, SMALL);
}

/* A post may be read where it lies, as long as it is there. */
static void test_look(void **state)
{
    (void)state;
    const uint8_t *from = NULL;
    bool posted = false;
    assert_true(post(1, SMALL) && post(2, SMALL));
    assert_int_equal(channel_look(&reader[0], &from, &posted), SMALL);
    assert_true(posted && from[0] == 1 && channel_holds(&reader[0], 2));
    channel_skip_posts(&reader[0], 1);
    assert_int_equal(channel_look(&reader[0], &from, &posted), SMALL);
    assert_true(posted && from[0] == 2);
    for (size_t i = 0; i < BOARD_SLOTS; i++) { /* nobody counts any more */
        memset(board_begin(&board), 99, SMALL);
        board_post(&board, SMALL);
    }
    assert_false(channel_holds(&reader[0], 1));
    /* A post that has been copied in part is read on. */
    channel_attach(&reader[1], board.memory, copies[1], board.posts - 1);
    assert_int_equal(channel_ready(&reader[1], &from), SMALL);
    channel_read(&reader[1], 1);
    assert_int_equal(channel_look(&reader[1], &from, &posted), SMALL - 1);
    assert_false(posted);
    assert_ptr_equal(from, copies[1] + 1);
    send(1, 5, 30);
    channel_read(&reader[1], SMALL - 1);
    assert_int_equal(channel_look(&reader[1], &from, &posted), 30);
    assert_true(!posted && from[0] == 5);
}

/* The slowest reader holds the writer up. */
static void test_room(void **state)
{
    (void)state;
    for (uint8_t i = 0; i < BOARD_SLOTS; i++) assert_true(post(i, SMALL));
    for (uint8_t i = 0; i < BOARD_SLOTS; i++) expect(0, i, SMALL, SMALL);
    assert_false(post(0, SMALL));
    expect(1, 0, SMALL, 1);
    assert_true(post(8, SMALL));
    assert_false(post(9, SMALL));
    for (uint8_t i = 1; i < 9; i++) expect(1, i, SMALL, SMALL);
    expect(0, 8, SMALL, SMALL);
    expect_none(0);
}

/* A reader that comes later reads the posts from then on. */
static void test_attach(void **state)
{
    (void)state;
    for (uint8_t i = 0; i < 5; i++) assert_true(post(i, SMALL));
    channel_attach(&reader[1], board.memory, copies[1], board.posts);
    expect_none(1);
    assert_true(post(5, SMALL));
    expect(1, 5, SMALL, SMALL);
}

/* A post that has been copied stays; one that is written over meanwhile, or is
 * being written, is never taken for another one. */
static void test_left_behind(void **state)
{
    (void)state;
    const uint8_t *from = NULL;
    assert_true(post(1, SMALL));
    assert_int_equal(channel_ready(&reader[0], &from), SMALL);
    assert_true(post(2, SMALL));
    /* The writer does not count the readers any more. */
    for (uint8_t i = 0; i < BOARD_SLOTS; i++) {
        memset(board_begin(&board), 99, SMALL);
        board_post(&board, SMALL);
    }
    expect(0, 1, SMALL, SMALL);
    expect_none(0);
    (void)board_begin(&board);
    expect_none(1);
}

/* Amid a copy, the writer begins with another post in its place. */
static void on_fault(int signal)
{
    (void)signal;
    (void)mprotect(board.memory, BOARD_SIZE, PROT_READ | PROT_WRITE);
    (void)board_begin(&board);
}

static void test_left_behind_amid(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uint8_t *from;
    struct sigaction was, now = {.sa_handler = on_fault};
    assert_true(post(1, BOARD_POST_MAX));
    size_t last = board_slot_at(board.posts) + BOARD_POST_MAX;
    board.posts += BOARD_SLOTS - 1;
    assert_int_equal(sigaction(SIGSEGV, &now, &was), 0);
    assert_int_equal(
        mprotect(board.memory + last / page * page, page, PROT_NONE), 0);
    assert_int_equal(channel_ready(&reader[0], &from), 0);
    assert_int_equal(sigaction(SIGSEGV, &was, NULL), 0);
    assert_true(reader[0].broken);
}

/* The other end may write anything (L10). */
static void test_lies(void **state)
{
    (void)state;
    const uint8_t *from;
    static const uint64_t sizes[] = {0, BOARD_POST_MAX + 1,
                                     (1 << BOARD_SIZE_BITS) - 1};
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        (void)board_begin(&board);
        board_post(&board, sizes[i]);
        channel_attach(&reader[0], board.memory, copies[0], board.posts - 1);
        assert_int_equal(channel_ready(&reader[0], &from), 0);
        assert_true(reader[0].broken && channel_shows(&reader[0]));
        reader[0].broken = false;
    }
    (void)board_begin(&board);
    board_post(&board, SMALL | BOARD_MARKED);
    struct channel_mark *mark =
        &writer[0].own->marks[board.posts % BOARD_SLOTS];
    atomic_store(&mark->post, board.posts);
    atomic_store(&mark->at, reader[0].read + SIZE + 1);
    assert_int_equal(channel_ready(&reader[0], &from), 0);
    assert_true(reader[0].broken);
    for (int i = 0; i < BOARD_SLOTS; i++) board.posts++;
    atomic_store(&reader[0].own->taken, board.posts + 1);
    assert_false(channel_may_post(&writer[0], board.posts));
    assert_true(writer[0].broken);
}

/* An end that arms its doorbell finds the post that is there already, and one
 * that comes later wakes it. */
static void test_sleep(void **state)
{
    (void)state;
    assert_false(channel_arm(&reader[0], CHANNEL_WANTS_DATA));
    assert_true(post(1, SMALL));
    assert_true(channel_ring(&writer[0], CHANNEL_WANTS_DATA));
    assert_true(channel_arm(&reader[0], CHANNEL_WANTS_DATA));
    const uint8_t *from;
    assert_int_equal(channel_ready(&reader[0], &from), SMALL);
    channel_read(&reader[0], SMALL - 1);
    assert_true(channel_arm(&reader[0], CHANNEL_WANTS_DATA));
    expect(0, 1, 1, 1);
    assert_false(channel_arm(&reader[0], CHANNEL_WANTS_DATA));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hints, setup, teardown),
        cmocka_unit_test_setup_teardown(test_look, setup, teardown),
        cmocka_unit_test_setup_teardown(test_room, setup, teardown),
        cmocka_unit_test_setup_teardown(test_attach, setup, teardown),
        cmocka_unit_test_setup_teardown(test_left_behind, setup, teardown),
        cmocka_unit_test_setup_teardown(test_left_behind_amid, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sleep, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
