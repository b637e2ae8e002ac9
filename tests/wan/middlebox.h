/* middlebox.h - a stateful firewall or a NAT on the path between two nodes:
 * what it knows of TCP connections, and which packets it passes. Pure. */
#ifndef WAN_MIDDLEBOX_H
#define WAN_MIDDLEBOX_H

#include "shaper.h"

struct middlebox_rule {
    wan_ns forget;  /* a connection without a packet for so long; 0: none */
    bool resets;    /* a packet of an unknown connection is answered with RST */
    uint64_t first; /* bytes of a connection that pass in a direction; 0: all */
};

struct known_connection {
    uint64_t key;       /* flow of one of its directions, the lower number */
    wan_ns at;          /* its last packet */
    uint64_t passed[2]; /* bytes in each direction */
};

/* All zero knows nothing. */
struct middlebox {
    struct known_connection *known;
    uint32_t count, room;
};

enum passage { PASSAGE_OPEN, PASSAGE_VANISHES, PASSAGE_RESET };

void middlebox_free(struct middlebox *m);

/* Whether the packet passes. One of another protocol than TCP does. */
enum passage middlebox_pass(struct middlebox *m,
                            const struct middlebox_rule *rule, wan_ns now,
                            const struct packet *p);

/* Forgets the connections between the two nodes. */
void middlebox_restart(struct middlebox *m, uint32_t a, uint32_t b);

/* Makes of a TCP packet the RST that answers it, from the receiver to the
 * sender. */
void middlebox_answer(struct packet *p);

#endif
