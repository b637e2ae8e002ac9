/* message_table.h - a table of messages by the remote member and its or our
 * cookie. The caller locks. */
#ifndef MESSAGE_TABLE_H
#define MESSAGE_TABLE_H

#include "p2p.h"

struct message_table {
    struct message **grown; /* `mask` + 1 slots; NULL: the initial ones */
    uint32_t mask;
    _Atomic uint32_t count; /* see count_change() */
    struct message *few[64];
};

/* The table uses the message's `next`. */
void message_table_add(struct message_table *table, struct message *message);
bool message_table_has(struct message_table *table, uint64_t member,
                       uint64_t cookie);
/* Removes and returns it; NULL: not found. */
struct message *message_table_take(struct message_table *table, uint64_t member,
                                   uint64_t cookie);
/* Removes all that `which` selects; returns a list by `next`. */
struct message *message_table_take_all(struct message_table *table,
                                       bool (*which)(struct message *message,
                                                     void *user),
                                       void *user);
/* Frees the memory of an empty table. */
void message_table_free(struct message_table *table);

#endif
