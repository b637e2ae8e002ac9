/* memory_supply.h - how much memory this process can still have. */
#ifndef PCCL_MEMORY_SUPPLY_H
#define PCCL_MEMORY_SUPPLY_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes that the host and every control group of this process have left, with
 * swap and what the kernel can drop; UINT64_MAX: they do not say. `root` is ""
 * but in tests: a folder with other files in place of /proc and /sys. */
uint64_t memory_supply(const char *root);

/* What this process may take: also the limit of its addresses (ulimit -v). */
uint64_t memory_supply_here(void);

/* The kernel counts what it promises (vm.overcommit_memory=2): the first access
 * to shared memory may end the process unless it was reserved. */
bool memory_is_counted(const char *root);

#endif
