/* coordinators.h - several coordinators of one run: the first begins it, and
 * the others stand by (rule H14). */
#ifndef PCCL_COORDINATORS_H
#define PCCL_COORDINATORS_H

#include "../master/master_server.h"
#include "options.h"

/* Fills in what `setup` has of --masters, for the coordinator that listens
 * there. It asks the others whether the run is with them, for a few seconds at
 * most. False: it has complained. */
bool coordinators_settle(const struct options *options,
                         const struct address *listen,
                         struct master_server_options *setup);

#endif
