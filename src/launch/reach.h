/* reach.h - which of several addresses a coordinator answers on from here. */
#ifndef PCCL_LAUNCH_REACH_H
#define PCCL_LAUNCH_REACH_H

#include "address.h"
#include "agent_link.h"

/* Addresses by which others may reach a port of this host, one after the
 * other, those of real interfaces first. */
void reach_list(uint16_t port, struct link_texts *addresses);

/* The first address of an interface of this host, IPv4 before IPv6; false:
 * there is none. */
bool reach_interface(const char *name, char *host, size_t size);

/* No name. */
bool reach_is_numeric(const struct address *address);

/* The host has this address on one of its interfaces. */
bool reach_is_ours(const struct address *address);

/* Calls all of them at once, loopback ones only when no other one answers, and
 * takes the first that does; waits for some seconds. An address with a name is
 * believed. NULL: none. The result is one of addresses. */
const char *reach_first(struct link_texts *addresses);

#endif
