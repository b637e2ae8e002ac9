/* info.h - MPI_Info: ordered key/value pairs. */
#ifndef INFO_H
#define INFO_H

#include "facade.h"

struct info;

struct info *info_find(MPI_Info handle);
/* A copy without handle; an empty one of NULL. NULL: no memory. */
struct info *info_copy(const struct info *info);
void info_release(struct info *info);

#endif
