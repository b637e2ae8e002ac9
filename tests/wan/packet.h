/* packet.h - what the emulator reads in an IP packet. Pure.
 *
 * A packet of a TUN device has a virtio_net_hdr before it. With offload it may
 * hold several TCP segments under one header; on the link they count with a
 * header each. */
#ifndef WAN_PACKET_H
#define WAN_PACKET_H

#include "wan_world.h"

/* A packet of that node to another one, ready for the fabric. NULL: none that
 * the network carries (not IPv4, not to a node), or out of memory. */
struct packet *packet_make(const uint8_t *bytes, uint32_t size, uint32_t from,
                           uint32_t nodes);

/* Whether TCP may hand over several segments at once: not where packets get
 * lost one by one, unless the world says so. */
bool packet_offload(const struct world *world);

#endif
