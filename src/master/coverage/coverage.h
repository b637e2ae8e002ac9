/* coverage.h - partial all-reduces as the coordinator sees them (rules A): it
 * counts the rounds of each tag, cuts the vector, and decides once which parts
 * the members have. It sees digests, never data. */
#ifndef PCCL_COVERAGE_H
#define PCCL_COVERAGE_H

#include "../master.h"

enum {
    COVERAGE_TAGS_MAX = WIRE_TAGS_MAX, /* of a group */
    COVERAGE_KEPT = 2, /* decided rounds of a tag whose parts are kept */
    COVERAGE_WORDS = WIRE_AVERAGED_MAX / 64,
};

enum coverage_state {
    COVERAGE_GATHERING,
    COVERAGE_MOVING,
    COVERAGE_DECIDED,
    COVERAGE_REFUSED, /* members disagree on the arguments */
};

struct coverage_member {
    uint64_t id;
    uint32_t link;
    double weight;
    pccl_ns called_at;
    bool called;
    bool ended;  /* END or REFUSE has gone out */
    bool failed; /* its call has ended by itself */
    bool reported;
    bool fetches; /* FETCH has gone out */
    bool lapsed;  /* missed rounds that are not kept any more, and was not
                     told */
    bool out;     /* A13: the round is not for it any more, but while it is
                     undecided */
    bool contributed;
    bool has;     /* A14: END has gone out, or a state that has the round */
    bool untaken; /* ... but at its last SYNC its program had no result yet */
    uint32_t absences; /* rounds in a row without its contribution */
};

struct coverage_part {
    uint64_t begin, count;
    uint32_t owner;
    bool folded, committed;
    uint64_t hash;
    uint64_t claimed; /* the hash that members name who have it before that */
    uint64_t set[COVERAGE_WORDS]; /* contributors */
    uint64_t holders[COVERAGE_WORDS];
    uint64_t claims[COVERAGE_WORDS];
};

struct coverage_args {
    uint64_t count;
    uint8_t dtype, redop;
    uint32_t deadline_ms, gather_ms, evict_after;
};

struct coverage_round {
    struct coverage_round *next; /* a later one of the group */
    uint64_t tag, number;
    enum coverage_state state;
    struct coverage_args args;
    pccl_ns opened_at, decided_at;
    bool folds, reports; /* FOLD, REPORT has gone out */
    bool changed;        /* PLAN or FETCH is to go out again */
    bool released;       /* all have it; kept for the counts of absences */
    uint64_t gone[COVERAGE_WORDS]; /* as the last PLAN or FETCH said */
    uint32_t member_count, part_count;
    char text[WIRE_TEXT_MAX + 1]; /* REFUSED */
    struct coverage_part *parts;
    struct coverage_member members[WIRE_AVERAGED_MAX];
    uint16_t places[MASTER_LINKS_MAX]; /* of links in `members`, plus 1 */
};

/* Sets of the members of a round, for one look at it. */
struct coverage_sets {
    uint64_t lives[COVERAGE_WORDS], waits[COVERAGE_WORDS];
};

/* A message to several members, but for its words about each of them. */
struct coverage_letter {
    bool made;
    struct wire_msg msg;
    uint64_t ids[2 * WIRE_AVERAGED_MAX];
    struct wire_part parts[WIRE_PARTS_MAX];
    uint8_t sets[WIRE_PARTS_MAX * WIRE_AVERAGED_MAX / 8];
};

static inline bool coverage_has(const uint64_t *set, uint32_t i)
{
    return set[i / 64] >> i % 64 & 1;
}

static inline void coverage_put(uint64_t *set, uint32_t i)
{
    set[i / 64] |= 1ull << i % 64;
}

/* For master.c, of one group: a message; after each event; when the next tick
 * is due; the end. */
void coverage_received(struct master *m, uint32_t link,
                       const struct wire_msg *msg);
void coverage_settle(struct master *m, uint32_t group);
pccl_ns coverage_next(const struct master *m);
void coverage_clear(struct master_group *g);

/* coverage_state.c, rule A14: a member synchronizes its state; and one was
 * elected that others are to receive. */
void coverage_votes(struct master *m, uint32_t link,
                    const struct wire_msg *msg);
void coverage_elected(struct master *m, uint32_t group);

/* coverage_call.c */
void coverage_call(struct master *m, uint32_t link, const struct wire_msg *msg);

bool coverage_is_decided(const struct coverage_round *r);
/* The peer of that link, if it is one of the round. */
struct coverage_member *coverage_find(const struct master *m,
                                      struct coverage_round *r, uint32_t link);
void coverage_free(struct coverage_round **slot);
void coverage_missed(struct master *m, uint64_t tag, uint32_t link);
/* The member is still one of the group, and its call has not failed. */
bool coverage_lives(const struct master *m, const struct coverage_member *c);
/* It waits in its call. */
bool coverage_waits(const struct master *m, const struct coverage_member *c);

/* coverage_order.c: messages. */
void coverage_send_plan(struct master *m, struct coverage_round *r);
/* An order without content to all that wait in their calls. */
void coverage_send_all(struct master *m, const struct coverage_round *r,
                       enum partial_order order);
/* The letter is made by the first one, for all. */
void coverage_send_fetch(struct master *m, struct coverage_round *r,
                         const struct coverage_sets *s, uint32_t member,
                         struct coverage_letter *letter);
void coverage_send_end(struct master *m, struct coverage_round *r,
                       uint32_t member, bool last,
                       struct coverage_letter *letter);
void coverage_refuse(struct master *m, struct coverage_round *r,
                     uint32_t member, enum partial_refusal why,
                     const char *text);
void coverage_send_refusal(struct master *m, uint32_t link, uint64_t tag,
                           enum partial_refusal why, const char *text);

/* coverage_parts.c: cuts the vector of a round between those that have
 * called. False: no memory. */
bool coverage_cut(struct master *m, struct coverage_round *r);
/* The number of elements of each of n parts, by the rates of their owners
 * (bytes/s; 0: not known, and then all are equal). Pure. */
void coverage_sizes(uint64_t count, const double *rates, uint32_t n,
                    uint64_t *counts);

#endif
