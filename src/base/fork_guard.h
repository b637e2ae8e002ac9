/* fork_guard.h - whether this process was forked after an object was made, and
 * which sockets a forked child must not hold.
 *
 * A forked child has a copy of its parent's objects, but neither their threads
 * nor a right to their sockets and shared memory: what the child sent, the
 * others would take for its parent's. An object notes fork_guard_now() when it
 * is made; in a child that number is another one. No system call is made.
 *
 * A connection ends when the last copy of its descriptor is closed. A child
 * that held one would hide the death of its parent from the others, so the kept
 * descriptors are closed in the child before fork() returns there. */
#ifndef PCCL_FORK_GUARD_H
#define PCCL_FORK_GUARD_H

extern unsigned fork_guard_count;

/* Before the first object is made; any number of times, from any thread. */
void fork_guard_start(void);

static inline unsigned fork_guard_now(void)
{
    return fork_guard_count;
}

/* A socket is made between these two, in which no fork happens:
 *
 *     fork_guard_hold();
 *     int fd = fork_guard_keep(accept4(...));
 *
 * It keeps fd, if that is not -1, and returns it; errno stays. Without memory
 * the descriptor is not kept. */
void fork_guard_hold(void);
int fork_guard_keep(int fd);

/* Closes a descriptor, kept or not; errno stays. */
void fork_guard_close(int fd);

#endif
