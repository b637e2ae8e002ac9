/* info.h - MPI_Info: ordered key/value pairs. */
#ifndef INFO_H
#define INFO_H

#include "facade.h"

struct info;

struct info *info_find(MPI_Info handle);
/* A copy without handle; of NULL an empty one. NULL: no memory. */
struct info *info_copy(const struct info *info);
/* The hints of a communicator: those keys that MPI defines, with the value in
 * `given`, else in `before` (or NULL), else MPI's default. Keys that it does
 * not define are ignored. NULL: no memory. */
struct info *info_hints(const struct info *given, const struct info *before);
/* Sets a key; false: no memory. */
bool info_put(struct info *info, const char *key, const char *value);
/* Assigns a handle. Takes info over; NULL means no memory. Returns a noted
 * class. */
int info_publish(struct info *info, MPI_Info *out);
void info_release(struct info *info);

#endif
