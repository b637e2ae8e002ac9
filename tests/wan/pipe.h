/* pipe.h - the queue in front of one direction of an emulated link. Pure.
 *
 * Packets are offered at a time and taken at a time; nothing here reads a
 * clock or moves a byte. The model is that of a router's port:
 *
 *   offered -> per-flow queues -> scheduler -> serializer -> leaves
 *
 * The serializer sends `rate` bytes per second, one packet after the other.
 * `flow_rate` holds each flow (one direction of one TCP connection) to a rate
 * of its own, as providers do. The scheduler is first come, first served, or
 * start-time fair queueing among flows (Goyal, Vin & Cheng, SIGCOMM 1996).
 * The queue is bounded: what does not fit is dropped at the tail, with fair
 * queueing from the longest flow's tail. */
#ifndef WAN_PIPE_H
#define WAN_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int64_t wan_ns;

#define WAN_NEVER INT64_MAX
#define WAN_MS ((wan_ns)1000000)
#define WAN_S ((wan_ns)1000000000)

struct packet {
    struct packet *next;
    wan_ns at;      /* when it came to the queue it is in */
    uint64_t order; /* among packets of equal time */
    uint64_t flow;
    uint32_t wire; /* bytes on the link: with the headers of every segment */
    uint32_t size; /* bytes in data */
    uint16_t from, to;
    uint8_t stage;
    bool call; /* asks for a new TCP connection */
    uint8_t data[];
};

struct pipe_rule {
    uint64_t rate;      /* bytes per second; 0: no limit */
    uint64_t flow_rate; /* bytes per second and flow; 0: no limit */
    uint64_t queue;     /* bytes that may wait; 0: queue_ns decides */
    wan_ns queue_ns;    /* ... or as long as the rate takes to send them */
    bool fair;
};

enum { PIPE_QUEUE_NS_DEFAULT = 100 * 1000 * 1000 };

struct pipe_flow {
    uint64_t key;
    struct packet *first, **last;
    uint64_t bytes;  /* waiting */
    wan_ns ready_at; /* the flow's own rate allows the next packet */
    uint64_t tag;    /* virtual start of the next packet */
};

/* All zero is an empty pipe. */
struct pipe {
    struct pipe_flow *flows;
    uint32_t flow_count, flow_room;
    uint64_t bytes;    /* waiting, in all flows */
    wan_ns free_at;    /* the serializer has sent what it had */
    uint64_t virtual_; /* start tag of the packet in service */
};

void pipe_free(struct pipe *p);

/* Whether the rule holds packets back at all. */
bool pipe_rule_limits(const struct pipe_rule *rule);

/* Queues the packet. Returns the packet that had to go instead, perhaps this
 * one, or NULL; the caller frees it. */
struct packet *pipe_offer(struct pipe *p, const struct pipe_rule *rule,
                          wan_ns now, struct packet *packet);

/* When the next packet may begin its service: in the past if it could have
 * begun, WAN_NEVER if none waits. */
wan_ns pipe_due(const struct pipe *p);

/* Begins the service of the next packet at that time, at which it must be
 * due; *leaves is when its last bit is sent. */
struct packet *pipe_take(struct pipe *p, const struct pipe_rule *rule,
                         wan_ns now, wan_ns *leaves);

#endif
