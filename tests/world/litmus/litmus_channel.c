/* litmus_channel.c - the byte queues and doorbells of two processes
 * (src/link/channel.h, rules L3, L5, L6). */
#include "litmus.h"

#include "../../../src/link/channel.h"

#include <string.h>

enum { SIZE = 32 * 1024, WORD = 8 };

static struct {
    struct channel_page page;
    _Alignas(8) uint8_t queues[4 * SIZE];
} shared;
static struct channel first, second; /* what `first` writes `second` reads */

static void prepare_sized(uint32_t size)
{
    memset(&shared.page, 0, sizeof shared.page);
    memset(shared.queues, 0, 64);
    memset(shared.queues + CHANNEL_REWIND, 0, 64);
    channel_init(&first, &shared.page, shared.queues, size, 0);
    channel_init(&second, &shared.page, shared.queues, size, 1);
}

static void prepare(void)
{
    prepare_sized(SIZE);
}

static void prepare_small(void)
{
    prepare_sized(2 * WORD);
}

/* A race that L11c allows: the reader takes no such bytes. */
static _Atomic uint64_t *racing(const uint8_t *at)
{
    return (_Atomic uint64_t *)(uintptr_t)at;
}

static uint64_t *word(const uint8_t *at)
{
    return (uint64_t *)(uintptr_t)at;
}

/* True: there was room. */
static bool write_word(struct channel *c, uint64_t value)
{
    uint8_t *to;
    if (channel_room(c, &to) < WORD) return false;
    *word(to) = value;
    channel_write(c, WORD);
    return true;
}

/* 0: nothing there. */
static uint64_t read_word(struct channel *c)
{
    const uint8_t *from;
    if (channel_ready(c, &from) < WORD) return 0;
    uint64_t value = *word(from);
    channel_read(c, WORD);
    return value;
}

/* ---------------------------------------------- bytes before their index */

static void write_two(void)
{
    (void)write_word(&first, 1);
    (void)write_word(&first, 2);
}

static void read_some(void)
{
    uint64_t next = 1;
    for (int i = 0; i < 2; i++) {
        uint64_t value = read_word(&second);
        litmus_check(value == 0 || value == next, "a word came too early");
        if (value != 0) next++;
    }
    litmus_check(!second.broken, "an index cannot be");
}

const struct litmus litmus_bytes = {.name = "bytes before index",
                                    .prepare = prepare,
                                    .threads = {write_two, read_some},
                                    .shared = &shared,
                                    .shared_size = sizeof shared};

/* ------------------------------------- a reader's loads before the reuse */

static void write_three(void)
{
    uint64_t value = 1;
    for (int i = 0; i < 4 && value <= 3; i++)
        if (write_word(&first, value)) value++;
    litmus_check(!first.broken, "an index cannot be");
}

const struct litmus litmus_reuse = {.name = "loads before reuse",
                                    .prepare = prepare_small,
                                    .threads = {write_three, read_some},
                                    .shared = &shared,
                                    .shared_size = sizeof shared};

/* ------------------------------------------------------ the base, rule L6 */

static void write_and_rewind(void)
{
    uint8_t *to;
    if (channel_room(&first, &to) < CHANNEL_REWIND) return;
    *word(to) = 1;
    channel_write(&first, CHANNEL_REWIND);
    (void)write_word(&first, 2);
}

static void read_and_follow(void)
{
    const uint8_t *from;
    uint64_t next = 1;
    for (int i = 0; i < 3; i++) {
        size_t size = channel_ready(&second, &from);
        if (size == 0) continue;
        litmus_check(*word(from) == next, "the base of another turn");
        channel_read(&second, next == 1 ? CHANNEL_REWIND : WORD);
        next++;
    }
}

const struct litmus litmus_base = {
    .name = "base before index",
    .prepare = prepare,
    .threads = {write_and_rewind, read_and_follow},
    .shared = &shared,
    .shared_size = sizeof shared};

/* ------------------------------------------------------- doorbell, rule L3 */

static void sleep_until(struct channel *c, uint32_t what, int bell)
{
    if (!channel_arm(c, what)) litmus_wait(bell);
    channel_disarm(c);
    litmus_take(bell);
}

static void ring(struct channel *c, uint32_t what, int bell)
{
    if (channel_ring(c, what)) litmus_signal(bell);
}

static void write_and_ring(void)
{
    (void)write_word(&first, 1);
    ring(&first, CHANNEL_WANTS_DATA, 0);
}

static void sleep_and_read(void)
{
    uint64_t value = read_word(&second);
    if (value == 0) {
        sleep_until(&second, CHANNEL_WANTS_DATA, 0);
        value = read_word(&second);
    }
    litmus_check(value == 1, "an end woke up for nothing");
}

const struct litmus litmus_data = {.name = "doorbell, data",
                                   .prepare = prepare,
                                   .threads = {write_and_ring, sleep_and_read},
                                   .shared = &shared,
                                   .shared_size = sizeof shared};

static void prepare_full(void)
{
    prepare_sized(2 * WORD);
    (void)write_word(&first, 1);
    (void)write_word(&first, 2);
}

static void read_and_ring(void)
{
    litmus_check(read_word(&second) == 1, "the word is there");
    ring(&second, CHANNEL_WANTS_ROOM, 0);
}

static void sleep_and_write(void)
{
    if (write_word(&first, 3)) return;
    sleep_until(&first, CHANNEL_WANTS_ROOM, 0);
    litmus_check(write_word(&first, 3), "an end woke up for nothing");
}

const struct litmus litmus_room = {.name = "doorbell, room",
                                   .prepare = prepare_full,
                                   .threads = {read_and_ring, sleep_and_write},
                                   .shared = &shared,
                                   .shared_size = sizeof shared};

