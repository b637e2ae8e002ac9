/* packet.c - reads IPv4 and TCP headers. */
#include "packet.h"

#include "../../src/bench/namespace.h"

#include <stdlib.h>
#include <string.h>

enum {
    IP_SIZE = 20,
    TCP_SIZE = 20,
    PROTOCOL_TCP = 6,
    TCP_SYN = 2,
    TCP_ACK = 16
};

static uint32_t be16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t be32(const uint8_t *at)
{
    return be16(at) << 16 | be16(at + 2);
}

/* Bytes on the link: every segment of a packet has a header of `head` bytes. */
static uint32_t wire_size(const uint8_t *bytes, uint32_t size, uint32_t head)
{
    uint16_t segment; /* virtio_net_hdr.gso_size, in host order */
    memcpy(&segment, bytes + 4, sizeof segment);
    if (bytes[1] == 0 || segment == 0 || size <= head) return size;
    uint32_t count = (size - head + segment - 1) / segment;
    return size + (count - 1) * head;
}

struct packet *packet_make(const uint8_t *bytes, uint32_t size, uint32_t from,
                           uint32_t nodes)
{
    const uint8_t *ip = bytes + VNET_SIZE;
    if (size < VNET_SIZE + IP_SIZE || ip[0] >> 4 != 4) return NULL;
    uint32_t to = be32(ip + 16) - namespace_address(0);
    uint32_t ip_size = (ip[0] & 15u) * 4;
    if (to >= nodes || to == from) return NULL;
    struct packet *p = malloc(sizeof *p + size);
    if (!p) return NULL;
    memset(p, 0, sizeof *p);
    p->from = (uint16_t)from;
    p->to = (uint16_t)to;
    p->size = size;
    p->wire_size = size - VNET_SIZE;
    p->flow = (uint64_t)from << 40 | (uint64_t)to << 48;
    memcpy(p->data, bytes, size);
    if (ip[9] != PROTOCOL_TCP || size < VNET_SIZE + ip_size + TCP_SIZE)
        return p;
    const uint8_t *tcp = ip + ip_size;
    p->flow |= be32(tcp); /* both ports */
    p->syn = (tcp[13] & (TCP_SYN | TCP_ACK)) == TCP_SYN;
    p->wire_size =
        wire_size(bytes, size - VNET_SIZE, ip_size + (tcp[12] >> 4) * 4u);
    return p;
}

bool packet_offload(const struct world *world)
{
    if (world->offload != OFFLOAD_AUTO) return world->offload == OFFLOAD_ON;
    for (uint32_t i = 0; i < world->statement_count; i++)
        if (world->statements[i].link.loss > 0) return false;
    return true;
}
