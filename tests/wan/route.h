/* route.h - the congestion control of a device's network, by its route.
 *
 * A namespace's own default can only be one that the host lets everybody use;
 * a route may name any that is loaded. */
#ifndef WAN_ROUTE_H
#define WAN_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

/* Replaces the route to network/24 over the device, so that TCP uses that
 * congestion control there. False: errno says why. */
bool route_set_congestion(unsigned device, uint32_t network, uint32_t source,
                          const char *congestion);

#endif
