/* match.c - matching of messages and receives in constant time. */
#include "match.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

enum { FEW = 8 }; /* entries that are compared before an index is used */

static bool fits(const struct match_key *receive,
                 const struct match_key *message)
{
    return receive->context == message->context &&
           (receive->source == MATCH_ANY_SOURCE ||
            receive->source == message->source) &&
           (receive->tag == MATCH_ANY_TAG || receive->tag == message->tag);
}

static int kind_of(const struct match_key *receive)
{
    return (receive->tag == MATCH_ANY_TAG ? MATCH_TAG_OPEN : 0) |
           (receive->source == MATCH_ANY_SOURCE ? MATCH_SOURCE_OPEN : 0);
}

/* The key of a receive of this kind that fits the message. */
static struct match_key as_kind(const struct match_key *key, int kind)
{
    return (struct match_key){
        kind & MATCH_SOURCE_OPEN ? MATCH_ANY_SOURCE : key->source, key->context,
        kind & MATCH_TAG_OPEN ? MATCH_ANY_TAG : key->tag};
}

static bool is_same(const struct match_key *a, const struct match_key *b)
{
    return a->source == b->source && a->context == b->context &&
           a->tag == b->tag;
}

/* ------------------------------------------------------------------ indexes */

static struct match_chain *chain_of(struct match_index *index,
                                    const struct match_key *key)
{
    uint64_t hash = key->source * 0x9e3779b97f4a7c15u;
    hash ^= (uint64_t)key->context << 32 | (uint32_t)key->tag;
    hash *= 0x9e3779b97f4a7c15u;
    if (!index->grown) return &index->few[hash >> 32 & (MATCH_SLOTS - 1)];
    return &index->grown[hash >> 32 & index->mask];
}

/* In the index of a kind, messages are stored under the key of such a
 * receive. */
static void index_append(struct match_list *list, int kind,
                         struct match_entry *entry)
{
    struct match_key key = as_kind(&entry->key, kind);
    struct match_chain *chain = chain_of(&list->indexes[kind], &key);
    entry->chains[kind].next = NULL;
    entry->chains[kind].previous = chain->last;
    if (chain->last)
        chain->last->chains[kind].next = entry;
    else
        chain->first = entry;
    chain->last = entry;
}

static void index_remove(struct match_list *list, int kind,
                         struct match_entry *entry)
{
    struct match_key key = as_kind(&entry->key, kind);
    struct match_chain *chain = chain_of(&list->indexes[kind], &key);
    struct match_entry *next = entry->chains[kind].next;
    struct match_entry *previous = entry->chains[kind].previous;
    if (previous)
        previous->chains[kind].next = next;
    else
        chain->first = next;
    if (next)
        next->chains[kind].previous = previous;
    else
        chain->last = previous;
}

static void index_fill(struct match_list *list, int kind)
{
    for (struct match_entry *at = list->first; at; at = at->next)
        index_append(list, kind, at);
}

static void index_grow(struct match_list *list, int kind)
{
    struct match_index *index = &list->indexes[kind];
    uint32_t slots = index->grown ? index->mask + 1 : MATCH_SLOTS;
    if (list->count <= slots || slots > UINT32_MAX / 8) return;
    struct match_chain *grown = calloc((size_t)4 * slots, sizeof *grown);
    if (!grown) return;
    free(index->grown);
    index->grown = grown;
    index->mask = 4 * slots - 1;
    index_fill(list, kind);
}

static void index_use(struct match_list *list, int kind)
{
    if (list->indexes[kind].used) return;
    list->indexed = list->indexes[kind].used = true;
    index_fill(list, kind);
    index_grow(list, kind);
}

/* Of an empty list, which has empty chains. */
static void indexes_forget(struct match_list *list)
{
    for (int kind = 0; kind < MATCH_KINDS; kind++)
        list->indexes[kind].used = false;
    list->indexed = false;
}

static void append(struct match_list *list, struct match_entry *entry)
{
    assert(!entry->list);
    if (list->indexed && !list->first) indexes_forget(list);
    entry->list = list;
    entry->turn = list->turns++;
    entry->next = NULL;
    entry->previous = list->last;
    if (list->last)
        list->last->next = entry;
    else
        list->first = entry;
    list->last = entry;
    count_change(&list->count, 1);
    list->kinds[kind_of(&entry->key)]++;
    for (int kind = 0; list->indexed && kind < MATCH_KINDS; kind++) {
        if (!list->indexes[kind].used) continue;
        index_append(list, kind, entry);
        index_grow(list, kind);
    }
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
    for (int kind = 0; list->indexed && kind < MATCH_KINDS; kind++)
        if (list->indexes[kind].used) index_remove(list, kind, entry);
    count_change(&list->count, -1);
    list->kinds[kind_of(&entry->key)]--;
    entry->next = entry->previous = NULL;
    entry->list = NULL;
    return true;
}

void match_free(struct match_queues *queues)
{
    struct match_list *lists[] = {&queues->posted, &queues->unexpected};
    for (int i = 0; i < 2; i++) {
        assert(!lists[i]->first);
        for (int kind = 0; kind < MATCH_KINDS; kind++)
            free(lists[i]->indexes[kind].grown);
        *lists[i] = (struct match_list){0};
    }
}

/* ----------------------------------------------------------------- matching */

/* Whether the first entries tell which one fits first: *found, or none. */
static bool search_few(const struct match_list *list,
                       const struct match_key *key, bool posted,
                       struct match_entry **found)
{
    struct match_entry *at = list->first;
    for (int i = 0; at && i < FEW; i++, at = at->next) {
        if (!(posted ? fits(&at->key, key) : fits(key, &at->key))) continue;
        *found = at;
        return true;
    }
    *found = NULL;
    return !at;
}

struct match_entry *match_peek(struct match_queues *queues,
                               const struct match_key *key)
{
    struct match_list *list = &queues->unexpected;
    struct match_entry *at;
    if (search_few(list, key, false, &at)) return at;
    int kind = kind_of(key);
    index_use(list, kind);
    at = chain_of(&list->indexes[kind], key)->first;
    while (at && !fits(key, &at->key)) at = at->chains[kind].next;
    return at;
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

/* The first posted receive with exactly this key. */
static struct match_entry *posted(struct match_list *list,
                                  const struct match_key *key)
{
    struct match_entry *at = chain_of(&list->indexes[0], key)->first;
    while (at && !is_same(&at->key, key)) at = at->chains[0].next;
    return at;
}

struct match_entry *match_take(struct match_queues *queues,
                               const struct match_key *message)
{
    struct match_list *list = &queues->posted;
    struct match_entry *first;
    bool known = search_few(list, message, true, &first);
    if (!known) index_use(list, 0);
    for (int kind = 0; !known && kind < MATCH_KINDS; kind++) {
        if (list->kinds[kind] == 0) continue;
        struct match_key key = as_kind(message, kind);
        struct match_entry *at = posted(list, &key);
        if (at && (!first || at->turn < first->turn)) first = at;
    }
    if (first) (void)match_remove(first);
    return first;
}

struct match_entry *match_arrive(struct match_queues *queues,
                                 struct match_entry *message)
{
    struct match_entry *receive = match_take(queues, &message->key);
    if (!receive) append(&queues->unexpected, message);
    return receive;
}
