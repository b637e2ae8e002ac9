/* notified.c - see notified.h. */
#include "notified.h"

#include <stdlib.h>
#include <string.h>

void notified_init(struct notified *t)
{
    *t = (struct notified){.view = view_none()};
}

static void drop_losses(struct notified *t, uint32_t count)
{
    if (count == 0) return;
    for (uint32_t i = 0; i < count; i++) view_release(t->losses[i]);
    t->loss_count -= count;
    memmove(t->losses, t->losses + count, t->loss_count * sizeof *t->losses);
}

void notified_free(struct notified *t)
{
    drop_losses(t, t->loss_count);
    view_release(t->view);
    free(t->losses);
    notified_init(t);
}

static void know(struct notified *t, const struct view *v)
{
    view_retain(v);
    view_release(t->view);
    t->view = v;
}

void notified_all(struct notified *t, const struct view *v)
{
    know(t, v);
    t->traits = 0;
    drop_losses(t, t->loss_count);
}

bool notified_push(struct notified *t, const struct view *now)
{
    if (t->loss_count == PEERS_MAX) return false;
    if (t->loss_count == t->room) {
        uint32_t room = 2 * t->room + 4;
        const struct view **more = realloc(t->losses, room * sizeof *more);
        if (!more) return false;
        t->losses = more;
        t->room = room;
    }
    t->losses[t->loss_count++] = view_retain(now);
    return true;
}

void notified_advance(struct notified *t, uint32_t epoch)
{
    uint32_t count = 0, traits = 0;
    while (count < t->loss_count && t->losses[count]->epoch <= epoch)
        traits |= t->losses[count++]->traits;
    if (count == 0) return;
    know(t, t->losses[count - 1]);
    t->traits = traits;
    drop_losses(t, count);
}

uint32_t notified_loss_of(const struct notified *t, const uint64_t *ids,
                          uint32_t count)
{
    for (uint32_t i = 0; i < t->loss_count; i++) {
        for (uint32_t k = 0; k < count; k++)
            if (!view_has(t->losses[i], ids[k])) return t->losses[i]->epoch;
    }
    return 0;
}
