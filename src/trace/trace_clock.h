/* trace_clock.h - the difference between the clocks of hosts.
 *
 * Processes of one boot share CLOCK_MONOTONIC. Between others the operations
 * tell: no member has the result of an all-reduce, a barrier, an all-gather or
 * a reduce-scatter before every member has called it. With t the time by which
 * clock B is to be moved, an operation that some members began and ended on
 * clock A (at Ab, Ae) and others on B (at Bb, Be) says
 *
 *     Ab <= Be + t  and  Bb + t <= Ae.
 *
 * All operations together leave an interval for t, about as long as the network
 * needs there and back; its middle is taken. Clocks drift: each stretch of ten
 * seconds has its own interval, which those next to it narrow, and t goes
 * straight from one middle to the next. Clocks without a common operation, or
 * whose common operations are more than a year apart, differ by what the hosts'
 * wall clocks say.
 *
 * Times and differences of clocks are within the limits of trace_file.h. */
#ifndef PCCL_TRACE_CLOCK_H
#define PCCL_TRACE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clocks;

/* NULL: no memory. */
struct clocks *clocks_new(void);
void clocks_free(struct clocks *c);

/* The number of the clock of this name, which differs from a host's wall clock
 * by `wall` nanoseconds. Below 0: no memory. */
int clocks_add(struct clocks *c, const char *name, int64_t wall);

/* A member has run the operation `name` in this time. False: no memory. */
bool clocks_tell(struct clocks *c, int clock, const char *name, size_t size,
                 int64_t began, int64_t ended);

/* After all of these: moves every clock to that of number `base`. False: no
 * memory. */
bool clocks_align(struct clocks *c, int base);

/* The time on the clock that all were moved to. */
int64_t clocks_move(const struct clocks *c, int clock, int64_t at);

/* How it was moved: by how much at the first event, how exactly (half of the
 * widest interval), and by how many operations; 0: by the wall clock. */
struct clock_report {
    int64_t moved, within;
    uint64_t operations;
};
struct clock_report clocks_report(const struct clocks *c, int clock);

#endif
