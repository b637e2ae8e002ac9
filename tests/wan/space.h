/* space.h - a network namespace of its own for each node, with a TUN device.
 *
 * The namespaces have no names: they live as long as somebody is in them or
 * holds the descriptors below, and go with the processes. */
#ifndef WAN_SPACE_H
#define WAN_SPACE_H

#include "wan_world.h"

enum {
    VNET_SIZE = 10, /* struct virtio_net_hdr before every packet */
    SPACE_ERROR_SIZE = 200,
};

struct space {
    int net_fd; /* the namespace */
    int tun_fd; /* its device: packets with a virtio_net_hdr before them */
};

/* IPv4 address of a node, host order: 10.99.0.1 for the master. */
uint32_t space_address(uint32_t node);

/* Makes a namespace with lo and a device that has the node's address, whose
 * TCP has that congestion control ("": the host's). The caller's thread stays
 * where it is. offload: TCP may hand over segments together. */
bool space_make(struct space *s, uint32_t node, const struct world *world,
                bool offload, char error[SPACE_ERROR_SIZE]);

/* Moves the calling thread into it. */
bool space_enter(const struct space *s);

/* Whether this process may do all that: root, and there is /dev/net/tun. */
bool space_possible(char error[SPACE_ERROR_SIZE]);

#endif
