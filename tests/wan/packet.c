/* packet.c - reads and writes IPv4 and TCP headers. */
#include "packet.h"

#include "../../src/bench/namespace.h"

#include <stdlib.h>
#include <string.h>

enum {
    IP_SIZE = 20,
    TCP_SIZE = 20,
    PROTOCOL_TCP = 6,
    TCP_FIN = 1,
    TCP_SYN = 2,
    TCP_RST = 4,
    TCP_ACK = 16
};

/* The bits of a flow that name its nodes; the lower half has both ports. */
enum { FLOW_FROM = 40, FLOW_TO = 48 };

static uint32_t be16(const uint8_t *at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t be32(const uint8_t *at)
{
    return be16(at) << 16 | be16(at + 2);
}

/* Bytes of a segment's payload in a packet of several; 0: it is one. */
static uint32_t segment_size(const uint8_t *bytes)
{
    uint16_t segment; /* virtio_net_hdr.gso_size, in host order */
    memcpy(&segment, bytes + 4, sizeof segment);
    return bytes[1] == 0 ? 0 : segment;
}

/* The `size` bytes behind the virtio_net_hdr, of which each segment has `head`
 * as its headers. */
static void measure(struct packet *p, uint32_t size, uint32_t head)
{
    uint32_t segment = segment_size(p->data);
    if (size < head) head = size;
    p->payload = size - head;
    if (segment == 0 || p->payload <= segment) return;
    p->segment = head + segment;
    p->wire_size = size + (p->payload - 1) / segment * head;
}

struct packet *packet_make(const uint8_t *bytes, uint32_t size, uint32_t from,
                           uint32_t nodes, uint32_t first)
{
    const uint8_t *ip = bytes + VNET_SIZE;
    if (size < VNET_SIZE + IP_SIZE || ip[0] >> 4 != 4) return NULL;
    uint32_t to = be32(ip + 16) - first;
    uint32_t ip_size = (ip[0] & 15u) * 4;
    if (to < 2 * NODES_MAX) to %= NODES_MAX;
    if (to >= nodes || to == from) return NULL;
    struct packet *p = malloc(sizeof *p + size);
    if (!p) return NULL;
    memset(p, 0, sizeof *p);
    p->from = (uint16_t)from;
    p->to = (uint16_t)to;
    p->size = size;
    p->wire_size = p->segment = size - VNET_SIZE;
    p->flow = (uint64_t)from << FLOW_FROM | (uint64_t)to << FLOW_TO;
    memcpy(p->data, bytes, size);
    if (ip[9] != PROTOCOL_TCP || size < VNET_SIZE + ip_size + TCP_SIZE)
        return p;
    const uint8_t *tcp = ip + ip_size;
    p->flow |= be32(tcp); /* both ports */
    p->tcp = true;
    p->syn = (tcp[13] & (TCP_SYN | TCP_ACK)) == TCP_SYN;
    measure(p, size - VNET_SIZE, ip_size + (tcp[12] >> 4) * 4u);
    return p;
}

/* ------------------------------------------------------------------- flows */

uint64_t packet_flow_back(uint64_t flow)
{
    uint64_t ports = flow & 0xffffffffu;
    return (ports >> 16 | (ports & 0xffffu) << 16) |
           ((flow >> FLOW_FROM) & 255) << FLOW_TO |
           ((flow >> FLOW_TO) & 255) << FLOW_FROM;
}

bool packet_flow_joins(uint64_t flow, uint32_t a, uint32_t b)
{
    uint32_t from = (flow >> FLOW_FROM) & 255, to = (flow >> FLOW_TO) & 255;
    return (from == a && to == b) || (from == b && to == a);
}

/* --------------------------------------------------------------------- RST */

static void put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
    put16(at, value >> 16);
    put16(at + 2, value);
}

/* RFC 1071. */
static uint32_t checksum(const uint8_t *at, uint32_t size, uint32_t sum)
{
    for (uint32_t i = 0; i + 1 < size; i += 2) sum += be16(at + i);
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return ~sum & 0xffff;
}

void packet_write_reset(struct packet *p)
{
    uint8_t *ip = p->data + VNET_SIZE, *tcp = ip + IP_SIZE;
    const uint8_t *old = ip + (ip[0] & 15u) * 4;
    uint8_t flags = old[13];
    uint32_t ports = be32(old), sequence = be32(old + 4), ack = be32(old + 8);
    uint32_t from = be32(ip + 16), to = be32(ip + 12);
    uint32_t seen = p->payload + ((flags & (TCP_SYN | TCP_FIN)) != 0);
    memset(p->data, 0, VNET_SIZE + IP_SIZE + TCP_SIZE);
    p->size = VNET_SIZE + IP_SIZE + TCP_SIZE;
    p->wire_size = p->segment = IP_SIZE + TCP_SIZE;
    p->payload = 0;
    p->syn = false;
    ip[0] = 0x45;
    put16(ip + 2, IP_SIZE + TCP_SIZE);
    ip[8] = 64;
    ip[9] = PROTOCOL_TCP;
    put32(ip + 12, from);
    put32(ip + 16, to);
    put16(ip + 10, checksum(ip, IP_SIZE, 0));
    put32(tcp, ports >> 16 | ports << 16);
    if (flags & TCP_ACK) put32(tcp + 4, ack);
    put32(tcp + 8, flags & TCP_ACK ? 0 : sequence + seen);
    tcp[12] = TCP_SIZE / 4 << 4;
    tcp[13] = flags & TCP_ACK ? TCP_RST : TCP_RST | TCP_ACK;
    uint32_t pseudo = (from >> 16) + (from & 0xffff) + (to >> 16) +
                      (to & 0xffff) + PROTOCOL_TCP + TCP_SIZE;
    put16(tcp + 16, checksum(tcp, TCP_SIZE, pseudo));
}

bool packet_offload(const struct world *world)
{
    if (world->offload != OFFLOAD_AUTO) return world->offload == OFFLOAD_ON;
    for (uint32_t i = 0; i < world->statement_count; i++)
        if (world->statements[i].link.loss > 0) return false;
    return true;
}
