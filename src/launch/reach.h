/* reach.h - addresses of this host, and a test which address of a coordinator
 * is reachable. */
#ifndef PCCL_LAUNCH_REACH_H
#define PCCL_LAUNCH_REACH_H

#include "launch_base.h"
#include "agent_link.h"

/* Lists addresses at which other hosts may reach a port of this host, real
 * interfaces first. */
void reach_list(uint16_t port, struct link_texts *addresses);

/* The first address of an interface of this host, IPv4 before IPv6. False:
 * none. */
bool reach_interface(const char *name, char *host, size_t size);

/* Whether the host is an address that others can use: no name, and none of one
 * interface (fe80::1%eth0). */
bool reach_is_numeric(const struct address *address);

/* Whether an interface of this host has the address. */
bool reach_is_ours(const struct address *address);

/* Connects to all addresses at once and returns the first that accepts,
 * loopback ones only if no other does; waits for some seconds. An address with
 * a name is not tested. NULL: none. The result is one of addresses. */
const char *reach_first(struct link_texts *addresses);

#endif
