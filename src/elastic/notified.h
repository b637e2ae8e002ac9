/* notified.h - the view that the program was notified of.
 *
 * The view in force follows the master. The program's moves only where the
 * contract allows: one loss at a time with a failing operation, or everything
 * at once with a topology update (rules T1, T2). Both are the same counted
 * views; a loss is the view that it led to, and its epoch is its name. */
#ifndef PCCL_NOTIFIED_H
#define PCCL_NOTIFIED_H

#include "../link/view.h"

struct notified {
    const struct view *view; /* that the program knows */
    uint32_t traits; /* of the survivors of the losses last reported (T4) */
    /* The views of losses that the program was not notified of, oldest first.
     * Each has removed at least one member, and no member comes back. */
    const struct view **losses;
    uint32_t loss_count, room;
};

void notified_init(struct notified *t);
void notified_free(struct notified *t);

/* The program sees the view in force. No loss is pending. */
void notified_all(struct notified *t, const struct view *v);

/* Members have left: `now` is in force. False: out of memory, or more losses
 * than there can be. */
bool notified_push(struct notified *t, const struct view *now);

/* Notifies the program of the losses up to and including that epoch. */
void notified_advance(struct notified *t, uint32_t epoch);

/* The epoch of the oldest loss that it was not told of; 0: there is none. */
static inline uint32_t notified_oldest(const struct notified *t)
{
    return t->loss_count > 0 ? t->losses[0]->epoch : 0;
}

/* As above, of the oldest loss of one of these members. */
uint32_t notified_loss_of(const struct notified *t, const uint64_t *ids,
                          uint32_t count);

#endif
