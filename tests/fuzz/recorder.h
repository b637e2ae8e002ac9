/* recorder.h - what the files of the recorder share. See recorder.c. */
#ifndef PCCL_FUZZ_RECORDER_H
#define PCCL_FUZZ_RECORDER_H

#include "../world/sim/sim.h"
#include "tape.h"

enum { FOLDED = 4096 };

/* What the linker gives for a call of `name` in this file, and to a call of it
 * in all others. */
#define REAL(type, name, ...) type __real_##name(__VA_ARGS__)
#define WRAP(type, name, ...)                                                  \
    REAL(type, name, __VA_ARGS__);                                             \
    type __wrap_##name(__VA_ARGS__);                                           \
    type __wrap_##name(__VA_ARGS__)

/* A call into the cores. */
#define INSIDE(call)                                                           \
    do {                                                                       \
        recorder_depth++;                                                      \
        call;                                                                  \
        recorder_depth--;                                                      \
    } while (0)
#define RETURN(type, call)                                                     \
    do {                                                                       \
        type result;                                                           \
        INSIDE(result = call);                                                 \
        return result;                                                         \
    } while (0)

extern int recorder_depth; /* of calls into the cores */

struct tape;

/* The tape of a session, an engine, a coordinator or messages; NULL: there is
 * none, or a core calls. */
struct tape *tape_of(const void *key);

/* Numbers of a payload. */
struct words {
    uint8_t bytes[FOLDED];
    size_t size;
};

void word(struct words *w, uint64_t value, size_t width);
void put_words(struct tape *t, uint8_t kind, uint32_t arg,
               const struct words *w);

#endif
