/* replicas_record.h - for replicas.c and replicas_collect.c: the record, and
 * who keeps it. */
#ifndef PCCL_REPLICAS_RECORD_H
#define PCCL_REPLICAS_RECORD_H

#include "../master.h"
#include "memory.h"

bool replicas_has(const struct replicas_ids *set, uint64_t id);
/* The members of the memory's views take the place of *set. False: no memory.
 */
bool replicas_ids_of(const struct master_memory *memory,
                     struct replicas_ids *set);
/* To the first of m->links. */
void replicas_send(struct master *m, uint32_t count);
/* The record takes the place of the one before, and goes to all who shall keep
 * it. False: no memory. */
bool replicas_begin_record(struct master *m,
                           const struct master_memory *memory);
/* It counts, and those that keep it learn so. */
void replicas_commit(struct master *m);
/* What was found: its voters, to be freed, and the memory, which points into
 * it. False: it cannot be. */
bool replicas_read(const struct replicas *k, struct replicas_ids *voters,
                   struct master_memory *memory);
void replicas_tell(struct master *m, const char *text);

#endif
