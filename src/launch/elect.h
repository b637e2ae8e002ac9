/* elect.h - `pccl-master --elect`: coordinates while it holds a lease of etcd
 * (rule H15).
 *
 * Two processes. The elector campaigns, renews the lease and waits; the
 * coordinator is its child, there only while the lease is. Neither trusts the
 * other to be awake: the elector kills a coordinator whose right is over, and
 * the coordinator ends by itself then. */
#ifndef PCCL_LAUNCH_ELECT_H
#define PCCL_LAUNCH_ELECT_H

#include "elect_right.h"
#include "options.h"

/* Of a coordinator that ended because its right was over. */
enum { EXIT_UNELECTED = 75 };

/* With --elect, runs until the coordinator ends well, or SIGTERM or SIGINT, and
 * returns true with the exit status. False: this process coordinates, as the
 * child or without an election. `argv`: of this process, for the child. */
bool elect_ends(const struct options *options, char **argv, int *status);

#endif
