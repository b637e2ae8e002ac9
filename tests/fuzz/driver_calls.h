/* driver_calls.h - the program of fuzz_driver.c: its calls of pccl.h. */
#ifndef PCCL_FUZZ_DRIVER_CALLS_H
#define PCCL_FUZZ_DRIVER_CALLS_H

#include "../../src/peer/comm.h"
#include "driver_world.h"

enum driver_call {
    CALL_CONNECT,
    CALL_UPDATE,
    CALL_PENDING,
    CALL_OPTIMIZE,
    CALL_REDUCE,     /* tag, count (2), bits */
    CALL_COLLECTIVE, /* kind, tag, count (2), bits, root */
    CALL_ASYNC,      /* as COLLECTIVE */
    CALL_AWAIT,      /* tag, bits: tests, waits */
    CALL_POST,       /* member, head, size (2) */
    CALL_BULK,       /* member, key, bits: which of four calls */
    CALL_EVENT,      /* bits: one or many; ms */
    CALL_SYNC,       /* strategy, revision, bits */
    CALL_OFFER,      /* bits, revision */
    CALL_PREFETCH,   /* stale, bits */
    CALL_SAVE,       /* bits */
    CALL_AWAIT_SAVE,
    CALL_LOAD, /* choice, value */
    CALL_CANCEL,
    CALL_RESUME,
    CALL_LIMIT,   /* units of 10 ms */
    CALL_PARTIAL, /* tag, count (2), bits */
    CALL_SAMPLES, /* step, count */
    CALL_LOOK,    /* all that is asked and does not wait */
    CALL_ABORT,
    CALL_FAIL,    /* tag */
    CALL_ANEW,    /* destroys, and creates */
    CALL_OPTIONS, /* bits */
    CALL_KINDS
};

/* Settings of one input. */
struct program_options {
    uint32_t pool, limit_ms;
    const char *token_file; /* NULL: no key */
    bool goes_on;
};

void program_begin(const struct program_options *options);
void program_end(void);
void program_call(uint8_t which, struct fuzz_input *in);
/* Others have said what is not so: results may be anything. */
void program_is_misled(void);
/* Something goes wrong: calls may fail. */
void program_is_troubled(void);
pcclComm_t *program_comm(void); /* or NULL */

/* --- driver_state.c --- */
void program_state_begin(void);
void program_state_end(void);
void program_state_call(uint8_t which, struct fuzz_input *in);

#endif
