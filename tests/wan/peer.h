/* peer.h - state and helpers that the modes of wan-peer share. */
#ifndef WAN_PEER_H
#define WAN_PEER_H

#include "../../include/pccl.h"
#include "load.h"

#include <stdint.h>

enum { WAN_PEERS_MAX = 127 };

struct peer {
    int number; /* WAN_PEER, from 1; the rank hint is one less */
    int peers;  /* of the world */
    struct load loads[LOADS_MAX];
    int load_count;
    int pool; /* connections per neighbour */
    bool optimize;
    bool quantize;    /* 8-bit codes */
    bool stays;       /* nobody is evicted where members lack links */
    bool relays;      /* peer 1 leaves when all others have */
    const char *lose; /* peers that get lost: "4,5" */
    const char *say;  /* statement about links, in the middle; or NULL */
    const char
        *after;  /* ... by a peer that was evicted, before it comes back */
    double idle; /* seconds without an operation, after it */
    bool moves;  /* those that get lost change their address there */
    pcclComm_t *comm;
    float *send, *recv; /* `concurrent` vectors each */
    size_t count;       /* elements of one vector */
    int concurrent;     /* operations at once; both of the current load */
};

double peer_now(void); /* CLOCK_MONOTONIC seconds, the same on all peers */

_Noreturn void peer_fail(const struct peer *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Connects; retries until the master admits this peer. */
void peer_connect(struct peer *p);

/* Sends a line to the emulator: a statement about links, or "mark NAME". */
void peer_control(const struct peer *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether the peer of that number is one that gets lost. */
bool peer_loses(const struct peer *p, int number);

int peer_rank(const struct peer *p);
int peer_world(const struct peer *p);

/* Makes this load the current one. */
void peer_take(struct peer *p, const struct load *load);

/* Fills the vectors with values that depend on this peer's number only. */
void peer_fill(struct peer *p);

/* Starts the all-reduces. */
pcclResult_t peer_launch(struct peer *p, pcclAsyncReduceOp_t *handles);

/* Waits for all of them; returns the first result that is not success. */
pcclResult_t peer_await(struct peer *p, pcclAsyncReduceOp_t *handles);

/* Checks that the result is the sum over the members of the view; ends the
 * process if not. */
void peer_verify(struct peer *p);

/* The maximum of the members' values. Ends the process when it fails. */
double peer_most(struct peer *p, double value);

/* Time from the first member's begin to the last member's end. Ends the process
 * when it fails. */
double peer_span(struct peer *p, double begin, double end);

int peer_reduce(struct peer *p);    /* speed, before and after optimizing */
int peer_vanish(struct peer *p);    /* some vanish without a packet */
int peer_partition(struct peer *p); /* some are cut off and come back */
int peer_outage(struct peer *p);    /* the master is cut off for a while */
int peer_stranded(struct peer *p);  /* no ring is left, and all stay */
int peer_split(struct peer *p);     /* no ring is left: most go on */
/* A newcomer and a synchronization; peers that are lost come back. */
int peer_through(struct peer *p);
int peer_messages(struct peer *p); /* to the listed peers, which only receive */

#endif
