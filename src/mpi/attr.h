/* attr.h - keyvals and the attribute lists of communicators and types. */
#ifndef ATTR_H
#define ATTR_H

#include "facade.h"

struct attribute;

/* Runs the copy callbacks into a list for the new object. If a callback fails,
 * deletes all copies and returns its code. */
int attr_copy_all(any_handle from_handle, struct attribute *from,
                  struct attribute **to, any_handle to_handle);
/* Runs the delete callbacks, latest first, as MPI-4 requires. Stops at an error
 * and keeps the remaining attributes. */
int attr_delete_all(any_handle handle, struct attribute **list);

#endif
