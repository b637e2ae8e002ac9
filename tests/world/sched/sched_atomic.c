/* sched_atomic.c - atomic accesses of the library under the schedule: each is a
 * point, and a store that is not sequentially consistent may stay in a buffer
 * of its thread. See sched.h, atomic_hooks.h.
 *
 * A buffer is emptied in order, as far as other threads can tell at latest at
 * the thread's next fence, change, lock or system call. So a load may pass an
 * earlier store of the same thread, as on every processor (also x86), and a
 * protocol that needs a fence fails without it. Weaker things, such as loads
 * that see old values, are for the litmus tests. */
#include "sched.h"

#include "atomic_hooks.h"

void sched_drain(struct sched_thread *t, uint32_t count)
{
    if (count > t->store_count) count = t->store_count;
    for (uint32_t i = 0; i < count; i++)
        hook_poke(t->stores[i].at, t->stores[i].size, t->stores[i].value);
    for (uint32_t i = count; i < t->store_count; i++)
        t->stores[i - count] = t->stores[i];
    t->store_count -= count;
}

static void drain_all(void)
{
    if (sched_is_on()) sched_drain(sched_self(), SCHED_STORES_MAX);
}

uint64_t hook_load(const volatile void *at, size_t size, int order)
{
    (void)order;
    if (!sched_is_on()) return hook_peek(at, size);
    struct sched_thread *t = sched_self();
    if (t->store_count > 0 && sched_below(4) == 0) sched_drain(t, 1);
    sched_point(SCHED_LOAD, 0);
    for (uint32_t i = t->store_count; i-- > 0;)
        if (t->stores[i].at == at) return t->stores[i].value;
    uint64_t value = hook_peek(at, size);
    sched_note(SCHED_LOAD, value);
    return value;
}

void hook_store(volatile void *at, size_t size, uint64_t value, int order)
{
    if (sched_is_on()) {
        struct sched_thread *t = sched_self();
        sched_point(SCHED_STORE, value);
        bool delays = sched_options.weak && order != __ATOMIC_SEQ_CST;
        if (delays && sched_below(4) > 0) {
            if (t->store_count == SCHED_STORES_MAX) sched_drain(t, 1);
            t->stores[t->store_count++] =
                (struct sched_store){.at = at, .size = size, .value = value};
            return;
        }
    }
    drain_all();
    hook_poke(at, size, value);
}

uint64_t hook_change(volatile void *at, size_t size, enum hook_change kind,
                     uint64_t operand, int order)
{
    (void)order;
    sched_point(SCHED_CHANGE, operand);
    drain_all();
    uint64_t before = hook_peek(at, size);
    hook_poke(at, size, hook_apply(kind, before, operand));
    return before;
}

uint64_t hook_compare(volatile void *at, size_t size, uint64_t expected,
                      uint64_t desired, int order)
{
    (void)order;
    sched_point(SCHED_CHANGE, desired);
    drain_all();
    uint64_t before = hook_peek(at, size);
    if (before == expected) hook_poke(at, size, desired);
    return before;
}

void hook_fence(int order)
{
    if (order == __ATOMIC_SEQ_CST) sched_point(SCHED_FENCE, 0);
}

void hook_plain(const volatile void *at, size_t size, bool writes)
{
    (void)at, (void)size, (void)writes; /* ThreadSanitizer looks at these */
}
