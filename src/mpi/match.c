/* match.c - which message goes to which receive. */
#include "match.h"

#include <assert.h>
#include <stddef.h>

static bool fits(const struct match_key *receive,
                 const struct match_key *message)
{
    return receive->context == message->context &&
           (receive->source == MATCH_ANY_SOURCE ||
            receive->source == message->source) &&
           (receive->tag == MATCH_ANY_TAG || receive->tag == message->tag);
}

static void append(struct match_list *list, struct match_entry *entry)
{
    assert(!entry->list);
    entry->list = list;
    entry->next = NULL;
    entry->previous = list->last;
    if (list->last)
        list->last->next = entry;
    else
        list->first = entry;
    list->last = entry;
}

bool match_remove(struct match_entry *entry)
{
    struct match_list *list = entry->list;
    if (!list) return false;
    if (entry->previous)
        entry->previous->next = entry->next;
    else
        list->first = entry->next;
    if (entry->next)
        entry->next->previous = entry->previous;
    else
        list->last = entry->previous;
    entry->next = entry->previous = NULL;
    entry->list = NULL;
    return true;
}

struct match_entry *match_peek(const struct match_queues *queues,
                               const struct match_key *key)
{
    for (struct match_entry *at = queues->unexpected.first; at; at = at->next)
        if (fits(key, &at->key)) return at;
    return NULL;
}

struct match_entry *match_post(struct match_queues *queues,
                               struct match_entry *receive)
{
    struct match_entry *message = match_peek(queues, &receive->key);
    if (message)
        (void)match_remove(message);
    else
        append(&queues->posted, receive);
    return message;
}

struct match_entry *match_take(struct match_queues *queues,
                               const struct match_key *message)
{
    for (struct match_entry *at = queues->posted.first; at; at = at->next) {
        if (!fits(&at->key, message)) continue;
        (void)match_remove(at);
        return at;
    }
    return NULL;
}

struct match_entry *match_arrive(struct match_queues *queues,
                                 struct match_entry *message)
{
    struct match_entry *receive = match_take(queues, &message->key);
    if (!receive) append(&queues->unexpected, message);
    return receive;
}
