/* view.h - a view: the members of one epoch in the order of their ranks, and
 * the links between them.
 *
 * A view is made from a PROPOSE, and nothing of it changes once its INSTALL has
 * come (view_complete). From then on it is counted: each holder of a pointer to
 * it has a reference. The session, the links, the history of what the program
 * was notified of and the MPI library have the same one. All that follows from
 * the list of members is worked out here, once, at a cost that is linear in it.
 */
#ifndef PCCL_VIEW_H
#define PCCL_VIEW_H

#include "../base/base.h"
#include "../base/wire.h"

#include <stdatomic.h>

struct view {
    _Atomic uint32_t references;
    uint32_t epoch, size, rank;
    uint32_t world, groups, largest; /* of the run, when it came into force */
    bool ring, mesh, tree, grid;     /* pairs that are linked */
    bool survey;       /* of the proposal: more links are to be tried (R4d) */
    uint64_t one_host; /* host of all members; 0: there are several hosts */
    struct wire_member *members; /* in rank order */
    uint64_t *ids;
    uint16_t *order; /* ring order as ranks; NULL: identity */
    uint16_t *sites; /* by rank: each member's site; NULL: not known */
    uint32_t relay_count;
    struct wire_relay *relays; /* pairs that are relayed (rule N10) */
    /* The step to it from the view before: */
    uint32_t removed_count, added;
    uint64_t *removed; /* ids */
    uint32_t lost;     /* removed by all steps since this peer's first view */
    uint32_t traits;   /* of the survivors of a loss (rule T4) */
    /* Ranks by id, in a table of 2^n slots with open addresses; NO_RANK: the
     * slot is free. */
    uint16_t *slots;
    uint32_t slot_mask;
};

/* No members and epoch 0. It needs no reference. */
const struct view *view_none(void);

/* A view of that size, zeroed and with one reference; the maker fills it in and
 * ends with view_index(). NULL: out of memory. */
struct view *view_new(uint32_t size, uint32_t relays, uint32_t removed);
void view_index(struct view *v);

/* The view that a PROPOSE makes of `base`: without msg->ids, followed by
 * msg->members; a newcomer's base is view_none(). NULL, and *why is set: the
 * message does not fit the base, this peer (id self) is not in it, or there is
 * no memory. */
struct view *view_propose(const struct view *base, const struct wire_msg *msg,
                          uint64_t self, const char **why);
/* Its INSTALL has come. */
void view_complete(struct view *v, const struct wire_msg *msg);

const struct view *view_retain(const struct view *v);
void view_release(const struct view *v); /* NULL is allowed */

/* Rank of a member, or view->size. */
uint32_t view_find(const struct view *v, uint64_t id);
static inline bool view_has(const struct view *v, uint64_t id)
{
    return view_find(v, id) < v->size;
}

#endif