/* The end that rings may clear a doorbell that was armed anew. */
static void ring_twice(void)
{
    write_and_ring();
    (void)write_word(&first, 2);
    ring(&first, CHANNEL_WANTS_DATA, 0);
}

static void sleep_twice(void)
{
    uint64_t last = 0;
    while (last < 2) {
        uint64_t value = read_word(&second);
        if (value == 0)
            sleep_until(&second, CHANNEL_WANTS_DATA, 0);
        else
            last = value;
    }
}

const struct litmus litmus_twice = {.name = "doorbell, twice",
                                    .prepare = prepare,
                                    .threads = {ring_twice, sleep_twice},
                                    .shared = &shared,
                                    .shared_size = sizeof shared,
                                    .preemptions = 4};

/* Both write and ring, and then sleep for what the other wrote. */
static void exchange_first(void)
{
    (void)write_word(&first, 1);
    ring(&first, CHANNEL_WANTS_DATA, 0);
    if (!channel_arm(&first, CHANNEL_WANTS_DATA)) litmus_wait(1);
    litmus_check(read_word(&first) == 1, "an end woke up for nothing");
}

static void exchange_second(void)
{
    (void)write_word(&second, 1);
    ring(&second, CHANNEL_WANTS_DATA, 1);
    if (!channel_arm(&second, CHANNEL_WANTS_DATA)) litmus_wait(0);
    litmus_check(read_word(&second) == 1, "an end woke up for nothing");
}

const struct litmus litmus_exchange = {
    .name = "doorbell, both ways",
    .prepare = prepare,
    .threads = {exchange_first, exchange_second},
    .shared = &shared,
    .shared_size = sizeof shared,
    .preemptions = 8};

/* ---------------------------------------------------------- posts, rule L11 */

enum { BOARD_WORDS = BOARD_SLOTS * BOARD_STRIDE / WORD };

static struct {
    struct channel_page page;
    _Alignas(8) uint8_t queues[4 * SIZE];
    _Alignas(BOARD_LINE) uint64_t board[BOARD_WORDS];
} posted;
static struct board board;
static uint64_t copy[2];

static void prepare_board(void)
{
    memset(&posted.page, 0, sizeof posted.page);
    memset(posted.queues, 0, 64);
    for (uint64_t i = 0; i < BOARD_SLOTS; i++)
        memset((uint8_t *)posted.board + board_slot_at(i), 0, 64);
    board = (struct board){(uint8_t *)posted.board, 0};
    channel_init(&first, &posted.page, posted.queues, SIZE, 0);
    channel_init(&second, &posted.page, posted.queues, SIZE, 1);
    channel_attach(&second, board.memory, (uint8_t *)copy, 0);
}

static void post_word(uint64_t value)
{
    size_t flags = channel_mark_post(&first, board.posts) ? BOARD_MARKED : 0;
    atomic_store_explicit(racing(board_begin(&board)), value,
                          memory_order_relaxed);
    board_post(&board, WORD | flags);
}

/* Where it lies; 0: nothing there, or not any more. */
static uint64_t look_at_word(void)
{
    const uint8_t *from;
    bool is_post;
    if (channel_look(&second, &from, &is_post) < WORD) return 0;
    uint64_t value =
        is_post ? atomic_load_explicit(racing(from), memory_order_relaxed)
                : *word(from);
    if (!is_post)
        channel_read(&second, WORD);
    else if (channel_holds(&second, 1))
        channel_skip_posts(&second, 1);
    else
        return 0;
    return value;
}

static void write_and_post(void)
{
    (void)write_word(&first, 1);
    post_word(2);
}

static void read_in_order(void)
{
    uint64_t next = 1;
    for (int i = 0; i < 3; i++) {
        uint64_t value = look_at_word();
        litmus_check(value == 0 || value == next, "a word came out of turn");
        if (value != 0) next++;
    }
    litmus_check(!second.broken, "a word cannot be");
}

const struct litmus litmus_posts = {.name = "posts in order",
                                    .prepare = prepare_board,
                                    .threads = {write_and_post, read_in_order},
                                    .shared = &posted,
                                    .shared_size = sizeof posted};

static void post_and_write(void)
{
    post_word(1);
    (void)write_word(&first, 2);
}

const struct litmus litmus_posts_first = {
    .name = "posts before bytes",
    .prepare = prepare_board,
    .threads = {post_and_write, read_in_order},
    .shared = &posted,
    .shared_size = sizeof posted};

/* The writer does not count this reader any more. */
static void post_over(void)
{
    board.posts = 0;
    post_word(1);
    board.posts = BOARD_SLOTS;
    post_word(9);
}

static void read_one(void)
{
    uint64_t value = look_at_word();
    litmus_check(value <= 1, "a post is taken for another one");
}

const struct litmus litmus_over = {.name = "posts written over",
                                   .prepare = prepare_board,
                                   .threads = {post_over, read_one},
                                   .shared = &posted,
                                   .shared_size = sizeof posted};

static void post_and_ring(void)
{
    post_word(1);
    ring(&first, CHANNEL_WANTS_DATA, 0);
}

static void sleep_and_look(void)
{
    uint64_t value = look_at_word();
    if (value == 0) {
        sleep_until(&second, CHANNEL_WANTS_DATA, 0);
        value = look_at_word();
    }
    litmus_check(value == 1, "an end woke up for nothing");
}

const struct litmus litmus_post_bell = {
    .name = "doorbell, posts",
    .prepare = prepare_board,
    .threads = {post_and_ring, sleep_and_look},
    .shared = &posted,
    .shared_size = sizeof posted};
