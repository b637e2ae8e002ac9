/* universe_step.h - inside of universe*.c: what events do to a universe. */
#ifndef EXPLORE_UNIVERSE_STEP_H
#define EXPLORE_UNIVERSE_STEP_H

#include "universe.h"

bool universe_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* The stream of a member's connection, or NULL. */
struct stream *universe_stream(const struct universe *w, uint32_t party,
                               uint32_t conn);
/* A party handles the event. `left`: what it did not read of DATA, or 0.
 * False: universe_error(). */
bool universe_event(struct universe *w, uint32_t party, struct event event,
                    uint32_t *left);

#endif
