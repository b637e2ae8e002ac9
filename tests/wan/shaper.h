/* shaper.h - the shaper (queue and rate) of one direction of an emulated link.
 * Pure.
 *
 * Packets are offered at a time and taken at a time; nothing here reads a clock
 * or moves a byte. The model is that of a router's port:
 *
 *   offered -> per-flow queues -> scheduler -> serializer -> leaves
 *
 * The serializer sends `rate` bytes per second, one packet after the other.
 * `flow_rate` holds each flow (one direction of one TCP connection) to a rate
 * of its own, as providers do. The scheduler is first come, first served, or
 * start-time fair queueing among flows (Goyal, Vin & Cheng, SIGCOMM 1996). The
 * queue is bounded: what does not fit is dropped at the tail, with fair
 * queueing from the longest flow's tail. */
#ifndef WAN_SHAPER_H
#define WAN_SHAPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int64_t wan_ns;

#define WAN_NEVER INT64_MAX
#define WAN_MS ((wan_ns)1000000)
#define WAN_S ((wan_ns)1000000000)

struct packet {
    struct packet *next;
    wan_ns at;      /* arrival in its current queue */
    uint64_t order; /* among packets of equal time */
    uint64_t flow;
    uint32_t
        wire_size;    /* bytes on the link, with the headers of every segment */
    uint32_t size;    /* bytes in data */
    uint32_t segment; /* bytes of its largest segment, with headers */
    uint32_t payload; /* bytes of TCP's stream */
    uint16_t from, to;
    uint8_t stage;
    bool tcp;
    bool syn; /* opens a TCP connection */
    uint8_t data[];
};

struct shaper_rule {
    uint64_t rate;      /* bytes per second; 0: no limit */
    uint64_t flow_rate; /* bytes per second and flow; 0: no limit */
    uint64_t queue;     /* bytes that may wait; 0: queue_ns decides */
    wan_ns queue_ns;    /* ... or this long at the link's rate */
    bool fair;
};

enum { SHAPER_QUEUE_NS_DEFAULT = 100 * 1000 * 1000 };

struct shaper_flow {
    uint64_t key;
    struct packet *first, **last;
    uint64_t bytes;  /* waiting */
    wan_ns ready_at; /* the flow's own rate allows the next packet */
    uint64_t tag;    /* virtual start of the next packet */
};

/* All zero is an empty shaper. */
struct shaper {
    struct shaper_flow *flows;
    uint32_t flow_count, flow_room;
    uint64_t bytes;    /* waiting, in all flows */
    wan_ns free_at;    /* end of the current transmission */
    uint64_t virtual_; /* start tag of the packet in service */
};

void shaper_free(struct shaper *p);

/* Whether the rule limits anything. */
bool shaper_rule_limits(const struct shaper_rule *rule);

/* Queues the packet. Returns the packet that was dropped instead (perhaps this
 * one), or NULL; the caller frees it. */
struct packet *shaper_offer(struct shaper *p, const struct shaper_rule *rule,
                            wan_ns now, struct packet *packet);

/* Time at which service of the next packet may begin: in the past if it could
 * have begun, WAN_NEVER if no packet waits. */
wan_ns shaper_due(const struct shaper *p);

/* Begins service of the next packet, which must be due at that time. *leaves is
 * the time at which its last bit is sent. */
struct packet *shaper_take(struct shaper *p, const struct shaper_rule *rule,
                           wan_ns now, wan_ns *leaves);

#endif
