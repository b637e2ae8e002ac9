/* route.h - sets a device's TCP congestion control through its route.
 *
 * A namespace's default can only be an algorithm that the host allows to all
 * users; a route may name any loaded one. */
#ifndef PCCL_ROUTE_H
#define PCCL_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

/* Replaces the route to network/24 over the device by one with that congestion
 * control. False: see errno. */
bool route_set_congestion(unsigned device, uint32_t network, uint32_t source,
                          const char *congestion);

#endif
