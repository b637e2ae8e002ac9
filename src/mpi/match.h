/* match.h - which message goes to which receive: the queue of posted receives
 * and the queue of messages that came before theirs. Pure: no locks, no
 * memory; entries are parts of the caller's objects. Within one source and
 * context, messages match in the order of arrival and receives in the order of
 * posting. */
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

struct match_entry {
    struct match_key key;
    struct match_entry *next, *previous;
    struct match_list *list; /* NULL: in none */
};

struct match_list {
    struct match_entry *first, *last;
};

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
struct match_entry *match_peek(const struct match_queues *queues,
                               const struct match_key *key);
/* Takes an entry out of its queue; false: it was in none. */
bool match_remove(struct match_entry *entry);

#endif
