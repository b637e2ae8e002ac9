/* box_log.h - the lines that a run leaves for the tables: one JSON object
 * each. Rates are bytes per second, times seconds since the start. A log of
 * NULL takes nothing. */
#ifndef WAN_BOX_LOG_H
#define WAN_BOX_LOG_H

#include "bound.h"

#include <stdio.h>

void box_log_world(FILE *log, const struct world *world, const struct fabric *f,
                   uint32_t connections, const struct ring *best);
/* Bytes on every link since the last mark, the ring that they show, what that
 * ring and the best one could carry. */
void box_log_mark(FILE *log, const struct fabric *f, const char *name,
                  wan_ns now, uint32_t connections, const struct ring *best);
void box_log_change(FILE *log, const char *statement, wan_ns now);
void box_log_end(FILE *log, uint32_t node, int status, wan_ns now);
/* late: how long packets lay there because the emulator came late, ns. */
void box_log_over(FILE *log, wan_ns now, int result, uint64_t packets,
                  double mean_late, wan_ns worst_late);

#endif
