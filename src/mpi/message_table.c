/* message_table.c - a hash table of messages. */
#include "message_table.h"

#include <stdlib.h>
#include <string.h>

static uint32_t room_of(const struct message_table *table)
{
    return table->grown ? table->mask + 1
                        : (uint32_t)(sizeof table->few / sizeof *table->few);
}

/* Consecutive cookies of a member use consecutive slots. */
static struct message **slot_of(struct message_table *table, uint64_t member,
                                uint64_t cookie)
{
    uint64_t hash = member * 0x9e3779b97f4a7c15u + cookie;
    struct message **slots = table->grown ? table->grown : table->few;
    return &slots[hash & (room_of(table) - 1)];
}

static void put(struct message_table *table, struct message *message)
{
    struct message **slot =
        slot_of(table, message->entry.key.source, message->cookie);
    message->next = *slot;
    *slot = message;
}

/* Without memory the chains grow longer. */
static void grow(struct message_table *table)
{
    uint32_t room = room_of(table);
    struct message **old = table->grown ? table->grown : table->few;
    struct message **grown = calloc((size_t)4 * room, sizeof(struct message *));
    if (!grown) return;
    struct message_table larger = {.grown = grown, .mask = 4 * room - 1};
    for (uint32_t i = 0; i < room; i++) {
        for (struct message *at = old[i], *next; at; at = next) {
            next = at->next;
            put(&larger, at);
        }
    }
    free(table->grown);
    table->grown = grown;
    table->mask = larger.mask;
}

void message_table_add(struct message_table *table, struct message *message)
{
    if (table->count >= room_of(table) && room_of(table) < 1u << 28)
        grow(table);
    count_change(&table->count, 1);
    put(table, message);
}

bool message_table_has(struct message_table *table, uint64_t member,
                       uint64_t cookie)
{
    const struct message *at = *slot_of(table, member, cookie);
    while (at && (at->cookie != cookie || at->entry.key.source != member))
        at = at->next;
    return at != NULL;
}

struct message *message_table_take(struct message_table *table, uint64_t member,
                                   uint64_t cookie)
{
    struct message **at = slot_of(table, member, cookie);
    while (*at &&
           ((*at)->cookie != cookie || (*at)->entry.key.source != member))
        at = &(*at)->next;
    struct message *message = *at;
    if (!message) return NULL;
    *at = message->next;
    count_change(&table->count, -1);
    return message;
}

struct message *message_table_take_all(struct message_table *table,
                                       bool (*which)(struct message *message,
                                                     void *user),
                                       void *user)
{
    struct message *taken = NULL;
    struct message **slots = table->grown ? table->grown : table->few;
    for (uint32_t i = 0; table->count > 0 && i < room_of(table); i++) {
        for (struct message **at = &slots[i]; *at;) {
            struct message *message = *at;
            if (!which(message, user)) {
                at = &message->next;
                continue;
            }
            *at = message->next;
            message->next = taken;
            taken = message;
            count_change(&table->count, -1);
        }
    }
    return taken;
}

void message_table_free(struct message_table *table)
{
    if (table->count > 0) return;
    free(table->grown);
    table->grown = NULL;
    memset(table->few, 0, sizeof table->few);
}
