/* lacking.h - which limit of this process is in the way where the system has
 * refused it memory, a descriptor, a thread or a process. */
#ifndef PCCL_LACKING_H
#define PCCL_LACKING_H

#include <stddef.h>

/* It takes memory, a thread (and memory), or a process. */
enum lacking { LACKING_MEMORY, LACKING_THREAD, LACKING_PROCESS };

/* "no memory for WHAT (ulimit -v, which is N KiB here)", and so on; without
 * such a limit "out of memory or descriptors". */
void lacking_text(char *text, size_t size, const char *what,
                  enum lacking lacking);

#endif
