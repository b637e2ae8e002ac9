/* patience.h - how long a test waits for what must happen.
 *
 * A process that gets no processor is slow, not stuck: a shorter wait judges
 * the machine. So a test shows that something does not wait for a timer by
 * making the timer longer than its own patience (PATIENT, for PCCL_DEADLINE),
 * not by a stopwatch. tests/tidy.py refuses shorter limits. */
#ifndef PCCL_TEST_PATIENCE_H
#define PCCL_TEST_PATIENCE_H

enum { PATIENCE_S = 300, PATIENCE_MS = 1000 * PATIENCE_S };

#define PATIENT "3000" /* seconds */

#endif
