/* ccoip.h - ports, under the name that PCCL 1.0 gives this header. */
#ifndef CCOIP_H
#define CCOIP_H

/* Where a master listens unless it is given another port. */
#define CCOIP_PROTOCOL_PORT_MASTER 48148

/* PCCL 1.0 tries these first. Peers of this library listen on one port, which
 * the system chooses. */
#define CCOIP_PROTOCOL_PORT_SHARED_STATE 48149
#define CCOIP_PROTOCOL_PORT_P2P 48150
#define CCOIP_PROTOCOL_PORT_BANDWIDTH_BENCHMARK 48151

#endif
