/* test_doorbell.c - no wake-up is lost (rule L3): in each round one end
 * provides the data or room that the other end is about to sleep for, at the
 * same moment. The sleeping end finds it, or the other end rings.
 *
 * Two threads run a bounded number of rounds. Each round is a race of a few
 * instructions, and a different delay in each meets most of their orders. */
#include "../unit.h"

#include "../../../src/link/channel.h"

#include <pthread.h>
#include <sched.h>

enum { SIZE = 4096, ROUNDS = 100 * 1000, DELAYS = 64, SPINS = 2000 };

static struct channel_page page;
static uint8_t queues[4 * SIZE];
static struct channel sleeper, partner;
static uint32_t sleeps_for;

static atomic_int begun, ended; /* rounds */
static atomic_bool rang;
static atomic_int ready; /* a rendezvous of both, once a round */

static void wait_for(atomic_int *value, int least)
{
    for (int i = 0; atomic_load_explicit(value, memory_order_acquire) < least;
         i++) {
        if (i > SPINS) sched_yield(); /* it may need this processor */
    }
}

static void delay(int steps)
{
    for (int i = 0; i < steps; i++) __asm__ volatile("" ::: "memory");
}

/* Both threads leave it at nearly the same time. */
static void meet(int round)
{
    atomic_fetch_add(&ready, 1);
    wait_for(&ready, 2 * round);
}

/* Reads or writes, and rings, as shared-memory connections do. */
static void *act(void *unused)
{
    (void)unused;
    for (int round = 1; round <= ROUNDS; round++) {
        uint8_t *to;
        const uint8_t *from;
        wait_for(&begun, round);
        meet(round);
        delay(round * 7 % DELAYS);
        if (sleeps_for == CHANNEL_WANTS_ROOM)
            channel_read(&partner, channel_ready(&partner, &from));
        else
            channel_write(&partner, channel_room(&partner, &to));
        atomic_store(&rang, channel_ring(&partner, sleeps_for));
        atomic_store_explicit(&ended, round, memory_order_release);
    }
    return NULL;
}

/* Full before a sleep for room, empty before one for data. */
static void prepare(void)
{
    uint8_t *to;
    const uint8_t *from;
    if (sleeps_for == CHANNEL_WANTS_ROOM)
        channel_write(&sleeper, channel_room(&sleeper, &to));
    else
        channel_read(&sleeper, channel_ready(&sleeper, &from));
}

static void race(uint32_t what)
{
    pthread_t thread;
    uint64_t slept = 0;
    uint64_t lost = 0;
    sleeps_for = what;
    memset(&page, 0, sizeof page);
    channel_init(&sleeper, &page, queues, SIZE, 0);
    channel_init(&partner, &page, queues, SIZE, 1);
    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
    atomic_store(&ready, 0);
    assert_int_equal(pthread_create(&thread, NULL, act, NULL), 0);
    for (int round = 1; round <= ROUNDS; round++) {
        prepare();
        atomic_store_explicit(&begun, round, memory_order_release);
        meet(round);
        delay(round * 5 % DELAYS);
        bool there = channel_arm(&sleeper, what);
        wait_for(&ended, round);
        slept += !there;
        lost += !there && !atomic_load(&rang);
        channel_disarm(&sleeper);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(sleeper.broken || partner.broken);
    if (lost > 0)
        print_error("%llu of %llu sleeps were lost\n", (unsigned long long)lost,
                    (unsigned long long)slept);
    assert_int_equal(lost, 0);
}

static void test_room(void **state)
{
    (void)state;
    race(CHANNEL_WANTS_ROOM);
}

static void test_data(void **state)
{
    (void)state;
    race(CHANNEL_WANTS_DATA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_room),
                                       cmocka_unit_test(test_data)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
