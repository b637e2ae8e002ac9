/* edges.h - pairs of peers: what is known of their links, the rings over them,
 * and who relays what is missing. Rules O1, R4 and N10. */
#ifndef PCCL_MASTER_EDGES_H
#define PCCL_MASTER_EDGES_H

#include "../../base/base.h"
#include "../../base/wire.h"

struct master;
struct master_group;

enum { MASTER_RELAYS_MAX = 3 /* that may fail for a pair (N10d) */ };

/* A pair whose link was lost, or could not be made. */
struct master_edge {
    uint64_t a, b;      /* member ids */
    uint32_t breaks;    /* silent losses since data passed */
    bool bad;           /* it cannot be linked, or passes no data (rule R4) */
    pccl_ns bad_at;     /* since when */
    uint32_t failed[2]; /* last round in which a, b reported it (R4f) */
    /* Rule N10, of a bad pair. A relay is an id, or 0: the master. */
    bool relayed; /* the proposal or the view has a relay for it */
    bool told;    /* the operator knows this one */
    uint32_t relays_failed;
    uint64_t relay, lost[MASTER_RELAYS_MAX];
};

/* edges.c: links between peers. */
void edges_add(struct master *m, uint32_t link);
void edges_measured(struct master *m, uint32_t link,
                    const struct wire_edge *edge);
/* Both are peers of the group. */
bool edges_is_pair(const struct master *m, uint32_t group, uint64_t a,
                   uint64_t b);
/* The pair cannot be linked, as either end reports (R4a). False: that does not
 * count, because one of them is not known, or silent. */
bool edges_failed(struct master *m, uint32_t group, uint64_t a, uint64_t b);
/* The pair cannot be linked, as either end reports: to be judged when the round
 * has all reports. */
void edges_report(struct master *m, uint32_t group, uint64_t a, uint64_t b);
/* The link of the pair was lost, as either end reports (R4e). */
void edges_broken(struct master *m, uint32_t group, uint64_t a, uint64_t b,
                  bool carried);
void edges_forget_gone(struct master *m, uint32_t group);
/* Every pair that was bad before `since` may be tried again (rule R3h). */
void edges_retry(struct master *m, uint32_t group, pccl_ns since);
/* Over a relay it carries little, whatever was measured (rule N10c). */
void edges_slow(struct master *m, uint32_t group, uint64_t a, uint64_t b);

/* relays.c: who relays what between m->members[0..count) (rule N10). */
void relays_choose(struct master *m, uint32_t group, uint32_t count);
/* The view is installed: the operator's notes of relays that are new. */
void relays_note(struct master *m, uint32_t group);
/* A connection that is to be relayed: the master does that for this pair. */
bool relays_take(const struct master *m, const struct wire_msg *msg);
/* The pair gets a relay in the round to come. */
bool relays_can(struct master *m, uint32_t group, uint64_t a, uint64_t b);
/* All of them into m->relays, those of the ring first. */
void relays_list(struct master *m, uint32_t group, uint32_t count);
/* The relay of a bad pair did not link it. */
void relays_failed(struct master *m, struct master_edge *e);

/* order.c: a ring over m->members[0..count) without the group's bad pairs, or
 * else with those that are relayed.
 * m->order[i] is an index into members; the given permutation is changed as
 * little as needed. False if no ring was found; in worlds of up to
 * MASTER_EXACT_MAX there is none. */
bool order_ring(struct master *m, uint32_t group, uint32_t count);
/* As kept[0..count) who goes on where no ring has all (R4b); their number. */
uint32_t order_split(struct master *m, uint32_t group, uint32_t count,
                     bool *kept);
/* After a survey: the largest set that is connected by the links it made. */
uint32_t order_component(struct master *m, uint32_t group, uint32_t count,
                         bool *kept);
/* World size up to which all pairs are linked. It is larger across hosts: with
 * direct links a member waits for one delay, in a ring for all of them. */
uint32_t order_mesh_max(const struct wire_member *members, uint32_t count);

/* link_shape.c: decides the links of the proposal, for m->members in m->order
 * and the ring of g. */
void link_shape_choose(struct master *m, struct master_group *g,
                       uint32_t count);
/* The pair cannot be linked. */
bool order_is_bad(const struct master_group *g, uint64_t a, uint64_t b);
/* The pair cannot be linked, and nobody relays it. */
bool order_is_missing(const struct master_group *g, uint64_t a, uint64_t b);

#endif
