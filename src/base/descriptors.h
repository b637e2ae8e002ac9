/* descriptors.h - how many descriptors this process has, and may still open. */
#ifndef PCCL_DESCRIPTORS_H
#define PCCL_DESCRIPTORS_H

#include <stdint.h>

/* Those that are open; *left: those that may be opened, by the soft limit. */
uint64_t descriptors_used(uint64_t *left);
/* Those that may still be opened, of `need`, after the soft limit was raised as
 * far as that takes and the hard limit allows. */
uint64_t descriptors_afford(uint64_t need);

#endif
