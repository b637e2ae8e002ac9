/* match.h - which message goes to which receive: the queue of posted receives
 * and the queue of messages that came before theirs. No locks; entries are
 * parts of the caller's objects. Within one source and context, messages match
 * in the order of arrival and receives in the order of posting.
 *
 * However long the queues are, a match takes the same time. Receives are found
 * by what they name, wildcards included: a message asks for each of the four
 * kinds of receive that it may fit and takes the one that was posted first.
 * Messages are found in one index for each kind of receive; those for receives
 * with wildcards are made when such a receive first meets a long queue.
 * Without memory for larger tables it goes on with the ones there are. */
#ifndef MATCH_H
#define MATCH_H

#include <stdbool.h>
#include <stdint.h>

#define MATCH_ANY_SOURCE UINT64_MAX
#define MATCH_ANY_TAG (-1)

struct match_key {
    uint64_t source; /* member id; MATCH_ANY_SOURCE in a receive */
    uint32_t context;
    int tag; /* MATCH_ANY_TAG in a receive */
};

/* One index per kind of receive: whether it names its source, and its tag. */
enum {
    MATCH_TAG_OPEN = 1,
    MATCH_SOURCE_OPEN = 2,
    MATCH_KINDS = 4,
    MATCH_SLOTS = 64, /* of an index at first; a power of two */
};

struct match_entry {
    struct match_key key;
    struct match_entry *next, *previous;
    struct match_list *list; /* NULL: in none */
    uint64_t turn;           /* in the order of the list */
    struct {
        struct match_entry *next, *previous;
    } chains[MATCH_KINDS];
};

/* A hash table of chains, each in the order of the list. */
struct match_index {
    bool used;
    uint32_t mask; /* of `grown`, which is the index's own, or NULL */
    struct match_chain {
        struct match_entry *first, *last;
    } * grown, few[MATCH_SLOTS];
};

struct match_list {
    struct match_entry *first, *last;
    uint32_t count;
    uint64_t turns;
    uint32_t kinds[MATCH_KINDS]; /* of posted receives */
    struct match_index indexes[MATCH_KINDS];
};

/* All zero: empty. */
struct match_queues {
    struct match_list posted, unexpected;
};

/* A receive: takes the first message that fits, else it is queued. */
struct match_entry *match_post(struct match_queues *queues,
                               struct match_entry *receive);
/* A message: takes the first receive that fits, else it is queued. */
struct match_entry *match_arrive(struct match_queues *queues,
                                 struct match_entry *message);
/* The first receive that a message with this key fits, taken out; or NULL. */
struct match_entry *match_take(struct match_queues *queues,
                               const struct match_key *message);
/* The first queued message that a receive with this key would get. */
struct match_entry *match_peek(struct match_queues *queues,
                               const struct match_key *key);
/* Takes an entry out of its queue; false: it was in none. */
bool match_remove(struct match_entry *entry);
/* Frees the tables; the queues are empty. */
void match_free(struct match_queues *queues);

#endif
