/* stall_watch.c - tells the operator of waits that are old (rule W5). */
#include "stall.h"

#include "../../base/fnv.h"

#include <string.h>

/* How often it looks; a wait that two looks have not found is over. */
#define LOOK_EVERY PCCL_S

/* Names the wait: the same for all looks at it. */
static uint64_t name_of(const struct stall *s)
{
    const struct wire_wait *w = &s->wait;
    uint64_t parts[] = {s->object, s->cause, s->group, w->kind,
                        w->scope,  w->tag,   w->seq,   w->peer};
    return fnv_words(FNV_BEGIN, parts, ARRAY_COUNT(parts));
}

/* True: it is new. The place of the longest unseen one is given again. */
static bool remember(struct master *m, uint64_t culprit, uint64_t name)
{
    struct master_warned *oldest = &m->warned[0];
    for (size_t i = 0; i < ARRAY_COUNT(m->warned); i++) {
        struct master_warned *w = &m->warned[i];
        if (w->at > 0 && w->culprit == culprit && w->name == name) {
            w->at = m->now;
            return false;
        }
        if (w->at < oldest->at) oldest = w;
    }
    *oldest = (struct master_warned){culprit, name, m->now};
    return true;
}

static void forget_over(struct master *m)
{
    for (size_t i = 0; i < ARRAY_COUNT(m->warned); i++)
        if (m->warned[i].at + 2 * LOOK_EVERY + m->deadline < m->now)
            m->warned[i].at = 0;
}

void stall_tick(struct master *m)
{
    enum { TOLD_MAX = 8 }; /* in one look */
    struct stall stalls[TOLD_MAX];
    stall_ask(m, false);
    if (m->warn_after == 0 || m->now - m->warned_at < LOOK_EVERY) return;
    m->warned_at = m->now;
    forget_over(m);
    uint32_t count = stall_find(m, m->warn_after, stalls, TOLD_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const struct stall *s = &stalls[i];
        bool somebody = s->culprit != MASTER_NO_LINK;
        uint64_t id = somebody ? m->peers[s->culprit].info.id : 0;
        if (s->cause == CAUSE_MOVES || !remember(m, id, name_of(s))) continue;
        char text[STALL_TEXT_MAX];
        stall_print(m, s, text);
        struct master_note note = {.kind = NOTE_STALLED, .reason = text};
        note.peer = somebody ? &m->peers[s->culprit] : NULL;
        master_note_send(m, &note);
    }
}
