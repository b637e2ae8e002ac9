/* view.h - the membership view of one peer, and the view that the program was
 * notified of.
 *
 * The view in force follows the master. The program's view (`notified`) moves
 * only where the contract allows: one loss at a time with a failing operation,
 * or everything at once with a topology update (rules T1, T2). */
#ifndef PCCL_VIEW_H
#define PCCL_VIEW_H

#include "../base/base.h"
#include "../base/wire.h"

struct view {
    uint32_t epoch, size, rank;
    uint32_t world, groups, largest;
    bool ring, mesh, tree, grid, has_order;
    bool survey; /* of the proposal: more links are to be tried (rule R4d) */
    struct wire_member members[PEERS_MAX]; /* in rank order */
    uint64_t ids[PEERS_MAX];
    uint16_t order[PEERS_MAX]; /* ring order as ranks, if has_order */
    bool has_sites;
    uint16_t sites[PEERS_MAX]; /* by rank, if has_sites: each member's site */
    uint32_t relay_count;      /* pairs that are relayed (rule N10) */
    struct wire_relay relays[WIRE_RELAYS_MAX];
};

struct loss {
    uint32_t epoch, world, groups, largest;
    uint32_t first, count; /* in `removed` */
    uint32_t traits;       /* of the survivors (rule T4) */
};

struct notified {
    uint32_t epoch, size, rank;
    uint32_t world, groups, largest;
    uint32_t traits; /* of the survivors of the losses last reported (T4) */
    struct wire_member members[PEERS_MAX];
    /* Losses that the program was not notified of, oldest first. Each removes
     * at least one member and no member comes back, so PEERS_MAX is enough. */
    struct loss losses[PEERS_MAX];
    uint32_t loss_first, loss_count; /* numbered from loss_first */
    uint64_t removed[PEERS_MAX];
    uint32_t removed_count;
};

/* next = base without msg->ids, then msg->members; a newcomer's base is empty
 * and of epoch 0. False: the message does not fit the base, or this peer (id
 * self) is not in it. */
bool view_propose(struct view *next, const struct view *base,
                  const struct wire_msg *msg, uint64_t self);

/* Index of a member, or view->size. */
uint32_t view_find(const struct view *v, uint64_t id);

/* The program sees the view in force. No loss is pending. */
void notified_all(struct notified *t, const struct view *v);

/* Members `ids` have left since the last view, and those that stayed have these
 * traits. False: more than possible. */
bool notified_push(struct notified *t, const struct view *now,
                   const uint64_t *ids, uint32_t count, uint32_t traits);

/* Notifies the program of the losses up to and including number `loss`. */
void notified_advance(struct notified *t, uint32_t loss, uint64_t self);
/* The first loss, of those that it was not told of, with one of these members;
 * 0: none has. */
uint32_t notified_loss_of(const struct notified *t, const uint64_t *ids,
                          uint32_t count);

#endif
