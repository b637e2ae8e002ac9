/* fork_guard.h - whether this process was forked after an object was made.
 *
 * A forked child has a copy of its parent's objects, but neither their threads
 * nor a right to their sockets and shared memory: what the child sent, the
 * others would take for its parent's. An object notes fork_guard_now() when it
 * is made; in a child that number is another one. No system call is made. */
#ifndef PCCL_FORK_GUARD_H
#define PCCL_FORK_GUARD_H

extern unsigned fork_guard_count;

/* Before the first object is made; any number of times, from any thread. */
void fork_guard_start(void);

static inline unsigned fork_guard_now(void)
{
    return fork_guard_count;
}

#endif
