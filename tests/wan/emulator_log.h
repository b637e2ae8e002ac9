/* emulator_log.h - the log of a run: one JSON object per line, for report.py.
 * Rates are bytes per second, times are seconds since the start. Calls with a
 * NULL log do nothing. */
#ifndef WAN_EMULATOR_LOG_H
#define WAN_EMULATOR_LOG_H

#include "bound.h"

#include <stdio.h>

void emulator_log_world(FILE *log, const struct world *world,
                        const struct network *net, uint32_t connections,
                        const struct ring *best);
/* Bytes on every link since the last mark, the ring that these bytes show, and
 * the capacity of that ring and of the best one. */
void emulator_log_mark(FILE *log, const struct network *net, const char *name,
                       wan_ns now, uint32_t connections,
                       const struct ring *best);
void emulator_log_change(FILE *log, const char *statement, wan_ns now);
void emulator_log_end(FILE *log, uint32_t node, int status, wan_ns now);
/* late: delay of packets because the emulator ran late, in ns. */
void emulator_log_over(FILE *log, wan_ns now, int result, uint64_t packets,
                       double mean_late, wan_ns worst_late);

#endif
