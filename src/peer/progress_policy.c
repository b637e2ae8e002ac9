/* progress_policy.c - the table of progress_policy.h. */
#include "progress_policy.h"

#define US ((pccl_ns)1000)
#define NEVER UINT32_MAX

/* tests/bench/NOTES.md has the figures, under "patience".
 *
 * An operation: 200 us. A wake-up across processors costs a tenth of that. But
 * a rank that sleeps is no load, and the kernel leaves two ranks on the same
 * processor if one of them always sleeps. Where ranks take all processors each
 * idle pass yields, and the others run during the 200 us: 30 us were too short,
 * 300 us brought no more. To sleep at once took 2 to 3 times as long with 4 and
 * 8 ranks on 2 processors. With 8 ranks or more for each processor 200 us are
 * less than a turn of all; 4 ms took two thirds of the time with 16 ranks on 2
 * processors, and half of it with 64.
 *
 * The fast path: 1 ms, longer than what the call turns into: an operation of 16
 * ranks and 64 KiB takes 0.4 ms, so who waits 200 us for somebody who is amid
 * one begins one too, and makes others wait (600 us in that state, 40 to 50
 * without it); oversubscribed 100 us, until each rank has run, and with 8
 * ranks or more for each processor as long as an operation: what the call turns
 * into yields as well, and each of its looks costs more. A partner that has not
 * answered after 64 polls may wait for this very processor, whatever the
 * numbers are, because other programs use the processors too (0.27 against 50
 * us).
 *
 * Messages: 200 us, because the sender may be computing the message, or moving
 * others (8 bytes took 16 us where a receive slept at once,
 * and take 0.25; 1 MiB took 125 us with 60 us, which its copy takes, and takes
 * 72). After 64 looks each yields, for the reason given above: 222 us, and 14
 * with 256 looks, where both ranks were on one processor. With 8 ranks or more
 * for each processor as long as an operation. */
static const struct wait_policy policies[] = {
    /* fewer ranks than processors */
    {.operation = {200 * US, 1, NEVER},
     .fast = {1000 * US, 32, 64},
     .message = {200 * US, 32, 64},
     .polls_sockets = true,
     .naps = true},
    /* exactly full */
    {.operation = {200 * US, 1, 0},
     .fast = {1000 * US, 32, 64},
     .message = {200 * US, 32, 64},
     .polls_sockets = true,
     .naps = true},
    /* oversubscribed */
    {.operation = {200 * US, 1, 0},
     .fast = {100 * US, 32, 0},
     .message = {100 * US, 32, 0},
     .polls_sockets = false,
     .naps = false},
    /* RANKS_CROWDED or more for each processor */
    {.operation = {4000 * US, 1, 0},
     .fast = {4000 * US, 32, 0},
     .message = {4000 * US, 32, 0},
     .polls_sockets = false,
     .naps = false},
};

const struct wait_policy *wait_policy(uint32_t members, uint32_t processors)
{
    if (members < processors) return &policies[0];
    if (members >= RANKS_CROWDED * processors) return &policies[3];
    return &policies[members == processors ? 1 : 2];
}
