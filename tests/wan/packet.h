/* packet.h - makes an emulator's packet from the bytes of a TUN device. Pure.
 *
 * A virtio_net_hdr precedes every packet of a TUN device. With offload a packet
 * may hold several TCP segments under one header; on the link each of them
 * counts with a header of its own. */
#ifndef WAN_PACKET_H
#define WAN_PACKET_H

#include "wan_world.h"

/* A packet from that node to another one, ready for the network. NULL: the
 * network does not carry it (not IPv4, or not to a node), or out of memory. */
struct packet *packet_make(const uint8_t *bytes, uint32_t size, uint32_t from,
                           uint32_t nodes);

/* Whether TCP may pass several segments at once. Default: not when the world
 * has random loss, which is per packet. */
bool packet_offload(const struct world *world);

#endif
