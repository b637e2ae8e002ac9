/* namespace.h - one network namespace with a TUN device for each node.
 *
 * The namespaces have no names. Each lives as long as a process is in it or
 * holds one of the descriptors below. */
#ifndef PCCL_NAMESPACE_H
#define PCCL_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    VNET_SIZE = 10, /* struct virtio_net_hdr before every packet */
    NAMESPACE_ERROR_SIZE = 200,
};

struct namespace
{
    int net_fd; /* the namespace */
    int tun_fd; /* the TUN device: packets with a virtio_net_hdr before them */
};

/* IPv4 address of a node in host order: 10.99.0.1 for the master. */
uint32_t namespace_address(uint32_t node);

/* Makes a namespace with lo and a device that has the node's address. TCP in it
 * uses this congestion control ("": the host's). The caller's thread stays in
 * its own namespace. offload: TCP may pass several segments at once. */
bool namespace_make(struct namespace *s, uint32_t node, uint32_t mtu,
                    const char *congestion, bool offload,
                    char error[NAMESPACE_ERROR_SIZE]);

/* Moves the calling thread into the namespace. */
bool namespace_enter(const struct namespace *s);

/* Whether this process may make namespaces: it needs root and /dev/net/tun. */
bool namespace_possible(char error[NAMESPACE_ERROR_SIZE]);

#endif
