/* admission.c - see admission.h. */
#include "admission.h"
#include "votes.h"

#include <inttypes.h>
#include <stdio.h>

static uint32_t count(const struct master *m, bool newcomers)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->link_end; i++) {
        const struct master_peer *p = &m->peers[i];
        count += p->state == PEER_MEMBER && !p->leaving;
        count += newcomers && p->state == PEER_REGISTERED;
    }
    return count;
}

bool admission_lacks(const struct master *m, uint32_t *have)
{
    *have = count(m, true);
    return *have < m->minimum;
}

/* Once, until there are enough members again. */
void admission_settle(struct master *m)
{
    uint32_t have, members;
    if (m->minimum < 2) return;
    members = count(m, false);
    if (members == 0 || members >= m->minimum) m->waits = false;
    if (m->waits || !votes_all(m, VOTE_UPDATE) || !admission_lacks(m, &have))
        return;
    char text[WIRE_TEXT_MAX];
    (void)snprintf(text, sizeof text,
                   "%" PRIu32 " of at least %" PRIu32
                   " members are left: the training waits for newcomers",
                   members, m->minimum);
    struct master_note note = {.kind = NOTE_STALLED, .reason = text};
    m->waits = true;
    master_note_send(m, &note);
}

void admission_refuse(struct master *m)
{
    for (uint32_t i = 0; i < m->link_end; i++) {
        if (m->peers[i].state == PEER_REGISTERED && m->peers[i].join)
            master_drop(m, i,
                        m->left ? "the job has ended"
                                : "all members of the job were lost");
    }
}
