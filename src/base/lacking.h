/* lacking.h - which limit of this process is in the way where the system has
 * refused it memory, a descriptor or a thread. */
#ifndef PCCL_LACKING_H
#define PCCL_LACKING_H

#include <stdbool.h>
#include <stddef.h>

/* "no memory for WHAT (ulimit -v, which is N KiB here)", and so on; without
 * such a limit "out of memory or descriptors". `thread`: WHAT is one, or has
 * one. */
void lacking_text(char *text, size_t size, const char *what, bool thread);

#endif
