/* look_at.h - the modes of pccl-master that look at another one: --status and
 * --attach. */
#ifndef PCCL_LAUNCH_LOOK_AT_H
#define PCCL_LAUNCH_LOOK_AT_H

#include "options.h"

/* Both return the exit status. */
int look_status(struct options *options);
int look_attached(const struct options *options);

#endif
