/* coordinators.h - several coordinators of one run: the first begins it, and
 * the others stand by (rule H14). */
#ifndef PCCL_COORDINATORS_H
#define PCCL_COORDINATORS_H

#include "../master/server/master_server.h"
#include "options.h"

/* Fills in what `setup` has of --masters, for the coordinator that listens
 * there. It asks the others whether the run is with them, for a few seconds at
 * most. False: it has complained. */
bool coordinators_settle(const struct options *options,
                         const struct address *listen,
                         struct master_server_options *setup);

/* Descriptors that the ranks of this host need in the launcher: of each the
 * pipes of its output, of a spare that of its input as well. */
uint32_t coordinators_reserve(const struct options *options);

#endif
