/* litmus_channel.c - the byte queues and doorbells of two processes
 * (src/link/channel.h, rules L3, L5, L6). */
#include "litmus.h"

#include "../../src/link/channel.h"

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
