/* message_table.h - messages by the member at the other end and its or our
 * cookie. Locks are the caller's. */
#ifndef MESSAGE_TABLE_H
#define MESSAGE_TABLE_H

#include "p2p.h"

struct message_table {
    struct message **grown; /* slots, `mask` + 1 of them; NULL: the few */
    uint32_t mask, count;
    struct message *few[64];
};

/* The message's `next` is the table's from here on. */
void message_table_add(struct message_table *table, struct message *message);
/* Takes it out; NULL: it is not there. */
struct message *message_table_take(struct message_table *table, uint64_t member,
                                   uint64_t cookie);
/* Takes out all that `which` wants: a list by `next`. */
struct message *message_table_take_all(struct message_table *table,
                                       bool (*which)(struct message *message,
                                                     void *user),
                                       void *user);
/* Frees the memory of an empty table. */
void message_table_free(struct message_table *table);

#endif
