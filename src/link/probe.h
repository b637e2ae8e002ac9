/* probe.h - measures the links of this peer, as a pure state machine.
 *
 * There are two sources: a probe that the master orders between two peers that
 * are in no operation (rules O3, O4), and the transfers of large operations,
 * which are timed on arrival at no cost (rule O1). Both measure the edge from
 * the other peer to this one. */
#ifndef PCCL_PROBE_H
#define PCCL_PROBE_H

#include "../base/wire.h"
#include "frame.h"

enum {
    PROBE_ECHOES = 3,
    PROBE_CHUNK = 16 * 1024,
    PROBE_SAMPLES = 64,
    PROBE_TIME_RTTS = 10, /* long enough for TCP to find its rate */
    /* Operations that bring less than this over a link measure nothing. */
    MEASURE_MIN = 1024 * 1024,
};
#define MEASURE_TIME_MIN PCCL_MS

struct link;
struct links;

struct probe_order {
    uint32_t step; /* names the probe in frames and reports */
    uint64_t peer;
    bool gives, takes;
    uint32_t bytes;
    pccl_ns time;
};

struct probe {
    /* Of the owner; NULL: it takes no probes. */
    void (*report)(void *user, uint32_t step, const struct wire_edge *edge);
    void *user;

    /* The other end has its order already, and asks for ours. */
    struct {
        uint64_t peer;
        uint32_t step, index;
    } unexpected;

    bool on; /* from the order until both halves are over */
    struct probe_order order;
    pccl_ns begun;

    enum { GIVE_LINK, GIVE_ECHO, GIVE_WAITS, GIVE_STREAM, GIVE_OVER } phase;
    uint32_t echoes;
    pccl_ns asked_at, stream_at, rtt;
    uint64_t sent;

    bool taken;
    uint64_t received, expected;   /* expected: 0 until the sender reports it */
    pccl_ns taken_rtt, given_time; /* as the sender reports them */
    struct {
        pccl_ns at;
        uint64_t bytes;
    } samples[PROBE_SAMPLES];
    uint32_t sample_count, sample_every, sample_skipped;
};

/* Of the transfers that came over one link since the last report. */
struct link_speed {
    uint64_t rate;     /* 0: nothing new */
    bool full;         /* the link was the limit */
    uint64_t notified; /* rate last reported */
    pccl_ns notified_at;
};

/* Of one operation's transfers over one endpoint. */
struct endpoint_speed {
    pccl_ns first, last;
    uint64_t bytes, full; /* after the first transfer; of a busy link */
};

void probe_begin(struct links *n, const struct probe_order *order);
void probe_cancel(struct links *n);
void probe_tick(struct links *n);

/* The edges to report to the master, at most WIRE_EDGES_MAX. The caller fills
 * in the round-trip times. */
uint32_t measure_report(struct links *n, struct wire_edge *edges);

/* --- for connections and operations --- */
bool probe_next_send(struct links *n, struct link *l, struct frame *f);
/* False: the frame breaks the protocol. */
bool probe_accept(struct links *n, struct link *l, const struct frame *f);
void probe_received(struct links *n, const struct link *l,
                    const struct frame *f);
void probe_closed(struct links *n, const struct link *l);
void measure_transfer(struct endpoint_speed *s, pccl_ns now,
                      const struct frame *f);
void measure_link(struct link *l, const struct endpoint_speed *s);

#endif
