/* allocation.h - the hosts that a batch system has given to this job, by its
 * variables. Slurm's are read by hosts_parse_slurm. */
#ifndef PCCL_LAUNCH_ALLOCATION_H
#define PCCL_LAUNCH_ALLOCATION_H

#include "hosts.h"

/* Adds the hosts of PBS, OAR, LSF, Grid Engine or Flux to the list. `source` is
 * the variable, or NULL: none of them is set. False: see error. */
bool allocation_hosts(struct host_list *list, const char **source, char *error,
                      size_t error_size);

/* "a 4 b 8": hosts and their slots; with `lines`, as Grid Engine's, what
 * follows on a line of each is something else. */
bool hosts_parse_pairs(struct host_list *list, const char *text, bool lines,
                       char *error, size_t error_size);

#endif
