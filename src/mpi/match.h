/* match.h - matching: the queue of posted receives and the queue of unexpected
 * messages. No locks; entries are parts of the caller's objects. Within one
 * source and context, messages match in the order of arrival and receives in
 * the order of posting.
 *
 * Matching takes constant time, however long the queues are. The first few
 * entries are compared: programs mostly receive in the order of sending. An
 * index is built when they do not suffice, and used until the queue is empty.
 * Receives are indexed by their key, wildcards included: a message looks up the
 * four kinds of receive that may fit it and takes the one posted first.
 * Messages have one index per kind of receive. Without memory for larger tables
 * the existing ones are used. */
#ifndef MATCH_H
#define MATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define MATCH_ANY_SOURCE UINT64_MAX
#define MATCH_ANY_TAG (-1)

struct match_key {
    uint64_t source; /* member id; MATCH_ANY_SOURCE in a receive */
    uint32_t context;
    int tag; /* MATCH_ANY_TAG in a receive */
};

/* One index per kind of receive: with or without source, and tag. */
enum {
    MATCH_TAG_OPEN = 1,
    MATCH_SOURCE_OPEN = 2,
    MATCH_KINDS = 4,
    MATCH_SLOTS = 64, /* initial size of an index; a power of two */
};

struct match_entry {
    struct match_key key;
    struct match_entry *next, *previous;
    struct match_list *list; /* NULL: not queued */
    uint64_t turn;           /* position in the order of the list */
    struct {
        struct match_entry *next, *previous;
    } chains[MATCH_KINDS];
};

/* A hash table of chains, each in the order of the list. */
struct match_index {
    bool used;
    uint32_t mask; /* of `grown`, which the index owns, or NULL */
    struct match_chain {
        struct match_entry *first, *last;
    } * grown, few[MATCH_SLOTS];
};

struct match_list {
    struct match_entry *first, *last;
    _Atomic uint32_t count; /* see count_change() */
    uint64_t turns;
    bool indexed;                /* some index is used */
    uint32_t kinds[MATCH_KINDS]; /* number of posted receives per kind */
    struct match_index indexes[MATCH_KINDS];
};

/* A count that changes under a lock, and that others read without it. */
static inline void count_change(_Atomic uint32_t *count, int by)
{
    uint32_t now = atomic_load_explicit(count, memory_order_relaxed);
    atomic_store_explicit(count, now + (uint32_t)by, memory_order_relaxed);
}

static inline bool count_any(const _Atomic uint32_t *count)
{
    return atomic_load_explicit(count, memory_order_relaxed) > 0;
}

/* All zero: empty. */
struct match_queues {
    struct match_list posted, unexpected;
};

/* Posts a receive: takes the first message that fits, or is queued. */
struct match_entry *match_post(struct match_queues *queues,
                               struct match_entry *receive);
/* Delivers a message: takes the first receive that fits, or is queued. */
struct match_entry *match_arrive(struct match_queues *queues,
                                 struct match_entry *message);
/* Removes and returns the first receive that fits a message with this key, or
 * NULL. */
struct match_entry *match_take(struct match_queues *queues,
                               const struct match_key *message);
/* The first queued message that fits a receive with this key. */
struct match_entry *match_peek(struct match_queues *queues,
                               const struct match_key *key);
/* Removes an entry from its queue; false: it was not queued. */
bool match_remove(struct match_entry *entry);
/* Frees the tables; the queues must be empty. */
void match_free(struct match_queues *queues);

#endif
