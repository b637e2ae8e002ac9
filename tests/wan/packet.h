/* packet.h - makes an emulator's packet from the bytes of a TUN device. Pure.
 *
 * A virtio_net_hdr precedes every packet of a TUN device. With offload a packet
 * may hold several TCP segments under one header; on the link each of them
 * counts with a header of its own. */
#ifndef WAN_PACKET_H
#define WAN_PACKET_H

#include "wan_world.h"

/* A packet from that node to another one, ready for the network. NULL: the
 * network does not carry it (not IPv4, or not to a node), or out of memory.
 * `first` is the address of node 0; the others follow it, and NODES_MAX further
 * is a second address of each. */
struct packet *packet_make(const uint8_t *bytes, uint32_t size, uint32_t from,
                           uint32_t nodes, uint32_t first);

/* The other direction of a TCP connection, and whether one is between these
 * nodes. */
uint64_t packet_flow_back(uint64_t flow);
bool packet_flow_joins(uint64_t flow, uint32_t a, uint32_t b);

/* Writes an RST over a TCP packet from the other end of its connection, as one
 * answers it that does not know it (RFC 9293, 3.5.2). */
void packet_write_reset(struct packet *p);

/* Whether TCP may pass several segments at once. Default: not when the world
 * has random loss, which is per packet. */
bool packet_offload(const struct world *world);

#endif
